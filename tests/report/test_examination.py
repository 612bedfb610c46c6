"""A model examined: columns, effects, errors and trust against direct computation, and the page that shows them."""

import json
import re

import numpy as np
import pandas
import pytest
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from ocrep import PinvClassifier, PinvRegressor, PinvRegressorCV, TableClassifier, TableRegressor, TikhonovClassifier
from ocrep.report import diagnose, examine, write_report
from ocrep.report.examination import ReadableRows, accuracy, neg_log_loss, r2, why
from ocrep.report.page import render
from ocrep.report.trust import shift
from ocrep.report.wording import values_text

N = 240
RANDOM = np.random.default_rng(0)
FRAME = pandas.DataFrame(
    {
        "size": RANDOM.uniform(0, 10, 2 * N),
        "town": RANDOM.choice(["Oslo", "Bergen", "Bodø"], 2 * N),
        "day": pandas.date_range("2023-01-01", periods=2 * N),
        "noise": RANDOM.standard_normal(2 * N),
        "same": 1.0 + (np.arange(2 * N) < 5),
    }
)
FRAME.loc[::17, "town"] = None
FRAME.loc[::13, "noise"] = np.nan
PRICE = 2.0 * FRAME["size"] + 5.0 * FRAME["town"].eq("Oslo") + 0.3 * RANDOM.standard_normal(2 * N)
LABEL = np.where(PRICE > 12.0, "dear", "cheap")
TRAINED, HELD = FRAME[:N], FRAME[N:]


@pytest.fixture(scope="module")
def regressor():
    return TableRegressor(PinvRegressorCV("quick", calibrate="loo", random_state=0), random_state=0).fit(
        TRAINED, PRICE[:N]
    )


@pytest.fixture(scope="module")
def examined(regressor):
    return examine(regressor, HELD, PRICE[N:], TRAINED, PRICE[:N], title="Prices")


@pytest.fixture(scope="module")
def labelled():
    model = TableClassifier(PinvClassifier(40, calibrate="loo", random_state=0), random_state=0)
    return examine(model.fit(TRAINED, LABEL[:N]), HELD, LABEL[N:], title="Labels")


def test_the_planted_columns_come_first_and_do_what_was_planted(examined):
    assert set(examined.ranking.columns[:2]) == {"size", "town"}
    assert set(examined.ranking.clear()) == {"size", "town"}
    effects = {one.column: one for one in examined.effects}
    size = effects["size"]
    assert np.polyfit(size.values, size.effect, 1)[0] == pytest.approx(2.0, rel=0.1)
    town = dict(zip(effects["town"].values, effects["town"].effect, strict=True))
    assert town["Oslo"] - town["Bergen"] == pytest.approx(5.0, abs=1.0)
    assert effects["day"].kind == "date" if "day" in effects else True
    assert "same" not in effects  # it has one value in these rows


def test_errors_along_a_column_are_those_of_its_rows(regressor, examined):
    residuals = PRICE[N:].to_numpy() - regressor.predict(HELD)
    for one in examined.along:
        assert sum(one.n_rows) == N
        total = np.average(np.square(one.error), weights=one.n_rows)
        assert np.sqrt(total) == pytest.approx(examined.error) == pytest.approx(np.sqrt(np.mean(residuals**2)))
    town = next(one for one in examined.along if one.column == "town")
    oslo = HELD["town"].eq("Oslo").to_numpy()
    assert town.error[town.groups.index("Oslo")] == pytest.approx(np.sqrt(np.mean(residuals[oslo] ** 2)))
    assert "(gap)" in town.groups


def test_the_worst_rows_are_the_worst_and_their_reasons_are_their_contributions(regressor, examined):
    residuals = PRICE[N:].to_numpy() - regressor.predict(HELD)
    order = np.argsort(-np.abs(residuals))[:10]
    assert [row.row for row in examined.worst] == (order + 1).tolist()
    np.testing.assert_allclose([row.error for row in examined.worst], residuals[order])
    first = examined.worst[0]
    told = {one["column"]: one["added"] for one in why(regressor, HELD.iloc[[order[0]]]).contributions}
    for name, _, added in first.reasons:
        assert added == pytest.approx(told[name])
    largest = sorted((abs(value) for value in told.values()), reverse=True)[:3]
    np.testing.assert_allclose([abs(added) for *_, added in first.reasons], largest)


