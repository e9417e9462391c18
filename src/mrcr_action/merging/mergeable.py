"""Whether some results are the parts of one plan, and all of them. Pure.

What was asked, of what, and how it is judged must be the same in all parts. Where a server runs, on
which GPUs, and how long may be waited for it may differ: several machines are what parts are for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from mrcr_action.comparison.comparable import dataset_of, differences
from mrcr_action.errors import DataError, UsageError
from mrcr_action.parts import identity_of, key_of
from mrcr_action.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.result import Part, Result

OF_THE_MACHINE = {
    *("shard", "output_dir", "save_results", "model_name", "dataset", "server", "base_url", "host"),
    *("port", "image", "gpus", "cache_dir", "shm_size", "env", "startup_max_wait_seconds"),
    *("request_timeout_seconds", "time_limit_seconds", "junit"),
}
"""Keys that may differ from part to part, since they decide no answer and no verdict, or since it
is compared what came of them."""

WHICH_GPU = {
    *("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"),
    "ROCR_VISIBLE_DEVICES",
}
"""Variables of a server that say no more than where it runs."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A result that is to be merged."""

    where: str
    """Its file."""
    result: Result

    @property
    def part(self) -> Part | None:
        """Which part it is; None where it did not come as far as a plan."""
        return self.result.part


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A part that there is nothing of."""

    number: int
    why: str
    """A sentence's end, such as ``is missing``."""


def check_pieces(pieces: Sequence[Piece]) -> tuple[list[Piece], list[Missing]]:
    """The parts of one plan, in their order, and those that are missing.

    Args:
        pieces: at least one, in any order.

    Raises:
        UsageError: one is no part, two are the same part, or they are not of one plan.
        DataError: none of them came as far as a plan.
    """
    numbered = [(*_number(piece), piece) for piece in pieces]
    first, (_, count, _) = pieces[0], numbered[0]
    for number, other_count, other in numbered:
        if other_count != count:
            of = f"{numbered[0][0]}/{count}", f"{number}/{other_count}"
            raise _mix([("shard", *of)], first, other)
    _check_once(numbered)
    found = [piece for _, _, piece in sorted(numbered, key=lambda of: of[0]) if piece.part]
    if not found:
        raise DataError(
            f"{first.where}: part {numbered[0][0]} {_why_none(first.result)}",
            hint="No part came as far as a plan, so that there is nothing to merge.",
        )
    for piece in found:
        _check_whole(piece)
        if differing := differences(_settings(found[0].result), _settings(piece.result)):
            raise _mix(differing, found[0], piece)
    there = {number for number, _, piece in numbered if piece.part}
    without = {n: _why_none(piece.result) for n, _, piece in numbered if not piece.part}
    return found, [
        Missing(number=n, why=without.get(n, "is missing"))
        for n in range(1, count + 1)
        if n not in there
    ]


def _check_once(numbered: Sequence[tuple[int, int, Piece]]) -> None:
    files: dict[int, list[str]] = {}
    for number, _, piece in numbered:
        files.setdefault(number, []).append(piece.where)
    for number, same in files.items():
        if len(same) > 1:
            raise UsageError(
                f"part {number} of {numbered[0][1]} is there {len(same)} times: {', '.join(same)}",
                hint="Name each part once: of a part that was run again, the result that counts.",
            )


def _check_whole(piece: Piece) -> None:
    """See that nobody changed what a part says of its plan: it is put together from that."""
    part, plan = piece.part, piece.result.plan
    assert part is not None
    found = identity_of(part.whole)
    if found != part.plan_sha256:
        raise DataError(
            f"{piece.where}: part.plan_sha256: {one_line(part.plan_sha256, 12)}, but that of the"
            f" plan in it is {found[:12]}",
            hint="The file was changed since it was written; take the one that `mrcr run` wrote.",
        )
    strange = {key_of(ask) for ask in plan.asks} - set(map(key_of, part.whole.asks)) if plan else ()
    if strange or not 1 <= part.number <= part.count <= len(part.whole.samples):
        raise DataError(
            f"{piece.where}: part: {part} does not belong to the plan in it",
            hint="The file was changed since it was written; take the one that `mrcr run` wrote.",
        )


def _number(piece: Piece) -> tuple[int, int]:
    if piece.part is not None:
        return piece.part.number, piece.part.count
    of = piece.result.config.shard_of
    if of is None:
        raise UsageError(
            f"{piece.where}: shard: none: it is the result of a whole run, and no part of a plan",
            hint="`mrcr merge` takes the results of `mrcr run --shard 1/N` to N/N.",
        )
    return of


def _why_none(result: Result) -> str:
    why = result.problem.message if result.problem else result.verdict.summary
    return f"made no plan: {one_line(why)}"


def _mix(differing: Sequence[tuple[str, str, str]], a: Piece, b: Piece) -> UsageError:
    told = [f"{what}: {in_a} in {a.where}, {in_b} in {b.where}" for what, in_a, in_b in differing]
    hint = "Every part has to be run with the same configuration, against the same kind of server."
    if len(told) == 1:
        return UsageError(f"these are not parts of one run: {told[0]}", hint=hint)
    return UsageError(
        f"these are not parts of one run: {len(told)} things differ",
        hint=hint,
        details="\n".join(told),
    )


def _settings(result: Result) -> dict[str, Any]:
    """What must be the same, the plainest causes first."""
    server, config = result.server, result.config
    values = msgspec.to_builtins(config)
    assert result.part is not None
    return {
        "configuration": result.name,
        "model": result.model,
        "server version": server.version,
        "server image": server.image,
        "server's window": server.max_model_len,
        "chat template and tokenizer": result.preflight.fingerprint if result.preflight else None,
        "dataset": dataset_of(result.data),
        "datasets library": result.data.library,
        "mrcr version": result.tool_version,
        **{key: values[key] for key in values if key not in OF_THE_MACHINE},
        "server_args": " ".join(config.server_args),
        **{f"env.{k}": str(v) for k, v in config.env.items() if k not in WHICH_GPU},
        "plan": result.part.plan_sha256[:12],
    }
