"""The architecture stays within its limits, and the tools that measure it count what they should."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").is_file())


@pytest.fixture(scope="module", autouse=True)
def _tools_on_path():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))
        yield


@pytest.fixture(scope="module")
def house(_tools_on_path):
    return import_module("house")


@pytest.fixture(scope="module")
def measures(house):
    return house.measure(ROOT)


def modules(house, **sources):
    """Modules ocrep.a, ocrep.b, … of these sources; `a__b` is ocrep.a.b, and a name that ends in `__` a package."""
    return [
        house.Module.of(f"ocrep.{name.replace('__', '.').rstrip('.')}", source, is_package=name.endswith("__"))
        for name, source in sources.items()
    ]


def foreign(source):
    return [read.text for read in import_module("private_reads").private_reads(ast.parse(source)) if not read.own]


def test_nothing_is_over_its_limit(house, measures):
    assert not house.over_limit(measures), "\n\n".join(house.over_limit(measures))


def test_the_whole_source_is_measured(house, measures):
    files = list((ROOT / "src" / "ocrep").rglob("*.py"))
    assert measures["files over 350 lines"].total == len(files) > 50
    assert measures["functions over 40 lines"].total > 500
    assert measures["import depth of modules"].value > 3
    assert measures["layers of the contract"].value > 3
    assert measures["largest class"].value > 3


def test_a_measure_over_its_limit_is_named_with_its_offenders(house):
    rows = (house.Measure("deep", 3, 2, offenders=("a.py:1 x",)), house.Measure("wide", 2, 2), house.Measure("long", 9))
    (text,) = house.over_limit(house.Measures(rows, ()))
    assert text.startswith("deep: 3")
    assert "a.py:1 x" in text
    assert "wide" in house.table(house.Measures(rows, ()))


def test_one_fit_switches_files_at_most_40_times():
    found = import_module("count_switches").count()
    assert found.functions > found.switches > found.files / 2 > 2
    assert sum(found.pairs.values()) == found.switches <= 40, found.pairs.most_common()


@pytest.mark.parametrize(
    "source",
    [
        "def f(model): return model._x",
        "def f(model): model._x = 1",
        "def f(model): return getattr(model, '_x', None)",
        "def f(): return _make()._x",
        "from ocrep import blocks\nblocks._x",
        "class A:\n def f(self): return self._model._x",
        "class A:\n _x = 1\n def f(self, model: Any): return model._x",
        "class A:\n def f(self, other: B):\n  return other._x",
        "class A:\n def f(self, model: Any):\n  other = copy(self)\n  other = model\n  return other._x",
    ],
)
def test_a_private_name_of_a_foreign_object_counts(source):
    assert len(foreign(source)) == 1


@pytest.mark.parametrize(
    "body",
    [
        "def f(self): return self._x",
        "def f(self): return super()._x",
        "def f(self, other: A): return other._x",
        "def f(self, other: 'A | None'): return other._x",
        "def f(self, others: list[Self]): return [other._x for other in others]",
        "def f(self):\n  other = copy(self)\n  return other._x",
        "def f(self): return dataclasses.replace(self, y=1)._x",
        "def f(self): return type(self)(1)._x",
        "def f(cls): return cls(1)._x",
        "def f(self) -> A: return self.f()._x",
        "def f(self, other: object): return isinstance(other, A) and other._x",
        "def f(self): return self.__dict__ and model.__doc__",
    ],
)
def test_a_private_name_of_the_own_class_does_not_count(body):
    assert foreign(f"class A:\n {body}") == []


def test_imports_of_private_names_count_and_of_rooms_do_not(house):
    source = "from ocrep._linalg import qr\nfrom ocrep import _linalg\nfrom ocrep._linalg.gram import _helper\n"
    source += "from ocrep.onnx._graph import Graph\nimport sklearn._loss\nfrom scipy.linalg import _flapack"
    found = modules(house, a=source, _linalg__="", _linalg__gram="", onnx__="", onnx___graph="")
    found += modules(house, onnx__inputs="from ocrep.onnx._graph import Graph\nfrom . import _graph")
    every, counted, allowed = house.privates(found)
    wanted = ["ocrep._linalg.gram._helper", "ocrep.onnx._graph.Graph", "sklearn._loss", "scipy.linalg._flapack"]
    assert [place.split()[1] for place in counted] == wanted
    assert every == allowed == []


def test_names_of_other_libraries_are_allowed_by_name_and_are_not_ours(house):
    every, counted, allowed = house.privates(modules(house, a="def f(X): return X._meta"))
    assert (len(every), len(counted), len(allowed)) == (1, 0, 1)
    nodes = [node for module in house.read_modules(ROOT) for node in ast.walk(module.tree)]
    ours = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    ours |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"}
    assert not ours & house.ALLOWED.keys()


def test_depth_is_the_longest_chain_of_modules(house):
    lazy = "def f():\n from ocrep import z"
    typing = "if TYPE_CHECKING:\n from ocrep import z"
    found = modules(house, a="from ocrep.b import x\nfrom ocrep import c", b="from . import c", c=lazy, d=typing, z="")
    assert house.longest_chain(house.import_graph(found)) == ["ocrep.a", "ocrep.b", "ocrep.c"]
    assert len(house.longest_chain(house.import_graph(found, lazy=True))) == 4


def test_a_cycle_is_one_link_and_a_room_one_node(house):
    found = modules(house, a="import ocrep.b", b__="from ocrep.b.c import x", b__c="from ocrep import b, d", d="")
    assert house.longest_chain(house.import_graph(found)) == ["ocrep.a", "ocrep.b = ocrep.b.c", "ocrep.d"]
    assert house.longest_chain(house.rooms(house.import_graph(found))) == ["ocrep.a", "ocrep.b", "ocrep.d"]


def test_layers_are_those_of_the_longest_layers_contract(house):
    contract = '[[tool.importlinter.contracts]]\ntype = "layers"\nlayers = ["a", "b | c", "d"]\n'
    other = '[[tool.importlinter.contracts]]\ntype = "independence"\nmodules = ["a", "b", "c", "d"]\n'
    assert house.contract_layers(contract + other) == 3
    assert house.contract_layers(other) == 0


def test_lines_of_a_function_are_counted_without_its_docstring(house):
    body = " x = 1\n" * 40
    found = modules(house, a=f"@d\ndef f():\n{body}", b=f'def g():\n """One\n two."""\n{body}')
    assert [sizes[:2] for sizes in house.functions(found)] == [(41, 41), (41, 43)]


def test_methods_are_counted_in_the_body_and_with_the_bases(house):
    derived = "class B(a.A):\n @property\n def g(self): ...\n @g.setter\n def g(self, x): ...\n def f(self): ..."
    found = modules(house, a="class A:\n def f(self): ...\n async def h(self): ...", b=derived)
    assert [sizes[:2] for sizes in house.class_sizes(found)] == [(2, 2), (2, 3)]


def test_loose_modules_are_files_at_the_root(house):
    found = modules(house, a="", b__="", b__c="")
    assert house.loose_modules(found) == ["ocrep.a"]
