"""What /metrics tells, under vLLM's names, for the requests of one stand-in."""

from __future__ import annotations

from dataclasses import dataclass, field

FINISHED_REASONS = ("stop", "length", "abort", "error")


@dataclass(slots=True)
class Metrics:
    """The counts of one process, changed as requests come and go."""

    running: int = 0
    waiting: int = 0
    """Only the fault ``stall`` makes a request wait: the stand-in has no queue."""
    prompt_tokens: int = 0
    generation_tokens: int = 0
    finished: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FINISHED_REASONS, 0))
    """How many requests ended for each reason; a client that goes away makes it ``abort``."""

    def render(self, model: str) -> str:
        """The Prometheus text format, version 0.0.4."""
        labels = f'engine="0",model_name="{_escaped(model)}"'
        lines: list[str] = []
        for name, kind, value, help_text in (
            ("num_requests_running", "gauge", self.running, "Requests being answered."),
            ("num_requests_waiting", "gauge", self.waiting, "Requests accepted, not yet begun."),
            ("prompt_tokens_total", "counter", self.prompt_tokens, "Prompt tokens read."),
            ("generation_tokens_total", "counter", self.generation_tokens, "Tokens generated."),
        ):
            lines += [
                f"# HELP vllm:{name} {help_text}",
                f"# TYPE vllm:{name} {kind}",
                f"vllm:{name}{{{labels}}} {float(value)}",
            ]
        lines += [
            "# HELP vllm:request_success_total Requests that were answered.",
            "# TYPE vllm:request_success_total counter",
        ]
        lines += [
            f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {float(count)}'
            for reason, count in self.finished.items()
        ]
        return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
