"""Folds by group, by row number and as given: exact on every route and every kind of rows, and clear refusals."""

import dask
import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.model_selection import KFold as PlainKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.advice import some_advice
from support.device import on_device
from support.folds import folds_of_groups, weight_by_fold
from support.problems import with_condition

from ocrep import (
    PinvClassifier,
    PinvRegressor,
    TikhonovClassifier,
    TikhonovRegressor,
    load_model,
    rules,
    save_model,
    scan,
)

N, M, GROUPS = 400, 6, 8
GAMMAS = np.array([1e-6, 1e-3, 1.0, 100.0])
SPLITS = ("groups", "given", "blocks")
# More groups than are listed; each then goes by its own hash.
MANY_GROUPS = 1025


def problem(n=N, m=M, kappa=10.0, seed=0):
    rng = np.random.default_rng(seed)
    X = 10.0 * with_condition(kappa, n, m, seed) if n > m else rng.standard_normal((n, m))
    groups = rng.integers(0, GROUPS, n)
    y = X @ rng.standard_normal(m) + 0.3 * rng.standard_normal(GROUPS)[groups] + 0.1 * rng.standard_normal(n)
    return X, y, groups


def rule_of(split, **options):
    return rules.KFold(split=split, n_folds=5, **options)


def folds_of(split, groups, n=N, weight=None):
    """The fold of each row, from the definition."""
    if split == "blocks":
        return np.arange(n) * 5 // n
    names = np.unique(groups if weight is None else groups[weight > 0])
    if split == "given":
        return np.searchsorted(names, groups)
    turn = dict(zip(names, folds_of_groups(rule_of("groups"), names), strict=True))
    return np.array([turn.get(group, 0) for group in groups])


def refitted(X, y, fold, gammas, weight=None, intercept=True):
    """Σ w(y − prediction)² of each fold, by least squares on [√w·X; √γ·I] without it."""
    w = np.ones(len(X)) if weight is None else weight
    errors = []
    for v in np.unique(fold[w > 0]):
        rest, held = fold != v, fold == v
        mean_X, mean_y = (np.average(a[rest], axis=0, weights=w[rest]) if intercept else 0.0 for a in (X, y))
        A, b = (np.sqrt(w[rest]) * (a[rest] - mean).T for a, mean in ((X, mean_X), (y, mean_y)))
        for gamma in gammas:
            rows = np.vstack([A.T, np.sqrt(gamma) * np.eye(X.shape[1])])
            coef = np.linalg.lstsq(rows, np.r_[b, np.zeros(X.shape[1])], rcond=None)[0]
            errors.append(w[held] @ (y[held] - mean_y - (X[held] - mean_X) @ coef) ** 2)
    return np.array(errors).reshape(-1, len(gammas))


def given(split, groups):
    """What `fit` is told of the groups."""
    return {} if split == "blocks" else {"groups": groups}


# --- exact on every route ----------------------------------------------------------------------------------------

ROUTES = {
    "single block": {},
    "gram": {"blocks": 800, "solver": "gram", "route": "gram"},
    "preconditioned": {"blocks": 800, "kappa": 1e8, "route": "refined"},
    "reflections": {"blocks": 800, "solver": "qr"},
    "wide": {"n": 60, "m": 90},
    "wide, in blocks": {"n": 60, "m": 90, "solver": "qr"},
}


@some_advice
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("route", sorted(ROUTES))
def test_held_out_errors_equal_refitting_on_the_same_folds(route, split, weighted, small_blocks):
    options = ROUTES[route]
    n = options.get("n", N)
    X, y, groups = problem(n, options.get("m", M), options.get("kappa", 10.0))
    if "blocks" in options:
        small_blocks(options["blocks"])
    weight = np.random.default_rng(1).integers(0, 3, n) * 0.7 if weighted else None
    rule = rule_of(split)
    model = TikhonovRegressor(rule, solver=options.get("solver", "auto"))
    model.fit(X, y, sample_weight=weight, **given(split, groups))
    fold = folds_of(split, groups, n, weight)
    expected = refitted(X, y, fold, GAMMAS, weight)
    np.testing.assert_allclose(model.folds_.squared_errors(GAMMAS), expected, rtol=1e-10, atol=1e-10 * (y @ y))
    assert model.route_ == options.get("route", "reflections")
    assert model.folds_.n_read == n
    assert model.choice_.rule == "kfold"
    if route != "preconditioned":
        w = np.ones(n) if weight is None else weight
        assert model.choice_.curve.criterion.min() == pytest.approx(
            refitted(X, y, fold, [model.choice_.curve.gammas[model.choice_.curve.best]], weight).sum() / w.sum(),
            rel=1e-8,
        )


