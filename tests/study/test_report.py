"""The report: its first page, its tables, its figures and what it refuses, on small studies."""

import random
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.studies import ABOUT, SYMMETRIC, made, rows
from support.tiny_study import TINY

from ocrep import study
from ocrep.study import segment, store
from ocrep.study.front import front_page
from ocrep.study.page import report_text
from ocrep.study.protocol import REVISION, Variant
from ocrep.study.results import Results, Row
from ocrep.study.tables import TITLES, paper_table
from ocrep.study.wording import in_unit, listed, number, plural
from ocrep.study.yardsticks import Study


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The tiny study with its report."""
    place = tmp_path_factory.mktemp("study")
    study.run(TINY, place, n_jobs=1)
    study.report(place)
    return place


@pytest.mark.slow
def test_the_published_file_gives_the_same_report(folder, tmp_path):
    file = study.publish(folder, tmp_path / "results.parquet")
    again = study.report(file, tmp_path / "again")
    assert again.read_bytes() == (folder / "report.md").read_bytes()
    assert {p.name for p in (tmp_path / "again" / "figures").iterdir()} == {
        p.name for p in (folder / "figures").iterdir()
    }
    for figure in (folder / "figures").glob("*.svg"):
        assert figure.read_bytes() == (tmp_path / "again" / "figures" / figure.name).read_bytes()
    assert study.report(file).parent == tmp_path  # next to the file
    known = study.load_study(file)
    assert known.results.rows == study.load_study(folder).results.rows
    assert "machine" not in known.about


def test_results_of_another_revision_are_refused_by_name(folder, tmp_path, monkeypatch):
    file = study.publish(folder, tmp_path / "results.parquet")
    monkeypatch.setattr(store, "REVISION", REVISION + 1)
    for source in (folder, file):
        with pytest.raises(
            ValueError, match=rf"{source.name} holds results of revision {REVISION} .* this is revision"
        ):
            study.report(source, tmp_path / "out")


def test_a_file_without_results_is_refused(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(ValueError, match="holds no results of a study"):
        study.report(tmp_path / "other.parquet")
    with pytest.raises(FileNotFoundError, match="holds no study"):
        study.report(tmp_path)


def test_two_results_of_one_job_are_refused(folder, tmp_path):
    other = tmp_path / "copy"
    shutil.copytree(folder, other)
    key = next(iter(store.read_lines(other)))
    (other / "results.jsonl").write_text(f'{{"key":"{key}","seconds":1,"rows":[[1,"ocrep","raw",1,1,1,1]]}}\n')
    with pytest.raises(ValueError, match=f"two different results of {key}"):
        study.report(other)


def test_the_report_says_which_rows_it_used(folder):
    text = (folder / "report.md").read_text(encoding="utf-8")
    n_rows = sum(map(len, study.load_study(folder).results.rows.values()))
    assert f"{n_rows} rows of results with ocrep" in text
    assert f"revision {REVISION} of the experiments" in text
    assert "Protocol `tiny`" in text
    assert all(f"### Table {n}: " in text for n in range(2, 17))
    assert text.count("![") == 6


def test_tables_are_rectangular(folder):
    text = (folder / "report.md").read_text(encoding="utf-8")
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(blocks) > 20
    for lines in blocks:
        assert len({line.replace(r"\|", "").count("|") for line in lines}) == 1


def test_the_order_of_rows_changes_no_byte(folder):
    known = study.load_study(folder)
    shuffled = Results({case: random.Random(0).sample(found, len(found)) for case, found in known.results.rows.items()})
    shuffled.rows = dict(random.Random(1).sample(list(shuffled.rows.items()), len(shuffled.rows)))
    assert report_text(Study(shuffled, known.about), {}) == report_text(known, {})


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
    assert "OCReP and cross-validation at fixed sizes: " in text
    assert "1 error outside, unexplained: CV on Iris M=50 (table 2)." in text
    assert "figures/overview.png" in text


def test_the_first_page_names_an_easy_split():
    parts = [rows("wine", m, method, 90.0) for m in (50, 100) for method in ("ocrep", "cv")]
    assert "One easy split explains them together." in first_page(*parts)
    parts = [rows("wine", m, method, 0.01) for m in (50, 100) for method in ("ocrep", "cv")]
    assert "One hard split explains them together." in first_page(*parts)


def test_tables_tell_units_notes_and_sizes():
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
    assert list(TITLES) == list(range(2, 17))


def test_segment_is_told_from_the_results_and_the_data():
    quiet = {"n_draws": 1, "shift": 0.0}
    regular = made(rows("segment", 1500, "unregularized", 9.0, condition=1e10, n_splits=2, **quiet), variant=SYMMETRIC)
    (text,) = segment.segment_told(regular)
    n_rows, n_distinct = segment.distinct_rows(0)
    assert (n_rows, n_distinct) == (1617, 1513)
    assert f"Of the {n_rows} training rows of the reference split {n_distinct} differ" in text
    assert "σ_p/σ₁ is 1e-10 there, 300 times the rank tolerance" in text
    assert "not numerically singular on any of the 2 splits" in text
    singular = made(
        rows("segment", 1500, "unregularized", 9.0, condition=1e10, n_splits=3, **quiet),
        rows("segment", 1500, "ocrep", 7.5, n_splits=3, **quiet),
        rows("segment", 1500, "ocrep_full", 12.1, n_splits=1, first=1, **quiet),
        variant=SYMMETRIC,
    )
    (text,) = segment.segment_told(singular)
    assert "singular on 1 of 3 splits" in text
    assert "misclassifies 7.5 % with p the numerical rank and 12.1 % with p = min(N, M)" in text
    assert segment.segment_told(made(variant=SYMMETRIC)) == []


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


def test_words():
    assert number(0.00015812) == "0.0001581"
    assert number(31.2149) == "31.21"
    assert number(float("nan")) == number(None) == "–"
    assert in_unit("delta_ailerons", 1.64e-4) == "1.64"
    assert in_unit("housing", 1.64) == "1.64"
    assert [listed(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
    assert (plural(1, "tie"), plural(0, "tie")) == ("1 tie", "0 ties")


def test_rows_have_the_digits_of_float32():
    row = Row(5, "ocrep", "raw", error=1 / 3, gamma=None)
    assert row.packed() == [5, "ocrep", "raw", 0.3333333, None, None, None]
    assert row.in_single_precision().error == pytest.approx(1 / 3, rel=1e-7)
