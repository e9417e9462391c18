"""``report.html``: a run for a person who sees red, in one file. Pure but for its own assets.

`page` puts it together: `verdict` is its head, `heat`, `faults`, `curves` (drawn by `plot`),
`sides` and `details` are its parts, and `samples` is what its script lists. `markup` makes
elements, `groups` counts records.
"""

from mrcr_action.report.html.page import render_html
from mrcr_action.report.html.samples import texts_of

__all__ = ["render_html", "texts_of"]
