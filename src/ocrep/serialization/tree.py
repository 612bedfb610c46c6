"""The tree of a model: the types that a file may hold, their names in files, and bounds on the work of reading one.

skops writes a model as a tree in JSON: each node names a type and holds its content, and arrays are members of the zip
file that nodes refer to. skops names a type by its module, and stores the fields of a dataclass with slots by position.
Files in that form would become unreadable when a module is renamed or a field is moved, so ours have stable names and
fields by name: `to_file` and `from_file` translate.

A tree may come from a stranger, so `check_tree` bounds what building it can cost. skops builds each object number
(`__id__`) once, from the node that it meets first, and uses that node wherever the number is repeated, whatever stands
there. Thirty levels, each of which repeats the number of the one below, would thus make 2³⁰ visits. skops itself writes
a repeated object in full every time, so that all nodes of one number have the same size r, counted in the file. This is
required here, and it suffices: a visit of a node costs 1 plus the visits of its children, each of which may be replaced
by another node of the same number, hence of the same size. By induction on the size, the visit costs at most r, and no
object can contain itself. The same array is read again for each object that refers to it, so it may belong to only one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

from ocrep import __version__, literature, rules
from ocrep._layers.activations import ACTIVATIONS, Activation
from ocrep._layers.hidden_map import HiddenMap
from ocrep._layers.random_layer import JoinedLayers, RandomLayer
from ocrep._layers.trees import Trees
from ocrep._linalg.factor import Factor
from ocrep._linalg.fold_factors import FoldFactors
from ocrep._linalg.folds import FoldPlan
from ocrep._linalg.rows import Counts
from ocrep._linalg.spectrum import LeftVectors, Spectrum, StoredVectors
from ocrep._linalg.triangle import Triangle
from ocrep._linalg.wide import RowVectors, WideRows
from ocrep._training.calibration import Calibrator, LabelCalibrator, LeftOutErrors
from ocrep._training.error_scale import ErrorScale
from ocrep._training.recipe import Division, Learned
from ocrep._training.targets import Indicators, Labels, Numbers
from ocrep.estimators import NETWORKS, TikhonovClassifier, TikhonovRegressor
from ocrep.literature.base import MixedMap
from ocrep.serialization.archive import ModelFileError

Node: TypeAlias = dict[str, Any]

# Models of this library have some hundred nodes, at most 30 deep; a forest in a pipeline has some ten thousand.
MOST_NODES = 1_000_000
DEEPEST = 200

_RULES = (rules.Rule, rules.Choice, rules.Curve)
_PUBLIC: dict[str, Iterable[type]] = {
    "ocrep": (*NETWORKS, TikhonovClassifier, TikhonovRegressor, RandomLayer, Factor, Spectrum),
    "ocrep.rules": [kind for kind in vars(rules).values() if isinstance(kind, type) and issubclass(kind, _RULES)],
    "ocrep.literature": [getattr(literature, name) for name in literature.__all__],
}
# Files contain these names, so they never change. When a private class moves, only the right-hand side changes.
OWN: dict[str, Callable[..., Any]] = {
    **{f"{room}.{kind.__name__}": kind for room, kinds in _PUBLIC.items() for kind in kinds},
    "ocrep.Activation": Activation,
    "ocrep.Calibrator": Calibrator,
    "ocrep.Counts": Counts,
    "ocrep.Division": Division,
    "ocrep.ErrorScale": ErrorScale,
    "ocrep.FoldFactors": FoldFactors,
    "ocrep.FoldPlan": FoldPlan,
    "ocrep.HiddenMap": HiddenMap,
    "ocrep.JoinedLayers": JoinedLayers,
    "ocrep.Indicators": Indicators,
    "ocrep.LabelCalibrator": LabelCalibrator,
    "ocrep.Labels": Labels,
    "ocrep.Learned": Learned,
    "ocrep.LeftOutErrors": LeftOutErrors,
    "ocrep.LeftVectors": LeftVectors,
    "ocrep.MixedMap": MixedMap,
    "ocrep.Numbers": Numbers,
    "ocrep.RowVectors": RowVectors,
    "ocrep.StoredVectors": StoredVectors,
    "ocrep.Trees": Trees,
    "ocrep.Triangle": Triangle,
    "ocrep.WideRows": WideRows,
    **{f"ocrep.activations.{name}": known.function for name, known in ACTIVATIONS.items()},
}

# The same for types of a room above this one, which needs pandas and pyarrow: it is imported when a file holds one.
TABLES = {
    "ocrep.TableRegressor": "ocrep.tables.estimators.TableRegressor",
    "ocrep.TableClassifier": "ocrep.tables.estimators.TableClassifier",
    "ocrep.TableCoder": "ocrep.tables.coder.TableCoder",
    "ocrep.CodedColumn": "ocrep.tables.coder.CodedColumn",
    "ocrep.CodedNumbers": "ocrep.tables.coder.Numbers",
    "ocrep.CodedDates": "ocrep.tables.coder.Dates",
    "ocrep.OneHot": "ocrep.tables.coder.OneHot",
    "ocrep.Letters": "ocrep.tables.coder.Letters",
    "ocrep.TargetCodes": "ocrep.tables.codes.TargetCodes",
}

_SPLITTERS = ("KFold", "GroupKFold", "StratifiedKFold", "StratifiedGroupKFold", "LeaveOneOut", "LeaveOneGroupOut")
OTHERS = (
    "numpy.dtype",  # an attribute of scikit-learn's imputers
    "sklearn.compose._column_transformer._RemainderColsList",  # before scikit-learn 1.7: a list
    "sklearn.utils._bunch.Bunch",  # an attribute of voting and stacking: a dict
    *(f"sklearn.feature_selection._univariate_selection.{name}" for name in ("f_classif", "f_regression")),
    *(f"sklearn.model_selection._split.{name}" for name in _SPLITTERS),  # what `cv=` takes
)
"""Harmless types and functions of other libraries that skops does not trust by default."""


def path_of(kind: Callable[..., Any]) -> str:
    """Where Python finds a type or function today."""
    return f"{kind.__module__}.{kind.__name__}"


NAMES = {path_of(kind): name for name, kind in OWN.items()} | {path: name for name, path in TABLES.items()}


def kind_named(name: str) -> Callable[..., Any]:
    """The type or function that files call so."""
    if name in OWN:
        return OWN[name]
    module, _, own_name = TABLES[name].rpartition(".")
    return vars(import_module(module))[own_name]


def check_tree(tree: Any) -> None:
    """Raise a ValueError if building a tree from a file could cost far more than reading the file does."""
    n_nodes = 0
    sizes: dict[Any, int] = {}
    owners: dict[Any, Any] = {}

    def size(part: Any, depth: int) -> int:
        nonlocal n_nodes
        n_nodes += 1
        if n_nodes > MOST_NODES or depth > DEEPEST:
            raise ValueError("its tree is far larger than that of a model.")
        children = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        total = 1 + sum(size(child, depth + 1) for child in children)
        if isinstance(part, dict) and isinstance(part.get("__loader__"), str):
            number = part.get("__id__")
            if number is not None and sizes.setdefault(number, total) != total:
                raise ValueError("two objects in it have the same number.")
            # skops does not recognize an object without a number, or with the number 0, when it meets it again.
            if "file" in part and (not number or owners.setdefault(part["file"], number) != number):
                raise ValueError("two objects in it share one array.")
        return total

    size(tree, 0)


def to_file(tree: Any) -> Any:
    """Translate a tree that skops wrote into the form of files."""
    return _translated(tree, _node_to_file)


def from_file(tree: Any, source: str) -> Any:
    """Translate a tree from a file for skops; `source` begins the error messages: which file, written by whom."""
    return _translated(tree, partial(_node_from_file, source=source))


def _translated(part: Any, translate: Callable[[Node], Node]) -> Any:
    if isinstance(part, list):
        return [_translated(child, translate) for child in part]
    if not isinstance(part, dict):
        return part
    part = {key: _translated(child, translate) for key, child in part.items()}
    # A dict inside the model may have the key "__loader__" too, but there the value is a node.
    return translate(part) if isinstance(part.get("__loader__"), str) else part


def _node_to_file(node: Node) -> Node:
    path = f"{node['__module__']}.{node['__class__']}"
    if not path.replace(".", "_").isidentifier():
        raise ModelFileError(
            f"The model holds a function without a name, {path}, and a file can only refer to functions by name: "
            "define it with def in a module, and name it in load_model(..., trusted=[...])."
        )
    if not path.startswith("ocrep."):
        return node
    name = NAMES.get(path)
    if name is None:
        raise ModelFileError(f"The model holds {path}, which is not among the types that model files can keep.")
    names = _field_names(node, kind_named(name))
    node = _renamed(node, name)
    if names is not None:
        values = node.pop("content")["content"]
        by_position = isinstance(values, list)
        node["fields"] = (
            dict(zip(names, values, strict=True))
            if by_position
            else {key: values[key] for key in names if key in values}
        )
    return node


def _node_from_file(node: Node, source: str) -> Node:
    name = f"{node['__module__']}.{node['__class__']}"
    if not name.startswith("ocrep."):
        return node
    if name not in OWN and name not in TABLES:
        raise ModelFileError(
            f"{source} and holds {name}, which ocrep {__version__} does not know: upgrade with pip install -U ocrep."
        )
    kind = kind_named(name)
    names = _field_names(node, kind)
    node = _renamed(node, path_of(kind))
    if names is not None:
        values = node.pop("fields")
        if not _required_fields(kind) <= set(values) <= set(names):
            raise ModelFileError(
                f"{source}, in which {name} had other fields: load it with that version, or fit the model again with "
                f"{__version__}."
            )
        node["content"] = _state(kind, {field: values[field] for field in names if field in values})
    return node


def _state(kind: Any, values: dict[str, Node]) -> Node:
    """The state of a dataclass as Python expects it: a list for one with slots, otherwise a dict."""
    if hasattr(kind, "__setstate__"):
        return _builtin("list", "ListNode", content=list(values.values()))
    key_types = _builtin("list", "ListNode", content=[_builtin("str", "TypeNode")] * len(values))
    return _builtin("dict", "DictNode", content=values, key_types=key_types)


def _builtin(name: str, loader: str, **content: Any) -> Node:
    return {"__class__": name, "__module__": "builtins", "__loader__": loader, **content}


def _field_names(node: Node, kind: Any) -> list[str] | None:
    """The fields if the node is an object of a dataclass, not the class itself."""
    if node["__loader__"] == "ObjectNode" and is_dataclass(kind):
        return [field.name for field in fields(kind)]
    return None


def _required_fields(kind: Any) -> set[str]:
    """The fields that every file has. Later ones have a default, which the class itself holds unless it has slots."""
    return {field.name for field in fields(kind) if hasattr(kind, "__setstate__") or field.default is MISSING}


def _renamed(node: Node, name: str) -> Node:
    module, _, own_name = name.rpartition(".")
    return {**node, "__module__": module, "__class__": own_name}
