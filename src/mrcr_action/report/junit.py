"""JUnit XML, through the ``junit-xml`` library; the only module that knows it.

The subset that every reader takes (docs/architecture.md): flat, one suite a configuration, one
case a bucket, one a further round and one the baseline, ``error`` for what stopped the run,
``failure`` for its missed thresholds, for a regression, for instability and for a logit margin; on
request one a sample (`mrcr_action.report.junit_samples` says when it is red). The library is fed
text that XML can hold, and what it writes is corrected (times with three decimals, no ``disabled``
attribute) and parsed back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import junit_xml

from mrcr_action.config.listing import unique_names
from mrcr_action.report.baseline import baseline_text
from mrcr_action.report.cost import cost_properties
from mrcr_action.report.diagnosis import counts, suspicions, worst_lines
from mrcr_action.report.junit_samples import sample_cases
from mrcr_action.report.rows import bucket_title, lost, number, reasons, span, tested
from mrcr_action.report.text import lines, one_line, xml_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mrcr_action.report.junit_samples import SampleCase
    from mrcr_action.result import Bucket, Check, Result

BODY_LIMIT = 8_000
"""Characters of a failure's body; readers cut or refuse more."""

SAMPLE_LIMIT = 2_000
"""The same of a sample, of which there may be thousands."""


def render_junit(results: Sequence[Result]) -> bytes:
    """One ``testsuites`` document, a suite per result, in UTF-8."""
    names = unique_names([_clean(one_line(result.name)) for result in results])
    # Some readers split a case's class at dots, so that the varying part must hold none.
    classes = unique_names([name.replace(".", "_") for name in names])
    suites = [_suite(*of) for of in zip(results, names, classes, strict=True)]
    text = junit_xml.to_xml_report_string(suites, prettyprint=False)
    root = ET.fromstring(text)  # noqa: S314 - written a line above
    root.set("name", "mrcr")
    for element in root.iter():
        element.attrib.pop("disabled", None)
        if element.tag in {"testsuites", "testsuite", "testcase"}:
            element.set("time", f"{float(element.get('time', 0)):.3f}")
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    ET.fromstring(document)  # noqa: S314 - a report must be readable
    return document + b"\n"


def _suite(result: Result, name: str, label: str) -> Any:
    verdict, tested = result.verdict, {bucket.name for bucket in result.buckets}
    cases = [_run_case(result, label)]
    looks = suspicions(result)
    cases += [_bucket_case(result, label, bucket, looks) for bucket in result.buckets]
    of_buckets = [check for check in verdict.checks if check.is_of_threshold]
    untested = dict.fromkeys(c.bucket for c in of_buckets if c.bucket not in tested)
    cases += [_missing_case(label, bucket, verdict.of(bucket)) for bucket in untested]
    cases += [_change_case(result, label, c) for c in verdict.checks if not c.is_of_threshold]
    if result.config.junit == "samples":
        cases += [_sample_case(label, sample) for sample in sample_cases(result)]
    return junit_xml.TestSuite(
        f"mrcr {name}",
        test_cases=cases,
        timestamp=_clean(result.started.removesuffix("Z")),
        properties={name: _clean(value) for name, value in _properties(result).items() if value},
    )


def _properties(result: Result) -> dict[str, str]:
    return {
        "conclusion": result.verdict.conclusion,
        "protocol": result.config.protocol,
        "model": result.model or "",
        "dataset": result.data.dataset,
        "revision": result.data.revision or "",
        "samples": str(result.num_samples),
        "tolerance": str(result.config.tolerance),
        "max_prompt_tokens": str(result.max_prompt_tokens or ""),
        "comparable": _comparable(result),
        "stopped": result.stopped.sentence if result.stopped else "",
        "server_version": result.server.version or "",
        "tool_version": result.tool_version,
        **cost_properties(result),
    }


def _comparable(result: Result) -> str:
    merged = result.preflight is not None and result.preflight.merged
    return "no: merge_leading_user_turns changes what is asked" if merged else ""


def _case(label: str, name: str, seconds: float) -> Any:
    return junit_xml.TestCase(
        _clean(name),
        classname=f"mrcr.{label}",
        # The library leaves the time out when it is 0, and some readers then show NaN.
        elapsed_sec=max(seconds, 0.0004),
    )


