"""`plan` and `Plan`: what is sent to everybody who holds rows, and what turns their parts into a fitted model."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from ocrep._linalg.factor import Factor
from ocrep._linalg.fold_factors import FoldFactors
from ocrep._linalg.solve import Factored
from ocrep._rows.block import Block, on_device
from ocrep._rows.checks import check_columns, check_counts, check_target_shape, check_within, naming
from ocrep._rows.memory import MemoryRows, Rows
from ocrep._rows.stream import Scan, ScanRows
from ocrep._rows.survey import Range, distinct, observed_range
from ocrep._rows.survey import Survey as Surveyed
from ocrep._training.checkpoint import fit_fingerprint, survey_fingerprint
from ocrep._training.recipe import Learned, Recipe, check_parts
from ocrep._training.targets import Labels, Numbers, check_more_than_one
from ocrep._training.train import factors_of_part, train_from_factors
from ocrep.estimators import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor
from ocrep.estimators.base import ClosedForm, warn_of
from ocrep.parts.summaries import Part, Survey, told

_INSTEAD = "give all parts the same columns, which a survey or feature_names tells the plan"
_KINDS = (PinvRegressor, PinvClassifier, TikhonovRegressor, TikhonovClassifier)


def plan(
    model: ClosedForm,
    *,
    n_features: int | None = None,
    feature_names: Iterable[str] | None = None,
    n_targets: int | None = None,
    classes: Any = None,
) -> Plan:
    """Plan the training of a model on rows that lie in parts.

    Parameters
    ----------
    model : PinvRegressor, PinvClassifier, TikhonovRegressor or TikhonovClassifier
        What to train; it is not changed. With `random_state=None` the plan chooses a seed, so that all parts have the
        same hidden layer.
    n_features : int, default=None
        The number of inputs. Without it a survey finds it.
    feature_names : list of str, default=None
        The names of the inputs, in the place of their number, for data frames. A survey finds them too.
    n_targets : int, default=None
        The number of columns of y, for regression; None if y has one axis. A survey finds it too.
    classes : array-like, default=None
        All labels, for classifiers. Without them a survey finds them.

    Returns
    -------
    Plan
        Complete, or waiting for `with_survey`: see `Plan.missing`.

    See Also
    --------
    ocrep.scan : Rows on one machine that do not fit into memory.

    Examples
    --------
    >>> from ocrep import PinvRegressor, parts
    >>> from ocrep.datasets import load
    >>> X, y = load("housing", return_X_y=True)
    >>> model = PinvRegressor(50, random_state=0)
    >>> plan = parts.plan(model)
    >>> survey = plan.survey(X[:200], y[:200], part_number=0).merge(plan.survey(X[200:], y[200:], part_number=1))
    >>> plan = plan.with_survey(survey)
    >>> part = plan.of(X[:200], y[:200], part_number=0).merge(plan.of(X[200:], y[200:], part_number=1))
    >>> bool(abs(plan.finish(part).gamma_ / model.fit(X, y).gamma_ - 1) < 1e-9)
    True
    """
    if not isinstance(model, _KINDS):
        raise TypeError(
            f"ocrep.parts trains {', '.join(kind.__name__ for kind in _KINDS)}, and not {type(model).__name__}: plan "
            "one of these."
        )
    model = clone(model)
    recipe = model._recipe(_labels(model, classes))
    check_parts(recipe)
    if recipe.layer is not None and recipe.layer.random_state is None:
        recipe.layer.random_state = int(np.random.default_rng().integers(2**31))
    names = None if feature_names is None else tuple(feature_names)
    width = n_features if names is None else len(names)
    found = Plan(model, recipe, n_features=None if width is None else _whole("n_features", width, 1))
    if found.missing:
        return found
    shape = () if n_targets is None else (_whole("n_targets", n_targets, 1),)
    nothing = np.full(found.n_features or 0, np.nan)
    return _learned(found, Surveyed(0, 1.0, nothing, nothing, np.dtype(np.float64), target_shape=shape, columns=names))


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """How every part of the rows is turned into factors: small, the same for all, pickled and sent; made by `plan`.

    Parameters
    ----------
    model : estimator
        What is trained.
    recipe : Recipe
        What the parameters of the model mean.
    learned : Learned or None
        The hidden layer and the codes of the targets, once they are known.
    range : pair of arrays or None
        The surveyed range of the inputs, where the layer depends on it.
    surveyed : frozenset of int
        The numbers of the surveyed parts.
    n_features : int or None
        The number of inputs, where it is known.

    Attributes
    ----------
    missing : tuple of str
        What must be known of all rows first: survey the parts while this is not empty.

    Examples
    --------
    >>> import numpy as np
    >>> from ocrep import TikhonovRegressor, parts
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 3.0, 5.0, 7.0])
    >>> plan = parts.plan(TikhonovRegressor(0.0), n_features=1)
    >>> part = plan.of(X[:2], y[:2], part_number=0).merge(plan.of(X[2:], y[2:], part_number=1))
    >>> plan.finish(part).predict([[4.0]]).round(6)
    array([9.])
    >>> unsure = parts.plan(TikhonovRegressor(0.0))
    >>> unsure.missing
    ('the number of inputs',)
    >>> unsure.with_survey(unsure.survey(X, y, part_number=0)).missing
    ()
    """

    model: ClosedForm
    recipe: Recipe
    learned: Learned | None = None
    range: Range | None = None
    surveyed: frozenset[int] = frozenset()
    n_features: int | None = None

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """What a survey must find before `of` can begin."""
        needs, targets = self.recipe.needs, self.recipe.targets
        unknown = {
            "the number of inputs": self.n_features is None,
            "the range of the inputs": needs.range,
            "all labels": isinstance(targets, Labels) and targets.classes is None,
            "all groups": needs.groups,
            "a sample of rows": bool(needs.sample),
        }
        return () if self.learned is not None else tuple(what for what, wanted in unknown.items() if wanted)

    def survey(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, *, part_number: int
    ) -> Survey:
        """Look at the rows of one part, for what must be known of all rows first.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or `ocrep.scan(…)`
            Inputs; a scan names all else itself.
        y : array-like of shape (n_samples,), or (n_samples, n_targets) for regression
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights ≥ 0.
        groups : array-like of shape (n_samples,), default=None
            The group of each row, for rules that divide rows by groups.
        part_number : int
            The number of the part, ≥ 0, another for each.

        Returns
        -------
        Survey
            To be merged with those of all other parts.
        """
        number, needs = _whole("part_number", part_number, 0), self.recipe.needs
        with naming(f"Part {number}"):
            rows = _rows(X, y, sample_weight, groups, number)
            _check_groups(self.recipe, rows)
            if rows.once:
                raise ValueError("a survey reads rows before they are learned, and these can be read only once.")
            survey = rows.survey(needs) if rows.check(needs) != 0 else None
            if survey is not None:
                self._check_width(survey.n_inputs)
        return Survey(survey_fingerprint(self.recipe), frozenset([number]), survey)

    def with_survey(self, survey: Survey) -> Plan:
        """Complete the plan: the hidden layer is drawn, and labels get their codes.

        Parameters
        ----------
        survey : Survey
            The merged surveys of all parts.

        Returns
        -------
        Plan
            A complete plan; this one stays as it is.
        """
        Survey.check_plan(survey, survey_fingerprint(self.recipe))
        found = survey.summary
        check_counts(*((0, 0.0) if found is None else (found.n_rows, found.weight_sum)))
        assert found is not None
        self._check_width(found.n_inputs)
        return replace(_learned(self, found), surveyed=survey.numbers)

    def of(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, *, part_number: int) -> Part:
        """Turn the rows of one part into factors, on the machine that holds them.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or `ocrep.scan(…)`
            Inputs; a scan is read block by block, and names all else itself.
        y : array-like of shape (n_samples,), or (n_samples, n_targets) for regression
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights ≥ 0.
        groups : array-like of shape (n_samples,), default=None
            The group of each row, for rules that divide rows by groups.
        part_number : int
            The number of the part, ≥ 0, another for each. A part that is made again has the same number.

        Returns
        -------
        Part
            To be merged with all other parts.
        """
        number = _whole("part_number", part_number, 0)
        learned, fingerprint = self._complete
        encoder = replace(learned.encoder, code=self._compared_and_coded)
        summary: Factor | FoldFactors | None = None
        with naming(f"Part {number}"):
            rows = _rows(_with_classes(X, learned), y, sample_weight, groups, number)
            _check_groups(self.recipe, rows)
            if isinstance(rows, ScanRows):  # which must see its first block before it is read
                rows.survey(replace(self.recipe.needs, range=False, totals=False, sample=0))
            if rows.check(self.recipe.needs) != 0:
                factored = factors_of_part(self.recipe, learned, encoder, rows)
                summary = factored.whole if factored.folds is None else factored.folds
        return Part(fingerprint, frozenset([number]), summary)

    def finish(self, part: Part, *, n_parts: int | None = None) -> Any:
        """Choose γ and the output weights from the merged parts.

        Parameters
        ----------
        part : Part
            All parts, merged.
        n_parts : int, default=None
            How many parts there are, numbered from 0. Missing ones are named; without it, those that were surveyed
            are expected.

        Returns
        -------
        estimator
            A fitted model like that of `fit` on all rows, to rounding.
        """
        learned, fingerprint = self._complete
        Part.check_plan(part, fingerprint)
        expected = self.surveyed if n_parts is None else frozenset(range(_whole("n_parts", n_parts, 1)))
        if expected - part.numbers:
            raise ValueError(f"{told(expected - part.numbers)} missing: make and merge all parts before finish.")
        if n_parts is not None and part.numbers - expected:
            raise ValueError(f"{told(part.numbers - expected)} beyond n_parts={n_parts}: parts are numbered from 0.")
        summary: Factor | FoldFactors | None = part.summary
        if summary is None:
            check_counts(0, 0.0)
        assert summary is not None
        model = clone(self.model)
        factored = Factored(summary) if isinstance(summary, Factor) else Factored(None, summary)
        training = train_from_factors(self.recipe, learned, factored)
        model._store(training)
        warn_of(training.choice)
        return model

    def _compared_and_coded(self, block: Block) -> Block:
        """Coded rows; they are refused where columns, targets, ranges or groups are not those of the plan."""
        learned, _ = self._complete
        targets = learned.targets
        check_columns(block, learned.n_inputs, learned.columns, than="the plan", instead=_INSTEAD)
        if isinstance(targets, Numbers):
            shape = () if targets.one_dimensional else (learned.n_outputs,)
            check_target_shape(block, shape, where="in the plan")
        weigh = self.recipe.needs.weigh
        weight = block.weight if weigh is None else weigh(block.y, block.weight)
        if self.range is not None:
            check_within(block, *self.range, observed_range(block.X, weight))
        if learned.division is not None:
            counts = slice(None) if weight is None else np.flatnonzero(weight > 0.0)
            learned.division.check_known(block, counts)
        return learned.code(block)

    @cached_property
    def _complete(self) -> tuple[Learned, str]:
        if self.learned is None:
            raise ValueError(
                f"This plan must know {' and '.join(self.missing)} first: survey every part, merge the surveys, and "
                "use with_survey."
            )
        return self.learned, fit_fingerprint(self.recipe, self.learned)

    def _check_width(self, n_inputs: int) -> None:
        if self.n_features not in (None, n_inputs):
            raise ValueError(f"X has {n_inputs} columns, and the plan was made for n_features={self.n_features}.")

    def __repr__(self) -> str:
        state = f"missing={list(self.missing)}" if self.missing else f"n_features={self.n_features}"
        return f"Plan({self.model!r}, {state})"


def _learned(plan: Plan, survey: Surveyed) -> Plan:
    """A plan with all that depends on the rows; the layer is drawn anew each time, with the plan's seed."""
    layer = plan.recipe.layer
    recipe = plan.recipe if layer is None else replace(plan.recipe, layer=clone(layer))
    learned = Learned.of(recipe, survey)
    known = survey.range if recipe.needs.range else None
    return Plan(plan.model, plan.recipe, learned, known, n_features=learned.n_inputs)


