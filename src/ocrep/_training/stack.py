"""`stack`: several networks with layers of different kinds, weighed by their predictions of held-out rows.

Each candidate predicts every row by weights that were fitted without the row's fold (`ridge_sums`), with the γ that
makes these predictions best. Let P_m be the held-out predictions of candidate m. The stack is Σ w_m·f_m with

    w = argmin ‖T − Σ w_m P_m‖²,  w ≥ 0,  Σ w_m = 1,

a small problem of least squares without negative weights. For labels the weights minimise the log-loss of
softmax(Σ u_m P_m) instead, u ≥ 0 and w = u/Σu, which is convex too and gave fewer errors. Most weights are zero, and
those candidates are dropped. A stack of networks with one hidden layer is such a network again: layers side by side,
and output weights times w_m.

Honest folds. What trees and metrics learn of the targets is judged on rows that they have not seen: such a layer is
learned once more without each fold, with its own rounds, and predicts the fold. Other layers see little or nothing of
the targets, and are drawn once.

Rows. Candidates are compared on the sample of distinct rows that the survey holds, at most `selection_rows`, whatever
the rows are: arrays, files, Dask or a device. If there are more rows, the members' output weights are fitted on all of
them in one further reading; the layers, γ and the weights of the stack stay. Of more than 10,000 rows, 10,000 decide
γ and the weights, which more rows would hardly change, and 2,000 of these decide first which candidates go on: those
with a share in the stack of these rows, and the best, but at least four.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Real
from time import perf_counter
from typing import Any

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.special import expit
from sklearn.base import clone

from ocrep._layers.hidden_map import HiddenMap
from ocrep._layers.random_layer import JoinedLayers
from ocrep._linalg.arrays import as_float64, to_device_of, to_host
from ocrep._linalg.folds import FoldPlan
from ocrep._linalg.parallel import at_once
from ocrep._linalg.ridge_sums import FoldedRows, RidgeProblem, RidgeSums, best_gamma, mean_of, refined, without_each
from ocrep._linalg.rows import ChunkEncoder, Encoder, cut, summarize
from ocrep._linalg.solve import Factored, solve
from ocrep._rows.block import Block
from ocrep._rows.memory import Rows
from ocrep._rows.survey import SAMPLE_ROWS, Needs, RowSample, Survey
from ocrep._training.calibration import Calibrator, LabelCalibrator, LeftOutErrors
from ocrep._training.recipe import Learned, Recipe, check_candidates
from ocrep._training.selection import Candidate, Report, Score, check_memory, too_few, warn_of_failures
from ocrep._training.train import learn, log_losses, sample_by_fold

# Rows that decide γ and the weights of the stack at most, and those on which all candidates are tried first, where the
# others are more than twice as many.
_COMPARED = 10_000
_FIRST_ROUND = 2_000
_FEWER = 2
# Candidates with a smaller share in the stack of the first round are dropped, but not the best ones.
_LEAST_SHARE = 0.02
_FEWEST_LEFT = 4
# Members with a smaller weight are left out of the stack.
_LEAST_WEIGHT = 1e-3
# What outputs are multiplied by at most to become logits, where classes are separable.
_MOST_LIKELY = 1e3
# Output weights are refined on the rows where γ is less than this share of tr(A): above it they are right to 10⁻⁸.
_REFINED_BELOW = 1e-8

MakeCandidates = Callable[[int, int, int], Sequence[Candidate]]
"""The candidates for a number of rows, inputs and outputs."""


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """The result: one network of layers side by side, and the best of its members by itself."""

    candidates: tuple[Candidate, ...]
    scores: tuple[Score, ...]
    shares: np.ndarray
    """The weight of each candidate in the stack."""
    best: int
    learned: Learned
    output_weights: Any
    """Outputs × features."""
    intercept: Any
    calibrator: Calibrator | LabelCalibrator | LeftOutErrors
    best_learned: Learned
    best_factored: Factored
    best_gamma: float
    loss: float
    """Of the stack's held-out predictions, as in its scores."""


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Rows in memory with all that the comparison of candidates reads of them."""

    survey: Survey
    """With the sample of rows on the host."""
    learned: Learned
    """The coding of targets and folds; without a layer."""
    rows: FoldedRows
    """The rows of the sample by fold; `rows.places` are their places in the sample."""

    @classmethod
    def of(cls, survey: Survey, recipe: Recipe, n_rows: int | None) -> _Problem:
        """Code the targets of the sample, and divide its rows into folds."""
        assert survey.sample is not None
        learned = Learned.of(replace(recipe, layer=None, metric=None), survey, n_rows)
        return cls(survey, learned, sample_by_fold(learned, survey.sample, recipe.folds))

    @property
    def sample(self) -> RowSample:
        assert self.survey.sample is not None
        return self.survey.sample

    def first(self, n_rows: int, recipe: Recipe) -> _Problem:
        """The same on the first rows of the sample, and a few rows of every label."""
        sample = self.sample.first(n_rows, every_label=self.sample.labels)
        survey = replace(self.survey, sample=sample)
        return replace(self, survey=survey, rows=sample_by_fold(self.learned, sample, recipe.folds))

    def for_layer(self, recipe: Recipe, without: slice | None = None) -> Survey:
        """What a layer is drawn on: the sample, or what is left without the rows of a fold.

        All kinds but trees look at a part of them only.
        """
        sample = self.sample
        if without is not None:
            kept = np.ones(len(self.rows), dtype=bool)
            kept[self.rows.places[without]] = False
            sample = sample.of_rows(kept)
        if recipe.layer is not None and recipe.layer.weight_init != "trees":
            sample = sample.first(SAMPLE_ROWS)
        return replace(self.survey, sample=sample, like=None)


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """A candidate's held-out predictions, and what remains to fit its output weights on all rows."""

    gamma: float
    outputs: np.ndarray
    """In the order of the rows by fold."""
    learned: Learned | None = None
    """For layers that were drawn on all rows."""
    sums: RidgeSums | None = None


