"""Passes over the rows whose state can be saved between two blocks and taken up again, bit for bit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from scipy import sparse

from ocrep._linalg.factor import Factor
from ocrep._linalg.folds import FoldFactors
from ocrep._linalg.gram import Products, by_reflections
from ocrep._linalg.solve import Led
from ocrep._rows.checks import Triple
from ocrep._rows.scan.source import Source
from ocrep._training.checkpoint import Journal, Progress

State = TypeVar("State")


class CodedRows(Protocol):
    """What a pass reads: rows as a model has checked and coded them, in blocks of one size."""

    height: int
    """Rows per block."""
    n_parts: int
    """How many parts (files) the current pass has begun."""

    @property
    def source(self) -> Source:
        """Where the rows come from."""

    def triples(self, skip: int = 0) -> Iterator[Triple]:
        """Blocks `(X, y, sample_weight)` behind the first `skip` rows."""

    def mapped(self, triple: Triple) -> tuple[Any, Any, Any]:
        """A block as `(H, T, sample_weight)`."""

    def blocks(self) -> Iterator[tuple[Any, Any, Any]]:
        """All blocks as `(H, T, sample_weight)`."""


class _Pass(Protocol, Generic[State]):
    """A fold over blocks `(H, T, sample_weight)`, and its state as arrays."""

    name: str

    def step(self, state: State | None, block: tuple[Any, Any, Any]) -> State: ...

    def arrays(self, state: State) -> dict[str, np.ndarray]: ...

    def restored(self, arrays: dict[str, np.ndarray]) -> State: ...


class Passes:
    """Learns a model's factor by passes that a journal, if there is one, saves now and then."""

    def __init__(self, model: Any, rows: CodedRows, journal: Journal | None) -> None:
        self._model, self._rows, self._journal = model, rows, journal
        self._marks = rows.source.marks() or () if journal is not None else ()
        self._saved = None if journal is None else journal.load()
        self._digest = ""
        self._n_rows = 0

    def learn(self, *, once: bool) -> None:
        """Set factor, folds and spectrum: by the routes of `factor_rows`, or by reflections for rows that come once."""
        model, intercept = self._model, self._model.fit_intercept
        folds = model._begin_folds()
        if folds is not None:
            model.folds_ = self._run(_Folds(folds, intercept))
            model.factor_ = model.folds_.merged()
            model._settle_size()
            model.spectrum_ = model.factor_.spectrum()
            return
        model.folds_ = None
        if once and self._journal is None:  # nothing to save between blocks, which may then go on several lanes
            model.factor_, model.spectrum_ = by_reflections(self._rows.blocks(), intercept)
            return
        found = None if once else self._by_products(intercept)
        if found is None:
            model.factor_ = self._run(_Reflections(intercept))
            model.spectrum_ = model.factor_.spectrum()
        else:
            model.factor_, model.spectrum_ = found

    def _by_products(self, intercept: bool) -> Any:
        """The fast routes of `factor_rows`; None if reflections are wanted or needed."""
        stage = self._stage(intercept)
        if stage == _Led.name:
            led = self._run(_Led(intercept))
            return led.factored()
        if stage == _Reflections.name:
            return None
        fold = _Gram(intercept)
        products = self._run(fold)
        self._save(fold, products)  # so that a crash in what follows does not cost this pass
        return products.gram().factored(self._rows.blocks, self._model.solver)

    def _stage(self, intercept: bool) -> str:
        """Which pass to begin with: the one that was interrupted, or what the first block shows."""
        if self._saved is not None:
            return self._saved.stage
        route = self._model.solver
        head = [] if route == "qr" else [triple for _, triple in zip(range(2), self._rows.triples(), strict=False)]
        if route == "qr" or (route == "auto" and len(head) < 2):
            return _Reflections.name
        first = self._rows.mapped(head[0])
        if route == "gram" or not Products.adding(None, first, intercept=intercept).gram().hopeless:
            return _Gram.name
        return _Led.name if Led.adding(None, first, intercept=intercept) is not None else _Reflections.name

    def _run(self, fold: _Pass[State]) -> State:
        state = self._taken_up(fold)
        rows = self._after(self._n_rows)
        while True:
            try:
                triple = next(rows, None)
            except BaseException:
                # What was read so far is whole; only a file or block after it is not.
                self._save(fold, state)
                raise
            if triple is None:
                break
            state = fold.step(state, self._rows.mapped(triple))
            self._n_rows += triple[0].shape[0]
            if self._journal is not None and self._journal.due:
                self._save(fold, state)
        if state is None:
            raise ValueError("There are no rows to learn from.")
        return state

    def _taken_up(self, fold: _Pass[State]) -> State | None:
        saved, self._n_rows, self._digest = self._saved, 0, ""
        if saved is None or saved.stage != fold.name:
            return None
        self._n_rows = saved.n_rows
        return fold.restored(saved.arrays)

    def _after(self, n_rows: int) -> Iterator[Triple]:
        """Rows behind the first `n_rows`; those are skipped where files are as they were, else read and compared."""
        saved = self._saved
        if n_rows and saved is not None and self._marks and saved.marks == self._marks[: len(saved.marks)]:
            self._digest = saved.digest
            for triple in self._rows.triples(skip=n_rows):
                yield self._hashed(triple)
            return
        read = 0
        for triple in self._rows.triples():
            hashed, before = self._hashed(triple), read
            read += triple[0].shape[0]
            if before >= n_rows:
                yield hashed
            elif read > n_rows or (read == n_rows and saved is not None and self._digest != saved.digest):
                self._refuse_other_rows()
        if read < n_rows:
            self._refuse_other_rows()

    def _hashed(self, triple: Triple) -> Triple:
        if self._journal is not None:
            self._digest = _digest(self._digest, triple)
        return triple

    def _refuse_other_rows(self) -> None:
        if self._journal is not None:
            self._saved, self._n_rows = None, 0  # so that the error itself saves nothing
            self._journal.refuse_other_rows()

    def _save(self, fold: _Pass[State], state: State | None) -> None:
        if self._journal is None or state is None or not self._n_rows:
            return
        marks = self._marks[: self._rows.n_parts]
        self._journal.save(Progress(fold.name, self._n_rows, self._digest, marks, fold.arrays(state)))


