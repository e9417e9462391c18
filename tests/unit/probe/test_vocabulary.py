import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcr_action.probe import vocabulary
from mrcr_action.probe.vocabulary import SPECIALS, byte_letters, decode, encode

TEXTS = st.text() | st.text(alphabet="🎉👩‍🚀❤️ \t\n\r\0é東")


def without_specials(text: str) -> str:
    for special in SPECIALS:
        text = text.replace(special, "")
    return text


@given(TEXTS)
def test_any_text_comes_back(text: str) -> None:
    assert decode(encode(text)) == without_specials(text)


@given(TEXTS)
def test_the_file_says_what_encode_does(text: str) -> None:
    vocab = vocabulary.tokenizer_json()["model"]["vocab"]
    letters = byte_letters()
    by_file = [vocab[letters[byte]] for byte in without_specials(text).encode()]
    assert by_file == encode(without_specials(text))


def test_each_byte_and_special_has_one_token() -> None:
    content = vocabulary.tokenizer_json()
    vocab = content["model"]["vocab"]
    assert sorted(vocab.values()) == list(range(vocabulary.SIZE))
    assert len(set(byte_letters())) == 256
    assert not any(letter.isspace() for letter in byte_letters())
    assert {t["content"]: t["id"] for t in content["added_tokens"]} == {
        text: vocab[text] for text in SPECIALS
    }
    assert json.loads(json.dumps(content)) == content


def test_letters_are_those_of_byte_level_tokenizers() -> None:
    letters = byte_letters()
    assert [letters[b] for b in (0x00, 0x0A, 0x20, 0x41, 0x7F, 0xA0, 0xAD, 0xFF)] == list(
        "ĀĊĠAġłŃÿ"
    )


def test_special_tokens_are_single_tokens() -> None:
    assert encode("<|end|><|assistant|>a") == [
        vocabulary.END,
        vocabulary.ASSISTANT,
        len(SPECIALS) + ord("a"),
    ]


def test_cut_characters_decode_to_replacement_marks() -> None:
    assert decode(encode("é")[:1]) == "�"


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        encode("\ud83d")
