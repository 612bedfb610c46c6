"""`Triangle`: rows [F | T] reduced by reflections to the triangle of F, QᵀT, and a length per target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import current_thread, main_thread
from typing import TypeAlias

import numpy as np
from array_api_compat import is_torch_namespace
from scipy.linalg import get_lapack_funcs

from ocrep._linalg.arrays import SMALLEST, Array, array_namespace

# So many reflections are applied to the targets at a time.
_PANEL = 128
# Features as columns side by side, and targets.
Part: TypeAlias = tuple[tuple[Array, ...], Array]


@dataclass(frozen=True, slots=True, eq=False)
class Triangle:
    """R of F = QR next to QᵀT, and the length of what remains of each target, ‖t − QQᵀt‖.

    Nothing reads the products of the remainders of two targets, so they are not kept: time and memory are linear in
    the number of targets.
    """

    R: Array
    """Upper trapezoidal, with as many rows as features, or as rows if they are fewer."""
    QtT: Array
    """QᵀT, with as many rows as R."""
    left: Array
    """A length for each target."""

    @classmethod
    def of(cls, F: Array, T: Array, *lefts: Array) -> Triangle:
        """Reduce rows [F | T]; `lefts` are lengths that remained of the same targets elsewhere."""
        return cls.of_parts([((F,), T)], *lefts)

    @classmethod
    def of_parts(cls, parts: Sequence[Part], *lefts: Array) -> Triangle:
        """Reduce the rows of several parts, one below the other."""
        xp = array_namespace(parts[0][1])
        with np.errstate(over="ignore", invalid="ignore"):
            R, QtT, rest = _reduced(_below([F for F, _ in parts]), _below([(T,) for _, T in parts]))
            rest = xp.concat([rest, *(left[None, :] for left in lefts)])
            left = column_lengths(rest)
        _check_sizes(QtT, left)
        return cls(R, QtT, left)

    def times(self, other: Triangle) -> Triangle:
        """The product of both, each with its lengths on the diagonal behind the features."""
        matmul = array_namespace(self.R).matmul
        QtT = matmul(self.R, other.QtT) + self.QtT * other.left
        return Triangle(matmul(self.R, other.R), QtT, self.left * other.left)

    def scaled(self, by: float) -> Triangle:
        """The triangle of rows times a number."""
        return Triangle(by * self.R, by * self.QtT, by * self.left)

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"R": np.asarray(self.R), "QtT": np.asarray(self.QtT), "left": np.asarray(self.left)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Triangle:
        return cls(arrays["R"], arrays["QtT"], arrays["left"])


def column_lengths(A: Array) -> Array:
    """√Σa² of each column; also where the squares are smaller than any number, so that no column looks like zero."""
    xp = array_namespace(A)
    lengths = xp.sqrt(xp.sum(A * A, axis=0))
    if not A.shape[0] or bool(xp.all(lengths > SMALLEST)):
        return lengths
    largest = xp.max(xp.abs(A), axis=0)
    scale = xp.where(largest > 0.0, largest, xp.ones_like(largest))
    return xp.where(largest < SMALLEST, scale * xp.sqrt(xp.sum((A / scale) ** 2, axis=0)), lengths)


def _check_sizes(*parts: Array) -> None:
    """Raise if the squares of numbers overflow, or if they are NaN."""
    for part in parts:
        xp = array_namespace(part)
        if not bool(xp.all(xp.abs(part) < 1.0 / SMALLEST)):
            raise ValueError("The rows hold numbers so large that their squares overflow: rescale the columns.")


def _below(parts: Sequence[tuple[Array, ...]]) -> Array:
    """Parts one below the other, the columns of each side by side; in NumPy a copy that LAPACK may overwrite."""
    first = parts[0][0]
    if not isinstance(first, np.ndarray):
        xp = array_namespace(first)
        rows = [part[0] if len(part) == 1 else xp.concat(list(part), axis=1) for part in parts]
        return rows[0] if len(rows) == 1 else xp.concat(rows)
    n_rows, n_columns = sum(part[0].shape[0] for part in parts), sum(columns.shape[1] for columns in parts[0])
    out, bottom = np.empty((n_rows, n_columns), order="F"), 0
    for part in parts:
        top, bottom, right = bottom, bottom + part[0].shape[0], 0
        for columns in part:
            left, right = right, right + columns.shape[1]
            out[top:bottom, left:right] = columns
    return out


def _reduced(F: Array, T: Array) -> tuple[Array, Array, Array]:
    """R of F = QR, QᵀT, and rows with the lengths of the columns of T − QQᵀT; NumPy arrays are overwritten."""
    xp, (n, k) = array_namespace(F), F.shape
    m = min(n, k)
    if m == 0:
        return F[:0, :], T[:0, :], T
    if isinstance(F, np.ndarray):
        R, Z = (_by_numpy if current_thread() is main_thread() else _by_scipy)(F, T)
    elif is_torch_namespace(xp):
        reflectors, tau = xp.geqrf(F)
        R = xp.triu(reflectors[:m, :])
        _check_sizes(R)
        Z = xp.ormqr(reflectors[:, :m], tau, T, transpose=True)
    else:
        Q, R = xp.linalg.qr(F, mode="reduced")
        _check_sizes(R)
        explained = xp.matmul(xp.matrix_transpose(Q), T)
        return R, explained, T - xp.matmul(Q, explained)
    return R, Z[:m, :], Z[m:, :]


def _by_numpy(F: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R and QᵀT on NumPy's BLAS, as everything else: the threads of another one would fight with its threads."""
    reflectors, tau = np.linalg.qr(F, mode="raw")
    R = np.tril(reflectors[:, : len(tau)]).T
    _check_sizes(R)
    return R, _reflected(reflectors, tau, T)


def _by_scipy(F: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for workers: NumPy's QR holds the interpreter for 500 columns or fewer, and they would wait."""
    geqrf, geqrf_lwork, ormqr = get_lapack_funcs(("geqrf", "geqrf_lwork", "ormqr"), (F,))
    reflectors, tau, *_ = geqrf(F, lwork=int(geqrf_lwork(*F.shape)[0]), overwrite_a=True)
    R = np.triu(reflectors[: len(tau)])
    _check_sizes(R)
    Z, *_ = ormqr("L", "T", reflectors[:, : len(tau)], tau, T, _PANEL * max(1, T.shape[1]), overwrite_c=True)
    return R, Z


def _reflected(reflectors: np.ndarray, tau: np.ndarray, T: np.ndarray) -> np.ndarray:
    """QᵀT of LAPACK's reflections I − τvvᵀ, whose v are rows here; T is overwritten.

    Q = I − VSVᵀ with S⁻¹ = the upper part of VᵀV, 1/τ on its diagonal.
    """
    for start in range(0, len(tau), _PANEL):
        t = tau[start : start + _PANEL]
        Vt = np.triu(reflectors[start : start + len(t), start:])
        Vt[np.arange(len(t)), np.arange(len(t))] = 1.0
        Vt[t == 0.0] = 0.0  # such a reflection changes nothing
        S = np.triu(Vt @ Vt.T, 1)
        S[np.arange(len(t)), np.arange(len(t))] = 1.0 / np.where(t == 0.0, 1.0, t)
        T[start:] -= Vt.T @ np.linalg.solve(S.T, Vt @ T[start:])
    return T
