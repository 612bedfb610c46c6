"""The documentation site: every public name has a page, every internal link a target, every block of Python runs."""

import re
from pathlib import Path

import pytest
from support.pages import ROOT, run_page

import ocrep

DOCS = ROOT / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))
RUNNABLE = ["cross-validation.md", "network.md", "probabilities.md", "start.md"]
ELSEWHERE = {"models.md", "displays.md", "out-of-core.md", "scaling.md", "ridge-head.md", "command-line.md", "parts.md"}
"""Pages whose code other tests run, with the files and clusters that it needs."""


def test_every_public_name_is_in_the_reference():
    listed = set(re.findall(r"^   (\w+)$", (DOCS / "api.md").read_text(encoding="utf-8"), flags=re.MULTILINE))
    displays = {name for name in ocrep.__all__ if name.endswith("Display")}  # on the page of ocrep.displays
    assert listed == set(ocrep.__all__) - {"__version__"} - displays


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_have_targets(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text):
        assert (DOCS / target).exists(), f"{page} links to {target}"


@pytest.mark.parametrize("page", RUNNABLE)
def test_the_code_of_a_page_runs_and_prints_what_it_says(page, capsys):
    assert run_page(f"docs/{page}", capsys) >= 1


def test_no_page_with_code_is_forgotten():
    with_code = {page for page in PAGES if re.search(r"^ *```python\n", (DOCS / page).read_text("utf-8"), re.MULTILINE)}
    assert with_code <= {*RUNNABLE, *ELSEWHERE}


def test_all_examples_are_numbered_and_titled():
    for path in sorted(Path(ROOT, "examples", "gallery").glob("*.py")):
        assert re.match(r"plot_\d\d_\w+\.py", path.name)
        title, line = path.read_text(encoding="utf-8").splitlines()[1:3]
        assert line == "=" * len(title)
