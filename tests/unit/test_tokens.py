import base64
import gzip
import hashlib
import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public  # type: ignore[import-untyped]

import mrcr_action
from mrcr_action import tokens
from mrcr_action.errors import DataError
from mrcr_action.sample import Message, Sample, SampleId


@pytest.fixture(scope="module")
def stock() -> tiktoken.Encoding:
    """tiktoken's own definition of o200k_base, spared the download of its vocabulary."""
    demanded = []

    def load(url: str, expected_hash: str) -> dict[bytes, int]:
        demanded.append(expected_hash)
        return tokens.read_vocabulary(tokens.vocabulary_path())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai_public, "load_tiktoken_bpe", load)
        encoding = tiktoken.Encoding(**openai_public.o200k_base())
    assert demanded == [tokens.VOCABULARY_SHA256]
    return encoding


def quicktok_or_skip() -> tokens._Quicktok:
    pytest.importorskip("quicktok", reason="it has no wheels for Python 3.14")
    quicktok = tokens._QUICKTOK.get()
    assert quicktok is not None
    return quicktok


def texts() -> st.SearchStrategy[str]:
    hard = ["'LL", "!\n\n", "/", "<|endoftext|>", " " * 40, "\n\r\n", "東京", "\u0301", "👩‍🚀", "Ⅷ"]
    hard += [
        "'",
        "ſ",
        "s",
        "1234567",
        "\u200b",
        "\u3000",
        "हिन्दी",
        "ǅ",
        "\ud800",
        "\U000323b0",
        "\u1acf",
    ]
    return st.lists(st.sampled_from(hard) | st.text(max_size=8), max_size=12).map("".join)


def test_pattern_and_special_tokens_are_tiktokens_own(stock: tiktoken.Encoding) -> None:
    built = tokens._ENCODING.get()
    assert stock._pat_str == built._pat_str
    assert stock._special_tokens == built._special_tokens
    assert stock._mergeable_ranks == built._mergeable_ranks


@given(text=texts())
@settings(max_examples=500, deadline=None)
def test_counts_equal_stock_tiktoken(stock: tiktoken.Encoding, text: str) -> None:
    assert len(stock.encode(text, disallowed_special=())) == tokens.count(text)


@given(text=texts())
@settings(max_examples=200, deadline=None)
def test_counting_piece_by_piece_gives_the_same(text: str) -> None:
    assert len(tokens._ENCODING.get().encode_ordinary(text)) == tokens._count_piecewise(text)


def test_every_code_point_trusted_to_quicktok_counts_as_in_tiktoken(
    stock: tiktoken.Encoding,
) -> None:
    quicktok = quicktok_or_skip()
    # The planes 4 to 13 and the private ones hold no characters.
    differ = []
    for first in [*range(0, 0x34000, 4096), 0xE0000]:
        trusted = [chr(c) for c in range(first, first + 4096) if quicktok.agrees(chr(c))]
        text = "\n".join(f"a{c}A 1{c}2 {c}{c}:A {c}'s ' {c}S" for c in trusted)
        if quicktok.count(text) != len(stock.encode_ordinary(text)):
            differ.append(f"{first:X}")
    assert differ == []


def test_letters_newer_than_tiktoken_split_as_in_tiktoken(stock: tiktoken.Encoding) -> None:
    for code in tokens._code_points(tokens._NEWER):
        text = "a{0}A 1{0}2 {0}{0}:A {0}'s".format(chr(code))
        expected = len(stock.encode_ordinary(text))
        assert (expected, expected) == (tokens.count(text), tokens._count_piecewise(text))


def test_quicktok_has_the_vocabulary_tiktoken_demands() -> None:
    counter = quicktok_or_skip().count.__self__  # type: ignore[attr-defined]
    lines = (
        base64.b64encode(counter.decode_single_token_bytes(rank)) + f" {rank}\n".encode()
        for rank in range(199998)
    )
    assert hashlib.sha256(b"".join(lines)).hexdigest() == tokens.VOCABULARY_SHA256


