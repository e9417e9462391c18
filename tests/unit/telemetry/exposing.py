"""What vLLM tells in /metrics, for one engine or several."""

from __future__ import annotations

LINES = """\
# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{{engine="{engine}",model_name="m"}} {prompt}
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{{engine="{engine}",model_name="m"}} {output}
vllm:generation_tokens_created{{engine="{engine}",model_name="m"}} 1.76e+09
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{{engine="{engine}",model_name="m"}} {prompt}
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{{engine="{engine}",model_name="m"}} {hits}
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{{engine="{engine}",model_name="m"}} {preemptions}
# TYPE vllm:request_success_total counter
vllm:request_success_total{{engine="{engine}",finished_reason="stop",model_name="m"}} {stop}
vllm:request_success_total{{engine="{engine}",finished_reason="length",model_name="m"}} 0.0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="{engine}",model_name="m"}} {running}
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{engine="{engine}",model_name="m"}} {waiting}
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{{engine="{engine}",model_name="m"}} {usage}
"""


def exposed(engine: int = 0, **values: float) -> str:
    """One engine's lines; what is not given is 0."""
    names = ("prompt", "output", "hits", "preemptions", "stop", "running", "waiting", "usage")
    return LINES.format(engine=engine, **{name: float(values.get(name, 0)) for name in names})
