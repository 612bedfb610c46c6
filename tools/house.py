"""Print the size and shape of src/ocrep beside other libraries of its field: `python3 tools/house.py`.

The source is parsed, not run. These figures are for a reader to look at; no test depends on them. Those of the other
libraries were counted once, with the same rules; a figure that was not counted is left blank.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

PEERS = {
    "lineax": {"KB": 223, "lines": 6352, "files": 23, "lines per file": 276, "comments %": 19, "a, b = x, y": 0.3},
    "skglm": {"KB": 332, "lines": 9841, "files": 39, "lines per file": 252, "comments %": 8, "a, b = x, y": 4.4},
    "himalaya": {"KB": 344, "lines": 9523, "files": 29, "lines per file": 328, "comments %": 8, "a, b = x, y": 1.1},
    "glum": {"KB": 308, "lines": 8307, "files": 11, "lines per file": 755, "comments %": 5, "a, b = x, y": 0.8},
}


def measure(root: Path) -> dict[str, float]:
    """The figures of the package under `root`/src."""
    sources = {path: path.read_text(encoding="utf-8") for path in sorted((root / "src").rglob("*.py"))}
    trees = {path: ast.parse(source) for path, source in sources.items()}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    lines = sum(len(source.splitlines()) for source in sources.values())
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    pairs = sum(
        isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
        for node in nodes
    )
    comments = sum(comment_lines(source) for source in sources.values())
    code = sum(code_lines(source, trees[path]) for path, source in sources.items())
    return {
        "KB": sum(map(len, sources.values())) / 1024,
        "lines": lines,
        "files": len(sources),
        "lines per file": lines / len(sources),
        "comments %": 100 * comments / code,
        "a, b = x, y": 1000 * pairs / lines,
        "classes": len(classes),
        "classes with at most one method": sum(
            sum(isinstance(item, ast.FunctionDef) for item in node.body) <= 1 for node in classes
        ),
        "import depth": len(longest_chain(import_graph(root / "src", trees))),
        "lines of tests": sum(
            len(path.read_text(encoding="utf-8").splitlines()) for path in (root / "tests").rglob("*.py")
        ),
    }


def comment_lines(source: str) -> int:
    """Lines that hold nothing but a comment."""
    return sum(line.lstrip().startswith("#") for line in source.splitlines())


def code_lines(source: str, tree: ast.Module) -> int:
    """Lines that are neither blank, nor comments, nor docstrings."""
    used = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    }
    texts = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    return len(used - {line for node in texts for line in range(node.lineno, (node.end_lineno or 0) + 1)})


def import_graph(source: Path, trees: dict[Path, ast.Module]) -> dict[str, set[str]]:
    """Which of our modules imports which when it is loaded; imports for type checking and inside functions are not."""
    names = {path: ".".join(path.relative_to(source).with_suffix("").parts) for path in trees}
    names = {path: name.removesuffix(".__init__") for path, name in names.items()}
    known = set(names.values())
    graph: dict[str, set[str]] = {name: set() for name in known}
    for path, tree in trees.items():
        for imported in loaded_names(tree):
            target = imported if imported in known else imported.rpartition(".")[0]
            if target in known and target != names[path]:
                graph[names[path]].add(target)
    return graph


def loaded_names(node: ast.AST) -> Iterator[str]:
    """The dotted names that a module imports at its top level."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module and not child.level:
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from loaded_names(child)


def longest_chain(graph: dict[str, set[str]]) -> list[str]:
    """The longest chain of modules of which each imports the next; a module is not entered twice."""
    chains: dict[str, list[str]] = {}

    def chain(name: str, above: frozenset[str]) -> list[str]:
        if name not in chains:
            below = [chain(target, above | {name}) for target in sorted(graph[name] - above)]
            chains[name] = [name, *max(below, key=len, default=[])]
        return chains[name]

    return max((chain(name, frozenset()) for name in sorted(graph)), key=len, default=[])


def main() -> None:
    """Print the figures of this repository, or of the one named."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    print(f"{'':32}{'ocrep':>10}" + "".join(f"{peer:>10}" for peer in PEERS))
    for name, ours in measure(root).items():
        figures = [ours, *(peer.get(name) for peer in PEERS.values())]
        shown = ["" if figure is None else f"{figure:,.1f}".removesuffix(".0") for figure in figures]
        print(f"{name:32}" + "".join(f"{figure:>10}" for figure in shown))


if __name__ == "__main__":
    main()
