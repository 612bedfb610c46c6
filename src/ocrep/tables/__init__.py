"""From a table to a trained model, and from the model to predictions (needs pandas and pyarrow).

`TableRegressor` and `TableClassifier` are estimators for data frames, and `TableCoder` turns columns into numbers for
them. `fit_table` does for a data frame what the program `ocrep fit` does for a file. It stands here because every other
file of this room imports pandas and pyarrow, without which these names still say what to install.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from sklearn.pipeline import Pipeline

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
    frame: Any,
    target: str,
    *,
    task: Literal["auto", "regression", "classification"] = "auto",
    ignore: Sequence[str] = (),
    dates: Literal["parts", "drop"] = "parts",
    drop_missing_target: bool = False,
    candidates: str = "default",
    class_weight: str | None = None,
    test: float = 0.3,
    boosting: bool = False,
    random_state: int = 0,
    **network: Any,
) -> Pipeline:
    """Fit a network to a data frame with gaps, categories and dates.

    Missing numbers become the median of their column, missing dates the median date, and missing texts a category of
    their own. Each text but the most frequent one becomes a 0/1 input; dates become year, month, day of the week and
    age in days, also if written as 2024-12-31 or 2024/12/31, or as 31/12/2024 where the order of day and month is
    certain. Constant columns, ids and free texts are left out. New rows are treated in the same way; a text that was
    not seen in training counts as the most frequent one.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame or pyarrow.Table
        The rows, with the target among the columns.
    target : str
        The column to learn.
    task : {"auto", "regression", "classification"}, default="auto"
        "auto": texts, categories and booleans are labels, and so are at most 20 different whole numbers with five rows
        for each on average; other numbers are quantities.
    ignore : sequence of str, default=()
        Columns that are not inputs.
    dates : {"parts", "drop"}, default="parts"
        Whether dates become inputs, or are left out.
    drop_missing_target : bool, default=False
        Whether rows without a target are left out; otherwise they are an error.
    candidates : {"quick", "default", "thorough"}, default="default"
        The networks to choose among by exact cross-validation, on at most 50,000 rows.
    class_weight : "balanced" or None, default=None
        "balanced" lets rare classes weigh as much as frequent ones.
    test : float, default=0.3
        Share of the rows held out to assess the model. The pipeline is then fitted to all rows. 0 skips the assessment.
    boosting : bool, default=False
        Whether the assessment shows gradient boosting too.
    random_state : int, default=0
        Seed of the hidden layers and of the split.
    **network
        Parameters of `PinvRegressor` or `PinvClassifier`, such as `n_hidden`, `gamma` or `activation`: they describe
        one network, which is fitted instead of the best of several.

    Returns
    -------
    sklearn.pipeline.Pipeline
        The steps "frame" (kinds of columns), "columns" (gaps, categories and dates) and "network", fitted to all rows.
        Its `assessment_`, a dict, holds the scores on held-out rows under `models`, for the network, a baseline and a
        plain linear model trained on at most 50,000 rows; the `confusion` of `classes`; and `advice`. `left_out_` has
        the columns that are not inputs, each with the reason, and `gaps_` the number of missing values of each input
        that has some.

    See Also
    --------
    PinvRegressorCV : The network alone, on arrays of numbers.
    PinvClassifierCV : The same for labels.
    save_model : Writes the pipeline to a file, which `ocrep predict` reads too.

    Examples
    --------
    >>> import pandas as pd
    >>> from ocrep import fit_table
    >>> from ocrep.datasets import load
    >>> frame = load("iris", as_frame=True).frame
    >>> model = fit_table(frame, "target", candidates="quick")
    >>> model.predict(frame.head(2)).shape
    (2,)
    >>> list(model.assessment_["models"])
    ['network', 'baseline (majority class)', 'linear model']
    >>> model.left_out_, model.gaps_
    ({}, {})
    """
    _require_libraries("fit_table")
    from ocrep._files.row_file import RowFile
    from ocrep.tables.problem import read_problem
    from ocrep.tables.training import Settings, for_frames, train

    problem = read_problem(
        RowFile.of_frame(frame),
        target,
        task=task,
        ignore=ignore,
        dates=dates,
        drop_missing_target=drop_missing_target,
    )
    settings = Settings(candidates=candidates, class_weight=class_weight, seed=random_state, layer=network)
    return for_frames(train(problem, settings, test=test, boosting=boosting), problem)
