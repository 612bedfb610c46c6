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
them in one further reading; the layers, γ and the weights of the stack stay.

Many rows. Of more than 4,000 rows, 1,000 decide first which candidates go on, with fewer units: those with a share in
the stack of these rows, and the best, but at least four. These are judged on one fold (or several small ones, at least
a fifth of the rows) by layers and weights that were learned on all others. So γ, the weights of the stack and the
errors that calibrate it are those of networks as large as the members, learned on nearly as many rows, and each
candidate costs little more than one fit: the layer is kept, and its sums over the others and the fold add up to those
of all rows, which give the output weights. Three folds would cost three times as much for layers that learn. Only trees
are grown anew on all rows, since they gain from these (delays of flights, 20,000 rows: 0.882 against 0.898).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from numbers import Real
from time import perf_counter
from typing import Any

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.special import entr, expit
from sklearn.base import clone

from ocrep._layers.hidden_map import HiddenMap
from ocrep._layers.random_layer import JoinedLayers
from ocrep._linalg.arrays import SMALLEST, as_float64, to_device_of
from ocrep._linalg.folds import FoldPlan, without_each
from ocrep._linalg.parallel import at_once, row_slices
from ocrep._linalg.ridge_sums import FoldedRows, RidgeProblem, RidgeSums, best_gamma, mean_of, refined
from ocrep._linalg.rows import ChunkEncoder, Encoded, Encoder, cut, summarize
from ocrep._linalg.solve import Factored, solve
from ocrep._rows.block import Block
from ocrep._rows.memory import Rows
from ocrep._rows.survey import SAMPLE_ROWS, Needs, RowSample, Survey
from ocrep._training.calibration import Calibrator, LabelCalibrator, LeftOutErrors
from ocrep._training.error_scale import scale_of
from ocrep._training.recipe import Learned, Recipe, check_candidates
from ocrep._training.selection import Candidate, Report, Score, check_memory, log_losses, too_few, warn_of_failures
from ocrep._training.train import first_metric, learn, sample_by_fold

# Of more rows than this, so many decide first which candidates go on, and at least this share is then held out.
_MANY = 4_000
_FIRST_ROUND = 1_000
_FIRST_UNITS = 300
_LEAST_HELD = 0.2
# Candidates with a smaller share in the stack of the first round are dropped, but not the best ones.
_LEAST_SHARE = 0.02
_FEWEST_LEFT = 4
# Members with a smaller weight are left out of the stack; of many rows, those that would cost more than they bring.
_LEAST_WEIGHT = 1e-3
_LEAST_OF_MANY = 0.03
# Into so many parts the rows held out of many are divided, to learn how large errors are where.
_PARTS_FOR_SCALE = 3
# What outputs are multiplied by at most to become logits, where classes are separable.
_MOST_LIKELY = 1e3
# Output weights are refined on the rows where γ is less than this share of tr(A): above it they are right to 10⁻⁸.
_REFINED_BELOW = 1e-8

