"""Parts: made anywhere, merged in any order, finished as the model that `fit` on all rows gives."""

import io
import pickle
import zipfile
from functools import reduce

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from support.advice import some_advice
from support.problems import smooth_problem

from ocrep import (
    PinvClassifier,
    PinvClassifierCV,
    PinvRegressor,
    TikhonovClassifier,
    TikhonovRegressor,
    parts,
    rules,
    scan,
)
from ocrep.parts import Part, Survey
from ocrep.parts import summaries as parts_archive

N, CUTS = 900, [(0, 300), (300, 310), (310, 700), (700, 900)]
X, Y = smooth_problem(N, 4)
LABELS = np.array(["low", "mid", "up"])[np.digitize(Y, [-0.4, 0.6])]
WEIGHT = np.random.default_rng(1).integers(0, 4, N).astype(float)
GROUPS = np.random.default_rng(2).integers(0, 12, N)
NEW = smooth_problem(50, 4, seed=9)[0]

MODELS = {
    "a rule of the spectrum": (PinvRegressor(40, random_state=0), Y),
    "folds": (PinvRegressor(40, random_state=0, gamma="kfold", fit_intercept=True, direct_link=True), Y),
    "a size to be chosen": (PinvRegressor("auto", max_hidden=30, random_state=0, gamma="kfold"), Y),
    "pairs of rows": (PinvRegressor(40, random_state=0, weight_init="pairs", gamma="gcv"), Y),
    "gaussian units from pairs": (PinvRegressor(20, random_state=0, activation="gaussian", weight_init="pairs"), Y),
    "several targets": (PinvRegressor(30, random_state=0, gamma="ocrep_cv"), np.stack([Y, X[:, 0] * Y], axis=1)),
    "more features than rows": (PinvRegressor(1200, random_state=0, gamma="gcv", fit_intercept=True), Y),
    "labels": (PinvClassifier(40, random_state=0, gamma="kfold"), LABELS),
    "labels as objects": (PinvClassifier(40, random_state=0, weight_init="pairs"), LABELS.astype(object)),
    "two labels": (PinvClassifier(40, random_state=0, gamma=rules.OCRePCV(n_folds=4)), (Y > 0).astype(int)),
    "balanced": (PinvClassifier(40, random_state=0, gamma="kfold", class_weight="balanced"), LABELS),
    "weights of classes": (TikhonovClassifier(gamma="kfold", class_weight={"low": 0.0, "up": 3.0}), LABELS),
    "features of one's own": (TikhonovRegressor(gamma="kfold"), Y),
}


def merged(made):
    return reduce(lambda one, other: one.merge(other), made)


def cut(*arrays, cuts=CUTS):
    for number, (a, b) in enumerate(cuts):
        yield number, tuple(None if values is None else values[a:b] for values in arrays)


def surveyed(plan, *arrays, cuts=CUTS):
    if not plan.missing:
        return plan
    return plan.with_survey(merged(plan.survey(*some, part_number=i) for i, some in cut(*arrays, cuts=cuts)))


def finished(plan, *arrays, cuts=CUTS):
    plan = surveyed(plan, *arrays, cuts=cuts)
    return plan.finish(merged(plan.of(*some, part_number=i) for i, some in cut(*arrays, cuts=cuts)), n_parts=len(cuts))


def assert_same(found, fitted, X_new=NEW, tolerance=1e-10):
    """γ as in the golden fits: searched to 1e-5, else to rounding; predictions under one γ."""
    np.testing.assert_allclose(found.gamma_, fitted.gamma_, rtol=1e-5)
    np.testing.assert_allclose(
        found.singular_values_, fitted.singular_values_, rtol=0, atol=1e-12 * fitted.singular_values_[0]
    )
    assert found.rank_ == fitted.rank_
    found, fitted = found.with_gamma(fitted.gamma_), fitted.with_gamma(fitted.gamma_)
    if hasattr(fitted, "classes_"):
        np.testing.assert_array_equal(found.predict(X_new), fitted.predict(X_new))
        assert found.predict(X_new).dtype == fitted.predict(X_new).dtype
        found, fitted = found.decision_function(X_new), fitted.decision_function(X_new)
    else:
        found, fitted = found.predict(X_new), fitted.predict(X_new)
    assert found.shape == fitted.shape
    np.testing.assert_allclose(found, fitted, rtol=0, atol=tolerance * np.max(np.abs(fitted)))


