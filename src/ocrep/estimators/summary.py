"""`summary()`: a fitted model on one screen, as statsmodels shows its fits."""

from __future__ import annotations

import html
import math
import textwrap
from abc import ABC
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ocrep._documentation import Documented
from ocrep._layers.random_layer import Estimator
from ocrep._linalg.arrays import EPS, to_host
from ocrep._linalg.spectrum import Spectrum
from ocrep.rules import NotApplicable, resolve
from ocrep.rules.cross_validation import cv_error_of

WIDTH = 79
_GAP = "   "
_HALF = (WIDTH - len(_GAP)) // 2

Lines = dict[str, str]


@dataclass(frozen=True, slots=True, repr=False)
class Summary:
    """A fitted model in words and numbers; printed, it fits one screen.

    Parameters
    ----------
    title : str
        The kind of model.
    sections : dict of str to dict
        Names and values as text, by section: "data", "network", "regularization", "error", "members" of a stack, and
        first the "answers" of a table model.
    warnings : tuple of str
        What deserves attention.
    """

    title: str
    sections: dict[str, Lines]
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        left, right = (
            [*self._lines(*names)] for names in (("data", "network"), ("regularization", "members", "error"))
        )
        halves = [_GAP.join(pair).rstrip() for pair in _zipped(left, right)]
        long = [line for line in (*left, *right) if len(line) > _HALF]
        notes = [
            textwrap.fill(f"[{number}] {warning}", WIDTH, subsequent_indent="    ")
            for number, warning in enumerate(self.warnings, 1)
        ]
        answers = [
            textwrap.fill(f"{question} {answer}", WIDTH, subsequent_indent="    ")
            for question, answer in self.sections.get("answers", {}).items()
        ]
        bar = "=" * WIDTH
        above = [*answers, "-" * WIDTH] if answers else []
        below = ["Warnings:", *notes] if notes else []
        return "\n".join([self.title.center(WIDTH).rstrip(), bar, *above, *halves, *long, bar, *below])

    __repr__ = __str__

    def _lines(self, *names: str) -> Iterator[str]:
        for name in names:
            for label, value in self.sections.get(name, {}).items():
                space = _HALF - len(label) - 1 - len(value)
                yield f"{label}:{' ' * max(1, space)}{value}"

    def _repr_html_(self) -> str:
        rows = [
            f"<tr><th style='text-align: left'>{html.escape(label)}</th><td>{html.escape(value)}</td></tr>"
            for lines in self.sections.values()
            for label, value in lines.items()
        ]
        notes = "".join(f"<li>{html.escape(warning)}</li>" for warning in self.warnings)
        title = f"<caption><b>{html.escape(self.title)}</b></caption>"
        return f"<table>{title}{''.join(rows)}</table>" + (f"<p>Warnings:</p><ol>{notes}</ol>" if notes else "")


class Model(Documented, Estimator, ABC):
    """The base of all estimators that predict, but for those of tables: they have a summary."""

    def summary(self) -> Summary:
        """Show the fitted model on one screen: data, network, rule and γ, conditioning, error, warnings.

        Returns
        -------
        Summary
            Printed, a table of text; `sections` and `warnings` hold the same as values.

        Examples
        --------
        >>> from ocrep import PinvRegressor
        >>> from ocrep.datasets import load
        >>> model = PinvRegressor(50, random_state=0).fit(*load("machine_cpu", return_X_y=True))
        >>> model.summary().sections["data"]
        {'Rows': '209', 'Inputs': '6', 'Targets': '1'}
        """
        check_is_fitted(self)
        return summary_of(self)


def summary_of(model: Any) -> Summary:
    """The summary of a fitted model; a method of the literature shows the network inside it, if it has one."""
    network = getattr(model, "network_", model)
    if hasattr(network, "weights_"):
        return Summary(type(model).__name__, {"data": _data(network), **_stack(network)})
    sections = {"data": _data(network), "network": _network(network)}
    spectrum: Spectrum | None = getattr(network, "spectrum_", None)
    if spectrum is None:
        return Summary(type(model).__name__, sections)
    sections |= {"regularization": _regularization(network, spectrum), "error": _errors(network, spectrum)}
    return Summary(type(model).__name__, sections, tuple(_warnings(network, spectrum)))


def _data(model: Any) -> Lines:
    spectrum = getattr(model, "spectrum_", None)
    lines = {} if spectrum is None else {"Rows": f"{spectrum.n_rows:,}"}
    if spectrum is not None and not math.isclose(spectrum.weight_sum, spectrum.n_rows):
        lines["Sum of weights"] = f"{spectrum.weight_sum:.6g}"
    lines["Inputs"] = f"{model.n_features_in_:,}"
    classes = getattr(model, "classes_", None)
    if classes is not None:
        return lines | {"Classes": f"{len(classes):,}"}
    weights = model.output_coef_ if hasattr(model, "output_coef_") else model.coef_
    return lines | {"Targets": f"{len(np.atleast_2d(to_host(weights))):,}"}


