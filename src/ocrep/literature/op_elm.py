"""OP-ELM and TROP-ELM: units of three kinds, ranked by LARS, and their number by leave-one-out.

The ranking is the order in which least-angle regression takes up the units. LARS sees H and T only through the inner
products of their centred columns, and the centred triangular factor has the same ones: RᵀR = HᵀH and Rᵀ(QᵀT) = HᵀT.
So it runs on R, whose size does not grow with the rows.

For the first k units of the ranking, k = 1, 2, …, the leave-one-out error needs no refits: with the leverages
hᵢᵢ(γ) = Σⱼ uᵢⱼ²·σⱼ²/(σⱼ² + γ) (plus 1/n for the intercept) it is PRESS,

    Σᵢ (rᵢ / (1 − hᵢᵢ))² / n,

exact for least squares (γ = 0, OP-ELM) and for Tikhonov regularization (TROP-ELM, the least over γ). R of the first k
ranked units is the leading block of the ranked R, so each k costs one SVD of a k × k matrix and one product of the rows
with V: O(n·k²), and O(n·K³) for all K units together.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path, lasso_path

from ocrep._layers.random_layer import RandomLayer, check_size
from ocrep._linalg.factor import Factor
from ocrep._linalg.leave_one_out import press
from ocrep._linalg.spectrum import Spectrum
from ocrep._rows.block import Block
from ocrep._rows.memory import encoded_arrays
from ocrep.literature.base import MixedMap, SelectedUnits
from ocrep.rules import LOO


class _RankedUnits(SelectedUnits):
    """Candidates → ranking → leave-one-out error of the first 1, 2, … units → the best number.

    Parameters
    ----------
    n_hidden : int, default=100
        Number of sigmoid and Gaussian candidate units together; the inputs are added to them as linear units.
    n_steps : int or None, default=None
        How many ranked units to consider; None considers all candidates.

    Attributes
    ----------
    n_hidden_ : int
        Number of selected units, linear units included.
    ranking_ : ndarray of shape (n_candidates,)
        Candidates in the order of the ranking. They are numbered from the linear units over the sigmoid units to the
        Gaussian ones.
    loo_errors_ : ndarray of shape (n_steps,)
        Mean squared leave-one-out error of the first 1, 2, … units (at the best γ of the grid if there is one); for
        several targets in units of their variances.
    map_ : MixedMap
        The map from inputs to the selected units.

    See Also
    --------
    PrunedELMRegressor : Units selected by the lasso and BIC.
    ocrep.PinvRegressor : All units, with any rule for γ.

    Notes
    -----
    The publication leaves open, and this implementation chooses: equal parts of sigmoid and Gaussian units, and one
    linear unit per input; random centres as in `ocrep.RandomLayer`; inputs scaled to [−1, 1]; an intercept; for several
    targets the group lasso instead of MRSR; for γ a log grid from √ε·σ₁² up with a parabola instead of Nelder–Mead.
    """

    _regularized: ClassVar[bool]

    def __init__(
        self,
        n_hidden: int = 100,
        *,
        n_steps: int | None = None,
        input_scaling: Any = "minmax",
        random_state: Any = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.n_steps = n_steps
        self.input_scaling = input_scaling
        self.random_state = random_state

    def _select(self, X: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        candidates = self._candidates(X)
        H = candidates(X)
        # Several targets count equally, whatever their units of measurement.
        unit = np.ones(1)
        if T.shape[1] > 1:
            unit = np.where(T.std(axis=0) > 0, T.std(axis=0), 1.0)
        T = T / unit
        n_steps = H.shape[1] if self.n_steps is None else check_size("n_steps", self.n_steps)
        if n_steps > H.shape[1]:
            raise ValueError(f"n_steps={n_steps} exceeds the {H.shape[1]} candidate units: use at most that many.")
        factor = Factor.of(H, T, intercept=True)
        self.ranking_ = rank_units(factor)
        ranked = factor.select(self.ranking_[:n_steps])
        H = H[:, self.ranking_[:n_steps]]
        tried = [self._leave_one_out(ranked.leading(k).spectrum(), H[:, :k], T) for k in range(1, n_steps + 1)]
        self.loo_errors_ = np.array([error for error, _ in tried])
        self.n_hidden_ = int(np.argmin(self.loo_errors_)) + 1
        self.gamma_ = tried[self.n_hidden_ - 1][1]
        kept = self.ranking_[: self.n_hidden_]
        # The map has its units in the order of the candidates, so the weights are brought from the ranking to it.
        self.map_ = candidates.take(np.sort(kept))
        spectrum = ranked.leading(self.n_hidden_).spectrum()
        return unit * spectrum.weights(self.gamma_)[np.argsort(kept)], unit * spectrum.intercept(self.gamma_)

    def _candidates(self, X: np.ndarray) -> MixedMap:
        """All inputs as linear units, then sigmoid and Gaussian units in equal parts."""
        n_hidden = check_size("n_hidden", self.n_hidden)
        rng = np.random.RandomState(self._seed())
        counts = {"sigmoid": n_hidden - n_hidden // 2, "gaussian": n_hidden // 2}
        # A layer has at least one unit, and n_hidden=1 leaves none for the Gaussian ones: so one is drawn and dropped.
        maps = [
            RandomLayer(max(count, 1), activation=kind, input_scaling=self.input_scaling, random_state=rng)
            .fit(X)
            .map_.take(slice(count))
            for kind, count in counts.items()
        ]
        return MixedMap(np.arange(X.shape[1]), tuple(maps))

    def _leave_one_out(self, spectrum: Spectrum, H: np.ndarray, T: np.ndarray) -> tuple[float, float]:
        """The mean squared leave-one-out error and its γ: the best one for TROP-ELM, 0 for OP-ELM."""
        rows = encoded_arrays(Block(H, T, None))
        if not self._regularized or not spectrum.rank:
            return float(press(spectrum, rows, np.zeros(1))[0]) / T.size, 0.0
        choice = LOO().choose(spectrum, rows=rows)
        assert choice.curve is not None
        return float(np.min(choice.curve.criterion)) / T.size, choice.gamma


def rank_units(factor: Factor) -> np.ndarray:
    """Rank the units by the order in which least-angle regression selects them.

    Columns are scaled to unit length first. Several targets are ranked together by the group lasso (scikit-learn's
    multi-task lasso). Constant units and those that are never taken up come last.
    """
    M = factor.n_features
    centred = factor.centred()
    lengths = np.linalg.norm(centred.R, axis=0)
    usable = np.flatnonzero(lengths > 0)
    A = centred.R[:, usable] / lengths[usable]
    Z = centred.QtT
    if not usable.size or not Z.any():
        return np.arange(M)
    with warnings.catch_warnings():
        # Nearly equal units are dropped from the path with a warning each; here they are ranked last.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        if Z.shape[1] == 1:
            _, order, _ = lars_path(A, Z[:, 0], method="lar", max_iter=usable.size)
        else:
            most = np.linalg.norm(A.T @ Z, axis=1).max() / len(A)
            _, coefficients, _ = lasso_path(A, Z, alphas=most * np.logspace(0, -5, 200))
            # Units by the first penalty at which their weight is not 0, larger weights first.
            sizes = np.linalg.norm(coefficients, axis=0)  # units × penalties, from the largest penalty on
            entered = np.flatnonzero(sizes.any(axis=1))
            first = (sizes[entered] > 0).argmax(axis=1)
            order = entered[np.lexsort((-sizes[entered, first], first))]
    ranked = usable[np.asarray(order, dtype=np.intp)]
    return np.concatenate([ranked, np.setdiff1d(usable, ranked), np.setdiff1d(np.arange(M), usable)])


class TROPELMRegressor(_RankedUnits):
    """TROP-ELM: units ranked by LARS, their number and a Tikhonov parameter γ by leave-one-out.

    For the first 1, 2, … units of the ranking, the leave-one-out error (PRESS) with Tikhonov regularization is
    minimised over γ [1]_. The SVD gives it for all γ without a further inverse.

    Attributes
    ----------
    gamma_ : float
        γ of the chosen number of units.

    See Also
    --------
    OPELMRegressor : The same selection without regularization.

    References
    ----------
    .. [1] Miche, van Heeswijk, Bas, Simula, Lendasse, "TROP-ELM: a double-regularized ELM using LARS and Tikhonov
       regularization", Neurocomputing 74 (2011).

    Examples
    --------
    >>> from ocrep.datasets import load
    >>> from ocrep.literature import TROPELMRegressor
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = TROPELMRegressor(30, random_state=0).fit(X, y)
    >>> model.predict(X).shape
    (209,)
    """

    _regularized = True


class OPELMRegressor(_RankedUnits):
    """OP-ELM: units ranked by LARS, their number by leave-one-out, without regularization.

    For the first 1, 2, … units of the ranking, the leave-one-out error (PRESS) of least squares is computed, and the
    number with the least error is chosen [1]_.

    Attributes
    ----------
    gamma_ : float
        0: the method does not regularize.

    See Also
    --------
    TROPELMRegressor : The same selection with Tikhonov regularization.

    References
    ----------
    .. [1] Miche, Sorjamaa, Bas, Simula, Jutten, Lendasse, "OP-ELM: optimally pruned extreme learning machine",
       IEEE Transactions on Neural Networks 21 (2010).

    Examples
    --------
    >>> from ocrep.datasets import load
    >>> from ocrep.literature import OPELMRegressor
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = OPELMRegressor(30, random_state=0).fit(X, y)
    >>> model.predict(X).shape
    (209,)
    """

    _regularized = False