MakeCandidates = Callable[[int, int, int, int], Sequence[Candidate]]
"""The candidates for a number of rows, inputs and outputs; those of named lists with at most so many units."""


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
    loss_of_constant: float
    """The least that a constant has on the same rows."""
    mean_row: Any
    """The mean of the inputs of the sample."""


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """Rows in memory with all that the comparison of candidates reads of them."""

    survey: Survey
    """With the sample of rows on the host."""
    learned: Learned
    """The coding of targets and folds; without a layer."""
    rows: FoldedRows
    """The rows of the sample by fold; `rows.places` are their places in the sample."""
    judged: FoldedRows
    """The rows that candidates are judged on."""
    whole: bool = True
    """Whether the sample holds all rows, so that its sums give the output weights."""
    first_metrics: dict[int | None, np.ndarray | None] = field(default_factory=dict)
    """What metrics begin with, the same for all candidates: without the fold that begins with this row, or of all."""

    @property
    def many(self) -> bool:
        """Whether the rows have two parts instead of folds: one that is held out, and the others."""
        return self.judged is not self.rows

    @classmethod
    def of(cls, survey: Survey, recipe: Recipe, n_rows: int | None, *, whole: bool) -> _Comparison:
        """Code the targets of the sample, and divide its rows into folds."""
        assert survey.sample is not None
        learned = Learned.of(replace(recipe, layer=None, metric=None), survey, n_rows)
        rows = sample_by_fold(learned, survey.sample, recipe.folds)
        largest = float(np.max(np.abs(rows.T) * rows.scale, initial=0.0))
        if largest > 1.0 / SMALLEST:
            raise ValueError(
                f"The targets are too large: sums of squares of {largest:.2g} may overflow. Divide them by "
                f"{largest:.0e}."
            )
        return cls(survey, learned, rows, judged=rows, whole=whole)

    @property
    def sample(self) -> RowSample:
        assert self.survey.sample is not None
        return self.survey.sample

    def first(self, n_rows: int, recipe: Recipe) -> _Comparison:
        """The same on the first rows of the sample, and a few rows of every label."""
        sample = self.sample.first(n_rows, every_label=self.sample.labels)
        rows = sample_by_fold(self.learned, sample, recipe.folds)
        return _Comparison(replace(self.survey, sample=sample), self.learned, rows, judged=rows, whole=False)

    def of_many(self) -> _Comparison:
        """The same with one part held out: the first folds, until they have a fifth of the rows."""
        starts = self.rows.starts
        end = starts[1 + np.argmax(starts[1:] >= _LEAST_HELD * len(self.rows))]
        rows = replace(self.rows, starts=np.array([0, end, len(self.rows)]))
        return replace(self, rows=rows, judged=rows.only(0))

    def learn(self, recipe: Recipe, without: slice | None = None) -> Learned:
        """The layer drawn on the sample, or on what is left without the rows of a fold.

        All kinds but trees look at a part of them only.
        """
        sample = self.sample
        if without is not None:
            kept = np.ones(len(self.rows), dtype=bool)
            kept[self.rows.places[without]] = False
            sample = sample.of_rows(kept)
        if recipe.layer is not None and recipe.layer.weight_init != "trees":
            sample = sample.first(SAMPLE_ROWS)
        fold = None if without is None else without.start
        if recipe.metric is not None and fold not in self.first_metrics:
            self.first_metrics[fold] = first_metric(sample)
        survey = replace(self.survey, sample=sample, like=None)
        return learn(replace(recipe, layer=clone(recipe.layer)), survey, None, self.first_metrics.get(fold))


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """A candidate's held-out predictions, and what remains to fit its output weights on all rows."""

    gamma: float
    outputs: np.ndarray
    """In the order of the rows by fold."""
    learned: Learned | None = None
    """For layers that were drawn on all rows."""
    sums: RidgeSums | None = None
    """Those of all rows, if they are in the sample."""