def test_the_reasons_of_a_row_lead_from_the_average_to_its_prediction(regressor):
    found = why(regressor, HELD.head(1))
    assert found.prediction == pytest.approx(regressor.predict(HELD.head(1))[0], rel=1e-5)
    added = sum(one["added"] for one in found.contributions)
    assert found.base + added == pytest.approx(found.explained, abs=1e-6)
    assert found.explained == pytest.approx(regressor.predict(HELD.head(1))[0])


def test_a_model_of_logarithms_is_scored_and_drawn_in_units_of_its_target():
    network = PinvRegressorCV("quick", calibrate="loo", random_state=0)
    model = TableRegressor(network, target_transform="log", random_state=0)
    price = np.exp(PRICE / 10.0)
    model.fit(TRAINED, price[:N])
    found = examine(model, HELD, price[N:])
    expected = model.score(HELD, price[N:])
    assert found.goodness.models["network"]["r2"] == pytest.approx(expected)
    assert found.ranking.score == pytest.approx(expected)
    np.testing.assert_allclose(found.goodness.predicted, model.predict(HELD))
    size = next(one for one in found.effects if one.column == "size")
    assert size.scale == "prediction"
    slope = 0.2 * price.mean()  # of the mean of e^(0.2·size + …)
    assert np.polyfit(size.values, size.effect, 1)[0] == pytest.approx(slope, rel=0.25)
    reason = why(model, HELD.head(1))
    assert (reason.scale, found.reasons_in) == ("logarithm", "logarithm")
    assert np.exp(reason.explained) == pytest.approx(model.predict(HELD.head(1))[0])
    assert reason.prediction == pytest.approx(np.exp(reason.explained), rel=1e-5)
    assert "logarithm of the prediction" in render(found)


def test_whole_numbers_and_years_are_written_as_they_are():
    assert values_text([1.0, 24.0, 12345.0]) == ["1", "24", "12,345"]
    assert values_text([1986.0, 2016.0]) == ["1986", "2016"]
    assert values_text([-3.0, np.nan]) == ["−3", "–"]
    assert values_text([0.5, 24.0]) == ["0.500", "24.0"]
    assert values_text([-121.321, -121.298]) == ["−121.32", "−121.30"]  # or both ends look the same
    assert values_text([]) == []


def test_labels_have_calibration_and_probabilities(labelled):
    assert sum(group["n_rows"] for group in labelled.calibration) == N
    right = sum(group["right"] * group["n_rows"] for group in labelled.calibration) / N
    assert right == pytest.approx(1.0 - labelled.error)
    assert {finding.topic for finding in labelled.trust} >= {"rows", "beyond", "probabilities"}
    assert all(row.true != row.predicted for row in labelled.worst)
    assert labelled.goodness.models["network"]["error"] == pytest.approx(labelled.error)


def test_the_scores_are_those_of_scikit_learn():
    X = RANDOM.standard_normal((60, 3))
    numbers, labels = X @ [1.0, 2.0, 0.0], np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    regressor = PinvRegressor(10, random_state=0).fit(X, numbers)
    assert r2(regressor, X, numbers) == pytest.approx(get_scorer("r2")(regressor, X, numbers))
    classifier = PinvClassifier(10, calibrate="loo", random_state=0).fit(X, labels)
    for mine, name in ((neg_log_loss, "neg_log_loss"), (accuracy, "accuracy")):
        assert mine(classifier, X, labels) == pytest.approx(get_scorer(name)(classifier, X, labels))
    assert np.isfinite(neg_log_loss(classifier, X[labels != "c"], labels[labels != "c"]))
    assert np.isnan(r2(regressor, X, np.ones(60)))


# --- Trust -----------------------------------------------------------------------------------------------------------


def codes(found):
    return {finding.topic: finding.code for finding in found.trust}


def test_rows_like_those_of_training_are_called_so_and_others_are_not(regressor):
    alike = FRAME.assign(day=RANDOM.permutation(FRAME["day"]))
    assert codes(examine(regressor, alike[N:], PRICE[N:], alike[:N], PRICE[:N]))["shift"] == "none"
    moved = HELD.assign(size=HELD["size"] + 4.0, town="Bergen")
    found = next(one for one in examine(regressor, moved, PRICE[N:], TRAINED, PRICE[:N]).trust if one.topic == "shift")
    assert found.code == "shifted"
    assert "size" in found.detail
    assert "town" in found.detail
    assert "noise" not in found.detail


