"""`explain.importance` equals scikit-learn's permutation importance, names twins together, tells its uncertainty."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import permutation_importance
from sklearn.metrics import log_loss, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocrep import (
    PinvClassifier,
    PinvClassifierCV,
    PinvRegressor,
    PinvRegressorCV,
    TableRegressor,
    TikhonovRegressor,
    explain,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 6))
X[:, 5] = RNG.integers(0, 3, 400)
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 5] + 0.1 * RNG.standard_normal(400)
LABELS = np.digitize(Y, [0.0, 1.5])
STACK = [
    {"n_hidden": 40, "activation": "relu", "weight_init": "pairs", "units_see": 2},
    {"n_hidden": 40, "activation": "gaussian", "weight_init": "rows", "metric": "full", "direct_link": False},
    {"n_hidden": 40, "activation": "laplace", "weight_init": "rows", "metric": "diagonal"},
    {"n_hidden": 40, "weight_init": "trees", "input_scaling": "squash"},
    {"n_hidden": 40, "activation": "sin", "input_scaling": "squash"},
]


def assert_as_scikit_learn(model, rows, y, scoring, sample_weight=None):
    found = explain.importance(
        model, rows, y, n_repeats=3, scoring=scoring, sample_weight=sample_weight, random_state=5
    )
    expected = permutation_importance(
        model, rows, y, n_repeats=3, scoring=scoring, sample_weight=sample_weight, random_state=5
    )
    by_name = dict(zip(found.frame["column"], found.frame["importance"], strict=True))
    names = list(rows.columns) if hasattr(rows, "columns") else [f"x{i}" for i in range(rows.shape[1])]
    np.testing.assert_allclose([by_name[name] for name in names], expected.importances_mean, rtol=0, atol=1e-10)
    assert (np.diff(found.frame["importance"]) <= 0).all()


@pytest.mark.parametrize("options", STACK, ids=str)
def test_single_networks(options):
    assert_as_scikit_learn(PinvRegressor(gamma=0.1, random_state=0, **options).fit(X[:200], Y[:200]), X, Y, "r2")


def test_stacks_labels_weights_and_linear_models(rng):
    weight = rng.uniform(size=400)
    stack = PinvRegressorCV(STACK, random_state=0).fit(X[:200], Y[:200])
    assert_as_scikit_learn(stack, X, Y, "neg_mean_absolute_error", weight)
    assert_as_scikit_learn(TikhonovRegressor().fit(X, Y), X, Y, None)
    labels = PinvClassifierCV(STACK[:1], random_state=0).fit(X[:200], LABELS[:200])
    assert_as_scikit_learn(labels, X, LABELS, "neg_log_loss")
    assert_as_scikit_learn(PinvClassifier(30, random_state=0).fit(X, LABELS), X, LABELS, "accuracy", weight)
    both = np.column_stack([Y, X[:, 0]])
    assert_as_scikit_learn(PinvRegressor(30, random_state=0).fit(X, both), X, both, "r2")


def test_blocks_do_not_matter(small_blocks):
    model = PinvRegressorCV(STACK, random_state=0).fit(X[:200], Y[:200])
    whole = explain.importance(model, X, Y).frame
    small_blocks(1000)
    pd.testing.assert_frame_equal(explain.importance(model, X, Y).frame, whole, rtol=1e-9)


def test_columns_of_a_table_are_permuted_with_all_their_codes(rng):
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    frame["town"] = rng.choice(["Oslo", "Bergen", "Bodø"], 400)
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 400), "D")
    y = frame["a"] + frame["town"].eq("Oslo") + frame["day"].dt.month / 10
    network = PinvRegressor(40, random_state=0)
    model = TableRegressor(network, random_state=0).fit(frame[:200], y[:200])
    assert_as_scikit_learn(model, frame, y.to_numpy(), "r2")
    forest = TableRegressor(RandomForestRegressor(20, random_state=0), random_state=0).fit(frame[:200], y[:200])
    assert_as_scikit_learn(forest, frame, y.to_numpy(), "r2")


def test_a_pipeline_is_explained_in_the_columns_that_its_last_step_reads():
    model = make_pipeline(StandardScaler(), PinvRegressor(40, random_state=0)).fit(X, Y)
    assert_as_scikit_learn(model, X, Y, "r2")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    named = make_pipeline(StandardScaler(), PinvRegressor(40, random_state=0)).fit(frame, Y)
    assert set(explain.importance(named, frame, Y).frame["column"]) == set("abcdef")


def test_twins_are_permuted_and_named_together(rng):
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    frame["log of a"] = np.log(frame["a"] + 10) + 1e-3 * rng.standard_normal(400)
    frame["town"] = rng.choice(["Oslo", "Bergen", "Bodø"], 400)
    frame["code"] = frame["town"].map({"Oslo": 3, "Bergen": 1, "Bodø": 2})
    y = frame["a"] + frame["town"].eq("Oslo")
    model = TableRegressor(PinvRegressor(60, random_state=0), random_state=0).fit(frame[:250], y[:250])
    found = explain.importance(model, frame[250:], y[250:])
    assert found.frame["column"].tolist()[:2] == ["a + log of a", "town + code"]
    assert set(found.frame["column"].tolist()[2:]) == {"b", "c"}
    alone = explain.importance(model, frame[250:], y[250:], columns=["code"])
    assert alone.frame["column"].tolist() == ["town + code"]
    row = found.frame.set_index("column").loc["town + code"]
    assert alone.frame["importance"][0] == pytest.approx(row["importance"], abs=1e-12)


def test_many_texts_of_few_rows_are_no_twins_by_chance(rng):
    frame = pd.DataFrame({"a": rng.integers(0, 30, 90), "ring": [f"N{i}" for i in rng.permutation(90) // 2]})
    frame["b"] = rng.standard_normal(90)
    y = frame["a"] + frame["b"]
    model = TableRegressor(PinvRegressor(20, random_state=0), random_state=0).fit(frame, y)
    assert set(explain.importance(model, frame, y).frame["column"]) == {"a", "ring", "b"}


def test_columns_are_not_chained_into_one_group(rng):
    base = rng.standard_normal(600)
    steps = [base]
    for _ in range(6):  # neighbours are related by about 0.95, the ends by much less
        steps.append(steps[-1] + 0.33 * rng.standard_normal(600))
    rows = np.column_stack(steps)
    model = TikhonovRegressor().fit(rows, rows.sum(axis=1))
    groups = [name.split(" + ") for name in explain.importance(model, rows, rows.sum(axis=1)).frame["column"]]
    assert max(map(len, groups)) < 6
    for group in groups:
        own = rows[:, [int(name[1:]) for name in group]]
        assert len(group) == 1 or pd.DataFrame(own).corr("spearman").to_numpy().min() > 0.9


def test_standard_errors_are_those_of_other_rows_and_permutations():
    draws = np.random.default_rng(1)

    def rows(n):
        X = draws.uniform(-1, 1, (n, 2))
        return X, X[:, 0] + 0.5 * draws.standard_normal(n)

    model = PinvRegressor(20, random_state=0).fit(*rows(500))
    found = [explain.importance(model, *rows(300), columns=[0], random_state=seed).frame for seed in range(40)]
    spread = np.std([own["importance"][0] for own in found])
    said = np.mean([own["std_error"][0] for own in found])
    assert 0.6 < said / spread < 1.7


def test_scores_and_defaults():
    model = PinvRegressor(30, random_state=0).fit(X, Y)
    found = explain.importance(model, X, Y, n_repeats=2)
    assert (found.scoring, found.n_rows, found.n_repeats) == ("r2", 400, 2)
    assert found.score == pytest.approx(model.score(X, Y), abs=1e-12)
    labels = PinvClassifier(20, random_state=0).fit(X, LABELS)
    assert explain.importance(labels, X, LABELS).scoring == "neg_log_loss"


def test_a_model_of_logarithms_is_scored_on_its_predictions():
    frame, y = pd.DataFrame(X, columns=list("abcdef")), np.exp(Y)
    for network in (PinvRegressorCV(STACK[:2], random_state=0), RandomForestRegressor(20, random_state=0)):
        model = TableRegressor(network, target_transform="log", random_state=0).fit(frame[:200], y[:200])
        found = explain.importance(model, frame, y)
        assert found.score == pytest.approx(model.score(frame, y), abs=1e-12)
        for scoring in ("r2", "neg_mean_absolute_percentage_error"):
            assert_as_scikit_learn(model, frame, y, scoring)


def test_labels_that_these_rows_lack_have_no_loss():
    model = PinvClassifierCV(STACK[:1], random_state=0).fit(X, LABELS)
    few = LABELS != 2
    few[np.flatnonzero(LABELS == 2)[:1]] = True  # one row: some parts of the rows have none
    scoring = make_scorer(log_loss, greater_is_better=False, response_method="predict_proba", labels=[0, 1, 2])
    expected = permutation_importance(model, X[few], LABELS[few], n_repeats=3, scoring=scoring, random_state=5)
    found = explain.importance(model, X[few], LABELS[few], n_repeats=3, random_state=5).frame.set_index("column")
    names = [f"x{i}" for i in range(6)]
    np.testing.assert_allclose(found.loc[names, "importance"], expected.importances_mean, rtol=0, atol=1e-10)
    assert np.isfinite(explain.importance(model, X[LABELS == 1], LABELS[LABELS == 1]).frame["std_error"]).all()
    with pytest.raises(ValueError, match="y has the label 7, which the model was not trained on"):
        explain.importance(model, X, np.where(few, LABELS, 7))


def test_constant_columns_matter_nothing():
    rows = np.column_stack([X[:, :2], np.full(400, 7.0)])
    found = explain.importance(PinvRegressor(30, random_state=0).fit(rows, Y), rows, Y).frame.set_index("column")
    assert abs(found.loc["x2", "importance"]) < 1e-15
    assert abs(found.loc["x2", "std_error"]) < 1e-15


def test_mistakes():
    model = PinvRegressor(10, random_state=0).fit(pd.DataFrame(X, columns=list("abcdef")), Y)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    for message, arguments in {
        "give y": (frame, None),
        "y has 3 values, but X has 400 rows": (frame, Y[:3]),
        "X has 1 row, too few to permute": (frame[:1], Y[:1]),
        "y has 400 gaps": (frame, np.full(400, np.nan)),
        "All targets in y are equal": (frame, np.ones(400)),
    }.items():
        with pytest.raises(ValueError, match=message):
            explain.importance(model, *arguments)
    with pytest.raises(ValueError, match="The model knows no column 'g'"):
        explain.importance(model, frame, Y, columns=["g"])
    with pytest.raises(ValueError, match="contains NaN"):
        explain.importance(model, frame.where(frame > 0), Y)
    with pytest.raises(ValueError, match="n_repeats=0 must be a whole number"):
        explain.importance(model, frame, Y, n_repeats=0)
    with pytest.raises(ValueError, match="sample_weight has the shape"):
        explain.importance(model, frame, Y, sample_weight=np.ones(3))
    weight = np.where(np.arange(400) == 3, -1.0, 1.0)
    message = "Row 4: the weight is -1.0, but weights must be finite and ≥ 0"
    with pytest.raises(ValueError, match=message):
        PinvRegressor(10, random_state=0).fit(frame, Y, sample_weight=weight)
    with pytest.raises(ValueError, match=message):
        explain.importance(model, frame, Y, sample_weight=weight)
    with pytest.raises(TypeError, match="RandomForestRegressor is none: use"):
        explain.importance(RandomForestRegressor(2).fit(X, Y), X, Y)
