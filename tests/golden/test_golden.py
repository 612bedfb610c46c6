"""Fits as they were before the code was rearranged: moving code must not move results.

The same code was run with 1, 2 and 4 threads, and with the kernels that OpenBLAS and NumPy have for older processors
(Haswell, Zen, Sandybridge, Nehalem). What follows is what that showed, the worst of all cases.

- Threads alone change results by 4·ε·σ₁ in σ, 3·10⁻¹⁵ in predictions, and never move a searched γ.
- Kernels change predictions under the recorded γ by 10⁻¹³ of their scale: 10⁻¹⁰ holds for every κ.
- Kernels move a γ that is searched to 10⁻⁶ by 3·10⁻⁶, and the predictions with it by 10⁻⁷. So such a γ may
  move by 10⁻⁵, and predictions are compared under the recorded γ too, to 10⁻¹⁰.
- A Gram matrix of κ = 2.6·10⁴ gives σ_p to ε·κ² = 10⁻⁷, more than 100·ε·κ; these cases say so.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from golden.cases import ANSWERS, CASES, run, unpacked
from golden.rows import PROBLEMS, fingerprint
from support.advice import some_advice

PATH = Path(__file__).parent / "fits.npz"
RECORDED = unpacked(PATH)
EPS = np.finfo(np.float64).eps
PRECISION = 1e-10
SEARCH = 1e-5
# A float32 answer is float64 rounded once, or one unit in the last place beside that.
SINGLE = 2 * np.finfo(np.float32).eps


def gamma_tolerance(case, kappa):
    """What γ and σ_p may move, relative to themselves."""
    squared = min(1e-6, 4 * EPS * kappa**2) if case.squared else 0.0
    return max(1e-9, 100 * EPS * kappa, squared, SEARCH if case.searched else 0.0)


def coef_tolerance(expected):
    """What weights may move under one γ: as solutions of normal equations of condition (σ₁² + γ)/(σ_p² + γ).

    Under γ = σ₁σ_p that is κ, as for σ_p.
    """
    gamma, largest, least = expected["gamma"], expected["sigma"][0], expected["sigma"][expected["rank"] - 1]
    return max(PRECISION, 100 * EPS * (largest**2 + gamma) / (least**2 + gamma))


def scale_of(name, expected):
    """The size of an answer, for each target; an intercept is a sum of weights."""
    if name == "coef":
        return np.max(np.abs(expected["coef"]), axis=-1, keepdims=True)
    if name == "intercept":
        return np.maximum(np.abs(expected["intercept"]), np.max(np.abs(expected["coef"]), axis=-1))
    return np.max(np.abs(expected[name]), axis=0)


def assert_answers(found, expected, suffix, moved):
    """Compare all that depends on γ; `moved` is how far γ itself may have moved."""
    for name in ANSWERS:
        if name not in expected:
            continue
        values, wanted = found[name + suffix], expected[name]
        assert values.shape == wanted.shape, name
        if name == "labels":
            np.testing.assert_array_equal(values, wanted)
            continue
        assert values.dtype == wanted.dtype, name
        rounding = SINGLE if wanted.dtype == np.float32 else PRECISION
        tolerance = coef_tolerance(expected) if name in ("coef", "intercept") else rounding
        error = np.abs(values.astype(np.float64) - wanted) / scale_of(name, expected)
        assert np.max(error) <= max(tolerance, moved), name + suffix


@some_advice
@pytest.mark.parametrize("name", CASES)
def test_the_fit_is_the_recorded_one(name):
    case, expected = CASES[name], RECORDED[name]
    found = run(case, float(expected["gamma"]))
    kappa = float(expected["kappa"])
    tolerance = gamma_tolerance(case, kappa)
    for count in ("rank", "n_hidden"):
        assert found[count] == expected[count]
    np.testing.assert_allclose(found["gamma"], expected["gamma"], rtol=tolerance)
    sigma, largest = expected["sigma"], expected["sigma"][0]
    np.testing.assert_allclose(found["sigma"][0], largest, rtol=PRECISION)
    of_sigma = tolerance if case.squared else 1e-9
    np.testing.assert_allclose(found["sigma"], sigma, rtol=of_sigma, atol=100 * EPS * largest)
    moved = tolerance if case.searched or case.squared else 0.0
    assert_answers(found, expected, "", moved)
    if not case.calibrated:
        assert_answers(found, expected, " at γ", 0.0)


def test_every_case_is_recorded_and_nothing_else():
    assert list(RECORDED) == list(CASES)
    assert len(CASES) > 250


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_data_are_those_of_the_recording(name):
    """If this fails, NumPy draws other numbers from the same seed, and the fits cannot be compared."""
    with np.load(PATH) as file:
        assert fingerprint(name) == json.loads(str(file["data"]))[name]
