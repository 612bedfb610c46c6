"""From a file of rows to a model and back: task, preprocessing, training, prediction, comparison (needs pandas)."""

from ocrep.tables.comparison import Comparison, Method, compare_methods
from ocrep.tables.data_sets import export_data_set
from ocrep.tables.pipeline import Description, Settings, describe, example_rows, network, preprocessing
from ocrep.tables.prediction import UsageError, predict_file
from ocrep.tables.problem import Problem, read_problem
from ocrep.tables.task import guess_task
from ocrep.tables.training import Trained, prepare, refusing, split_rows, train

__all__ = [
    "Comparison",
    "Description",
    "Method",
    "Problem",
    "Settings",
    "Trained",
    "UsageError",
    "compare_methods",
    "describe",
    "example_rows",
    "export_data_set",
    "guess_task",
    "network",
    "predict_file",
    "prepare",
    "preprocessing",
    "read_problem",
    "refusing",
    "split_rows",
    "train",
]