def stack(
    rows: Rows,
    needs: Needs,
    make_candidates: MakeCandidates,
    most_rows: int,
    report: Report,
    *,
    seconds: float = math.inf,
) -> Stack:
    """Compare candidates, weigh them, and fit the members of the stack; `report` is called after each.

    No further candidate is begun after some `seconds`. Candidates that fail are named in a warning.
    """
    start = perf_counter()
    check_candidates([], rows, sampled=True)
    if rows.checkpoint is not None:
        raise ValueError("checkpoint= saves the factors of one network: use ensemble=False, or scan without it.")
    survey = rows.survey(replace(needs, range=True, sample=most_rows, totals=needs.labels, every_label=needs.labels))
    sample = survey.sample
    assert sample is not None
    if np.array_equal(survey.low, survey.high) or len(sample.hashes) == 0:
        raise too_few(survey.n_rows, FoldPlan())
    whole = len(sample.hashes) < sample.size
    # Equal rows count once, so that a weight equals repetition.
    n_rows = len(sample.hashes) if whole else survey.n_rows
    candidates = tuple(make_candidates(n_rows, survey.n_inputs, _n_outputs(survey)))
    check_memory(candidates, survey, min(survey.n_rows, most_rows))
    first = candidates[0][1]
    problem = _Problem.of(survey, first, rows.n_rows)
    compared = problem.first(_COMPARED, first) if len(problem.rows) > _COMPARED else problem
    by_fold = compared.rows
    scores = [Score(0.0) for _ in candidates]
    left = list(range(len(candidates)))
    if len(by_fold) > _FEWER * _FIRST_ROUND:
        few = problem.first(_FIRST_ROUND, first)
        # Fewer rows, fewer units: this round only decides who goes on. The kinds are the same, in the same order.
        smaller = make_candidates(_FIRST_ROUND, survey.n_inputs, _n_outputs(survey))
        judged = _judge(few, [(n, smaller[n]) for n in left], scores, report, start + seconds)
        left = _left(few, judged, scores)
    judged = _judge(compared, [(n, candidates[n]) for n in left], scores, report, start + seconds)
    numbers = sorted(judged)
    shares = np.zeros(len(candidates))
    shares[numbers] = _shares(compared, [judged[n].outputs for n in numbers])
    shares[shares < _LEAST_WEIGHT] = 0.0
    shares /= shares.sum()
    members = np.flatnonzero(shares).tolist()
    best = min(numbers, key=lambda n: (scores[n].loss, n))
    held_out = sum(shares[n] * judged[n].outputs for n in members)
    needed = sorted({*members, best})
    drawn = dict(zip(needed, at_once(lambda n: _drawn(problem, candidates[n][1], judged[n]), needed), strict=True))
    if whole:
        found = at_once(lambda n: _fitted_on_sample(problem, candidates[n][1], judged[n], drawn[n]), members)
        fitted = dict(zip(members, found, strict=True))
    else:
        fitted = _fitted_on_all_rows(problem, rows, {n: (candidates[n][1], drawn[n], judged[n].gamma) for n in members})
    layers = JoinedLayers(tuple(drawn[n].one_layer for n in members))
    W = np.concatenate([shares[n] * fitted[n][0] for n in members]) * problem.rows.scale
    b = sum(shares[n] * fitted[n][1] for n in members) * problem.rows.scale + problem.rows.center
    on_device = survey.like is not None
    best_learned = replace(drawn[best], on_device=on_device)
    if on_device:
        layers = layers._with_map(lambda own: own.to_device_of(survey.like))
        layer = best_learned.one_layer._with_map(lambda own: own.to_device_of(survey.like))
        best_learned = replace(best_learned, layer=layer)
    learned = replace(problem.learned, layer=layers, on_device=on_device)
    recipe = candidates[best][1]
    factored = solve(rows, best_learned.encoder, None, intercept=recipe.intercept, solver=recipe.solver)
    calibrator = _calibrator(compared, held_out, learned)
    _, losses = _errors(compared, held_out)
    return Stack(
        candidates=candidates,
        scores=tuple(scores),
        shares=shares,
        best=best,
        learned=learned,
        output_weights=_moved(survey, np.ascontiguousarray(W.T)),
        intercept=_moved(survey, np.asarray(b)),
        calibrator=calibrator,
        best_learned=best_learned,
        best_factored=factored,
        best_gamma=judged[best].gamma,
        loss=float(losses.sum() / by_fold.weight.sum()),
    )


