"""The golden fits: one model each, on one kind of rows, with every parameter given, since defaults may change."""

import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from golden.kinds import KINDS
from golden.rows import Rows, on_host, problem
from sklearn.pipeline import Pipeline

import ocrep
from ocrep import rules

LAYER: dict[str, Any] = {
    "n_hidden": 24,
    "activation": "sigmoid",
    "weight_init": "uniform",
    "weight_scale": 1.0,
    "input_scaling": "minmax",
    "units_see": None,
    "direct_link": False,
    "random_state": 0,
}
OUTPUT: dict[str, Any] = {
    "gamma": "ocrep",
    "fit_intercept": False,
    "store_folds": False,
    "solver": "auto",
    "calibrate": None,
    "forgetting": 1.0,
}
NETWORK: dict[str, Any] = {**LAYER, "max_hidden": 300, "metric": None, "metric_rounds": 2, **OUTPUT}
RIDGE: dict[str, Any] = {**OUTPUT, "gamma_per_target": False}
LABELS: dict[str, Any] = {"class_weight": None}
PARAMETERS: dict[str, dict[str, Any]] = {
    "PinvRegressor": NETWORK,
    "PinvClassifier": {**NETWORK, **LABELS},
    "TikhonovRegressor": RIDGE,
    "TikhonovClassifier": {**RIDGE, **LABELS},
    "RandomLayer": {**LAYER, "bias_range": None},
}


SEARCHED = ("gcv", "kfold", "mallows", "aic", "aicc", "bic", "evidence", "lcurve", "quasi_optimality")


@dataclass(frozen=True)
class Case:
    """One fit; `then` is the γ to go on to by `with_gamma`."""

    name: str
    estimator: str
    problem: str
    parameters: dict[str, Any] = field(default_factory=dict)
    kind: str = "array"
    weights: str | None = None
    then: Any = None
    layer: dict[str, Any] | None = None
    """The parameters of a `RandomLayer` in front, in a pipeline."""
    squared: bool = False
    """Whether γ comes from a Gram matrix of so large a κ that squaring shows."""

    @property
    def searched(self) -> bool:
        """Whether γ is the minimum of a criterion, found by a search to 10⁻⁶ of itself."""
        gamma = self.parameters.get("gamma", OUTPUT["gamma"]) if self.then is None else self.then
        return rules.resolve(gamma).name in SEARCHED

    @property
    def calibrated(self) -> bool:
        """Whether the answers need a calibration, which another γ does not have."""
        return self.parameters.get("calibrate") is not None


def make(name: str, parameters: dict[str, Any]) -> Any:
    """Make an estimator with all its parameters."""
    return getattr(ocrep, name)(**{**PARAMETERS[name], **parameters})


def run(case: Case, gamma: float | None = None) -> dict[str, np.ndarray]:
    """Fit a case, and give all that is compared; with `gamma`, also what the same fit answers under that γ."""
    given = problem(case.problem)
    model = make(case.estimator, case.parameters)
    if case.layer is not None:
        model = Pipeline([("layer", make("RandomLayer", case.layer)), ("output", model)])
    weight = None if case.weights is None else getattr(given, case.weights)
    classes = sorted(set(given.y.tolist())) if case.estimator.endswith("Classifier") else None
    with tempfile.TemporaryDirectory() as folder:
        model = KINDS[case.kind].fit(model, Rows(given.X, given.y, weight, classes, Path(folder)))
    model = model if case.then is None else model.with_gamma(case.then)
    new = KINDS[case.kind].new(given.new)
    found = {**_chosen(_output(model)), **_answers(model, new)}
    if gamma is not None and _output(model).gamma_ == gamma:
        found.update({f"{name} at γ": found[name] for name in ANSWERS if name in found})
    elif gamma is not None and not case.calibrated:
        found.update({f"{name} at γ": values for name, values in _answers(_under(model, gamma), new).items()})
    return {name: on_host(values) for name, values in found.items()}


