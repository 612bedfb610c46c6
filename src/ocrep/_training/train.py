"""`train` fits one network to rows of every kind; `extend` continues one, as `partial_fit` does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np
from scipy import sparse
from sklearn.base import clone

from ocrep._layers.random_layer import LEARNED, RandomLayer
from ocrep._layers.trees import importance_of_inputs
from ocrep._linalg.arrays import Array, array_namespace, as_float64, to_host
from ocrep._linalg.factor import Factor
from ocrep._linalg.fold_factors import FoldFactors, QuickFolds, known_folds, quick_folds, reweighted
from ocrep._linalg.folds import FoldPlan, fold_numbers
from ocrep._linalg.held_out import are_proved, errors_from_rows
from ocrep._linalg.ridge_sums import FoldedRows, RidgeSums, best_gamma
from ocrep._linalg.rows import ChunkEncoder, Encoded, EncodedRows, Encoder, summarize_part
from ocrep._linalg.solve import ByFold, Factored, solve
from ocrep._linalg.spectrum import Spectrum, row_of, variance_factor
from ocrep._rows.block import Block
from ocrep._rows.checks import check_counts, warn_of_first_block
from ocrep._rows.memory import MemoryRows, Rows
from ocrep._rows.survey import RowSample, Survey
from ocrep._training.calibration import Calibrator, LabelCalibrator, LeftOutErrors
from ocrep._training.checkpoint import FileCheckpoint
from ocrep._training.recipe import Learned, Recipe, check_rows, check_stream
from ocrep.rules import Choice, NotApplicable, Rule
from ocrep.rules.cross_validation import cv_error_of, with_error
from ocrep.rules.search import advice_on


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """All that a fit found; estimators store and present it."""

    learned: Learned
    factored: Factored
    choice: Choice
    calibrator: Calibrator | LabelCalibrator | LeftOutErrors | None = None


def train(recipe: Recipe, rows: Rows) -> Training:
    """Learn from all rows."""
    check_rows(recipe, rows)
    recipe = recipe.for_rows(rows)
    survey = rows.survey(recipe.needs)  # which may count the rows
    learned = learn(recipe, survey, rows.n_rows)
    if rows.once and recipe.needs.range:
        warn_of_first_block(survey)
    checkpoint = None if rows.checkpoint is None else FileCheckpoint.of(recipe, learned, rows)
    training = train_from_factors(recipe, learned, factor_rows(recipe, learned, survey, rows, checkpoint), rows)
    if checkpoint is not None:
        checkpoint.remove()
    return training


def factor_rows(
    recipe: Recipe, learned: Learned, survey: Survey, rows: Rows, checkpoint: FileCheckpoint | None = None
) -> Factored:
    """The factors of all rows, and of each fold if the recipe asks for them."""
    plan = recipe.folds if learned.division is None else learned.division.plan
    factored = solve(
        rows,
        learned.encoder,
        None if recipe.learns_layer else plan,
        intercept=recipe.intercept,
        solver="qr" if rows.once else recipe.solver,
        checkpoint=checkpoint,
    )
    if plan is None or not recipe.learns_layer:
        return factored
    return replace(factored, folds=nested_folds(recipe, learned, survey, rows, plan))


def train_from_factors(
    recipe: Recipe, learned: Learned, factored: Factored, rows: Rows | None = None, *, quick: QuickFolds | None = None
) -> Training:
    """Choose the size if it is to be chosen, γ, and what makes probabilities; `rows` only if they can be read again.

    `quick` saves time where fold errors through eigenvalues were made already.
    """
    check_counts(factored.factor.counts.n_seen, factored.factor.counts.weight_sum)
    if recipe.auto_size:
        learned, factored = _cut_to_size(recipe.rule, learned, factored)
    again = None
    if rows is not None and rows.local and not rows.once:
        again = EncodedRows(rows, learned.encoder)
    training = choose_gamma(learned, factored, recipe.rule, recipe.calibrate, again, quick)
    if recipe.learns_layer:  # folds are of layers that the model does not keep
        return replace(training, factored=replace(training.factored, folds=None))
    if rows is None or rows.once or factored.route == "reflections":
        return training
    return _verified(training, rows)


def choose_gamma(
    learned: Learned,
    factored: Factored,
    rule: Rule,
    calibrate: str | None,
    rows: EncodedRows | None = None,
    quick: QuickFolds | None = None,
) -> Training:
    """Choose γ by a rule, from the stored factors; `rows` only if they can be read again."""
    network = learned.layer is not None
    rule = rule if network else rule.for_own_features()
    spectrum = factored.spectrum
    folds = factored.folds
    if quick is None and folds is not None and rule.reads == "folds":
        quick = quick_folds(folds)  # once, for the rule and for what is read off its folds below
    choice = rule.choose(spectrum, folds=quick or folds, rows=rows)
    if rule.searches:
        choice = replace(choice, advice=advice_on(rule, choice, spectrum, network=network))
    training = Training(learned, factored, choice)
    if calibrate is not None:
        return training if rows is None else calibrated(training, rows)
    if not learned.targets.labels:
        return training
    judged = None if rule.folds is None or folds is None or len(folds.filled) < 2 else quick or folds
    return replace(training, calibrator=_one_factor(training, judged, rows))


def _verified(training: Training, rows: Rows) -> Training:
    """The same training with its error on held-out rows from the rows, where the sums of the folds do not prove it."""
    choice = training.choice
    folds = training.factored.folds
    if choice.held_out_error is None or folds is None or are_proved(folds, choice.gamma, training.factored.route):
        return training
    errors = errors_from_rows(folds, choice.gamma, rows, training.learned.encoder)
    return replace(training, choice=with_error(choice, errors, folds))


# ------------------------------------------------------------------------------
# A learned metric. The gradients of a fitted network with respect to its scaled inputs, g = ∂f/∂z, are known in closed
# form. The mean of their outer products over rows and outputs, G, says which inputs and directions matter: an input
# that the target does not depend on has a small entry on its diagonal. So the layer is drawn again on the inputs times
# G^½, or times the root of its diagonal, with ‖R‖² = d so that distances keep their size, and once more from the
# gradients of that network (Radhakrishnan et al., Science 383, 2024; xRFM, 2025). A first network on all inputs alike
# sees little where most of them do not matter: with 5 of 50, R² was 0.62 in the end. So the first one is drawn on
# inputs times the roots of their importance in a few trees (0.93). What neither trees nor the first network see at all
# cannot be found so. A few hundred rows give G well enough, so it is learned on the sample of rows that the survey
# holds.

# Rows whose gradients are averaged, and the most units of the network that has these gradients.
_GRADIENT_ROWS = 800
_GRADIENT_UNITS = 250
# γ of these networks is chosen on the first of so many folds.
_GRADIENT_FOLDS = 3
# No input is switched off altogether, since a first network may have missed what it is good for.
_LEAST_FACTOR = 1e-3


def learn(recipe: Recipe, survey: Survey, n_rows: int | None, metric: np.ndarray | None = None) -> Learned:
    """Draw the layer, with a metric if one is asked for, and fix the coding of targets and folds.

    `metric` is that of the first network, if it is known already.
    """
    if recipe.metric is None:
        return Learned.of(recipe, survey, n_rows)
    sample = survey.sample
    assert sample is not None
    assert recipe.layer is not None
    here = replace(survey, like=None)  # the sample is on the host
    size = min(recipe.layer.n_hidden, _GRADIENT_UNITS)
    smaller = replace(recipe, layer=clone(recipe.layer).set_params(n_hidden=size))
    some = slice(_GRADIENT_ROWS)
    metric = first_metric(sample) if metric is None else metric
    for _ in range(recipe.metric_rounds):
        learned = Learned.of(smaller, here, n_rows, metric)
        rows = sample_by_fold(learned, sample, recipe.folds).of_fewer_folds(_GRADIENT_FOLDS)
        if rows.n_folds < 2:
            raise ValueError(
                f"metric={recipe.metric!r} is learned by leaving rows out, and only one row of positive weight is "
                "there: give more, or set metric=None."
            )
        sums = rows.sums(learned.features, learned.n_features)
        held, others = sums[0], reduce(RidgeSums.merge, sums[1:])
        gamma = best_gamma([others.problem(intercept=recipe.intercept)], [held])
        W, _ = held.merge(others).problem(intercept=recipe.intercept).weights(gamma)
        gradients = learned.one_layer.map_.gradients(sample.X[some], W, scaled=True)
        found = _metric_of(gradients, sample.weight[some], recipe.metric)
        if found is None:
            break
        metric = found
    return Learned.of(recipe, survey, n_rows, metric)


def first_metric(sample: RowSample) -> np.ndarray | None:
    """The roots of the inputs' importance in a few trees; None if there is nothing to explain."""
    dense = sample.X.toarray() if sparse.issparse(sample.X) else sample.X
    shares = importance_of_inputs(dense, sample.y, sample.weight, labels=sample.labels)
    return None if shares is None else _normalised(np.sqrt(shares / shares.max()) + _LEAST_FACTOR)


