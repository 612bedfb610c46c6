"""A problem whose answer is known: y depends on 4 of 30 columns, two of them twins, one category and one date."""

import numpy as np
import pandas as pd
import pytest

from ocrep import PinvRegressorCV, TableRegressor, explain

TOWNS = {"Oslo": 0.0, "Bergen": 1.5, "Bodø": -1.5, "Tromsø": 0.5}


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    n = 1500
    frame = pd.DataFrame(rng.uniform(-2, 2, (n, 27)), columns=[f"noise {i}" for i in range(27)])
    frame.insert(5, "heat", rng.uniform(-2, 2, n))
    frame["heat in °F"] = 1.8 * frame["heat"] + 32 + 0.05 * rng.standard_normal(n)
    frame = frame.drop(columns=["noise 0", "noise 1"]).rename(columns={"noise 2": "size"})
    frame["town"] = rng.choice(list(TOWNS), n)
    frame["day"] = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D")
    frame["other"] = rng.choice(list("abc"), n)
    assert frame.shape[1] == 30
    days = (frame["day"] - frame["day"].min()).dt.days / 350 - 1
    y = np.sin(1.5 * frame["heat"]) * 1.5 + frame["size"] ** 2 / 2 + frame["town"].map(TOWNS) + days
    y += 0.1 * rng.standard_normal(n)
    model = TableRegressor(PinvRegressorCV("quick", random_state=0), random_state=0).fit(frame[:1000], y[:1000])
    return model, frame[1000:], y[1000:]


def test_the_right_columns_come_first_and_twins_are_named_together(planted):
    model, rows, y = planted
    found = explain.importance(model, rows, y).frame
    assert set(found["column"][:4]) == {"heat + heat in °F", "size", "town", "day"}
    assert found["importance"][3] > 10 * abs(found["importance"][4])
    assert found["importance"][3] > 3 * found["std_error"][3]
    assert len(found) == 29


def test_effects_have_the_planted_shapes(planted):
    model, rows, _ = planted
    size = explain.effect(model, rows, "size").frame
    assert np.corrcoef(size["effect"], size["value"] ** 2)[0, 1] > 0.98
    # What one of two twins does is shared between them.
    heat = explain.effect(model, rows, "heat").frame
    fahrenheit = explain.effect(model, rows, "heat in °F").frame
    other = np.interp(heat["value"], (fahrenheit["value"] - 32) / 1.8, fahrenheit["effect"])
    assert np.corrcoef(heat["effect"] + other, np.sin(1.5 * heat["value"]))[0, 1] > 0.98
    town = explain.effect(model, rows, "town").frame
    assert np.corrcoef(town["effect"], town["value"].map(TOWNS))[0, 1] > 0.98
    day = explain.effect(model, rows, "day").frame
    assert np.corrcoef(day["effect"], (day["value"] - rows["day"].min()).dt.days)[0, 1] > 0.98


def test_contributions_add_up_and_find_the_columns(planted):
    model, rows, _ = planted
    found = explain.contributions(model, rows[:100])
    np.testing.assert_allclose(found.frame.sum(axis=1) + found.base, model.predict(rows[:100]), rtol=0, atol=1e-6)
    mean = found.frame.abs().mean().sort_values(ascending=False)
    assert set(mean.index[:4]) <= {"heat", "heat in °F", "size", "town", "day"}
    town = found.frame["town"].groupby(rows["town"][:100]).mean()
    assert np.corrcoef(town, [TOWNS[name] for name in town.index])[0, 1] > 0.95
