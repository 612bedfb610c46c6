"""`LayerChoice`: which hidden layer a search has chosen, and by how much."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

Parameters = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """The best of several candidates by their error on rows held out in cross-validation, and the next best."""

    measure: str
    """"RMSE" or "log-loss"."""
    n_candidates: int
    best: Parameters
    error: float
    next_best: Parameters | None
    """None if all others failed."""
    next_error: float | None
    """Its error, perhaps on fewer rows."""

    @classmethod
    def of(cls, network: Any) -> LayerChoice | None:
        """What a fitted network says; None if its layer was not chosen among candidates."""
        results = getattr(network, "cv_results_", None)
        if results is None:
            return None
        labels = hasattr(network, "classes_")
        scores = np.asarray(results["mean_test_score"])
        errors = -scores if labels else np.sqrt(-scores)
        order = np.argsort(results["rank_test_score"], kind="stable")
        first, *others = [int(i) for i in order if np.isfinite(scores[i])]
        following = others[0] if others else None
        return cls(
            "log-loss" if labels else "RMSE",
            len(scores),
            results["params"][first],
            float(errors[first]),
            None if following is None else results["params"][following],
            None if following is None else float(errors[following]),
        )

    def sentences(self) -> list[tuple[str, str]]:
        """The choice as names and values."""
        told = [("layer", f"{layer(self.best)}: the best of {self.n_candidates}, {self.measure} {self.error:.4g}")]
        if self.next_best is not None and self.next_error is not None:
            percent = 100 * (self.next_error / self.error - 1) if self.error > 0 else 0.0
            more = f", {percent:.{0 if percent >= 10 else 1}f} % more" if percent else ""
            told.append(("next best", f"{layer(self.next_best)}: {self.measure} {self.next_error:.4g}{more}"))
        return told

    def to_json(self) -> dict[str, Any]:
        """The choice as plain data."""
        return asdict(self)


def layer(parameters: Parameters) -> str:
    """A layer in a few words."""
    words = {"weight_init": "{}", "units_see": "each sees {} inputs", "weight_scale": "scale {}"}
    told = [form.format(parameters[name]) for name, form in words.items() if parameters.get(name) is not None]
    units = " ".join(str(parameters[name]) for name in ("n_hidden", "activation") if name in parameters)
    return f"{units} units" + (f" ({', '.join(told)})" if told else "")
