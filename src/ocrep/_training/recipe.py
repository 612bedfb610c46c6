"""`Recipe`: what an estimator's parameters mean, checked before a row is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _num_samples

from ocrep import rules
from ocrep._errors import pick
from ocrep._layers.hidden_map import HiddenMap, JoinedMap
from ocrep._layers.random_layer import (
    LEARNED,
    JoinedLayers,
    RandomLayer,
    check_flag,
    check_layer,
    check_nested,
    check_size,
    needs_sample,
)
from ocrep._linalg.arrays import Array
from ocrep._linalg.folds import FoldPlan
from ocrep._linalg.parallel import block_rows
from ocrep._linalg.rows import Encoded, Encoder
from ocrep._linalg.solve import SOLVERS
from ocrep._rows.block import MOST_GROUPS, Block, host_array, is_dask
from ocrep._rows.memory import Rows
from ocrep._rows.stream import Scan
from ocrep._rows.survey import SAMPLE_ROWS, Needs, Survey
from ocrep._training.targets import Indicators, Labels, Numbers
from ocrep.rules.base import PerTarget


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """How to train one model."""

    estimator: str
    """The estimator's name, for sentences."""
    targets: Numbers | Labels
    layer: RandomLayer | None
    """The hidden layer, not drawn yet; None for features of the user's own."""
    auto_size: bool
    """Whether the number of hidden units is chosen, up to that of `layer`."""
    gamma: Any
    """The rule as the user gave it."""
    rule: rules.Rule
    folds: FoldPlan | None
    intercept: bool
    solver: str
    calibrate: str | None
    forgetting: float
    """What the weights of earlier rows are multiplied by when more rows come."""
    needs: Needs
    """What must be known of the rows first."""
    metric: str | None = None
    """Which metric of the inputs is learned from gradients: "diagonal", "full" or none."""
    metric_rounds: int = 0
    """How often it is learned anew from the network that it gave."""

    @classmethod
    def of(
        cls,
        estimator: str,
        targets: Numbers | Labels,
        *,
        gamma: Any,
        intercept: bool,
        solver: str,
        store_folds: bool | int,
        layer: RandomLayer | None = None,
        auto_size: bool = False,
        calibrate: str | None = None,
        forgetting: float = 1.0,
        per_target: bool = False,
        metric: str | None = None,
        metric_rounds: int = 0,
    ) -> Recipe:
        """Check the parameters, each by itself and against the others."""
        rule = rule_of(gamma, per_target)
        check_flag("fit_intercept", intercept)
        if solver not in SOLVERS:
            pick("solver", solver, dict.fromkeys(SOLVERS))
        if calibrate not in (None, "loo"):
            raise ValueError(f"calibrate={calibrate!r} must be 'loo' or None.")
        if isinstance(forgetting, bool) or not (isinstance(forgetting, Real) and 0.0 < float(forgetting) <= 1.0):
            raise ValueError(f"forgetting={forgetting!r} must be a number > 0 and ≤ 1; 1 forgets nothing.")
        if layer is not None:
            check_layer(layer)
        if auto_size:
            _check_auto_size(layer, gamma, rule)
        if metric is not None:
            _check_metric(layer, metric, metric_rounds)
        kinds = {"metric": metric, "weight_init": None if layer is None else layer.weight_init}
        learned = [f"{name}={value!r}" for name, value in kinds.items() if value in LEARNED]
        if learned:
            _check_learned(learned[0], gamma, rule, calibrate, auto_size)
        folds = _folds(rule, store_folds) or (FoldPlan() if auto_size else None)
        if folds is not None and rule.folds not in (None, folds):
            rule = rule.with_folds(folds)
        class_weight = targets.class_weight if isinstance(targets, Labels) else None
        sampled = metric is not None or (layer is not None and needs_sample(layer))
        needs = Needs(
            labels=targets.labels,
            range=layer is not None and isinstance(layer.input_scaling, str),
            totals=class_weight is not None,
            weigh=targets.weigh if isinstance(targets, Labels) and isinstance(class_weight, dict) else None,
            groups=folds is not None and folds.reads_groups,
            sample=SAMPLE_ROWS if sampled else 0,
            estimator=estimator,
        )
        return cls(
            estimator=estimator,
            targets=targets,
            layer=layer,
            auto_size=auto_size,
            gamma=gamma,
            rule=rule,
            folds=folds,
            intercept=intercept,
            solver=solver,
            calibrate=calibrate,
            forgetting=float(forgetting),
            needs=needs,
            metric=metric,
            metric_rounds=metric_rounds,
        )

    @property
    def learns_layer(self) -> bool:
        """Whether the layer learns so much of the targets that it is drawn anew without each fold."""
        return self.metric is not None or (self.layer is not None and self.layer.weight_init in LEARNED)

    def divided_by(self, plan: FoldPlan) -> Recipe:
        """The same with other folds, for the rule and for all else that reads folds."""
        rule = self.rule if self.rule.folds is None else self.rule.with_folds(plan)
        return replace(self, rule=rule, folds=plan, needs=replace(self.needs, groups=plan.reads_groups))

    def for_rows(self, rows: Rows) -> Recipe:
        """The same with folds by groups, if the rows have groups and nothing else was asked of the folds."""
        plan = self.folds
        if plan is None or plan.split != "content" or not rows.grouped:
            return self
        return self.divided_by(replace(plan, split="groups"))