def _stack(model: Any) -> dict[str, Lines]:
    """The members of a stack with their weights, and how good it is on held-out rows."""
    numbers = np.argsort(-model.weights_, kind="stable")[: np.count_nonzero(model.weights_)]
    network = {"Networks": f"{len(numbers)} of {len(model.weights_)}", "Hidden units": f"{model.n_hidden_:,}"}
    shares: dict[str, float] = {}
    for number in numbers:
        own = model.cv_results_["params"][number]
        kind = own.get("weight_init", "uniform")
        name = "leaves" if kind == "trees" else f"{own.get('activation', 'sigmoid')} {kind}"
        metric = f", {own['metric']}" if own.get("metric") else ""
        name = f"{own.get('n_hidden', 500)} {name}{metric}"
        shares[name] = shares.get(name, 0.0) + model.weights_[number]  # members may differ in what is not shown
    members = {name: f"weight {share:.2f}" for name, share in shares.items()}
    held_out = -model.ensemble_score_
    error = {"CV log-loss": f"{held_out:.4g}"}
    if not hasattr(model, "classes_"):
        error = {"CV RMSE": f"{math.sqrt(held_out):.4g}"}
    return {"network": network, "members": members, "error": error}


def _network(model: Any) -> Lines:
    layer, lines = getattr(model, "layer_", None), {}
    if hasattr(model, "n_hidden_"):
        lines["Hidden units"] = f"{model.n_hidden_:,}"
    if layer is not None:
        activation = layer.activation
        if layer.weight_init == "trees":
            lines["Units"] = "leaves of trees"
        else:
            lines["Activation"] = activation if isinstance(activation, str) else getattr(activation, "__name__", "own")
            lines["Weights"] = f"{layer.weight_init}, scale {layer.weight_scale}"
        lines["Direct link"] = "yes" if layer.direct_link else "no"
    if hasattr(model, "cv_results_"):
        lines["Chosen among"] = f"{len(model.cv_results_['params'])} layers"
    return lines | ({"Intercept": "yes" if model.fit_intercept else "no"} if hasattr(model, "fit_intercept") else {})


def _regularization(model: Any, spectrum: Spectrum) -> Lines:
    n_columns = spectrum.right.n_features
    return {
        "Rule": str(model.choice_.rule),
        "γ": _each(model.gamma_),
        "Condition number": f"{model.condition_number_:.3g}",
        "with γ": _each(model.regularized_condition_number_),
        "Rank": f"{model.rank_:,} of {n_columns:,}",
        "Effective parameters": _each(_dof(model, spectrum)),
    }


def _errors(model: Any, spectrum: Spectrum) -> Lines:
    """RMSE in training and on held-out rows; of the codes, if the targets are labels."""
    of_what = "RMSE of ±1 codes" if hasattr(model, "classes_") else "RMSE"
    n_targets = spectrum.UtT.shape[1]
    total = spectrum.weight_sum * n_targets
    lines = {f"Training {of_what}": f"{math.sqrt(_rss(model, spectrum) / total):.4g}"}
    held_out = _held_out(model)
    if held_out is not None:
        lines[f"CV {of_what}"] = f"{math.sqrt(held_out):.4g}"
        squares = float((spectrum.UtT**2).sum() + spectrum.residual.sum())
        if spectrum.intercept_fitted and squares > 0.0 and not hasattr(model, "classes_"):
            lines["CV R²"] = f"{1.0 - held_out * total / squares:.3f}"
    return lines


def _held_out(model: Any) -> float | None:
    """The mean squared error on held-out rows: what the rule knows already, or by the folds that were stored."""
    known = model.choice_.held_out_error
    if known is not None:
        return float(np.mean(known))
    if model.folds_ is None:
        return None
    try:
        return cv_error_of(resolve(model.gamma), model.folds_, model.gamma_)
    except (NotApplicable, ValueError):  # too few rows in a fold
        return None


def _rss(model: Any, spectrum: Spectrum) -> float:
    if isinstance(model.gamma_, np.ndarray):
        return float(np.trace(to_host(spectrum.rss_by_target(model.gamma_))))
    return float(spectrum.rss(model.gamma_))


def _dof(model: Any, spectrum: Spectrum) -> Any:
    return (
        to_host(spectrum.dof(model.gamma_))
        if isinstance(model.gamma_, np.ndarray)
        else float(spectrum.dof(model.gamma_))
    )


def _warnings(model: Any, spectrum: Spectrum) -> Iterator[str]:
    n_columns, n_rows = spectrum.right.n_features, spectrum.n_rows
    choice = model.choice_
    if choice.advice:
        yield choice.advice
    if np.any(choice.floored):
        yield "The precision floor set γ, not the rule: the rule asks for less than measured inputs can resolve."
    if model.rank_ < min(n_columns, n_rows - int(spectrum.intercept_fitted)):
        yield f"H is numerically singular: its rank is {model.rank_:,}, and it has {n_columns:,} columns."
    elif model.condition_number_ >= 1.0 / math.sqrt(EPS):
        yield f"The condition number without γ is {model.condition_number_:.1e}: small errors in the inputs may count."
    used = float(np.max(_dof(model, spectrum)))
    if used >= 0.5 * n_rows:
        yield f"The fit uses {used:.3g} effective parameters for {n_rows:,} rows, so its training error is no measure."


def _each(value: Any) -> str:
    """A number, or the range of those of several targets."""
    if not isinstance(value, np.ndarray):
        return f"{value:.3g}"
    return f"{value.min():.3g} to {value.max():.3g}"


def _zipped(left: list[str], right: list[str]) -> Iterator[tuple[str, str]]:
    """Pairs of lines side by side, without those that are too long for that."""
    columns = [[line for line in side if len(line) <= _HALF] for side in (left, right)]
    for number in range(max(map(len, columns), default=0)):
        one, other = (side[number] if number < len(side) else "" for side in columns)
        yield one.ljust(_HALF), other
