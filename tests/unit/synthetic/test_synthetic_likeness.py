"""Two needles of a row are about as unlike each other as the dataset's are."""

import itertools
import statistics

import pytest

from mrcr_action.bins import parse_bin
from mrcr_action.grade import Grade, grade
from mrcr_action.sample import Sample
from mrcr_action.synthetic import synthetic_rows


def grades(bin_: str, rows: int) -> list[Grade]:
    """What a server gets that answers with each other needle than the wanted one."""
    found = []
    for row in synthetic_rows([8], [parse_bin(bin_)], rows, 11):
        read = Sample.from_row(row, shard="synthetic", index=0)
        wanted = read.messages[read.desired_msg_index]
        found += [
            grade(read.nonce + reply.content, read.answer, read.nonce)
            for request, reply in itertools.pairwise(read.messages)
            if request == wanted and read.nonce + reply.content != read.answer
        ]
    return found


@pytest.mark.parametrize("bin_", ["4K-8K", "16K-32K"])
def test_a_wrong_needle_scores_as_little_as_in_the_dataset(bin_: str) -> None:
    found = grades(bin_, 12)
    assert len(found) == 7 * 12
    assert 0.15 < statistics.median(grade.match_ratio_vllm for grade in found) < 0.30
    assert statistics.median(grade.match_ratio_openai for grade in found) < 0.10


def test_no_two_needles_of_a_row_are_nearly_alike() -> None:
    assert max(grade.match_ratio_vllm for grade in grades("16K-32K", 12)) < 0.5
