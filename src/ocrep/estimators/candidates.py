"""The hidden layers that `PinvRegressorCV` and `PinvClassifierCV` choose among, and the check of a user's own list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

from sklearn.base import ClassifierMixin

from ocrep._errors import pick

Parameters = dict[str, Any]


def _layer(activation: str, weight_init: str, n_hidden: int, *, direct_link: bool = True, **more: Any) -> Parameters:
    layer = {"n_hidden": n_hidden, "activation": activation, "weight_init": weight_init, **more}
    return {**layer, "direct_link": direct_link, "fit_intercept": True}


def _corners(n_hidden: int, units_see: int = 3) -> Parameters:
    return _layer("relu", "pairs", n_hidden, units_see=units_see)


def _bumps(n_hidden: int) -> Parameters:
    return _layer("gaussian", "rows", n_hidden, direct_link=False)


def _steps(n_hidden: int, **more: Any) -> Parameters:
    return _layer("sigmoid", "pairs", n_hidden, **more)


def _smooth(n_hidden: int, **more: Any) -> Parameters:
    return _layer("sigmoid", "uniform", n_hidden, **more)


def _of_size(n: int, fewer: int) -> tuple[Parameters, ...]:
    return (_corners(n), _corners(fewer, 2), _bumps(n), _steps(n, units_see=3), _steps(n), _smooth(n))


_QUICK = (_corners(300), _bumps(300))
_THOROUGH = (
    *_of_size(1000, 1000),
    *(_corners(300), _bumps(300), _steps(300, units_see=3)),
    *(_steps(1000, units_see=3, weight_scale=scale) for scale in (0.5, 2.0)),
    *(_steps(1000, weight_scale=0.5), _smooth(1000, weight_scale=2.0)),
    _layer("gaussian", "pairs", 1000, direct_link=False),
)
# By task, since classes need more units. Of equals the first wins.
CANDIDATES: dict[str, dict[str, tuple[Parameters, ...]]] = {
    "regression": {"quick": _QUICK, "default": _of_size(500, 500), "thorough": _THOROUGH},
    "classification": {"quick": _QUICK, "default": _of_size(1000, 500), "thorough": _THOROUGH},
}


def candidates_of(candidates: Any, network: type, own: Sequence[str]) -> list[Parameters]:
    """What a user may pass as `candidates`: a name, or a list of parameters of `network`.

    `own` are the parameters of the search itself, which hold for all candidates.
    """
    if isinstance(candidates, str):
        lists = CANDIDATES["classification" if issubclass(network, ClassifierMixin) else "regression"]
        return [dict(c) for c in pick("candidates", candidates, lists, also=", or a list of dicts of parameters")]
    if isinstance(candidates, Mapping) or not isinstance(candidates, Sequence) or not len(candidates):
        raise ValueError(
            f"candidates={candidates!r} must be 'quick', 'default', 'thorough', or a list of at least one dict of "
            f"parameters of {network.__name__}."
        )
    known = {name: name for name in signature(network).parameters if name not in own}
    for number, parameters in enumerate(candidates):
        if not isinstance(parameters, Mapping):
            raise ValueError(f"candidates[{number}]={parameters!r} must be a dict of parameters of {network.__name__}.")
        for name in parameters:
            pick(f"parameter in candidates[{number}]", name, known)
    return [dict(parameters) for parameters in candidates]