def test_a_shift_needs_more_than_chance_and_more_than_a_little():
    def sample(values):
        values = np.asarray(values)
        gaps = values == "" if values.dtype == object else np.isnan(values)
        return values, gaps

    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 3000))
    assert shift("number", sample(a), sample(b), 1e-3) is None
    assert shift("number", sample(a), sample(b + 0.1), 1e-3) is None  # certain, but small
    assert shift("number", sample(a), sample(b + 1.0), 1e-3) == pytest.approx(0.38, abs=0.05)
    assert shift("number", sample(a[:5]), sample(b[:5] + 1.0), 1e-3) is None  # large, but not certain
    gone = np.where(rng.random(3000) < 0.3, np.nan, b)
    assert shift("number", sample(a), sample(gone), 1e-3) == pytest.approx(0.3, abs=0.03)
    texts = [np.array(["u", "v"], dtype=object)[(rng.random(3000) < share).astype(int)] for share in (0.5, 0.5, 0.9)]
    assert shift("category", sample(texts[0]), sample(texts[1]), 1e-3) is None
    assert shift("category", sample(texts[0]), sample(texts[2]), 1e-3) == pytest.approx(0.4, abs=0.05)


def test_few_rows_are_called_few_and_intervals_are_counted(regressor, examined):
    assert codes(examine(regressor, HELD[:12], PRICE[N : N + 12]))["rows"] == "few"
    assert codes(examined)["rows"] == "enough"
    assert codes(examined)["intervals"] == "right"
    # Targets that are noisier than those of training fall outside.
    wild = PRICE[N:] + 5.0 * RANDOM.standard_normal(N)
    assert codes(examine(regressor, HELD, wild))["intervals"] == "narrow"


def test_columns_that_give_the_target_away_together_are_named():
    X = pandas.DataFrame({"casual": RANDOM.poisson(30, 300), "registered": RANDOM.poisson(90, 300)}).astype(float)
    X["heat"] = RANDOM.standard_normal(300)
    y = X["casual"] + X["registered"]
    for noise, code in ((0.0, "exact"), (5.0, None)):
        target = y + noise * RANDOM.standard_normal(300)
        model = PinvRegressor(20, random_state=0).fit(X[:200], target[:200])
        trust = examine(model, X[200:], target[200:], X[:200], target[:200]).trust
        leaks = [one for one in trust if one.topic == "leaks"]
        assert [one.code for one in leaks] == ([code] if code else [])
        assert all(name in one.detail for one in leaks for name in ("casual", "registered"))
        assert all("heat" not in one.detail for one in leaks)


def test_a_column_that_may_give_the_target_away_alone_is_named():
    """Labels that follow from one column, though not from one limit on it; and from two columns."""
    random = np.random.default_rng(0)
    odd, a, b = random.uniform(-2.0, 2.0, (3, 4000))
    for edge, code in ((np.ones_like(b), "sole"), (1.0 + b / 2.0, None)):
        clear = np.abs(np.abs(odd) - edge) > 0.2
        X = pandas.DataFrame({"odd": odd, "a": a, "b": b})[clear]
        y = np.where(np.abs(odd) < edge, "in", "out")[clear]
        model = TableClassifier(PinvClassifier(200, random_state=0), random_state=0).fit(X[:1500], y[:1500])
        found = examine(model, X[1500:], y[1500:])
        assert found.goodness.models["network"]["roc_auc"] > 0.999
        leaks = [one for one in found.trust if one.topic == "leaks"]
        assert [one.code for one in leaks] == ([code] if code else [])
        assert all("odd" in one.detail for one in leaks)


def test_booleans_and_ordered_categories_are_shown_as_they_are_written():
    flag = pandas.Series(RANDOM.random(2 * N) > 0.5)
    grade = pandas.Series(
        pandas.Categorical(RANDOM.choice(["poor", "fair", "good"], 2 * N), ["poor", "fair", "good"], True)
    )
    frame = pandas.DataFrame({"flag": flag.astype("boolean").mask(RANDOM.random(2 * N) < 0.1), "grade": grade})
    y = 2.0 * flag + grade.cat.codes + 0.1 * RANDOM.standard_normal(2 * N)
    model = TableRegressor(PinvRegressor(20, random_state=0), random_state=0).fit(frame[:N], y[:N])
    found = examine(model, frame[N:], y[N:], frame[:N], y[:N])
    values = {one.column: (one.kind, one.values) for one in found.effects}
    assert values == {"flag": ("category", ["False", "True"]), "grade": ("category", ["poor", "fair", "good"])}
    groups = {one.column: set(one.groups) for one in found.along}
    assert groups == {"flag": {"False", "True", "(gap)"}, "grade": {"poor", "fair", "good"}}
    assert {value for row in found.worst for _, value, _ in row.reasons} <= groups["flag"] | groups["grade"]


