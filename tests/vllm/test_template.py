"""Real vLLM with a chat template that refuses two user turns in a row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.vllm.conftest import Serve
    from tests.vllm.running import Running

STRICT = Path(__file__).with_name("strict.jinja")
"""The probe's template with the check of Mistral's and Llama 2's."""


def test_strict_template_is_named_once_and_merging_gets_around_it(
    start: Callable[..., Running], serve: Serve
) -> None:
    with serve("--max-model-len", "1024", "--chat-template", str(STRICT)) as url:
        arguments = ("--base-url", url, "--dataset=rows", "--protocol=openai",
                     "--num-samples=6", "--max-tokens=256", "--threshold=1.0")  # fmt: skip
        refused = start(*arguments).finish()
        found = refused.result
        answered = completions(url)
        merged = start(*arguments, "--merge-leading-user-turns").finish()

    assert refused.exit_code == 3, refused.text
    assert found.problem is not None
    assert found.problem.kind == "TemplateError"
    assert "Conversation roles must alternate" in found.problem.message
    assert "merge_leading_user_turns: true" in found.problem.hint
    assert "--chat-template" in found.problem.hint
    assert found.problem.hint in refused.text
    assert found.records == ()
    assert answered == 0

    assert merged.exit_code == 0, merged.text
    assert [r.outcome for r in merged.result.records] == ["scored"] * 6
    assert merged.result.match_ratio == 1.0
    assert any("not comparable" in note for note in merged.result.notes)
    assert "not comparable" in (merged.output / "summary.md").read_text()


def completions(url: str) -> int:
    """How many requests the server has answered with a completion, by its own metrics."""
    text = httpx.get(f"{url}/metrics", timeout=60, trust_env=False).text
    counts = re.findall(r"^vllm:request_success_total\{[^}]*\} (\S+)$", text, re.MULTILINE)
    assert counts, text
    return int(sum(map(float, counts)))