def rule_of(gamma: Any, per_target: bool) -> rules.Rule:
    """The rule that `gamma` and `gamma_per_target` stand for."""
    rule = rules.resolve(gamma)
    return PerTarget(rule) if per_target else rule


def _check_auto_size(layer: RandomLayer | None, gamma: Any, rule: rules.Rule) -> None:
    assert layer is not None
    check_nested(layer)
    if rule.reads == "rows":
        raise ValueError(
            f"n_hidden='auto' chooses the size from factors alone, and gamma={gamma!r} reads rows: "
            "use 'kfold', 'gcv' or 'ocrep', or give a number of units."
        )


def _check_metric(layer: RandomLayer | None, metric: Any, metric_rounds: Any) -> None:
    if metric not in ("diagonal", "full"):
        raise ValueError(f"metric={metric!r} must be 'diagonal', 'full' or None.")
    check_size("metric_rounds", metric_rounds)
    if layer is not None and layer.weight_init == "trees":
        raise ValueError(
            f"metric={metric!r} is learned from gradients, and leaves of trees have none: use metric=None, or another "
            "weight_init."
        )


def _check_learned(kind: str, gamma: Any, rule: rules.Rule, calibrate: str | None, auto_size: bool) -> None:
    """Raise where a layer that has seen the targets would be judged on rows that it has seen."""
    if auto_size:
        raise ValueError(f"n_hidden='auto' compares sizes of one layer, and {kind} grows one anew: give a number.")
    if rule.reads == "rows":
        raise ValueError(
            f"gamma={gamma!r} leaves rows out of the output weights only, and {kind} has seen their targets: use "
            "'kfold' or 'ocrep_cv', which grow the layer anew without each fold."
        )
    if calibrate is not None:
        raise ValueError(
            f"calibrate={calibrate!r} leaves rows out of the output weights only, and {kind} has seen their targets: "
            "set calibrate=None."
        )
    if rule.folds is not None and rule.folds.split == "blocks":
        raise ValueError(f"split='blocks' goes by row numbers, which {kind} does not know: use split='groups'.")


def plan_of(store_folds: bool | int) -> FoldPlan | None:
    """What `store_folds` means: False or 0 nothing, True three folds, a number that many."""
    if isinstance(store_folds, bool | np.bool_):
        return FoldPlan() if store_folds else None
    return FoldPlan(store_folds) if store_folds else None


