"""Exact leave-one-out errors from the spectrum and, where its left vectors are not known, one more pass over the rows.

With H = UΣVᵀ about the means, row i of √w·H has the coordinates u_i = √w(h_i − mean)ᵀVΣ⁻¹, the leverage

    h_i(γ) = w_i/Σw + Σ_j u_ij²·σ_j²/(σ_j² + γ),
    1 − h_i(γ) = (1 − w_i/Σw − Σ_j u_ij²) + Σ_j u_ij²·γ/(σ_j² + γ),

and the residual r_i(γ) = (√w(t_i − mean) − u_iᵀUᵀT) + Σ_j u_ij·γ/(σ_j² + γ)·(UᵀT)_j. Refitted without row i, its
error is r_i/(1 − h_i) (Allen, 1974), intercept included: n refits for the price of one pass. Of a whole weight w,
which stands for w equal rows, one row is left out; then 1 − h_i/w takes the place of 1 − h_i.

Two cases need care. With as many directions as rows, or where a row alone decides a direction, the brackets are zero,
r and 1 − h both vanish with γ, and γ is divided out of both (`_Leverages`). And where h is near 1 but the bracket is
not zero, it is what rounding left of 1 − Σu²: such rows of high leverage (a sentinel of 10¹⁰, the only row of a
category) are judged by a fit of all other rows (`HighLeverage`, whose derivation is below), for all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ocrep._linalg.arrays import (
    EPS,
    SMALLEST,
    Array,
    array_namespace,
    as_columns,
    as_float64,
    cholesky,
    device_of,
    take_rows,
    times_inverse,
    to_device_of,
    to_host,
)
from ocrep._linalg.parallel import slices_of
from ocrep._linalg.rows import Encoded, EncodedRows
from ocrep._linalg.solve import solve
from ocrep._linalg.spectrum import Spectrum, row_of
from ocrep._linalg.triangle import rank_tolerance

if TYPE_CHECKING:
    from ocrep._rows.block import Block

# ------------------------------------------------------------------------------
# Rows of high leverage: their leave-one-out errors from a fit of the other rows, since 1 − h would be rounding noise.
#
# Let B hold m such rows, about the means of the other rows, with targets t and weights w, and let f be what the fit of
# the others predicts for them. Seen from that fit, their errors r = t − f have the covariance
#
#     K = diag(1/w) + B(HᵀH + γI)⁻¹Bᵀ + 1/Σw
#
# in units of the noise, with H and Σw of the others and the last term only with an intercept. With α = K⁻¹r, the fit of
# all rows has the residuals αᵢ/wᵢ and the leverages 1 − hᵢ = (K⁻¹)ᵢᵢ/wᵢ at these rows, and leaving row i out gives the
# error αᵢ/(K⁻¹)ᵢᵢ. So one more factorization serves all m rows, and nothing is refitted for each of them. What B has
# outside the row space of H counts with 1/γ.


# Above this 1 − h, it and the residual keep nine digits.
_LEAST_LEFT = 1e-6
MOST_NOISE = 1e-9
"""A share of noise that costs leave-one-out errors no more than these digits."""
# The rounding error of 1 − Σu².
_ROUNDING = 4.0 * EPS
# The largest ratio to √γ whose square, times squares of the data, is still in the range of float64.
_FARTHEST = 1e120
# K comes from products only if they cost no more than these digits.
_MOST_LOST = 1e-10


def noise_of(spectrum: Spectrum, U: Array, outside: Array, gamma: float) -> Array:
    """The share of rounding noise in the leave-one-out errors of rows of leverage near 1 at γ; 0 for all other rows.

    Such a row nearly decides a direction alone, as a sentinel of 10¹⁰ does, or the only row of a category. Coordinates
    of a row c carry noise of ε‖c‖, and coordinates of U = CVΣ⁻¹ noise of ε‖c‖/σ. Its share in the norm of the row of
    U(Σ² + γ)^−½ is what errors of leave-one-out inherit. And what `outside`, 1 − Σu², tells of the other rows has noise
    of a few ε, which counts in comparison with 1 − h.
    """
    xp = array_namespace(U)
    high = outside < _LEAST_LEFT
    if not spectrum.rank or not bool(xp.any(high)):
        return 0.0 * outside
    scaled = spectrum.smallest / xp.sqrt(spectrum.sigma**2 + gamma)
    own = xp.linalg.vector_norm(U * scaled, axis=1)
    sizes = xp.linalg.vector_norm(U * spectrum.sigma, axis=1) / spectrum.smallest
    noise = EPS * float(xp.linalg.vector_norm(scaled * (spectrum.smallest / spectrum.sigma))) * sizes
    left = xp.where(outside > 0.0, outside, 0.0 * outside) + xp.sum(U * U * spectrum.shrinkage(gamma), axis=1)
    # A row of zeros has nothing that could be noise.
    noise = xp.where(own > 0.0, noise / xp.where(own > 0.0, own, xp.ones_like(own)), 0.0 * own)
    return xp.where(high, noise + _ROUNDING / (left + _ROUNDING), 0.0 * own)


@dataclass(frozen=True, slots=True, eq=False)
class HighLeverage:
    """Rows of high leverage as the fit of the others sees them."""

    spectrum: Spectrum
    """That of the other rows."""
    inside: Array
    """B in the right singular vectors of the others, m × p."""
    outside: Array
    """B outside their row space, in coordinates of its own."""
    outside_products: Array
    """The inner products of its rows, which are the same for all γ."""
    T: Array
    weight: Array
    left_out: Array
    """The weight that is left out of each row: all of it, or 1 of rows that whole weights repeat."""

    @classmethod
    def of(cls, others: Spectrum, H: Array, T: Array, weight: Array, *, one: bool) -> HighLeverage:
        """Rows of features H; with `one`, one of the equal rows that a whole weight stands for is left out."""
        xp = array_namespace(H)
        B = H - others.mean_H
        inside = others.right.coordinates(B)
        outside = B[:, :0]
        if others.rank < B.shape[1]:
            rest = B - xp.matrix_transpose(others.right.times(xp.matrix_transpose(inside)))
            sizes, noise = (xp.linalg.vector_norm(A, axis=1, keepdims=True) for A in (rest, B))
            rest = xp.where(sizes > B.shape[1] * EPS * noise, rest, 0.0 * rest)
            outside = xp.matrix_transpose(xp.linalg.qr(xp.matrix_transpose(rest), mode="reduced")[1])
        products = xp.matmul(outside, xp.matrix_transpose(outside))
        return cls(others, inside, outside, products, T, weight, xp.ones_like(weight) if one else weight)

    def squared_errors(self, gamma: Array) -> Array:
        """Σ w(t − left-out prediction)² over the rows, γ × targets; γ has the shape (G, 1), or (G, Q)."""
        xp = array_namespace(gamma)
        return xp.stack([xp.sum(self.weight[:, None] * self.errors(row) ** 2, axis=0) for row in to_host(gamma)])

    def errors(self, gamma: np.ndarray) -> Array:
        """The errors of rows left out, m × targets, under one γ for all targets or one for each."""
        return self._for_each(gamma, lambda alpha, left: alpha / (self.weight[:, None] * left))

    def errors_and_variances(self, gamma: np.ndarray) -> tuple[Array, Array]:
        """The same, and hᵀ(HᵀH + γI)⁻¹h of each row without it, m × targets."""
        xp, weight = array_namespace(self.T), self.weight[:, None]
        variances = self._for_each(gamma, lambda alpha, left: (1.0 - left) / (weight * left) * xp.ones_like(alpha))
        return self.errors(gamma), variances

    def _for_each(self, gamma: np.ndarray, error: Callable[[Array, Array], Array]) -> Array:
        xp = array_namespace(self.T)
        found: dict[float, Array] = {}
        for value in gamma.tolist():  # each γ is solved for once, for all its targets
            if value not in found:
                found[value] = error(*self._alpha_and_left(value))
        if len(gamma) == 1:
            return found[gamma.tolist()[0]]
        return xp.stack([found[value][:, q] for q, value in enumerate(gamma.tolist())], axis=1)

    def _alpha_and_left(self, gamma: float) -> tuple[Array, Array]:
        """α, m × targets, and 1 − h of the weight that is left out, m × 1."""
        xp = array_namespace(self.T)
        others = self.spectrum
        weight = self.weight
        r = self.T - others.mean_T - xp.matmul(self.inside, others.gain(gamma)[:, None] * others.UtT)
        scale, Z, diagonal = self._inverse_root(gamma)
        alpha = xp.matmul(Z, xp.matmul(xp.matrix_transpose(Z), r / scale[:, None])) / scale[:, None]
        left = (weight - self.left_out) / weight + self.left_out * (diagonal / scale**2) / weight**2
        return alpha, left[:, None]

    def _inverse_root(self, gamma: float) -> tuple[Array, Array, Array]:
        """d and Z of K⁻¹ = d⁻¹ZZᵀd⁻¹, and the diagonal of ZZᵀ, with d so that d⁻¹Kd⁻¹ has a diagonal of ones.

        K from products loses as many digits as its condition number has; where these are too many, a root of K does
        not need the products.
        """
        xp = array_namespace(self.T)
        others = self.spectrum
        m = self.T.shape[0]
        root_gamma = self._root_gamma(gamma)
        inside = self.inside / xp.sqrt(others.sigma**2 + gamma)
        K = xp.matmul(inside, xp.matrix_transpose(inside)) + self.outside_products / root_gamma**2
        K = K + 1.0 / others.weight_sum if others.intercept_fitted else K
        own = xp.eye(m, dtype=xp.float64, device=device_of(K)) / xp.sqrt(self.weight)
        K = K + own * own
        scale = xp.sqrt(xp.linalg.diagonal(K))
        R = cholesky(K / scale / scale[:, None])
        if R is not None:
            Z, diagonal = _inverted(R)
            # κ is at most the largest eigenvalue, which is at most m, times the trace of the inverse.
            if EPS * m * float(xp.sum(diagonal)) <= _MOST_LOST:
                return scale, Z, diagonal
        ones = xp.ones_like(scale)[:, None] / others.weight_sum**0.5
        Y = xp.concat([inside, self.outside / root_gamma, own, *([ones] if others.intercept_fitted else [])], axis=1)
        R = xp.linalg.qr(xp.matrix_transpose(Y / scale[:, None]), mode="reduced")[1]
        return scale, *_inverted(R)

    def _root_gamma(self, gamma: float) -> float:
        """√γ, but for γ = 0 its limit: a number far below what the rank tolerance lets pass."""
        others = self.spectrum
        xp = array_namespace(self.T)
        size = float(xp.max(xp.linalg.diagonal(self.outside_products))) ** 0.5
        if gamma > 0.0:
            return max(gamma**0.5, size / _FARTHEST)
        return max(1e-3 * rank_tolerance(others.right.n_features, max(others.largest, size)), SMALLEST)


def _inverted(R: Array) -> tuple[Array, Array]:
    """R⁻¹ by substitution, and the diagonal of (RᵀR)⁻¹, for which it is needed."""
    xp = array_namespace(R)
    Z = times_inverse(xp.eye(R.shape[0], dtype=xp.float64, device=device_of(R)), R)
    return Z, xp.sum(Z * Z, axis=1)


# ------------------------------------------------------------------------------
# All rows.

# The most rows of high leverage that are judged by another fit: those with the most noise. The limit bounds the time,
# which grows with the square of their number; the other rows are right to fewer digits.
_MOST_HIGH_LEVERAGE = 256


def press(spectrum: Spectrum, rows: EncodedRows, gamma: Array) -> Array:
    """PRESS(γ) = Σ w‖t_i − prediction without row i‖² for each γ of an array, in one pass over the training rows."""
    return array_namespace(gamma).sum(press_by_target(spectrum, rows, gamma[:, None]), axis=1)


def press_by_target(spectrum: Spectrum, rows: EncodedRows, gamma: Array) -> Array:
    """The same for each target, γ × targets; γ has the shape (G, 1), or (G, Q) for one each."""
    total: Array = 0.0
    aside = _SetAside(spectrum, rows, float(array_namespace(gamma).min(gamma)))
    for block, _ in _blocks(spectrum, rows, aside):
        total = total + block.squared_errors(gamma, but=block.noise > MOST_NOISE)
    for block in aside.closed():
        total = total + block.squared_errors(gamma)
    high = aside.high_leverage()
    return total if high is None else total + high.squared_errors(gamma)


def left_out_outputs(
    spectrum: Spectrum,
    rows: EncodedRows,
    gamma: float | np.ndarray,
    kept_of: Callable[[Array], Array] = lambda T: T,
) -> list[tuple[Array, Array, Array | None]]:
    """The network's output for each row had it been left out of training, with its T and weight, block by block.

    Whole weights are frequencies: one of the equal rows that a weight stands for is left out. An array holds one γ for
    each target. Of many targets, `kept_of` keeps less than all of T.
    """
    xp = array_namespace(spectrum.sigma)
    row = row_of(spectrum, gamma)
    W, intercept = spectrum.solution(gamma)
    aside = _SetAside(spectrum, rows, float(np.min(gamma)))
    found = []
    for block, (H, T, weight) in _blocks(spectrum, rows, aside, read=True):
        T = as_columns(T)
        left = block.leverage_left(row)
        if block.frequencies:
            left = block.with_twins(left, row)
        errors = (block.residual(row) / left)[:, 0, :]
        # Rows of zero weight take no part in training: their own prediction is the left-out one.
        counts = (block.root_weight > 0.0)[:, None]
        root = xp.where(counts, block.root_weight[:, None], xp.ones_like(errors[:, :1]))
        plain = T - xp.matmul(as_columns(H), W) - intercept
        found.append((T - xp.where(counts, errors / root, plain), kept_of(T), weight))
    high = aside.high_leverage(one=True)
    if high is None:
        return found
    outputs = aside.put([output for output, _, _ in found], high.T - high.errors(to_host(row)[0]))
    return [(output, kept, weight) for output, (_, kept, weight) in zip(outputs, found, strict=True)]


def left_out_errors(
    spectrum: Spectrum, rows: EncodedRows, gamma: float | np.ndarray
) -> list[tuple[Array, Array, Array]]:
    """At each row of positive weight, had it been left out: the error, its variance v, and the weight of the row.

    v is what the weights of the network pass on to the prediction, in units of the noise of a row of the mean weight w̄:
    without row i, w̄·hᵀ(HᵀH + γI)⁻¹h is (w̄/w_i)·h_i/(1 − h_i). So multiplying all weights by a number changes nothing.
    """
    xp = array_namespace(spectrum.sigma)
    row = row_of(spectrum, gamma)
    mean_weight = spectrum.weight_sum / max(spectrum.n_rows, 1)
    aside = _SetAside(spectrum, rows, float(np.min(gamma)))
    found: list[Array] = []
    variances: list[Array] = []
    weights: list[Array] = []
    for block, _ in _blocks(spectrum, rows, aside, read=True):  # in the order of the rows
        left = block.leverage_left(row)
        root = xp.where(block.root_weight > 0.0, block.root_weight, xp.ones_like(block.root_weight))
        found.append((block.residual(row) / left)[:, 0, :] / root[:, None])
        # The rows inside have 1 − h over γ.
        left = (left * xp.where(block.inside[:, :, None], row, xp.ones_like(row)))[:, 0, :]
        variance = mean_weight / root[:, None] ** 2 * (1.0 - left) / xp.where(left > 0.0, left, SMALLEST)
        variances.append(variance * xp.ones_like(found[-1]))
        weights.append(block.root_weight**2)
    high = aside.high_leverage()
    if high is not None:
        errors, variance = high.errors_and_variances(to_host(row)[0])
        found, variances = aside.put(found, errors), aside.put(variances, mean_weight * variance)
    counted = [xp.nonzero(weight > 0.0)[0] for weight in weights]
    parts = zip(found, variances, weights, counted, strict=True)
    return [(xp.take(e, some, axis=0), xp.take(v, some, axis=0), xp.take(w, some)) for e, v, w, some in parts]


def _blocks(
    spectrum: Spectrum, rows: EncodedRows, aside: _SetAside, *, read: bool = False
) -> Iterator[tuple[_Leverages, Encoded]]:
    """All rows, without some of zero weight perhaps; rows of high leverage are also put `aside`.

    The rows are read only if their U is not known, or to `read` them too.
    """
    left = spectrum.left
    if left is not None and not read:
        yield _Leverages.known(spectrum, left.U, left.T, left.root_weight, aside.gamma), Encoded(None, left.T)
        return
    for encoded in rows.blocks():
        block = _Leverages.of(spectrum, *encoded, gamma=aside.gamma)
        aside.add(block, encoded)
        yield block, encoded


@dataclass(slots=True, eq=False)
class _SetAside:
    """The rows of high leverage that a pass meets, and where they were."""

    spectrum: Spectrum
    rows: EncodedRows
    gamma: float
    """The smallest γ that is asked for."""
    _starts: list[int] = field(default_factory=list)
    """The number of the first row of each block among all rows."""
    _n_rows: int = 0
    _places: list[np.ndarray] = field(default_factory=list)
    """Their row numbers in each block."""
    _met: list[tuple[_Leverages, Array]] = field(default_factory=list)
    """For each block that has some, these rows of it and their features."""
    _frequencies: bool = True
    """Whether all weights so far are whole."""

    def add(self, block: _Leverages, encoded: Encoded) -> None:
        """Keep the rows of a block that have too much noise."""
        places = np.flatnonzero(to_host(block.noise) > MOST_NOISE)
        self._places.append(places)
        self._starts.append(self._n_rows)
        self._n_rows += encoded.H.shape[0]
        self._frequencies = self._frequencies and block.frequencies
        if len(places):
            self._met.append((block.some(places), as_float64(take_rows(encoded[0], places))))

    def closed(self) -> list[_Leverages]:
        """Those with less noise, where there are too many for another fit: the closed formula must do."""
        chosen = [mine for mine in self._chosen() if len(mine)]
        rest = [block.some(np.flatnonzero(~mine)) for (block, _), mine in zip(self._met, chosen, strict=True)]
        return [block for block in rest if block.U.shape[0]]

    def high_leverage(self, *, one: bool = False) -> HighLeverage | None:
        """The rows with the most noise, as a fit of all other rows sees them; None if no row was put aside."""
        if not self._met:
            return None
        xp = array_namespace(self.spectrum.sigma)
        chosen = np.flatnonzero(np.concatenate(self._chosen()))
        met = [(H, block.T, block.root_weight**2) for block, H in self._met]
        H, T, weight = (take_rows(xp.concat(list(part)), chosen) for part in zip(*met, strict=True))
        parts = zip(self._starts, self._places, self._chosen(), strict=True)
        numbers = np.concatenate([start + places[mine] for start, places, mine in parts])
        encoder = self.rows.encoder
        encoder = replace(encoder, code=partial(_without, numbers, encoder.code))
        others = solve(self.rows.rows, encoder, intercept=self.spectrum.intercept_fitted)
        return HighLeverage.of(others.spectrum, H, T, weight, one=one and self._frequencies)

    def put(self, blocks: list[Array], values: Array) -> list[Array]:
        """The blocks with the values of these rows in their places."""
        changed = []
        start = 0
        for block, places, chosen in zip(blocks, self._places, self._chosen(), strict=True):
            mine = places[chosen]
            if len(mine):
                new = to_host(block).copy()
                new[mine] = to_host(values[start : start + len(mine), :])
                block, start = to_device_of(block, new), start + len(mine)
            changed.append(block)
        return changed

    def _chosen(self) -> list[np.ndarray]:
        """Which of them have the most noise, block by block."""
        noise = np.concatenate([np.empty(0), *(to_host(block.noise) for block, _ in self._met)])
        chosen = np.zeros(len(noise), dtype=bool)
        chosen[np.argsort(-noise, kind="stable")[:_MOST_HIGH_LEVERAGE]] = True
        return np.split(chosen, np.cumsum([len(places) for places in self._places])[:-1])


def _without(numbers: np.ndarray, code: Callable[[Block], Block], block: Block) -> Block:
    """Coded rows, of which some get no weight; `numbers` are theirs among all rows."""
    coded = code(block)
    mine = numbers - block.first
    counted = np.ones(len(coded))
    counted[mine[(mine >= 0) & (mine < len(coded))]] = 0.0
    counted = to_device_of(coded.y, counted)
    return replace(coded, weight=counted if coded.weight is None else counted * coded.weight)


@dataclass(frozen=True, slots=True, eq=False)
class _Leverages:
    """Rows of U = √w (H − mean) V / σ, with what lies outside its range.

    A row is `inside` when nothing of it does: with as many directions as rows, or when it alone decides a direction.
    There 1 − h and the residual both go with γ, and their ratio has a limit as γ → 0, which is kept by dividing γ
    out of both: γ/(σ² + γ) becomes 1/(σ² + γ).
    """

    U: Array
    spectrum: Spectrum
    root_weight: Array
    inside: Array
    outside: Array
    """1 − Σ u² − the intercept's leverage: what is left of 1 at γ = 0."""
    T: Array
    unexplained: Array
    """√w (T − mean) − U UᵀT."""
    noise: Array
    """The share of rounding noise in the errors of rows of high leverage; 0 for all other rows."""

    @classmethod
    def of(cls, spectrum: Spectrum, H: Any, T: Any, weight: Any, *, gamma: float) -> _Leverages:
        H, T = as_float64(H), as_columns(T)
        xp = array_namespace(H)
        root = xp.ones((H.shape[0],), dtype=xp.float64, device=device_of(H)) if weight is None else xp.sqrt(weight)
        U = spectrum.right.coordinates(root[:, None] * (H - spectrum.mean_H)) / spectrum.sigma
        if spectrum.left is not None:  # without the rounding of σ₁/σ_p that coordinates bring
            U = _nearest(U, spectrum.left.U)
        return cls.known(spectrum, U, T, root, gamma)

    @classmethod
    def known(cls, spectrum: Spectrum, U: Array, T: Array, root: Array, gamma: float) -> _Leverages:
        """The block of rows whose U is known; γ is the smallest that will be asked for."""
        xp = array_namespace(U)
        outside = 1.0 - xp.sum(U * U, axis=1)
        if spectrum.intercept_fitted:
            outside = outside - root * root / spectrum.weight_sum
        unexplained = root[:, None] * (T - spectrum.mean_T) - xp.matmul(U, spectrum.UtT)
        # Rounding must not pretend that something lies outside.
        full = spectrum.rank + int(spectrum.intercept_fitted) >= spectrum.n_rows
        inside = outside <= (xp.inf if full else 64.0 * EPS * max(spectrum.rank, 1))
        inside = inside & (root > 0.0)
        # With as many directions as rows, all 1 − h go with γ, and their sums have no part that cancels.
        # U that came with the spectrum has no such noise.
        closed = full or spectrum.left is not None
        noise = 0.0 * outside if closed else xp.where(root > 0.0, noise_of(spectrum, U, outside, gamma), 0.0 * root)
        return cls(U, spectrum, root, inside[:, None], outside, T, unexplained, noise)

    def some(self, index: np.ndarray) -> _Leverages:
        """Some of the rows."""
        names = ("U", "root_weight", "inside", "outside", "T", "unexplained", "noise")
        return replace(self, **{name: take_rows(getattr(self, name), index) for name in names})

    @property
    def frequencies(self) -> bool:
        """Whether all weights, also in other blocks, are whole numbers, which say how often each row was seen."""
        xp = array_namespace(self.U)
        weight = self.root_weight**2
        whole = xp.abs(weight - xp.round(weight)) <= 4.0 * EPS * weight
        return self.spectrum.n == self.spectrum.weight_sum and bool(xp.all(whole))

    def squared_errors(self, gamma: Array, but: Array | None = None) -> Array:
        """Σ w(t − left-out prediction)² over the rows, `but` for some, γ × targets."""
        xp = array_namespace(self.U)
        entries = max(*self.U.shape, 1)
        own = gamma.shape[1] > 1
        found: list[Array] = []
        for some in slices_of(gamma.shape[0], entries):
            errors = []
            for targets in slices_of(self.unexplained.shape[1], gamma[some, :].shape[0] * entries):
                each = gamma[some, targets] if own else gamma[some, :]
                error = self.residual(each, targets) / self.leverage_left(each)
                if but is not None:
                    error = xp.where(but[:, None, None], xp.zeros_like(error), error)
                errors.append(xp.sum(error * error, axis=0))
            found.append(xp.concat(errors, axis=1))
        return xp.concat(found)

    def residual(self, gamma: Array, targets: slice = slice(None)) -> Array:
        """√w (t − prediction), rows × γ × targets; over γ for the rows inside."""
        return self._with_limit(gamma, self.U, self.spectrum.UtT[:, targets], self.unexplained[:, targets])

    def leverage_left(self, gamma: Array) -> Array:
        """1 − h_i(γ), rows × γ × columns of γ, summed from positive parts; over γ for the rows inside."""
        xp = array_namespace(self.U)
        ones = xp.ones_like(self.spectrum.sigma)[:, None]
        left = self._with_limit(gamma, self.U * self.U, ones, self.outside[:, None])
        return xp.where(left > 0.0, left, xp.ones_like(left))  # a row of zeros inside: its residual is 0 too

    def with_twins(self, left: Array, gamma: Array) -> Array:
        """1 − h_i/w_i of 1 − h_i: what is left if one of w_i equal rows leaves; over γ for the rows inside."""
        xp = array_namespace(left)
        weight = xp.where(self.root_weight > 0.0, self.root_weight**2, xp.ones_like(self.root_weight))[:, None, None]
        twins = weight - 1.0
        several = twins > 0.5
        inverse = xp.where(gamma > 0.0, 1.0 / xp.where(gamma > 0.0, gamma, xp.ones_like(gamma)), xp.inf)
        over_gamma = xp.where(several, twins, xp.ones_like(twins)) * inverse
        return (left + xp.where(self.inside[:, :, None] & several, over_gamma, twins)) / weight

    def _with_limit(self, gamma: Array, rows: Array, z: Array, rest: Array) -> Array:
        """rest + rows·(shrinkage·z), or rows·(shrinkage·z/γ) for the rows inside; rows × γ × targets."""
        xp = array_namespace(rows)
        spectrum = self.spectrum
        inside = self.inside[:, :, None]

        def times(factors: Array) -> Array:
            X = xp.permute_dims(factors, (2, 0, 1)) * z[:, None, :]
            product = xp.matmul(rows, xp.reshape(X, (X.shape[0], X.shape[1] * X.shape[2])))
            return xp.reshape(product, (rows.shape[0], *X.shape[1:]))

        limit = times(spectrum.gain(gamma) / spectrum.sigma) if bool(xp.any(inside)) else None
        if limit is not None and bool(xp.all(inside)):
            return limit
        usual = rest[:, None, :] + times(spectrum.shrinkage(gamma))
        return usual if limit is None else xp.where(inside, limit, usual)


def _nearest(U: Array, known: Array) -> Array:
    """For each row the nearest of the known rows, whose order may differ."""
    xp = array_namespace(U)
    if not known.shape[0]:
        return U
    squares = xp.sum(known * known, axis=1)
    near = xp.argmin(squares[None, :] - 2.0 * xp.matmul(U, xp.matrix_transpose(known)), axis=1)
    counts = xp.any(U != 0.0, axis=1)[:, None]
    return xp.where(counts, xp.take(known, near, axis=0), U)