# What depends on γ.
ANSWERS = ("coef", "intercept", "predictions", "deviations", "scores", "probabilities", "labels")


def _output(model: Any) -> Any:
    return model[-1] if isinstance(model, Pipeline) else model


def _under(model: Any, gamma: float) -> Any:
    """The same fit under another γ."""
    if isinstance(model, Pipeline):
        return Pipeline([model.steps[0], ("output", model[-1].with_gamma(gamma))])
    return model.with_gamma(gamma)


def _chosen(output: Any) -> dict[str, Any]:
    return {
        "gamma": output.gamma_,
        "sigma": output.spectrum_.singular_values,
        "rank": output.rank_,
        "kappa": output.condition_number_,
        "n_hidden": getattr(output, "n_hidden_", 0),
    }


def _answers(model: Any, new: Any) -> dict[str, Any]:
    output = _output(model)
    weights = output.output_coef_ if hasattr(output, "output_coef_") else output.coef_
    found = {"coef": weights, "intercept": output.intercept_}
    if not hasattr(output, "classes_"):
        found["predictions"], found["deviations"] = model.predict(new, return_std=True)
        return found
    found["labels"] = np.searchsorted(output.classes_, on_host(model.predict(new)))
    found["scores"] = model.decision_function(new)
    if output.calibrate is not None:
        found["probabilities"] = model.predict_proba(new)
    return found


def softsign(Z: Any) -> Any:
    """An activation of one's own, of sums and quotients only."""
    return Z / (1.0 + abs(Z))


# Every rule by name; all but the discrepancy principle, which must be told the noise.
_NAMES = (
    *("ocrep", "ocrep_cv", "none", "gcv", "loo", "kfold", "mallows", "aic", "aicc", "bic", "evidence", "lcurve"),
    *("quasi_optimality", "hoerl_kennard", "hoerl_kennard_baldwin", "hoerl_kennard_iterative", "thisted"),
    *("lawless_wang", "dwivedi_srivastava", "mcdonald_galarneau", "kibria", "kibria_gm", "kibria_median"),
    *("khalaf_shukur", "dorugade_kashid", "dorugade", "muniz_kibria_max_inverse", "muniz_kibria_max"),
    *("muniz_kibria_gm_inverse", "muniz_kibria_gm", "muniz_kibria_median_inverse", "muniz_shukur_max_inverse"),
    *("muniz_shukur_max", "muniz_shukur_gm_inverse", "muniz_shukur_gm", "muniz_shukur_median_inverse"),
)
_RULES = {
    **{name: name for name in _NAMES},
    "number": 0.25,
    "zero": 0.0,
    "Discrepancy(noise=0.35)": rules.Discrepancy(noise=0.35),
    "OCReP(floor=0.0)": rules.OCReP(floor=0.0),
    "OCReP(floor=0.2)": rules.OCReP(floor=0.2),
    "GCV(floor=0.0)": rules.GCV(floor=0.0),
    "KFold(5, seed 7)": rules.KFold(n_folds=5, seed=7),
    "KFold on elm": rules.KFold(grid="elm"),
    "OCRePCV(4, seed 2)": rules.OCRePCV(n_folds=4, seed=2),
    "LOO on a grid": rules.LOO(grid=(0.01, 0.1, 1.0, 10.0)),
}
_OF_NETWORKS = (
    *("ocrep", "ocrep_cv", "kfold", "loo", "gcv", "evidence", "lcurve", "hoerl_kennard", "number"),
    *("OCReP(floor=0.0)", "GCV(floor=0.0)", "KFold(5, seed 7)", "KFold on elm"),
)
_OF_CLASSIFIERS = {
    **{name: _RULES[name] for name in ("ocrep", "ocrep_cv", "kfold", "loo", "gcv", "number")},
    "KFold of errors": rules.KFold(scoring="error"),
}