def _folds(rule: rules.Rule, store_folds: bool | int) -> FoldPlan | None:
    """One factor per fold if the rule reads them or the user wants them stored."""
    stored = plan_of(store_folds)
    if rule.folds is None or stored is None or isinstance(store_folds, bool):
        return rule.folds or stored
    if rule.folds not in (stored, FoldPlan()):  # a rule given by its name takes the folds that are stored
        raise ValueError(
            f"gamma asks for {rule.folds}, and store_folds={store_folds} for {stored}: make them the same."
        )
    return stored


@dataclass(frozen=True, slots=True)
class Demand:
    """Something a recipe asks of the rows that not all rows can give."""

    parameter: str
    asked: str
    """The parameter with its value, for sentences."""
    why: str
    instead: str
    again: bool
    """Whether rows must be read once more after training; else all of them must be seen before it begins."""


def demands_of(recipe: Recipe) -> list[Demand]:
    """All that a recipe asks of the rows beyond reading them once."""
    demands = []
    if recipe.rule.reads == "rows":
        asked = f"gamma={recipe.gamma!r}"
        demands.append(Demand("gamma", asked, "reads the rows once more", "use 'kfold' or 'gcv'", True))
    if recipe.calibrate is not None:
        asked = f"calibrate={recipe.calibrate!r}"
        demands.append(Demand("calibrate", asked, "reads the rows once more", "set calibrate=None", True))
    if recipe.auto_size:
        why = "needs all rows at once to choose the size"
        demands.append(Demand("n_hidden", "n_hidden='auto'", why, "give a number", False))
    if isinstance(recipe.targets, Labels) and recipe.targets.class_weight == "balanced":
        asked = "class_weight='balanced'"
        demands.append(Demand("class_weight", asked, "counts all rows first", "give a dict of weights", False))
    if recipe.folds is not None and recipe.folds.split == "given":
        demands.append(Demand("gamma", "split='given'", "must know all folds first", "use split='groups'", False))
    return demands


def check_rows(recipe: Recipe, rows: Rows) -> None:
    """Raise before a row is read if these rows cannot give what the recipe asks for."""
    for demand in demands_of(recipe) if rows.once or not rows.local else ():
        if rows.once:
            _raise(
                demand, "these rows can be read only once: give ocrep.scan a list or a function that starts anew, or"
            )
        if demand.again and not rows.local:
            _raise(demand, "with Dask the rows stay with the workers:")
    if not rows.local and rows.n_rows is None and recipe.folds is not None and recipe.folds.split == "blocks":
        raise ValueError(
            "split='blocks' goes by the numbers of the rows, and the sizes of these partitions are not known: give "
            "Dask arrays, and call compute_chunk_sizes() on X first."
        )
    if rows.once and isinstance(recipe.targets, Labels) and not rows.classes_given:
        raise ValueError(
            "A classifier must know all labels from the start, but these rows can be read only once: give ocrep.scan "
            "classes=[…]."
        )
    if rows.once:
        _check_read_again(recipe)
    if rows.checkpoint is not None:
        _check_checkpoint(recipe, rows.checkpoint[0])


def _check_read_again(recipe: Recipe) -> None:
    """Raise for a layer that is drawn anew without each fold, where rows are read only once."""
    if recipe.folds is not None and recipe.learns_layer:
        raise ValueError(
            "A layer that learns from the targets is judged on rows that it has not seen, and reads the rows once for "
            "each fold, but here they are read only once: use gamma='gcv' or a number, or metric=None and another "
            "weight_init than 'trees'."
        )


def check_parts(recipe: Recipe) -> None:
    """Raise if factors of parts, which are never read again, cannot give what the recipe asks for."""
    _check_read_again(recipe)
    for demand in demands_of(recipe):
        if demand.again:
            _raise(demand, "of parts only their factors remain:")
    if recipe.solver == "gram":
        raise ValueError("solver='gram' may have to read rows again, and parts are read once: use 'auto' or 'qr'.")
    if recipe.folds is not None and recipe.folds.split == "blocks":
        raise ValueError(
            "split='blocks' goes by the numbers of the rows, which parts do not know: use split='content' or 'groups'."
        )