@some_advice
@pytest.mark.parametrize("split", SPLITS)
def test_misclassified_rows_are_counted_on_the_same_folds(split, small_blocks):
    small_blocks(800)
    X, y, groups = problem()
    labels = np.where(y > np.median(y), "high", "low")
    grid = (1e-3, 1.0, 30.0)
    rule = rule_of(split, scoring="error", grid=grid)
    model = TikhonovClassifier(rule).fit(X, labels, **given(split, groups))
    T, fold, wrong = np.where(labels == model.classes_[1], 1.0, -1.0), folds_of(split, groups), np.zeros(3)
    for v in np.unique(fold):
        rest, held = fold != v, fold == v
        for k, gamma in enumerate(grid):
            C = X[rest] - X[rest].mean(axis=0)
            coef = np.linalg.solve(C.T @ C + gamma * np.eye(M), C.T @ T[rest])
            scores = (X[held] - X[rest].mean(axis=0)) @ coef + T[rest].mean()
            wrong[k] += np.sum((scores > 0) != (T[held] > 0))
    np.testing.assert_allclose(model.choice_.curve.criterion, wrong / N, rtol=1e-12)


# --- which fold ---------------------------------------------------------------------------------------------------

VALUES = {
    "numbers": lambda g: g,
    "floats": lambda g: g - 0.5,
    "texts": lambda g: np.array([f"group {v}" for v in g]),
    "objects": lambda g: np.array([f"group {v}" for v in g], dtype=object),
    "dates": lambda g: np.datetime64("2020-01-01") + g,
    "booleans": lambda g: g % 2 == 0,
}


