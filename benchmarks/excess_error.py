"""How much error each rule for γ gives away: test error over that of the best γ in hindsight, averaged.

`OCREP_DATA=folder python benchmarks/excess_error.py`: eight splits 70/30 of each data set at three or four sizes.
Excess in percent of the RMSE for regression, in percentage points for classification; the last column is the mean of
log₁₀ μ(H^reg). `benchmarks/RESULTS.md` keeps the last recorded run.
"""

from collections import defaultdict

import numpy as np
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from ocrep import PinvClassifier, PinvRegressor, rules
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
    "kfold, floor=0.0": rules.KFold(floor=0.0),
    "gcv": rules.GCV(),
    "evidence": rules.MarginalLikelihood(),
}
N_SPLITS = 8
IN_HINDSIGHT = np.logspace(-12, 2, 57)


def error(model, X: np.ndarray, y: np.ndarray) -> float:
    predicted = model.predict(X)
    if isinstance(model, PinvRegressor):
        return float(np.sqrt(np.mean((predicted - y) ** 2)))
    return 100 * float(np.mean(predicted != y))


def main() -> None:
    excess, condition = defaultdict(lambda: defaultdict(list)), defaultdict(list)
    for name, sizes in SIZES.items():
        data = load(name)
        estimator = PinvRegressor if data.task == "regression" else PinvClassifier
        for n_hidden in sizes:
            for seed in range(N_SPLITS):
                X, X_test, y, y_test = train_test_split(data.data, data.target, test_size=0.3, random_state=seed)
                model = estimator(n_hidden, gamma="none", store_folds=True, random_state=seed).fit(X, y)
                gammas = model.spectrum_.largest**2 * IN_HINDSIGHT
                best = min(error(model.with_gamma(float(g)), X_test, y_test) for g in gammas)
                for label, rule in RULES.items():
                    chosen = model.with_gamma(rule)
                    lost = error(chosen, X_test, y_test)
                    lost = 100 * (lost / best - 1) if data.task == "regression" else lost - best
                    excess[data.task][label].append(lost)
                    condition[label].append(np.log10(chosen.regularized_condition_number_))
    print("| rule | regression, % | classification, points | log₁₀ μ(H^reg) |\n|---|---|---|---|")
    for label in RULES:
        means = (np.mean(values[label]) for values in (excess["regression"], excess["classification"], condition))
        print(f"| {label} | " + " | ".join(f"{mean:.3g}" for mean in means) + " |")


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main()
