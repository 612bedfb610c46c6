"""Measure the architecture of src/ocrep beside lineax, skglm and sklearn.linear_model: `python3 tools/house.py`.

Only the standard library is used and nothing is imported from ocrep: the source is parsed, not run. The figures of
the other libraries are recorded, from the script that counted 34, 21, 46, 30 and "2 of 1055" for ours at that time.

Import depth. The longest chain of units, each importing the next, lazy imports included; imports under
`if TYPE_CHECKING` are left out, and units in a cycle count as one. A unit is what lies directly under the package: a
room, or a loose module. The contract allows eleven rooms one below the other, and each has modules that build on each
other, so the chain of single modules is longer. It is shown in a row without a limit: the goal of 12, set when that
chain had 21 modules, is not reached. The figures of the other libraries are chains of modules too.

Private reads. Reads of private attributes of foreign objects, by the rule in private_reads.py; imports of private
names; imports of private modules from outside their package (rooms like `ocrep._linalg` are open to all rooms). Names
of other libraries stand in ALLOWED, with the reason. A row without a limit counts every `x._name` where x is neither
self, cls nor super(), as the figures of the other libraries do.

Long functions. Lines from `def` to the last one, less the docstring, as in the figures of the other libraries; a row
without a limit counts the docstring too.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from private_reads import FunctionNode, is_private, private_reads

PACKAGE = "ocrep"
PEERS = ("lineax", "skglm", "sklearn")
UNKNOWN = ("", "", "")
LONG_FUNCTION, LONG_FILE = 40, 350
ALLOWED = {
    "_meta": "Dask: the empty frame with the columns of a collection has no public name",
    "_transformer_to_input_indices": "scikit-learn: which columns a ColumnTransformer gives to each step",
    "_check_feature_names_in": "scikit-learn: the check of get_feature_names_out has no public name",
    "_check_sample_weight": "scikit-learn: the check of sample_weight has no public name",
    "_is_numeric": "pandas: whether an extension type holds numbers",
    "_replace": "namedtuple: a public method",
    "_asdict": "namedtuple: a public method",
    "_fields": "namedtuple: a public attribute",
}

Graph = dict[str, set[str]]


@dataclass(frozen=True)
class Measure:
    """One row of the table; a row without a limit is for information."""

    name: str
    value: int
    limit: int | None = None
    total: int | None = None
    peers: tuple[str, str, str] = UNKNOWN
    offenders: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        return f"{self.value}" if self.total is None else f"{self.value} of {self.total}"


@dataclass(frozen=True)
class Measures:
    """All rows of the table, and the reads that ALLOWED permits."""

    rows: tuple[Measure, ...]
    allowed: tuple[str, ...]

    def __getitem__(self, name: str) -> Measure:
        return next(row for row in self.rows if row.name == name)


@dataclass(frozen=True)
class Module:
    """A parsed file under its dotted name."""

    name: str
    path: str
    tree: ast.Module
    n_lines: int = 0
    is_package: bool = False

    @classmethod
    def of(cls, name: str, source: str, path: str = "", is_package: bool = False) -> Module:
        return cls(name, path or name, ast.parse(source), len(source.splitlines()), is_package)

    def at(self, line: int, text: str) -> str:
        return f"{self.path}:{line} {text}"


def read_modules(root: Path) -> list[Module]:
    """Every module of root/src/ocrep."""
    modules = []
    for path in sorted((root / "src" / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root / "src").with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        source = path.read_text(encoding="utf-8")
        modules.append(Module.of(name, source, path.relative_to(root).as_posix(), is_package))
    return modules


# Imports


def loose_modules(modules: Iterable[Module]) -> list[str]:
    """Files directly under the package, other than its __init__."""
    return [m.path for m in modules if m.name.count(".") == 1 and not m.is_package]


def _statements(node: ast.AST, lazy: bool) -> Iterator[ast.AST]:
    """The nodes that run on import; with `lazy`, those inside functions too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield other
                yield from _statements(other, lazy)
        elif lazy or not isinstance(child, FunctionNode | ast.Lambda):
            yield child
            yield from _statements(child, lazy)


