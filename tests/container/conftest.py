"""A real Docker engine, the Action's image, and jobs that run it as GitHub's runner does."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from tests.container.engine import Engine
from tests.container.images import (
    REPOSITORY,
    base_image,
    make_standin_base,
    make_wrapped_base,
    provide,
)
from tests.container.runner import Job

from mrcr_action.bins import parse_bin
from mrcr_action.data.writer import write_synthetic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.container.images import Provided

    NewJob = Callable[..., Job]

QUICK = {
    "model": "org/Model",
    "dataset": "rows",
    "protocol": "openai",
    "needles": "2 4",
    "samples-per-cell": "2",
    "thresholds": "0.9",
}
"""Inputs that a healthy stand-in passes in two seconds."""

TEAM_VLLM = """\
#!/usr/bin/python3
import os
import sys
from pathlib import Path

_, model, *arguments = sys.argv[1:]

def tell(about, path):
    if path.is_file():
        print(f"{about}: {path.read_text()}", flush=True)

tell("model", Path(model) / "config.json")
if "--chat-template" in arguments:
    at = arguments.index("--chat-template")
    tell("template", Path(arguments[at + 1]))
    del arguments[at : at + 2]
if os.path.isdir(model):
    print("model can be written:", os.access(model, os.W_OK), flush=True)
if "HF_HOME" in os.environ:
    cache = Path(os.environ["HF_HOME"])
    cache.mkdir(parents=True, exist_ok=True)
    tell("kept", cache / "note")
    (cache / "note").write_text("of the run before")
os.execv("/usr/local/bin/real-vllm", ["vllm", "serve", model, *arguments])
"""
"""Prints the configuration of a model that is a folder and the chat template, whether the model
could be changed, and the note that it leaves in the cache for the next run."""


@pytest.fixture(scope="session")
def provided() -> Provided:
    """What the images are made of, fetched on first use."""
    return provide()


@pytest.fixture(scope="session")
def engine(provided: Provided) -> Iterator[Engine]:
    """A Docker engine of this session's own, which takes requests for GPUs."""
    with Engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def engine_url(engine: Engine) -> str:
    """Where it listens, ``unix://…``."""
    return engine.url


@pytest.fixture(scope="session")
def standin_base(engine: Engine, provided: Provided) -> str:
    """A stand-in for vLLM's image, under the name that the Dockerfile builds on."""
    tag = base_image(REPOSITORY / "Dockerfile")
    make_standin_base(engine, provided, tag)
    return tag


@pytest.fixture(scope="session")
def action_image(
    engine: Engine, standin_base: str, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The Action's image, built once with the runner's command and the legacy builder."""
    return Job(engine, REPOSITORY, tmp_path_factory.mktemp("build")).build()


@pytest.fixture(scope="session")
def team_image(engine: Engine, standin_base: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An image of somebody else's build of vLLM, which also tells what it sees; see `TEAM_VLLM`."""
    context = tmp_path_factory.mktemp("team")
    return make_wrapped_base(engine, standin_base, context, vllm=TEAM_VLLM, tag="team/vllm:1")


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short synthetic samples, two of each length and needle count."""
    folder = tmp_path_factory.mktemp("rows")
    bins = [parse_bin(text) for text in ("512-1K", "1K-2K")]
    write_synthetic(folder, needles=(2, 4, 8), bins=bins, per_cell=2, seed=0)
    return folder


@pytest.fixture
def new_job(
    engine: Engine, action_image: str, rows: Path, tmp_path: Path
) -> Iterator[Callable[..., Job]]:
    """Makes jobs with `rows` in their workspace; none may leave a container behind."""

    def make(name: str = "job") -> Job:
        job = Job(engine, REPOSITORY, tmp_path / name, image=action_image)
        shutil.copytree(rows, job.workspace / "rows")
        for path in (job.workspace / "rows", *(job.workspace / "rows").rglob("*")):
            os.chown(path, job.owner, job.owner)
        return job

    before = set(engine.containers())
    yield make
    left = set(engine.containers()) - before
    for name in left:
        engine.docker("rm", "--force", "--volumes", name, check=False)
    assert not left, f"left behind: {left}"


@pytest.fixture
def job(new_job: NewJob) -> Job:
    """A job with samples in its workspace."""
    return new_job()