def _n_outputs(survey: Survey) -> int:
    if survey.target_shape:
        return survey.target_shape[0]
    return 1 if survey.labels is None or len(survey.labels) == 2 else len(survey.labels)


def _moved(survey: Survey, array: np.ndarray) -> Any:
    return array if survey.like is None else to_device_of(survey.like, array)


# ------------------------------------------------------------------------------
# The held-out predictions of one candidate.


def _judge(
    problem: _Problem,
    candidates: Sequence[tuple[int, Candidate]],
    scores: list[Score],
    report: Report,
    deadline: float,
) -> dict[int, _Judged]:
    """The held-out predictions of each candidate that did not fail, by its number; their scores are set."""
    judged: dict[int, _Judged] = {}

    def attempt(item: tuple[int, Candidate]) -> None:
        number, (parameters, recipe) = item
        start = perf_counter()
        if start > deadline and number != candidates[0][0]:
            return
        try:
            nested = recipe.learns_layer
            found = _judged_nested(problem, recipe) if nested else _judged_once(problem, recipe)
            scores[number] = _score(problem, found, perf_counter() - start, nested=nested)
            judged[number] = found
        except Exception as failure:  # whatever is wrong with one candidate, the others may do
            scores[number] = Score(perf_counter() - start, failure=failure)
        report(number, len(scores), parameters, scores[number])

    at_once(attempt, candidates)
    for item in candidates:  # if those that were begun in time failed, the others are tried until one does not
        if not judged and not scores[item[0]].n_rows and scores[item[0]].failure is None:
            deadline = math.inf
            attempt(item)
    warn_of_failures([(parameters, scores[number].failure) for number, (parameters, _) in candidates])
    return judged


