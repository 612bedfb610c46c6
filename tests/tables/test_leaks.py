"""A column that alone tells the target is named, whatever its kind; strong but honest columns are not."""

import numpy as np
import pandas as pd
import pytest

from ocrep import fit_table
from ocrep.tables.leaks import has_order, is_code, is_copy

N = 400
RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((2, N))
NUMBERS = np.exp(A) + B + 0.3 * RNG.standard_normal(N)
LABELS = np.array(["high", "low", "none"])[np.digitize(A + RNG.standard_normal(N), [-1.0, 1.0])]
LEVELS = np.digitize(A, np.linspace(-1.0, 1.0, 9))  # ten of them
ROWS = np.arange(N)
GAPS = np.arange(N) % 3 == 0
DAY = pd.Timestamp("2024-01-01")


def named(column, y, **more):
    """The columns that are named, of two inputs and one more."""
    frame = pd.DataFrame({"a": A, "column": column, "y": y, **more})
    model = fit_table(frame[:N], "y", n_hidden=5)
    found = [advice for advice in model.assessment_["advice"] if advice["code"] == "leak"]
    return list(found[0]["change"]["ignore"]) if found else []


@pytest.mark.parametrize(
    ("column", "y"),
    [
        (NUMBERS, NUMBERS),
        ((7.0 - 1.8 * NUMBERS).round(2), NUMBERS),
        (np.where(GAPS, np.nan, NUMBERS), NUMBERS),
        (np.log(NUMBERS + 9.0).round(5), NUMBERS),
        (np.where(GAPS, np.nan, -(NUMBERS**3)), NUMBERS),
        (NUMBERS.round(1).argsort(kind="stable").argsort(), NUMBERS.round(1)),
        (np.exp(LEVELS), LEVELS + 0.5),
        (np.array([3, 7, 20])[LEVELS % 3], np.array([1.5, 9.5, 2.5])[LEVELS % 3]),
        (DAY - pd.to_timedelta((100 * NUMBERS).round(), "D"), NUMBERS),
        (np.array(["x", "y", "z"])[A.round().astype(int) % 3], np.array([1.5, 2.5, 9.5])[A.round().astype(int) % 3]),
        (np.char.add("is ", LABELS), LABELS),
        (np.select([LABELS == "high", LABELS == "low"], [10, -3], 4), LABELS),
        (LABELS == "low", LABELS == "low"),
        (np.where(LABELS == "low", np.where(B > 0, "moved", "ill"), None), LABELS == "low"),
        (np.where(GAPS, None, np.char.add("is ", LABELS)), LABELS),
    ],
    ids=[
        "copy",
        "linear copy",
        "gaps",
        "logarithm",
        "cube with gaps",
        "rank",
        "few levels",
        "few codes",
        "date",
        "texts",
        "words",
        "codes",
        "boolean",
        "reasons",
        "texts with gaps",
    ],
)
def test_a_column_that_alone_tells_the_target_is_named(column, y):
    assert named(column, y) == ["column"]


@pytest.mark.parametrize(
    ("column", "y"),
    [
        (NUMBERS + 0.05 * NUMBERS.std() * B, NUMBERS),
        (A, A**4),
        (np.log(NUMBERS + 9.0) + 0.002 * B, NUMBERS),
        (np.digitize(NUMBERS, np.quantile(NUMBERS, np.linspace(0.0, 1.0, 101)[1:-1])), NUMBERS),
        (np.where(ROWS < 360, 0, ROWS * 37 % 101), np.where(ROWS < 360, 0.0, np.sqrt(ROWS))),
        (DAY + pd.to_timedelta(ROWS, "D"), np.sqrt(ROWS)),
        (np.where(GAPS, np.nan, 1.0), NUMBERS),
        (np.where(np.arange(N) < 3, 1e9, A), np.where(np.arange(N) < 3, 1e9, NUMBERS)),
        (A + 5.0 * (LABELS == "low"), LABELS == "low"),
        (np.where(np.arange(N) % 50 == 7, "low", LABELS), np.where(np.arange(N) % 50 == 7, "high", LABELS)),
        (np.where(A > 0, 3.0 + B, -3.0 + B / 9), A > 0),
        (["x" if i < 3 else "z" for i in range(N)], np.where(np.arange(N) < 3, "rare", "often")),
        ([f"shop {i}" for i in range(100)] * 4, np.arange(400) % 100 * 1.5),
    ],
    ids=[
        "noise",
        "formula",
        "noise and logarithm",
        "bins",
        "mostly zero",
        "growth in time",
        "equal with gaps",
        "outliers",
        "strong",
        "2 % other",
        "separable",
        "rare",
        "few rows each",
    ],
)
def test_a_column_that_leaves_something_to_learn_is_not(column, y):
    assert named(column, y) == []


def test_the_only_input_is_not_left_out():
    frame = pd.DataFrame({"celsius": A, "kelvin": A + 273.15})
    assert fit_table(frame, "kelvin", n_hidden=5).assessment_["advice"] == []


def test_three_of_several_columns_are_named_in_words_of_python():
    copies = {f'copy "{k}"': k * NUMBERS for k in range(1, 5)}
    model = fit_table(pd.DataFrame({"a": A, **copies, "y": NUMBERS}), "y", n_hidden=5)
    (sentence,) = (advice["sentence"] for advice in model.assessment_["advice"] if advice["code"] == "leak")
    assert sentence.startswith("""Each of the columns 'copy "1"', 'copy "2"', 'copy "3"' and 1 more alone tells""")
    assert sentence.endswith(r'try ignore=["copy \"1\"", "copy \"2\"", "copy \"3\"", "copy \"4\""].')


def test_numbers_of_any_size_and_equal_ones():
    assert is_copy(1e307 * A, 1e-300 * A)
    assert not is_copy(1e307 * A, 1e-300 * B)
    assert not is_copy(np.ones(N), NUMBERS)
    assert not is_copy(NUMBERS, np.ones(N))
    assert not is_code(np.ones(N), np.arange(N) % 2)


def test_fewer_than_fifty_different_targets_may_be_in_order_by_chance():
    y = np.sort(NUMBERS)[:60]
    assert has_order(np.exp(y), y)
    assert has_order(np.exp(-y), y)
    assert not has_order(np.exp(y[:49]), y[:49])
    assert not has_order(np.exp(y), np.minimum(y, y[48]))
    assert not has_order(np.append(np.exp(y[1:]), np.exp(y[0])), y)
    assert not has_order(np.ones(60), y)
