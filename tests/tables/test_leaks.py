"""A column that alone tells the target is named, whatever its kind; strong but honest columns are not."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from ocrep import fit_table
from ocrep.tables.coder import read_table
from ocrep.tables.frames import Frame
from ocrep.tables.leaks import advice_on_ids, has_order, is_code, is_copy

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
        ((7.0 - 1.8 * NUMBERS).round(2), NUMBERS),
        (np.where(GAPS, np.nan, NUMBERS), NUMBERS),
        (np.log(NUMBERS + 9.0).round(5), NUMBERS),
        (np.where(GAPS, np.nan, -(NUMBERS**3)), NUMBERS),
        (NUMBERS.round(1).argsort(kind="stable").argsort() / 7.0, NUMBERS.round(1)),
        (np.exp(LEVELS), LEVELS + 0.5),
        (np.array([3, 7, 20])[LEVELS % 3], np.array([1.5, 9.5, 2.5])[LEVELS % 3]),
        (DAY - pd.to_timedelta((100 * NUMBERS).round(), "D"), NUMBERS),
        (np.array(["x", "y", "z"])[A.round().astype(int) % 3], np.array([1.5, 2.5, 9.5])[A.round().astype(int) % 3]),
        (np.char.add("is ", LABELS), LABELS),
        (np.select([LABELS == "high", LABELS == "low"], [10, -3], 4), LABELS),
        (np.where(LABELS == "low", np.where(B > 0, "moved", "ill"), None), LABELS == "low"),
        (np.where(LABELS == "low", 50.0 + 5.0 * B, 0.0), LABELS == "low"),
        (np.where(LABELS == "low", 5.0 * B, -1.0), LABELS == "low"),
        (
            np.where(LABELS == "low", DAY + pd.to_timedelta(ROWS, "D"), pd.Timestamp("1900-01-01")),
            np.where(LABELS == "low", "sick", "well"),
        ),
        (np.where(LABELS == "low", 3.0 + B, -3.0 + B / 9), LABELS == "low"),
        (np.where(GAPS, np.nan, (LABELS == "low") + 0.1 * B), LABELS == "low"),
        (np.select([LABELS == "high", LABELS == "low"], [3.0, 1.0]) + 0.1 * B, LABELS),
        (np.where((LABELS == "low") ^ np.isin(ROWS, [30, 200]), np.abs(B), np.nan), LABELS == "low"),
        (np.where(GAPS, None, np.char.add("is ", LABELS)), LABELS),
    ],
    ids=[
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
        "reasons",
        "zero filled in",
        "one of its numbers filled in",
        "date filled in",
        "limit",
        "labels with noise and gaps",
        "several limits",
        "wrong gaps",
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
        (A + 3.0 * (LABELS == "low"), LABELS == "low"),
        (np.where(LABELS == "low", B, 10.0 + A), LABELS),
        (np.where(LABELS == "low", 0.0, np.abs(B)), LABELS),
        (np.where(np.arange(N) % 50 == 7, "low", LABELS), np.where(np.arange(N) % 50 == 7, "high", LABELS)),
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
        "one class of several",
        "none for one class of several",
        "2 % other",
        "rare",
        "few rows each",
    ],
)
def test_a_column_that_leaves_something_to_learn_is_not(column, y):
    assert named(column, y) == []


@pytest.mark.parametrize("y", [NUMBERS, LABELS == "low", LABELS])
def test_the_target_once_more_is_refused(y):
    with pytest.raises(ValueError, match="Column 'column' is the target again"):
        named(y, y)


def test_the_only_input_is_not_left_out():
    frame = pd.DataFrame({"celsius": A, "kelvin": A + 273.15})
    assert fit_table(frame, "kelvin", n_hidden=5).assessment_["verdict"]["code"] != "leak"


def test_three_of_several_columns_are_named_in_words_of_python():
    copies = {f'copy "{k}"': k * NUMBERS for k in range(2, 6)}
    model = fit_table(pd.DataFrame({"a": A, **copies, "y": NUMBERS}), "y", n_hidden=5)
    (sentence,) = (advice["sentence"] for advice in model.assessment_["advice"] if advice["code"] == "leak")
    assert sentence.startswith("""Each of 'copy "2"', 'copy "3"', 'copy "4"' and 1 more alone predicts""")
    assert sentence.endswith(r'try ignore=["copy \"2\"", "copy \"3\"", "copy \"4\"", "copy \"5\""].')


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


@pytest.mark.parametrize("labels", [False, True])
def test_ids_along_which_the_target_changes_are_named_and_no_others(labels):
    random = np.random.default_rng(1)
    trend, noise = ROWS / 100.0 + B, random.standard_normal(N)
    if labels:
        trend, noise = trend > trend.mean(), noise > 0.0
    frame = pd.DataFrame({"id": 5000 + ROWS, "a": A, "trend": trend, "noise": noise}).iloc[random.permutation(N)]

    def fitted(target, keep=()):
        return fit_table(frame[["id", "a", target]], target, n_hidden=5, keep=keep)

    def named(model):
        return [one["change"]["keep"] for one in model.assessment_["advice"] if one["code"] == "id"]

    without = fitted("trend")
    assert list(without.left_out_) == ["id"]
    assert named(without) == [("id",)]
    assert named(fitted("noise")) == []
    kept = fitted("trend", keep=("id",))
    assert named(kept) == []
    measure = "log_loss" if labels else "rmse"
    before, after = (model.assessment_["models"]["network"][measure] for model in (without, kept))
    assert after < before


@pytest.mark.parametrize("ids", [False, True])
def test_the_memory_to_look_along_ids_does_not_grow_with_rows_times_classes(ids):
    n_rows, n_classes = 20_000, 500
    frame = pd.DataFrame({"id": np.arange(n_rows), "a": np.random.default_rng(0).standard_normal(n_rows)})
    read = read_table(Frame.of(frame if ids else frame[["a"]]))
    y = np.maximum(0, np.arange(-n_rows, n_rows, 2) * n_classes // n_rows)  # the first half are of one class
    assert list(read.numbered) == ["id"] * ids
    tracemalloc.start()
    found = advice_on_ids(read, y, labels=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [one.change["keep"] for one in found] == [("id",)] * ids
    assert peak < 8 * n_rows * n_classes / 10
