"""The core and the estimators on arrays of another library, on a device from which NumPy cannot read.

`OCREP_ARRAYS=torch` runs the same tests on torch, on the GPU if there is one, and `OCREP_ARRAYS=jax` on JAX.
"""

import os
import subprocess
import sys
from pathlib import Path

import array_api_strict as strict
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from support.advice import some_advice
from support.device import DEVICE, LIBRARY, on_device, to_numpy, xp
from support.problems import random_problem
from support.routes import factored, problem
from support.weights import weights_of

from ocrep import Factor, PinvClassifier, PinvRegressor, RandomLayer, TikhonovClassifier, TikhonovRegressor, rules
from ocrep.serialization import ModelFileError, save_model


@pytest.mark.skipif(
    LIBRARY == "jax" or (LIBRARY == "torch" and DEVICE.type == "cpu"), reason="NumPy reads the CPU, and JAX anywhere"
)
def test_numpy_cannot_read_the_device():
    with pytest.raises((RuntimeError, TypeError), match="device"):
        np.asarray(on_device([1.0, 2.0]))


@some_advice
@pytest.mark.parametrize("name", rules.names())
@pytest.mark.parametrize("intercept", [False, True])
def test_factor_spectrum_and_rules_stay_on_the_device(name, intercept):
    rule = rules.Discrepancy(noise=1.0) if name == "discrepancy" else rules.resolve(name)
    H, T = random_problem(60, 6)
    T += np.random.default_rng(1).standard_normal(T.shape)
    w = np.random.default_rng(0).uniform(0.5, 2, 60)
    answers = []
    for convert in (np.asarray, on_device):
        model = TikhonovRegressor(rule, fit_intercept=intercept).fit(convert(H), convert(T), convert(w))
        halves = [
            Factor.of(convert(H[a:b]), convert(T[a:b]), sample_weight=convert(w[a:b]), intercept=intercept)
            for a, b in ((0, 35), (35, 60))
        ]
        arrays = list(model.predict(convert(H), return_std=True))
        for factor in (model.factor_, halves[0].merge(halves[1])):
            spectrum = factor.spectrum()
            arrays += [
                spectrum.weights(model.gamma_),
                spectrum.intercept(model.gamma_),
                spectrum.gain(model.gamma_),
                spectrum.condition(model.gamma_),
                spectrum.norm(model.gamma_),
                spectrum.rss(model.gamma_),
                spectrum.dof(model.gamma_),
                spectrum.singular_values,
                factor.leading(3).spectrum().weights(model.gamma_),
            ]
        curve = model.choice_.curve
        answers.append((model.gamma_, arrays + ([] if curve is None else [curve.gammas, curve.criterion])))
    host, device = answers
    assert device[0] == pytest.approx(host[0], rel=1e-5, abs=0)
    for expected, array in zip(host[1], device[1], strict=True):
        np.testing.assert_allclose(to_numpy(array), expected, rtol=1e-4, atol=1e-12)


@some_advice
def test_misclassified_rows_are_counted_on_the_device():
    H, T = random_problem(60, 6)
    labels = (T[:, 0] > 0).astype(int)
    model = TikhonovClassifier(rules.KFold(scoring="error"))
    here, there = (model.fit(convert(H), convert(labels)).gamma_ for convert in (np.asarray, on_device))
    assert there == pytest.approx(here, rel=1e-9)


@pytest.mark.parametrize(
    "activation", ["gaussian", "hardlimit", "identity", "laplace", "relu", "sigmoid", "sin", "tanh"]
)
@pytest.mark.parametrize("direct_link", [False, True])
@pytest.mark.parametrize("scaling", ["minmax", "squash"])
def test_the_hidden_layer_stays_on_the_device(activation, direct_link, scaling):
    X = np.random.default_rng(0).uniform(-3, 5, size=(10, 4))
    options = {"activation": activation, "direct_link": direct_link, "input_scaling": scaling}
    layer = RandomLayer(7, random_state=0, **options).fit(X)
    moved = layer.map_.to_device_of(on_device(X))
    np.testing.assert_allclose(to_numpy(moved(on_device(X))), layer.transform(X), rtol=1e-12, atol=1e-15)


def rows_of(task, n=240):
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 3, size=(n, 4))
    signal = np.sin(X[:, 0]) + X[:, 1]
    if task == "classes":
        y = np.digitize(signal, [-0.5, 1.0]) * 2 - 1  # labels −1, 1, 3
    elif task == "two classes":
        y = (signal > 0.3).astype(int) + 5
    else:
        y = signal + 0.1 * rng.standard_normal(n)
        y = np.column_stack([y, -(y**2)]) if task == "two targets" else y
    return X, y, rng.integers(0, 4, n) * 0.5