def sample_by_fold(learned: Learned, sample: RowSample, plan: FoldPlan | None) -> FoldedRows:
    """The rows of a sample with their targets, divided into folds as all rows are.

    Targets of a regression have mean 0 and deviation 1, so that each counts the same.
    """
    block = learned.code(sample.block)
    T = np.asarray(learned.targets.encode(block.y), dtype=np.float64)
    weight = np.ones(len(T)) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
    plan = learned.division.plan if learned.division is not None else plan or FoldPlan()
    fold = to_host(fold_numbers(block, plan))
    if len(np.unique(fold)) < 2:  # what is left of two folds without one of them
        fold = np.arange(len(T)) % 2
    center = np.zeros(T.shape[1])
    scale = np.ones(T.shape[1])
    if not learned.targets.labels:
        with np.errstate(over="ignore", invalid="ignore"):
            center = weight @ T / weight.sum()
            unit = np.ldexp(1.0, np.frexp(np.abs(T - center).max(axis=0))[1])  # squares of 1e-170 would be zero
            scale = np.sqrt(weight @ ((T - center) / unit) ** 2 / weight.sum()) * unit
        if not np.all(np.isfinite(scale)):
            raise ValueError("The squares of the targets are too large: rescale the targets.")
        scale = np.where(scale > 0.0, scale, 1.0)
    return FoldedRows.of(sample.X, (T - center) / scale, weight, fold, center, scale)