def imports(module: Module, *, lazy: bool = False) -> Iterator[tuple[int, str, str]]:
    """Each import as (line, module, name); the name is empty for `import module`."""
    package = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    for node in _statements(module.tree, lazy):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, source, alias.name) for alias in node.names)


def import_graph(modules: list[Module], *, lazy: bool = False) -> Graph:
    """Which of our modules imports which."""
    graph: Graph = {m.name: set() for m in modules}
    for module in modules:
        for _, source, name in imports(module, lazy=lazy):
            target = f"{source}.{name}" if f"{source}.{name}" in graph else source
            if target in graph and target != module.name:
                graph[module.name].add(target)
    return graph


def rooms(graph: Graph) -> Graph:
    """The same graph between first-level names."""
    result: Graph = {}
    for source, targets in graph.items():
        room = ".".join(source.split(".")[:2])
        result.setdefault(room, set()).update(".".join(t.split(".")[:2]) for t in targets)
        result[room].discard(room)
    return result


def components(graph: Graph) -> list[list[str]]:
    """The strongly connected components, each after those it imports (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for target in sorted(graph[node]):
            if target not in order:
                visit(target)
            if target in stack:
                low[node] = min(low[node], low[target])
        if low[node] == order[node]:
            cut = stack.index(node)
            found.append(stack[cut:])
            del stack[cut:]

    for node in graph:
        if node not in order:
            visit(node)
    return found


def longest_chain(graph: Graph) -> list[str]:
    """The longest chain of imports; modules in a cycle are one link."""
    chains: dict[str, list[str]] = {}
    for component in components(graph):
        below = [chains[t] for node in component for t in sorted(graph[node]) if t not in component]
        chain = [" = ".join(sorted(component)), *max(below, key=len, default=[])]
        chains.update(dict.fromkeys(component, chain))
    return max(chains.values(), key=len, default=[])


def contract_layers(pyproject: str) -> int:
    """Layers of the longest layers contract of import-linter."""
    contracts = tomllib.loads(pyproject).get("tool", {}).get("importlinter", {}).get("contracts", [])
    return max((len(c["layers"]) for c in contracts if c.get("type") == "layers"), default=0)


# Private names


def private_imports(module: Module, known: set[str]) -> Iterator[tuple[int, str]]:
    """Imports of private names, and of private modules from outside their package."""
    for line, source, name in imports(module, lazy=True):
        path = [*source.split("."), *([name] if name else [])]
        ours = path[0] == PACKAGE
        for i, part in enumerate(path):
            if not is_private(part) or (not ours and i < len(path) - 1):
                continue
            owner = ".".join(path[:i])
            inside = i == 1 or f"{module.name}.".startswith(f"{owner}.")
            if not (ours and ".".join(path[: i + 1]) in known and inside):
                yield line, ".".join(path)
                break


def privates(modules: list[Module]) -> tuple[list[str], list[str], list[str]]:
    """Private names used: every `x._name`; of foreign objects and modules; of other libraries, as ALLOWED permits."""
    every: list[str] = []
    foreign: list[str] = []
    allowed: list[str] = []
    known = {m.name for m in modules}
    for module in modules:
        imported = [(line, text, text.split(".")[-1]) for line, text in private_imports(module, known)]
        reads = [r for r in private_reads(module.tree) if r.text not in known]
        every += [module.at(r.line, r.text) for r in reads if not r.by_string]
        for line, text, name in [*imported, *((r.line, r.text, r.name) for r in reads if not r.own)]:
            (allowed if name in ALLOWED else foreign).append(module.at(line, text))
    return every, foreign, allowed


# Sizes


def class_sizes(modules: list[Module]) -> list[tuple[int, int, str]]:
    """Each class: its methods, its methods with those of its bases among ours (found by name), and its place.

    Properties are methods. A property and its setter are one, and so are the overloads of a method.
    """
    classes = [(m, node) for m in modules for node in ast.walk(m.tree) if isinstance(node, ast.ClassDef)]
    named = {node.name: node for _, node in classes}

    def methods(node: ast.ClassDef) -> set[str]:
        return {item.name for item in node.body if isinstance(item, FunctionNode)}

    def all_methods(node: ast.ClassDef, below: frozenset[str] = frozenset()) -> set[str]:
        bases = {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases} & named.keys() - below
        return methods(node).union(*(all_methods(named[base], below | {node.name}) for base in bases))

    return [(len(methods(node)), len(all_methods(node)), m.at(node.lineno, node.name)) for m, node in classes]


def n_lines(node: ast.stmt) -> int:
    """From the first line to the last; decorators stand before the first."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def functions(modules: list[Module]) -> list[tuple[int, int, str]]:
    """Each function, nested ones too: lines without its docstring, lines with it, and its place."""
    found = []
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, FunctionNode):
                docstring = n_lines(node.body[0]) if ast.get_docstring(node, clean=False) is not None else 0
                found.append((n_lines(node) - docstring, n_lines(node), module.at(node.lineno, node.name)))
    return found


