import pytest

from mrcr_action import errors
from mrcr_action.errors import ExitCode, MrcrError


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("MrcrError", 3),
        ("UsageError", 2),
        ("ConfigError", 2),
        ("CannotJudge", 3),
        ("DataError", 3),
        ("CellMissing", 3),
        ("ServerError", 3),
        ("TemplateError", 3),
        ("OutOfTime", 3),
        ("OutputError", 3),
    ],
)
def test_every_error_ends_in_the_exit_code_that_is_documented(name: str, code: int) -> None:
    error = getattr(errors, name)("text", hint="do this", details="a\nb")
    assert isinstance(error, MrcrError)
    assert error.exit_code == code
    assert (str(error), error.hint, error.details) == ("text", "do this", "a\nb")


def test_no_error_ends_in_the_exit_code_of_a_verdict() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    raised = [kind for kind in kinds if issubclass(kind, MrcrError)]
    assert len(raised) == 12
    assert {kind.exit_code for kind in raised} == {ExitCode.USAGE, ExitCode.CANNOT_JUDGE}


def test_that_nothing_fits_is_said_with_the_limit_and_what_to_do() -> None:
    error = errors.NothingFits(1_500)
    assert isinstance(error, errors.DataError)
    assert str(error) == "no sample fits into 1,500 prompt tokens"
    assert "--max-model-len" in error.hint
    assert error.exit_code == ExitCode.CANNOT_JUDGE


def test_exit_codes_are_those_of_the_readme() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "PASS": 0,
        "FAIL": 1,
        "USAGE": 2,
        "CANNOT_JUDGE": 3,
        "CANCELLED": 130,
    }