def _labels(model: ClosedForm, classes: Iterable[Any] | None) -> Labels | None:
    """Labels that are known beforehand."""
    if classes is None:
        return None
    if not isinstance(model, PinvClassifier | TikhonovClassifier):
        raise ValueError(f"classes={classes!r} are for classifiers, and {type(model).__name__} learns numbers.")
    if model.class_weight == "balanced":
        raise ValueError("class_weight='balanced' needs a survey, which finds the classes: leave classes out.")
    given = distinct(np.asarray(list(classes)))
    check_more_than_one("classes", given)
    return Labels(model.class_weight, classes=given)


def _check_groups(recipe: Recipe, rows: Rows) -> None:
    """A plan is made before groups are seen, so the rule itself must say that folds go by groups."""
    if recipe.folds is not None and recipe.folds.split == "content" and rows.grouped:
        raise ValueError(
            "Groups are given, but the plan was made for folds by content: make it of a model with "
            "gamma=rules.KFold(split='groups') or rules.OCRePCV(split='groups')."
        )


def _rows(X: Any, y: Any, sample_weight: Any, groups: Any, number: int) -> Rows:
    """The rows of one part."""
    if isinstance(X, Scan):
        if y is not None or sample_weight is not None or groups is not None:
            raise ValueError("ocrep.scan names targets, weights and groups itself: give only the scan.")
        return ScanRows(X)
    if not isinstance(X, np.ndarray) and on_device(X):
        raise TypeError("parts are made on the host, and X is an array of another library: give a NumPy array.")
    return MemoryRows(X, y, sample_weight, groups, part=f"Part {number}", number=number)


def _with_classes(X: Any, learned: Learned) -> Any:
    """A scan that need not look for the labels, since the plan knows them; all else as it is."""
    targets = learned.targets
    return replace(X, classes=targets.classes) if isinstance(X, Scan) and isinstance(targets, Labels) else X


def _whole(name: str, value: Any, least: int) -> int:
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if number < least:
        raise ValueError(f"{name}={value!r} must be a whole number ≥ {least}.")
    return number
