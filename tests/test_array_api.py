"""The core on a strict array-API library, on a device from which NumPy cannot read."""

import array_api_strict as xp
import numpy as np
import pytest
from problems import random_problem

from ocrep import Factor, RandomLayer, rules
from ocrep.folds import FoldFactors, FoldPlan
from ocrep.hidden_map import ACTIVATIONS, HiddenMap
from ocrep.leave_one_out import Rows, left_out_outputs

DEVICE = xp.Device("device1")


def on_device(array):
    return xp.asarray(np.asarray(array).tolist(), dtype=xp.float64, device=DEVICE)


def to_numpy(array):
    assert isinstance(array, type(on_device([0.0])))
    assert array.device == DEVICE
    return np.asarray(xp.asarray(array, device=xp.Device("CPU_DEVICE"))._array)


def test_the_device_really_refuses_numpy():
    with pytest.raises(RuntimeError, match="device1"):
        np.asarray(on_device([1.0, 2.0]))


@pytest.mark.parametrize("name", rules.names())
@pytest.mark.parametrize("intercept", [False, True])
def test_factor_spectrum_and_rules_stay_on_the_device(name, intercept):
    rule = rules.Discrepancy(noise=1.0) if name == "discrepancy" else rules.resolve(name)
    H, T = random_problem(60, 6)
    T += np.random.default_rng(1).standard_normal(T.shape)
    w = np.random.default_rng(0).uniform(0.5, 2, 60)
    answers = []
    for convert in (np.asarray, on_device):
        blocks = [(convert(H[a:b]), convert(T[a:b]), convert(w[a:b])) for a, b in ((0, 35), (35, 60))]
        halves = [Factor.of(h, t, sample_weight=v, intercept=intercept) for h, t, v in blocks]
        folds = FoldFactors.empty(rule.folds or FoldPlan()).absorb(blocks, intercept=intercept)
        rows = Rows(lambda blocks=blocks: iter(blocks))
        for factor in (Factor.fold(blocks, intercept=intercept), halves[0].merge(halves[1]), folds.merged()):
            spectrum = factor.spectrum()
            choice = rule.choose(spectrum, folds=folds, rows=rows)
            arrays = [
                spectrum.weights(choice.gamma),
                spectrum.intercept(choice.gamma),
                spectrum.gain(choice.gamma),
                spectrum.condition(choice.gamma),
                spectrum.norm(choice.gamma),
                spectrum.rss(choice.gamma),
                spectrum.dof(choice.gamma),
                spectrum.noise_variance(choice.gamma),
                spectrum.variance_factor(blocks[0][0], choice.gamma),
                spectrum.singular_values,
                factor.leading(3).spectrum().weights(choice.gamma),
                *(output for output, _, _ in left_out_outputs(spectrum, rows, choice.gamma)),
            ]
            if choice.curve is not None:
                arrays += [choice.curve.gammas, choice.curve.criterion]
            answers.append((choice.gamma, arrays))
    for on_host, elsewhere in zip(answers[:3], answers[3:], strict=True):
        assert elsewhere[0] == pytest.approx(on_host[0], rel=1e-5, abs=0)
        for expected, array in zip(on_host[1], elsewhere[1], strict=True):
            np.testing.assert_allclose(to_numpy(array), expected, rtol=1e-4)


def test_misclassified_rows_are_counted_on_the_device():
    H, T = random_problem(60, 6)
    codes = np.sign(T)
    rule = rules.KFold(scoring="error")
    gammas = []
    for convert in (np.asarray, on_device):
        blocks = [(convert(H[a:b]), convert(codes[a:b]), None) for a, b in ((0, 35), (35, 60))]
        folds = FoldFactors.empty(rule.folds).absorb(blocks, intercept=False)
        rows = Rows(lambda blocks=blocks: iter(blocks), labels=True)
        gammas.append(rule.choose(folds.merged().spectrum(), folds=folds, rows=rows).gamma)
    assert gammas[1] == pytest.approx(gammas[0], rel=1e-9)


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("direct_link", [False, True])
def test_the_hidden_layer_stays_on_the_device(activation, direct_link):
    X = np.random.default_rng(0).uniform(-3, 5, size=(10, 4))
    layer = RandomLayer(7, activation=activation, direct_link=direct_link, random_state=0).fit(X)
    host = layer.map_
    elsewhere = HiddenMap(
        on_device(host.weights),
        on_device(host.biases),
        on_device(host.center),
        on_device(host.scale),
        host.activation,
        direct_link,
    )
    np.testing.assert_allclose(to_numpy(elsewhere(on_device(X))), layer.transform(X), rtol=1e-12, atol=1e-15)
