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


@pytest.mark.parametrize(
    ("row", "method"),
    [
        ("`PinvRegressorCV()`, `PinvClassifierCV()`", "ocrep CV"),
        ('the same, `candidates="quick"`', "ocrep CV quick"),
        *[(name, name) for name in ("CatBoost", "RealMLP", "HistGradientBoosting", "LightGBM", "RandomForest")],
        *[(name, name) for name in ("xRFM", "XGBoost")],
    ],
)
def test_the_table_of_the_readme_is_that_of_the_benchmark(row, method):
    readme = _rows((ROOT / "README.md").read_text(encoding="utf-8"))[row]
    numbers = [float(cell.strip("*")) for cell in readme]
    pages = (DOCS / "benchmark.md").read_text(encoding="utf-8").split("## Classification")
    shown = ([*numbers[:2], None, numbers[2]], [numbers[3], numbers[5], numbers[4], numbers[6]])
    for page, (error, rank, log_loss, time) in zip(pages, shown, strict=True):
        cells = [float(cell) for cell in _rows(page)[method]]
        assert error == cells[0]
        assert log_loss is None or log_loss == cells[2]
        assert time == pytest.approx(cells[-2], rel=0.5, abs=0.051)
        ours = method if method.startswith("ocrep") else "ocrep CV"
        ranked = page.partition("only one of our networks takes part:")[2]
        names = re.search(r"^\|  \|(.+)\|$", ranked, flags=re.MULTILINE)[1].split("|")
        place = [name.strip() for name in names].index(ours)
        ranks = _rows(ranked)["itself" if method == ours else method]
        assert rank == pytest.approx(float(ranks[place]), abs=0.051)


def _rows(text):
    """The cells of the first row of each name in the tables of a text."""
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in reversed(lines)}


def test_all_examples_are_numbered_and_titled():
    for path in sorted(Path(ROOT, "examples", "gallery").glob("*.py")):
        assert re.match(r"plot_\d\d_\w+\.py", path.name)
        title, line = path.read_text(encoding="utf-8").splitlines()[1:3]
        assert line == "=" * len(title)
