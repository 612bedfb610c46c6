"""Leaves of trees as units: what they are, nesting, invariances, rows of every kind, refusals, and forged files."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression
from support.device import on_device, to_numpy

from ocrep import PinvClassifier, PinvRegressor, RandomLayer, load_model, save_model, scan
from ocrep._layers.trees import Trees
from ocrep.serialization import ModelFileError

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.standard_normal((300, 3)), RNG.integers(0, 3, 300), np.full(300, 7.0)])
Y = np.where(X[:, 0] > 0.5, 2.0, np.sin(X[:, 1]))
LABELS = np.array(["no", "maybe", "yes"])[np.digitize(Y, [-0.3, 0.5])]


def layer(n_hidden=60, **options):
    return RandomLayer(n_hidden, **{"weight_init": "trees", "random_state": 0, **options})


@pytest.mark.parametrize(
    "target", [Y, LABELS, np.column_stack([Y, X[:, 2]]), None], ids=["numbers", "labels", "two", "none"]
)
@pytest.mark.parametrize("scaling", ["minmax", "squash", None])
def test_a_row_is_in_one_leaf_of_each_tree_and_leaves_have_three_rows(target, scaling):
    fitted = layer(input_scaling=scaling).fit(X, target)
    H = fitted.transform(X)
    assert H.shape == (300, 60)
    assert set(np.unique(H)) == {0.0, 1.0}
    tree = fitted.map_.trees.unit_tree
    for number in range(tree.max() + 1):
        one_tree = H[:, tree == number]
        assert (one_tree.sum(axis=1) <= 1).all()
        assert (one_tree.sum(axis=0) >= 3).all()
        assert one_tree.shape[1] <= 23
    # One leaf of each tree is left out, so the units and a constant are independent where trees are.
    assert np.linalg.matrix_rank(np.column_stack([np.ones(300), H[:, tree == 0]])) == 1 + np.sum(tree == 0)


def test_units_are_boxes_of_the_inputs():
    fitted = layer(23).fit(X, Y)
    H = fitted.transform(X)
    for unit in range(23):
        inside = H[:, unit] == 1
        low, high = X[inside].min(axis=0), X[inside].max(axis=0)
        assert (((low <= X) & (high >= X)).all(axis=1) == inside).all()


def test_leaves_find_a_jump_that_smooth_units_miss():
    rows = np.random.default_rng(1).uniform(-1, 1, (600, 10))
    target = np.sign(rows[:, 3]) + (rows[:, 7] > 0.4)
    H = layer(100).fit(rows[:400], target[:400])
    model = LinearRegression().fit(H.transform(rows[:400]), target[:400])
    smooth = PinvRegressor(100, random_state=0).fit(rows[:400], target[:400])
    assert model.score(H.transform(rows[400:]), target[400:]) > smooth.score(rows[400:], target[400:]) + 0.03


def test_smaller_layers_begin_larger_ones():
    whole = layer(70).fit(X, Y).transform(X)
    for size in (1, 22, 23, 24, 50):
        np.testing.assert_array_equal(layer(size).fit(X, Y).transform(X), whole[:, :size])
        np.testing.assert_array_equal(layer(70).fit(X, Y).take(slice(size)).transform(X), whole[:, :size])
    chosen = [3, 40, 5]
    np.testing.assert_array_equal(layer(70).fit(X, Y).map_.take(chosen)(X), whole[:, chosen])


def test_order_weights_and_units_of_measure_do_not_matter(rng):
    expected = layer().fit(X, Y).transform(X)
    order = rng.permutation(300)
    np.testing.assert_array_equal(layer().fit(X[order], Y[order]).transform(X), expected)
    np.testing.assert_array_equal(layer().fit(4 * X + 2, 8 * Y - 1).transform(4 * X + 2), expected)
    weight = rng.integers(0, 3, 300)
    repeated = layer().fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    np.testing.assert_array_equal(layer().fit(X, Y, weight).transform(X), repeated.transform(X))
    far = X + 1e9  # float32 would not tell these rows apart
    assert len(np.unique(layer(input_scaling=None).fit(far, Y).transform(far), axis=0)) > 100


@pytest.mark.parametrize("direct_link", [False, True])
@pytest.mark.parametrize("scaling", ["minmax", "squash", None])
def test_sparse_rows_float32_and_devices(direct_link, scaling):
    options = {"direct_link": direct_link, "input_scaling": scaling}
    H = layer(**options).fit(X, Y).transform(X)
    for make in (sparse.csr_array, sparse.csc_matrix):
        found = layer(**options).fit(make(X), Y).transform(make(X))
        np.testing.assert_allclose(found, H, atol=1e-12)
    single = layer(**options).fit(X.astype(np.float32), Y).transform(X.astype(np.float32))
    assert single.dtype == np.float32
    device = layer(**options).fit(on_device(X), on_device(Y))
    np.testing.assert_allclose(to_numpy(device.transform(on_device(X))), H, atol=1e-12)
    np.testing.assert_allclose(to_numpy(device.take(slice(30)).transform(on_device(X))), H[:, : 30 + 5 * direct_link])


@pytest.mark.parametrize("options", [{}, {"direct_link": False}, {"input_scaling": "squash"}], ids=str)
def test_single_precision_has_the_same_leaves(options):
    model = PinvRegressor(60, weight_init="trees", random_state=0, gamma=0.1, **options).fit(X, Y)
    np.testing.assert_allclose(model.as_float32().predict(X), model.predict(X), atol=1e-5)


def test_of_many_rows_the_first_units_are_those_of_a_smaller_layer_and_weights_have_no_unit():
    """Boosting grows these trees, each on what those before it left."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 4))
    y = np.floor(2.0 * X[:, 0]) + X[:, 1]
    weight = rng.choice([1.0, 2.0], 3_000)
    large = layer(60).fit(X, y, sample_weight=weight)
    H = large.transform(X)
    np.testing.assert_array_equal(layer(40).fit(X, y, sample_weight=weight).transform(X), H[:, :40])
    np.testing.assert_array_equal(layer(60).fit(X, y, sample_weight=weight * 1e-100).transform(X), H)
    assert np.unique(H).tolist() == [0.0, 1.0]
    used = large.map_.trees.feature
    assert np.mean(used[used >= 0] < 2) > 0.9  # the inputs that matter