def _of_rules() -> Iterator[Case]:
    for name, rule in _RULES.items():
        yield Case(f"rule {name}", "TikhonovRegressor", "own", {"gamma": rule, "fit_intercept": True})
    for name in _OF_NETWORKS:
        yield Case(f"network by {name}", "PinvRegressor", "numbers", {"gamma": _RULES[name]})
    for name, rule in _OF_CLASSIFIERS.items():
        yield Case(f"classes by {name}", "PinvClassifier", "three classes", {"gamma": rule})
    singular = {"n_hidden": 60, "weight_scale": 0.1}
    for name in ("ocrep", "ocrep_cv", "kfold", "gcv", "number"):
        yield Case(f"singular by {name}", "PinvRegressor", "numbers", {**singular, "gamma": _RULES[name]})
    for name in ("ocrep", "gcv", "number"):
        given = {"gamma": _RULES[name], "fit_intercept": True}
        yield Case(f"degenerate by {name}", "TikhonovRegressor", "degenerate", given)
        yield Case(f"few rows by {name}", "PinvRegressor", "few rows", given)


_LAYERS: dict[str, dict[str, Any]] = {
    **{f"activation {name}": {"activation": name} for name in ("tanh", "relu", "sin", "gaussian", "hardlimit")},
    "activation identity": {"activation": "identity", "n_hidden": 3},
    "activation of one's own": {"activation": softsign},
    "weights normal": {"weight_init": "normal"},
    "weights orthogonal": {"weight_init": "orthogonal"},
    "weights normal, scaled by 0.5": {"weight_init": "normal", "weight_scale": 0.5},
    "weights scaled by the root": {"weight_scale": "inverse_sqrt", "n_hidden": 8},
    "inputs between numbers": {"input_scaling": (-15.0, 5.0)},
    "inputs between lists": {"input_scaling": ([-1.0, -2.0, -15.0, 1.5], [1.0, 4.0, 5.0, 2.5])},
    "inputs as they are": {"input_scaling": None, "weight_scale": 0.2},
    "direct link": {"direct_link": True},
    "intercept": {"fit_intercept": True},
    "direct link and intercept": {"direct_link": True, "fit_intercept": True},
    "direct link, gaussian": {"direct_link": True, "activation": "gaussian", "weight_init": "normal"},
    "another seed": {"random_state": 12},
    "seven folds kept": {"store_folds": 7},
    **{f"solver {name}": {"solver": name, "n_hidden": 16, "weight_scale": 3.0} for name in ("auto", "gram", "qr")},
}
_AUTO: dict[str, dict[str, Any]] = {
    "gcv": {"gamma": "gcv"},
    "kfold, direct link": {"gamma": "kfold", "direct_link": True},
    "ocrep_cv, intercept": {"gamma": "ocrep_cv", "fit_intercept": True},
    "number": {"gamma": 0.01, "weight_init": "normal"},
}


def _of_layers() -> Iterator[Case]:
    for name, given in _LAYERS.items():
        yield Case(name, "PinvRegressor", "numbers", given)
    for name, given in _AUTO.items():
        auto = {"n_hidden": "auto", "max_hidden": 14, **given}
        yield Case(f"hidden size by {name}", "PinvRegressor", "numbers", auto)
    yield Case("hidden size of a classifier", "PinvClassifier", "two classes", {**auto, "gamma": "kfold"})
    yield Case("hidden size by Dask", "PinvRegressor", "numbers", {**auto, "gamma": "kfold"}, "dask array")
    yield Case("hidden size of files", "PinvRegressor", "numbers", {**auto, "gamma": "kfold"}, "parquet", "real")


