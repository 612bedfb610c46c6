"""Experiments besides the paper's own: its rivals from the literature, M around N, the default rule, and stability."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ocrep import literature as methods
from ocrep.estimators import PinvClassifier, PinvRegressor
from ocrep.estimators.base import fit_silently
from ocrep.rules import OCReP, OCRePCV, Unregularized
from ocrep.study.networks import Network, split_of
from ocrep.study.protocol import PEAK_SHARES, STABILITY_BETAS, Protocol
from ocrep.study.results import Row

LITERATURE: dict[str, dict[str, Any]] = {
    "regression": {"trop_elm": methods.TROPELMRegressor, "pruned_elm": methods.PrunedELMRegressor},
    "classification": {"elm": methods.ELMClassifier, "relm": methods.RELMClassifier},
}
OCREP = OCReP(rank="numerical", floor=0.0)
PEAK_RULES = {
    "ocrep": OCREP,
    "ocrep_floor": OCReP(rank="numerical", floor="precision"),
    "unregularized": Unregularized(),
}
STABILITY_TEST_ROWS = 300


def literature(job: Any, data: Any, protocol: Protocol) -> Iterator[Row]:
    """Yield the errors of the literature's methods with their own defaults, where the paper compares with them."""
    X, X_test, y, y_test = split_of(data, job.split)
    for method, estimator in LITERATURE[data.task].items():
        if method in protocol.literature:
            model = estimator(random_state=job.seed).fit(X, y)
            yield Row(int(model.n_hidden_), method, "raw", error=_error(model, X_test, y_test, data.task))


def beyond(job: Any, data: Any, protocol: Protocol) -> Iterator[Row]:
    """Yield the errors of `ocrep_cv` in the paper's network at its fixed sizes."""
    for n_hidden in protocol.sizes_of(job.data):
        yield _ocrep_cv(job, data, n_hidden)


def peak(job: Any, data: Any, protocol: Protocol) -> Iterator[Row]:
    """Yield errors at hidden sizes around the number of training rows, which the paper does not cover."""
    n_rows = len(split_of(data, job.split)[0])
    sizes = [round(share * n_rows) for share in PEAK_SHARES]
    network = Network.draw(data, job.split, job.seed, sizes[-1], job.biases, ("raw",))
    for n_hidden in sizes:
        sized = network.sized(n_hidden)
        gammas = [rule.choose(sized.spectrum).gamma for rule in PEAK_RULES.values()]
        for method, error in zip(PEAK_RULES, sized.test_errors(gammas, "raw"), strict=True):
            yield Row(n_hidden, method, "raw", error=error)
        yield _ocrep_cv(job, data, n_hidden)


def _ocrep_cv(job: Any, data: Any, n_hidden: int) -> Row:
    X, X_test, y, y_test = split_of(data, job.split)
    model = (PinvRegressor if data.task == "regression" else PinvClassifier)(
        n_hidden,
        gamma=OCRePCV(n_folds=3, seed=0, floor="rounding"),
        activation="sigmoid",
        weight_init="uniform",
        weight_scale=1.0,
        input_scaling="minmax",
        direct_link=False,
        fit_intercept=False,
        random_state=job.seed,
    )
    fit_silently(model, X, y)
    return Row(n_hidden, "ocrep_cv", "raw", error=_error(model, X_test, y_test, data.task), gamma=model.gamma_)


def _error(model: Any, X: np.ndarray, y: np.ndarray, task: str) -> float:
    wrong = model.predict(X) - y
    return float(np.sqrt(np.mean(wrong**2)) if task == "regression" else 100.0 * np.mean(wrong != 0))


def stability(job: Any, data: Any, protocol: Protocol) -> Iterator[Row]:
    """Yield how much predictions change when one training row is left out, against γ in units of σ₁σ_p.

    Without row i the weights are W − G⁻¹h_i·e_i/(1 − l_i), with G = HᵀH + γI, e_i the row's residual and l_i its
    leverage, so the change at a test row h is exactly hᵀG⁻¹h_i·e_i/(1 − l_i). `error` is the root mean square of that
    over all left-out rows and up to 300 test rows, `cv_error` the leave-one-out error, both relative to the standard
    deviation of the coded targets.
    """
    n_hidden = protocol.sizes_of(job.data)[-1]
    network = Network.draw(data, job.split, job.seed, n_hidden, job.biases, ("raw",))
    spectrum, T = network.sized(n_hidden).spectrum, network.T
    balanced = spectrum.largest * spectrum.smallest
    U = spectrum.right.coordinates(network.H) / spectrum.sigma
    Z = spectrum.right.coordinates(network.H_test[:STABILITY_TEST_ROWS])
    unit = float(np.std(T))
    for beta in STABILITY_BETAS:
        gamma = beta * balanced
        left = 1.0 - U**2 @ spectrum.filter(gamma)
        residual = T - U @ (spectrum.filter(gamma)[:, None] * spectrum.UtT)
        left_out = np.sqrt(np.mean(residual**2, axis=1)) / left
        change = (Z * spectrum.gain(gamma)) @ (U * left_out[:, None]).T
        error, cv_error = (float(np.sqrt(np.mean(values**2)) / unit) for values in (change, left_out))
        condition = float(spectrum.condition(gamma))
        yield Row(n_hidden, "leave_one_out", "raw", error=error, gamma=beta, condition=condition, cv_error=cv_error)
