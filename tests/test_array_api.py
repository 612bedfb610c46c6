"""The core on a strict array-API library, on a device from which NumPy cannot read."""

import array_api_strict as xp
import numpy as np
import pytest
from problems import random_problem

from ocrep import Factor, RandomLayer, rules
from ocrep.layer import ACTIVATIONS, HiddenMap

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


@pytest.mark.parametrize("rule", rules.names())
@pytest.mark.parametrize("intercept", [False, True])
def test_factor_spectrum_and_rules_stay_on_the_device(rule, intercept):
    H, T = random_problem(40, 6, 2)
    w = np.random.default_rng(0).uniform(0.5, 2, 40)
    answers = []
    for convert in (np.asarray, on_device):
        rows = [(convert(H[a:b]), convert(T[a:b]), convert(w[a:b])) for a, b in ((0, 25), (25, 40))]
        halves = [Factor.of(h, t, sample_weight=v, intercept=intercept) for h, t, v in rows]
        folded = Factor.fold(rows, intercept=intercept)
        merged = halves[0].merge(halves[1])
        for factor in (folded, merged):
            spectrum = factor.spectrum()
            choice = rules.resolve(rule).choose(spectrum)
            arrays = [
                spectrum.weights(choice.gamma),
                spectrum.intercept(choice.gamma),
                spectrum.gain(choice.gamma),
                spectrum.condition(choice.gamma),
                spectrum.norm(choice.gamma),
                spectrum.rss(choice.gamma),
                spectrum.dof(choice.gamma),
                spectrum.singular_values,
            ]
            if choice.curve is not None:
                arrays += [choice.curve.gammas, choice.curve.criterion]
            answers.append((choice.gamma, arrays))
    for on_host, elsewhere in zip(answers[:2], answers[2:], strict=True):
        assert elsewhere[0] == pytest.approx(on_host[0], rel=1e-6, abs=0)
        for expected, array in zip(on_host[1], elsewhere[1], strict=True):
            np.testing.assert_allclose(to_numpy(array), expected, rtol=1e-5)


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