def check_candidates(recipes: Sequence[Recipe], rows: Rows, *, sampled: bool) -> None:
    """Raise before a row is read if candidates cannot be compared on these rows.

    Where they can be `sampled`, calibration needs no second reading: the sample in memory serves.
    """
    if rows.once:
        raise ValueError(
            "Candidates are compared on rows that are read several times, but these rows can be read only once: give "
            "ocrep.scan a list or a function that starts anew, or train one network."
        )
    for recipe in recipes:
        check_rows(replace(recipe, calibrate=None) if sampled else recipe, rows)


def check_stream(recipe: Recipe) -> None:
    """Raise if `partial_fit`, which sees each block once, cannot give what the recipe asks for."""
    _check_read_again(recipe)
    for demand in demands_of(recipe):
        # A rule that reads rows may be asked for later, with `fit`.
        if not demand.again or demand.parameter == "calibrate":
            _raise(demand, "partial_fit sees one block at a time: use fit, or")


def _raise(demand: Demand, reason: str) -> None:
    raise ValueError(f"{demand.asked} {demand.why}, but {reason} {demand.instead}.")


def _check_checkpoint(recipe: Recipe, path: Path) -> None:
    """Raise before hours of work if a checkpoint could not be written, or would be of no use."""
    if recipe.layer is not None and recipe.layer.random_state is None:
        raise ValueError(
            "A checkpoint is of use only to a network that is drawn the same again: give the model random_state=0, "
            "or another whole number."
        )
    try:
        TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise ValueError(
            f"checkpoint={str(path)!r} cannot be written ({error.strerror}): name a file in an existing folder that "
            "you may write to."
        ) from error


# ------------------------------------------------------------------------------
# `Division`: the fold of each row, where groups or row numbers decide it and not the inputs.


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """A plan with all that it needs to know of the rows; the same for every part of them."""

    plan: FoldPlan
    n_rows: int | None = None
    """The number of all rows, where it decides."""
    known: np.ndarray | None = None
    """The keys of all groups, in the plan's order; None where they are too many or came one block at a time."""

    @classmethod
    def of(cls, plan: FoldPlan, n_rows: int | None, groups: np.ndarray | None) -> Division | None:
        """Divide rows of which these are all groups; None where their inputs decide."""
        if plan.split == "content":
            return None
        if plan.split == "blocks":
            division = cls(plan, None if plan.block_length is not None else n_rows)
            if n_rows is None:
                division.check_endless()
            return division
        if groups is None:
            return cls(plan)
        _check_groups(plan, len(groups))
        known = np.sort(plan.ordered(groups)) if len(groups) <= MOST_GROUPS else None
        return cls(replace(plan, n_folds=len(groups)) if plan.split == "given" else plan, known=known)

    def folds_of(self, block: Block) -> np.ndarray | None:
        """The fold of each row; None for rows without groups, which no fold is asked of."""
        if self.plan.split == "blocks":
            return self.plan.of_row_numbers(block.first + np.arange(block.X.shape[0]), self.n_rows)
        return None if block.groups is None else self.plan.of_groups(block.groups, self.known)

    def check_known(self, block: Block, rows: Any) -> None:
        """Raise if some of the rows are of groups that are not among the known ones."""
        if self.known is None or block.groups is None:
            return
        unknown = ~np.isin(self.plan.ordered(block.groups[rows]), self.known)
        if unknown.any():
            row = int(np.arange(len(block.groups))[rows][np.argmax(unknown)])
            raise ValueError(f"{block.row(row)}the group was not surveyed: survey all parts.")

    def check_endless(self) -> None:
        """Raise if the number of all rows decides, where it is not known or more rows are to come."""
        if self.plan.split == "blocks" and self.plan.block_length is None:
            raise ValueError(
                "split='blocks' divides all rows evenly, and here their number is not known before they are read: give "
                "the length of a block, as in rules.KFold(split='blocks', block_length=1000)."
            )