def _judged_once(problem: _Problem, recipe: Recipe) -> _Judged:
    """One layer drawn on all rows, and output weights without each fold."""
    learned = learn(replace(recipe, layer=clone(recipe.layer)), problem.for_layer(recipe), None)
    rows = problem.rows
    sums = rows.sums(learned.features, learned.n_features)
    problems = [others.problem(intercept=recipe.intercept) for others in without_each(sums)]
    gamma = _gamma(recipe, problems, sums)
    outputs = [
        rows.outputs(rows.fold(v), learned.features, *fitted.weights(gamma)) for v, fitted in enumerate(problems)
    ]
    return _Judged(gamma, np.concatenate(outputs), learned, reduce(RidgeSums.merge, sums))


def _judged_nested(problem: _Problem, recipe: Recipe) -> _Judged:
    """For each fold a layer that was learned without it."""
    problems: list[RidgeProblem] = []
    held: list[RidgeSums] = []
    layers: list[Learned] = []
    for v in range(problem.rows.n_folds):
        halves = problem.rows.halves(v)
        if halves.starts[1] < 2:
            raise too_few(len(halves), recipe.folds or FoldPlan())
        without = problem.for_layer(recipe, problem.rows.fold(v))
        learned = learn(replace(recipe, layer=clone(recipe.layer)), without, None)
        rest, fold = halves.sums(learned.features, learned.n_features)
        problems.append(rest.problem(intercept=recipe.intercept))
        held.append(fold)
        layers.append(learned)
    gamma = _gamma(recipe, problems, held)
    outputs = [
        problem.rows.outputs(problem.rows.fold(v), learned.features, *fitted.weights(gamma))
        for v, (fitted, learned) in enumerate(zip(problems, layers, strict=True))
    ]
    return _Judged(gamma, np.concatenate(outputs))


def _gamma(recipe: Recipe, problems: Sequence[RidgeProblem], held: Sequence[RidgeSums]) -> float:
    """The γ that was given as a number, or else the one with the least held-out error."""
    return float(recipe.gamma) if isinstance(recipe.gamma, Real) else best_gamma(problems, held)


def _score(problem: _Problem, found: _Judged, seconds: float, *, nested: bool) -> Score:
    squares, losses = _errors(problem, found.outputs)
    numbers = problem.rows.numbers
    weights = np.bincount(numbers, problem.rows.weight)
    loss = float(losses.sum() / weights.sum())
    if not math.isfinite(loss):
        raise ValueError("the held-out error is not finite: rescale the inputs or the targets.")
    by_fold = np.bincount(numbers, losses) / weights
    return Score(
        seconds,
        found.gamma,
        loss,
        tuple(by_fold.tolist()),
        float(squares.sum() / weights.sum()),
        len(losses),
        judged="nested" if nested else "exact",
    )


