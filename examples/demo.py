"""Train on a bundled table beside what people use today, write the report, and say how to go on; run by `make demo`."""

import time
import warnings

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split

from ocrep import PinvRegressor, PinvRegressorCV
from ocrep.datasets import load
from ocrep.report import diagnose, write_report

PAGE = "ocrep-demo.html"
MODELS = {
    "the mean": DummyRegressor(),
    "RidgeCV": RidgeCV(np.logspace(-3, 3, 20)),
    "random forest": RandomForestRegressor(random_state=0),
    "gradient boosting": HistGradientBoostingRegressor(random_state=0),
    "ocrep, one network": PinvRegressor(random_state=0),
    "ocrep, a stack": PinvRegressorCV(random_state=0),
}


def main() -> None:
    """Compare models on new rows, and look into one network."""
    warnings.simplefilter("ignore")
    X, y = load("abalone", return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    print(f"How old is this abalone? {len(X_train)} shells to learn from, {len(X_test)} to test on.\n")
    print(f"{'':<22}{'error (RMSE)':>14}{'seconds':>10}")
    for name, model in MODELS.items():
        begin = time.perf_counter()
        model.fit(X_train, y_train)
        seconds = time.perf_counter() - begin
        error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
        print(f"{name:<22}{error:>14.3f}{seconds:>10.2f}", flush=True)
    print(f"\nThe networks of the stack, with their weights:\n{MODELS['ocrep, a stack'].summary()}")
    write_report(diagnose(PinvRegressor(200, random_state=0), X_train, y_train, X_test=X_test, y_test=y_test), PAGE)
    print(f"\nA look into one network: open {PAGE} in a browser.\n\nGo on with your own table:\n")
    print("  .venv/bin/ocrep fit your.csv --target NAME --out model.skops")
    print("  .venv/bin/ocrep compare your.csv --target NAME")
    print("  .venv/bin/ocrep --help")


if __name__ == "__main__":
    main()