def _check_groups(plan: FoldPlan, n_groups: int) -> None:
    """Raise if there are too few groups to hold one out, or too many to make a fold of each."""
    given = plan.split == "given"
    if n_groups < 2:
        raise ValueError(
            "All rows of positive weight are in the same fold, and cross-validation needs two: give more folds."
            if given
            else "All rows of positive weight are of one group, and cross-validation holds out whole groups: give rows "
            "of more groups, or leave groups out."
        )
    if not given and n_groups < plan.n_folds:
        raise ValueError(
            f"The rows of positive weight are of {n_groups} groups, which cannot fill {plan.n_folds} folds: use "
            f"{n_groups} folds or fewer, or give rows of more groups."
        )
    if given and n_groups > MOST_GROUPS:
        raise ValueError(
            f"There are more than {MOST_GROUPS} folds, of which each would be held out: use fewer, or groups= with "
            "split='groups'."
        )


def folds_by_splitter(cv: Any, X: Any, y: Any, groups: Any) -> np.ndarray:
    """The fold of each row: the number of the split of a scikit-learn splitter that tests on it.

    A row must be tested on once, and each split must train on all other rows, since errors come from one factor per
    fold.
    """
    is_splitter = hasattr(cv, "split") and not isinstance(cv, str)
    if not is_splitter and (isinstance(cv, str) or not isinstance(cv, Iterable)):
        raise ValueError(f"cv={cv!r} must be a number of folds ≥ 2, or a splitter such as KFold(5).")
    given = "cv"  # the arrays of a list would be pages long, and so may be those of a PredefinedSplit
    if is_splitter:
        text = f"cv={cv!r}"
        given = text if len(text) <= 100 else f"cv={type(cv).__name__}(...)"
    if is_dask(X) or isinstance(X, Scan):
        raise ValueError(
            f"{given} divides rows by their numbers, and these rows are not in memory: give cv a number of folds, "
            "and groups= for folds by groups."
        )
    n_rows = _num_samples(X)
    fold = np.full(n_rows, -1)
    n_folds = 0

    def splits() -> Iterator[tuple[Any, Any]]:
        try:
            yield from check_cv(cv).split(host_array(X), host_array(y), groups)
        except ValueError as error:
            raise ValueError(
                f"{given} cannot divide these {n_rows} rows ({str(error).rstrip('.')}): give another splitter, such as "
                "KFold(3), or the groups or labels that it divides by."
            ) from error

    for n_folds, (train, test) in enumerate(splits(), start=1):
        tested = np.zeros(n_rows, dtype=bool)
        trained = np.zeros(n_rows, dtype=bool)
        try:
            tested[test] = True
            trained[train] = True
        except IndexError:
            raise ValueError(
                f"{given} divides other rows than the {n_rows} of X: give a splitter for these rows, such as KFold(3)."
            ) from None
        twice = np.flatnonzero(tested & (fold >= 0))
        if len(twice):
            raise ValueError(
                f"{given} tests on row {twice[0] + 1} in two splits, but each row must be held out once: use a "
                "splitter such as KFold or GroupKFold, without repeats."
            )
        if np.any(trained == tested):
            row = int(np.argmax(trained == tested))
            how = "for training and for testing" if tested[row] else "neither for training nor for testing"
            raise ValueError(
                f"{given} uses row {row + 1} {how} in split {n_folds}, but each split must train on exactly the rows "
                "that it does not test on: use a splitter such as KFold or GroupKFold."
            )
        fold[tested] = n_folds - 1
    if n_folds < 2:
        raise ValueError(f"{given} makes {n_folds} split(s), and at least two are needed; of a generator, give a list.")
    if np.any(fold < 0):
        raise ValueError(
            f"{given} never tests on row {np.argmax(fold < 0) + 1}, but each row must be held out once: use a "
            "splitter such as KFold or GroupKFold."
        )
    return fold