def test_ordinary_texts_are_quicktoks_to_count() -> None:
    quicktok = quicktok_or_skip()
    for text in (
        "",
        "fields",
        "“Fields” – naïve 👩‍🚀 🇩🇪",
        "поле",
        "東京の畑",
        "खेत",
        "\u0301",
        "<|endoftext|>",
    ):
        assert quicktok.agrees(text)


@pytest.mark.parametrize(
    "doubtful", ["\ud800", "a\udfff", "it'ſ", "\U000323b0", "x\u1acf", "\u0cdc"]
)
def test_doubtful_texts_are_tiktokens_to_count(doubtful: str) -> None:
    quicktok = quicktok_or_skip()
    assert not quicktok.agrees("fields " + doubtful)


def test_without_quicktok_the_counts_are_tiktokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "quicktok", None)
    monkeypatch.setattr(tokens, "_QUICKTOK", tokens._Lazy(tokens._find_quicktok))
    assert tokens._QUICKTOK.get() is None
    assert tokens.count("hello world") == 2


@pytest.mark.parametrize("alter", [Path.unlink, lambda path: path.write_bytes(b"other")])
@pytest.mark.parametrize("name", list(tokens.QUICKTOK_SHA256))
def test_quicktok_with_other_tables_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, alter: Callable[[Path], object]
) -> None:
    quicktok_or_skip()
    quicktok = sys.modules["quicktok"]
    shutil.copytree(Path(str(quicktok.__file__)).parent / "data", tmp_path / "data")
    monkeypatch.setattr(quicktok, "__file__", str(tmp_path / "__init__.py"))
    assert tokens._find_quicktok() is not None
    alter(tmp_path / "data" / name)
    assert tokens._find_quicktok() is None


def test_threads_that_count_at_once_disturb_nobody() -> None:
    samples = [f"Field {n} — " + "“golden” waves 🌾, 12345 of them.\r\n" * n for n in range(200)]
    expected = [tokens.count(text) for text in samples]
    with ThreadPoolExecutor(8) as pool:
        rounds = list(pool.map(lambda _: [tokens.count(text) for text in samples], range(16)))
    assert rounds == [expected] * 16


@pytest.mark.parametrize(
    "text",
    [
        "x" + " " * 200_000 + "y",
        "1" * 1_000_000,
        "e\u0301" * 300_000,
        "\r\n" * 100_000,
        "=-" * 500_000,
        "あ" * 300_000,
        "👩‍🚀" * 50_000,
        "aZ9" * 300_000,
        "line of text\r\n" * 50_000,
    ],
    ids=["blanks", "digits", "marks", "crlf", "punctuation", "kana", "emoji", "mixed", "lines"],
)
def test_megabytes_of_the_same_count_as_in_tiktoken(stock: tiktoken.Encoding, text: str) -> None:
    assert len(stock.encode_ordinary(text)) == tokens.count(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("hello world", 2),
        ("tiktoken is great!", 6),
        ("<|endoftext|>", 7),
        ("\ud800", 1),
    ],
)
def test_known_counts(text: str, expected: int) -> None:
    assert expected == tokens.count(text)


def test_special_tokens_in_a_text_are_ordinary_text() -> None:
    assert tokens.count("<|endoftext|>") > 1
    assert tokens.count("a<|endofprompt|>b") > 3


def test_lone_surrogate_counts_as_the_replacement_character() -> None:
    assert tokens.count("field \ufffd end") == tokens.count("field \udc00 end")


def test_split_surrogate_pair_counts_as_its_character() -> None:
    assert tokens.count("a 😀 b") == tokens.count("a \ud83d\ude00 b")


