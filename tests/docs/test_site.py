"""The documentation site: every public name has a page, every internal link a target."""

import re
from pathlib import Path

import pytest
from support.pages import ROOT, load_tool

import ocrep

DOCS = ROOT / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))


def test_every_public_name_is_in_the_reference():
    listed = set(re.findall(r"^   (\w+)$", (DOCS / "api.md").read_text(encoding="utf-8"), flags=re.MULTILINE))
    displays = {name for name in ocrep.__all__ if name.endswith("Display")}  # on the page of ocrep.displays
    assert listed == set(ocrep.__all__) - {"__version__"} - displays


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_have_targets(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text):
        assert (DOCS / target).exists(), f"{page} links to {target}"


def test_the_charts_are_up_to_date():
    tool = load_tool("draw_chart")
    for name, drawn in {"which_estimator": tool.estimators(), "which_rule": tool.rules()}.items():
        assert (DOCS / "images" / f"{name}.svg").read_text(encoding="utf-8") == drawn


def test_the_figures_of_the_pages_are_those_of_the_results():
    tool = load_tool("figures")
    for page in tool.PAGES:
        text = page.read_text(encoding="utf-8")
        assert tool.filled(text) == text, f"run python tools/figures.py: {page.name} has other figures"


def test_all_examples_are_numbered_and_titled():
    for path in sorted(Path(ROOT, "examples", "gallery").glob("*.py")):
        assert re.match(r"plot_\d\d_\w+\.py", path.name)
        title, line = path.read_text(encoding="utf-8").splitlines()[1:3]
        assert line == "=" * len(title)
