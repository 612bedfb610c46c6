"""Displays: scikit-learn's convention, and that what is drawn is what the model says."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.pages import run_page
from support.problems import smooth_problem

from ocrep import (
    ConditionDisplay,
    GainDisplay,
    GammaPathDisplay,
    HiddenSizeDisplay,
    PinvClassifier,
    PinvRegressor,
    SpectrumDisplay,
    TikhonovRegressor,
    hidden_size_path,
)

X, Y = smooth_problem(150, 5)
X_TEST, Y_TEST = smooth_problem(60, 5, seed=1)
ONE_MODEL = [SpectrumDisplay, GainDisplay, ConditionDisplay]


@pytest.fixture(autouse=True)
def closed_figures():
    mpl.use("Agg")
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def model():
    return PinvRegressor(40, gamma="ocrep", random_state=0).fit(X, Y)


def drawn(kind, model, **options):
    return kind.from_estimator(model, **options) if kind in ONE_MODEL else kind.from_estimator(model, X, Y, **options)


def labels(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("kind", [*ONE_MODEL, GammaPathDisplay, HiddenSizeDisplay])
def test_a_pipeline_is_drawn_as_its_network_is_on_the_rows_it_sees(kind):
    scaler, network = StandardScaler(), PinvRegressor(40, random_state=0)
    pipeline = make_pipeline(scaler, network).fit(X, Y)
    alone = PinvRegressor(40, random_state=0).fit(StandardScaler().fit_transform(X), Y)
    Z = StandardScaler().fit_transform(X)
    one = drawn(kind, pipeline)
    other = kind.from_estimator(alone) if kind in ONE_MODEL else kind.from_estimator(alone, Z, Y)
    for mine, its in zip(one.ax_.get_lines(), other.ax_.get_lines(), strict=True):
        np.testing.assert_allclose(mine.get_xydata(), its.get_xydata(), rtol=1e-6)


def test_the_test_rows_of_a_pipeline_and_one_of_a_single_step():
    pipeline = make_pipeline(StandardScaler(), PinvRegressor(20, gamma=0.1, random_state=0)).fit(X, Y)
    display = GammaPathDisplay.from_estimator(pipeline, X, Y, rules=[0.1], X_test=X_TEST, y_test=Y_TEST)
    at = int(np.argmin(np.abs(display.gammas - 0.1)))
    rmse = np.sqrt(np.mean((pipeline.predict(X_TEST) - Y_TEST) ** 2))
    assert display.errors["test"][at] == pytest.approx(rmse)
    single = make_pipeline(PinvRegressor(20, random_state=0)).fit(X, Y)
    assert len(GainDisplay.from_estimator(single).sigma) == 25


def test_steps_that_are_not_fitted_are_fitted_as_copies():
    pipeline = make_pipeline(StandardScaler(), PinvRegressor(20, random_state=0))
    display = HiddenSizeDisplay.from_estimator(pipeline, X, Y)
    expected = HiddenSizeDisplay.from_estimator(pipeline[-1], StandardScaler().fit_transform(X), Y)
    np.testing.assert_allclose(display.cv_error, expected.cv_error)
    assert not hasattr(pipeline[0], "scale_")
    with pytest.raises(NotFittedError):
        GainDisplay.from_estimator(pipeline)


@pytest.mark.parametrize("kind", [*ONE_MODEL, GammaPathDisplay, HiddenSizeDisplay])
def test_displays_keep_scikit_learns_convention(kind, model):
    from matplotlib import pyplot

    _, ax = pyplot.subplots()
    display = drawn(kind, model, ax=ax, linewidth=7.5)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert any(line.get_linewidth() == 7.5 for line in ax.get_lines())
    again = display.plot()
    assert again is display
    assert display.ax_ is not ax
    assert display.ax_.get_xlabel()
    assert display.ax_.get_ylabel()


@pytest.mark.parametrize("kind", [*ONE_MODEL, GammaPathDisplay])
def test_an_unfitted_model_is_refused(kind):
    with pytest.raises(NotFittedError):
        drawn(kind, PinvRegressor(5))


@pytest.mark.parametrize("kind", ONE_MODEL)
def test_nothing_but_zeros_is_refused(kind):
    zero = TikhonovRegressor(gamma="none", fit_intercept=False).fit(np.zeros((5, 2)), np.arange(5.0))
    with pytest.raises(ValueError, match="All features are zero"):
        kind.from_estimator(zero)


def test_spectrum_shows_every_singular_value_and_its_levels(model):
    display = SpectrumDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.line_.get_ydata(), model.singular_values_)
    sigma_1 = model.singular_values_[0]
    assert display.floor == pytest.approx(np.sqrt(np.finfo(float).eps) * sigma_1)
    assert display.tolerance == pytest.approx(64 * np.finfo(float).eps * sigma_1)
    heights = [line.get_ydata()[0] for line in display.ax_.get_lines()[1:]]
    np.testing.assert_allclose(heights, [np.sqrt(model.gamma_), display.floor, display.tolerance])
    plain = SpectrumDisplay.from_estimator(model.with_gamma("none"))
    assert not any("√γ" in label for label in labels(plain))


def test_gain_has_the_points_of_this_h_on_its_curve(model):
    display = GainDisplay.from_estimator(model)
    sigma, gain = display.points_.get_data()
    np.testing.assert_allclose(gain, sigma / (sigma**2 + model.gamma_))
    fine, curve = display.line_.get_data()
    np.testing.assert_allclose(curve, fine / (fine**2 + model.gamma_))
    assert fine[0] < sigma.min() < sigma.max() < fine[-1]
    # The gain is largest where σ² = γ, and there it is 1/(2σ).
    assert curve.max() == pytest.approx(1 / (2 * np.sqrt(model.gamma_)), rel=1e-3)


def test_condition_is_least_at_ocrep(model):
    display = ConditionDisplay.from_estimator(model.with_gamma("gcv"))
    gamma, least = display.best
    assert gamma == pytest.approx(model.singular_values_[0] * model.singular_values_[model.rank_ - 1])
    assert least == display.line_.get_ydata().min()
    assert display.chosen[0] == model.with_gamma("gcv").gamma_
    assert display.chosen[0] in display.gammas
    assert "chosen γ" in labels(display)
    assert "chosen γ" not in labels(ConditionDisplay.from_estimator(model.with_gamma("none")))


def test_gamma_path_equals_refitting(model):
    display = GammaPathDisplay.from_estimator(model, X, Y, X_test=X_TEST, y_test=Y_TEST, rules=["ocrep", "none", 0.25])
    assert [choice.rule for choice in display.choices] == ["ocrep", "none", "0.25"]
    assert list(display.lines_) == ["training", "cross-validation", "test"]
    for i in range(0, len(display.gammas), 11):
        fitted = PinvRegressor(40, gamma=float(display.gammas[i]), random_state=0).fit(X, Y)
        for name, x, y in (("training", X, Y), ("test", X_TEST, Y_TEST)):
            direct = np.sqrt(np.mean((fitted.predict(x) - y) ** 2))
            assert display.lines_[name].get_ydata()[i] == pytest.approx(direct, rel=1e-6)
    assert display.ax_.get_ylabel() == "RMSE"
    marks = {mark.get_label(): mark.get_xdata()[0] for mark in display.ax_.get_lines()}
    assert (marks["ocrep"], marks["0.25"]) == (model.gamma_, 0.25)
    assert marks["none"] == display.gammas[0]  # γ = 0 has no place on a logarithmic axis
    assert {"ocrep", "none", "0.25"} <= set(labels(display))


def test_gamma_path_is_the_same_with_folds_kept_or_made_again(model):
    kept = PinvRegressor(40, store_folds=True, random_state=0).fit(X, Y)
    errors = [GammaPathDisplay.from_estimator(m, X, Y).errors["cross-validation"] for m in (model, kept)]
    np.testing.assert_allclose(*errors, rtol=1e-9)


def test_gamma_path_leaves_out_rules_that_do_not_apply():
    few = TikhonovRegressor(gamma="ocrep", fit_intercept=False).fit(X[:1], Y[:1])
    display = GammaPathDisplay.from_estimator(few, X[:1], Y[:1], rules=["kfold", "ocrep"])
    assert [choice.rule for choice in display.choices] == ["ocrep"]
    assert np.isnan(display.errors["cross-validation"]).all()
    none = GammaPathDisplay.from_estimator(few, X[:1], Y[:1], rules=["kfold"])
    assert none.choices == []


def test_gamma_path_refuses_other_rows_than_those_of_training(model):
    with pytest.raises(ValueError, match="trained on 150 rows, and 149 are given"):
        GammaPathDisplay.from_estimator(model, X[1:], Y[1:])
    with pytest.raises(ValueError, match="both X_test and y_test"):
        GammaPathDisplay.from_estimator(model, X, Y, X_test=X)


def test_a_huge_error_does_not_flatten_the_rest():
    errors = {"training": np.ones(3), "cross-validation": np.array([1e9, 2.0, 3.0])}
    display = GammaPathDisplay(np.array([1e-3, 1.0, 10.0]), errors).plot()
    assert display.ax_.get_ylim()[1] == pytest.approx(8.0)


def test_classifiers_count_rows():
    y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    fitted = PinvClassifier(20, random_state=0).fit(X, y)
    display = GammaPathDisplay.from_estimator(fitted, X, y, X_test=X_TEST, y_test=np.where(Y_TEST > 0, "yes", "no"))
    assert display.ax_.get_ylabel() == "share misclassified"
    at = int(np.argmin(np.abs(display.gammas - fitted.gamma_)))
    assert display.errors["training"][at] == pytest.approx(1 - fitted.score(X, y))
    sizes = HiddenSizeDisplay.from_estimator(fitted, X, y, sizes=[3, 9])
    assert "±1" in sizes.ax_.get_ylabel()


def test_hidden_sizes_are_those_of_the_path(model):
    display = HiddenSizeDisplay.from_estimator(model, X, Y)
    assert display.sizes.tolist() == list(range(1, 41))
    table = hidden_size_path(X, Y, sizes=[7, 20], gamma="ocrep", random_state=0)
    np.testing.assert_allclose(display.cv_error[[6, 19]], table["cv_error"])
    best = display.sizes[np.argmin(display.cv_error)]
    assert labels(display) == [f"least at {best} units"]


def test_hidden_sizes_of_a_wide_or_automatic_layer_are_thinned_out():
    wide = HiddenSizeDisplay.from_estimator(PinvRegressor(120, random_state=0), X, Y)
    assert wide.sizes[0] == 1
    assert wide.sizes[-1] == 120
    assert len(wide.sizes) <= 60
    auto = HiddenSizeDisplay.from_estimator(PinvRegressor("auto", max_hidden=9, random_state=0), X, Y)
    assert auto.sizes[-1] == 9


def test_hidden_sizes_need_hidden_units_and_may_all_be_unknown():
    with pytest.raises(ValueError, match="TikhonovRegressor has no hidden units"):
        HiddenSizeDisplay.from_estimator(TikhonovRegressor(), X, Y)
    unknown = HiddenSizeDisplay(np.array([1, 2]), np.full(2, np.nan)).plot()
    assert unknown.ax_.get_legend() is None


def test_a_missing_matplotlib_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"ocrep\[plot\]"):
        GainDisplay.from_estimator(model)


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_page("docs/displays.md", capsys) == 4
    assert {file.name for file in tmp_path.iterdir()} == {"displays.png", "penguins.html", "report.html"}


def test_drawing_libraries_are_loaded_only_to_draw():
    code = "import sys, ocrep.displays, ocrep.report; print({'matplotlib', 'jinja2'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "set()"