def _of_targets() -> Iterator[Case]:
    both = {"direct_link": True, "fit_intercept": True}
    for weights in (None, "whole", "real"):
        yield Case(f"outputs, weights {weights}", "PinvRegressor", "outputs", both, weights=weights)
        yield Case(f"labels, weights {weights}", "PinvClassifier", "three classes", both, weights=weights)
        yield Case(f"loo, weights {weights}", "PinvRegressor", "numbers", {"gamma": "loo"}, weights=weights)
        yield Case(f"gcv, weights {weights}", "TikhonovRegressor", "own", {"gamma": "gcv"}, weights=weights)
    for name in ("two classes", "three classes"):
        label = 1 if name == "two classes" else "yes"
        for class_weight in ("balanced", {label: 3.0}, {label: 0.0} if label == "yes" else {label: 0.5}):
            given = {"class_weight": class_weight, "gamma": "kfold"}
            yield Case(f"{name}, class weights {class_weight}", "PinvClassifier", name, given, weights="real")
        calibrated = {"calibrate": "loo", "gamma": "ocrep_cv"}
        yield Case(f"{name}, calibrated", "PinvClassifier", name, calibrated)
        yield Case(f"{name}, calibrated, weights", "PinvClassifier", name, {**calibrated, **both}, weights="whole")
    calibrated = {"gamma": "ocrep", "fit_intercept": True, "class_weight": "balanced", "calibrate": "loo"}
    yield Case("own labels", "TikhonovClassifier", "own labels", {"gamma": "gcv", "fit_intercept": True})
    yield Case("own labels, calibrated", "TikhonovClassifier", "own labels", calibrated)
    yield Case("outputs by kfold", "PinvRegressor", "outputs", {"gamma": "kfold", "fit_intercept": True})
    kept = {"store_folds": True, "gamma": "ocrep"}
    for then in ("kfold", "ocrep_cv", "gcv", 0.01):
        yield Case(f"from ocrep to {then}", "PinvRegressor", "numbers", kept, then=then)
    yield Case("from kfold to ocrep", "TikhonovRegressor", "own", {"gamma": "kfold"}, then="ocrep")
    yield Case("five folds kept", "PinvRegressor", "numbers", {"store_folds": 5}, then=rules.KFold(n_folds=5))
    yield Case("classes to ocrep_cv", "PinvClassifier", "two classes", kept, then="ocrep_cv")
    layer = {"weight_init": "normal", "direct_link": True}
    for kind in ("array", "float32", "pandas", "csr"):
        yield Case(f"pipeline, {kind}", "TikhonovRegressor", "numbers", {"gamma": "gcv"}, kind, layer=layer)
    yield Case("pipeline of labels", "TikhonovClassifier", "three classes", {"gamma": "kfold"}, layer=layer)


_INSIDE = ("columns first", "float32", "list", "pandas", "csr", "csc", "strict", "memmap", "hdf5")
_SCANNED = ("parquet", "feather", "csv", "generator", "function", "polars", "checkpoint")
_GROWING = ("partial_fit", "dask array", "dask frame")
# What needs all rows again is not for rows that come once.
_ONCE = ("generator", "partial_fit")


def _of_kinds() -> Iterator[Case]:
    for kind in (*_INSIDE, *_SCANNED, *_GROWING):
        yield Case(kind, "PinvRegressor", "numbers", {}, kind)
        weighted = {"gamma": "kfold", "fit_intercept": True, "direct_link": True, "input_scaling": (-15.0, 5.0)}
        yield Case(f"{kind}, by kfold, weights", "PinvRegressor", "numbers", weighted, kind, "whole")
        yield Case(f"{kind}, own features", "TikhonovRegressor", "own", {"gamma": "gcv", "fit_intercept": True}, kind)
        name = "two classes" if kind == "strict" else "three classes"
        classes = {"fit_intercept": True, "class_weight": None if kind in _ONCE else "balanced"}
        yield Case(f"{kind}, classes", "PinvClassifier", name, classes, kind, "real")
        yield Case(f"{kind}, outputs", "PinvRegressor", "outputs", {"n_hidden": 12}, kind)
    for kind in ("parquet", "function", "memmap"):
        again = {"gamma": "loo", "calibrate": "loo", "fit_intercept": True}
        yield Case(f"{kind}, read again", "PinvClassifier", "two classes", again, kind)
    yield Case(
        "generator, classes with weights", "PinvClassifier", "two classes", {"class_weight": {1: 2.0}}, "generator"
    )