@some_advice
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
def test_finish_gives_the_model_of_fit_on_all_rows(name, weight):
    model, y = MODELS[name]
    found = finished(parts.plan(model), X, y, weight)
    fitted = model.fit(X, y, sample_weight=weight)
    assert_same(found, fitted)
    assert found.n_features_in_ == 4
    assert (found.folds_ is None) == (fitted.folds_ is None)
    if fitted.folds_ is not None:
        assert_same(found.with_gamma(model.gamma), fitted)
    assert not hasattr(parts.plan(model).model, "gamma_")


def test_merging_is_associative_and_commutative_through_bytes_and_files(tmp_path):
    plan = surveyed(parts.plan(MODELS["labels"][0]), X, LABELS)
    a, b, c, d = (plan.of(*some, part_number=i) for i, some in cut(X, LABELS))
    b.save(tmp_path / "b.npz")
    with np.load(tmp_path / "b.npz", allow_pickle=False) as file:
        assert str(file["head"]) == "ocrep part"
    orders = [a.merge(b).merge(c.merge(d)), d.merge(Part.load(tmp_path / "b.npz")).merge(c).merge(a)]
    orders += [merged(Part.from_bytes(part.to_bytes()) for part in (c, a, d, b))]
    orders += [Part.from_bytes(orders[0].to_bytes())]
    first, *others = (plan.finish(part, n_parts=4) for part in orders)
    for other in others:
        assert_same(other, first)
    assert orders[0].numbers == {0, 1, 2, 3}
    assert repr(a) == "Part(numbers=[0])"


def test_a_plan_travels_and_is_small():
    model = PinvClassifier(40, weight_init="pairs")  # without a seed: the plan takes one for all
    plan = surveyed(parts.plan(model), X, LABELS)
    sent = pickle.dumps(plan)
    assert len(sent) < 20_000
    copies = [pickle.loads(sent) for _ in CUTS]
    part = merged(copies[i].of(*some, part_number=i) for i, some in cut(X, LABELS))
    found = plan.finish(part, n_parts=4)
    assert found.score(X, LABELS) > 0.7
    assert found.get_params()["random_state"] is None
    assert parts.plan(model).recipe.layer.random_state != parts.plan(model).recipe.layer.random_state


def test_two_who_make_the_same_plan_from_one_survey_have_one_plan(tmp_path):
    """A job array needs no pickles: each job makes the plan, and reads the survey."""
    model = PinvRegressor(40, random_state=3, gamma="kfold", weight_init="pairs")
    first = parts.plan(model)
    merged(first.survey(*some, part_number=i) for i, some in cut(X, Y)).save(tmp_path / "survey.npz")
    plans = [parts.plan(model).with_survey(Survey.load(tmp_path / "survey.npz")) for _ in CUTS]
    part = merged(plans[i].of(*some, part_number=i) for i, some in cut(X, Y))
    assert_same(plans[3].finish(part), model.fit(X, Y))


@pytest.mark.parametrize("rows", [X, X.astype(np.float32), sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))])
@pytest.mark.parametrize("y", [LABELS, LABELS.astype(object), (Y > 0).astype(int), (Y > 0).astype(object)])
def test_surveys_come_back_from_bytes_as_they_were(rows, y):
    """A plan from the bytes is the plan itself: same layer, same classes of the same type."""
    first = parts.plan(PinvClassifier(30, random_state=0, weight_init="pairs", class_weight="balanced"))
    surveys = [first.survey(*some, part_number=i) for i, some in cut(rows, y)]
    plan = first.with_survey(merged(surveys))
    again = first.with_survey(merged(Survey.from_bytes(survey.to_bytes()) for survey in surveys))
    part = merged((plan, again)[i % 2].of(*some, part_number=i) for i, some in cut(rows, y))
    found = again.finish(part)
    assert found.classes_.dtype == y.dtype
    assert_same(found, first.model.fit(rows, y))


