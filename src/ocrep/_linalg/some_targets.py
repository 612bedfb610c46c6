"""`of_targets`: everything that is known of rows, for some of their targets; nothing is factored anew."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

from ocrep._linalg.arrays import array_namespace, as_columns, take_columns
from ocrep._linalg.counts import Encoded
from ocrep._linalg.factor import Factor
from ocrep._linalg.folds import FoldFactors
from ocrep._linalg.quick_folds import QuickFit
from ocrep._linalg.rows import EncodedRows
from ocrep._linalg.spectrum import HeldOut, Spectrum


@singledispatch
def of_targets(known: Any, targets: Any) -> Any:
    """The same features with some of the targets, by a slice or their numbers; None stays None."""
    assert known is None


@of_targets.register
def _(known: Spectrum, targets: Any) -> Spectrum:
    UtT, residual, mean_T = (take_columns(part, targets) for part in (known.UtT, known.residual, known.mean_T))
    left = known.left and replace(known.left, T=take_columns(known.left.T, targets))
    return replace(known, UtT=UtT, residual=residual, mean_T=mean_T, left=left)


@of_targets.register
def _(known: HeldOut, targets: Any) -> HeldOut:
    T, left = take_columns(known.T, targets), take_columns(known.left, targets)
    return replace(known, spectrum=of_targets(known.spectrum, targets), T=T, left=left)


@of_targets.register
def _(known: QuickFit, targets: Any) -> QuickFit:
    return known.of_targets(targets)


@of_targets.register
def _(known: Factor, targets: Any) -> Factor:
    counts, triangle, rows, M = known.counts, known.triangular, known.rows, known.n_features
    shift = take_columns(counts.shift[M:], targets)
    n_targets, shift = int(shift.shape[0]), array_namespace(shift).concat([counts.shift[:M], shift])
    if triangle is not None:
        QtT, left = (take_columns(part, targets) for part in (triangle.QtT, triangle.left))
        triangle = replace(triangle, QtT=QtT, left=left)
    rows = rows and replace(rows, T=take_columns(rows.T, targets))
    return Factor(triangle, replace(counts, shift=shift, n_targets=n_targets), rows)


@of_targets.register
def _(known: FoldFactors, targets: Any) -> FoldFactors:
    some = replace(known, factors=tuple(of_targets(factor, targets) for factor in known.factors))
    for name in ("training", "spectra", "fits"):
        some.__dict__[name] = tuple(of_targets(part, targets) for part in getattr(known, name))
    return some


@of_targets.register
def _(known: EncodedRows, targets: Any) -> EncodedRows:
    def encode(block: Any, *out: Any) -> Encoded:
        H, T, weight = known.encoder.encode(block, *out)
        return Encoded(H, take_columns(as_columns(T), targets), weight)

    return replace(known, encoder=replace(known.encoder, encode=encode))
