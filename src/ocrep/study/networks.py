"""One hidden layer on one split: all its leading sizes and all codings of its targets from one decomposition each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from ocrep._layers.random_layer import RandomLayer
from ocrep._linalg.factor import Factor
from ocrep._linalg.spectrum import Spectrum
from ocrep.study.protocol import BIASES, N_FOLDS, TARGETS, TEST_SHARE


def split_of(data: Any, split: int) -> tuple[np.ndarray, ...]:
    """Return X, X_test, y, y_test of one split, 70/30; the rows come in random order."""
    return tuple(train_test_split(data.data, data.target, test_size=TEST_SHARE, random_state=split))


def folds_of(n_rows: int) -> list[slice]:
    """Return the folds: thirds of the training rows, which the split has put in random order."""
    ends = [n_rows * v // N_FOLDS for v in range(N_FOLDS + 1)]
    return [slice(*pair) for pair in pairwise(ends)]


@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """Targets as training sees them: columns of numbers, and the unit in which errors are told."""

    T: np.ndarray
    unit: float
    code: Any  # brings targets of any rows into this coding

    @classmethod
    def of(cls, y: np.ndarray, task: str, scale: str) -> Coding:
        """Code the targets of the training rows y; `scale` is a name in `TARGETS`."""
        if task == "classification":
            return cls(np.where(y[:, None] == np.arange(y.max() + 1), 1.0, -1.0), 100.0, lambda labels: labels)
        shift, unit = (0.0, 1.0) if scale == "raw" else (y.min(), y.max() - y.min())
        return cls(((y - shift) / unit)[:, None], unit, lambda values: (values - shift) / unit)


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """The error of outputs on some rows: RMSE, or percent misclassified."""

    task: str
    y: Mapping[str, np.ndarray]
    codings: Mapping[str, Coding]

    def errors(self, outputs: np.ndarray, scale: str) -> np.ndarray:
        """Return one error for each γ of outputs (γ × rows × targets)."""
        y, unit = self.y[scale], self.codings[scale].unit
        if self.task == "classification":
            return unit * np.mean(outputs.argmax(axis=2) != y, axis=1)
        return unit * np.sqrt(np.mean((outputs[..., 0] - y) ** 2, axis=1))


@dataclass(frozen=True, eq=False)
class Network:
    """A hidden layer with as many units as `H` has columns, seen through its factors.

    The whole training part and each training part of cross-validation have one factor; its leading blocks are the
    factors of smaller layers. The targets' codings stand side by side as columns of one T.
    """

    H: np.ndarray
    H_test: np.ndarray
    task: str
    codings: Mapping[str, Coding]
    y: np.ndarray
    y_test: np.ndarray

    @classmethod
    def draw(
        cls, data: Any, split: int, seed: int, n_hidden: int, biases: str, scales: Sequence[str] = tuple(TARGETS)
    ) -> Network:
        """Draw the paper's hidden layer and apply it to the rows of a split.

        Classes have one coding, ±1: with 0 and 1 the outputs of all classes change by the same number.
        """
        if data.task == "classification":
            scales = ("raw",)
        X, X_test, y, y_test = split_of(data, split)
        layer = RandomLayer(
            n_hidden,
            activation="sigmoid",
            input_scaling="minmax",
            weight_init="uniform",
            weight_scale=1.0,
            bias_range=BIASES[biases],
            direct_link=False,
            random_state=seed,
        ).fit(X)
        codings = {scale: Coding.of(y, data.task, scale) for scale in scales}
        return cls(layer.transform(X), layer.transform(X_test), data.task, codings, y, y_test)

    @cached_property
    def T(self) -> np.ndarray:  # noqa: N802 - the paper's symbol
        """The codings side by side."""
        return np.hstack([coding.T for coding in self.codings.values()])

    def columns(self, scale: str) -> slice:
        """Return where a coding stands in T."""
        width = next(iter(self.codings.values())).T.shape[1]
        start = width * list(self.codings).index(scale)
        return slice(start, start + width)

    @cached_property
    def whole(self) -> Factor:
        """The factor of all training rows."""
        return Factor.of(self.H, self.T)

    @cached_property
    def parts(self) -> list[Factor]:
        """For each fold, the factor of the other training rows."""
        kept = [np.delete(np.arange(len(self.H)), fold) for fold in folds_of(len(self.H))]
        return [Factor.of(self.H[rows], self.T[rows]) for rows in kept]

    @cached_property
    def held_out(self) -> list[Factor]:
        """For each fold, its own factor."""
        return [Factor.of(self.H[fold], self.T[fold]) for fold in folds_of(len(self.H))]

    def sized(self, n_hidden: int) -> Sized:
        """Return the network of the first units."""
        return Sized(self, n_hidden)

    def judge(self, y: np.ndarray) -> Judge:
        """Return the judge of rows with these targets."""
        return Judge(self.task, {scale: coding.code(y) for scale, coding in self.codings.items()}, self.codings)


@dataclass(frozen=True, eq=False)
class Sized:
    """The first units of a network."""

    network: Network
    n_hidden: int

    @cached_property
    def spectrum(self) -> Spectrum:
        """The spectrum of all training rows, with the targets of all codings."""
        return self.network.whole.leading(self.n_hidden).spectrum()

    @cached_property
    def fold_spectra(self) -> list[Spectrum]:
        """For each fold, the spectrum of the other rows."""
        return [part.leading(self.n_hidden).spectrum() for part in self.network.parts]

    def spectrum_of(self, scale: str) -> Spectrum:
        """Return the spectrum with the targets of one coding."""
        return with_targets(self.spectrum, self.network.columns(scale))

    def test_errors(self, gammas: Sequence[float] | np.ndarray, scale: str) -> np.ndarray:
        """Return the error on the test rows for each γ."""
        network = self.network
        outputs = _outputs(network.H_test[:, : self.n_hidden], self.spectrum_of(scale), np.asarray(gammas))
        return network.judge(network.y_test).errors(outputs, scale)

    def cv_errors(self, gammas_by_fold: Sequence[np.ndarray], scale: str) -> np.ndarray:
        """Return the cross-validation error at each place of the folds' own γ: RMSE, or percent misclassified."""
        network, n_rows = self.network, len(self.network.H)
        columns, total = network.columns(scale), np.zeros(len(gammas_by_fold[0]))
        for v, (fold, spectrum) in enumerate(zip(folds_of(n_rows), self.fold_spectra, strict=True)):
            own, gammas = with_targets(spectrum, columns), gammas_by_fold[v]
            if network.task == "classification":
                outputs = _outputs(network.H[fold, : self.n_hidden], own, gammas)
                total += network.judge(network.y[fold]).errors(outputs, scale) * (fold.stop - fold.start)
            else:  # the factor of the held-out rows has fewer rows than they
                weights = np.zeros((len(gammas), self.n_hidden, network.T.shape[1]))
                weights[..., columns] = own.weights(gammas)
                factor = network.held_out[v].leading(self.n_hidden)
                total += factor.squared_error_by_target(weights, np.zeros_like(weights[:, 0]))[:, columns.start]
        if network.task == "classification":
            return total / n_rows
        return network.codings[scale].unit * np.sqrt(total / n_rows)


def with_targets(spectrum: Spectrum, columns: slice) -> Spectrum:
    """Return the spectrum with some of the targets."""
    some = {name: getattr(spectrum, name)[..., columns] for name in ("UtT", "residual", "mean_T")}
    return replace(spectrum, **some)


def _outputs(H: np.ndarray, spectrum: Spectrum, gammas: np.ndarray) -> np.ndarray:
    """H·W for each γ, γ × rows × targets, as one product."""
    weights = spectrum.weights(gammas)
    flat = np.moveaxis(weights, 0, 1).reshape(H.shape[1], -1)
    return np.moveaxis((H @ flat).reshape(len(H), len(gammas), -1), 1, 0)
