"""`Recipe`: what an estimator's parameters mean, checked before a row is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from ocrep import rules
from ocrep._errors import pick
from ocrep._features.parameters import FROM_ROWS, check_layer, check_nested
from ocrep._features.random_layer import RandomLayer
from ocrep._linalg.fold_plan import FoldPlan
from ocrep._linalg.solve import SOLVERS
from ocrep._rows.rows import Rows
from ocrep._rows.sample import SAMPLE_ROWS
from ocrep._rows.survey import Needs
from ocrep._training.targets import Labels, Numbers
from ocrep.rules.per_target import PerTarget


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
    ) -> Recipe:
        """Check the parameters, each by itself and against the others."""
        rule = rule_of(gamma, per_target)
        rule = rule if layer is not None else rule.for_own_features()
        _check_choices(solver, calibrate, forgetting)
        if layer is not None:
            check_layer(layer)
        if auto_size:
            _check_auto_size(layer, gamma, rule)
        folds = _folds(rule, store_folds) or (FoldPlan() if auto_size else None)
        grouped = folds is not None and folds.reads_groups
        needs = replace(_needs(estimator, targets, layer), groups=grouped)
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
        )


def rule_of(gamma: Any, per_target: bool) -> rules.Rule:
    """The rule that `gamma` and `gamma_per_target` stand for."""
    rule = rules.resolve(gamma)
    return PerTarget(rule) if per_target else rule


def _check_auto_size(layer: RandomLayer | None, gamma: Any, rule: rules.Rule) -> None:
    assert layer is not None
    check_nested(layer)
    if rule.needs == "rows":
        raise ValueError(
            f"n_hidden='auto' chooses the size from factors alone, and gamma={gamma!r} reads rows: "
            "use 'kfold', 'gcv' or 'ocrep', or give a number of units."
        )


def _check_choices(solver: str, calibrate: str | None, forgetting: Any) -> None:
    if solver not in SOLVERS:
        pick("solver", solver, dict.fromkeys(SOLVERS))
    if calibrate not in (None, "loo"):
        raise ValueError(f"calibrate={calibrate!r} must be 'loo' or None.")
    if isinstance(forgetting, bool) or not (isinstance(forgetting, Real) and 0.0 < float(forgetting) <= 1.0):
        raise ValueError(f"forgetting={forgetting!r} must be a number > 0 and ≤ 1; 1 forgets nothing.")


def _needs(estimator: str, targets: Numbers | Labels, layer: RandomLayer | None) -> Needs:
    ranged = layer is not None and isinstance(layer.input_scaling, str)
    sample = SAMPLE_ROWS if layer is not None and layer.weight_init in FROM_ROWS else 0
    if isinstance(targets, Numbers):
        return Needs(labels=False, range=ranged, sample=sample, estimator=estimator)
    given = targets.class_weight
    weigh = targets.weigh if isinstance(given, dict) else None
    counted = given is not None
    return Needs(labels=True, range=ranged, totals=counted, weigh=weigh, sample=sample, estimator=estimator)


def plan_of(store_folds: bool | int) -> FoldPlan | None:
    """What `store_folds` means: False or 0 nothing, True three folds, a number that many."""
    if isinstance(store_folds, bool | np.bool_):
        return FoldPlan() if store_folds else None
    return FoldPlan(store_folds) if store_folds else None


def _folds(rule: rules.Rule, store_folds: bool | int) -> FoldPlan | None:
    """One factor per fold if the rule reads them or the user wants them stored."""
    stored = plan_of(store_folds)
    explicit = stored is not None and not isinstance(store_folds, bool)
    if explicit and rule.folds is not None and stored != rule.folds:
        raise ValueError(
            f"gamma asks for {rule.folds}, and store_folds={store_folds} for {stored}: make them the same."
        )
    return rule.folds or stored


@dataclass(frozen=True, slots=True)
class Demand:
    """Something a recipe asks of the rows that not all rows can give."""

    asked: str
    why: str
    instead: str
    again: bool
    """Whether rows must be read once more after training; else all of them must be seen before it begins."""


def demands_of(recipe: Recipe) -> list[Demand]:
    """All that a recipe asks of the rows beyond reading them once."""
    demands = []
    if recipe.rule.needs == "rows":
        demands.append(Demand(f"gamma={recipe.gamma!r}", "reads the rows once more", "use 'kfold' or 'gcv'", True))
    if recipe.calibrate is not None:
        asked = f"calibrate={recipe.calibrate!r}"
        demands.append(Demand(asked, "reads the rows once more", "set calibrate=None", True))
    if recipe.auto_size:
        demands.append(Demand("n_hidden='auto'", "needs all rows at once to choose the size", "give a number", False))
    if isinstance(recipe.targets, Labels) and recipe.targets.class_weight == "balanced":
        demands.append(Demand("class_weight='balanced'", "counts all rows first", "give a dict of weights", False))
    if recipe.folds is not None and recipe.folds.split == "given":
        demands.append(Demand("split='given'", "must know all folds first", "use split='groups'", False))
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
            "split='blocks' goes by the numbers of the rows, and the heights of these partitions are not known: give "
            "Dask arrays, and call compute_chunk_sizes() on X first."
        )
    if rows.once and isinstance(recipe.targets, Labels) and not rows.classes_given:
        raise ValueError(
            "A classifier must know all labels from the start, but these rows can be read only once: give ocrep.scan "
            "classes=[…]."
        )
    if rows.checkpoint is not None:
        _check_checkpoint(recipe, rows.checkpoint[0])


def check_parts(recipe: Recipe) -> None:
    """Raise if factors of parts, which are never read again, cannot give what the recipe asks for."""
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
    """Raise before a row is read if candidates cannot be compared on these rows; a sample of them calibrates too."""
    if rows.once:
        raise ValueError(
            "Candidates are compared on rows that are read several times, but these rows can be read only once: give "
            "ocrep.scan a list or a function that starts anew, or train one network."
        )
    for recipe in recipes:
        check_rows(replace(recipe, calibrate=None) if sampled else recipe, rows)


def check_stream(recipe: Recipe, *, first: bool) -> None:
    """Raise if `partial_fit`, which sees each block once, cannot give what the recipe asks for."""
    for demand in demands_of(recipe):
        if (demand.again and demand.asked.startswith("calibrate")) or (
            not demand.again and (first or not demand.asked.startswith("n_hidden"))
        ):
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
