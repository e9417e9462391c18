"""Two results of one plan, before and after a change: what changed, and whether it is chance.

Pure: results in, a `mrcr_action.comparison.document.Comparison` out.
"""