def _metric_of(gradients: np.ndarray, weight: np.ndarray, kind: str) -> np.ndarray | None:
    """The root of G, or of its diagonal, for gradients (rows × inputs × outputs); None if all of them are zero."""
    scale = np.abs(gradients).max(initial=0.0)
    if not 0.0 < scale < np.inf:
        return None
    g = (gradients / scale * np.sqrt(weight / weight.sum())[:, None, None]).transpose(1, 0, 2)
    g = g.reshape(len(g), -1)
    if kind == "diagonal":
        root = np.sqrt(np.sum(g * g, axis=1))
        return _normalised(root / root.max() + _LEAST_FACTOR)
    # G^½ = U S Uᵀ of the SVD of g: G itself, which would square small singular values, is not formed.
    U, S, _ = np.linalg.svd(g, full_matrices=False)
    S = np.sqrt((S / S[0]) ** 2 + _LEAST_FACTOR**2)
    return _normalised((U * S) @ U.T + _LEAST_FACTOR * (np.eye(len(g)) - U @ U.T))


def _normalised(R: np.ndarray) -> np.ndarray:
    """A metric with ‖R‖² = d."""
    return np.asarray(R * np.sqrt(len(R) / np.sum(R * R)))


# ------------------------------------------------------------------------------
# Honest folds. Held-out errors of a layer that has seen the held-out targets are too small, and γ chosen by them is too
# small too. So the layer is drawn once more without the rows of each fold, and predicts them. Each such layer needs two
# factors: of the rows that it was drawn on, and of the fold that it was drawn without.


