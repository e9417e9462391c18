"""``report.html``: a run for a person who sees red, in one file. Pure but for its own assets.

`page` puts it together in a `document`: `verdict` is its head, `heat`, `faults`, `curves` (drawn by
`plot`), `sides`, `details` and `cost` are its parts, `viewer` is what its script fills with
`samples`. `overview` is the page above those of several configurations. `markup` makes elements,
`groups` counts records.
"""

from mrcr_action.report.html.overview import render_overview
from mrcr_action.report.html.page import render_html
from mrcr_action.report.html.samples import texts_of

__all__ = ["render_html", "render_overview", "texts_of"]
