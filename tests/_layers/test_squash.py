"""Squashed inputs: the formula, what absurd values change, columns whose quartiles coincide, and rows of every kind."""

import numpy as np
import pytest
from scipy import sparse
from support.device import on_device, to_numpy

from ocrep import PinvClassifier, PinvRegressor, RandomLayer, parts, scan

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.standard_normal((200, 2)), RNG.lognormal(size=200), np.full(200, 7.0)])
Y = np.sin(2 * X[:, 0]) + X[:, 1]


def inputs_of(layer, X):
    """The scaled inputs, which are the first columns with a direct link."""
    return layer.transform(X)[:, : X.shape[1]]


def layer(**options):
    return RandomLayer(**{"n_hidden": 6, "input_scaling": "squash", "direct_link": True, "random_state": 0, **options})


def formula(x):
    first, median, third = np.percentile(x, [25, 50, 75], method="averaged_inverted_cdf")
    z = 2 * (x - median) / (third - first)
    z = z / np.sqrt(1 + (z / 3) ** 2)
    return (z - z.mean()) / z.std()


def test_it_is_the_formula():
    found = inputs_of(layer().fit(X), X)
    for column in range(3):
        np.testing.assert_allclose(found[:, column], formula(X[:, column]), atol=1e-12)
    assert (found[:, 3] == 0).all()
    np.testing.assert_allclose(layer().fit(X).transform(X)[:, 4:], layer(direct_link=False).fit(X).transform(X))


def test_units_of_measure_order_and_repetition_do_not_matter(rng):
    expected = layer().fit(X).transform(X)
    np.testing.assert_allclose(layer().fit(1e3 * X + 5).transform(1e3 * X + 5), expected, atol=1e-9)
    order = rng.permutation(len(X))
    np.testing.assert_allclose(layer().fit(X[order]).transform(X), expected, atol=1e-12)
    weight = rng.integers(0, 4, len(X))
    repeated = layer().fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(layer().fit(X, sample_weight=weight).transform(X), repeated.transform(X), atol=1e-12)
    np.testing.assert_allclose(layer().fit(X, sample_weight=weight / 7).transform(X), repeated.transform(X), atol=1e-12)


@pytest.mark.parametrize("absurd", [1e4, -1e9, 1e300])
@pytest.mark.parametrize("column", [0, 2])
def test_one_absurd_value_changes_nothing_for_other_rows(absurd, column):
    rows = np.random.default_rng(1).standard_normal((3000, 4))
    rows[:, 2] = rows[:, 2] > 1.2  # its quartiles coincide
    other = rows.copy()
    other[7, column] = absurd
    before = inputs_of(layer().fit(rows), rows)
    after = inputs_of(layer().fit(other), other)
    same = np.arange(3000) != 7
    assert np.abs(after - before)[same].max() < 0.05
    assert np.isfinite(after).all()
    assert np.abs(after).max() < 15


@pytest.mark.filterwarnings("ignore::ocrep.exceptions.RuleEdgeWarning")
def test_one_absurd_value_does_not_spoil_a_network():
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((1500, 5))
    target = np.sin(2 * rows[:, 0]) + rows[:, 1] * rows[:, 2] + 0.1 * rng.standard_normal(1500)
    spoiled = rows.copy()
    spoiled[3, 0] = 1e4
    scores = {
        scaling: [
            PinvRegressor(150, weight_init="pairs", input_scaling=scaling, random_state=0)
            .fit(some[:1000], target[:1000])
            .score(rows[1000:], target[1000:])
            for some in (rows, spoiled)
        ]
        for scaling in ("minmax", "squash")
    }
    assert abs(np.diff(scores["squash"])[0]) < 0.01
    assert np.diff(scores["minmax"])[0] < -0.05


