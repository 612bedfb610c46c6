"""Which layers the default stack has, judged on training rows alone: their errors, and fit times over CatBoost's.

    python benchmarks/tabular_data.py               # once: collect the data sets in benchmarks/tabular.npz
    python benchmarks/nested.py --task regression "default" "without cones" "fewer units"
    python benchmarks/nested.py --task regression   # what is in results/nested.csv

The training rows of each split of `tabular.py` are divided 70/30 once more; its test rows are never looked at. A list
of layers is named by what it changes in the default of its time, so several changes are joined by " + ". Errors are
means over sets of log(error / error of "default"); for labels also of the log-loss.
"""

import argparse
import os
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import fits
import numpy as np
import pandas as pd
import tabular_data
from tabular_methods import METHODS, REFERENCE, installed

from ocrep import PinvClassifierCV, PinvRegressorCV
from ocrep.estimators.search import _layer, members_of

RESULTS = fits.FOLDER / "nested.csv"
COLUMNS = ["task", "list", "set", "split", "error", "log_loss", "fit_seconds", "reference_fit_seconds"]
Layers = list[dict[str, Any]]


def kind_of(layer: dict[str, Any]) -> str:
    """A short name, such as "cones diagonal"."""
    names = {"relu": "ramps", "gaussian": "bumps", "laplace": "cones", "sigmoid": "steps"}
    kind = layer.get("weight_init") if layer.get("weight_init") == "trees" else names[layer["activation"]]
    return f"{kind} {layer['metric']}" if layer.get("metric") else str(kind)


def without(kind: str, layers: Layers) -> Layers:
    """All layers but those of a kind."""
    return [layer for layer in layers if kind_of(layer) != kind]


def units(share: float, layers: Layers, only: str = "") -> Layers:
    """The layers, or those of one kind, with so many times their units."""
    return [
        {**layer, "n_hidden": 10 * round(share * layer["n_hidden"] / 10)} if only in ("", kind_of(layer)) else layer
        for layer in layers
    ]


def rounds(number: int, layers: Layers) -> Layers:
    """Diagonal metrics of so many rounds."""
    return [{**layer, "metric_rounds": number} if layer.get("metric") == "diagonal" else layer for layer in layers]


def with_one(kind: str, layers: Layers, **more: Any) -> Layers:
    """One layer more."""
    n = layers[0]["n_hidden"]
    return [*layers, {**_layer(kind, n, **more), "direct_link": True, "input_scaling": "squash"}]


KINDS = ["ramps", "bumps", "steps", "cones", "trees"]
CHANGES: dict[str, Callable[[Layers], Layers]] = {
    "default": list,
    **{f"without {kind}": partial(without, kind) for kind in KINDS},
    **{
        f"without {kind} {metric}": partial(without, f"{kind} {metric}")
        for kind in KINDS[:4]
        for metric in ("diagonal", "full")
    },
    **{f"units × {share}": partial(units, share) for share in (0.6, 0.7, 0.8, 0.9, 1.5)},
    **{f"leaves × {share}": partial(units, share, only="trees") for share in (0.6, 0.8, 1.5)},
    "one round": partial(rounds, 1),
    "three rounds": partial(rounds, 3),
    **{f"with {kind} diagonal": partial(with_one, kind, metric="diagonal") for kind in ("ramps", "bumps", "steps")},
    **{f"with {kind} full": partial(with_one, kind, metric="full", metric_rounds=1) for kind in ("cones", "steps")},
    "with random": partial(with_one, "random"),
    "with cones": partial(with_one, "cones"),
}


def layers_of(name: str, task: str, n_rows: int, n_inputs: int, n_outputs: int) -> Layers:
    """The default with the changes that are named, joined by " + "."""
    layers = members_of("default", task, n_rows, n_inputs, n_outputs)
    for change in name.split(" + "):
        layers = CHANGES[change](layers)
    return layers


def inner(name: str, seed: int) -> tabular_data.Split:
    """The training rows of a split, divided once more."""
    data = tabular_data.load(name, seed)
    return tabular_data.split(data.X, data.y, tabular_data.task_of(name), 10 + seed)


def measure(task: str, name: str, seed: int, lists: list[str]) -> pd.DataFrame:
    """Errors and processor seconds of some lists on one inner split, and CatBoost's seconds beside them."""
    data = inner(name, seed)
    n_classes = len(np.unique(data.y))
    n_outputs = n_classes if task == "classification" and n_classes > 2 else 1
    search = PinvClassifierCV if task == "classification" else PinvRegressorCV
    reference = METHODS[task][REFERENCE](seed)
    _, seconds = fits.timed(lambda: reference.fit(data.X, data.y))
    records = []
    for chosen in lists:
        layers = layers_of(chosen, task, len(data.y), data.X.shape[1], n_outputs)
        start = process_time()
        model = search(layers, random_state=seed).fit(data.X, data.y)
        own = process_time() - start
        key = {"task": task, "list": chosen, "set": name, "split": seed}
        judged = fits.judge(task, model, data)
        records.append({**key, **judged, "fit_seconds": own, "reference_fit_seconds": seconds})
    return pd.DataFrame(records, columns=COLUMNS)


def add(new: pd.DataFrame) -> None:
    """Put rows in place of those on the same list and split."""
    old = [pd.read_csv(RESULTS)] if RESULTS.exists() else []
    rows = pd.concat([*old, new]).drop_duplicates(COLUMNS[:4], keep="last").sort_values(COLUMNS[:4])
    rows.to_csv(RESULTS, index=False, float_format="%.6g")


def table(task: str) -> pd.DataFrame:
    """Each list beside the default, over the sets."""
    frame = pd.read_csv(RESULTS)
    frame = frame[frame.task == task]
    # Half a wrong row of a hundred: the logarithm of no error would be infinite.
    frame["log"], frame["log of log-loss"] = np.log(frame.error + 5e-3), np.log(frame.log_loss)
    frame["time"] = frame.fit_seconds / frame.reference_fit_seconds
    sets = frame.groupby(["list", "set"])[["error", "log", "log of log-loss", "time"]].mean()
    base = sets.loc["default"]
    rows = {}
    for name, own in sets.groupby("list"):
        own = own.droplevel(0)
        differ = own - base.loc[own.index]
        rows[name] = {
            "sets": len(own),
            "mean error": own.error.mean(),
            "error, %": 100 * differ["log"].mean(),
            "± %": 100 * differ["log"].std() / np.sqrt(len(own)),
            "log-loss, %": 100 * differ["log of log-loss"].mean(),
            "median time": own.time.median(),
            "time of default": base.time.loc[own.index].median(),
        }
    return pd.DataFrame(rows).T.sort_values("error, %")


def main() -> None:
    """Read the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("lists", nargs="*", metavar="LIST")
    parser.add_argument("--task", choices=list(tabular_data.NAMES), default="regression")
    args = parser.parse_args()
    if args.lists and not installed(REFERENCE):
        parser.error(f"times are ratios to those of {REFERENCE}: install it")
    for name in tabular_data.NAMES[args.task] if args.lists else []:
        for seed in tabular_data.SPLITS:
            add(measure(args.task, name, seed, args.lists))
    print(table(args.task).round(3).to_string())


if __name__ == "__main__":
    main()