def _run_case(result: Result, label: str) -> Any:
    case = _case(label, "run", result.timeline.start_up + result.timeline.plan)
    stopped = [result.stopped.sentence] if result.stopped else []
    case.stdout = _clean("\n".join([*stopped, tested(result), *result.notes]), BODY_LIMIT)
    if result.problem is not None:
        problem = result.problem
        body = [problem.message, problem.hint, *lines(problem.details)]
        case.add_error_info(
            # Without any text, the library would write the case as passed.
            message=_clean(problem.message).strip() or _clean(problem.kind),
            output=_clean("\n".join(filter(None, body)), BODY_LIMIT),
            error_type=_clean(problem.kind),
        )
    return case


def _bucket_case(result: Result, label: str, bucket: Bucket, looks: Sequence[str]) -> Any:
    state, checks = result.verdict.state_of(bucket.name), result.verdict.of(bucket.name)
    message = _clean("; ".join(check.message for check in checks if check.state == state))
    ratios = ", ".join(
        f"{name} {number(value)}"
        for name, value in (
            ("openai ratio", bucket.match_ratio_openai),
            ("vllm ratio", bucket.match_ratio_vllm),
            ("nonce rate", bucket.prefix_hit_rate),
            ("exact rate", bucket.exact_rate),
        )
    )
    body = "\n".join(
        [
            *(check.message for check in checks),
            f"{bucket.graded} of {bucket.wanted} samples graded, lost or cut: {lost(bucket)}",
            ratios,
            f"95 % interval {span(bucket.interval)}, step of one sample {number(bucket.step)}",
            tested(result),
            *reasons(r for r in result.records if bucket.holds(r)),
            *(_diagnosis(result, bucket, looks) if state in {"fail", "inconclusive"} else ()),
        ]
    )
    # A suite's time is the sum over its cases, so that only those of the needle counts have any, or
    # of the samples where these are listed.
    counted = result.config.junit == "buckets"
    counted = counted and (
        bucket.n_needles is not None or (bucket.round is not None and bucket.base is None)
    )
    own = result.records if counted and bucket.bin is None else []
    case = _case(label, bucket_title(bucket), sum(r.seconds for r in own if bucket.holds(r)))
    if state == "fail":
        case.add_failure_info(
            message=message, output=_clean(body, BODY_LIMIT), failure_type="threshold"
        )
    elif state == "inconclusive":
        case.add_error_info(
            message=message, output=_clean(body, BODY_LIMIT), error_type="inconclusive"
        )
    else:
        case.stdout = _clean(body, BODY_LIMIT)
    return case


def _diagnosis(result: Result, bucket: Bucket, looks: Sequence[str]) -> Iterator[str]:
    """What the answers of a bucket are, what those of the whole run look like, the worst ones."""
    own = [record for record in result.records if bucket.holds(record)]
    if not (said := counts(own)):
        return
    yield said
    yield from (f"Looks like: {line}" for line in looks)
    yield from worst_lines(own, result.config.protocol)


def _sample_case(label: str, sample: SampleCase) -> Any:
    """One request; the cell is a class of its own within the configuration's."""
    case = _case(f"{label}.{sample.cell}", _clean(sample.name), sample.seconds)
    message, body = _clean(sample.message), _clean(sample.body, SAMPLE_LIMIT)
    if sample.colour == "failure":
        case.add_failure_info(message=message, output=body, failure_type="sample")
    elif sample.colour == "error":
        case.add_error_info(message=message, output=body, error_type="lost")
    elif sample.colour == "skipped":
        case.add_skipped_info(message=message)
    else:
        case.stdout = body
    return case


def _missing_case(label: str, bucket: str, checks: Sequence[Check]) -> Any:
    """A bucket that was named and could not be tested."""
    case = _case(label, bucket, 0.0)
    message = _clean("; ".join(check.message for check in checks))
    case.add_error_info(message=message, error_type="inconclusive")
    return case


def _change_case(result: Result, label: str, check: Check) -> Any:
    """What changed since the baseline, or from the first round to another."""
    case = _case(label, check.bucket, 0.0)
    is_baseline = check.against is not None and result.baseline is not None
    body = baseline_text(result.baseline) if is_baseline and result.baseline else check.message
    body, message = _clean(body, BODY_LIMIT), _clean(check.message)
    if check.state == "fail":
        case.add_failure_info(
            message=message,
            output=body,
            failure_type=_failure_type(check),
        )
    elif check.state == "inconclusive":
        case.add_error_info(message=message, output=body, error_type="inconclusive")
    else:
        case.stdout = body
    return case


def _failure_type(check: Check) -> str:
    if check.is_of_margin:
        return "margin"
    return "instability" if check.against is None else "regression"


def _clean(text: str, limit: int = 1_000) -> str:
    """Text as XML can hold it; a body keeps its lines."""
    return xml_text("\n".join(lines(text, limit)))[:limit]
