"""The paper's experiments on one split with one hidden layer: everything from one factor per fold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from ocrep import literature
from ocrep.analysis.evaluator import Evaluator
from ocrep.estimators import PinvClassifier, PinvRegressor
from ocrep.rules import GRIDS
from ocrep.study.protocol import ELM_SIZE, PAPER_GRID, PEAK_SHARES, REFERENCE_SPLIT, TEST_SHARE, Protocol, rules_for

Record = dict[str, Any]
# The part of the grid that the paper's figures 3 and 4 show.
SHOWN = np.array([gamma for gamma in GRIDS[PAPER_GRID] if 1e-10 <= gamma <= 1e5])
PATH_METHODS = ("ocrep", "cv", "unregularized", "ocrep_floor", "ocrep_cv")
PEAK_METHODS = ("ocrep", "ocrep_floor", "ocrep_cv", "unregularized")
LITERATURE: dict[str, dict[str, Any]] = {
    "regression": {"trop_elm": literature.TROPELMRegressor, "pruned_elm": literature.PrunedELMRegressor},
    "classification": {"elm": literature.ELMClassifier, "relm": literature.RELMClassifier},
}


@dataclass(frozen=True, slots=True, order=True)
class Job:
    """One unit of work. Its result depends only on these values, so jobs can run in any order and any process."""

    split: int
    draw: int
    data: str
    kind: str

    @property
    def key(self) -> str:
        """Its name in the file of results."""
        return f"{self.kind}/{self.data}/{self.split}/{self.draw}"

    @property
    def seed(self) -> int:
        """The seed of the hidden layer, different for each split and draw."""
        return 1000 * self.split + self.draw


def run_job(job: Job, data: Any, protocol: Protocol) -> list[Record]:
    """Return all records of a job."""
    where = {"kind": job.kind, "data": job.data, "split": job.split, "draw": job.draw}
    return [{**where, **record} for record in EXPERIMENTS[job.kind](job, data, protocol)]


def fixed(job: Job, data: Any, protocol: Protocol) -> Iterator[Record]:
    """Yield the error of every rule at the paper's fixed sizes, and along its grid at the largest of them."""
    sizes = list(protocol.sizes_of(job.data))
    at_elm = [ELM_SIZE] if data.task == "classification" and "elm" in protocol.literature else []
    network = _network(data, job, max(sizes + at_elm))
    for n_hidden in sorted({*sizes, *at_elm}):
        sized = network.leading(n_hidden)
        chosen = {}
        for method, rule in rules_for(data.task).items():
            outcome = sized.apply(rule)
            if outcome.gamma is None:
                yield {"n_hidden": n_hidden, "method": method, "error": None, "reason": outcome.reason}
                continue
            chosen[method] = gamma = outcome.gamma
            condition = float(sized.spectrum.condition(gamma))
            error = _test_error(sized, gamma)
            yield {"n_hidden": n_hidden, "method": method, "error": error, "gamma": gamma, "condition": condition}
        if n_hidden == sizes[-1] and job.split == REFERENCE_SPLIT:
            marks = {method: chosen[method] for method in ("ocrep", "cv")}
            errors = _test_errors(sized, SHOWN).tolist()
            yield {"kind": "curve", "n_hidden": n_hidden, "gammas": SHOWN.tolist(), "errors": errors, "chosen": marks}


def path(job: Job, data: Any, protocol: Protocol) -> Iterator[Record]:
    """Yield test and cross-validation errors at all hidden sizes, and the size that cross-validation chooses."""
    sizes = protocol.path_sizes(job.data)
    network = _network(data, job, sizes[-1])
    errors: dict[str, list[tuple[float, float]]] = {method: [] for method in PATH_METHODS}
    for n_hidden in sizes:
        sized = network.leading(n_hidden)
        for method, (gamma, cv_error) in _path_choices(sized, data.task).items():
            errors[method].append((cv_error, _test_error(sized, gamma)))
    for method, along in errors.items():
        cv_errors, test_errors = map(list, zip(*along, strict=True))
        best = int(np.argmin(cv_errors))
        curves = {"sizes": sizes, "cv_errors": cv_errors, "test_errors": test_errors}
        yield {"method": method, **curves, "n_hidden": sizes[best], "error": test_errors[best]}