@some_advice
@pytest.mark.parametrize("kind", sorted(VALUES))
@pytest.mark.parametrize("calls", [1, 4])
def test_no_group_is_in_two_folds_whatever_a_group_is(kind, calls):
    """Three rows of each group weigh 4ᵍ: the digits of the sums to base 4 say in which folds the group is."""
    number = np.random.default_rng(0).permutation(np.repeat(np.arange(16), 3))
    number = number % 2 if kind == "booleans" else number
    groups, n_groups = VALUES[kind](number), len(np.unique(number))
    each = np.bincount(number)[0]
    sums = weight_by_fold(rules.KFold(n_folds=2, seed=4, split="groups"), (each + 1.0) ** number, groups, calls=calls)
    digits = np.array([[int(total) // (each + 1) ** g % (each + 1) for g in range(n_groups)] for total in sums])
    assert sorted(np.unique(digits)) == [0, each]
    assert (digits.sum(axis=0) == each).all()
    if calls == 1:  # all groups were seen before the rows were divided
        assert np.ptp((digits > 0).sum(axis=1)) <= 1


@some_advice
def test_equal_groups_are_in_the_same_fold_in_every_type():
    rule, weight = rules.KFold(n_folds=2, split="groups"), 2.0 ** np.arange(6)
    wide = np.array([3, 0, -2, 7, 8, 9])
    texts = np.array(["a", "b", "cccc", "d", "e", "f"])
    for groups, others in (
        (wide, [wide.astype(np.int8), wide.astype(float), np.where(wide == 0, -0.0, wide), wide.astype(object)]),
        (texts, [texts.astype("U9"), texts.astype(object), texts.astype(bytes)]),
    ):
        expected = weight_by_fold(rule, weight, groups)
        for same in others:
            np.testing.assert_array_equal(weight_by_fold(rule, weight, same), expected)
    numbers = np.array([-1e300, -2.5, -1e-300, 0.0, 1e-300, 1.0])
    np.testing.assert_array_equal(folds_of_groups(rules.KFold(split="given"), numbers), np.arange(6))


@some_advice
def test_the_seed_divides_groups_anew_and_their_hash_is_even():
    n = 30_000
    groups, weight = np.arange(n), np.random.default_rng(0).uniform(0.5, 1.5, n)
    first, second = (weight_by_fold(rules.KFold(seed=s, split="groups"), weight, groups) for s in (0, 1))
    for sums in (first, second):
        assert sums == pytest.approx(n / 3, rel=0.03)
    assert not np.isin(first, second).any()


@some_advice
def test_blocks_are_those_of_scikit_learn_and_take_turns_if_they_have_a_length():
    weight = np.random.default_rng(0).uniform(0.5, 1.5, 403)
    counts = weight_by_fold(rules.KFold(n_folds=5, split="blocks"), np.ones(403))
    assert sorted(counts) == sorted(len(test) for _, test in PlainKFold(5).split(np.zeros((403, 1))))
    edges = np.cumsum(counts).astype(int)[:-1]
    expected = [part.sum() for part in np.split(weight, edges)]
    np.testing.assert_allclose(weight_by_fold(rules.KFold(n_folds=5, split="blocks"), weight), expected)
    turns = weight_by_fold(rules.KFold(split="blocks", block_length=2), 2.0 ** np.arange(9))
    np.testing.assert_array_equal(turns, np.bincount([0, 0, 1, 1, 2, 2, 0, 0, 1], weights=2.0 ** np.arange(9)))


# --- what must not matter -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [rules.KFold, rules.OCRePCV])
@pytest.mark.parametrize("split", ["groups", "given"])
def test_order_weights_and_rows_of_no_weight_do_not_matter(kind, split):
    X, y, groups = problem()
    rng = np.random.default_rng(3)
    repeated, order = rng.integers(0, 3, N), rng.permutation(N)
    rule = kind(split=split, n_folds=4)
    plain = TikhonovRegressor(rule).fit(X, y, groups=groups)
    shuffled = TikhonovRegressor(rule).fit(X[order], y[order], groups=groups[order])
    assert shuffled.gamma_ == pytest.approx(plain.gamma_, rel=1e-9)
    twice = TikhonovRegressor(rule).fit(
        *(np.repeat(a, repeated, axis=0) for a in (X, y)), None, np.repeat(groups, repeated)
    )
    weighted = TikhonovRegressor(rule).fit(X, y, repeated, groups=groups)
    assert weighted.gamma_ == pytest.approx(twice.gamma_, rel=1e-9)
    more = [np.concatenate([a, a[:50]]) for a in (X, y)]
    unseen = np.r_[groups, np.arange(1000, 1050)]
    absent = TikhonovRegressor(rule).fit(*more, np.r_[np.ones(N), np.zeros(50)], unseen)
    assert absent.gamma_ == pytest.approx(plain.gamma_, rel=1e-9)


def kinds_of_rows(folder, X, y, weight, groups):
    """The same rows in every form that fit reads, with groups or without."""
    frame, names = pd.DataFrame(X, columns=list("abcdef")).assign(y=y, w=weight), {"target": "y", "sample_weight": "w"}
    if groups is not None:
        frame, names = frame.assign(g=groups), {**names, "groups": "g"}
    columns = list(names.values())
    cuts = [slice(a, a + 90) for a in range(0, N, 90)]
    frame.iloc[:130].to_parquet(folder / "0.parquet")
    frame.iloc[130:][frame.columns[::-1]].to_parquet(folder / "1.parquet")
    frame.to_csv(folder / "rows.csv", index=False)
    np.save(folder / "X.npy", X)
    others = [a for a in (y, weight, groups) if a is not None]
    table = dd.from_pandas(frame, npartitions=4, sort=False)
    blocks = [(X[s], *(a[s] for a in others)) for s in cuts]
    yield "list", (X.tolist(), *(a.tolist() for a in others))
    yield "frame", (frame[list("abcdef")], *(frame[name] for name in columns))
    yield "sparse", (sparse.csr_array(X), *others)
    yield "memory map", (np.load(folder / "X.npy", mmap_mode="r"), *others)
    with h5py.File(folder / "X.h5", "w") as file:
        yield "hdf5", (scan(file.create_dataset("X", data=X), y, weight, groups=groups),)
    yield "parquet", (scan(folder / "*.parquet", **names),)
    yield "csv", (scan(folder / "rows.csv", **names),)
    yield "blocks", (scan(blocks),)
    yield "polars", (scan([pl.from_pandas(frame.iloc[s]) for s in cuts], **names),)
    yield "checkpoint", (scan(blocks, checkpoint=folder / "fit", checkpoint_every=0),)
    yield "dask array", [da.from_array(a, chunks=((100, 0, 250, 50), *a.shape[1:])) for a in (X, *others)]
    if groups is not None:  # the partitions of a frame do not know the numbers of their rows
        yield "dask frame", (table[list("abcdef")], *(table[name] for name in columns))


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("split", SPLITS)
def test_every_kind_of_rows_gives_the_same_folds(split, texts, tmp_path):
    X, y, groups = problem()
    groups = np.sort(groups)  # so that no block has them all
    groups = None if split == "blocks" else np.array([f"group {v}" for v in groups]) if texts else groups
    weight = np.random.default_rng(1).uniform(0.5, 2.0, N)
    rule = rule_of(split, **({"block_length": 30} if split == "blocks" else {}))
    here = TikhonovRegressor(rule).fit(X, y, weight, groups)
    expected = here.folds_.squared_errors(GAMMAS)
    for name, rows in kinds_of_rows(tmp_path, X, y, weight, groups):
        with dask.config.set(scheduler="threads", num_workers=2):
            model = TikhonovRegressor(rule).fit(*rows)
        np.testing.assert_allclose(model.folds_.squared_errors(GAMMAS), expected, rtol=1e-8, err_msg=name)
        assert model.gamma_ == pytest.approx(here.gamma_, rel=1e-7), name


def test_a_device_takes_groups_from_either_side():
    X, y, groups = problem()
    here = TikhonovRegressor(rule_of("groups")).fit(X, y, groups=groups)
    for there in (groups, on_device(groups)):
        model = TikhonovRegressor(rule_of("groups")).fit(on_device(X), on_device(y), groups=there)
        assert model.gamma_ == pytest.approx(here.gamma_, rel=1e-7)
    blocks = TikhonovRegressor(rule_of("blocks")).fit(on_device(X), on_device(y))
    assert blocks.gamma_ == pytest.approx(TikhonovRegressor(rule_of("blocks")).fit(X, y).gamma_, rel=1e-7)


def test_streams_go_by_the_hash_of_the_group_or_the_number_of_the_row(tmp_path):
    n = 4 * MANY_GROUPS
    X, y, _ = problem(n)
    groups = np.arange(n) // 3
    assert groups.max() >= MANY_GROUPS
    cuts = [slice(a, a + 700) for a in range(0, n, 700)]
    for rule in (rules.KFold(split="groups"), rules.KFold(split="blocks", block_length=64)):
        grouped = rule.split == "groups"
        here = TikhonovRegressor(rule).fit(X, y, groups=groups if grouped else None)
        stream = ((X[s], y[s], None, groups[s] if grouped else None) for s in cuts)
        assert TikhonovRegressor(rule).fit(scan(stream)).gamma_ == pytest.approx(here.gamma_, rel=1e-8)
        learning = TikhonovRegressor(rule)
        for number, s in enumerate(cuts):
            learning.partial_fit(X[s], y[s], groups=groups[s] if grouped else None)
            if number == 2:
                save_model(learning, tmp_path / "model.skops")
                learning = load_model(tmp_path / "model.skops")
        assert learning.gamma_ == pytest.approx(here.gamma_, rel=1e-8)
        with_lists = PinvClassifier(10, gamma=rule, input_scaling=None, random_state=0)
        labels = np.where(y > 0, "a", "b")
        for s in cuts[:2]:
            with_lists.partial_fit(X[s], labels[s], classes=["a", "b"], groups=groups[s] if grouped else None)
        assert with_lists.folds_.n_read == 1400


def test_rows_after_a_fit_stay_with_their_group():
    X, y, groups = problem()
    rule = rule_of("groups")
    model = TikhonovRegressor(rule).fit(X[:300], y[:300], groups=groups[:300])
    assert set(groups[300:]) <= set(groups[:300])
    model.partial_fit(X[300:], y[300:], groups=groups[300:])
    assert model.gamma_ == pytest.approx(TikhonovRegressor(rule).fit(X, y, groups=groups).gamma_, rel=1e-9)


def test_given_folds_are_as_many_as_there_are_and_are_stored():
    X, y, groups = problem()
    model = TikhonovRegressor(rules.KFold(split="given")).fit(X, y, groups=groups)
    assert model.folds_.plan.n_folds == GROUPS
    for v in range(GROUPS):
        assert model.folds_.factors[v].counts.n_rows == np.sum(groups == v)
    again = model.with_gamma(rules.OCRePCV(split="given"))
    assert again.gamma_ == TikhonovRegressor(rules.OCRePCV(split="given")).fit(X, y, groups=groups).gamma_
    assert model.with_gamma("kfold").gamma_ == model.gamma_  # by its name, a rule reads the folds that there are
    with pytest.raises(rules.NotApplicable, match="split='given'"):
        model.with_gamma(rules.KFold(n_folds=5))


def test_the_size_of_a_layer_is_chosen_on_folds_by_group():
    X, y, groups = problem()
    rule = rules.OCRePCV(split="groups", n_folds=4)
    model = PinvRegressor("auto", gamma=rule, max_hidden=20, random_state=0).fit(X, y, groups=groups)
    assert model.folds_.plan == rule.folds
    assert model.folds_.factors[0].n_features == X.shape[1] + model.n_hidden_


# --- scikit-learn ---------------------------------------------------------------------------------------------------


def test_groups_go_through_pipelines_and_searches():
    X, y, groups = problem()
    with config_context(enable_metadata_routing=True):
        last = TikhonovRegressor(rule_of("groups")).set_fit_request(groups=True)
        plain = make_pipeline(StandardScaler(), last).fit(X, y, groups=groups)
        alone = TikhonovRegressor(rule_of("groups")).fit(StandardScaler().fit_transform(X), y, groups=groups)
        assert plain[-1].gamma_ == alone.gamma_
        grid = {"tikhonovregressor__fit_intercept": [False, True]}
        search = GridSearchCV(make_pipeline(StandardScaler(), last), grid, cv=GroupKFold(4), n_jobs=1)
        search.fit(X, y, groups=groups)
        assert search.best_estimator_[-1].folds_.plan.split == "groups"


# --- refusals -------------------------------------------------------------------------------------------------------


def of_unknown_height(*arrays):
    lazy = [da.from_array(a, chunks=100) for a in arrays]
    for array in lazy:
        array._chunks = ((np.nan,) * 4, *array.chunks[1:])
    return lazy


MISTAKES = {
    "groups without folds": (lambda X, y, g: TikhonovRegressor("gcv").fit(X, y, groups=g), "no folds that go by"),
    "groups and folds by blocks": (
        lambda X, y, g: TikhonovRegressor(rule_of("blocks")).fit(X, y, groups=g),
        "no folds that go by groups",
    ),
    "groups to a scan": (
        lambda X, y, g: TikhonovRegressor(rule_of("groups")).fit(scan([(X, y, None, g)]), groups=g),
        "names targets, weights and groups itself",
    ),
    "no groups": (lambda X, y, g: TikhonovRegressor(rule_of("groups")).fit(X, y), "these rows have none"),
    "no groups in a block": (
        lambda X, y, g: TikhonovRegressor(rule_of("groups")).fit(scan([(X, y)])),
        "block 0: The folds go by groups, but these rows have none",
    ),
    "another length": (
        lambda X, y, g: TikhonovRegressor(rule_of("given")).fit(X, y, groups=g[1:]),
        "X has 400 rows, but groups has the shape",
    ),
    "two axes": (
        lambda X, y, g: TikhonovRegressor(rule_of("given")).fit(X, y, groups=g[:, None]),
        "give one group per row",
    ),
    "a missing number": (
        lambda X, y, g: TikhonovRegressor(rule_of("groups")).fit(X, y, groups=np.where(g == g[4], np.nan, g)),
        "the group is missing",
    ),
    "a missing text": (
        lambda X, y, g: TikhonovRegressor(rule_of("groups")).fit(X, y, groups=[*"ab" * 199, "a", None]),
        "Row 400: the group is missing",
    ),
    "lists as groups": (
        lambda X, y, g: TikhonovRegressor(rule_of("groups")).fit(X, y, groups=as_objects([[1]] * N)),
        "numbers or texts",
    ),
    "too few groups": (
        lambda X, y, g: TikhonovRegressor(rule_of("groups")).fit(X, y, groups=g % 4),
        "of 4 groups, which cannot fill 5 folds: use 4",
    ),
    "too few groups of a scan": (
        lambda X, y, g: TikhonovRegressor(rule_of("groups")).fit(scan([(X, y, None, g % 4)])),
        "of 4 groups, which cannot fill 5 folds",
    ),
    "too few groups in a stream": (
        lambda X, y, g: TikhonovRegressor(rule_of("groups")).fit(scan(iter([(X, y, None, 0 * g)]))),
        "fell into one",
    ),
    "one given fold": (lambda X, y, g: TikhonovRegressor(rule_of("given")).fit(X, y, groups=0 * g), "in the same fold"),
    "too many given folds": (
        lambda X, y, g: TikhonovRegressor(rule_of("given")).fit(*many_groups()),
        "more than 1024 folds",
    ),
    "given folds of a stream": (
        lambda X, y, g: TikhonovRegressor(rule_of("given")).fit(scan(iter([(X, y, None, g)]))),
        "split='given' must know all folds first.*read only once",
    ),
    "given folds in blocks": (
        lambda X, y, g: TikhonovRegressor(rule_of("given")).partial_fit(X, y, groups=g),
        "split='given' must know all folds first.*partial_fit",
    ),
    "blocks of unknown length": (
        lambda X, y, g: TikhonovRegressor(rule_of("blocks")).fit(scan([(X, y)])),
        "block_length=1000",
    ),
    "blocks of partial_fit": (
        lambda X, y, g: TikhonovRegressor(rule_of("blocks")).partial_fit(X, y),
        "block_length=1000",
    ),
    "more rows after even blocks": (
        lambda X, y, g: TikhonovRegressor(rule_of("blocks")).fit(X, y).partial_fit(X, y),
        "block_length=1000",
    ),
    "blocks of partitions": (
        lambda X, y, g: TikhonovRegressor(rule_of("blocks", block_length=9)).fit(*of_unknown_height(X, y)),
        "compute_chunk_sizes",
    ),
    "one long block": (
        lambda X, y, g: TikhonovRegressor(rule_of("blocks", block_length=1000)).fit(X, y),
        "fell into one",
    ),
    "a length for groups": (lambda X, y, g: rule_of("groups", block_length=5), "block_length=5 is for split='blocks'"),
    "no length": (lambda X, y, g: rule_of("blocks", block_length=0), "block_length=0 must be a whole number ≥ 1"),
    "an unknown split": (lambda X, y, g: rules.OCRePCV(split="group"), "Did you mean 'groups'"),
}


def as_objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def many_groups():
    X, y, _ = problem(MANY_GROUPS)
    return X, y, None, np.arange(len(X))


@pytest.mark.parametrize("mistake", sorted(MISTAKES))
def test_mistakes_are_told_in_a_sentence(mistake):
    make, sentence = MISTAKES[mistake]
    with pytest.raises(ValueError, match=sentence) as error:
        make(*problem())
    assert str(error.value).count(". ") <= 1