_TALL = (
    "tall",
    "tall, proved at its edge",
    "tall, not proved at its edge",
    "tall, close fit",
    "tall, first block leads",
    "tall, first block unlike",
    "tall, beyond refinement",
)


def _of_routes() -> Iterator[Case]:
    for name in _TALL:
        squared = name.endswith(", proved at its edge")
        yield Case(name, "TikhonovRegressor", name, squared=squared)
        centred = {"gamma": 0.5, "fit_intercept": True}
        weighted = f"{name}, intercept, weights"
        yield Case(weighted, "TikhonovRegressor", name, centred, weights="real", squared=squared)
    for solver in ("gram", "qr"):
        yield Case(f"tall by {solver}", "TikhonovRegressor", "tall", {"solver": solver, "fit_intercept": True})
    yield Case("tall by ocrep_cv", "TikhonovRegressor", "tall", {"gamma": "ocrep_cv", "fit_intercept": True})
    for kind in ("memmap", "function", "generator", "checkpoint", "resumed", "dask array", "partial_fit"):
        yield Case(f"tall, {kind}", "TikhonovRegressor", "tall", {"fit_intercept": True}, kind)
    for name in ("close fit", "first block leads", "first block unlike", "beyond refinement"):
        yield Case(f"tall, {name}, resumed", "TikhonovRegressor", f"tall, {name}", {}, "resumed", "real")
    yield Case("tall by ocrep_cv, resumed", "TikhonovRegressor", "tall", {"gamma": "ocrep_cv"}, "resumed")
    for name in ("not proved at its edge", "first block leads"):
        yield Case(f"tall, {name}, dask array", "TikhonovRegressor", f"tall, {name}", {}, "dask array")
    steep = {"solver": "gram", "n_hidden": 16, "weight_scale": 3.0, "fit_intercept": True}
    for kind in ("strict", "dask frame", "function", "float32"):
        yield Case(f"{kind} by gram", "PinvRegressor", "outputs", steep, kind, "real")
    yield Case("many rows, float32", "PinvRegressor", "many rows", {"fit_intercept": True}, "float32")
    yield Case("many rows", "PinvRegressor", "many rows", {"fit_intercept": True})
    yield Case("many rows, steep units", "PinvRegressor", "many rows", {"weight_scale": 4.0}, weights="whole")
    yield Case("many rows, many units", "PinvRegressor", "many rows", {"weight_scale": 6.0, "n_hidden": 50})
    yield Case("many rows, flat units", "PinvRegressor", "many rows", {"weight_scale": 0.1})
    yield Case("many inputs", "PinvRegressor", "sparse", {"input_scaling": None, "weight_scale": 0.5})
    radial = {"activation": "gaussian", "input_scaling": None, "weight_scale": 0.05}
    yield Case("many inputs, gaussian", "PinvRegressor", "sparse", radial, squared=True)
    centred = {"gamma": "kfold", "fit_intercept": True, "weight_scale": 0.05}
    yield Case("many inputs, minmax", "PinvRegressor", "sparse", centred)


def unpacked(path: Path) -> dict[str, dict[str, np.ndarray]]:
    """Read the recorded answers of each case."""
    with np.load(path) as file:
        layout = json.loads(str(file["layout"]))
        vectors = {name: file[name] for name in layout}
    recorded: dict[str, dict[str, np.ndarray]] = {}
    for name, parts in layout.items():
        ends = np.cumsum([math.prod(shape) for _, _, shape in parts])
        pieces = np.split(vectors[name], ends[:-1])
        recorded[name] = {
            key: piece.reshape(shape).astype(dtype) for (key, dtype, shape), piece in zip(parts, pieces, strict=True)
        }
    return recorded


CASES = {case.name: case for case in (*_of_rules(), *_of_layers(), *_of_targets(), *_of_kinds(), *_of_routes())}