def stack(
    rows: Rows,
    needs: Needs,
    make_candidates: MakeCandidates,
    most_rows: int,
    report: Report,
    *,
    seconds: float = math.inf,
    most_factored: int | None = None,
) -> Stack:
    """Compare candidates, weigh them, and fit the members of the stack; `report` is called after each.

    No further candidate is begun after some `seconds`. Candidates that fail are named in a warning. By itself, the best
    network has the first `most_factored` of its units at most: its factor takes longer and more memory than the rest.
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
    candidates = tuple(make_candidates(n_rows, survey.n_inputs, _n_outputs(survey), sys.maxsize))
    check_memory(candidates, survey, min(survey.n_rows, most_rows))
    first = candidates[0][1]
    compared = _Comparison.of(survey, first, rows.n_rows, whole=whole)
    scores = [Score(0.0) for _ in candidates]
    left = list(range(len(candidates)))
    if len(compared.rows) > _MANY and compared.rows.n_folds > 1:
        few = compared.first(_FIRST_ROUND, first)
        # Fewer units: this round only decides who goes on.
        smaller = make_candidates(n_rows, survey.n_inputs, _n_outputs(survey), _FIRST_UNITS)
        judged = _judge(few, [(n, smaller[n]) for n in left], scores, report, start + seconds)
        left = _left(few, judged, scores)
        compared = compared.of_many()
    judged = _judge(compared, [(n, candidates[n]) for n in left], scores, report, start + seconds)
    numbers = sorted(judged)
    shares = np.zeros(len(candidates))
    shares[numbers] = _shares(compared, [judged[n].outputs for n in numbers])
    shares[shares < (_LEAST_OF_MANY if compared.many else _LEAST_WEIGHT)] = 0.0
    shares /= shares.sum()
    members = np.flatnonzero(shares).tolist()
    best = min(numbers, key=lambda n: (scores[n].loss, n))
    held_out = sum(shares[n] * judged[n].outputs for n in members)
    needed = sorted({*members, best})
    # Layers that were judged without some rows are learned once more, on all of them.
    layers = at_once(lambda n: judged[n].learned or compared.learn(candidates[n][1]), needed)
    drawn = dict(zip(needed, layers, strict=True))
    if whole:
        found = at_once(lambda n: _fitted_on_sample(compared, candidates[n][1], judged[n], drawn[n]), members)
        fitted = dict(zip(members, found, strict=True))
    else:
        fitted = _fitted_on_all_rows(
            compared, rows, {n: (candidates[n][1], drawn[n], judged[n].gamma) for n in members}
        )
    joined = JoinedLayers(tuple(drawn[n].one_layer for n in members))
    W = np.concatenate([shares[n] * fitted[n][0] for n in members]) * compared.rows.scale
    b = sum(shares[n] * fitted[n][1] for n in members) * compared.rows.scale + compared.rows.center
    on_device = survey.like is not None
    best_learned = drawn[best]
    gamma = judged[best].gamma
    n_units = best_learned.one_layer.map_.n_units
    if most_factored is not None and compared.many and n_units > most_factored:
        # The sum over units grows with their number, and the γ that suits it too.
        best_learned = best_learned.leading(most_factored)
        gamma *= most_factored / n_units
    best_learned = replace(best_learned, on_device=on_device)
    if on_device:
        joined = joined._with_map(lambda own: own.to_device_of(survey.like))
        layer = best_learned.one_layer._with_map(lambda own: own.to_device_of(survey.like))
        best_learned = replace(best_learned, layer=layer)
    learned = replace(compared.learned, layer=joined, on_device=on_device)
    recipe = candidates[best][1]
    factored = solve(rows, best_learned.encoder, None, intercept=recipe.intercept, solver=recipe.solver)
    # Layers that have not learned from the targets come first: what they show of held-out errors is honest.
    for_scale = min(members, key=lambda n: (candidates[n][1].learns_layer, -shares[n]))
    calibrator = _calibrator(compared, held_out, learned, [drawn[n] for n in members], members.index(for_scale))
    _, losses = _errors(compared, held_out)
    return Stack(
        candidates=candidates,
        scores=tuple(scores),
        shares=shares,
        best=best,
        learned=learned,
        output_weights=to_device_of(survey.like, np.ascontiguousarray(W.T)),
        intercept=to_device_of(survey.like, np.asarray(b)),
        calibrator=calibrator,
        best_learned=best_learned,
        best_factored=factored,
        best_gamma=gamma,
        loss=float(losses.sum() / compared.judged.weight.sum()),
        loss_of_constant=_loss_of_constant(compared),
        mean_row=to_device_of(survey.like, np.asarray(sample.X.T @ (sample.weight / sample.weight.sum()))),
    )


def _n_outputs(survey: Survey) -> int:
    if survey.target_shape:
        return survey.target_shape[0]
    return 1 if survey.labels is None or len(survey.labels) == 2 else len(survey.labels)


# ------------------------------------------------------------------------------
# The held-out predictions of one candidate.


def _judge(
    compared: _Comparison,
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
            found = (_judged_nested if nested and not compared.many else _judged_once)(compared, recipe)
            scores[number] = _score(compared, found, perf_counter() - start, nested=nested)
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


def _judged_once(compared: _Comparison, recipe: Recipe) -> _Judged:
    """One layer, and output weights without each fold, or of many rows without the one that is held out.

    A layer that learns from targets does not see the rows held out of many.
    """
    rows = compared.rows
    learned = compared.learn(recipe, rows.fold(0) if compared.many and recipe.learns_layer else None)
    sums = rows.sums(learned.features, learned.n_features)
    judged = slice(compared.judged.n_folds)
    problems = [some.problem(intercept=recipe.intercept) for some in without_each(sums, RidgeSums.merge)[judged]]
    grown = recipe.layer is not None and recipe.layer.weight_init == "trees"
    # Sums of wide layers are large: those of all rows are kept only where they give the output weights.
    of_all = reduce(RidgeSums.merge, sums) if compared.whole and not grown else None
    held = sums[judged]
    del sums
    gamma = _gamma(recipe, problems, held)
    found = [rows.outputs(rows.fold(v), learned.features, *fitted.weights(gamma)) for v, fitted in enumerate(problems)]
    # Trees that did not see the rows held out are grown once more if they are members: they gain from all rows.
    return _Judged(gamma, np.concatenate(found), None if grown else learned, of_all)


def _judged_nested(compared: _Comparison, recipe: Recipe) -> _Judged:
    """For each fold a layer that was learned without it."""
    rows = compared.rows
    problems: list[RidgeProblem] = []
    held: list[Encoded] = []
    for v in range(rows.n_folds):
        others = rows.without(v)
        if len(others) < 2:
            raise too_few(len(rows), recipe.folds or FoldPlan())
        learned = compared.learn(recipe, rows.fold(v))
        (sums,) = others.sums(learned.features, learned.n_features)
        problems.append(sums.problem(intercept=recipe.intercept))
        held.append(rows.held(v, learned.features, learned.n_features))
    gamma = _gamma(recipe, problems, held)
    outputs = [fold.outputs(*fitted.weights(gamma)) for fitted, fold in zip(problems, held, strict=True)]
    return _Judged(gamma, np.concatenate(outputs))


def _gamma(recipe: Recipe, problems: Sequence[RidgeProblem], held: Sequence[RidgeSums | Encoded]) -> float:
    """The γ that was given as a number, or else the one with the least held-out error."""
    return float(recipe.gamma) if isinstance(recipe.gamma, Real) else best_gamma(problems, held)


def _score(compared: _Comparison, found: _Judged, seconds: float, *, nested: bool) -> Score:
    squares, losses = _errors(compared, found.outputs)
    numbers = compared.judged.numbers
    weights = np.bincount(numbers, compared.judged.weight)
    loss = float(losses.sum() / weights.sum())
    if not math.isfinite(loss):
        raise ValueError("The held-out error is not finite: rescale the inputs.")
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


def _errors(compared: _Comparison, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each row its weight times the squared error, the mean over targets in their own units, and times the loss.

    The loss of labels is minus the logarithm of the probability of the true one, under the softmax of the outputs times
    the factor that fits these rows best.
    """
    rows = compared.judged
    squares = rows.weight * np.mean(((outputs - rows.T) * rows.scale) ** 2, axis=1)
    targets = compared.learned.targets
    if not targets.labels:
        return squares, squares
    losses = log_losses(outputs, rows.T, several=targets.several)
    best = int(np.argmin(rows.weight @ losses))
    return squares, rows.weight * losses[:, best]


