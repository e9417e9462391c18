"""A page that shows ``summary.md`` about as GitHub does: its colours, tables, alerts and folds.

What GitHub does to the Markdown itself is not here (it takes styles, scripts and forms away); none
of that is in a summary, which other tests see to. Diagrams are drawn where Mermaid is at hand, and
are code elsewhere.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

STYLE = """
:root { color-scheme: light dark; --text: light-dark(#1f2328, #f0f6fc);
  --back: light-dark(#fff, #0d1117); --line: light-dark(#d1d9e0, #3d444d);
  --soft: light-dark(#f6f8fa, #151b23); --note: light-dark(#0969da, #4493f8); }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 1012px; padding: 24px; color: var(--text);
  background: var(--back); font: 16px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial,
  sans-serif; overflow-wrap: break-word }
h1, h2 { border-bottom: 1px solid var(--line); padding-bottom: .3em; margin: 0 0 16px;
  line-height: 1.25 }
h3 { margin: 24px 0 16px; line-height: 1.25 }
p, ul, pre, table, details, blockquote { margin: 0 0 16px }
table { display: block; width: max-content; max-width: 100%; overflow: auto;
  border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: 6px 13px; border: 1px solid var(--line) }
tr:nth-child(2n) { background: var(--soft) }
code { padding: .2em .4em; font: 85% ui-monospace, "Liberation Mono", monospace;
  background: var(--soft); border-radius: 6px; white-space: break-spaces }
pre { padding: 16px; overflow: auto; background: var(--soft); border-radius: 6px }
pre code { padding: 0; white-space: pre }
blockquote { padding: 0 1em; border-left: .25em solid var(--note) }
blockquote p { margin: 0 }
blockquote p:first-child::first-line { color: var(--text) }
.alert { color: var(--note); font-weight: 500 }
"""

_SIGNS = {
    "❌": '<span style="color: #d1242f">✖</span>',
    "✅": '<span style="color: #1a7f37">✔</span>',
    "⚠️": '<span style="color: #9a6700">⚠</span>',
    "📏": "·",
    "⏹️": "■",
}
"""What stands for emoji, which take a font of 10 MB."""

_ALERT = re.compile(r"<blockquote>\s*<p>\[!NOTE\]\s*")


def page_of(summary: str, mermaid: str = "") -> str:
    """The page as one HTML text.

    Args:
        summary: Markdown.
        mermaid: the library's script; without it, diagrams are code.
    """
    markdown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    body = markdown.render(summary)
    body = _ALERT.sub('<blockquote><p class="alert">Note</p><p>', body)
    for emoji, sign in _SIGNS.items():
        body = body.replace(emoji, sign)
    script = ""
    if mermaid:
        body = re.sub(
            r'<pre><code class="language-mermaid">(.*?)</code></pre>',
            r'<pre class="mermaid">\1</pre>',
            body,
            flags=re.DOTALL,
        )
        script = f"<script>{mermaid}</script><script>{START}</script>"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>summary</title>'
        f"<style>{STYLE}</style><body>{body}{script}</body></html>"
    )


START = """
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
mermaid.initialize({ startOnLoad: true, theme: dark ? "dark" : "default" });
"""