class _Reflections:
    """The factor itself, one triangularization per block."""

    name = "reflections"

    def __init__(self, intercept: bool) -> None:
        self._intercept = intercept

    def step(self, state: Factor | None, block: tuple[Any, Any, Any]) -> Factor:
        return Factor.fold([block], intercept=self._intercept, start=state)

    def arrays(self, state: Factor) -> dict[str, np.ndarray]:
        return _factor_arrays(state)

    def restored(self, arrays: dict[str, np.ndarray]) -> Factor:
        return _factor_of(arrays)


class _Gram:
    """The products of a Gram matrix."""

    name = "gram"

    def __init__(self, intercept: bool) -> None:
        self._intercept = intercept

    def step(self, state: Products | None, block: tuple[Any, Any, Any]) -> Products:
        return Products.adding(state, block, intercept=self._intercept)

    def arrays(self, state: Products) -> dict[str, np.ndarray]:
        sums = {f"sum{i}": np.asarray(total) for i, total in enumerate(state.sums)}
        return {**sums, **_factor_arrays(state.counts)}

    def restored(self, arrays: dict[str, np.ndarray]) -> Products:
        return Products((arrays["sum0"], arrays["sum1"], arrays["sum2"]), _factor_of(arrays))


class _Led:
    """The products of a Gram matrix that the first block leads."""

    name = "led"

    def __init__(self, intercept: bool) -> None:
        self._intercept = intercept

    def step(self, state: Led | None, block: tuple[Any, Any, Any]) -> Led:
        led = Led.adding(state, block, intercept=self._intercept)
        assert led is not None, "The first block was tried before this pass began."
        return led

    def arrays(self, state: Led) -> dict[str, np.ndarray]:
        return {"R1": np.asarray(state.R1), "G": np.asarray(state.G), **_factor_arrays(state.counts)}

    def restored(self, arrays: dict[str, np.ndarray]) -> Led:
        return Led(arrays["R1"], arrays["G"], _factor_of(arrays))


