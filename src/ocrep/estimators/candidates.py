"""The hidden layers that `PinvRegressorCV` and `PinvClassifierCV` choose among, and the check of a user's own list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

from ocrep._errors import pick

Parameters = dict[str, Any]


def _layer(weight_init: str, n_hidden: int, weight_scale: float = 1.0) -> Parameters:
    layer = {"weight_init": weight_init, "n_hidden": n_hidden, "weight_scale": weight_scale}
    return {**layer, "direct_link": True, "fit_intercept": True}


_UNIFORM, _PAIRS = _layer("uniform", 300), _layer("pairs", 300)
# In the order of their cost: the first of equals wins.
CANDIDATES: dict[str, tuple[Parameters, ...]] = {
    "quick": (_UNIFORM, _PAIRS),
    "default": (_UNIFORM, _PAIRS, _layer("pairs", 1000), _layer("uniform", 1000, 2.0), _layer("pairs", 1000, 2.0)),
    "thorough": (
        *(_layer("uniform", 300, scale) for scale in (0.5, 1.0, 2.0)),
        *(_layer("pairs", 300, scale) for scale in (0.5, 1.0, 2.0)),
        *(_layer("uniform", 1000, scale) for scale in (0.5, 1.0, 2.0)),
        *(_layer("pairs", 1000, scale) for scale in (0.5, 1.0, 2.0)),
    ),
}


def candidates_of(candidates: Any, network: type, own: Sequence[str]) -> list[Parameters]:
    """What a user may pass as `candidates`: a name, or a list of parameters of `network`.

    `own` are the parameters of the search itself, which hold for all candidates.
    """
    if isinstance(candidates, str):
        return [dict(c) for c in pick("candidates", candidates, CANDIDATES, also=", or a list of dicts of parameters")]
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