def nested_folds(recipe: Recipe, learned: Learned, survey: Survey, rows: Rows, plan: FoldPlan) -> FoldFactors:
    """Draw the layer without each fold, and factor the fold and the other rows."""
    sample = survey.sample
    assert sample is not None
    fold_of_sample = to_host(fold_numbers(learned.code(sample.block), plan))
    factors: list[Factor | None] = []
    others: list[tuple[Factor, Spectrum]] = []
    encoders: list[Encoder] = []
    n_read = survey.n_rows
    for v in range(plan.n_folds):
        n_held = int(np.sum(fold_of_sample == v))
        if n_held == 0 or len(fold_of_sample) - n_held < _FEWEST_ROWS:
            factors.append(None)
            continue
        without = replace(survey, sample=sample.of_rows(fold_of_sample != v))
        drawn = learn(replace(recipe, layer=clone(recipe.layer)), without, rows.n_rows)
        encoder = replace(drawn.encoder, code=partial(_code_as_held_out, drawn, plan, v))
        both = solve(rows, encoder, _TWO_FOLDS, intercept=recipe.intercept, solver=recipe.solver).folds
        assert both is not None
        rest, held = both.factors
        n_read = both.n_read
        usable = held is not None and rest is not None and held.counts.n_rows > 0 and rest.counts.n_rows > 0
        factors.append(held if usable else None)
        if usable and rest is not None:
            others.append((rest, rest.spectrum()))
            encoders.append(drawn.encoder)
    return known_folds(FoldFactors(plan, tuple(factors), n_read, tuple(encoders)), others)


_TWO_FOLDS = FoldPlan(2, split="given")
# A layer is not drawn on fewer rows: such a fold is not held out.
_FEWEST_ROWS = 2


def _code_as_held_out(learned: Learned, plan: FoldPlan, fold: int, block: Block) -> Block:
    """Coded rows, of fold 1 if they are held out and of fold 0 if not."""
    coded = learned.code(block)
    numbers = fold_numbers(coded, plan)
    xp = array_namespace(numbers)
    return replace(coded, fold=xp.astype(numbers == fold, numbers.dtype))


# ------------------------------------------------------------------------------
# Rows that are read only once, and parts of rows.


def extend(recipe: Recipe, rows: Rows, so_far: tuple[Learned, Factored] | None) -> Training:
    """Learn from rows that come once, in addition to those of an earlier training, which lose some of their weight."""
    plan = None if so_far is None or so_far[1].folds is None else so_far[1].folds.plan
    if plan is not None and plan.split == "content" and rows.grouped:
        raise ValueError("Groups are given, but the rows before had none: give groups in every call, or in none.")
    recipe = recipe.for_rows(rows) if plan is None or not plan.reads_groups else recipe.divided_by(plan)
    check_stream(recipe)
    survey = rows.survey(recipe.needs if so_far is None else replace(recipe.needs, range=False, sample=0))
    if so_far is None:
        learned = Learned.of(recipe, replace(survey, groups=None))
        if recipe.needs.range:
            warn_of_first_block(survey)
        start = ByFold.reflections(recipe.intercept, recipe.folds)
    else:
        learned, known = so_far
        if learned.division is not None:
            learned.division.check_endless()
        start = _continued(recipe, known)
    # One after the other: the blocks of `partial_fit` are few, and the same calls must give the same bits.
    chunks = ChunkEncoder(learned.encoder, None)
    summary = start
    for block in EncodedRows(rows, learned.encoder).read():
        summary = summary.add(block, chunks)
    factored = summary.factored()
    check_counts(factored.factor.counts.n_seen, factored.factor.counts.weight_sum)
    return choose_gamma(learned, factored, recipe.rule, recipe.calibrate)


def _continued(recipe: Recipe, known: Factored) -> ByFold:
    """Earlier factors as the beginning of a summary, with the weight that forgetting leaves them."""
    plan = None if known.folds is None else known.folds.plan
    factors: tuple[Factor | None, ...] = (known.factor,) if known.folds is None else known.folds.factors
    if recipe.forgetting < 1.0:
        factors = tuple(factor and reweighted(factor, recipe.forgetting) for factor in factors)
    n_read = 0 if known.folds is None else known.folds.n_read
    return ByFold("reflections", recipe.intercept, plan, factors, n_read)


def factors_of_part(recipe: Recipe, learned: Learned, encoder: Encoder, part: Rows) -> Factored:
    """What is learned of a part by itself: a factor, or one per fold, by the route that reads rows only once."""
    plan = recipe.folds if learned.division is None else learned.division.plan
    start = ByFold.reflections(recipe.intercept, plan)
    return summarize_part(encoder, start, part).factored()


# ------------------------------------------------------------------------------
# Probabilities without `calibrate`: the softmax of the outputs times one factor. One number needs few rows, so those of
# the training rows that are in memory show it: their outputs without their fold, whose weights a rule with folds has
# computed already, or else without the row itself. Where rows are not in memory any more, the squared error on held-out
# rows must do, which the rule knows or generalised cross-validation estimates.

