"""The hidden layers that `PinvRegressorCV` and `PinvClassifierCV` choose among, and the check of a user's own list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

from ocrep._errors import pick

Parameters = dict[str, Any]


def _layer(activation: str, weight_init: str, n_hidden: int, *, direct_link: bool = True, **more: Any) -> Parameters:
    layer = {"n_hidden": n_hidden, "activation": activation, "weight_init": weight_init, **more}
    return {**layer, "direct_link": direct_link, "fit_intercept": True}


def _lists() -> dict[str, tuple[Parameters, ...]]:
    """The named lists; each begins with its best single layers, and of equals the first wins."""

    def corners(n: int) -> Parameters:
        return _layer("relu", "pairs", n, units_see=3)

    def bumps(n: int) -> Parameters:
        return _layer("gaussian", "pairs", n, direct_link=False)

    def steps(n: int, **more: Any) -> Parameters:
        return _layer("sigmoid", "pairs", n, **more)

    def smooth(n: int, **more: Any) -> Parameters:
        return _layer("sigmoid", "uniform", n, **more)

    some = (corners(500), bumps(500), steps(500, units_see=3), steps(500), smooth(500))
    large = (corners(1000), bumps(1000), steps(1000, units_see=3), steps(1000), smooth(1000))
    more = (
        _layer("gaussian", "pairs", 1000, units_see=3),
        steps(1000, units_see=2, weight_scale=2.0),
        smooth(1000, weight_scale=2.0),
    )
    small = (corners(300), bumps(300), steps(300, units_see=3))
    return {"quick": small[:2], "default": some, "thorough": (*large, *more, *small)}


CANDIDATES = _lists()


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
