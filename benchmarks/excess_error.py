"""How much error each rule for γ gives away: test error over that of the best γ in hindsight, by data set.

`OCREP_DATA=folder python benchmarks/excess_error.py`: eight splits 70/30 of each data set at three or four
sizes, in the paper's network (no direct link, no intercept). Excess in percent of the RMSE for regression, in
percentage points for classification; the last row is the mean of log₁₀ μ(H^reg). `benchmarks/RESULTS.md` keeps
the last recorded run.
"""

from collections import defaultdict

import numpy as np
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from ocrep import PinvClassifier, PinvRegressor, rules
from ocrep.analysis.evaluator import Evaluator
from ocrep.datasets import load

SIZES = {
    "abalone": (50, 100, 300),
    "delta_ailerons": (50, 100, 300),
    "housing": (50, 100, 200, 300),
    "machine_cpu": (25, 50, 100, 146),
    "diabetes": (50, 100, 300),
    "iris": (25, 50, 100, 200),
    "wine": (25, 50, 100),
    "segment": (100, 200, 500),
}
RULES = {
    "ocrep": rules.OCReP(),
    "ocrep, floor=0.0": rules.OCReP(floor=0.0),
    "ocrep_cv": rules.OCRePCV(),
    "kfold": rules.KFold(),
    "gcv": rules.GCV(),
    "evidence": rules.MarginalLikelihood(),
}
REGRESSION = ("abalone", "delta_ailerons", "housing", "machine_cpu")
N_SPLITS = 8
IN_HINDSIGHT = np.logspace(-12, 2, 57)


def excess(name: str, n_hidden: int, seed: int) -> tuple[dict[str, float], dict[str, float]]:
    """The excess error and log₁₀ μ(H^reg) of each rule on one split."""
    data = load(name)
    estimator = PinvRegressor if data.task == "regression" else PinvClassifier
    X, X_test, y, y_test = train_test_split(data.data, data.target, test_size=0.3, random_state=seed)
    plain = {"gamma": "none", "direct_link": False, "fit_intercept": False}
    model = estimator(n_hidden, **plain, store_folds=True, random_state=seed).fit(X, y)
    network = Evaluator.of(model, (X, y), test=(X_test, y_test))
    best = network.test_errors(network.spectrum.largest**2 * IN_HINDSIGHT).min()
    gammas = {label: network.choose(rule).gamma for label, rule in RULES.items()}
    errors = dict(zip(gammas, network.test_errors(np.array(list(gammas.values()))), strict=True))
    lost = {k: 100 * (e / best - 1 if data.task == "regression" else e - best) for k, e in errors.items()}
    return lost, {k: float(np.log10(network.spectrum.condition(gamma))) for k, gamma in gammas.items()}


def main() -> None:
    lost, conditions = defaultdict(lambda: defaultdict(list)), defaultdict(list)
    for name, sizes in SIZES.items():
        for n_hidden in sizes:
            for seed in range(N_SPLITS):
                for found, table in zip(excess(name, n_hidden, seed), (lost[name], conditions), strict=True):
                    for label, number in found.items():
                        table[label].append(number)
    print(f"| data set | {' | '.join(RULES)} |\n|---|{'---|' * len(RULES)}")
    for name, table in lost.items():
        cells = [f"{np.mean(table[k]):.3g} ({np.median(table[k]):.2g})" for k in RULES]
        print(f"| {name}, {'%' if name in REGRESSION else 'points'} | {' | '.join(cells)} |")
    for label, names in (("regression, %", REGRESSION), ("classification, points", set(SIZES) - set(REGRESSION))):
        cells = [np.concatenate([lost[name][k] for name in sorted(names)]) for k in RULES]
        print(f"| **{label}** | " + " | ".join(f"{np.mean(c):.3g} ({np.median(c):.2g})" for c in cells) + " |")
    cells = [np.concatenate([lost[name][k] for name in REGRESSION if name != "machine_cpu"]) for k in RULES]
    without = " | ".join(f"{np.mean(c):.3g} ({np.median(c):.2g})" for c in cells)
    print(f"| regression without Machine Cpu, % | {without} |")
    print("| log₁₀ μ(H^reg) | " + " | ".join(f"{np.mean(conditions[k]):.3g}" for k in RULES) + " |")


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main()