def test_many_rows_with_few_thresholds_give_as_many_units_as_were_asked_for():
    X = np.random.default_rng(0).integers(0, 15, (3_000, 3)).astype(float)
    y = (X[:, 0] > 7.0).astype(float)
    assert layer(200).fit(X, y).transform(X).shape == (3_000, 200)


def test_targets_that_say_nothing_give_random_trees():
    for target in (None, np.full(300, 3.0), np.full(300, "same")):
        H = layer().fit(X, target).transform(X)
        np.testing.assert_array_equal(H, layer().fit(X).transform(X))
        assert (H.sum(axis=0) >= 3).all()


@pytest.mark.parametrize("n_rows", [2, 3, 5, 7])
def test_few_rows(n_rows):
    rows = X[:n_rows]
    H = layer(30).fit(rows, Y[:n_rows]).transform(rows)
    assert (H.sum(axis=0) >= 1).all()
    skewed = np.zeros((n_rows, 1))
    skewed[0] = 1e6
    assert layer(3).fit(skewed, Y[:n_rows]).transform(skewed)[:, 0].std() > 0


def test_equal_rows_are_refused():
    with pytest.raises(ValueError, match="weight_init='trees' takes units from training rows with different inputs"):
        layer().fit(np.ones((5, 2)), np.arange(5.0))


@pytest.mark.parametrize(
    "option",
    [{"activation": "relu"}, {"activation": np.tanh}, {"weight_scale": 2.0}, {"bias_range": (0, 1)}, {"units_see": 2}],
    ids=lambda option: next(iter(option)),
)
def test_what_leaves_do_not_have_is_refused(option):
    (name,) = option
    with pytest.raises(ValueError, match=f"^{name}=.* does not apply to weight_init='trees'"):
        layer(**option).fit(X, Y)
    if name != "bias_range":
        with pytest.raises(ValueError, match=f"^{name}=.* does not apply to weight_init='trees'"):
            PinvRegressor(10, weight_init="trees", **option).fit(X, Y)


def test_a_stream_keeps_the_trees_of_its_first_block():
    options = {"n_hidden": 40, "weight_init": "trees", "gamma": 0.1, "random_state": 0, "input_scaling": (-3, 7)}
    first = PinvRegressor(**options).fit(X[:120], Y[:120]).layer_.transform(X)
    streamed = PinvRegressor(**options).fit(scan(iter([(X[:120], Y[:120]), (X[120:], Y[120:])])))
    np.testing.assert_array_equal(streamed.layer_.transform(X), first)


def test_a_tree_divides_only_rows_of_its_inputs():
    trees = layer().fit(X, Y).map_.trees
    with pytest.raises(ValueError, match="divide rows of 5 inputs, and X has 4"):
        trees(X[:, :4])


def cycle(trees):
    trees.left[np.flatnonzero(trees.feature >= 0)[-1]] = 0


def itself(trees):
    trees.right[0] = 0


def beyond(trees):
    trees.right[0] = len(trees.right)


def negative(trees):
    trees.left[0] = -1


def input_out_of_range(trees):
    trees.feature[0] = 5


def root_out_of_range(trees):
    trees.roots[0] = 10**9


def unit_out_of_range(trees):
    trees.unit_tree[0] = -1


def leaf_out_of_range(trees):
    trees.unit_node[3] = len(trees.feature)


def no_threshold(trees):
    trees.threshold[0] = np.nan


FORGED = [
    cycle,
    itself,
    beyond,
    negative,
    input_out_of_range,
    root_out_of_range,
    unit_out_of_range,
    leaf_out_of_range,
    no_threshold,
]


@pytest.mark.parametrize("forge", FORGED, ids=lambda forge: forge.__name__)
def test_a_forged_tree_is_refused_in_one_sentence(forge, tmp_path):
    model = PinvClassifier(40, weight_init="trees", random_state=0).fit(X, LABELS)
    path = tmp_path / "model.skops"
    save_model(model, path)
    assert (load_model(path).predict(X) == model.predict(X)).all()
    forge(model.layer_.map_.trees)
    save_model(model, path)
    with pytest.raises(ModelFileError, match=r"trees of its hidden layer .*\.$"):
        load_model(path)


def test_arrays_that_are_no_tree_are_refused():
    trees = layer().fit(X, Y).map_.trees
    for change in (
        {"left": trees.left[:-1]},
        {"unit_tree": trees.unit_tree[:-1]},
        {"feature": trees.feature.astype(float)},
        {"threshold": trees.threshold[:, None]},
        {"roots": [0]},
        {"n_inputs": 2},
        {"n_inputs": "many"},
    ):
        with pytest.raises(ValueError, match="trees of its hidden layer"):
            replace(trees, **change)
    chain = np.arange(1, 101)
    with pytest.raises(ValueError, match="more than 64 levels"):
        Trees(
            n_inputs=1,
            feature=np.append(np.zeros(100, dtype=int), -1),
            threshold=np.zeros(101),
            left=np.append(chain, -1),
            right=np.append(chain, -1),
            roots=np.array([0]),
            unit_tree=np.array([0]),
            unit_node=np.array([100]),
        )