ESTIMATORS = [
    (PinvRegressor(20, random_state=0), "one target"),
    (PinvRegressor(20, gamma="gcv", fit_intercept=True, random_state=0), "two targets"),
    (PinvRegressor(20, gamma="kfold", direct_link=True, activation="gaussian", random_state=0), "one target"),
    (PinvRegressor(20, gamma="loo", input_scaling=None, activation="tanh", random_state=0), "one target"),
    (PinvRegressor("auto", max_hidden=40, random_state=0), "one target"),
    (TikhonovRegressor("gcv"), "two targets"),
    (TikhonovRegressor(), "one target"),
    (PinvClassifier(20, random_state=0), "classes"),
    (PinvClassifier(20, class_weight="balanced", random_state=0), "two classes"),
    (TikhonovClassifier(class_weight={1: 2.0}), "classes"),
]


@some_advice
@pytest.mark.parametrize(("model", "task"), ESTIMATORS)
@pytest.mark.parametrize("weighted", [False, True])
def test_estimators_learn_and_predict_on_the_device(model, task, weighted):
    X, y, w = rows_of(task)
    w = w if weighted else None
    host = model.fit(X, y, sample_weight=w)
    expected = host.predict(X)
    gamma, coef = host.gamma_, weights_of(host)
    there = model.fit(on_device(X), on_device(y), sample_weight=None if w is None else on_device(w))
    # A searched γ is known to √ε only: its criterion is flat at the minimum.
    assert there.gamma_ == pytest.approx(gamma, rel=1e-5)
    np.testing.assert_allclose(to_numpy(weights_of(there)), coef, rtol=1e-5, atol=1e-5 * np.abs(coef).max())
    np.testing.assert_allclose(to_numpy(there.predict(on_device(X))), expected, rtol=1e-5, atol=1e-6)


