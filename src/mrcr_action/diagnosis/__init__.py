"""What kind of fault a response shows, and where in a run the faults lie. Pure; no I/O.

A match ratio says how much is wrong, not what. `evidence` is what is known of one response, `forms`
finds its form, by `edits`, `repeats` and `attribution`. `breakdown` counts the forms over a run,
`clues` says what they look like, and `lines` puts all of it into words.
"""
