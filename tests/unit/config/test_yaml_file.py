from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mrcr_action.config.yaml_file import MAX_BYTES, read_yaml
from mrcr_action.errors import ConfigError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def error_of(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ConfigError) as caught:
        read_yaml(path)
    assert caught.value.exit_code == 2
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


def test_keys_are_read_with_the_lines_they_stand_on(path: Path) -> None:
    path.write_text("# a model\nmodel_name: m\n\nneedles:\n  - 2\n  - 4\nseed: 1\n")
    read = read_yaml(path)
    assert read.values == {"model_name": "m", "needles": [2, 4], "seed": 1}
    assert read.lines == {"model_name": 2, "needles": 4, "seed": 7}
    assert read.where("seed") == f"{path}:7"


def test_a_byte_order_mark_is_no_part_of_the_first_key(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbfmodel_name: m\n")
    assert read_yaml(path).values == {"model_name": "m"}


def test_a_key_that_yaml_takes_for_a_truth_value_keeps_its_text(path: Path) -> None:
    path.write_text("seed: 1\nno: 2\nyes: 3\n2: 4\n")
    read = read_yaml(path)
    assert read.values == {"seed": 1, "no": 2, "yes": 3, "2": 4}
    assert read.where("yes") == f"{path}:3"


def test_a_missing_file_is_named(path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_yaml(path)
    assert str(caught.value) == f"{path}: No such file or directory"


@pytest.mark.parametrize("content", ["", "\n\n", "# only a comment\n"])
def test_an_empty_file_says_so(path: Path, content: str) -> None:
    assert error_of(path, content) == ": the file is empty"


@pytest.mark.parametrize(
    "content", ["- model_name: m\n", "model_name\n", "5\n", "'a: b'\n", "~\n", "---\n"]
)
def test_a_file_without_keys_says_what_is_expected(path: Path, content: str) -> None:
    assert error_of(path, content) == ": expected keys with values, such as `model_name: NAME`"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("seed: 1\nneedles: [2]\nseed: 2\n", ":3: the key seed occurs twice"),
        ("seed: 1\n'seed': 1\n", ":2: the key seed occurs twice"),
        ("env:\n  A: 1\n  A: 2\n", ":3: the key A occurs twice"),
        (
            "match_ratio_threshold:\n  2: 0.9\n  4: 0.8\n  2: 0.1\n",
            ":4: the key 2 occurs twice",
        ),
    ],
)
def test_a_key_given_twice_is_an_error_on_its_second_line(
    path: Path, content: str, expected: str
) -> None:
    assert error_of(path, content) == expected


def test_aliases_are_not_read(path: Path) -> None:
    message = error_of(path, "model_name: &name m\nhost: *name\n")
    assert message == ":2: aliases (*name) are not read here; write the value out"


def test_a_bomb_of_aliases_ends_at_its_first(path: Path) -> None:
    bomb = "a: &a [x, x, x, x]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(9))
    assert error_of(path, bomb).startswith(":2: aliases")


def test_a_binary_file_says_so(path: Path) -> None:
    assert error_of(path, b"model_name: \0m\n") == ": a binary file, not YAML"


def test_text_in_another_encoding_names_the_byte(path: Path) -> None:
    message = error_of(path, "model_name: é\n".encode("latin-1"))
    assert message == ": not text in UTF-8 (byte 12 is 0xe9)"


def test_a_file_over_the_limit_is_not_parsed(path: Path) -> None:
    assert error_of(path, "#" * (MAX_BYTES + 1)) == (
        ": larger than 1,000,000 bytes, so not a configuration"
    )


def test_a_file_at_the_limit_is_read(path: Path) -> None:
    text = "seed: 1\n#"
    path.write_text(text + "x" * (MAX_BYTES - len(text)))
    assert read_yaml(path).values == {"seed": 1}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("seed: 1\nneedles: [2\n", 3),
        ("seed: 1\n  host: x\n", 2),
        ("seed: 1\n\thost: x\n", 2),
        ("seed: 1\nhost: 'x\n", 3),
        ("seed: 1\n---\nseed: 2\n", 2),
        ("seed: 1\nhost: !!python/object/apply:os.system [x]\n", 2),
        ("seed: 1\nhost: !mine x\n", 2),
        ("seed: 1\n<<: {host: x}\n", 2),
        ("seed: 1\n[a, b]: x\n", 2),
        ("seed: 1\n? !!set {a}\n: x\n", 2),
    ],
)
def test_what_yaml_cannot_be_read_from_is_named_with_its_line(
    path: Path, content: str, line: int
) -> None:
    assert error_of(path, content).startswith(f":{line}: ")


def test_a_control_character_is_an_error_of_the_file(path: Path) -> None:
    assert error_of(path, "seed: \x1b[31m1\n") == (
        ": not readable as YAML: unacceptable character #x001b: special characters are not allowed"
    )


@pytest.mark.parametrize(
    "value",
    ["!!bool x", "!!int x", "!!int ''", "!!float x", "!!timestamp x", "!!binary x", "2024-99-99"],
)
def test_a_value_that_does_not_suit_its_tag_is_an_error_of_the_file(path: Path, value: str) -> None:
    error_of(path, f"seed: {value}\n")


def test_nesting_without_end_is_an_error_of_the_file(path: Path) -> None:
    error_of(path, "seed: " + "[" * 5000)


ANY_TEXT = st.text(max_size=60) | st.text("[]{}:,-?!&*|>'\"%@ \n\tab0.~", max_size=30)


@given(content=ANY_TEXT)
@settings(
    max_examples=300,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_text_is_read_or_is_an_error_of_the_file(path: Path, content: str) -> None:
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    try:
        read = read_yaml(path)
    except ConfigError:
        return
    assert set(read.values) == set(read.lines)
