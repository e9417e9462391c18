"""What a run is asked to do: one frozen `RunConfig`, resolved from several layers."""

from mrcr_action.config.keys import DEFAULT_EXTRA_BODY, RunConfig

__all__ = ["DEFAULT_EXTRA_BODY", "RunConfig"]
