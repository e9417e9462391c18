import pytest
from tests.unit.telemetry.exposing import exposed

from mrcr_action.telemetry.document import Peaks
from mrcr_action.telemetry.gauges import Load, peaks_of, read_load


def test_the_load_is_that_of_all_engines_and_the_usage_that_of_the_fullest() -> None:
    text = exposed(0, running=3, waiting=1, usage=0.2) + exposed(1, running=2, usage=0.7)
    assert read_load(text) == Load(kv_cache_usage=0.7, running=5, waiting=1)


def test_the_old_name_of_the_usage_is_read() -> None:
    old = 'vllm:gpu_cache_usage_perc{model_name="m"} 0.25\n'
    assert read_load(old) == Load(kv_cache_usage=0.25, running=None, waiting=None)
    assert read_load(exposed(usage=0.5) + old) == Load(0.5, 0, 0)


def test_peaks_are_the_most_of_every_figure_by_itself() -> None:
    loads = [Load(0.1, 8, 0), Load(0.9, 2, None), Load(None, 4, 5)]
    assert peaks_of(loads) == Peaks(samples=3, kv_cache_usage=0.9, running=8, waiting=5)


def test_without_a_sample_there_are_no_peaks() -> None:
    assert peaks_of([]) is None
    assert peaks_of([Load(None, None, None)]) == Peaks(samples=1)


@pytest.mark.parametrize("text", ["", "<html>", "vllm:num_requests_running{", "a 1\n"])
def test_anything_else_is_unknown(text: str) -> None:
    assert read_load(text) is None


@pytest.mark.parametrize(
    ("value", "usage"), [("NaN", None), ("-0.1", None), ("1.0", 1.0), ("7", None)]
)
def test_a_usage_that_is_no_share_is_unknown(value: str, usage: float | None) -> None:
    text = f"vllm:kv_cache_usage_perc {value}\nvllm:num_requests_running {value}\n"
    found = read_load(text)
    assert (found.kv_cache_usage if found else None) == usage
