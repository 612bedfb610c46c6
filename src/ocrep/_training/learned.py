"""`Learned`: the fixed maps from rows to [H | T], known after the survey; small, and the same for every part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ocrep._features.random_layer import RandomLayer
from ocrep._linalg.arrays import Array
from ocrep._linalg.blocks import BLOCK_ENTRIES, Encoded, RowBlocks
from ocrep._rows.block import Block, Triple
from ocrep._rows.rows import Part
from ocrep._rows.survey import Survey
from ocrep._training.division import Division
from ocrep._training.indicators import Indicators
from ocrep._training.recipe import Recipe
from ocrep._training.targets import Labels, Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What the survey fixed: the hidden layer, the coding of the targets, the columns."""

    layer: RandomLayer | None
    targets: Numbers | Labels | Indicators
    n_inputs: int
    columns: tuple[str, ...] | None
    n_outputs: int
    """Columns of T."""
    on_device: bool = False
    """Whether the rows are arrays of another library than NumPy."""
    division: Division | None = None
    """Where the folds of rows come from, if not from their inputs."""

    @classmethod
    def of(cls, recipe: Recipe, survey: Survey, n_rows: int | None = None) -> Learned:
        """Draw the layer, learn the targets, and see how rows are divided; `n_rows` is the number of all of them."""
        targets, layer, n_inputs = recipe.targets.learn(survey), recipe.layer, len(survey.low)
        if layer is not None:
            sample = survey.sample and targets.weighted(survey.sample)
            layer.draw(n_inputs, survey.dtype, (survey.low, survey.high), sample)
            layer.n_features_in_ = n_inputs
            if survey.columns is not None:
                layer.feature_names_in_ = np.asarray(survey.columns, dtype=object)
            if survey.like is not None:
                layer.map_ = layer.map_.to_device_of(survey.like)
        n_outputs = _n_outputs(targets, survey)
        division = None if recipe.folds is None else Division.of(recipe.folds, n_rows, survey.groups)
        return cls(layer, targets, n_inputs, survey.columns, n_outputs, survey.like is not None, division)

    @property
    def n_features(self) -> int:
        if self.layer is None:
            return self.n_inputs
        return self.layer.map_.weights.shape[1] + (self.n_inputs if self.layer.direct_link else 0)

    def features(self, X: Any, out: np.ndarray | None = None) -> Array:
        """H of checked inputs, in `out` if that is given and saves anything."""
        if self.layer is not None:
            return self.layer.map_(X, out)
        return X.toarray() if sparse.issparse(X) else X

    @property
    def code(self) -> Callable[[Block], Triple]:
        """Gives checked rows the form that `encode` takes, with their folds if the inputs do not decide them."""
        return self.targets.code if self.division is None else self._code_with_folds

    def _code_with_folds(self, block: Block) -> Triple:
        assert self.division is not None
        return *self.targets.code(block), self.division.folds_of(block)

    def encode(self, triple: Triple, out: np.ndarray | None = None) -> Encoded:
        """A block `(H, T, sample_weight)` of coded rows, with H in `out` if that saves anything."""
        X, y, weight = triple[:3]
        return self.features(X, out), self.targets.encode(y), weight

    @property
    def height(self) -> int:
        return block_rows(self.n_features, self.n_inputs + self.n_outputs, on_device=self.on_device)

    def row_blocks(self, part: Part) -> RowBlocks:
        """The rows of a part as often as they are asked for, as blocks `(H, T, sample_weight)`."""
        read = partial(part.triples, self.code, self.height)
        width = None if self.on_device else self.n_features
        rows = RowBlocks(read, self.encode, self.targets.labels, width, self.n_outputs, self.targets.several)
        if part.n_in_memory is None:
            return rows
        return replace(rows, n_rows=part.n_in_memory, read_by=partial(part.triples, self.code))

    def unweighted(self) -> Learned:
        """The same maps without the weights of classes, for counting errors."""
        return replace(self, targets=self.targets.unweighted())

    def leading(self, n_hidden: int) -> Learned:
        """The same maps with only the first hidden units."""
        assert self.layer is not None
        return replace(self, layer=self.layer.take(slice(n_hidden)))


def _n_outputs(targets: Numbers | Labels | Indicators, survey: Survey) -> int:
    if not isinstance(targets, Labels):
        return survey.target_shape[0] if survey.target_shape else 1
    assert targets.classes is not None
    return 1 if len(targets.classes) == 2 else len(targets.classes)


def block_rows(n_features: int, n_others: int = 0, *, on_device: bool = False) -> int:
    """Rows per block of H of `n_features`, with `n_others` inputs and targets.

    At least four times the features, so that re-triangularizing R with each block adds at most a quarter. A device
    takes 16 times as many: it has the memory, and each block costs it a hundred launches.
    """
    return max(4 * n_features, (16 if on_device else 1) * BLOCK_ENTRIES // (n_features + n_others))