@pytest.mark.parametrize("eps", [1.0, 1e-6, 1e6])
def test_columns_whose_quartiles_coincide(eps):
    rows = np.zeros((400, 4))
    rows[:40, 0] = 1.0
    rows[:5, 1] = [1, -1, 2, -2, 3]
    rows[0, 2] = 1.0
    rows[:, 3] = 1e8 + np.repeat([0.0, 1e-9], 200)  # varies by its rounding
    found = inputs_of(layer().fit(eps * rows), eps * rows)
    z = rows[:, 0] / np.sqrt(1 + 1 / 9)
    np.testing.assert_allclose(found[:, 0], (z - z.mean()) / z.std(), atol=1e-9)
    np.testing.assert_allclose(found[:, :3].mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(found[:, :3].std(axis=0), 1)
    assert (found[:, 3] == 0).all()


def test_a_column_that_varies_only_outside_the_sample_keeps_its_values(small_samples, rng):
    small_samples(50)
    rows = rng.standard_normal((5000, 2))
    rows[:, 1] = 0.0
    lonely = [17, 4711]
    rows[lonely, 1] = 2.0
    model = PinvRegressor(5, input_scaling="squash", random_state=0).fit(rows, rows[:, 0])
    found = inputs_of(model.layer_, rows)[:, 1]
    assert (found[lonely] != found[0]).all()
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"direct_link": False},
        {"weight_init": "pairs"},
        {"activation": "gaussian"},
        {"activation": "gaussian", "weight_init": "rows"},
        {"activation": "gaussian", "weight_init": "pairs"},
    ],
    ids=str,
)
def test_sparse_rows_float32_and_devices(options):
    expected = layer(**options).fit(X, Y)
    H = expected.transform(X)
    for make in (sparse.csr_array, sparse.csc_matrix):
        np.testing.assert_allclose(layer(**options).fit(make(X), Y).transform(make(X)), H, atol=1e-10)
    single = layer(**options).fit(X.astype(np.float32), Y).transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, H, atol=1e-3)
    device = layer(**options).fit(on_device(X), on_device(Y)).transform(on_device(X))
    np.testing.assert_allclose(to_numpy(device), H, atol=1e-10)


def test_distances_of_rows_and_pairs_are_those_of_the_squashed_inputs():
    fitted = layer(n_hidden=9, activation="gaussian", weight_init="rows").fit(X)
    U = inputs_of(fitted, X)
    centers = fitted.weights_.T
    assert all(np.isclose(U, center).all(axis=1).any() for center in centers)
    distance = ((U[:, None] - centers) ** 2).sum(axis=2)
    np.testing.assert_allclose(fitted.transform(X)[:, 4:], np.exp(-distance / 3), atol=1e-12)


def test_single_precision_prediction():
    model = PinvRegressor(30, input_scaling="squash", random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.as_float32().predict(X), model.predict(X), atol=1e-4)


def test_blocks_keep_the_scaling_of_the_first():
    varying = X[:, :3]  # a column that is constant in the first block is warned of
    model = PinvRegressor(20, input_scaling="squash", random_state=0)
    first = PinvRegressor(20, input_scaling="squash", random_state=0).fit(varying[:80], Y[:80])
    model.partial_fit(varying[:80], Y[:80]).partial_fit(varying[80:], Y[80:])
    np.testing.assert_array_equal(model.layer_.transform(varying), first.layer_.transform(varying))
    streamed = PinvRegressor(20, input_scaling="squash", random_state=0)
    streamed.fit(scan(iter([(varying[:80], Y[:80]), (varying[80:], Y[80:])])))
    np.testing.assert_array_equal(streamed.layer_.transform(varying), first.layer_.transform(varying))
    np.testing.assert_allclose(streamed.predict(varying), model.predict(varying), rtol=1e-6)


@pytest.mark.parametrize("sample_rows", [10_000, 60])
@pytest.mark.parametrize("task", [PinvRegressor, PinvClassifier])
def test_scans_and_parts_have_the_scaling_of_memory(sample_rows, task, small_samples):
    small_samples(sample_rows)
    y = Y if task is PinvRegressor else (Y > 0).astype(int)
    model = task(20, input_scaling="squash", gamma=0.01, random_state=0)
    expected = model.fit(X, y).predict(X)
    blocks = [(X[:70], y[:70]), (X[70:], y[70:])]
    np.testing.assert_allclose(model.fit(scan(blocks)).predict(X), expected, rtol=1e-6, atol=1e-8)
    planned = parts.plan(task(20, input_scaling="squash", gamma=0.01, random_state=0))
    surveys = [planned.survey(*block, part_number=i) for i, block in enumerate(blocks)]
    ready = planned.with_survey(surveys[0].merge(surveys[1]))
    made = [ready.of(*block, part_number=i) for i, block in enumerate(blocks)]
    np.testing.assert_allclose(ready.finish(made[1].merge(made[0])).predict(X), expected, rtol=1e-6, atol=1e-8)
