"""The documentation's links inside the repository, and the examples that it lists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.lint.conftest import EXAMPLES, ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "tests/README.md"])

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_inside_the_repository_leads_somewhere(page: Path) -> None:
    links = LINK.findall(FENCED.sub("", page.read_text()))
    assert [link for link in links if "://" not in link and not leads_somewhere(page, link)] == []


def leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not anchor or anchor in anchors(target))


def anchors(page: Path) -> set[str]:
    """What GitHub calls a page's headings."""
    headings = HEADING.findall(FENCED.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Some `words`, here\n")

    assert leads_somewhere(page, "#some-words-here")
    assert not leads_somewhere(page, "#some-words")
    assert not leads_somewhere(page, "other.md")


def test_every_example_is_in_the_documentation() -> None:
    text = (ROOT / "docs/action.md").read_text()
    assert {Path(link).name for link in LINK.findall(text) if link.startswith("examples/")} == {
        path.name for path in EXAMPLES
    }


def test_the_readme_shows_the_quickstart() -> None:
    readme = (ROOT / "README.md").read_text()
    shown = re.search(r"```yaml\n( +- uses: org/mrcr-action.*?)```", readme, re.DOTALL)

    assert shown, "no step of the quickstart in README.md"
    assert shown[1] in (ROOT / "docs/examples/quickstart.yml").read_text()