def _loss_of_constant(compared: _Comparison) -> float:
    """The loss of the mean, or of the shares of the labels, on the rows that candidates are judged on."""
    rows, targets = compared.judged, compared.learned.targets
    weight = rows.weight / rows.weight.sum()
    if not targets.labels:
        return float(np.mean(weight @ ((rows.T - weight @ rows.T) * rows.scale) ** 2))
    shares = weight @ (rows.T > 0.0)
    if targets.several or len(shares) == 1:  # each with a label or without
        return float(np.mean(entr(shares) + entr(1.0 - shares)))
    return float(entr(shares).sum())


def _left(compared: _Comparison, judged: dict[int, _Judged], scores: Sequence[Score]) -> list[int]:
    """The candidates that go on: those with a share in the stack, and the best."""
    numbers = sorted(judged)
    shares = _shares(compared, [judged[n].outputs for n in numbers])
    used = [n for n, share in zip(numbers, shares, strict=True) if share >= _LEAST_SHARE]
    ranked = sorted(numbers, key=lambda n: (n not in used, scores[n].loss, n))
    return sorted(ranked[: max(len(used), _FEWEST_LEFT)])


def _shares(compared: _Comparison, predictions: Sequence[np.ndarray]) -> np.ndarray:
    """The weight of each candidate in the stack, by what judges the task."""
    rows, targets = compared.judged, compared.learned.targets
    if not targets.labels:
        return nearest_shares(predictions, rows.T, rows.weight)
    return likeliest_shares(predictions, rows.T, rows.weight, several=targets.several)


def likeliest_shares(
    predictions: Sequence[np.ndarray], T: np.ndarray, weight: np.ndarray, *, several: bool
) -> np.ndarray:
    """Weights ≥ 0 with sum 1, proportional to the u ≥ 0 with the least log-loss of the logits Σ u_m P_m."""
    weight = weight / weight.mean()  # the search ends where slopes are small, whatever the unit of the weights
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


def _fitted_on_sample(
    compared: _Comparison, recipe: Recipe, judged: _Judged, learned: Learned
) -> tuple[np.ndarray, np.ndarray]:
    """W and b, where the sample holds all rows."""
    rows = compared.rows
    sums = judged.sums if learned is judged.learned else None
    if sums is None:
        sums = reduce(RidgeSums.merge, rows.sums(learned.features, learned.n_features))
    fitted = sums.problem(intercept=recipe.intercept)
    if judged.gamma >= _REFINED_BELOW * fitted.trace:
        return fitted.weights(judged.gamma)
    return refined(rows, learned.features, fitted, judged.gamma, intercept=recipe.intercept)


