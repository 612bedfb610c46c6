"""A ridge head on random features: R² of the default beside `RidgeCV`, on eight feature problems.

Run as `python benchmarks/head.py`; the table is in RESULTS.md. Features: 300 random Fourier features (`RBFSampler`) or
300 of Nyström's method (`Nystroem`) of the paper's four regression sets, standardized first, with the median heuristic
for the width of the kernel (OCREP_DATA names the folder of Delta Ailerons). 20 splits 70/30; `RidgeCV` tries 25 alphas
from 10⁻⁶ to 10⁶.
"""

from collections.abc import Iterator

import numpy as np
from side_by_side import machine, medians
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import RidgeCV
from sklearn.metrics import pairwise_distances, r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from ocrep import TikhonovRegressor
from ocrep.datasets import load

SETS = ("abalone", "machine_cpu", "delta_ailerons", "housing")
KINDS = {"Fourier": RBFSampler, "Nyström": Nystroem}
ALPHAS = np.logspace(-6, 6, 25)
HEADS = {
    "RidgeCV": lambda: RidgeCV(ALPHAS),
    "default": TikhonovRegressor,
    "loo": lambda: TikhonovRegressor("loo"),
    "gcv": lambda: TikhonovRegressor("gcv"),
}
SPLITS = range(20)


def problems(name: str, kind: str) -> Iterator[list[np.ndarray]]:
    """Features and targets of training and test rows, for each split."""
    X, y = load(name, return_X_y=True)
    for seed in SPLITS:
        X_train, X_test, y_train, y_test = train_test_split(np.asarray(X), y, test_size=0.3, random_state=seed)
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
        distances = pairwise_distances(X_train[:1000], metric="sqeuclidean")
        width = 1.0 / np.median(distances[distances > 0])
        n_components = min(300, len(X_train))
        features = KINDS[kind](gamma=width, n_components=n_components, random_state=seed).fit(X_train)
        yield [features.transform(X_train), features.transform(X_test), y_train, y_test]


def main() -> None:
    print(machine())
    print("\n| features | set | " + " | ".join(HEADS) + " |\n|---|---|" + "---|" * len(HEADS))
    means = []
    for kind in KINDS:
        for name in SETS:
            scores: dict[str, list[float]] = {head: [] for head in HEADS}
            for H, H_test, y, y_test in problems(name, kind):
                for head, make in HEADS.items():
                    scores[head].append(r2_score(y_test, make().fit(H, y).predict(H_test)))
            means.append([np.mean(values) for values in scores.values()])
            print(f"| {kind} | {name} | " + " | ".join(f"{mean:.4f}" for mean in means[-1]) + " |", flush=True)
    print("| | mean | " + " | ".join(f"{mean:.4f}" for mean in np.mean(means, axis=0)) + " |")
    H, _, y, _ = next(problems("delta_ailerons", "Fourier"))
    seconds = medians({head: lambda make=make: make().fit(H, y) for head, make in HEADS.items()}, rounds=5)
    ratios = ", ".join(f"{head} {seconds[head] / seconds['RidgeCV']:.3f}" for head in HEADS if head != "RidgeCV")
    print(f"\nTime over RidgeCV's, delta_ailerons, {H.shape[0]} × {H.shape[1]}: {ratios}")


if __name__ == "__main__":
    main()
