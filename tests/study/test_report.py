"""The report: its first page, its tables and what it says of each result, on small studies."""

import pytest
from support.studies import ABOUT, SYMMETRIC, TINY, made, rows

import study
from study.page import about_segment, distinct_rows, front_page, report_text
from study.protocol import REVISION, Variant
from study.published import in_unit, listed, number
from study.results import Results
from study.tables import paper_table


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The tiny study."""
    return study.run(TINY, tmp_path_factory.mktemp("study"), n_jobs=1)


@pytest.fixture(scope="module")
def text(tiny):
    return report_text(tiny, {})


def test_the_report_says_which_rows_it_used(tiny, text):
    assert f"{len(tiny.results.frame)} rows of results with ocrep" in text
    assert f"revision {REVISION} of the experiments" in text
    assert "Protocol `tiny`" in text
    assert all(f"### Table {n}: " in text for n in range(2, 17))


def test_tables_are_rectangular(text):
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(blocks) > 20
    for lines in blocks:
        assert len({line.replace(r"\|", "").count("|") for line in lines}) == 1


def test_the_order_of_rows_changes_no_byte(tiny, text):
    shuffled = Results.of(tiny.results.frame.sample(frac=1.0, random_state=0))
    assert report_text(study.Study(shuffled, tiny.about), {}) == text


def test_a_study_without_results_makes_a_report():
    text = report_text(made(variant=SYMMETRIC), {})
    assert "Too few splits were run" in text
    assert "Nothing that was run contradicts the paper." in text
    assert "the first reading stands" in text
    assert "Segment with" not in text


def first_page(*parts, variant=SYMMETRIC):
    return "\n".join(front_page(made(*parts, variant=variant), [], "figures/overview.png"))


def test_the_first_page_counts_what_is_inside():
    text = first_page(
        rows("iris", 50, "ocrep", 1.2, shift=0.01),  # 1.51 is inside
        rows("iris", 50, "cv", 9.0, shift=0.01),  # 2.13 is not
        rows("iris", 50, "gcv", 2.0, shift=0.01),  # 2.47 is
    )
    assert "Of the 3 errors" in text
    assert "**2 lie inside, between the 1st and the 99th percentile of ours**" in text
    assert "1 error outside, unexplained: CV on Iris M=50 (table 2)." in text
    assert "figures/overview.png" in text


@pytest.mark.parametrize(("center", "kind"), [(90.0, "easy"), (0.01, "hard")])
def test_the_first_page_names_an_unusual_split(center, kind):
    parts = [rows("wine", m, method, center) for m in (50, 100) for method in ("ocrep", "cv")]
    assert f"One {kind} split explains them together." in first_page(*parts)


def test_tables_have_units_notes_and_sizes():
    known = made(
        rows("delta_ailerons", 50, "ocrep", 1.7e-4, noise=1e-6),
        rows("abalone", 42, "trop_elm", 2.2, kind="literature"),
        rows("abalone", 200, "ocrep", 2.1, kind="chosen", shift=1e-4),
        variant=SYMMETRIC,
    )
    four = "\n".join(paper_table(known, 4))
    assert "| Delta Ailerons | 50 | OCReP | 1.64 ± 0.0051 | 1.7 ± 0.012 |" in four
    assert "std: suspected misprint" in four
    assert "not run" in four
    sixteen = "\n".join(paper_table(known, 16))
    assert "TROP-ELM (quoted)" in sixteen
    assert "| Abalone | 178 | 200 |" in sixteen


def test_the_paragraph_on_segment_follows_from_the_results_and_the_data():
    quiet = {"n_draws": 1, "shift": 0.0}
    regular = made(rows("segment", 1500, "unregularized", 9.0, condition=1e10, n_splits=2, **quiet), variant=SYMMETRIC)
    (text,) = about_segment(regular)
    assert distinct_rows(0) == (1617, 1513)
    assert "Of the 1617 training rows of the reference split 1513 differ" in text
    assert "σ_p/σ₁ is 1e-10 there, 300 times the rank tolerance" in text
    assert "not numerically singular on any of the 2 splits" in text
    singular = made(
        rows("segment", 1500, "unregularized", 9.0, condition=1e10, n_splits=3, **quiet),
        rows("segment", 1500, "ocrep", 7.5, n_splits=3, **quiet),
        rows("segment", 1500, "ocrep_full", 12.1, n_splits=1, first=1, **quiet),
        variant=SYMMETRIC,
    )
    (text,) = about_segment(singular)
    assert "singular on 1 of 3 splits" in text
    assert "misclassifies 7.5 % with p the numerical rank and 12.1 % with p = min(N, M)" in text
    assert about_segment(made(variant=SYMMETRIC)) == []


def test_every_reading_is_shown_as_sensitivity():
    parts = [
        rows("housing", 50, "ocrep", 5.0, scale=s, biases=b) for s in ("raw", "unit") for b in ("symmetric", "unit")
    ]
    text = report_text(made(*parts, variant=Variant("unit", "unit")), {})
    lines = [line for line in text.splitlines() if line.startswith(("| biases", "| **the reproduction**"))]
    assert len(lines) == 8
    (own,) = (line for line in lines if "the reproduction" in line)
    assert "U(0, 1), regression targets scaled to [0, 1]" in own


def test_missing_data_sets_are_named():
    about = ABOUT | {"missing": {"delta_ailerons": "fetch it from its archive."}}
    assert "- `delta_ailerons`: fetch it from its archive." in report_text(made(about=about, variant=SYMMETRIC), {})


def test_numbers_and_lists_are_written_as_in_the_paper():
    assert number(0.00015812) == "0.0001581"
    assert number(31.2149) == "31.21"
    assert number(float("nan")) == number(None) == "–"
    assert in_unit("delta_ailerons", 1.64e-4) == "1.64"
    assert in_unit("housing", 1.64) == "1.64"
    assert [listed(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
