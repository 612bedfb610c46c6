"""The paper's experiments on one split with one hidden layer: everything from one factor per fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from ocrep import literature
from ocrep._linalg.leave_one_out import Rows
from ocrep._linalg.spectrum import Spectrum
from ocrep.estimators.pinv import PinvClassifier, PinvRegressor
from ocrep.rules import GRIDS, NotApplicable
from ocrep.rules.cross_validation import same_class
from ocrep.study.protocol import (
    ELM_SIZE,
    PAPER_GRID,
    PEAK_SHARES,
    REFERENCE_SPLIT,
    TEST_SHARE,
    Protocol,
    rules_for,
)

Record = dict[str, Any]
# What Figures 3 and 4 of the paper show of its grid.
SHOWN = np.array([gamma for gamma in GRIDS[PAPER_GRID] if 1e-10 <= gamma <= 1e5])
PATH_METHODS = ("ocrep", "cv", "unregularized", "ocrep_floor", "ocrep_cv")
PEAK_METHODS = ("ocrep", "ocrep_floor", "ocrep_cv", "unregularized")


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One unit of work: it depends on nothing but these, so it can be done anywhere, in any order, once."""

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
        """The seed of its hidden layer: another one for each split and draw."""
        return 1000 * self.split + self.draw


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A layer of the largest size with one factor per fold, from which every smaller size is read."""

    model: Any
    task: str
    rows: Rows
    test: Rows
    n_rows: int

    @classmethod
    def of(cls, data: Any, cell: Cell, n_hidden: int) -> Network:
        """Draw the layer and factor the training part of the split."""
        X, X_test, y, y_test = split_of(data, cell.split)
        kind = PinvRegressor if data.task == "regression" else PinvClassifier
        model = kind(n_hidden, gamma="none", store_folds=True, random_state=cell.seed).fit(X, y)
        return cls(model, data.task, _held(model.rows(X, y)), _held(model.rows(X_test, y_test)), len(X))

    def size(self, n_hidden: int) -> Sized:
        """The network of the first units."""
        return Sized(
            self, n_hidden, self.model.factor_.leading(n_hidden).spectrum(), self.model.folds_.leading(n_hidden)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Sized:
    """One hidden size of a network."""

    network: Network
    n_hidden: int
    spectrum: Spectrum
    folds: Any

    def rows(self) -> Rows:
        """The training rows with these units only."""
        return Rows(lambda: _cut(self.network.rows, self.n_hidden), self.network.rows.labels)

    def test_errors(self, gammas: np.ndarray) -> np.ndarray:
        """RMSE or percent misclassified on the test part, for each γ."""
        (H, T, _) = next(iter(self.network.test.blocks()))
        lost = _lost(H[:, : self.n_hidden], T, self.spectrum, gammas, self.network.task)
        return np.sqrt(lost / T.size) if self.network.task == "regression" else 100.0 * lost / len(T)

    def validation_errors(self, choose: Callable[[Spectrum], np.ndarray]) -> np.ndarray:
        """Squared error or misclassified rows over all folds, each with the γ chosen on its own training part."""
        (H, T, _) = next(iter(self.network.rows.blocks()))
        fold = self.folds.plan.of_rows(0, len(H))
        total: np.ndarray | float = 0.0
        for v, (held_out, spectrum) in zip(self.folds.filled, self.folds.held_out(), strict=True):
            gammas = choose(spectrum)
            if self.network.task == "regression":
                total = total + held_out.squared_error(spectrum.weights(gammas), spectrum.intercept(gammas))
            else:
                mine = fold == v
                total = total + _lost(H[mine, : self.n_hidden], T[mine], spectrum, gammas, self.network.task)
        return np.asarray(total) / len(H)


def run_cell(cell: Cell, data: Any, protocol: Protocol) -> list[Record]:
    """All records of a cell."""
    where = {"kind": cell.kind, "data": cell.data, "split": cell.split, "draw": cell.draw}
    return [{**where, **record} for record in EXPERIMENTS[cell.kind](cell, data, protocol)]


def fixed(cell: Cell, data: Any, protocol: Protocol) -> Iterator[Record]:
    """Every rule at the paper's fixed sizes, and the error along its grid at the largest of them."""
    sizes = list(protocol.sizes_of(cell.data))
    at_elm = [ELM_SIZE] if data.task == "classification" and "elm" in protocol.literature else []
    network = Network.of(data, cell, max(sizes + at_elm))
    for n_hidden in sorted({*sizes, *at_elm}):
        sized = network.size(n_hidden)
        chosen = {}
        for method, rule in rules_for(data.task).items():
            try:
                gamma = rule.choose(sized.spectrum, folds=sized.folds, rows=sized.rows()).gamma
            except NotApplicable as reason:
                yield {"n_hidden": n_hidden, "method": method, "error": None, "reason": str(reason)}
                continue
            chosen[method] = gamma
            error = float(sized.test_errors(np.array([gamma]))[0])
            condition = float(sized.spectrum.condition(gamma))
            yield {"n_hidden": n_hidden, "method": method, "error": error, "gamma": gamma, "condition": condition}
        if n_hidden == sizes[-1] and cell.split == REFERENCE_SPLIT:
            marks = {method: chosen[method] for method in ("ocrep", "cv")}
            errors = sized.test_errors(SHOWN).tolist()
            yield {"kind": "curve", "n_hidden": n_hidden, "gammas": SHOWN.tolist(), "errors": errors, "chosen": marks}


