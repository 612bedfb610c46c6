"""What `calibrate="loo"` adds to an estimator: which methods exist, and the calibration itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ocrep.estimators.available import available_if


def available_if_calibrated(what: str) -> Callable[..., Any]:
    """Let a method exist only if the estimator is told to calibrate; `what` is what it gives."""

    def asked(estimator: Any) -> None:
        if estimator.calibrate is None:
            raise AttributeError(f"{type(estimator).__name__} gives {what} only if calibrated: set calibrate='loo'.")

    return available_if(asked)


def calibration_of(estimator: Any) -> Any:
    """What was learned from left-out rows; with another γ than that of `fit` it is gone."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "calibrator_"):
        raise NotFittedError(
            "This γ is not calibrated, and calibrating it needs the rows: call fit with this gamma and "
            "calibrate='loo', or set calibrate=None."
        )
    return estimator.calibrator_
