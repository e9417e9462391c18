"""What runs saw of their chat template."""

from mrcr_action.template import Preflight

SEEN = Preflight(
    two_user_turns=True,
    merged=False,
    thinks=False,
    overhead_tokens=20,
    tokens_per_message=5.0,
    fingerprint="a" * 64,
    notes=(),
)