# Rows whose held-out outputs show the factor.
_FACTOR_ROWS = 2000


def _one_factor(
    training: Training, folds: FoldFactors | None, rows: EncodedRows | None
) -> Calibrator | LabelCalibrator | None:
    """What makes probabilities of outputs; None for a layer that saw the targets of all rows, and has no folds."""
    learned = training.learned
    spectrum = training.factored.spectrum
    kind = LabelCalibrator if learned.targets.several else Calibrator
    trees = isinstance(learned.layer, RandomLayer) and learned.layer.weight_init in LEARNED
    if folds is None and (trees or learned.metric is not None):
        return None
    if rows is not None and isinstance(rows.rows, MemoryRows):
        found = _held_out_outputs(training, folds, rows)
        if found is not None:
            return kind.of_one_factor(*found).to_device_of(spectrum.sigma)
    gamma = training.choice.gamma
    error = training.choice.held_out_error
    if error is None:
        row = row_of(spectrum, gamma)
        free = np.maximum(to_host(spectrum.residual_dof(row[0, :])), 0.5)  # as many features as rows may leave none
        squares = to_host(spectrum.rss_by_target(row)[0, :])
        error = squares / spectrum.weight_sum * (spectrum.n / free) ** 2
    error = np.broadcast_to(error, (learned.n_outputs,))
    return kind.of_error(error, spectrum.n_rows).to_device_of(spectrum.sigma)