# ------------------------------------------------------------------------------
# `Learned`: the fixed maps from rows to [H | T], known after the survey; small, and the same for every part.


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What the survey fixed: the hidden layer, the coding of the targets, the columns."""

    layer: RandomLayer | JoinedLayers | None
    targets: Numbers | Labels | Indicators
    n_inputs: int
    columns: tuple[str, ...] | None
    n_outputs: int
    """Columns of T."""
    on_device: bool = False
    """Whether the rows are arrays of another library than NumPy."""
    division: Division | None = None
    """Where the folds of rows come from, if not from their inputs."""
    metric: np.ndarray | None = None
    """What the scaled inputs are multiplied by before the units see them."""

    @classmethod
    def of(cls, recipe: Recipe, survey: Survey, n_rows: int | None = None, metric: np.ndarray | None = None) -> Learned:
        """Draw the layer, learn the targets, and see how rows are divided; `n_rows` is the number of all of them."""
        targets, layer, n_inputs = recipe.targets.learn(survey), recipe.layer, len(survey.low)
        if layer is not None:
            sample = survey.sample
            if sample is not None and isinstance(targets, Labels):
                sample = targets.weighted(sample)
            layer.draw(n_inputs, survey.dtype, (survey.low, survey.high), sample, metric)
            layer.n_features_in_ = n_inputs
            if survey.columns is not None:
                layer.feature_names_in_ = np.asarray(survey.columns, dtype=object)
            if survey.like is not None:
                layer.map_ = layer.map_.to_device_of(survey.like)
        if isinstance(targets, Labels):
            assert targets.classes is not None
            n_outputs = 1 if len(targets.classes) == 2 else len(targets.classes)
        else:
            n_outputs = survey.target_shape[0] if survey.target_shape else 1
        division = None if recipe.folds is None else Division.of(recipe.folds, n_rows, survey.groups)
        return cls(layer, targets, n_inputs, survey.columns, n_outputs, survey.like is not None, division, metric)

    @property
    def one_layer(self) -> RandomLayer:
        """The hidden layer of a network that is not a stack."""
        assert isinstance(self.layer, RandomLayer)
        return self.layer

    @property
    def maps(self) -> list[tuple[HiddenMap, slice]]:
        """The hidden layer as a function of the inputs, with the columns of its features; of a stack, its layers."""
        if self.layer is None:
            return []
        layers = self.layer.layers if isinstance(self.layer, JoinedLayers) else (self.layer,)
        maps = tuple(layer.map_ for layer in layers)
        return list(zip(maps, JoinedMap(maps).columns, strict=True))

    @property
    def n_features(self) -> int:
        if self.layer is None:
            return self.n_inputs
        return self.layer.map_.n_features

    def features(self, X: Any, out: np.ndarray | None = None) -> Array:
        """H of checked inputs, in `out` if that is given and saves anything."""
        if self.layer is not None:
            return self.layer.map_(X, out)
        return X.toarray() if sparse.issparse(X) else X

    @property
    def encoder(self) -> Encoder:
        """How checked rows become (H, T, weight)."""
        return Encoder(
            self.code,
            self.encode,
            block_size=block_rows(self.n_features, self.n_inputs + self.n_outputs, on_device=self.on_device),
            n_features=None if self.on_device else self.n_features,
            n_targets=self.n_outputs,
            labels=self.targets.labels,
            several=self.targets.several,
        )

    def code(self, block: Block) -> Block:
        """Checked rows in the form that `encode` takes, with their folds if the inputs do not decide them."""
        coded = self.targets.code(block)
        return coded if self.division is None else replace(coded, fold=self.division.folds_of(block))

    def encode(self, block: Block, out: np.ndarray | None = None) -> Encoded:
        """H, T and weights of coded rows, with H in `out` if that saves anything."""
        return Encoded(self.features(block.X, out), self.targets.encode(block.y), block.weight)

    def unweighted(self) -> Learned:
        """The same maps without the weights of classes, for counting errors."""
        return replace(self, targets=self.targets.unweighted()) if isinstance(self.targets, Labels) else self

    def leading(self, n_hidden: int) -> Learned:
        """The same maps with only the first hidden units."""
        return replace(self, layer=self.one_layer.take(slice(n_hidden)))
