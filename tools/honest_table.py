"""Print the README's table: mean test error of each rule on the paper's data sets, over 20 splits 70/30.

One hidden layer is drawn per split and shared by all rules. RMSE for regression, percent misclassified for
classification; the number in brackets is the standard deviation over splits.
"""

import numpy as np
from sklearn.model_selection import train_test_split

from ocrep import compare_rules
from ocrep.datasets import load

RULES = ("ocrep", "ocrep_cv", "kfold", "gcv", "none")
N_SPLITS = 20
CASES = (
    ("abalone", 50),
    ("abalone", 300),
    ("delta_ailerons", 300),
    ("housing", 50),
    ("housing", 300),
    ("machine_cpu", 100),
    ("diabetes", 300),
    ("iris", 50),
    ("wine", 100),
    ("segment", 200),
    ("segment", 1000),
)


def errors(name: str, n_hidden: int) -> np.ndarray:
    """Test errors, splits × rules."""
    data = load(name)
    table = []
    for seed in range(N_SPLITS):
        X, X_test, y, y_test = train_test_split(data.data, data.target, test_size=0.3, random_state=seed)
        options = {"direct_link": False, "fit_intercept": False, "random_state": seed}
        test = (X_test, y_test)
        found = compare_rules(X, y, n_hidden=n_hidden, rules=RULES, test=test, task=data.task, **options)
        table.append(found["test_error"] * (100 if data.task == "classification" else 1))
    return np.array(table)


def main() -> None:
    print(f"| data set, hidden units | {' | '.join(RULES)} |\n|---|{'---|' * len(RULES)}")
    for name, n_hidden in CASES:
        table = errors(name, n_hidden)
        means, spreads = table.mean(axis=0), table.std(axis=0, ddof=1)
        cells = [f"{m:.3g} ({s:.2g})" for m, s in zip(means, spreads, strict=True)]
        best = int(means.argmin())
        cells[best] = f"**{cells[best]}**"
        print(f"| {name}, {n_hidden} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
