"""scikit-learn's own checks, with no expected failures, and the company estimators keep there."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.advice import some_advice
from support.contract import scikit_learn_checks
from support.problems import smooth_problem

from ocrep import (
    PinvClassifier,
    PinvClassifierCV,
    PinvRegressor,
    PinvRegressorCV,
    RandomLayer,
    TableRegressor,
    TikhonovClassifier,
    TikhonovRegressor,
    literature,
    rules,
)
from ocrep.datasets import load
from ocrep.literature import ELMClassifier
from ocrep.tables import TableCoder

VARIANTS = (
    {},
    {"n_hidden": 5},
    {"n_hidden": 20},
    {"fit_intercept": True},
    {"direct_link": True},
    {"input_scaling": None},
    {"n_hidden": 20, "fit_intercept": True, "direct_link": True, "input_scaling": None},
)
PAIRS = (
    {"weight_init": "pairs"},
    {"weight_init": "pairs", "activation": "gaussian", "input_scaling": None},
    {"weight_init": "pairs", "units_see": 2},
    {"weight_init": "trees", "gamma": "kfold"},
    {"weight_init": "pairs", "activation": "laplace", "input_scaling": "squash"},
)
ROWS = {"n_hidden": 150, "gamma": "kfold", "activation": "gaussian", "weight_init": "rows", "direct_link": False}
LAYER_VARIANTS = (
    {},
    {"n_hidden": 5},
    {"direct_link": True, "input_scaling": None},
    {"activation": "gaussian"},
    {"weight_init": "trees"},
    *PAIRS[:3],
    PAIRS[-1],
)


@scikit_learn_checks(
    [
        RandomLayer(),
        RandomLayer(**PAIRS[0]),
        *(kind(**options) for kind in (PinvRegressor, PinvClassifier) for options in ({}, VARIANTS[-1], PAIRS[0])),
        PinvRegressor(**ROWS),
        PinvRegressor(input_scaling="squash"),
        PinvClassifier(gamma="kfold"),
        PinvClassifier(calibrate="loo"),
        PinvRegressor("auto"),
        PinvClassifier("auto"),
        TikhonovRegressor(),
        TikhonovClassifier(),
    ]
)
@some_advice
@pytest.mark.filterwarnings("default")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@scikit_learn_checks(
    [
        *(RandomLayer(**options) for options in LAYER_VARIANTS[1:]),
        *(kind(**options) for kind in (PinvRegressor, PinvClassifier) for options in (*VARIANTS[1:-1], *PAIRS[1:])),
        PinvClassifier(**ROWS),
        *(kind(calibrate="loo") for kind in (PinvRegressor, TikhonovRegressor)),
        TikhonovClassifier(calibrate="loo"),
        PinvRegressor(gamma="kfold"),
        *(kind(gamma="ocrep_cv") for kind in (PinvRegressor, PinvClassifier)),
        TikhonovRegressor("ocrep", fit_intercept=False),
        *(kind(gamma) for kind in (TikhonovRegressor, TikhonovClassifier) for gamma in ("kfold", "ocrep_cv")),
    ]
)
@some_advice
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_scikit_learn_contract_with_other_parameters(estimator, check):
    check(estimator)


def test_only_tiny_layers_are_excused_from_scoring_well():
    for estimator in (PinvRegressor, PinvClassifier):
        for n_hidden, excused in ((5, True), (16, False), (200, False)):
            tags = sklearn.utils.get_tags(estimator(n_hidden))
            assert (tags.regressor_tags or tags.classifier_tags).poor_score is excused


def test_pipeline_and_grid_search():
    X, y = load("housing", return_X_y=True)
    folds = KFold(3, shuffle=True, random_state=0)
    pipeline = make_pipeline(StandardScaler(), RandomLayer(30, random_state=0), TikhonovRegressor())
    grid = GridSearchCV(
        pipeline, {"randomlayer__n_hidden": [5, 40], "tikhonovregressor__gamma": ["gcv", 1e9]}, cv=folds
    ).fit(X, y)
    assert grid.best_params_ == {"randomlayer__n_hidden": 40, "tikhonovregressor__gamma": "gcv"}
    network = GridSearchCV(
        PinvRegressor(40, random_state=0), {"gamma": ["ocrep", "gcv", rules.OCReP(floor=0.0), 1e9]}, cv=folds
    ).fit(X, y)
    assert network.best_estimator_.gamma_ < 1e9


@pytest.mark.parametrize("options", [{}, {"weight_init": "trees"}, {"metric": "diagonal"}])
def test_the_random_numbers_of_numpy_itself_serve_wherever_none_does(options):
    X, y = smooth_problem(80, 5)
    model = PinvRegressor(20, gamma="kfold", random_state=np.random, **options)
    for estimator in (model, PinvRegressorCV("quick", random_state=np.random), TableRegressor(model)):
        assert clone(estimator).get_params()["random_state"] is estimator.random_state
        assert np.isfinite(cross_val_score(estimator, X, y, cv=2)).all()
    assert clone(TableRegressor(model)).model.random_state is np.random
    for kind in (RandomLayer, ELMClassifier, TableCoder):
        assert clone(kind(random_state=np.random)).random_state is np.random
    np.random.seed(0)  # noqa: NPY002
    first = model.fit(X, y).predict(X)
    np.random.seed(0)  # noqa: NPY002
    np.testing.assert_array_equal(model.set_params(random_state=None).fit(X, y).predict(X), first)


def test_clone_keeps_rule_objects():
    model = PinvRegressor(gamma=rules.OCReP(floor=0.0), input_scaling=(0.0, 1.0))
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == "PinvRegressor(gamma=OCReP(floor=0.0), input_scaling=(0.0, 1.0))"


def test_what_a_fitted_model_holds_is_printed_in_one_short_line():
    X, y = smooth_problem(300, 30)
    model = PinvClassifier(60, calibrate="loo", random_state=0).fit(X, np.digitize(y, np.quantile(y, [0.2, 0.4, 0.8])))
    held = [model, model.factor_, model.folds_, model.spectrum_, model.choice_, model.choice_.curve, model.layer_]
    for value in (*held, model.layer_.map_, model.calibrator_, rules.KFold(n_folds=7)):
        assert repr(value).startswith(type(value).__name__)
        assert len(repr(value).splitlines()) == 1
        assert len(repr(value)) <= 450


def test_feature_names_are_checked():
    X, y = smooth_problem(40, 5)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = PinvRegressor(10, random_state=0).fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c", "d", "e"]])
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame.rename(columns={"a": "z"}), y)


@pytest.mark.usefixtures("routing")
def test_metadata_routing_carries_weights():
    X, y = smooth_problem(60, 5)
    w = np.r_[np.ones(30), np.zeros(30)]
    model = PinvRegressor(10, random_state=0, input_scaling=None).set_fit_request(sample_weight=True)
    pipeline = make_pipeline(
        StandardScaler(with_mean=False, with_std=False).set_fit_request(sample_weight=False), model
    )
    routed = pipeline.fit(X, y, sample_weight=w).predict(X)
    np.testing.assert_allclose(routed, clone(model).fit(X[:30], y[:30]).predict(X), rtol=1e-6)
    scores = cross_val_score(model.set_score_request(sample_weight=True), X, y, params={"sample_weight": np.ones(60)})
    assert scores.shape == (5,)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_kinds():
    assert is_regressor(PinvRegressor())
    assert is_classifier(TikhonovClassifier())


ESTIMATORS = (PinvRegressor, PinvClassifier, PinvRegressorCV, PinvClassifierCV, TikhonovRegressor, TikhonovClassifier)


@pytest.mark.parametrize(
    "kind", [*ESTIMATORS, RandomLayer, *(getattr(literature, name) for name in literature.__all__)]
)
def test_the_html_representation_explains_every_parameter_and_links_to_a_page_of_the_site(kind):
    estimator = kind()
    shown = estimator._repr_html_()
    assert shown.count('class="param-doc-link"') == len(estimator.get_params(deep=False)) > 3
    site, name = "https://ocrep.github.io/ocrep/api/", kind.__name__
    pages = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text(encoding="utf-8").split()
    page = name if name in pages else f"literature.{name}"
    assert page.split(".")[0] in pages
    assert f'href="{site}ocrep.{page}.html"' in shown


def test_classes_of_users_have_no_page():
    class Mine(PinvRegressor):
        pass

    assert "ocrep.github.io" not in Mine()._repr_html_()


@pytest.mark.parametrize("kind", [RandomLayer, PinvRegressor, PinvClassifier, literature.ELMRegressor])
def test_a_generator_is_a_random_state(kind):
    """It gives the numbers of its bits, moves on with each fit as a RandomState does, and can be cloned."""
    X, y = smooth_problem(60, 4)
    y = (y > 0).astype(int) if is_classifier(kind()) else y
    bits = np.random.RandomState(np.random.PCG64(7))
    model, other = kind(5, random_state=np.random.default_rng(7)), kind(5, random_state=bits)
    copied = clone(model)
    layers = [getattr(some.fit(X, y), "layer_", some).weights_ for some in (model, other, model, other, copied)]
    np.testing.assert_array_equal(layers[0], layers[1])
    np.testing.assert_array_equal(layers[2], layers[3])
    np.testing.assert_array_equal(layers[0], layers[4])
    assert not np.array_equal(layers[0], layers[2])


def test_a_search_takes_one_seed_from_a_generator_for_all_candidates():
    X, y = smooth_problem(60, 4)
    first, second = (
        PinvRegressorCV([{"n_hidden": 4}, {"n_hidden": 8}], random_state=np.random.default_rng(3), ensemble=False).fit(
            X, y
        )
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.layer_.weights_, second.layer_.weights_)
    assert first.gamma_ == second.gamma_
