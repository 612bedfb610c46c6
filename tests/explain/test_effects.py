"""`explain.effect`: accumulated local effects of numbers, categories and dates, with a band."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestRegressor, VotingClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.svm import SVC, LinearSVC

from ocrep import (
    PinvClassifier,
    PinvClassifierCV,
    PinvRegressor,
    PinvRegressorCV,
    TableClassifier,
    TableRegressor,
    TikhonovRegressor,
    explain,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (600, 3))
X[:, 2] = RNG.integers(0, 2, 600)
Y = np.sin(3 * X[:, 0]) + X[:, 1] + 2 * X[:, 2]
# Networks of a stack whose outputs are far from each other: only their weighted sum is fitted.
UNLIKE = [
    {"n_hidden": 20, "activation": "tanh"},
    {"n_hidden": 20, "activation": "sin", "weight_scale": 3.0},
    {"n_hidden": 20, "activation": "gaussian", "weight_init": "rows"},
]


def rises(answer, rows, column, ends):
    """By the definition: the mean difference of the answers at both ends of each interval, for the rows in it."""
    values = np.asarray(rows)[:, column].astype(float)
    interval = np.maximum(np.searchsorted(ends, values) - 1, 0)
    upper, lower = rows.copy(), rows.copy()
    for moved, own in ((upper, ends[interval + 1]), (lower, ends[interval])):
        if isinstance(moved, pd.DataFrame):
            moved[moved.columns[column]] = own
        else:
            moved[:, column] = own
    return np.bincount(interval, answer(upper) - answer(lower)) / np.bincount(interval)


def assert_accumulates(answer, model, rows, column, **options):
    found = explain.effect(model, rows, column, **options).frame
    expected = rises(answer, rows, column, found["value"].to_numpy())
    np.testing.assert_allclose(np.diff(found["effect"]), expected, rtol=0, atol=1e-9)
    return found


def test_of_a_linear_model_it_is_a_line_through_the_mean():
    model = TikhonovRegressor(gamma=0.0).fit(X, Y)
    for column in range(3):
        found = explain.effect(model, X, column).frame
        slope = np.diff(found["effect"]) / np.diff(found["value"])
        np.testing.assert_allclose(slope, model.coef_[column], atol=1e-9)
        assert found["n_rows"].sum() == 600
    assert found["value"].tolist() == [0.0, 1.0]
    # The mean of the effect over rows is zero, and the band of an exactly linear model has no width.
    np.testing.assert_allclose(found["effect"].mean(), 0.0, atol=1e-12)
    np.testing.assert_allclose(found["high"] - found["low"], 0.0, atol=1e-9)


def test_values_that_nothing_lies_between_are_compared_with_the_mean_of_the_rows(rng):
    """A flag that is rarely set adds the same as the same column in words: less the mean over rows, not the middle."""
    flag = rng.random(400) < 0.2
    y = 2.0 * flag + 0.01 * rng.standard_normal(400)
    frame = pd.DataFrame({"flag": flag, "x": rng.standard_normal(400)})
    words = frame.assign(flag=np.where(flag, "yes", "no"))
    network = PinvRegressor(20, gamma=1e-6, random_state=0)
    found = [explain.effect(TableRegressor(network, random_state=0).fit(X, y), X, "flag") for X in (frame, words)]
    flags = found[0].frame
    np.testing.assert_allclose(np.average(flags["effect"], weights=flags["n_rows"]), 0.0, atol=1e-9)
    np.testing.assert_allclose(*(np.sort(one.frame["effect"]) for one in found), atol=0.02)


def test_it_is_the_integral_of_mean_gradients():
    model = PinvRegressor(60, activation="tanh", random_state=0).fit(X, Y)
    found = explain.effect(model, X, 0, n_intervals=100).frame
    middle = (found["value"].to_numpy()[1:] + found["value"].to_numpy()[:-1]) / 2
    slope = np.diff(found["effect"]) / np.diff(found["value"])
    gradients = model.gradients(X)[:, 0]
    expected = [gradients[np.abs(X[:, 0] - at) < 0.02].mean() for at in middle]
    assert np.corrcoef(slope, expected)[0, 1] > 0.99


def test_no_combination_is_judged_that_does_not_occur(rng):
    """y depends on the first of two columns that move together: partial dependence would ask for unseen corners."""
    x = rng.uniform(-1, 1, 800)
    rows = np.column_stack([x, x + 0.05 * rng.standard_normal(800)])
    model = PinvRegressorCV("quick", random_state=0).fit(rows, x**2)
    both = sum(explain.effect(model, rows, column).frame["effect"].to_numpy() for column in range(2))
    value = explain.effect(model, rows, 0).frame["value"]
    assert np.corrcoef(both, value**2)[0, 1] > 0.99


def test_categories_ranks_dates_and_gaps(rng):
    frame = pd.DataFrame({"town": rng.choice(["Oslo", "Bergen", "Bodø"], 600), "size": X[:, 0]})
    frame["grade"] = pd.Categorical(rng.choice(["low", "middle", "high"], 600), ["low", "middle", "high"], ordered=True)
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 200, 600), "D")
    days = (frame["day"] - frame["day"].min()).dt.days
    towns = frame["town"].map({"Oslo": 1.0, "Bergen": 0.0, "Bodø": -2.0})
    y = towns + frame["grade"].cat.codes ** 2 + days / 50
    frame.loc[frame.index[::20], "town"] = None
    model = TableRegressor(PinvRegressor(100, random_state=0), random_state=0).fit(frame, y)
    town = explain.effect(model, frame, "town")
    assert (town.kind, town.scale) == ("category", "prediction")
    effects = town.frame.set_index("value")["effect"]
    assert effects["Oslo"] - effects["Bodø"] == pytest.approx(3.0, abs=0.3)
    assert effects["Oslo"] - effects["Bergen"] == pytest.approx(1.0, abs=0.3)
    assert town.frame.set_index("value").loc["(gap)", "n_rows"] == 30
    grade = explain.effect(model, frame, "grade")
    assert (grade.kind, grade.frame["value"].tolist()) == ("category", ["low", "middle", "high"])
    for place, (lower, upper) in enumerate([("low", "middle"), ("middle", "high")]):
        # Rows of the lower end count in the first interval only.
        mine = frame[frame["grade"].isin([lower, upper] if place == 0 else [upper])]
        low, high = (mine.assign(grade=mine["grade"].where(mine["grade"] == end, end)) for end in (lower, upper))
        expected = np.mean(model.predict(high) - model.predict(low))
        assert np.diff(grade.frame["effect"])[place] == pytest.approx(expected, abs=1e-9)
    day = explain.effect(model, frame, "day")
    assert day.kind == "date"
    assert day.frame["value"].iloc[0] == frame["day"].min()
    assert np.corrcoef(day.frame["effect"], (day.frame["value"] - frame["day"].min()).dt.days)[0, 1] > 0.99
    frame.loc[frame.index[::7], "size"] = np.nan
    assert explain.effect(model, frame, "size").frame["n_rows"].sum() == frame["size"].notna().sum()


def test_labels_have_effects_on_probabilities():
    labels = np.array(["a", "b", "c"])[np.digitize(X[:, 1], [-0.3, 0.3])]
    model = TableClassifier(PinvClassifier(60, calibrate="loo", random_state=0), random_state=0)
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    model.fit(frame, labels)
    found = {label: explain.effect(model, frame, "v", output=label) for label in "abc"}
    assert found["c"].scale == "probability"
    np.testing.assert_allclose(sum(own.frame["effect"] for own in found.values()), 0.0, atol=1e-9)
    rise = found["c"].frame["effect"]
    assert 0.6 < rise.iloc[-1] - rise.iloc[0] < 1.05
    two = PinvClassifier(40, random_state=0).fit(X, X[:, 1] > 0)
    assert explain.effect(two, X, 1).scale == "probability"
    assert explain.effect(two, X, 1).output is True


@pytest.mark.parametrize("network", [LinearSVC(), SVC(), RidgeClassifier()], ids=str)
@pytest.mark.parametrize("labels", [(0, 1), (3, 5), ("no", "yes"), ("a", "b", "c")], ids=str)
def test_classifiers_without_probabilities_have_effects_on_their_scores(network, labels):
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    model = TableClassifier(network, random_state=0)
    model.fit(frame, np.array(labels)[np.digitize(X[:, 1], [0.0] if len(labels) == 2 else [-0.3, 0.3])])
    last, first = (explain.effect(model, frame, "v", n_intervals=4, output=labels[end]) for end in (-1, 0))
    assert (last.scale, last.output) == ("prediction", labels[-1])
    for found, sign in ((last, 1.0), (first, -1.0)):
        assert sign * (found.frame["effect"].iloc[-1] - found.frame["effect"].iloc[0]) > 0.0
    if len(labels) == 2:
        np.testing.assert_allclose(first.frame["effect"], -last.frame["effect"])
        assert explain.effect(model, frame, "v").output == labels[1]


def test_classifiers_that_only_name_classes_have_no_effects():
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    y = np.digitize(X[:, 1], [-0.3, 0.3])
    for network in (VotingClassifier([("one", LinearSVC())]), SVC(decision_function_shape="ovo")):
        model = TableClassifier(network, random_state=0).fit(frame, y)
        with pytest.raises(TypeError, match="names a class for each row, without a probability or a score"):
            explain.effect(model, frame, "v")
        assert explain.importance(model, frame, y).frame["column"][0] == "v"


def test_the_band_holds_the_effect_of_other_rows():
    model = PinvRegressor(60, weight_scale=3.0, random_state=0).fit(X, Y + X[:, 0] * X[:, 1] * 2)
    draws = np.random.default_rng(1)
    many = explain.effect(model, draws.uniform(-1, 1, (20_000, 3)), 0, n_intervals=100).frame
    inside = []
    for _ in range(20):
        some = explain.effect(model, draws.uniform(-1, 1, (200, 3)), 0, n_intervals=20).frame
        expected = np.interp(some["value"], many["value"], many["effect"])
        inside.append(((some["low"] < expected) & (expected < some["high"])).mean())
        assert (some["high"] - some["low"]).max() < np.ptp(some["effect"])
    assert 0.85 < np.mean(inside) < 0.995


def test_the_effect_of_a_stack_is_the_mean_of_its_members_and_the_band_holds_their_spread(rng):
    members = [{"n_hidden": 30, "activation": "tanh"}, {"n_hidden": 30, "weight_init": "trees"}]
    noisy = Y[:100] + rng.standard_normal(100)
    stack, *singles = (
        PinvRegressorCV(own, random_state=0).fit(X[:100], noisy) for own in (members, members[:1], members[1:])
    )
    assert (stack.weights_ > 0).all()
    whole = explain.effect(stack, X, 1).frame
    each = np.array([explain.effect(single, X, 1).frame["effect"] for single in singles])
    np.testing.assert_allclose(whole["effect"], stack.weights_ @ each, atol=1e-6)
    spread = np.sqrt(stack.weights_ @ (each - whole["effect"].to_numpy()) ** 2)
    assert (whole["high"] - whole["effect"] >= 2 * spread - 1e-9).all()


@pytest.mark.parametrize("seed", [7, 0, 1, 2])
def test_the_effect_on_a_probability_is_that_of_the_whole_stack(seed):
    draws = np.random.default_rng(seed)
    rows = draws.normal(size=(1000, 2))
    labels = 8.0 * rows[:, 0] + draws.logistic(size=1000) > 0
    model = PinvClassifierCV("quick", random_state=0).fit(rows, labels)
    assert np.count_nonzero(model.weights_) > 1
    first, _ = (
        assert_accumulates(lambda own: model.predict_proba(own)[:, 1], model, rows, column) for column in range(2)
    )
    assert first["effect"].iloc[-1] - first["effect"].iloc[0] > 0.9
    # The first column decides, whichever network is asked: the band is narrow, but not without width.
    reach = first["high"] - first["effect"]
    assert reach.min() > 0.001
    assert reach.max() < 0.1


def test_effects_of_stacks_on_several_classes_and_on_several_labels():
    rows, classes = load_iris(return_X_y=True)
    draws = np.random.default_rng(0)
    other = draws.normal(size=(800, 3))
    several = 4.0 * other[:, :2] + draws.logistic(size=(800, 2)) > 0
    several = np.column_stack([several, other.sum(axis=1) > 0]).astype(int)
    for X_of, y_of in ((rows, classes), (other, several)):
        model = PinvClassifierCV(UNLIKE, random_state=0).fit(X_of, y_of)
        assert np.count_nonzero(model.weights_) > 1
        for number, label in enumerate(model.classes_):
            for column in range(X_of.shape[1]):
                assert_accumulates(
                    lambda own, k=number, of=model: of.predict_proba(own)[:, k], model, X_of, column, output=label
                )


def test_the_effect_of_a_text_on_a_probability_is_that_of_the_whole_stack():
    draws = np.random.default_rng(1)
    towns = draws.choice(["Oslo", "Bergen", "Bodø"], 600)
    frame = pd.DataFrame({"size": X[:, 0], "town": towns})
    labels = 12.0 * X[:, 0] + 3.0 * (towns == "Oslo") + draws.logistic(size=600) > 1.0
    model = TableClassifier(PinvClassifierCV("quick", random_state=0), random_state=0).fit(frame, labels)
    assert np.count_nonzero(model.model_.weights_) > 1
    few = frame.groupby("town").head(90)  # of a text with more rows, some are drawn
    under = {town: model.predict_proba(few.assign(town=town))[:, 1] for town in ("Oslo", "Bergen", "Bodø")}
    found = explain.effect(model, few, "town").frame.set_index("value")["effect"]
    for town, probability in under.items():
        excess = probability - np.mean(list(under.values()), axis=0)
        assert found[town] == pytest.approx(excess[few["town"] == town].mean(), abs=1e-9)


@pytest.mark.parametrize(
    "network",
    [
        PinvRegressor(30, random_state=0),
        PinvRegressorCV(UNLIKE, random_state=0),
        RandomForestRegressor(20, random_state=0),
    ],
    ids=["network", "stack", "forest"],
)
def test_of_a_model_of_logarithms_it_is_the_effect_on_the_prediction(network):
    draws = np.random.default_rng(1)
    frame = pd.DataFrame({"size": X[:, 0], "age": X[:, 1], "town": draws.choice(["Oslo", "Bergen"], 600)})
    price = np.exp(2.0 + frame["size"] + 0.5 * frame["age"] + frame["town"].eq("Oslo"))
    price *= np.exp(0.2 * draws.standard_normal(600))
    model = TableRegressor(network, target_transform="log", random_state=0).fit(frame, price)
    assert explain.effect(model, frame, "size").scale == "prediction"
    found = assert_accumulates(model.predict, model, frame, 0)
    assert (found["high"] - found["effect"]).max() < 0.3 * np.ptp(found["effect"])
    few = frame.groupby("town").head(90)
    under = {town: model.predict(few.assign(town=town)) for town in ("Oslo", "Bergen")}
    towns = explain.effect(model, few, "town").frame.set_index("value")["effect"]
    expected = (under["Oslo"] - under["Bergen"])[few["town"] == "Oslo"].mean() / 2
    assert towns["Oslo"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("column", [0, 2])
def test_plots_are_drawn(column):
    model = PinvRegressor(20, random_state=0).fit(X, Y)
    figure, ax = plt.subplots()
    assert explain.effect(model, X, column).plot(ax) is ax
    assert explain.contributions(model, X[:3]).plot(1, ax=ax) is ax
    assert explain.importance(model, X, Y).plot(ax) is ax
    plt.close(figure)


def test_names_never_become_markup():
    names = ["$\\alpha^{2$", "<b>bold</b>", "_under_ \\frac"]
    frame = pd.DataFrame(X, columns=names)
    model = TableRegressor(PinvRegressor(20, random_state=0), random_state=0).fit(frame, Y)
    for draw in (
        explain.importance(model, frame, Y).plot,
        explain.effect(model, frame, names[0]).plot,
        explain.contributions(model, frame[:2]).plot,
    ):
        figure = draw().figure
        figure.canvas.draw()  # a broken formula would raise
        plt.close(figure)


@pytest.mark.parametrize("names", [[1, 0, 2], [2021, 2020, 7], np.array([3, 4, 5])], ids=str)
def test_columns_whose_names_are_numbers_are_found_by_name(names):
    frame = pd.DataFrame(X, columns=names)
    model = TableRegressor(PinvRegressor(20, random_state=0), ignore=[names[2]], random_state=0).fit(frame, Y)
    for name in names[:2]:
        assert explain.effect(model, frame, name).column == str(name)
        assert explain.importance(model, frame, Y, columns=[name]).frame["column"].tolist() == [str(name)]
    with pytest.raises(ValueError, match=f"Column '{names[2]}' is not used by the model: it is ignored"):
        explain.effect(model, frame, names[2])
    with pytest.raises(ValueError, match="Column 99 is not there: the model has 2 columns"):
        explain.effect(model, frame, 99)


def test_mistakes():
    frame = pd.DataFrame(X, columns=["size", "age", "flag"]).assign(same=1.0)
    model = TableRegressor(PinvRegressor(20, random_state=0), random_state=0).fit(frame, Y)
    for message, arguments in {
        "The model knows no column 'siz': did you mean 'size'": (frame, "siz"),
        "Column 'same' is not used by the model: it is constant": (frame, "same"),
        "Column 'flag' has one value in X": (frame[frame["flag"] == 1], "flag"),
        "X has 1 row, and an effect is the mean": (frame[:1], "size"),
        "X has no column 'age', which the model needs": (frame.drop(columns="age"), "size"),
        "X has no rows": (frame[:0], "size"),
    }.items():
        with pytest.raises(ValueError, match=message):
            explain.effect(model, *arguments)
    with pytest.raises(ValueError, match="Column 7 is not there: the model has 3 columns"):
        explain.effect(PinvRegressor(5, random_state=0).fit(X, Y), X, 7)
    with pytest.raises(ValueError, match=r"knows no column \['size'\]"):
        explain.effect(model, frame, ["size"])
    with pytest.raises(ValueError, match="Column 'size' has only gaps"):
        explain.effect(model, frame.assign(size=np.nan), "size")
    with pytest.raises(ValueError, match="n_intervals=0 must be a whole number"):
        explain.effect(model, frame, "size", n_intervals=0)


def test_names_and_values_are_drawn_on_one_line_of_bounded_length(recwarn, rng):
    evil = '<b>"\x1b[31m\n$x$' + "y" * 500
    frame = pd.DataFrame({evil: X[:, 0], "town": rng.choice([evil, "Oslo\nBergen"], 600)})
    model = TableRegressor(PinvRegressor(10, random_state=0), random_state=0).fit(frame, Y)
    for drawn in (
        explain.effect(model, frame, evil),
        explain.effect(model, frame, "town"),
        explain.importance(model, frame, Y),
        explain.contributions(model, frame[:3]),
    ):
        figure = drawn.plot().figure
        figure.canvas.draw()
        for text in figure.findobj(plt.Text):
            assert "\n" not in text.get_text()
            assert "\x1b" not in text.get_text()
            assert len(text.get_text()) < 150
        plt.close(figure)
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]