@pytest.mark.parametrize(
    "random_state",
    [None, 3, np.random.RandomState(3), np.random.default_rng(3)],
    ids=["none", "seed", "state", "generator"],
)
def test_completing_a_plan_again_changes_nothing(random_state):
    plan = parts.plan(PinvRegressor(20, random_state=random_state))
    survey, wider = (plan.survey(scale * X, Y, part_number=0) for scale in (1.0, 2.0))
    first = plan.with_survey(survey)
    part = first.of(X[:500], Y[:500], part_number=0)
    plan.with_survey(wider)
    later = first.of(X[500:], Y[500:], part_number=1)
    whole = part.merge(plan.with_survey(survey).of(X[500:], Y[500:], part_number=1))
    assert_same(first.finish(part.merge(later)), plan.with_survey(survey).finish(whole))


def test_without_a_survey_where_ranges_and_labels_are_given():
    model = PinvRegressor(30, random_state=0, input_scaling=(-1, 1))
    plan = parts.plan(model, n_features=4)
    assert plan.missing == ()
    assert_same(finished(plan, X, Y), model.fit(X, Y))
    two = np.stack([Y, -Y], axis=1)
    assert_same(finished(parts.plan(model, n_features=4, n_targets=2), X, two), model.fit(X, two))
    model = TikhonovClassifier(class_weight={"up": 2.0})
    assert_same(
        finished(parts.plan(model, n_features=4, classes=["up", "mid", "low"]), X, LABELS), model.fit(X, LABELS)
    )


def test_groups_are_held_out_whole():
    model = PinvRegressor(30, random_state=0, gamma=rules.KFold(split="groups"))
    found = finished(parts.plan(model), X, Y, WEIGHT, GROUPS)
    assert_same(found, model.fit(X, Y, sample_weight=WEIGHT, groups=GROUPS))


