"""Fingerprints: hashes of all that decides a summary of rows, but for the rows."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ocrep._training.learned import Learned
from ocrep._training.recipe import Recipe
from ocrep._training.targets import Labels


def fit_fingerprint(recipe: Recipe, learned: Learned) -> str:
    """What decides a factor: hidden layer, coding of targets, solver, folds."""
    hashed = hashlib.blake2b(digest_size=32)
    told: list[Any] = [recipe.estimator, bool(recipe.intercept), recipe.solver, recipe.folds]
    told += [learned.columns, learned.n_inputs, learned.n_outputs, learned.targets.fingerprint()]
    if learned.layer is not None:
        layer = learned.layer
        activation = layer.activation if isinstance(layer.activation, str) else _name_of(layer.activation)
        told += [activation, bool(layer.direct_link)]
        metric = () if layer.map_.metric is None else (layer.map_.metric,)
        for array in (layer.weights_, layer.biases_, layer.center_, layer.scale_, *metric):
            hashed.update(np.ascontiguousarray(array).data)
    if learned.division is not None and learned.division.known is not None:
        hashed.update(learned.division.known.data)
    hashed.update(repr(told).encode())
    return hashed.hexdigest()


def survey_fingerprint(recipe: Recipe) -> str:
    """What decides a survey: all that must be known of the rows first."""
    needs = recipe.needs
    told: list[Any] = [needs.labels, needs.range, needs.totals, needs.groups, needs.sample]
    if isinstance(recipe.targets, Labels):
        told += [recipe.targets.fingerprint(), recipe.targets.class_weight]
    return hashlib.blake2b(repr(told).encode(), digest_size=32).hexdigest()


def _name_of(function: Any) -> str:
    """A function's name; its code cannot be compared."""
    return str(getattr(function, "__qualname__", None) or getattr(function, "__name__", type(function).__name__))