def test_texts_of_few_rows_are_not_compared():
    rings = pandas.DataFrame({"ring": [f"N{i // 8}" for i in range(2 * N)], "size": FRAME["size"]})
    model = TableRegressor(PinvRegressor(20, random_state=0), random_state=0).fit(rings[::2], PRICE[::2])
    found = examine(model, rings[1::2], PRICE[1::2])
    assert "ring" in found.ranking.columns
    assert [one.column for one in found.along] == ["size"]


def test_values_beyond_training_are_counted(regressor):
    far = HELD.assign(size=np.where(np.arange(N) < 30, 50.0, HELD["size"]), day=TRAINED["day"].to_numpy())
    found = next(one for one in examine(regressor, far, PRICE[N:]).trust if one.topic == "beyond")
    assert (found.code, found.level) == ("some", "warn")
    assert int(found.answer.split()[1]) >= 30
    assert "size (30)" in found.detail


# --- Rows that are hard to examine -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_few_rows_are_examined_as_far_as_they_go(regressor, rows):
    found = examine(regressor, HELD[:rows], PRICE[N : N + rows])
    assert (found.ranking is None) == (rows < 3)
    assert codes(found)["rows"] == "few"
    assert "a first impression" in render(found)


def test_constant_columns_and_targets_and_gaps_leave_an_answer(regressor):
    flat = HELD.assign(size=1.0, town=None, noise=np.nan)
    found = examine(regressor, flat, PRICE[N:])
    assert "size" not in [one.column for one in found.effects]
    assert examine(regressor, HELD, np.ones(N)).ranking is None
    assert "at least two different targets" in render(examine(regressor, HELD, np.ones(N)))
    with pytest.raises(ValueError, match="one target for each"):
        examine(regressor, HELD, np.ones((N, 2)))


def test_labels_that_the_model_does_not_know_count_as_wrong():
    X = RANDOM.standard_normal((150, 3))
    y = np.where(X[:, 0] > 0, "b", "a")
    model = PinvClassifier(10, calibrate="loo", random_state=0).fit(X, y)
    new = np.where(np.arange(150) < 20, "c", y)
    found = examine(model, X, new)
    assert found.error >= 20 / 150
    assert sum(row.true == "c" for row in found.worst) == 10
    assert found.ranking.columns[0] == "x0"


def test_networks_pipelines_and_models_without_probabilities_are_examined():
    X = RANDOM.standard_normal((120, 4))
    y = np.sin(X[:, 1])
    network = PinvRegressor(30, random_state=0)
    alone = examine(network.fit(X[:80], y[:80]), X[80:], y[80:], X[:80], y[:80])
    assert alone.ranking.columns[0] == "x1"
    assert set(alone.goodness.models) == {"network", "baseline (mean)", "linear model", "gradient boosting"}
    piped = examine(
        make_pipeline(StandardScaler(), PinvRegressor(30, random_state=0)).fit(X[:80], y[:80]), X[80:], y[80:]
    )
    assert piped.ranking.columns[0] == "x1"
    assert set(piped.goodness.models) == {"network", "baseline (mean)"}
    labels = np.where(y > 0, 1, 0)
    found = examine(TikhonovClassifier().fit(X[:80], labels[:80]), X[80:], labels[80:])
    assert found.ranking.columns[0] == "x1"


@pytest.mark.parametrize(
    "network", [Ridge(), LinearSVC(), LogisticRegression(), VotingClassifier([("one", LinearSVC())])], ids=str
)
@pytest.mark.parametrize("classes", [2, 3])
def test_other_estimators_behind_a_coder_have_a_page_without_reasons(network, classes, rng):
    X = pandas.DataFrame(rng.standard_normal((200, 2)), columns=["u", "v"])
    regression = isinstance(network, Ridge)
    y = X["u"] + 0.3 * rng.standard_normal(200)
    y = y if regression else np.digitize(y, [0.0] if classes == 2 else [-0.5, 0.5])
    model = (TableRegressor if regression else TableClassifier)(network, random_state=0).fit(X[:100], y[:100])
    found = examine(model, X[100:], y[100:])
    assert found.ranking.columns[0] == "u"
    assert [one.column for one in found.effects] == ([] if isinstance(network, VotingClassifier) else ["u", "v"])
    assert len(found.worst) > 1
    assert found.reasons_in == ""
    assert not any(row.reasons for row in found.worst)
    page = render(found)
    assert "The rows with the largest errors" in page
    assert "Below each row" not in page
    assert ("Nothing can be shown" in page) == isinstance(network, VotingClassifier)


