"""From a table to a trained model, and from the model to predictions (needs pandas and pyarrow).

`TableRegressor` and `TableClassifier` are estimators for data frames, and `TableCoder` turns columns into numbers for
them. `fit_table` guesses the task, and says how good the model is. It stands here because every other
file of this room imports pandas and pyarrow, without which these names still say what to install.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ocrep.tables.coder import TableCoder
    from ocrep.tables.estimators import TableClassifier, TableRegressor

__all__ = ["TableClassifier", "TableCoder", "TableRegressor", "fit_table"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _require_libraries(name)
    from ocrep.tables import coder, estimators

    return coder.TableCoder if name == "TableCoder" else vars(estimators)[name]


def _require_libraries(name: str) -> None:
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(f'{name} needs pandas and pyarrow: pip install "ocrep[files]".') from error


def fit_table(
    data: Any,
    target: Any,
    *,
    task: Literal["auto", "regression", "classification"] = "auto",
    sample_weight: Any = None,
    groups: Any = None,
    ignore: Sequence[str] = (),
    keep: Sequence[str] = (),
    dates: Literal["day-first", "month-first", "drop"] | None = None,
    drop_missing_target: bool = False,
    candidates: str = "default",
    class_weight: Any = None,
    test: float = 0.3,
    boosting: bool = True,
    random_state: int = 0,
    **network: Any,
) -> TableRegressor | TableClassifier:
    """Fit `TableRegressor` or `TableClassifier`, whichever the target asks for, and say how good it is.

    Parameters
    ----------
    data : pandas.DataFrame, polars.DataFrame, pyarrow.Table or path
        The rows, with the target among the columns: a frame, or a CSV, Parquet or Feather file.
    target : str, or array-like of shape (n_samples,)
        The column to learn, or its values.
    task : {"auto", "regression", "classification"}, default="auto"
        "auto": texts, categories and booleans are labels, and so are at most 20 different whole numbers with five rows
        for each on average; other numbers are quantities.
    sample_weight, groups : str or array-like of shape (n_samples,), default=None
        Weights of the rows, and groups that are held out together: names of columns, or values.
    ignore : sequence of str, default=()
        Columns that are not used.
    keep : sequence of str, default=()
        Columns that are used even if they look like ids.
    dates : {"day-first", "month-first", "drop"} or None, default=None
        How dates such as 01/02/2024 are read where that is not certain, or that dates are left out.
    drop_missing_target : bool, default=False
        Whether rows without a target are left out; otherwise they are an error.
    candidates : {"quick", "default", "thorough"}, default="default"
        The networks of the stack.
    class_weight : dict, "balanced" or None, default=None
        "balanced" lets rare classes weigh as much as frequent ones.
    test : float, default=0.3
        Share of the rows held out to assess the model, which is then fitted to all rows. 0 skips the assessment.
    boosting : bool, default=True
        Whether the assessment shows gradient boosting too.
    random_state : int, default=0
        Seed of the model and of the split.
    **network
        Parameters of `PinvRegressor` or `PinvClassifier`, such as `n_hidden`, `gamma` or `activation`: they describe
        one network, which is fitted instead of a stack.

    Returns
    -------
    TableRegressor or TableClassifier
        Fitted to all rows. Its `assessment_`, a dict, holds the scores on held-out rows under `models`, for the
        network, a constant, a linear model and gradient boosting; a `verdict`; the `confusion` of `classes`; and
        `advice`.

    See Also
    --------
    TableRegressor : For numbers, with scikit-learn's interface.
    TableClassifier : For labels.
    save_model : Writes the model to a file, which `ocrep predict` reads too.

    Examples
    --------
    >>> from ocrep import fit_table
    >>> from ocrep.datasets import load
    >>> frame = load("iris", as_frame=True).frame
    >>> model = fit_table(frame, "target", candidates="quick")
    >>> model.predict(frame.head(2)).shape
    (2,)
    >>> list(model.assessment_["models"])
    ['network', 'baseline (majority class)', 'linear model', 'gradient boosting']
    >>> model.left_out_, model.gaps_
    ({}, {})
    """
    _require_libraries("fit_table")
    from ocrep.tables import training

    settings = training.Settings(
        candidates=candidates,
        layer=network,
        class_weight=class_weight,
        ignore=ignore,
        keep=keep,
        dates=dates,
        drop_missing_target=drop_missing_target,
        seed=random_state,
    )
    return training.fit_table(
        data,
        target,
        task=task,
        sample_weight=sample_weight,
        groups=groups,
        test=test,
        boosting=boosting,
        settings=settings,
    )