class _Folds:
    """One factor per fold."""

    name = "folds"

    def __init__(self, empty: FoldFactors, intercept: bool) -> None:
        self._empty, self._intercept = empty, intercept

    def step(self, state: FoldFactors | None, block: tuple[Any, Any, Any]) -> FoldFactors:
        return (state or self._empty).absorb([block], intercept=self._intercept)

    def arrays(self, state: FoldFactors) -> dict[str, np.ndarray]:
        named = [_factor_arrays(factor, f"fold{v}.") for v, factor in enumerate(state.factors) if factor is not None]
        return {"n_read": np.array(state.n_read), **{name: array for part in named for name, array in part.items()}}

    def restored(self, arrays: dict[str, np.ndarray]) -> FoldFactors:
        prefixes = [f"fold{v}." for v in range(self._empty.plan.n_folds)]
        factors = tuple(_factor_of(arrays, prefix) if prefix + "R" in arrays else None for prefix in prefixes)
        return FoldFactors(self._empty.plan, factors, int(arrays["n_read"]))


def _factor_arrays(factor: Factor, prefix: str = "") -> dict[str, np.ndarray]:
    counts = (factor.n_targets, int(factor.intercept), factor.n_rows, int(factor.whole_weights))
    arrays = {"R": factor.R, "shift": factor.shift, "counts": counts, "weight_sum": factor.weight_sum}
    return {prefix + name: np.asarray(array) for name, array in arrays.items()}


def _factor_of(arrays: dict[str, np.ndarray], prefix: str = "") -> Factor:
    n_targets, intercept, n_rows, whole = (int(count) for count in arrays[prefix + "counts"])
    R, shift, weight_sum = (arrays[prefix + name] for name in ("R", "shift", "weight_sum"))
    return Factor(R, shift, n_targets, bool(intercept), n_rows, float(weight_sum), bool(whole))


def _digest(before: str, triple: Triple) -> str:
    """A hash of a block's rows and of the hash of all before it."""
    X, y, weight = triple
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    hashed = hashlib.blake2b(before.encode(), digest_size=32)
    for array in (*parts, y, *(() if weight is None else (weight,))):
        hashed.update(np.ascontiguousarray(array).data)
    return hashed.hexdigest()


def model_mark(model: Any, class_factors: np.ndarray | None, names: Any) -> str:
    """A hash of all that decides a factor, but for the rows: hidden layer, targets' coding, route, folds."""
    hashed = hashlib.blake2b(digest_size=32)
    folds = model._begin_folds()
    plan = None if folds is None else folds.plan
    told = [type(model).__name__, bool(model.fit_intercept), model.solver, plan, names, model.n_features_in_]
    if hasattr(model, "layer_"):
        layer = model.layer_
        activation = layer.activation if isinstance(layer.activation, str) else _name_of(layer.activation)
        told += [activation, bool(layer.direct_link)]
        for array in (layer.weights_, layer.biases_, layer.center_, layer.scale_):
            hashed.update(np.ascontiguousarray(array).data)
    if hasattr(model, "classes_"):
        told.append(model.classes_.tolist())
    if class_factors is not None:
        told.append(class_factors.tolist())
    hashed.update(repr(told).encode())
    return hashed.hexdigest()


def _name_of(function: Any) -> str:
    """A function's name; its code cannot be compared."""
    return str(getattr(function, "__qualname__", None) or getattr(function, "__name__", type(function).__name__))
