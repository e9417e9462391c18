import numpy as np

from mrcr_action.probe import codes, wording
from mrcr_action.probe.codes import sequence_code, shift, tables
from mrcr_action.probe.vocabulary import encode


def test_codes_are_the_same_on_every_machine() -> None:
    first = next(codes.draws("token", 24))
    assert "".join("+" if sign > 0 else "-" for sign in first) == "-+-++--++----+-++++----+"


def test_any_two_tokens_differ_in_seven_places() -> None:
    products = tables().token @ tables().token.T
    np.fill_diagonal(products, -24)
    assert int(products.max()) == codes.TOKEN_ALIKE


def test_a_place_in_the_nonce_is_told_from_any_other_count() -> None:
    assert codes.count_likeness(tables().count) <= codes.COUNT_ALIKE


def test_shifts_by_fewer_than_64_places_are_all_different() -> None:
    for width in (24, 32, 48):
        assert len({tuple(shift(width, by)) for by in range(64)}) == 64
        assert all(sorted(shift(width, by)) == list(range(width)) for by in range(64))


def test_doubling_gives_the_code_of_the_whole_sequence() -> None:
    ids = encode("write a ")
    level = [tables().phrase[token] for token in ids]
    for distance in (1, 2, 4):
        level = [
            code * level[n - distance][shift(32, distance)] if n >= distance else code
            for n, code in enumerate(level)
        ]
    assert level[-1].tolist() == sequence_code(tables().phrase, ids).tolist()


def test_every_count_has_the_code_that_hashing_gives_it() -> None:
    unit = np.tile(tables().count[0], (300, 1))
    for n in (0, 1, 9, 10, 63):
        assert sequence_code(unit, range(n + 1)).tolist() == tables().count[n].tolist()


def test_openings_have_the_length_of_a_phrase_and_codes_of_their_own() -> None:
    openings = (
        *wording.REQUEST_OPENINGS,
        wording.NONCE_OPENING,
        wording.QUESTION_OPENING,
    )
    assert {len(encode(opening)) for opening in openings} == {wording.PHRASE}
    found = np.stack([sequence_code(tables().phrase, encode(opening)) for opening in openings])
    products = found @ found.T
    np.fill_diagonal(products, 0)
    assert int(products.max()) <= 16


def test_distances_follow_from_the_wording() -> None:
    assert wording.REQUEST_DISTANCE == 2
    assert wording.ORDINAL_DISTANCE == 15
    assert wording.QUESTION_DISTANCE == 51
    assert wording.COPY_DISTANCE == 9
