"""What the benchmark computes beside errors, and what it leaves out with a word."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import tables
import tabular
import tabular_page
from support.pages import text_of
from tabular_page import cliques


def test_the_page_is_that_of_the_results():
    assert text_of("docs/benchmark.md") == tabular_page.page(tabular_page.tasks_of(tabular.RESULTS), tabular.RESULTS)


def test_bars_join_the_longest_runs_of_ranks_within_the_critical_difference():
    assert cliques([1.0, 2.0, 2.5, 4.0, 7.0], 1.5) == [(0, 2), (2, 3)]
    assert cliques([1.0, 3.0, 5.0], 1.0) == []
    assert cliques([1.0, 3.0, 5.0], 9.0) == [(0, 2)]


def test_the_calibration_error_is_the_gap_between_confidence_and_accuracy():
    shares = np.tile([0.8, 0.2], (10, 1))
    assert tables.calibration_error(shares, np.arange(10) < 8) == pytest.approx(0.0, abs=1e-12)
    assert tables.calibration_error(shares, np.arange(10) < 5) == pytest.approx(0.3)
    one_sided = np.array([[1.0, 0.0], [0.5, 0.5]])  # gaps of different bins do not cancel
    assert tables.calibration_error(one_sided, np.array([False, True])) == pytest.approx(0.75)


def test_dates_become_parts_and_other_columns_stay():
    frame = pd.DataFrame({"a": [1, 2], "when": ["2024-02-29 13:00", None]})
    made = tables.with_parts_of_dates(frame, ("when",))
    assert made["a"].tolist() == [1, 2]
    parts = [made.loc[0, f"when {part}"] for part in ("year", "month", "day", "day_of_week", "hour")]
    assert parts == [2024, 2, 29, 3, 13]
    assert made.loc[1, "when hour"] != made.loc[1, "when hour"]  # a gap stays one


def test_a_missing_library_and_a_missing_table_are_left_out_with_a_word(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tables, "RESULTS", replace(tables.RESULTS, path=tmp_path / "tables.csv"))
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    tables.run(tmp_path, ["bike_sharing"], ["skrub", "CatBoost"], again=False)
    told = capsys.readouterr().out
    assert "skrub is left out" in told
    assert "CatBoost is left out" in told
    assert "bike_sharing is left out" in told
    assert tables.RESULTS.read() == []
