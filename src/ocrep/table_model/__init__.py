"""From a file of rows to a model and back: task, preprocessing, training, prediction, comparison (needs pandas)."""

from ocrep.table_model.comparison import Comparison, Method, compare_methods
from ocrep.table_model.data_sets import export_data_set
from ocrep.table_model.pipeline import Description, Settings, describe, example_rows, network, preprocessing
from ocrep.table_model.prediction import UsageError, predict_file
from ocrep.table_model.problem import Problem, read_problem
from ocrep.table_model.task import guess_task
from ocrep.table_model.training import Trained, prepare, refusing, split_rows, train

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