@pytest.mark.parametrize("blank", [" ", "\t", "\u3000", " \n"])
def test_giant_run_of_white_space_is_counted_not_a_crash(blank: str) -> None:
    text = "word" + blank * (600_000 // len(blank)) + "word"
    assert tokens.count(text) > 1000


def test_giant_run_counts_the_same_on_both_sides_of_the_guard(stock: tiktoken.Encoding) -> None:
    # Long enough for the guard, short enough for stock tiktoken.
    text = "fields\n" + " " * 160_000 + "x, \ud800 \U000323b0:A and so on"
    assert len(stock.encode_ordinary(text)) == tokens.count(text)


@pytest.mark.parametrize("blank", [" ", "\t", "\u3000", " \n"])
def test_giant_run_counts_the_same_by_either_library(blank: str) -> None:
    quicktok = quicktok_or_skip()
    text = "word" + blank * (600_000 // len(blank)) + "word"
    assert quicktok.count(text) == tokens._count_as_tiktoken(text)


@pytest.mark.parametrize("letter", ["a", "A", "1", "!", "\n", "あ"])
def test_giant_run_without_white_space_is_counted(letter: str) -> None:
    assert tokens.count(letter * 500_000) > 10_000


def test_sample_counts_contents_and_answer_but_no_template() -> None:
    messages = (
        Message("user", "intro"),
        Message("user", "write a poem about fields"),
        Message("assistant", "Fields, fields!"),
        Message("user", "Prepend it."),
    )
    sample = Sample(
        id=SampleId("x", 0, ""),
        messages=messages,
        answer="abcFields, fields!",
        nonce="abc",
        n_needles=1,
        desired_msg_index=1,
        n_chars=0,
    )
    contents = sum(tokens.count(m.content) for m in messages)
    answer = tokens.count(sample.answer)
    assert (contents, answer) == tokens.count_sample_parts(sample)
    assert contents + answer == tokens.count_sample(sample)


def test_altered_vocabulary_is_refused_with_file_and_both_hashes(tmp_path: Path) -> None:
    path = tmp_path / "o200k_base.tiktoken.gz"
    path.write_bytes(gzip.compress(b"YQ== 0\n"))
    with pytest.raises(DataError) as caught:
        tokens.read_vocabulary(path)
    found = hashlib.sha256(b"YQ== 0\n").hexdigest()
    for part in (str(path), tokens.VOCABULARY_SHA256, found):
        assert part in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("content", [None, b"no gzip", gzip.compress(b"cut short" * 99)[:-9]])
def test_unreadable_vocabulary_is_refused_with_its_name(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "o200k_base.tiktoken.gz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read") as caught:
        tokens.read_vocabulary(path)
    assert str(path) in str(caught.value)


def test_damaged_deflate_stream_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "o200k_base.tiktoken.gz"
    whole = bytearray(gzip.compress(bytes(range(256)) * 40))
    whole[20:40] = b"\xff" * 20
    path.write_bytes(whole)
    with pytest.raises(DataError, match="cannot be read"):
        tokens.read_vocabulary(path)


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "find_spec", lambda name: None)
    with pytest.raises(DataError, match="bpe-openai"):
        tokens.vocabulary_path()


def test_nothing_is_loaded_by_the_import_alone() -> None:
    code = (
        "import sys, json, mrcr_action.tokens as t; "
        "print(json.dumps([t._ENCODING._built is None, t._QUICKTOK._built is None, "
        "'tiktoken' in sys.modules, 'quicktok' in sys.modules]))"
    )
    source = str(Path(mrcr_action.__file__).parents[1])
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {source!r}); {code}"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(ran.stdout) == [True, True, False, False]


def test_counting_opens_no_connection_and_writes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("QUICKTOK_DATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    encoding = tokens._build(tokens._PATTERN)
    assert encoding.encode_ordinary("hello world") == [24912, 2375]
    quicktok = tokens._find_quicktok()
    assert quicktok is None or quicktok.count("hello world") == 2
    assert list(tmp_path.iterdir()) == []


def test_many_threads_build_the_encoding_once() -> None:
    built: list[int] = []
    start = threading.Barrier(8)

    def build() -> tiktoken.Encoding:
        built.append(1)
        return tokens._ENCODING.get()

    lazy = tokens._Lazy(build)

    def use() -> None:
        start.wait()
        lazy.get()

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert built == [1]
