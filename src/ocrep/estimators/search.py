"""`PinvRegressorCV` and `PinvClassifierCV`: candidates compared on held-out rows, and weighed or the best one kept."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from numbers import Integral, Real
from threading import Lock
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ocrep._errors import pick
from ocrep._layers.random_layer import RandomLayer, check_size, random_numbers
from ocrep._linalg.factor import Factor
from ocrep._linalg.folds import FoldPlan
from ocrep._linalg.solve import Factored, Route
from ocrep._rows import open_rows
from ocrep._rows.memory import Rows
from ocrep._training.recipe import Learned, Recipe, folds_by_splitter
from ocrep._training.selection import Candidate, Report, Score, select
from ocrep._training.stack import Stack, stack
from ocrep._training.train import Training
from ocrep.estimators.base import ClosedForm, available_if
from ocrep.estimators.classification import Classification
from ocrep.estimators.pinv import PinvClassifier, PinvRegressor
from ocrep.estimators.regression import Regression
from ocrep.rules import Choice, Rule

# ------------------------------------------------------------------------------
# The hidden layers that `PinvRegressorCV` and `PinvClassifierCV` choose among, and the check of a user's own list.


Parameters = dict[str, Any]


# Which layers are compared: ramps and steps between pairs of rows, bumps and cones around rows, and random units.
_KINDS: dict[str, Parameters] = {
    "ramps": {"activation": "relu", "weight_init": "pairs", "units_see": 3},
    "bumps": {"activation": "gaussian", "weight_init": "rows", "direct_link": False},
    "cones": {"activation": "laplace", "weight_init": "rows"},
    "steps": {"activation": "sigmoid", "weight_init": "pairs"},
    "random": {"activation": "sigmoid", "weight_init": "uniform"},
}


def _layer(kind: str, n_hidden: int, **more: Any) -> Parameters:
    layer = {"n_hidden": n_hidden, **_KINDS[kind], **more}
    direct_link = layer.pop("direct_link", True)
    return {**layer, "direct_link": direct_link, "fit_intercept": True}


def _of_size(n: int, fewer: int) -> tuple[Parameters, ...]:
    return (
        _layer("ramps", n),
        _layer("ramps", fewer, units_see=2),
        _layer("bumps", n),
        _layer("steps", n, units_see=3),
        _layer("steps", n),
        _layer("random", n),
    )


_QUICK = (_layer("ramps", 300), _layer("bumps", 300))
_THOROUGH = (
    *_of_size(1000, 1000),
    *(_layer("ramps", 300), _layer("bumps", 300), _layer("steps", 300, units_see=3)),
    *(_layer("steps", 1000, units_see=3, weight_scale=scale) for scale in (0.5, 2.0)),
    *(_layer("steps", 1000, weight_scale=0.5), _layer("random", 1000, weight_scale=2.0)),
    _layer("bumps", 1000, weight_init="pairs"),
)
# Single networks, by task, since classes need more units. Of equals the first wins.
CANDIDATES: dict[str, dict[str, tuple[Parameters, ...]]] = {
    "regression": {"quick": _QUICK, "default": _of_size(500, 500), "thorough": _THOROUGH},
    "classification": {"quick": _QUICK, "default": _of_size(1000, 500), "thorough": _THOROUGH},
}

# Beyond so many inputs, trees look at too many of them to be quick, and a full metric has too many entries to learn.
_MANY_INPUTS = 1000
_MANY_DIRECTIONS = 100
# Fewer rows cannot tell what trees and metrics learn from chance.
_FEW_ROWS = 20
# Of fewer rows with labels, trees take most of the time of a quick list.
_QUICK_ROWS_FOR_TREES = 2000
# Beyond so many rows few candidates are trained on all of them, and a tree costs little beside them.
_MANY_ROWS = 4000
# Units of several outputs at most, and the units that no number of rows exceeds: a fit to 100,000 rows should take at
# most five times as long as CatBoost's, and its time grows with the square of the units.
_MOST_DOUBLED = 1500
_MOST_UNITS = 1800
# The best network of a named list is kept with its factor, which should not make a model file larger than 20 MB.
_MOST_FACTORED = 700


def _units(n_rows: int, n_outputs: int) -> int:
    """More rows need more units: 300 at 200 rows, 500 at 1,400, 1,200 at 20,000, 1,800 from 51,000 on.

    Several targets or classes need twice as many, up to 1,500. Beyond some 5,000 rows the number grows faster, because
    few candidates are trained on all rows then.
    """
    units = 82.0 * n_rows**0.25
    if n_outputs > 1:
        units = min(2.0 * units, _MOST_DOUBLED)
    return 100 * round(min(max(units, 23.0 * n_rows**0.4), _MOST_UNITS) / 100.0)


def members_of(
    candidates: str, task: str, n_rows: int, n_inputs: int, n_outputs: int, most_units: int = _MOST_UNITS
) -> list[Parameters]:
    """The layers of a stack, for rows of this number and width; those of "default" that cost least come first.

    Kinds, rounds and sizes were judged by benchmarks/nested.py on training rows; benchmarks/RESULTS.md says how this
    list was chosen. For labels no change gained more than chance.
    """
    pick("candidates", candidates, dict.fromkeys(("quick", "default", "thorough")))
    n = min(_units(n_rows, n_outputs), most_units)
    n = min(n, 300) if candidates == "quick" else n
    labels = task == "classification"
    quick = candidates == "quick"
    learns = n_rows >= _FEW_ROWS
    turns = learns and not quick and n_inputs <= _MANY_DIRECTIONS
    if labels:
        found = [_layer("ramps", n), _layer("bumps", n), _layer("steps", n, units_see=3)]
    else:  # other kinds gain nothing beside those with metrics of their own
        found = [_layer(kind, n) for kind in (["steps"] if turns else ["ramps", "bumps", "steps", "cones"])]
    too_slow = quick and labels and n_rows < _QUICK_ROWS_FOR_TREES
    if learns and n_inputs <= _MANY_INPUTS and not too_slow:
        # Where there are many rows, leaves gain more from their number than other units do.
        many = labels or n_rows > _MANY_ROWS
        leaves = min(5 * n // 4, max(n, _MOST_DOUBLED)) if many and not quick else n
        found.append({"n_hidden": leaves, "weight_init": "trees"})
    if learns and not quick:
        found += [_layer(kind, n, metric="diagonal") for kind in (["cones"] if labels else ["cones", "bumps", "ramps"])]
        if turns:
            full = ["bumps"] if labels else ["bumps", "steps"]
            found += [_layer(kind, n, metric="full", metric_rounds=1) for kind in full]
    if learns and candidates == "thorough":
        if turns and not labels:
            found += [_layer(kind, n) for kind in ("ramps", "bumps", "cones")]
        found += [
            _layer("ramps", n, units_see=2),
            _layer("random", n),
            _layer("steps", n, metric="diagonal"),
            _layer("ramps", 2 * n),
            _layer("cones", 2 * n),
        ]
        found += [_layer("cones", 2 * n, metric="diagonal"), _layer("cones", n, metric="diagonal", metric_rounds=4)]
        found += [_layer("cones", n, metric="full")] if turns else []
    # The inputs themselves may be more features than all units.
    linked = {} if n_inputs <= _MANY_INPUTS else {"direct_link": False}
    return [{"direct_link": True, "fit_intercept": True, **own, **linked, "input_scaling": "squash"} for own in found]


def candidates_of(candidates: Any, network: type, own: Sequence[str]) -> list[Parameters]:
    """What a user may pass as `candidates`: a name, or a list of parameters of `network`.

    `own` are the parameters of the search itself, which hold for all candidates.
    """
    if isinstance(candidates, str):
        lists = CANDIDATES["classification" if issubclass(network, ClassifierMixin) else "regression"]
        return [dict(c) for c in pick("candidates", candidates, lists, also=", or a list of dicts of parameters")]
    if isinstance(candidates, Mapping) or not isinstance(candidates, Sequence) or not len(candidates):
        raise ValueError(
            f"candidates={candidates!r} must be 'quick', 'default', 'thorough', or a list of at least one dict of "
            f"parameters of {network.__name__}."
        )
    known = {name: name for name in signature(network).parameters if name not in own}
    for number, parameters in enumerate(candidates):
        if not isinstance(parameters, Mapping):
            raise ValueError(f"candidates[{number}]={parameters!r} must be a dict of parameters of {network.__name__}.")
        for name in parameters:
            pick(f"parameter in candidates[{number}]", name, known)
    return [dict(parameters) for parameters in candidates]


# ------------------------------------------------------------------------------
# How far a search has come, on a terminal or on request.


# A shorter search is over before a line could be read.
_PATIENCE = 1.0


@contextmanager
def progress(*, verbose: bool) -> Iterator[Report]:
    """Write to stderr: a line for each candidate if `verbose`, else on terminals one line that is overwritten."""
    lock = Lock()
    start = perf_counter()
    shown = False

    def report(number: int, total: int, parameters: dict[str, Any], score: Score) -> None:
        nonlocal shown
        with lock:
            count = f"candidate {number + 1} of {total}"
            error = f"held-out error {score.loss:.6g} on {score.n_rows:,} rows"
            told = f"failed: {score.failure}" if score.failure else error
            if verbose:
                print(f"{count}, {parameters}: {told}, {score.seconds:.2f} s", file=sys.stderr)
            elif sys.stderr.isatty() and perf_counter() - start > _PATIENCE:
                print(f"\r\x1b[K{count}: {told}", end="", file=sys.stderr, flush=True)
                shown = True

    try:
        yield report
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


# ------------------------------------------------------------------------------

# What belongs to one network and its γ, and not to a stack.
_OF_ONE_NETWORK = (
    "choice_",
    "condition_number_",
    "factor_",
    "folds_",
    "gamma_",
    "rank_",
    "regularized_condition_number_",
    "route_",
    "singular_values_",
    "spectrum_",
)


def _check_member(recipe: Recipe) -> None:
    """Raise unless a network can be one of a stack."""
    if recipe.auto_size:
        raise ValueError("n_hidden='auto' chooses the size of one network: give a number, or use ensemble=False.")
    if recipe.rule.reads != "folds" and not isinstance(recipe.gamma, Real):
        raise ValueError(
            f"gamma={recipe.gamma!r} is a rule for one network, and those of a stack take the γ with the least error "
            "on rows held out: use gamma='ocrep_cv', 'kfold' or a number, or ensemble=False."
        )
    if recipe.folds is not None and recipe.folds.split == "blocks":
        raise ValueError(
            "split='blocks' goes by the numbers of rows, which the members of a stack do not know: give cv a splitter "
            "such as KFold(5), whose folds are blocks of rows, or use ensemble=False."
        )


# What a candidate may set for itself all the same.
_EITHER = ("gamma", "random_state")


def _never(search: Any) -> None:
    raise AttributeError(
        f"{type(search).__name__} compares candidates on all rows at once: use fit, or best_estimator_.partial_fit."
    )


class _Search(ClosedForm):
    """The parameters and attributes of a choice among candidates.

    Parameters
    ----------
    candidates : {"quick", "default", "thorough"} or list of dict, default="default"
        The networks to compare: a named list, or dicts of parameters of the network, such as
        `{"n_hidden": 300, "activation": "tanh"}`. Parameters that a dict leaves out have their defaults. The layers of
        a named list are larger where there are more rows. With `ensemble=False` named lists hold random layers only.
    ensemble : bool, default=True
        Whether the model is a stack: all candidates, weighed so that together they predict held-out rows best. A stack
        of networks is one network again, with their layers side by side. False keeps the best network alone.
    cv : int, splitter or None, default=3
        The folds on which candidates are compared and γ is chosen. A number of folds: equal rows are in the same fold,
        and with `groups=` in `fit` the rows of a group. Or a splitter of scikit-learn, for rows in memory, that tests
        on each row once, such as `GroupKFold(5)` or `StratifiedKFold(5)`. None means 3.
    gamma : str, Rule or float, default="ocrep_cv"
        The rule that chooses γ for each candidate, unless the candidate has a `gamma` of its own: a rule's name
        (`ocrep.rules.names()` lists them), a rule object, or a number ≥ 0. The networks of a stack take the γ with the
        least held-out error under "ocrep_cv" and "kfold"; other rules are for `ensemble=False`.
    selection_rows : int, default=50_000
        Beyond so many rows the candidates are compared on a random sample of this size. A stack draws its layers from
        the sample and fits its output weights on all rows; with `ensemble=False` the winner is trained on all rows. If
        the sample has more than some thousand rows, a part of it decides first which candidates go on; those of a stack
        are then judged on one fold. Where folds go by row number (`split="blocks"`), all rows are compared.
    time_budget : float or None, default=None
        No further candidate of a stack is begun after so many seconds, and the final fits come on top; None sets no
        limit. With a limit, the model depends on how fast the machine is.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the hidden layers. It is the same for all candidates, so that smaller layers are parts of larger ones.
    verbose : bool, default=False
        Whether to print a line for each candidate. On a terminal, a long search shows its progress in any case.

    Attributes
    ----------
    weights_ : ndarray of shape (n_candidates,)
        What the output of each candidate is multiplied by in the stack: ≥ 0, with sum 1.
    ensemble_score_ : float
        The held-out score of the stack, as in `cv_results_`.
    constant_score_ : float
        The score of the best constant on the same rows, to compare it with.
    best_params_ : dict
        The candidate with the least held-out error.
    best_index_ : int
        Its place among the candidates.
    best_score_ : float
        Its score. As the best of several it is optimistic: keep rows apart to know how good the model is.
    cv_results_ : dict of arrays
        Like that of `GridSearchCV`, one entry per candidate: `params`, `param_…`, `mean_test_score`,
        `split0_test_score`, …, `std_test_score`, `rank_test_score`, `mean_fit_time`; and `gamma`, the γ that the rule
        chose, and `squared_error`. A score is minus the mean squared error on rows held out, or for labels minus their
        mean log-loss, under the softmax of the outputs times the factor that fits these rows best. `squared_error` is
        that of the targets, or of the ±1 codes of labels. The means are over all rows, each held out once. Candidates
        that failed have NaN. `judged` is "nested" for layers that learn from the targets, trees and metrics, which
        were learned anew without each fold, and "exact" for others. `n_rows` is the number of rows that a candidate was
        judged on; those judged on more rank first. For a stack, `weight` holds the `weights_`.
    output_coef_ : ndarray of shape (n_features_out,) or (n_targets, n_features_out)
        Output weights W; with a direct link the weights of the inputs come first.
    n_hidden_ : int
        Number of hidden units.
    layer_ : RandomLayer, or layers side by side
        The fitted hidden layer. A stack has the layers of its members in `layer_.layers`.
    """

    candidates: str | Sequence[dict[str, Any]]
    # Model files of the time before stacks do not have these.
    ensemble: bool = False
    time_budget: float | None = None
    cv: Any
    selection_rows: int
    weights_: np.ndarray
    _best: tuple[Learned, Factor, Route, Choice]
    random_state: Any
    verbose: bool
    layer_: RandomLayer
    _network: ClassVar[type[ClosedForm]]
    _weights_name = "output_coef_"

    @property
    def best_estimator_(self) -> ClosedForm:
        """The best single network as an estimator of its own: `PinvRegressor` or `PinvClassifier`, fitted.

        From a stack with a named list of candidates and more than 4,000 rows, it has at most the first 700 of its
        units.
        """
        check_is_fitted(self)
        self._check_whole("best_estimator_")
        if self._is_stack:
            learned, factor, route, choice = self._best
            factored = Factored(factor, route=route)
            layer = learned.one_layer  # of many rows, perhaps the first units of the member's
            own = {**self._common(), **self.best_params_, "n_hidden": layer.n_hidden, "gamma": choice.gamma}
            network = self._network(**{**own, "random_state": layer.random_state, "calibrate": None})
            network._store(Training(learned, factored, choice))
            return network
        network = self._network(**{**self._common(), **self.best_params_, "random_state": self.layer_.random_state})
        calibrator = getattr(self, "calibrator_", None)
        network._store(Training(self._learned, self._factored(), self.choice_, calibrator))
        return network

    @available_if(_never)
    def partial_fit(self, X: Any, y: Any) -> None:
        """Not available."""

    def _common(self) -> dict[str, Any]:
        """The parameters that hold for all candidates."""
        taken = self._network().get_params(deep=False)
        return {name: value for name, value in self.get_params(deep=False).items() if name in taken}

    @property
    def _calibrates(self) -> bool:
        return self.ensemble or self.calibrate is not None

    @property
    def _is_stack(self) -> bool:
        return "weights_" in self.__dict__

    def __getattr__(self, name: str) -> Any:
        if name in _OF_ONE_NETWORK and self._is_stack:
            raise AttributeError(f"A stack of networks has no {name} of its own: use best_estimator_.{name}.")
        return super().__getattr__(name)

    def with_gamma(self, gamma: Any) -> Self:
        """Give the same network under another rule, from the stored factor, without the data; not for a stack.

        Parameters
        ----------
        gamma : str, Rule, float or array-like of shape (n_targets,)
            What the constructor takes as `gamma`.

        Returns
        -------
        estimator
            A new estimator; this one stays as it is.
        """
        check_is_fitted(self)
        if self._is_stack:
            raise AttributeError("A stack has a γ for each of its networks: use best_estimator_.with_gamma(…).")
        return super().with_gamma(gamma)

    def _train(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Training | Stack:
        rows = open_rows(X, y, sample_weight, self._groups_of(X, y, groups))
        common = self._common()
        if isinstance(self.random_state, Integral):
            common["random_state"] = int(self.random_state)
        else:
            common["random_state"] = int(random_numbers(self.random_state).randint(2**31 - 1))
        most_rows = check_size("selection_rows", self.selection_rows)
        if self.ensemble:
            return self._stacked(rows, common, most_rows)
        chosen = candidates_of(self.candidates, self._network, [name for name in common if name not in _EITHER])
        tried = [self._candidate(number, own, common) for number, own in enumerate(chosen)]
        with progress(verbose=self.verbose) as report:
            scores, best, training = select(tried, rows, most_rows, report)
        self.best_index_, self.best_params_ = best, chosen[best]
        self.cv_results_ = _results(chosen, scores)
        self.best_score_ = float(self.cv_results_["mean_test_score"][best])
        return training

    def _stacked(self, rows: Rows, common: dict[str, Any], most_rows: int) -> Stack:
        """Compare candidates, and weigh their networks."""
        if self.store_folds:
            raise ValueError(f"store_folds={self.store_folds!r} keeps the folds of one network: use ensemble=False.")
        seconds = math.inf if self.time_budget is None else self.time_budget
        if isinstance(seconds, bool) or not (isinstance(seconds, Real) and seconds > 0.0):
            raise ValueError(f"time_budget={self.time_budget!r} must be a number of seconds > 0, or None.")
        common = {**common, "calibrate": None}
        own = [name for name in common if name not in _EITHER]
        given = None if isinstance(self.candidates, str) else candidates_of(self.candidates, self._network, own)
        task = "classification" if issubclass(self._network, ClassifierMixin) else "regression"

        def candidates(n_rows: int, n_inputs: int, n_outputs: int, most_units: int) -> list[Candidate]:
            named = given is None
            chosen = members_of(self.candidates, task, n_rows, n_inputs, n_outputs, most_units) if named else given
            found = [self._candidate(number, own, common) for number, own in enumerate(chosen)]
            for number, (_, recipe) in enumerate(found):
                _check_member(recipe)
                if recipe.folds != found[0][1].folds:
                    raise ValueError(
                        f"candidates[{number}] has other folds than candidates[0], and a stack judges all on the same "
                        "rows: say how rows are divided in cv, or use ensemble=False."
                    )
            return [(own, recipe.for_rows(rows)) for own, recipe in found]

        # Whatever can be wrong with the parameters is found before a row is read.
        needs = candidates(1, 1, 1, _MOST_UNITS)[0][1].needs
        with progress(verbose=self.verbose) as report:
            most = _MOST_FACTORED if given is None else None
            found = stack(rows, needs, candidates, most_rows, report, seconds=float(seconds), most_factored=most)
        chosen = [own for own, _ in found.candidates]
        self.best_index_, self.best_params_ = found.best, chosen[found.best]
        self.cv_results_ = _results(chosen, found.scores) | {"weight": found.shares}
        self.best_score_ = float(self.cv_results_["mean_test_score"][found.best])
        self.ensemble_score_ = -found.loss
        self.constant_score_ = -found.loss_of_constant
        return found

    def _store(self, training: Training | Stack) -> None:
        for name in ("weights_", "_best", *_OF_ONE_NETWORK):
            self.__dict__.pop(name, None)
        if isinstance(training, Training):
            for name in ("ensemble_score_", "constant_score_"):
                self.__dict__.pop(name, None)
            super()._store(training)
            return
        self._store_learned(training.learned)
        self._store_weights(training.learned, training.output_weights, training.intercept)
        self._mean = training.mean_row
        self.calibrator_ = training.calibrator
        self.weights_ = training.shares
        given = isinstance(training.candidates[training.best][1].gamma, Real)
        name = "fixed" if given else "kfold"
        choice = Choice(name, training.best_gamma, held_out_error=training.scores[training.best].squared_error)
        factored = training.best_factored
        self._best = (training.best_learned, factored.factor, factored.route, choice)

    def _groups_of(self, X: Any, y: Any, groups: Any) -> Any:
        """The groups that make the folds: those given, or the splits of a splitter, row by row."""
        if self.cv is None:
            return groups
        if not isinstance(self.cv, Integral):
            return folds_by_splitter(self.cv, X, y, groups)
        if isinstance(self.cv, bool) or self.cv < 2:
            raise ValueError(f"cv={self.cv!r} must be a number of folds ≥ 2, or a splitter such as KFold(5).")
        return groups

    def _candidate(self, number: int, own: dict[str, Any], common: dict[str, Any]) -> Candidate:
        try:
            recipe = self._network(**{**common, **own})._recipe()
            return own, recipe.divided_by(self._plan(recipe))
        except ValueError as error:
            raise ValueError(f"candidates[{number}]: {error}") from None

    def _plan(self, recipe: Recipe) -> FoldPlan:
        """The folds of a candidate: those of `cv`, unless its rule has folds of its own."""
        own = recipe.folds
        if self.cv is None:
            plan = FoldPlan()
        else:
            plan = FoldPlan(int(self.cv)) if isinstance(self.cv, Integral) else FoldPlan(split="given")
        if own is None or own in (plan, FoldPlan()):
            return plan
        if plan == FoldPlan():  # the default gives way to what the rule says
            return own
        raise ValueError(f"gamma={recipe.gamma!r} asks for {own}, and cv={self.cv!r} for {plan}: make them the same.")


def _results(chosen: list[dict[str, Any]], scores: Sequence[Score]) -> dict[str, Any]:
    """The scores in the form of `GridSearchCV.cv_results_`."""
    n_folds = max(len(score.by_fold) for score in scores)
    splits = np.full((n_folds, len(scores)), np.nan)
    for i, score in enumerate(scores):
        splits[: len(score.by_fold), i] = [-error for error in score.by_fold]
    results: dict[str, Any] = {"mean_fit_time": np.array([score.seconds for score in scores])}
    for name in dict.fromkeys(name for own in chosen for name in own):
        values = np.empty(len(chosen), dtype=object)
        values[:] = [own.get(name) for own in chosen]
        results[f"param_{name}"] = np.ma.array(values, mask=[name not in own for own in chosen])
    results["params"] = chosen
    results.update({f"split{k}_test_score": split for k, split in enumerate(splits)})
    results["mean_test_score"] = np.array([-score.loss for score in scores])
    with np.errstate(over="ignore", invalid="ignore"):
        results["std_test_score"] = np.std(splits, axis=0)
    # Those judged on more rows rank first: the others were dropped on the way.
    order = [(-score.n_rows, np.inf if np.isnan(score.loss) else score.loss) for score in scores]
    results["rank_test_score"] = np.array([1 + sum(other < mine for other in order) for mine in order], dtype=np.int32)
    results["n_rows"] = np.array([score.n_rows for score in scores])
    results["squared_error"] = np.array([score.squared_error for score in scores])
    results["gamma"] = np.array([score.gamma for score in scores])
    results["judged"] = np.array([score.judged for score in scores])
    return results


class PinvRegressorCV(_Search, Regression):
    """A stack of networks whose layers are of different kinds, weighed by cross-validation, for regression.

    Every candidate is trained in closed form, and predicts held-out rows by weights that were fitted without their
    fold. The weights of the stack, none of them negative, make the weighted sum of these predictions as good as it can
    be. Layers that learn from the targets (leaves of trees, and metrics) are learned again without each fold. So all
    errors are errors on rows that a candidate has not seen. `predict_interval` takes its width from the stack's errors
    on held-out rows.

    See Also
    --------
    PinvRegressor : One such network.
    PinvClassifierCV : The same for labels.

    Examples
    --------
    >>> from ocrep import PinvRegressorCV
    >>> from ocrep.datasets import load
    >>> X, y = load("housing", return_X_y=True)
    >>> layers = [{"n_hidden": 100, "weight_init": "pairs"}, {"n_hidden": 100, "weight_init": "trees"}]
    >>> model = PinvRegressorCV(layers, random_state=0).fit(X, y)
    >>> model.weights_.round(1), model.predict(X[:2]).shape
    (array([0.5, 0.5]), (2,))
    >>> model.ensemble_score_ > model.best_score_  # on rows held out
    True
    >>> ends = model.predict_interval(X, coverage=0.9)
    >>> model.best_estimator_.with_gamma("gcv").score(X, y) > 0.8  # the best network under another rule
    True
    >>> sum(len(block) for block in model.predict_blocks([X[:400], X[400:]]))
    506
    >>> model.as_float32().output_coef_.dtype
    dtype('float32')
    >>> single = PinvRegressorCV(layers, ensemble=False, random_state=0).fit(X, y)
    >>> single.with_gamma("gcv").score(X, y) > 0.8
    True
    """

    _network = PinvRegressor

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the targets, in the shape of training.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        return_std : bool, default=False
            Whether to give the standard deviation of each prediction too; not for a stack.

        Returns
        -------
        ndarray, or a pair of them with `return_std`
            Predictions, and their standard deviations.
        """
        if return_std and self._is_stack:
            raise ValueError(
                "return_std=True reads the spectrum of one network: use best_estimator_.predict, or predict_interval."
            )
        return super().predict(X, return_std)

    def _half_widths(self, X: Any, errors: Any, plain: Any) -> Any:
        return errors if self._is_stack else super()._half_widths(X, errors, plain)

    def __init__(
        self,
        candidates: str | Sequence[dict[str, Any]] = "default",
        *,
        ensemble: bool = True,
        cv: Any = 3,
        gamma: str | float | Rule = "ocrep_cv",
        selection_rows: int = 50_000,
        time_budget: float | None = None,
        store_folds: bool | int = False,
        solver: str = "auto",
        random_state: Any = None,
        calibrate: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.candidates = candidates
        self.ensemble = ensemble
        self.cv = cv
        self.gamma = gamma
        self.selection_rows = selection_rows
        self.time_budget = time_budget
        self.store_folds = store_folds
        self.solver = solver
        self.random_state = random_state
        self.calibrate = calibrate
        self.verbose = verbose


class PinvClassifierCV(_Search, Classification):
    """A stack of networks whose layers are of different kinds, weighed by cross-validation, for classification.

    Every candidate is trained in closed form, and predicts held-out rows by weights that were fitted without their
    fold. The weights of the stack, none of them negative, make the log-loss of the weighted sum of these predictions as
    small as it can be. Layers that learn from the targets (leaves of trees, and metrics) are learned again without each
    fold. So all errors are errors on rows that a candidate has not seen. Probabilities are calibrated on the same
    predictions.

    Parameters
    ----------
    calibrate : "loo" or None, default="loo"
        For `ensemble=False`: "loo" fits a softmax (logistic for two classes) on the exact leave-one-out outputs of the
        chosen network, so that no data is held out and no model refitted; `predict` and `decision_function` follow it.
        None takes one factor on the outputs, which changes no label. A stack calibrates on its held-out predictions.

    See Also
    --------
    PinvClassifier : One such network.
    PinvRegressorCV : The same for numbers.

    Examples
    --------
    >>> from ocrep import PinvClassifierCV
    >>> from ocrep.datasets import load
    >>> X, y = load("wine", return_X_y=True)
    >>> layers = [{"n_hidden": 50}, {"n_hidden": 50, "weight_init": "trees"}]
    >>> model = PinvClassifierCV(layers, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (178, 3)
    >>> model.best_estimator_.gamma_ > 0
    True
    >>> sum(len(block) for block in model.predict_blocks([X[:90], X[90:]]))
    178
    >>> model.as_float32().output_coef_.dtype
    dtype('float32')
    >>> single = PinvClassifierCV(layers[:1], ensemble=False, random_state=0).fit(X, y)
    >>> single.with_gamma("gcv").gamma_ > 0  # the winner under another rule, without the data
    True
    """

    _network = PinvClassifier

    def __init__(
        self,
        candidates: str | Sequence[dict[str, Any]] = "default",
        *,
        ensemble: bool = True,
        cv: Any = 3,
        gamma: str | float | Rule = "ocrep_cv",
        selection_rows: int = 50_000,
        time_budget: float | None = None,
        store_folds: bool | int = False,
        solver: str = "auto",
        random_state: Any = None,
        class_weight: dict[Any, float] | str | None = None,
        calibrate: str | None = "loo",
        verbose: bool = False,
    ) -> None:
        self.candidates = candidates
        self.ensemble = ensemble
        self.cv = cv
        self.gamma = gamma
        self.selection_rows = selection_rows
        self.time_budget = time_budget
        self.store_folds = store_folds
        self.solver = solver
        self.random_state = random_state
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.verbose = verbose