# The table


def measure(root: Path) -> Measures:
    """All measures of the repository at `root`."""
    modules = read_modules(root)
    every, foreign, allowed = privates(modules)
    pyproject = (root / "pyproject.toml").read_text(encoding="utf-8")
    rows = (
        *import_measures(modules, contract_layers(pyproject)),
        Measure("reads of foreign _x", len(foreign), 0, offenders=tuple(foreign)),
        Measure("every x._y but of self and cls", len(every), peers=("0", "1", "45")),
        *size_measures(modules),
    )
    return Measures(rows, tuple(allowed))


def import_measures(modules: list[Module], layers: int) -> Iterator[Measure]:
    """Rows about where modules stand and what they import."""
    loose = loose_modules(modules)
    yield Measure("loose root modules", len(loose), 3, peers=("7", "3", "16"), offenders=tuple(loose))
    deepest = longest_chain(rooms(import_graph(modules, lazy=True)))
    yield Measure("import depth of rooms", len(deepest), 12, offenders=(" > ".join(deepest),))
    chain = longest_chain(import_graph(modules))
    yield Measure("import depth of modules", len(chain), peers=("8", "7", "5"))
    yield Measure("layers of the contract", layers, 12)


def size_measures(modules: list[Module]) -> Iterator[Measure]:
    """Rows about the size of classes, functions and files."""
    sizes = class_sizes(modules)
    limit = 18
    large = tuple(f"{place}: {n} methods, {total} with bases" for n, total, place in sizes if n > limit)
    yield Measure("largest class", max(n for n, _, _ in sizes), limit, peers=("16", "17", "18"), offenders=large)
    yield Measure("largest class with its bases", max(total for _, total, _ in sizes))
    lengths = functions(modules)
    long = tuple(f"{place}: {n} lines" for n, _, place in lengths if n > LONG_FUNCTION)
    peers = ("12 of 389", "25 of 530", "72 of 329")
    yield Measure(f"functions over {LONG_FUNCTION} lines", len(long), 0, len(lengths), peers, long)
    yield Measure("the same, docstrings counted", sum(n > LONG_FUNCTION for _, n, _ in lengths), total=len(lengths))
    files = tuple(f"{m.path}: {m.n_lines} lines" for m in modules if m.n_lines > LONG_FILE)
    yield Measure(f"files over {LONG_FILE} lines", len(files), 0, len(modules), offenders=files)
    yield Measure("lines of source", sum(m.n_lines for m in modules))


def over_limit(measures: Measures) -> list[str]:
    """A sentence for each measure over its limit."""
    return [
        "\n  ".join([f"{row.name}: {row.shown}, and at most {row.limit} is allowed", *row.offenders])
        for row in measures.rows
        if row.limit is not None and row.value > row.limit
    ]


def table(measures: Measures) -> str:
    """The rows in aligned columns."""
    lines = [("", "ours", "limit", *PEERS)]
    lines += [(r.name, r.shown, "" if r.limit is None else f"≤ {r.limit}", *r.peers) for r in measures.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]).rstrip()
        for line in lines
    )


def main() -> None:
    """Print the table of this repository, or of the one named, and what is over a limit."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    measures = measure(root)
    print(table(measures))
    for text in over_limit(measures) or ["Nothing is over its limit."]:
        print(f"\n{text}")
    if measures.allowed:
        print("\nprivate names of other libraries, allowed:")
    for text in measures.allowed:
        print(f"  {text} ({ALLOWED[text.rsplit('.', 1)[-1]]})")


if __name__ == "__main__":
    main()