def path(cell: Cell, data: Any, protocol: Protocol) -> Iterator[Record]:
    """Test and cross-validation error at every hidden size, and the size that cross-validation chooses."""
    sizes = protocol.path_sizes(cell.data)
    network = Network.of(data, cell, sizes[-1])
    cv_errors: dict[str, list[float]] = {method: [] for method in PATH_METHODS}
    test_errors: dict[str, list[float]] = {method: [] for method in PATH_METHODS}
    for n_hidden in sizes:
        sized = network.size(n_hidden)
        for method, (gamma, cv_error) in _path_choices(sized, data.task).items():
            cv_errors[method].append(cv_error)
            test_errors[method].append(float(sized.test_errors(np.array([gamma]))[0]))
    for method in PATH_METHODS:
        best = int(np.argmin(cv_errors[method]))
        yield {
            "method": method,
            "sizes": sizes,
            "cv_errors": cv_errors[method],
            "test_errors": test_errors[method],
            "n_hidden": sizes[best],
            "error": test_errors[method][best],
        }


def _path_choices(sized: Sized, task: str) -> dict[str, tuple[float, float]]:
    """γ on all training rows and the cross-validation error, for each method of the path.

    Rules that look at a spectrum choose anew on each training part; those that cross-validate have the error of the γ
    they choose, as in the paper's joint search.
    """
    rules = rules_for(task)
    grid = np.array(GRIDS[PAPER_GRID])
    along = sized.validation_errors(lambda spectrum: grid)
    choices = {"cv": (float(grid[along.argmin()]), float(along.min()))}
    for method in ("ocrep", "unregularized", "ocrep_floor"):
        rule = rules[method]
        error = sized.validation_errors(lambda spectrum, rule=rule: np.array([rule.choose(spectrum).gamma]))  # type: ignore[misc]
        choices[method] = (rule.choose(sized.spectrum).gamma, float(error[0]))
    gamma = rules["ocrep_cv"].choose(sized.spectrum, folds=sized.folds).gamma
    choices["ocrep_cv"] = (gamma, float(sized.validation_errors(lambda spectrum: np.array([gamma]))[0]))
    return choices


def published_methods(cell: Cell, data: Any, protocol: Protocol) -> Iterator[Record]:
    """The literature's methods with their own defaults, where the paper compares with them."""
    X, X_test, y, y_test = split_of(data, cell.split)
    methods: dict[str, Any] = (
        {"trop_elm": literature.TROPELMRegressor, "pruned_elm": literature.PrunedELMRegressor}
        if data.task == "regression"
        else {"elm": literature.ELMClassifier, "relm": literature.RELMClassifier}
    )
    for method, estimator in methods.items():
        if method not in protocol.literature:
            continue
        model = estimator(random_state=cell.seed).fit(X, y)
        wrong = model.predict(X_test) - y_test
        error = np.sqrt(np.mean(wrong**2)) if data.task == "regression" else 100.0 * np.mean(wrong != 0)
        yield {"method": method, "n_hidden": int(model.n_hidden_), "error": float(error)}


def peak(cell: Cell, data: Any, protocol: Protocol) -> Iterator[Record]:
    """Hidden sizes around the number of training rows, which the paper never looked at."""
    n_rows = len(split_of(data, cell.split)[0])
    sizes = [round(share * n_rows) for share in PEAK_SHARES]
    network = Network.of(data, cell, sizes[-1])
    for n_hidden in sizes:
        sized = network.size(n_hidden)
        for method in PEAK_METHODS:
            gamma = rules_for(data.task)[method].choose(sized.spectrum, folds=sized.folds).gamma
            error = float(sized.test_errors(np.array([gamma]))[0])
            yield {"n_rows": n_rows, "n_hidden": n_hidden, "method": method, "error": error}


EXPERIMENTS: dict[str, Callable[[Cell, Any, Protocol], Iterator[Record]]] = {
    "fixed": fixed,
    "path": path,
    "literature": published_methods,
    "peak": peak,
}


def split_of(data: Any, split: int) -> tuple[Any, ...]:
    """Training and test part, 70/30."""
    return tuple(train_test_split(data.data, data.target, test_size=TEST_SHARE, random_state=split))


def _held(rows: Rows) -> Rows:
    """The rows as one block in memory: the paper's data sets are small, and every size reads them again."""
    blocks = list(rows.blocks())
    H, T = np.concatenate([h for h, _, _ in blocks]), np.concatenate([t for _, t, _ in blocks])
    return Rows(lambda: iter([(H, T, None)]), rows.labels)


def _cut(rows: Rows, n_hidden: int) -> Iterator[tuple[Any, Any, Any]]:
    for H, T, weight in rows.blocks():
        yield H[:, :n_hidden], T, weight


def _lost(H: np.ndarray, T: np.ndarray, spectrum: Spectrum, gammas: np.ndarray, task: str) -> np.ndarray:
    """Squared error or number of misclassified rows, for each γ."""
    outputs = H @ spectrum.weights(gammas) + spectrum.intercept(gammas)[:, None, :]
    if task == "regression":
        return ((outputs - T) ** 2).sum(axis=(1, 2))
    return (~same_class(outputs, T)).sum(axis=1)