def test_targets_with_gaps_are_refused_in_a_sentence():
    X = pandas.DataFrame({"x": np.arange(60) + 0.5})
    labels = np.array(["a", "b"] * 30, dtype=object)
    model = TableClassifier(LogisticRegression(), random_state=0).fit(X, labels)
    labels[[3, 9]] = None
    with pytest.raises(ValueError, match=r"^y has 2 gaps: leave out the rows without a target\.$"):
        examine(model, X, labels)
    with pytest.raises(ValueError, match="y has 1 gap: leave out"):
        examine(PinvRegressor(5, random_state=0).fit(X, X["x"]), X, X["x"].where(X["x"] > 1.0))


def test_of_many_rows_a_sample_is_examined(monkeypatch, regressor):
    monkeypatch.setattr("ocrep.report.examination.MOST_ROWS", 100)
    found = examine(regressor, HELD, PRICE[N:])
    assert found.n_rows == 100
    assert found.goodness.n_test == N


def test_rows_of_a_table_keep_names_values_and_gaps(regressor):
    rows = ReadableRows.of(regressor, HELD)
    at = rows.names.index("town")
    assert rows.kinds[at] == "category"
    assert rows.gaps[at].sum() == HELD["town"].isna().sum()
    assert rows.text("town", int(np.argmax(rows.gaps[at]))) == "(gap)"
    assert rows.text("day", 0) == str(HELD["day"].iloc[0].date())
    assert rows.members("size") == ["size"]
    assert rows.members("size + noise") == ["size", "noise"]


# --- The page --------------------------------------------------------------------------------------------------------

QUESTIONS = [
    "How good is it?",
    "Which columns matter?",
    "What does each column do?",
    "Where is it wrong?",
    "Can I trust it?",
    "How was it made?",
]


def headings(page):
    return re.findall(r"<h2 [^>]*>([^<]*)</h2>", page)


def test_the_page_answers_in_the_order_of_the_questions(examined, labelled):
    for found in (examined, labelled):
        page = render(found)
        assert headings(page) == QUESTIONS
        assert len(page.encode()) < 1_000_000
        assert "<script" not in page  # without the laboratory nothing moves
        assert all(finding.answer in page.replace("&#34;", '"') for finding in found.trust)
        assert len(re.findall(r'class="reasons"', page)) == len(found.worst)
    network = PinvRegressor(20, random_state=0)
    X, y = FRAME[["size", "same"]].to_numpy(), PRICE.to_numpy()
    page = render(diagnose(network, X[:N], y[:N], X[N:], y[N:], rules=["ocrep"]))
    assert headings(page) == [*QUESTIONS, "The laboratory of γ"]
    assert headings(render(diagnose(network, X, y, rules=["ocrep"]))) == [QUESTIONS[0], "The laboratory of γ"]


def test_names_and_texts_of_a_table_stay_text(tmp_path):
    evil = '<img src=x onerror=alert(1)>\x1b[2J"&'
    frame = FRAME.rename(columns={"size": evil}).assign(
        town=FRAME["town"].map({"Oslo": evil, "Bergen": "<b>", "Bodø": "'"})
    )
    model = TableClassifier(PinvClassifier(10, calibrate="loo", random_state=0), random_state=0)
    labels = np.where(LABEL == "dear", evil, LABEL)
    found = examine(model.fit(frame[:N], labels[:N]), frame[N:], labels[N:], title=evil)
    write_report(found, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<img" not in page
    assert "<b>" not in page
    assert "\x1b" not in page
    assert "&lt;img" in page
    assert "<img" not in found._repr_html_()


def test_long_names_are_cut(regressor):
    long = "x" * 5000
    frame = FRAME.rename(columns={"size": long})
    model = TableRegressor(PinvRegressor(10, random_state=0), random_state=0).fit(frame[:N], PRICE[:N])
    assert len(render(examine(model, frame[N:], PRICE[N:])).encode()) < 200_000


def test_json_says_the_same_and_is_strict(examined):
    found = json.loads(examined.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert found["ranking"]["columns"] == examined.ranking.columns
    assert found["worst"][0]["row"] == examined.worst[0].row
    assert [finding.question for finding in examined.findings()][:2] == ["Is it good?", "Which columns matter?"]
    for finding in examined.findings():
        assert finding.question in examined._repr_html_()
