"""What NumPy would read as numbers, although it says something else: refused in a sentence, or read as meant."""

import re

import numpy as np
import pandas as pd
import pytest

from ocrep import (
    PinvClassifier,
    PinvRegressor,
    PinvRegressorCV,
    TableClassifier,
    TableRegressor,
    TikhonovRegressor,
    scan,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ [1.0, 2.0, -1.0] + 0.1 * RNG.standard_normal(60)
LABELS = np.where(Y > 0.0, "up", "down")
DAYS = np.datetime64("2024-01-01") + np.arange(60)
MASK = X > 1.0
REGRESSORS = [PinvRegressor(5, random_state=0), TikhonovRegressor(), PinvRegressorCV([{"n_hidden": 5}], random_state=0)]


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(
    "rows",
    [
        {"X": np.ma.array(X, mask=MASK)},
        {"y": np.ma.array(Y, mask=MASK[:, 0])},
        {"sample_weight": np.ma.array(np.ones(60), mask=MASK[:, 0])},
        {"groups": np.ma.array(np.arange(60) % 7, mask=MASK[:, 0])},
    ],
    ids=lambda rows: next(iter(rows)),
)
def test_masked_entries_are_missing_and_not_numbers(model, rows):
    given = {"X": X, "y": Y} | rows
    with pytest.raises(ValueError, match=f"^{next(iter(rows))} is a masked array"):
        model.fit(**given)
    name, masked = next(iter(rows.items()))
    whole = np.ma.array(masked.data, mask=False)
    expected = model.fit(**given | {name: masked.data}).predict(X)
    np.testing.assert_array_equal(model.fit(**given | {name: whole}).predict(X), expected)
    with pytest.raises(ValueError, match=r"^X is a masked array.*\.$"):
        model.predict(np.ma.array(X, mask=MASK))


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("days", [DAYS, DAYS - DAYS[0]], ids=["dates", "durations"])
def test_dates_are_no_numbers(model, days):
    for X_days, y in ((days[:, None], Y), (X, days)):
        with pytest.raises(ValueError, match=r"holds dates or times, but .* must be numbers.*\.$"):
            model.fit(X_days, y)
    with pytest.raises(ValueError, match=r"^X holds dates or times"):
        model.fit(X, Y).predict(np.repeat(days[:, None], 3, axis=1))


def test_a_label_that_is_no_date_is_missing():
    days = np.where(Y > 0.0, DAYS[0], DAYS[1])
    assert np.isin(PinvClassifier(5, random_state=0).fit(X, days).predict(X), days).all()
    days[3] = np.datetime64("NaT", "D")
    with pytest.raises(ValueError, match=re.escape("Row 4: the label is missing")):
        PinvClassifier(5, random_state=0).fit(X, days)


def test_a_table_reads_masked_entries_as_gaps():
    network = PinvRegressor(5, random_state=0)
    seconds = (1e7 * X).astype("m8[s]")
    times = seconds, seconds.astype("m8[ns]"), DAYS[0] + seconds, DAYS[0] + seconds.astype("m8[ns]")
    for whole in (X, *times):
        masked, gaps = np.ma.array(whole, mask=MASK), pd.DataFrame(whole).mask(MASK).to_numpy()
        ours, expected = (TableRegressor(network, random_state=0).fit(rows, Y) for rows in (masked, gaps))
        assert [column.kind for column in ours.coder_.columns_] == [column.kind for column in expected.coder_.columns_]
        np.testing.assert_array_equal(ours.predict(masked), expected.predict(gaps))
    for y in (np.ma.array(Y, mask=MASK[:, 0]), np.ma.array(LABELS, mask=MASK[:, 0])):
        model = TableRegressor(network) if y.dtype.kind == "f" else TableClassifier(PinvClassifier(5))
        with pytest.raises(ValueError, match=f"no value in {MASK[:, 0].sum()} of 60 rows"):
            model.fit(X, y)
    for name in ("sample_weight", "groups"):
        with pytest.raises(ValueError, match=name):
            TableRegressor(network).fit(X, Y, **{name: np.ma.array(np.arange(60) % 7, mask=MASK[:, 0])})


def test_a_table_whose_target_has_squares_that_vanish_is_refused():
    frame = pd.DataFrame(X)
    with pytest.raises(ValueError, match=r"rescale it\.$"):
        TableRegressor(PinvRegressorCV([{"n_hidden": 5}], random_state=0)).fit(frame, 1e-200 * Y)


@pytest.mark.parametrize("weight", [[0.0] * 59 + [1.0], None], ids=["one counts", "one"])
def test_a_metric_of_one_row_is_refused(weight):
    rows = (X, Y) if weight else (X[:1], Y[:1])
    with pytest.raises(ValueError, match=r"^metric='diagonal' is learned by leaving rows out.*\.$"):
        PinvRegressor(5, metric="diagonal", gamma="kfold").fit(*rows, sample_weight=weight)


@pytest.mark.parametrize("name", ["fit_intercept", "direct_link"])
@pytest.mark.parametrize("value", ["no", None, 0])
def test_what_is_neither_true_nor_false_is_refused(name, value):
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r} must be True or False.")):
        PinvRegressor(5, **{name: value}).fit(X, Y)


def test_columns_that_the_first_block_fixes_are_named():
    """Their range is one number, so that no later value can count."""
    sorted_rows = X.copy()
    sorted_rows[:, 1] = np.arange(60) // 30
    model = PinvRegressor(5, gamma="gcv", random_state=0)
    with pytest.warns(UserWarning, match="^Column 1 has one value only in the first block"):
        model.partial_fit(sorted_rows[:30], Y[:30])
    model.partial_fit(sorted_rows[30:], Y[30:])
    changed = sorted_rows.copy()
    changed[:, 1] += 1.0
    np.testing.assert_array_equal(model.predict(changed), model.predict(sorted_rows))
    with pytest.warns(UserWarning, match="^Column 1 has one value only in the first block"):
        model.fit(scan(iter([(sorted_rows[:30], Y[:30]), (sorted_rows[30:], Y[30:])])))
    given = PinvRegressor(5, gamma="gcv", input_scaling=(-3.0, 3.0), random_state=0).partial_fit(
        sorted_rows[:30], Y[:30]
    )
    given.partial_fit(sorted_rows[30:], Y[30:])
    assert np.any(given.predict(changed) != given.predict(sorted_rows))
