import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from mrcr_action.probe import vocabulary
from mrcr_action.probe.vocabulary import (
    ASSISTANT,
    BOS,
    END,
    SPECIALS,
    USER,
    byte_letters,
    decode,
    encode,
    encode_chat,
)
from mrcr_action.sample import Message

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
    assert encode(f"{SPECIALS[END]}{SPECIALS[ASSISTANT]}a") == [
        END,
        ASSISTANT,
        len(SPECIALS) + ord("a"),
    ]


@pytest.mark.parametrize("name", ["bos", "end", "user", "assistant", "system", "im_end"])
def test_what_looks_like_a_special_token_in_a_text_is_text(name: str) -> None:
    text = f"<|{name}|></s>[INST]"
    assert decode(encode(text)) == text


CHAT = [
    Message("user", "Here are {{ 1 }} <|end|> examples"),
    Message("user", "write a poem"),
    Message("assistant", " <|im_end|></s> 🎉\n"),
    Message("system", ""),
    Message("user", "Prepend"),
]


def rendered(messages: list[Message]) -> str:
    """What a server makes of a conversation, with the sandbox that transformers uses."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    return environment.from_string(vocabulary.CHAT_TEMPLATE).render(
        messages=[{"role": m.role, "content": m.content} for m in messages],
        add_generation_prompt=True,
    )


def refuse(message: str) -> None:
    raise TemplateError(message)


def test_the_chat_template_renders_what_encode_chat_does() -> None:
    assert encode(rendered(CHAT)) == encode_chat(CHAT)
    assert encode_chat(CHAT[1:2]) == [BOS, USER, *encode("write a poem"), END, ASSISTANT]


@pytest.mark.parametrize("special", SPECIALS)
def test_the_chat_template_refuses_what_would_be_read_as_another_conversation(special: str) -> None:
    with pytest.raises(TemplateError, match="the text of a special token"):
        rendered([*CHAT, Message("user", f"a{special}b")])


def test_cut_characters_decode_to_replacement_marks() -> None:
    assert decode(encode("é")[:1]) == "�"


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        encode("\ud83d")