def _held_out_outputs(
    training: Training, folds: FoldFactors | None, rows: EncodedRows
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Outputs of some training rows by weights fitted without their fold or without them, their codes and weights."""
    n_rows = rows.rows.n_rows or 0
    chosen = np.random.default_rng(0).permutation(n_rows)[:_FACTOR_ROWS]
    chosen.sort()
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    by_fold = {} if folds is None else dict(zip(folds.filled, folds.solutions(training.choice.gamma), strict=True))
    own = dict(zip(folds.filled, folds.encoders, strict=True)) if folds is not None and folds.encoders else {}
    first = 0
    for block in rows.read():
        mine = chosen[(chosen >= first) & (chosen < first + len(block))] - first
        first += len(block)
        if not len(mine):
            continue
        fold = np.zeros(len(block), dtype=int) if folds is None else to_host(fold_numbers(block, folds.plan))
        for v in np.unique(fold[mine]):
            some = block.take(mine[fold[mine] == v])
            encoded = own[v].encode(some) if v in own else rows.encoder.encode(some)
            if folds is None:
                output, counted = _without_each_row(training, encoded)
            elif v in by_fold:
                output = encoded.outputs(*by_fold[v])
                counted = np.ones(len(some), dtype=bool)
            else:  # all its rows have zero weight
                continue
            weight = np.ones(len(some)) if encoded.weight is None else to_host(encoded.weight)
            counted = counted & (weight > 0.0)
            found.append((to_host(output)[counted], to_host(encoded.T)[counted], weight[counted]))
    if not any(len(weight) for _, _, weight in found):
        return None
    outputs, T, weights = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return outputs, T, weights


def _without_each_row(training: Training, rows: Encoded) -> tuple[Array, np.ndarray]:
    """t − (t − f)/(1 − h) for outputs f and leverages h, and which rows are not of a leverage near 1."""
    spectrum = training.factored.spectrum
    W, b = spectrum.solution(training.choice.gamma)
    xp = array_namespace(W)
    H, T = as_float64(rows.H), as_float64(rows.T)
    leverage = variance_factor(spectrum, H, training.choice.gamma)
    if rows.weight is not None:
        leverage = leverage * rows.weight[:, None]
    left = 1.0 - leverage
    usable = left > 1e-6
    left = xp.where(usable, left, xp.ones_like(left))
    return T - (T - xp.matmul(H, W) - b) / left, to_host(xp.all(usable, axis=1))


def calibrated(training: Training, rows: EncodedRows, stand_for: np.ndarray | None = None) -> Training:
    """The same training with what left-out rows show, from the rows that it was trained on.

    For a sample of them, `stand_for` says how many rows each of its rows stands for.
    """
    spectrum = training.factored.spectrum
    gamma = training.choice.gamma
    if not rows.encoder.labels and spectrum.n_rows < 2:
        raise ValueError(
            "calibrate='loo' leaves rows out, and there is only 1 sample: give more, or set calibrate=None."
        )
    if not rows.encoder.labels:
        return replace(training, calibrator=LeftOutErrors.on_left_out_rows(spectrum, rows, gamma))
    kind = LabelCalibrator if rows.encoder.several else Calibrator
    return replace(training, calibrator=kind.on_left_out_rows(spectrum, rows, gamma, stand_for))


# ------------------------------------------------------------------------------
# Choose the number of hidden units: the factors of all smaller layers are leading blocks of the largest one's.


def at_size(factor: Factor, folds: FoldFactors, rule: Rule, n_hidden: int, n_fixed: int = 0) -> tuple[float, float]:
    """The γ that a rule chooses for one size, and its mean squared error of exact cross-validation.

    Both are read off the factors. The first `n_fixed` features (a direct link) belong to every size.
    """
    m = n_fixed + n_hidden
    cut = folds.leading(m)
    choice = rule.choose(factor.leading(m).spectrum(), folds=cut)
    error = cv_error_of(rule, cut, choice.gamma) if choice.held_out_error is None else choice.held_out_error
    return choice.gamma, error


def choose_size(factor: Factor, folds: FoldFactors, rule: Rule, *, n_fixed: int = 0) -> int:
    """The size with the least exact cross-validation error, the smaller one of equals."""

    reasons: list[NotApplicable] = []

    def error(n_hidden: int) -> float:
        try:
            if rule.folds is None:  # γ is chosen anew on each training part, and that of all rows is not needed
                cut = folds.leading(n_fixed + n_hidden)
                quick = quick_error(rule, cut)
                return cv_error_of(rule, cut, math.nan) if quick is None else quick
            return at_size(factor, folds, rule, n_hidden, n_fixed)[1]
        except NotApplicable as reason:  # the rule does not apply at this size; it may at others
            reasons.append(reason)
            return math.inf

    best = search(error, factor.n_features - n_fixed)
    if len(reasons) and error(best) == math.inf:
        raise reasons[0]
    return best


def quick_error(rule: Rule, folds: FoldFactors) -> float | None:
    """The error of a rule that reads spectra, from eigenvalues in half the time; None where they may be wrong.

    γ is then that of the exact spectrum to about 10⁻⁶, far less than what tells two sizes apart.
    """
    quick = quick_folds(folds) if rule.reads == "spectrum" else None
    if quick is None or not quick.tall:
        return None
    total = 0.0
    for spectrum, fit in quick.spectra_and_fits():
        gamma = 0.0 if spectrum is None else rule.choose(spectrum).gamma
        if not np.all(gamma > 0.0):
            return None
        *_, errors = fit.refined(gamma)
        total += float(np.sum(errors))
    return total / (sum(folds.weight_sums) * folds.n_targets)


def search(error: Callable[[int], float], largest: int) -> int:
    """Minimise over 1, …, `largest`, from coarse to fine.

    Sizes go down in steps of √2 to an eighth of the largest, then in steps of 2. Smaller steps beside the best follow.
    """
    seen: dict[int, float] = {}

    def look(exponents: Iterable[float]) -> float:
        for exponent in exponents:
            size = max(1, round(largest * 2.0 ** -max(0.0, exponent)))
            if size not in seen:
                seen[size] = error(size)
        return math.log2(largest / min(seen, key=lambda size: (seen[size], size)))

    best = look([*(k / 2 for k in range(7)), *range(4, math.ceil(math.log2(largest)) + 1)])
    for step in (1 / 2, 1 / 4, 1 / 8):
        best = look((best - step, best + step))
    return min(seen, key=lambda size: (seen[size], size))


def _cut_to_size(rule: Rule, learned: Learned, factored: Factored) -> tuple[Learned, Factored]:
    """Choose the number of hidden units along the nested path, and cut layer and factors down to it."""
    factor, folds = factored.factor, factored.folds
    assert learned.layer is not None
    assert folds is not None
    n_fixed = learned.n_features - learned.layer.map_.n_units
    n_hidden = choose_size(factor, folds, rule, n_fixed=n_fixed)
    n_features = n_fixed + n_hidden
    cut = Factored(factor.leading(n_features), folds.leading(n_features), route=factored.route)
    return learned.leading(n_hidden), cut
