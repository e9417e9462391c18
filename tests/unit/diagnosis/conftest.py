"""Records with a diagnosis, and plans of several rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mrcr_action.config import RunConfig
from mrcr_action.diagnosis.evidence import Diagnosis, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mrcr_action.diagnosis.evidence import Form
    from mrcr_action.plan import Plan
    from mrcr_action.result import Record
    from mrcr_action.rounds import Round


@pytest.fixture
def diagnosed(make_record: Callable[..., Record]) -> Callable[..., Record]:
    """A record of such a form, whose needle lies so many tokens before the end of the prompt."""

    def make(
        ask: int, form: Form = "exact", distance: int = 1000, *, ordinal: int = 1, **changes: Any
    ) -> Record:
        tokens = changes.pop("prompt_tokens", 8000)
        known = {"edits", "ratio", "source", "repeat", "first_wrong", "nonce", "lead", "strange"}
        known |= {"excerpt"}
        evidence = {name: changes.pop(name) for name in known & changes.keys()}
        wanted = Wanted(
            ordinal=ordinal,
            of=2,
            turn=7,
            depth=1 - distance / tokens,
            token=tokens - distance,
            distance=distance,
        )
        lost = form in {"rejected", "failed"}
        values = {"prompt_tokens": tokens, "outcome": form if lost else "scored"} | changes
        return make_record(
            ask,
            None if lost else 1.0 if form == "exact" else 0.5,
            diagnosis=Diagnosis(form=form, wanted=wanted, **evidence),
            **values,
        )

    return make


@pytest.fixture
def plan_with(
    make_plan: Callable[..., Plan],
) -> Callable[[Sequence[Record], Sequence[Round]], Plan]:
    """The plan that these records answer, with these rounds."""

    def make(records: Sequence[Record], rounds: Sequence[Round]) -> Plan:
        return make_plan(records, RunConfig(needles=(2,)), rounds=tuple(rounds))

    return make
