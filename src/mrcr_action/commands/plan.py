"""``mrcr plan``: what a run would ask, without asking it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mrcr_action.choice import Choice, named_window, window_of
from mrcr_action.client import ApiError, Client
from mrcr_action.config.listing import expand
from mrcr_action.config.resolve import resolve
from mrcr_action.errors import ExitCode, ServerError, UsageError
from mrcr_action.gate import check_cells
from mrcr_action.parts import split
from mrcr_action.publish import without_password
from mrcr_action.report.console import print_plan, print_progress
from mrcr_action.report.progress import plan_line
from mrcr_action.report.text import one_line
from mrcr_action.result import encode_document
from mrcr_action.rounds import with_rounds
from mrcr_action.served import check_window, find_model, prompt_limit
from mrcr_action.server.route import address_of, attaches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mrcr_action.config.resolve import Resolved
    from mrcr_action.plan import Plan
    from mrcr_action.result import Part


def plan_command(
    configs: Sequence[str],
    flags: Mapping[str, Any],
    *,
    window: str | None,
    as_json: bool,
    api_key: str | None,
    environ: Mapping[str, str],
) -> int:
    """Print the plan of every configuration; nothing is started, and no sample is asked."""
    tokens = named_window(window)
    paths: list[Path | None] = [*expand(configs)] if configs else [None]
    plans: list[Plan] = []
    wholes: list[Plan] = []
    for resolved in [resolve(path, environ, flags) for path in paths]:
        plan = asyncio.run(_plan(resolved, tokens, api_key))
        whole = with_rounds(plan, resolved.config)
        wholes.append(whole)
        of = resolved.config.shard_of
        part, own = (None, whole) if of is None else split(whole, *of)
        plans.append(own)
        if not as_json:
            _print(resolved, own, part)
    if as_json:
        print(encode_document(plans if len(plans) > 1 else plans[0]).decode(), end="")
    for plan in wholes:
        check_cells(plan)
    return ExitCode.PASS


async def _plan(resolved: Resolved, window: int | None, api_key: str | None) -> Plan:
    config = resolved.config
    choice = Choice(config, report=print_progress)
    choice.check()
    attached = config.base_url is not None or config.server == "external"
    if attached and attaches(config, has_file=resolved.path is not None):
        address = address_of(config)
        async with Client(address, api_key=api_key) as client:
            model = await find_model(client, config.model_name, ours=False)
            longest = config.prompt_limit(window) or prompt_limit(config, model)
            try:
                return await choice.choose(limit=longest, client=client, model=model)
            except ApiError as error:
                raise ServerError(f"{without_password(address)}: {error}") from error
    check_window(config, window or window_of(config))
    limit = config.prompt_limit(window or window_of(config))
    if limit is None:
        raise UsageError(
            "nothing says how long the server's window is",
            hint="Pass --window 128K, or --max-prompt-tokens; or name a running server with"
            " --base-url.",
        )
    return await choice.choose(limit=limit)


def _print(resolved: Resolved, plan: Plan, part: Part | None) -> None:
    config = resolved.config
    revision = f" at {config.revision[:12]}" if Choice(config).shards.kind == "hub" else ""
    print(
        one_line(
            f"{resolved.name}: protocol {config.protocol}, seed {config.seed}, samples from"
            f" {config.dataset}{revision}, up to {plan.max_prompt_tokens:,} prompt tokens"
        )
    )
    if part is not None:
        print(f"Only {part}, of a plan of {len(part.whole.asks)} requests")
    print_plan(plan)
    print(plan_line(plan))
    if plan.counted_by == "o200k":
        print("Counted in o200k tokens; a server's own count decides in a run.")
    if plan.schedule:
        print(
            f"As long as a threshold is undecided, up to {plan.schedule[-1]} samples a cell, in at"
            f" most {len(plan.schedule)} looks."
        )
    if config.boundaries or config.sweep or config.small_pool:
        print("Boundaries, a sweep and a small KV cache come on top; they depend on the server.")
    for note in plan.notes:
        print(one_line(f"note: {note}", 1_000))