def _path_choices(sized: Evaluator, task: str) -> dict[str, tuple[float, float]]:
    """γ on all training rows and the cross-validation error, for each method of the path.

    Rules that read only a spectrum choose anew on each training part; rules that cross-validate have the error of the
    γ they choose, as in the paper's joint search.
    """
    rules = rules_for(task)
    grid = np.array(GRIDS[PAPER_GRID])
    along = sized.cv_losses(grid)
    choices = {"cv": (float(grid[along.argmin()]), float(along.min()))}
    for method in ("ocrep", "unregularized", "ocrep_floor"):
        choices[method] = (sized.choose(rules[method]).gamma, sized.cv_loss_of(rules[method]))
    gamma = sized.choose(rules["ocrep_cv"]).gamma
    choices["ocrep_cv"] = (gamma, float(sized.cv_losses(np.array([gamma]))[0]))
    return choices


def published_methods(job: Job, data: Any, protocol: Protocol) -> Iterator[Record]:
    """Yield the errors of the literature's methods with their own defaults, where the paper compares with them."""
    X, X_test, y, y_test = split_of(data, job.split)
    for method in protocol.literature:
        if method not in LITERATURE[data.task]:
            continue
        model = LITERATURE[data.task][method](random_state=job.seed).fit(X, y)
        wrong = model.predict(X_test) - y_test
        error = np.sqrt(np.mean(wrong**2)) if data.task == "regression" else 100.0 * np.mean(wrong != 0)
        yield {"method": method, "n_hidden": int(model.n_hidden_), "error": float(error)}


def peak(job: Job, data: Any, protocol: Protocol) -> Iterator[Record]:
    """Yield errors at hidden sizes around the number of training rows, which the paper does not cover."""
    n_rows = len(split_of(data, job.split)[0])
    sizes = [round(share * n_rows) for share in PEAK_SHARES]
    network = _network(data, job, sizes[-1])
    for n_hidden in sizes:
        sized = network.leading(n_hidden)
        for method in PEAK_METHODS:
            error = _test_error(sized, sized.choose(rules_for(data.task)[method]).gamma)
            yield {"n_rows": n_rows, "n_hidden": n_hidden, "method": method, "error": error}


EXPERIMENTS = {"fixed": fixed, "path": path, "literature": published_methods, "peak": peak}


def split_of(data: Any, split: int) -> tuple[Any, ...]:
    """Return X, X_test, y, y_test of one split, 70/30."""
    return tuple(train_test_split(data.data, data.target, test_size=TEST_SHARE, random_state=split))


def _network(data: Any, job: Job, n_hidden: int) -> Evaluator:
    """The paper's network of the largest size, fitted on one split; smaller sizes are its leading parts."""
    X, X_test, y, y_test = split_of(data, job.split)
    kind = PinvRegressor if data.task == "regression" else PinvClassifier
    plain: dict[str, Any] = {"gamma": "none", "direct_link": False, "fit_intercept": False}
    model = kind(n_hidden, **plain, store_folds=True, random_state=job.seed)
    return Evaluator.of(model.fit(X, y), (X, y), test=(X_test, y_test)).in_memory()


def _test_errors(sized: Evaluator, gammas: np.ndarray) -> np.ndarray:
    """RMSE, or percent misclassified, on the test rows."""
    return sized.test_errors(gammas) * (100.0 if sized.labels else 1.0)


def _test_error(sized: Evaluator, gamma: float) -> float:
    return float(_test_errors(sized, np.array([gamma]))[0])
