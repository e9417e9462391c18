"""MRCR under pytest, as vLLM runs it: ``pytest --config-list-file=configs/models-small.txt``.

One test per YAML file of the list, named by the file; it fails with the message that the command
``mrcr run`` prints. Reports go where the configuration says, in a folder per file. Where another
plugin or conftest.py already owns the option, as vLLM's own tests do, this one stays out of the
way.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from mrcr_action.errors import MrcrError

OPTION = "--config-list-file"
_OWNED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser
) -> Generator[None, object, object]:
    """Add the option once every conftest.py has had its turn, unless one of them has it."""
    outcome = yield
    try:
        parser.addoption(
            OPTION,
            metavar="FILE",
            help="run MRCR for every configuration that this file lists",
        )
    except ValueError:
        early_config.stash[_OWNED] = False
    else:
        early_config.stash[_OWNED] = True
    return outcome


def pytest_configure(config: pytest.Config) -> None:
    """Collect the list file: beside the paths that were named, instead of the default ones."""
    file = _list_file(config)
    if file is None:
        return
    if not file.is_file():
        raise pytest.UsageError(f"{OPTION}={file}: no such file")
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    config.args = [*(config.args if named else []), str(file)]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take the list file, and no other."""
    file = _list_file(parent.config)
    if file is None or file_path != file:
        return None
    return ListFile.from_parent(parent, path=file_path)


def _list_file(config: pytest.Config) -> Path | None:
    if not config.stash.get(_OWNED, False):
        return None
    given: str | None = config.getoption(OPTION)
    return (config.invocation_params.dir / given).resolve() if given else None


class ListFile(pytest.File):
    """A list of configurations."""

    def collect(self) -> Iterable[pytest.Item]:
        """One item a line."""
        from mrcr_action.config.listing import read_list, unique_names
        from mrcr_action.errors import MrcrError

        try:
            paths = read_list(self.path)
        except MrcrError as error:
            raise self.CollectError(_text(error)) from error
        for path, name in zip(paths, unique_names([path.stem for path in paths]), strict=True):
            yield ConfigItem.from_parent(self, name=name, config_path=path)


class ConfigItem(pytest.Item):
    """One configuration, run against a server of its own."""

    def __init__(self, *, config_path: Path, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config_path = config_path

    def runtest(self) -> None:
        """Take the configuration to its verdict."""
        from mrcr_action.commands.run import api_key_of, job_of
        from mrcr_action.config.resolve import resolve
        from mrcr_action.errors import ExitCode
        from mrcr_action.pipeline import exit_code
        from mrcr_action.report.text import one_line
        from mrcr_action.suite import run_suite

        resolved = resolve(self.config_path, os.environ, {})
        job = job_of(resolved, api_key=api_key_of(os.environ), flags={})
        (result,) = run_suite([job], Path(resolved.config.output_dir) / self.name)
        if exit_code(result) == ExitCode.CANCELLED:
            # Ctrl-C ends the session, not just this configuration.
            raise KeyboardInterrupt
        if result.verdict.conclusion == "measured":
            # One part of a plan has neither passed nor failed.
            pytest.skip(one_line(result.verdict.summary))
        if result.verdict.conclusion != "pass":
            raise NotPassed(one_line(result.verdict.summary, 2_000))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any) -> Any:
        """The verdict, or the error and its hint; a traceback only for a fault of this program."""
        from mrcr_action.errors import MrcrError

        error = excinfo.value
        if isinstance(error, NotPassed):
            return str(error)
        return _text(error) if isinstance(error, MrcrError) else super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The heading of a failure; unlike the name alone, pytest leaves dots in it as they are."""
        return self.config_path, None, f"mrcr {self.name}"


class NotPassed(Exception):
    """The verdict was another than pass; the text is its summary."""


def _text(error: MrcrError) -> str:
    from mrcr_action.report.text import lines, one_line

    said = [one_line(str(error), 2_000), one_line(error.hint, 1_000), *lines(error.details)]
    return "\n".join(filter(None, said))
