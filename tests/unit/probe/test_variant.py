"""The forms of the model, and what each is called."""

from mrcr_action.probe.variant import DEFAULT, Variant, forms


def test_every_form_that_there_is_has_a_name_and_no_other_has() -> None:
    assert forms("probe") == {
        "probe": DEFAULT,
        "probe-high": Variant(sensitivity="high"),
        "probe-64": Variant(head_size=64),
        "probe-64-high": Variant(head_size=64, sensitivity="high"),
        "probe-qwen3": Variant(architecture="qwen3"),
        "probe-qwen3-high": Variant(architecture="qwen3", sensitivity="high"),
    }