def test_data_frames_sparse_rows_and_scans(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = PinvClassifier(30, random_state=0, gamma="kfold", weight_init="pairs")
    found = finished(parts.plan(model), frame, pd.Series(LABELS))
    assert_same(found, model.fit(frame, pd.Series(LABELS)), frame[:50])
    assert list(found.feature_names_in_) == list("abcd")
    given = parts.plan(TikhonovRegressor(), feature_names=list("abcd"))
    assert_same(finished(given, frame, Y), TikhonovRegressor().fit(frame, Y), frame[:50])

    rows = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    assert_same(finished(parts.plan(model), rows, LABELS), model.fit(rows, LABELS))

    frame["label"], frame["fold"] = LABELS, GROUPS
    model.set_params(gamma=rules.KFold(split="groups"))
    plan, options = parts.plan(model), {"target": "label", "groups": "fold"}
    for number, (some,) in cut(frame):
        some.to_parquet(tmp_path / f"{number}.parquet")
    scans = [scan(tmp_path / f"{number}.parquet", **options) for number in range(4)]
    plan = plan.with_survey(merged(plan.survey(rows, part_number=i) for i, rows in enumerate(scans)))
    found = plan.finish(merged(plan.of(rows, part_number=i) for i, rows in enumerate(scans)))
    assert_same(found, model.fit(scan(tmp_path, **options)), frame[list("abcd")][:50])


def test_parts_without_rows_and_without_weight_change_nothing():
    model, y = MODELS["balanced"]
    cuts, weight = [(0, 0), (0, 500), (500, 500), (500, 600), (600, 900)], np.ones(N)
    weight[500:600] = 0.0
    found = finished(parts.plan(model), X, y, weight, cuts=cuts)
    assert_same(found, model.fit(X, y, sample_weight=weight))
    plan = parts.plan(TikhonovRegressor(), n_features=4)
    empty = plan.of(X[:0], Y[:0], part_number=0)
    assert Part.from_bytes(empty.to_bytes()).summary is None
    with pytest.raises(ValueError, match="no rows"):
        plan.finish(empty)
    with pytest.raises(ValueError, match="weights are zero"):
        plan.finish(plan.of(X, Y, np.zeros(N), part_number=0))


def test_the_finished_model_learns_further_rows():
    model = TikhonovRegressor(gamma="kfold")
    found = finished(parts.plan(model), X[:700], Y[:700], cuts=[(0, 300), (300, 700)]).partial_fit(X[700:], Y[700:])
    assert_same(found, model.fit(X, Y))


def test_a_killed_job_is_done_again_and_a_repeated_one_does_no_harm(tmp_path):
    plan = surveyed(parts.plan(MODELS["folds"][0]), X, Y)
    for number, some in [*cut(X, Y), *list(cut(X, Y))[1:3]]:  # two jobs run twice
        plan.of(*some, part_number=number).save(tmp_path / f"{number}.npz")
    (tmp_path / ".2.npz.12345678.part").write_bytes(b"half a file")
    found = plan.finish(merged(Part.load(path) for path in sorted(tmp_path.glob("*.npz"))), n_parts=4)
    assert_same(found, MODELS["folds"][0].fit(X, Y))


REGRESSOR = PinvRegressor(20, random_state=0, gamma="kfold")


@pytest.fixture(scope="module")
def plan():
    return surveyed(parts.plan(REGRESSOR), X, Y)


@pytest.fixture(scope="module")
def made(plan):
    return [plan.of(*some, part_number=i) for i, some in cut(X, Y)]


def test_a_part_counts_once(made):
    both = made[0].merge(made[1])
    with pytest.raises(ValueError, match=r"^Part 1 is in both: each part counts once"):
        both.merge(made[1])
    with pytest.raises(ValueError, match=r"^Parts 0 and 1 are in both"):
        both.merge(both)
    assert both.numbers == {0, 1}


def test_missing_parts_are_named(plan, made):
    some = made[0].merge(made[3])
    with pytest.raises(ValueError, match=r"^Parts 1 and 2 are missing: make and merge all parts"):
        plan.finish(some)
    with pytest.raises(ValueError, match=r"^Parts 1, 2, 4, 5, 6, 7, 8, 9 and 20 more are missing"):
        plan.finish(some, n_parts=30)
    with pytest.raises(ValueError, match=r"^Part 3 is beyond n_parts=3"):
        plan.finish(merged(made), n_parts=3)
    assert plan.finish(some.merge(made[2]).merge(made[1])).n_features_in_ == 4


OTHERS = {
    "seed": PinvRegressor(20, random_state=1, gamma="kfold"),
    "size": PinvRegressor(21, random_state=0, gamma="kfold"),
    "activation": PinvRegressor(20, random_state=0, gamma="kfold", activation="tanh"),
    "folds": PinvRegressor(20, random_state=0, gamma=rules.KFold(n_folds=4)),
    "intercept": PinvRegressor(20, random_state=0, gamma="kfold", fit_intercept=False),
    "range": PinvRegressor(20, random_state=0, gamma="kfold", input_scaling=(-2, 2)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_parts_of_another_plan_are_refused(name, plan, made):
    other = surveyed(parts.plan(OTHERS[name], n_features=4), X, Y)
    part = other.of(X[300:], Y[300:], part_number=1)
    for refused in (lambda: made[0].merge(part), lambda: plan.finish(part), lambda: other.finish(made[0])):
        with pytest.raises(ValueError, match="is of another plan"):
            refused()


def test_surveys_of_another_plan_are_refused():
    survey = parts.plan(REGRESSOR).survey(X, Y, part_number=0)
    labels = parts.plan(PinvClassifier()).survey(X, LABELS, part_number=1)
    with pytest.raises(ValueError, match="This survey is of another plan"):
        survey.merge(labels)
    with pytest.raises(ValueError, match="This survey is of another plan"):
        parts.plan(PinvClassifier(class_weight="balanced")).with_survey(labels)


def test_rows_outside_the_survey_are_refused(plan):
    wild = X[:9].copy()
    wild[4, 2] = 7.5
    with pytest.raises(ValueError, match=r"^Part 5: column 2 holds 7\.5, outside the range -0\.99\d* to 0\.99\d* that"):
        plan.of(wild, Y[:9], part_number=5)
    with pytest.raises(ValueError, match=r"^Part 5: column 2 holds -7\.5, outside"):
        plan.of(-wild, Y[:9], part_number=5)
    weight = np.ones(9)
    weight[4] = 0.0
    assert plan.of(wild, Y[:9], weight, part_number=5).numbers == {5}
    labelled = surveyed(parts.plan(PinvClassifier(9)), X, LABELS)
    with pytest.raises(ValueError, match=r"^Part 5, row 2: the label 'new' is not among the classes"):
        labelled.of(X[:2], ["up", "new"], part_number=5)
    grouped = surveyed(parts.plan(PinvRegressor(9, gamma=rules.KFold(split="groups"))), X, Y, None, GROUPS)
    with pytest.raises(ValueError, match=r"^Part 5, row 2: the group was not surveyed"):
        grouped.of(X[:3], Y[:3], None, [0, 99, 1], part_number=5)
    assert grouped.of(X[:3], Y[:3], [1, 0, 1], [0, 99, 1], part_number=5).numbers == {5}


def test_columns_and_targets_are_those_of_the_plan(plan):
    frame = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(ValueError, match=r"^Part 2 has 3 columns, but the plan has 4"):
        plan.of(X[:, :3], Y, part_number=2)
    with pytest.raises(ValueError, match=r"^Part 2 has the columns 'a', .* but the plan without names: give all parts"):
        plan.of(frame, Y, part_number=2)
    with pytest.raises(ValueError, match=r"^Part 2: y has the shape \(900, 2\), but in the plan it has one axis"):
        plan.of(X, np.stack([Y, Y], axis=1), part_number=2)
    with pytest.raises(ValueError, match=r"^Part 2: X has 3 columns, and the plan was made for n_features=4"):
        parts.plan(REGRESSOR, n_features=4).survey(X[:, :3], Y, part_number=2)
    other = parts.plan(REGRESSOR).survey(X[:, :3], Y, part_number=2)
    with pytest.raises(ValueError, match="n_features=4"):
        parts.plan(REGRESSOR, n_features=4).with_survey(other)
    with pytest.raises(ValueError, match=r"^Part 2, row 1: .*Input X contains NaN"):
        plan.of(np.full_like(X, np.nan), Y, part_number=2)


def test_a_plan_that_is_not_complete_says_what_it_must_know():
    with pytest.raises(ValueError, match="must know the number of inputs and the range of the inputs and all labels"):
        parts.plan(PinvClassifier()).of(X, LABELS, part_number=0)
    plan = parts.plan(REGRESSOR)
    nothing = plan.survey(X[:0], Y[:0], part_number=0)
    with pytest.raises(ValueError, match="no rows"):
        plan.with_survey(nothing)
    assert "missing=['the number of inputs'" in repr(parts.plan(REGRESSOR))
    assert repr(parts.plan(TikhonovRegressor(), n_features=4)) == "Plan(TikhonovRegressor(), n_features=4)"


@pytest.mark.parametrize(
    ("model", "options", "told"),
    [
        (PinvRegressor(gamma="loo"), {}, "gamma='loo' reads the rows once more, but of parts only their factors"),
        (PinvClassifier(calibrate="loo"), {}, "calibrate='loo' reads the rows once more"),
        (PinvRegressor(solver="gram"), {}, "solver='gram' may have to read rows again"),
        (PinvRegressor(gamma=rules.KFold(split="blocks")), {}, "split='blocks' goes by the numbers of the rows"),
        (PinvRegressor(), {"classes": [0, 1]}, "are for classifiers"),
        (PinvClassifier(class_weight="balanced"), {"classes": [0, 1]}, "needs a survey"),
        (PinvClassifier(), {"classes": [1]}, "only one class"),
        (PinvRegressor(), {"n_features": 0}, r"n_features=0 must be a whole number ≥ 1"),
        (TikhonovRegressor(), {"n_features": 3, "n_targets": 1.5}, r"n_targets=1.5 must be a whole number"),
    ],
)
def test_what_parts_cannot_give_is_refused_before_any_row(model, options, told):
    with pytest.raises(ValueError, match=told):
        parts.plan(model, **options)


def test_only_networks_and_ridge_heads_are_planned():
    with pytest.raises(TypeError, match="and not PinvClassifierCV"):
        parts.plan(PinvClassifierCV(ensemble=False))


def test_wrong_things_are_named(plan, made):
    survey = parts.plan(REGRESSOR).survey(X, Y, part_number=0)
    with pytest.raises(TypeError, match=r"^A Survey was given, and a Part of ocrep\.parts is needed"):
        plan.finish(survey)
    with pytest.raises(TypeError, match=r"a Part of ocrep\.parts is needed"):
        made[0].merge(survey)
    for number in (-1, 1.5, True, "1"):
        with pytest.raises(ValueError, match=r"part_number=.* must be a whole number ≥ 0"):
            plan.of(X, Y, part_number=number)
    with pytest.raises(ValueError, match="give only the scan"):
        plan.of(scan(X, Y), Y, part_number=0)
    blocks = (block for block in [(X, Y)])
    with pytest.raises(ValueError, match="can be read only once"):
        parts.plan(REGRESSOR).survey(scan(blocks), part_number=0)
    assert plan.of(scan(block for block in [(X, Y)]), part_number=0).numbers == {0}


def test_parts_are_made_on_the_host(plan):
    import array_api_strict as xp

    with pytest.raises(ValueError, match="parts are made on the host"):
        plan.of(xp.asarray(X), xp.asarray(Y), part_number=0)


def changed(part, **held):
    """The bytes of a part with other arrays in the place of some; None leaves one out."""
    arrays = dict(np.load(io.BytesIO(part.to_bytes()), allow_pickle=False))
    arrays.update(held)
    file = io.BytesIO()
    np.savez(file, **{name: array for name, array in arrays.items() if array is not None})
    return file.getvalue()


def test_bytes_of_another_version_are_refused(made, monkeypatch):
    monkeypatch.setattr(parts_archive, "FORMAT", 2)
    monkeypatch.setattr(parts_archive, "__version__", "9.1")
    newer = made[0].to_bytes()
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"written by ocrep 9\.1 in another format.*use one version everywhere"):
        Part.from_bytes(newer)


def test_bytes_of_something_else_are_refused(made, tmp_path):
    survey = parts.plan(REGRESSOR).survey(X, Y, part_number=0)
    with pytest.raises(ValueError, match="These are the bytes of a 'survey', and a part is needed"):
        Part.from_bytes(survey.to_bytes())
    whole = made[0].to_bytes()
    compressed = io.BytesIO()
    np.savez_compressed(compressed, a=np.zeros(10**6))
    single = io.BytesIO()
    np.save(single, X)
    pickled = pickle.dumps(made[0])
    for data in (b"", b"nothing", whole[:-200], whole[:5000], compressed.getvalue(), single.getvalue(), pickled):
        with pytest.raises(ValueError, match="These bytes are not a part of ocrep, or a damaged one"):
            Part.from_bytes(data)
    (tmp_path / "x.npz").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"x\.npz: These bytes are not a part"):
        Part.load(tmp_path / "x.npz")


@pytest.mark.parametrize(
    "held",
    [
        {"plan": None},
        {"kind": np.array("Plan")},
        {"numbers": np.array("x")},
        {"state:fold0.R": None},
        {"state:fold0.R": np.full((20, 20), np.nan)},
        {"state:fold1.QtT": np.zeros((20, 2))},
        {"state:fold2.left": np.zeros(1, dtype=int)},
        {"state:fold2.counts": np.zeros(2)},
        {"state:plan": np.zeros(1)},
    ],
    ids=str,
)
def test_damaged_bytes_are_refused(held, made):
    with pytest.raises(ValueError, match="damaged"):
        Part.from_bytes(changed(made[0], **held))
    assert Part.from_bytes(changed(made[0])).numbers == {0}


def test_one_flipped_bit_is_noticed(made):
    data = bytearray(made[0].to_bytes())
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as file:
        start = file.getinfo("state:fold0.R.npy").header_offset
    data[start + 400] ^= 1
    with pytest.raises(ValueError, match="damaged"):
        Part.from_bytes(bytes(data))


def test_labels_that_cannot_be_written_say_so():
    labels = np.empty(2, dtype=object)
    labels[:] = [(1, 2), (3, 4)]
    survey = parts.plan(PinvClassifier()).survey(X[:2], labels, part_number=0)
    with pytest.raises(ValueError, match=r"labels such as \(1, 2\) cannot be written: use texts or whole numbers"):
        survey.to_bytes()
