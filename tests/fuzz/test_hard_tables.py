"""Rows that are hard to learn from: a model with finite answers and no warning, or one sentence that says why not.

Each case is a number, which draws the rows and the model: classes of one row, categories that occur once, outliers of
10⁶, constant inputs with groups, one row more than inputs.
"""

import os
import signal
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st
from support.fuzzing import SECONDS, cases, hang

from ocrep import (
    PinvClassifier,
    PinvClassifierCV,
    PinvRegressor,
    PinvRegressorCV,
    TableClassifier,
    TableRegressor,
    TikhonovClassifier,
    TikhonovRegressor,
)
from ocrep.exceptions import RuleEdgeWarning

SEEDS = st.integers(0, 2**40)
RULES = ["ocrep_cv", "kfold", "gcv", "loo", "ocrep"]


@pytest.fixture(scope="module", autouse=True)
def here(tmp_path_factory):
    """A folder of its own, which the harness keeps of a bad case."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("rows"))
    yield
    os.chdir(before)


def inputs_of(r):
    """Inputs, groups or None, and what is hard about them."""
    p = int(r.integers(1, 8))
    n = p + 1 if r.random() < 0.2 else int(r.choice([2, 3, 5, 9, 20, 40, 90]))
    X = r.normal(size=(n, p)) if r.random() < 0.7 else r.integers(0, 3, size=(n, p)).astype(float)
    groups = r.integers(0, max(2, n // 4), size=n) if r.random() < 0.4 else None
    if r.random() < 0.3:  # one absurd value
        X[r.integers(n), r.integers(p)] = 1e6 * r.choice([-1.0, 1.0])
    if r.random() < 0.3:
        X[:, r.integers(p)] = r.choice([0.0, 1.0, 1e6])
    if r.random() < 0.1:
        X[:] = X[0]
    if groups is not None and r.random() < 0.5:  # constant but for one group, or within each
        X[:, r.integers(p)] = groups == groups[0] if r.random() < 0.5 else groups
    if r.random() < 0.2:
        X = X[r.integers(n, size=n)]
    return X, groups


def numbers_of(r, X):
    y = X @ r.normal(size=X.shape[1]) + r.normal(size=len(X))
    if r.random() < 0.3:
        y[r.integers(len(y))] *= 1e6
    return np.full_like(y, y[0]) if r.random() < 0.1 else y


def labels_of(r, X):
    n_classes = int(r.integers(2, 6))
    y = r.integers(0, n_classes, size=len(X))
    if r.random() < 0.5:  # one class has nearly all rows
        y[: -int(r.integers(1, 4))] = 0
    return np.array(list("abcde"))[r.permutation(y)]


def judged(model, X, y, groups):
    """Fit; the answers on these rows and on others far away, unless it was refused in one sentence."""
    before = signal.signal(signal.SIGPROF, hang)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # What a rule or a list of candidates has to say is no accident.
            warnings.simplefilter("ignore", RuleEdgeWarning)
            warnings.filterwarnings("ignore", "(The candidate|gamma=) ?(?!.*(encountered|ingular|converge))")
            try:
                model.fit(X, y, groups=groups)
            except np.linalg.LinAlgError:  # which is a ValueError too
                raise
            except ValueError as refused:
                if str(refused).endswith(".") and "\n" not in str(refused):
                    return
                raise
            for rows in (X, X[::-1], X[:1]):
                if hasattr(model, "predict_proba"):
                    P = model.predict_proba(rows)
                    assert np.isfinite(P).all()
                    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-9)
                    assert np.isin(model.predict(rows), y).all()
                elif hasattr(model, "classes_"):
                    assert np.isin(model.predict(rows), y).all()
                else:
                    assert np.isfinite(model.predict(rows)).all()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def layers_of(r):
    kinds = [
        {"n_hidden": 1},
        {"n_hidden": 5, "weight_init": "pairs", "activation": "relu"},
        {"n_hidden": 20, "weight_init": "rows", "activation": "gaussian", "direct_link": False},
        {"n_hidden": 20, "weight_init": "trees", "input_scaling": "squash"},
        {"n_hidden": 10, "metric": "diagonal", "input_scaling": "squash"},
    ]
    return [kinds[i] for i in r.choice(len(kinds), size=int(r.integers(1, 3)), replace=False)]


def network_of(r, *, labels):
    choice = int(r.integers(3))
    seed, rule = int(r.integers(100)), str(r.choice(RULES))
    calibrate = str(r.choice(["", "loo"])) or None
    if choice == 0:
        return (TikhonovClassifier if labels else TikhonovRegressor)(rule, calibrate=calibrate)
    if choice == 1:
        size = int(r.choice([1, 5, 40]))
        kind = PinvClassifier if labels else PinvRegressor
        return kind(size, gamma=rule, calibrate=calibrate, random_state=seed)
    kind = PinvClassifierCV if labels else PinvRegressorCV
    return kind(layers_of(r), ensemble=bool(r.integers(2)), random_state=seed)


@cases(60, 6000, SEEDS)
def test_numbers_from_hard_rows(seed):
    r = np.random.default_rng(seed)
    X, groups = inputs_of(r)
    judged(network_of(r, labels=False), X, numbers_of(r, X), groups)


@cases(60, 6000, SEEDS)
def test_labels_from_hard_rows(seed):
    r = np.random.default_rng(seed)
    X, groups = inputs_of(r)
    judged(network_of(r, labels=True), X, labels_of(r, X), groups)


def test_inputs_that_explain_less_than_nothing_by_rounding():
    r = np.random.default_rng(794281)  # found by the test above: a metric had the root of −10⁻¹⁷
    X, groups = inputs_of(r)
    judged(network_of(r, labels=True), X, labels_of(r, X), groups)


@cases(12, 1200, SEEDS, st.booleans())
def test_tables_of_hard_columns(seed, labels):
    """Categories that occur once, gaps and dates besides."""
    r = np.random.default_rng(seed)
    X, groups = inputs_of(r)
    n = len(X)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    frame["once"] = [f"text {i if r.random() < 0.3 else 0}" for i in range(n)]
    if r.random() < 0.5:
        frame["many"] = [f"word {r.integers(n)} of {r.integers(3)}" for _ in range(n)]
    if r.random() < 0.5:
        frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(r.integers(0, 500, size=n), unit="D")
    if r.random() < 0.5:
        frame = frame.mask(r.random(frame.shape) < 0.2)
    layers = layers_of(r)
    if labels:
        model = TableClassifier(PinvClassifierCV(layers, random_state=0), random_state=0)
        judged(model, frame, labels_of(r, X), groups)
    else:
        model = TableRegressor(PinvRegressorCV(layers, calibrate="loo", random_state=0), random_state=0)
        judged(model, frame, numbers_of(r, X), groups)
