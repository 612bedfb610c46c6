"""From a file of rows to a trained pipeline, and from the pipeline to predictions (needs pandas and pyarrow)."""

from ocrep.tables.comparison import Comparison, compare_methods
from ocrep.tables.data_sets import export_data_set
from ocrep.tables.pipeline import Settings, describe, example_rows, network
from ocrep.tables.prediction import UsageError, predict_file
from ocrep.tables.problem import Problem, read_problem
from ocrep.tables.task import guess_task
from ocrep.tables.training import Trained, as_data_errors, prepare, split_rows, train

__all__ = [
    "Comparison",
    "Problem",
    "Settings",
    "Trained",
    "UsageError",
    "as_data_errors",
    "compare_methods",
    "describe",
    "example_rows",
    "export_data_set",
    "guess_task",
    "network",
    "predict_file",
    "prepare",
    "read_problem",
    "split_rows",
    "train",
]