def _errors(problem: _Problem, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each row its weight times the squared error, the mean over targets in their own units, and times the loss.

    The loss of labels is minus the logarithm of the probability of the true one, under the softmax of the outputs times
    the factor that fits these rows best.
    """
    rows = problem.rows
    squares = rows.weight * np.mean(((outputs - rows.T) * rows.scale) ** 2, axis=1)
    targets = problem.learned.targets
    if not targets.labels:
        return squares, squares
    losses = log_losses(outputs, rows.T, several=targets.several)
    best = int(np.argmin(rows.weight @ losses))
    return squares, rows.weight * losses[:, best]


def _left(problem: _Problem, judged: dict[int, _Judged], scores: Sequence[Score]) -> list[int]:
    """The candidates that go on: those with a share in the stack, and the best."""
    numbers = sorted(judged)
    shares = _shares(problem, [judged[n].outputs for n in numbers])
    used = [n for n, share in zip(numbers, shares, strict=True) if share >= _LEAST_SHARE]
    ranked = sorted(numbers, key=lambda n: (n not in used, scores[n].loss, n))
    return sorted(ranked[: max(len(used), _FEWEST_LEFT)])


def _shares(problem: _Problem, predictions: Sequence[np.ndarray]) -> np.ndarray:
    """The weight of each candidate in the stack, by what judges the task."""
    rows, targets = problem.rows, problem.learned.targets
    if not targets.labels:
        return nearest_shares(predictions, rows.T, rows.weight)
    return likeliest_shares(predictions, rows.T, rows.weight, several=targets.several)


def likeliest_shares(
    predictions: Sequence[np.ndarray], T: np.ndarray, weight: np.ndarray, *, several: bool
) -> np.ndarray:
    """Weights ≥ 0 with sum 1, proportional to the u ≥ 0 with the least log-loss of the logits Σ u_m P_m."""
    if T.shape[1] == 1 or several:  # the log-odds of a label are 2·Σ u_m P_m
        signed = [-2.0 * P * T for P in predictions]

        def loss(u: np.ndarray) -> tuple[float, np.ndarray]:
            z = sum(a * P for a, P in zip(u, signed, strict=True))
            slope = weight[:, None] * expit(z)
            return float(weight @ np.logaddexp(0.0, z).sum(axis=1)), np.array([np.sum(slope * P) for P in signed])
    else:
        is_true = T > 0.0

        def loss(u: np.ndarray) -> tuple[float, np.ndarray]:
            z = sum(a * P for a, P in zip(u, predictions, strict=True))
            z = z - z.max(axis=1, keepdims=True)
            exponentials = np.exp(z)
            sums = exponentials.sum(axis=1)
            slope = weight[:, None] * (exponentials / sums[:, None] - is_true)
            return float(weight @ (np.log(sums) - z[is_true])), np.array([np.sum(slope * P) for P in predictions])

    n = len(predictions)
    # Where classes are separable, the loss falls for ever as u grows: an end keeps the weights finite.
    found = minimize(loss, np.full(n, 2.0 / n), jac=True, method="L-BFGS-B", bounds=[(0.0, _MOST_LIKELY)] * n)
    u = np.asarray(found.x)
    return u / u.sum() if u.sum() > 0.0 else np.full(n, 1.0 / n)


def nearest_shares(predictions: Sequence[np.ndarray], T: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weights ≥ 0 with sum 1 that make the sum of the predictions the nearest to T.

    With the errors E = [P_m − T], ‖T − Σ w_m P_m‖ is ‖Ew‖ where Σ w = 1. Let u ≥ 0 minimise ‖Eu‖² + (1 − Σu)². For
    u = s·w the best s leaves q/(1 + q), q = ‖Ew‖², which grows with q: so w = u/Σu is what is sought, from a problem
    without negative weights alone. Of candidates that predict the same, a slight penalty takes all alike.
    """
    root = np.sqrt(weight)[:, None]
    E = np.stack([((P - T) * root).ravel() for P in predictions], axis=1)
    # Only the triangle of E counts, which is as small as the number of candidates.
    R: np.ndarray = np.asarray(np.linalg.qr(E, mode="r"))
    n = len(predictions)
    size = float(np.abs(R).max(initial=0.0))
    if not size > 0.0:  # all are perfect
        return np.full(n, 1.0 / n)
    A = np.vstack([R / size, np.ones((1, n)), 1e-6 * np.eye(n)])
    u, _ = nnls(A, np.concatenate([np.zeros(len(R)), [1.0], np.zeros(n)]))
    return np.asarray(u / u.sum())


# ------------------------------------------------------------------------------
# The members' output weights, for standardised targets.


def _drawn(problem: _Problem, recipe: Recipe, judged: _Judged) -> Learned:
    """The layer learned on all rows."""
    found = judged.learned
    if found is None or len(judged.outputs) < len(problem.rows):
        found = learn(replace(recipe, layer=clone(recipe.layer)), problem.for_layer(recipe), None)
    return found


def _fitted_on_sample(
    problem: _Problem, recipe: Recipe, judged: _Judged, learned: Learned
) -> tuple[np.ndarray, np.ndarray]:
    """W and b, where the sample holds all rows."""
    rows = problem.rows
    sums = judged.sums if learned is judged.learned else None
    if sums is None:
        sums = reduce(RidgeSums.merge, rows.sums(learned.features, learned.n_features))
    fitted = sums.problem(intercept=recipe.intercept)
    if judged.gamma >= _REFINED_BELOW * fitted.trace:
        return fitted.weights(judged.gamma)
    return refined(rows, learned.features, fitted, judged.gamma, intercept=recipe.intercept)


# Rows of which a worker forms the features of one member at a time: the sums are added to so many rows at once.
_ROWS_AT_ONCE = 2_048


@dataclass(frozen=True, slots=True, eq=False)
class _MemberSums:
    """The sums of each member over the rows so far; the rows come as inputs, and each member forms its own features."""

    members: tuple[RidgeSums, ...]
    maps: tuple[HiddenMap, ...]
    center: Any
    scale: Any

    copies = 2
    merges_in_pairs = False

    @property
    def n_matrices(self) -> int:
        return len(self.members)

    def chunk_size(self, encoder: Encoder, workers: int) -> int | None:
        del workers
        return None if encoder.n_features is None else _ROWS_AT_ONCE

    def add(self, block: Block, chunks: ChunkEncoder) -> _MemberSums:
        members = self.members
        for chunk in cut(block, chunks.size):
            (X, T, weight), _ = chunks.in_workspace(chunk)
            T = (T - self.center) / self.scale
            pairs = zip(members, self.maps, strict=True)
            members = tuple(sums.add(as_float64(own(X)), T, weight) for sums, own in pairs)
        return replace(self, members=members)

    def merge(self, other: _MemberSums) -> _MemberSums:
        pairs = zip(self.members, other.members, strict=True)
        return replace(self, members=tuple(a.merge(b) for a, b in pairs))


def _fitted_on_all_rows(
    problem: _Problem, rows: Rows, members: dict[int, tuple[Recipe, Learned, float]]
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """W and b of each member, from one reading of all rows."""
    like = problem.survey.like
    by_fold = problem.rows
    # The shift only keeps digits: the mean of some rows will do.
    some = slice(1000)
    X, T, weight = by_fold.X[some], by_fold.T[some], by_fold.weight[some]
    shifts = [mean_of(own.features(X), T, weight) for _, own, _ in members.values()]
    maps = [own.one_layer.map_ for _, own, _ in members.values()]
    center, scale = by_fold.center, by_fold.scale
    if like is not None:
        maps = [own.to_device_of(like) for own in maps]
        shifts = [to_device_of(like, shift) for shift in shifts]
        center, scale = to_device_of(like, center), to_device_of(like, scale)
    pairs = zip(shifts, maps, strict=True)
    empty = tuple(RidgeSums.about(shift, own.n_features) for shift, own in pairs)
    inputs = replace(problem.learned, division=None, on_device=like is not None)
    found = summarize(rows, inputs.encoder, _MemberSums(empty, tuple(maps), center, scale)).members
    fitted = {}
    for (number, (recipe, _, gamma)), sums in zip(members.items(), found, strict=True):
        on_host = replace(sums, shift=to_host(sums.shift), first=to_host(sums.first), second=to_host(sums.second))
        fitted[number] = on_host.problem(intercept=recipe.intercept).weights(gamma)
    return fitted


# ------------------------------------------------------------------------------


def _calibrator(
    problem: _Problem, outputs: np.ndarray, learned: Learned
) -> Calibrator | LabelCalibrator | LeftOutErrors:
    """What the held-out predictions of the stack show: probabilities, or how large errors are."""
    rows = problem.rows
    calibrator: Calibrator | LabelCalibrator | LeftOutErrors
    if not learned.targets.labels:
        # Weights that count rows as they are; of others each row counts once, since only their ratios mean something.
        whole = np.array_equal(rows.weight, np.round(rows.weight))
        calibrator = LeftOutErrors.of((outputs - rows.T) * rows.scale, rows.weight if whole else np.ones(len(rows)))
    else:
        stand_for = problem.sample.stand_for()[rows.places]
        kind = LabelCalibrator if learned.targets.several else Calibrator
        calibrator = kind.of(outputs, rows.T, rows.weight * stand_for)
    like = problem.survey.like
    return calibrator if like is None else calibrator.to_device_of(like)
