"""``mrcr compare``: two results of one plan, sample by sample."""

from __future__ import annotations

import msgspec

from mrcr_action.comparison.comparable import refuse
from mrcr_action.comparison.verdict import EXIT_CODES, compare
from mrcr_action.report.comparison import print_comparison
from mrcr_action.result import encode_document
from mrcr_action.stored import decoded, file_of, text_of, version_of


def compare_command(a: str, b: str, *, max_regression: float | None, as_json: bool) -> int:
    """Print what changed from one result to another.

    Args:
        a: a ``result.json``, or the folder with it; before.
        b: the same; after.
        max_regression: by how much a bucket's mean may fall; None leaves it to the test of chance.
        as_json: print the whole comparison as JSON.

    Raises:
        UsageError: the two cannot be compared.
        CannotJudge: one cannot be read, or no sample was graded in both.
    """
    paths = file_of(a), file_of(b)
    texts = text_of(paths[0]), text_of(paths[1])
    versions = version_of(paths[0], texts[0]), version_of(paths[1], texts[1])
    if versions[0] != versions[1]:
        refuse([("schema version", f"{versions[0]} in A, {versions[1]} in B")])
    comparison = compare(
        decoded(paths[0], texts[0]),
        decoded(paths[1], texts[1]),
        paths=(str(paths[0]), str(paths[1])),
        max_regression=max_regression,
    )
    if paths[0].samefile(paths[1]):
        notes = ("A and B are the same file.", *comparison.notes)
        comparison = msgspec.structs.replace(comparison, notes=notes)
    if as_json:
        print(encode_document(comparison).decode(), end="")
    else:
        print_comparison(comparison)
    return EXIT_CODES[comparison.conclusion]
