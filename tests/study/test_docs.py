"""The committed results: the report and every number quoted from it follow from them."""

import json
import re
from pathlib import Path

import pytest

from study import FULL, load_study
from study.judgement import of_methods
from study.page import report_text
from study.protocol import Variant

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "study" / "results.parquet"
FIGURES = ("overview", "gain", "condition", "error_against_gamma", "error_against_size", "stability")


@pytest.fixture(scope="module")
def study():
    return load_study(RESULTS)


@pytest.fixture(scope="module")
def text(study):
    return report_text(study, {name: f"figures/{name}.png" for name in FIGURES})


def joined(text):
    """The text with all white space as single blanks."""
    return " ".join(text.split())


def quotations(page):
    """The block quotations of a page, without their marks."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    marked = "\n".join(re.sub(r"^ *> ?", "> ", line) if line.lstrip().startswith(">") else "" for line in lines)
    return [joined(block.replace("> ", "")) for block in re.split(r"\n\n+", marked) if block.strip()]


def test_the_committed_report_is_that_of_the_committed_results(text):
    assert (ROOT / "docs" / "study" / "report.md").read_text(encoding="utf-8") == text
    for name in FIGURES:
        assert (ROOT / "docs" / "study" / "figures" / f"{name}.png").stat().st_size > 10_000
    assert RESULTS.stat().st_size < 20_000_000


@pytest.mark.parametrize(("page", "n_quotations"), [("README.md", 1), ("docs/study/README.md", 4)])
def test_what_pages_quote_stands_in_the_report(page, n_quotations, text):
    found = quotations(page)
    assert len(found) == n_quotations
    for quotation in found:
        assert quotation in joined(text)


def test_the_results_are_those_of_the_full_protocol(study):
    assert study.about["protocol"] == json.loads(json.dumps(FULL.as_dict()))
    assert study.about["missing"] == {}
    assert study.variant == Variant("unit", "unit", "gcv_lambda")


def test_nearly_all_errors_of_ocrep_and_cross_validation_lie_inside(study):
    inside = [one.inside for one in of_methods(study.judged, "ocrep", "cv")]
    assert len(inside) == 52
    assert sum(inside) >= 0.95 * len(inside)


def test_which_of_the_sixteen_condition_ratios_agree(study):
    far = {(one.cell.data, one.cell.method) for one in study.conditions if not one.within}
    assert len(study.conditions) == 16
    assert {method for _, method in far} == {"ocrep/cv"}
    assert {data for data, _ in far} == {"delta_ailerons", "housing", "machine_cpu", "iris", "diabetes", "segment"}
