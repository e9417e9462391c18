# ruff: noqa: INP001 - a script, not a package
"""Which imprecise servers the probe's two sensitivities see, and how clearly a healthy one is well.

Asks short questions of a forward pass in numpy, healthy and with each of ``faults.FAULTS``, and
prints the tables of docs/probe-precision.md. ``OPENBLAS_NUM_THREADS=1 .venv/bin/python
benchmarks/probe.py [ASKS]`` takes a quarter of an hour; it exits 1 when a healthy answer is wrong
or a fault goes unseen by the high sensitivity.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

import numpy as np

from mrcr_action.probe import layout as at
from mrcr_action.probe import vocabulary, wording
from mrcr_action.probe.attention import (
    FAR_KERNEL,
    FAR_REACH,
    FAR_RESOLUTION,
    NEAR_KERNEL,
    NEAR_REACH,
    NEAR_RESOLUTION,
)
from mrcr_action.probe.build import weights
from mrcr_action.probe.checkpoint import Dtype
from mrcr_action.probe.faults import FAULTS
from mrcr_action.probe.gauges import RISE, WELL
from mrcr_action.probe.positions import distance_margin, kernel_margin
from mrcr_action.probe.reference import HEALTHY, Rounding, Server, Trace, computed, prepared
from mrcr_action.probe.rows import FILLERS, row
from mrcr_action.probe.variant import Sensitivity, Variant
from mrcr_action.synthetic.grammar import Dice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.probe.reference import Array

FORMS = {
    Variant(): "llama, heads of 128",
    Variant(head_size=64): "llama, heads of 64",
    Variant(architecture="qwen3"): "qwen3",
}
KINDS = (
    HEALTHY,
    Server(rounding=Rounding(rounds_shares=True)),
    Server(rounding=Rounding(drops_bits=True)),
)
"""Of healthy servers: kernels round in different places."""
LENGTHS = (131_072, 262_144, 524_288, 1_048_576)
"""Tokens of the contexts that positions are told apart in."""

ASKS = 20
NEEDLES = (2, 4, 2, 4, 8)
"""Of the asks, in turn."""
LEAST_SIZE = 300
"""Bytes of a conversation, unless its needles take more."""


@dataclass(frozen=True)
class Ask:
    """A prompt and its answer, as token ids."""

    prompt: list[int]
    answer: list[int]


class Model:
    """A variant as a server loads it."""

    def __init__(self, variant: Variant, dtype: Dtype) -> None:
        self.dtype = dtype
        self._parameters: dict[str, Array] = prepared(weights(variant), dtype)

    def told(self, ask: Ask, server: Server) -> Trace:
        """The pass over a prompt and its answer."""
        ids = ask.prompt + ask.answer[:-1]
        return computed(ids, self._parameters, dtype=self.dtype, server=server)

    def exact(self, ask: Ask, server: Server) -> bool:
        """Whether greedy decoding gives the answer: it does if each next token is right."""
        return self.told(ask, server).greedy()[len(ask.prompt) - 1 :] == ask.answer

    def said(self, ask: Ask, server: Server, *, tokens: int) -> str:
        """What greedy decoding gives, up to so many tokens."""
        ids: list[int] = []
        while len(ids) < tokens and vocabulary.END not in ids:
            trace = computed(ask.prompt + ids, self._parameters, dtype=self.dtype, server=server)
            ids.append(trace.greedy()[-1])
        return vocabulary.decode(ids) + ("" if vocabulary.END in ids else "…")


def asks(count: int) -> list[Ask]:
    """The probe's own rows, the shortest that there are."""
    found: list[Ask] = []
    for n in range(count):
        n_needles = NEEDLES[n % len(NEEDLES)]
        made = row(Dice("precision", n_needles, n), n_needles, LEAST_SIZE, n % n_needles, FILLERS)
        prompt = [vocabulary.BOS]
        for message in json.loads(made["prompt"]):
            role = vocabulary.USER if message["role"] == "user" else vocabulary.ASSISTANT
            prompt += [role, *vocabulary.encode(message["content"]), vocabulary.END]
        prompt.append(vocabulary.ASSISTANT)
        found.append(Ask(prompt, [*vocabulary.encode(made["answer"]), vocabulary.END]))
    return found


def margins(model: Model, asked: Sequence[Ask], server: Server) -> tuple[int, float, float]:
    """Wrong answers, the smallest lead of a right token, and the largest part of a limit read."""
    wrong, least, part = 0, np.inf, 0.0
    for ask in asked:
        trace = model.told(ask, server)
        spoken = slice(len(ask.prompt) - 1, None)
        wrong += trace.greedy()[spoken] != ask.answer
        rows = np.arange(len(ask.answer))
        logits = trace.logits[spoken].copy()
        right = logits[rows, ask.answer].copy()
        logits[rows, ask.answer] = -np.inf
        least = min(least, float((right - logits.max(axis=1)).min()))
        read = np.abs(trace.residuals[-2][spoken][:, at.READ] - np.array(WELL)) / np.array(RISE)
        part = max(part, float(read.max()))
    return wrong, least, part


def main(count: int) -> int:
    """Measure and print; 1 when something is not as documented."""
    asked = asks(count)
    lengths = [len(ask.prompt) for ask in asked]
    print(f"{count} asks of {min(lengths)} to {max(lengths)} tokens\n")
    failed = False
    print("| model | sensitivity | dtype | wrong | least lead | part of a limit |")
    print("| --- | --- | --- | --- | --- | --- |")
    for form, name in FORMS.items():
        for sensitivity in get_args(Sensitivity):
            variant = replace(form, sensitivity=sensitivity)
            for dtype in get_args(Dtype):
                model = Model(variant, dtype)
                found = [margins(model, asked, server) for server in KINDS]
                wrong, part = sum(f[0] for f in found), max(f[2] for f in found)
                lead = min(f[1] for f in found)
                shown = f"{part:.2f}" if sensitivity == "high" else "–"
                print(
                    f"| {name} | {sensitivity} | {dtype} | {wrong} of {len(KINDS) * count} |"
                    f" {lead:.1f} | {shown} |",
                    flush=True,
                )
                failed |= wrong > 0
    print("\n| context | dtype | key at a distance | near hop | far hop |")
    print("| --- | --- | --- | --- | --- |")
    for length in LENGTHS:
        for dtype in ("bfloat16", "float32"):
            distance = distance_margin(length, wording.QUESTION_DISTANCE, dtype)
            near = kernel_margin(length, NEAR_KERNEL, NEAR_REACH, NEAR_RESOLUTION, dtype)
            far = kernel_margin(length, FAR_KERNEL, FAR_REACH, FAR_RESOLUTION, dtype)
            print(f"| {length:,} | {dtype} | {distance:.1f} | {near:.1f} | {far:.1f} |")
    print("\n| fault | normal: wrong | high: wrong | high: an answer |")
    print("| --- | --- | --- | --- |")
    normal, high = (
        Model(Variant(sensitivity=sensitivity), "bfloat16") for sensitivity in ("normal", "high")
    )
    for name, server in FAULTS.items():
        seen = [sum(not model.exact(ask, server) for ask in asked) for model in (normal, high)]
        said = high.said(asked[0], server, tokens=5)
        print(f"| {name} | {seen[0]} of {count} | {seen[1]} of {count} | `{said!a}` |", flush=True)
        failed |= seen[1] == 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else ASKS))