def test_standard_deviations_scores_and_streams_stay_on_the_device():
    X, y, _ = rows_of("one target")
    host = PinvRegressor(15, input_scaling=(-2, 3), random_state=0).fit(X, y)
    streamed = PinvRegressor(15, input_scaling=(-2, 3), random_state=0)
    for part in (slice(0, 100), slice(100, 240)):
        streamed.partial_fit(on_device(X[part]), on_device(y[part]))
    for expected, array in zip(host.predict(X, True), streamed.predict(on_device(X), True), strict=True):
        np.testing.assert_allclose(to_numpy(array), expected, rtol=1e-9, atol=1e-12)
    X, y, _ = rows_of("classes")
    host = PinvClassifier(15, input_scaling=(-2, 3), random_state=0).fit(X, y)
    streamed = PinvClassifier(15, input_scaling=(-2, 3), random_state=0)
    for part in (slice(0, 100), slice(100, 240)):
        streamed.partial_fit(on_device(X[part]), on_device(y[part]), classes=[-1, 1, 3])
    scores = to_numpy(streamed.decision_function(on_device(X)))
    np.testing.assert_allclose(scores, host.decision_function(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", ["classes", "two classes"])
def test_probabilities_are_calibrated_on_the_device(task, weighted):
    X, y, w = rows_of(task)
    w = w if weighted else None
    for model in (PinvClassifier(15, calibrate="loo", random_state=0), TikhonovClassifier("loo", calibrate="loo")):
        expected = model.fit(X, y, w).predict_proba(X), model.decision_function(X), model.predict(X)
        there = model.fit(on_device(X), on_device(y), None if w is None else on_device(w))
        found = there.predict_proba(on_device(X)), there.decision_function(on_device(X)), there.predict(on_device(X))
        for host, device in zip(expected, found, strict=True):
            np.testing.assert_allclose(to_numpy(device), host, rtol=1e-5, atol=1e-5)
        single = there.predict_proba(on_device(X, xp.float32))
        assert single.dtype == xp.float32
        np.testing.assert_allclose(to_numpy(single), expected[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("task", ["one target", "two targets"])
def test_intervals_are_calibrated_on_the_device(task):
    X, y, w = rows_of(task)
    for model in (PinvRegressor(15, calibrate="loo", random_state=0), TikhonovRegressor("loo", calibrate="loo")):
        expected = model.fit(X, y, w).predict_interval(X, 0.8)
        found = model.fit(on_device(X), on_device(y), on_device(w)).predict_interval(on_device(X), 0.8)
        np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-5, atol=1e-5)


@some_advice
@pytest.mark.parametrize(("model", "task"), ESTIMATORS)
def test_targets_and_weights_on_the_host_follow_the_rows(model, task):
    X, y, w = rows_of(task)
    there = weights_of(model.fit(on_device(X), on_device(y), sample_weight=on_device(w)))
    for targets, weight in (
        (y, w),
        (y.tolist(), w.tolist()),
        (y.astype(np.float32 if y.dtype == float else np.int8), w),
    ):
        coef = weights_of(model.fit(on_device(X), targets, sample_weight=weight))
        rtol = 1e-12 if np.array_equal(targets, y) else 1e-4
        np.testing.assert_allclose(
            to_numpy(coef), to_numpy(there), rtol=rtol, atol=rtol * np.abs(to_numpy(there)).max()
        )


def test_later_targets_and_weights_follow_the_rows_too():
    X, y, w = rows_of("one target")
    ours, there = TikhonovRegressor(), TikhonovRegressor()
    for part in (slice(0, 100), slice(100, 240)):
        ours.partial_fit(on_device(X[part]), y[part], w[part])
        there.partial_fit(on_device(X[part]), on_device(y[part]), on_device(w[part]))
    np.testing.assert_array_equal(to_numpy(weights_of(ours)), to_numpy(weights_of(there)))


def test_single_precision_in_gives_single_precision_out():
    X, y, _ = rows_of("one target")
    X = X.astype(np.float32)
    model = PinvRegressor(15, random_state=0).fit(on_device(X, xp.float32), on_device(y))
    predicted = model.predict(on_device(X, xp.float32))
    assert predicted.dtype == xp.float32
    np.testing.assert_allclose(to_numpy(predicted), PinvRegressor(15, random_state=0).fit(X, y).predict(X), rtol=1e-5)
    assert to_numpy(RandomLayer(3, random_state=0).fit_transform(on_device(X, xp.float32))).dtype == np.float32


@pytest.mark.parametrize("precision", [xp.float32, xp.float64])
@pytest.mark.parametrize("single", [False, True])
def test_features_of_ones_own_may_have_another_precision_than_the_weights(precision, single):
    X, y, _ = rows_of("one target")
    X = X.astype(np.float32)
    model = TikhonovRegressor().fit(on_device(X), on_device(y))
    model = model.as_float32() if single else model
    predicted, deviations = model.predict(on_device(X, precision), return_std=True)
    assert predicted.dtype == deviations.dtype == precision
    expected = TikhonovRegressor().fit(X.astype(float), y).predict(X.astype(float), return_std=True)
    np.testing.assert_allclose(to_numpy(predicted), expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(to_numpy(deviations), expected[1], rtol=1e-5)


def test_what_needs_the_host_says_so(tmp_path):
    X, y, _ = rows_of("one target")
    model = PinvRegressor(15, random_state=0).fit(on_device(X), on_device(y))
    with pytest.raises(TypeError, match="predict_blocks reads rows on the host"):
        model.predict_blocks(on_device(X))
    for part in (model, make_pipeline(model)):
        with pytest.raises(ModelFileError, match="holds NumPy arrays only"):
            save_model(part, tmp_path / "model.skops")


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kappa", [1e2, 1e8])
def test_the_fast_routes_work_on_the_device(small_blocks, kappa, intercept):
    small_blocks(800)  # a device takes sixteen times as much
    H, T = problem(kappa, 3000, 8, n_targets=2)
    weight = np.random.default_rng(0).uniform(0.5, 2, 3000)
    models = [factored(*map(convert, (H, T, weight)), intercept=intercept) for convert in (np.asarray, on_device)]
    assert [model.route_ for model in models] == ["gram" if kappa == 1e2 else "refined"] * 2
    here, there = (model.spectrum_ for model in models)
    np.testing.assert_allclose(to_numpy(there.sigma), here.sigma, rtol=1e-6)
    np.testing.assert_allclose(to_numpy(there.residual), here.residual, rtol=1e-8)


def mistakes():
    X, y, _ = rows_of("one target", 30)
    here, targets = on_device(X), on_device(y)
    fitted = PinvRegressor(5, random_state=0).fit(here, targets)
    on_host = PinvRegressor(5, random_state=0).fit(X, y)
    labels = on_device(np.arange(30) % 2)
    yield "y holds texts or objects", lambda: PinvClassifier(5).fit(here, ["a", "b"] * 15)
    yield "X has 30 rows, but sample_weight", lambda: PinvRegressor(5).fit(here, targets, sample_weight=np.ones(20))
    same = r"must use the same namespace and device as in training, which was on"
    yield rf"X of PinvRegressor\.predict\(\) {same}", lambda: fitted.predict(X)
    yield rf"X of PinvRegressor\.partial_fit\(\) {same}", lambda: fitted.partial_fit(X, y)
    yield f"predict.* {same} the host with NumPy", lambda: on_host.predict(here)
    yield f"partial_fit.* {same} the host with NumPy", lambda: on_host.partial_fit(here, targets)
    yield rf"RandomLayer\.transform\(\) {same} the host", lambda: RandomLayer(3).fit(X).transform(here)
    yield rf"RandomLayer\.transform\(\) {same}.* but X is on the host", lambda: RandomLayer(3).fit(here).transform(X)
    yield "2D", lambda: PinvRegressor(5).fit(targets, targets)
    yield r"0 sample\(s\)", lambda: fitted.predict(here[:0, :])
    yield "3 features, but PinvRegressor is expecting 4", lambda: fitted.predict(here[:, :3])
    yield r"X has 30 rows, but y has the shape \(20,\)", lambda: PinvRegressor(5).fit(here, targets[:20])
    yield "X has 30 rows, but sample_weight", lambda: PinvRegressor(5).fit(here, targets, sample_weight=targets[:20])
    yield "X contains NaN", lambda: PinvRegressor(5).fit(here * float("nan"), targets)
    yield "y contains NaN", lambda: PinvRegressor(5).fit(here, targets * float("inf"))
    yield "weights must be finite", lambda: PinvRegressor(5).fit(here, targets, sample_weight=-1.0)
    yield "All sample weights are zero", lambda: PinvRegressor(5).fit(here, targets, sample_weight=0.0)
    yield "is not a whole number", lambda: PinvClassifier(5).fit(here, targets)
    yield "only one class", lambda: PinvClassifier(5).fit(here, 0 * labels)
    yield (
        r"Row 1: the label 2 is not among the classes \[0, 1\]",
        lambda: PinvClassifier(5).partial_fit(here, labels + 2, classes=[0, 1]),
    )
    yield "float32 or float64", lambda: PinvRegressor(5).fit(xp.astype(here, xp.complex128), targets)


MISTAKES = list(mistakes())
TIKHONOV = ["TikhonovRegressor", "TikhonovClassifier"]


@pytest.mark.parametrize(("reason", "call"), MISTAKES, ids=[reason for reason, _ in MISTAKES])
def test_what_cannot_work_raises_with_the_reason(reason, call):
    with pytest.raises(ValueError, match=reason):
        call()


@some_advice
def test_half_precision_raises():
    if LIBRARY == "torch":
        rows = on_device(np.ones((5, 2)), xp.float16)
        with pytest.raises(ValueError, match=r"float16: convert it to float32 or float64"):
            PinvRegressor(5).fit(rows, on_device(np.ones(5)))
    # NumPy's own half precision is widened by scikit-learn, as everywhere there.
    half = PinvRegressor(5, random_state=0).fit(np.eye(5, dtype=np.float16), np.arange(5.0))
    assert weights_of(half).dtype == np.float64


@pytest.mark.parametrize("model", [PinvRegressor(8, random_state=0), PinvClassifier(8, random_state=0)])
def test_targets_and_weights_of_other_libraries_and_devices_follow_the_rows(model):
    X, y, w = rows_of("one target")
    y = (y > 0).astype(int) if isinstance(model, PinvClassifier) else y
    other = strict.Device("CPU_DEVICE")
    elsewhere = [strict.asarray(values.tolist(), device=other) for values in (y, w)]
    expected = weights_of(model.fit(X, y, w))
    np.testing.assert_allclose(to_numpy(weights_of(model.fit(on_device(X), *elsewhere))), expected, rtol=1e-9)
    np.testing.assert_array_equal(weights_of(model.fit(X, *elsewhere)), expected)
    np.testing.assert_array_equal(weights_of(model.fit(X, on_device(y), on_device(w))), expected)


def test_the_array_api_checks_of_scikit_learn():
    """In a process of its own, since SciPy must be told before it is imported."""
    script = Path(__file__).resolve().parents[1] / "support" / "array_api_checks.py"
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["RandomLayer", *["PinvRegressor"] * 2, *["PinvClassifier"] * 2, *TIKHONOV]


class OnMPS:
    """An array on a device that has no float64."""

    def __array_namespace__(self, api_version=None):
        return strict

    device = "mps:0"
    dtype = strict.float32
    shape = (3, 2)


def test_apples_device_is_refused_with_what_to_do():
    with pytest.raises(TypeError, match=r"X is on Apple's MPS, which has no float64.*give X\.cpu\(\)"):
        PinvRegressor(5).fit(OnMPS(), np.ones(3))


class OnSomeGPU:
    """A CUDA array of a library that is not installed."""

    __cuda_array_interface__: dict = {}  # noqa: RUF012


def test_gpu_arrays_without_their_library_raise():
    with pytest.raises(TypeError, match=r"X is on a GPU as a OnSomeGPU.*install torch"):
        PinvRegressor(5).fit(OnSomeGPU(), np.ones(3))