# Rows of which a worker forms the features of one member at a time: the sums are added to so many rows at once.
_ROWS_AT_ONCE = 1_024
# Rows whose features a thread forms at a time.
_ROWS_EACH = 256


@dataclass(frozen=True, slots=True, eq=False)
class _MemberSums:
    """The sums of each member over the rows so far; the rows come as inputs, and each member forms its own features.

    Narrow members leave the rows to several workers, each with sums of its own. Of wide ones the sums are so large
    that there is one worker; its threads share the rows of a chunk, and BLAS has all cores for the products.
    """

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
            (X, T, weight), memory = chunks.in_workspace(chunk)
            T = (T - self.center) / self.scale
            pairs = zip(members, self.maps, strict=True)
            members = tuple(_with_rows(sums, own, X, T, weight, memory) for sums, own in pairs)
        return replace(self, members=members)

    def merge(self, other: _MemberSums) -> _MemberSums:
        pairs = zip(self.members, other.members, strict=True)
        return replace(self, members=tuple(a.merge(b) for a, b in pairs))


def _with_rows(sums: RidgeSums, own: HiddenMap, X: Any, T: Any, weight: Any, memory: np.ndarray | None) -> RidgeSums:
    """The sums of a member with some more rows, whose features may lie in the given memory."""
    if memory is None:  # on a device
        return sums.add(as_float64(own(X)), T, weight)
    width = len(sums.shift)
    Z = memory[: len(T), :width] if memory.shape[1] >= width else np.empty((len(T), width))

    def form(rows: slice) -> None:
        part = Z[rows]
        H = own(X[rows], part[:, : sums.n_features])
        if not np.may_share_memory(H, part):
            part[:, : sums.n_features] = H
        part[:, sums.n_features :] = T[rows]
        part -= sums.shift

    at_once(form, list(row_slices(len(T), _ROWS_EACH)))
    return sums.add_shifted(Z, weight)


def _fitted_on_all_rows(
    compared: _Comparison, rows: Rows, members: dict[int, tuple[Recipe, Learned, float]]
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """W and b of each member, from one reading of all rows."""
    like = compared.survey.like
    by_fold = compared.rows
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
    empty = tuple(RidgeSums(shift, own.n_features) for shift, own in pairs)
    encoder = replace(compared.learned, division=None, on_device=like is not None).encoder
    if like is None:  # the features are those of the members, and decide how many workers there are
        encoder = replace(encoder, n_features=max(own.n_features for own in maps))
    found = list(summarize(rows, encoder, _MemberSums(empty, tuple(maps), center, scale)).members)
    fitted = {}
    for number, (recipe, _, gamma) in members.items():
        sums = found.pop(0)  # not kept: those of all members are the most that a fit holds
        fitted[number] = sums.to_host().problem(intercept=recipe.intercept).weights(gamma)
    return fitted


# ------------------------------------------------------------------------------


def _calibrator(
    compared: _Comparison, outputs: np.ndarray, learned: Learned, layers: Sequence[Learned], best: int
) -> Calibrator | LabelCalibrator | LeftOutErrors:
    """What the held-out predictions of the stack show: probabilities, or how large errors are.

    The scale of errors is learned on the units of one of the stack's `layers`: the `best` for this. Of many rows one
    part was held out, which is divided once more for it.
    """
    rows = compared.judged
    if compared.many:
        rows = replace(rows, starts=len(rows) * np.arange(_PARTS_FOR_SCALE + 1) // _PARTS_FOR_SCALE)
    calibrator: Calibrator | LabelCalibrator | LeftOutErrors
    if not learned.targets.labels:
        errors = (outputs - rows.T) * rows.scale
        found = scale_of(rows, layers[best].features, layers[best].n_features, errors)
        scale = None
        if found is not None:
            scale, by_fold = found
            errors = errors / by_fold
            # The weights of all other units are zero.
            sizes = [own.n_features for own in layers]
            before, after = sum(sizes[:best]), sum(sizes[best + 1 :])
            scale = replace(scale, coef=np.pad(scale.coef, ((0, 0), (before, after))))
        calibrator = LeftOutErrors.of(errors, rows.weight, scale)
    else:
        stand_for = compared.sample.stand_for()[rows.places]
        kind = LabelCalibrator if learned.targets.several else Calibrator
        calibrator = kind.of(outputs, rows.T, rows.weight * stand_for)
    return calibrator.to_device_of(compared.survey.like)
