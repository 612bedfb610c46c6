"""Find the private attributes that a file reads, and tell an object's own from those of foreign objects.

`x._name` and `getattr(x, "_name")`, with one underscore, where x is neither self, cls nor super(). The read is own
where x is a class of the same file or an instance of one, as far as the file itself shows: by an annotation,
`isinstance`, a constructor, `copy(self)`, `replace(self)`, or a method with such a return type. An x of unknown type is
foreign. Privacy ends with the file, so a helper function beside a class may read its private names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

COPIES = {"copy", "deepcopy", "replace", "clone"}
BY_NAME = {"getattr", "hasattr", "setattr", "delattr"}
TRIVIAL = {"self", "cls", "super()"}

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Read:
    """One read of a private name, and whether its owner is an object of the same file."""

    line: int
    text: str
    name: str
    own: bool
    by_string: bool = False


def is_private(name: str) -> bool:
    """One leading underscore, no more."""
    return name.startswith("_") and not name.startswith("__") and name != "_"


def private_reads(tree: ast.Module) -> list[Read]:
    """Every read of a private attribute in a file, in the order of lines."""
    reader = _Reader(tree)
    reader.visit(tree)
    return sorted(reader.reads, key=lambda read: read.line)


class _Reader(ast.NodeVisitor):
    def __init__(self, tree: ast.Module) -> None:
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        self.owners = {"Self", *(c.name for c in classes)}
        self.types: dict[str, ast.expr | None] = {}  # of methods' results and of fields
        for node in (node for c in classes for node in c.body):
            if isinstance(node, FunctionNode):
                self.types[node.name] = node.returns
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                self.types[node.target.id] = node.annotation
        self.functions: list[ast.AST] = []  # around the node now visited
        self.reads: list[Read] = []

    def visit_FunctionDef(self, node: ast.AST) -> None:
        self.functions.append(node)
        self.generic_visit(node)
        self.functions.pop()

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if is_private(node.attr):
            self._add(node, node.value, node.attr)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(func=ast.Name(id=function), args=[owner, ast.Constant(value=str(name)), *_]):
                if function in BY_NAME and is_private(name):
                    self._add(node, owner, name, by_string=True)
        self.generic_visit(node)

    def _add(self, node: ast.expr, owner: ast.expr, name: str, *, by_string: bool = False) -> None:
        if ast.unparse(owner) not in TRIVIAL:
            own = self._is_own(owner, frozenset())
            self.reads.append(Read(node.lineno, f"{ast.unparse(owner)}.{name}", name, own, by_string))

    def _names_owner(self, annotation: ast.expr | None) -> bool:
        """Whether a type mentions a class of this file, in quotes or not."""
        return annotation is not None and not self.owners.isdisjoint(re.findall(r"\w+", ast.unparse(annotation)))

    def _is_own(self, value: ast.expr, seen: frozenset[str]) -> bool:
        """Whether an expression is a class of this file, or an instance of one; `seen` are names in question."""
        match value:
            case ast.Name(id=name):
                known = name in TRIVIAL or name in self.owners or name in seen
                return known or self._is_own_variable(name, seen | {name})
            case ast.Call(func=ast.Name(id="type"), args=[first]):
                return self._is_own(first, seen)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *_]) if name in COPIES:
                return self._is_own(first, seen)
            case ast.Call(func=inner) | ast.Subscript(value=inner):
                return self._is_own(inner, seen)
            case ast.Attribute(value=owner, attr=name):
                return self._names_owner(self.types.get(name)) and self._is_own(owner, seen)
            case ast.IfExp(body=one, orelse=other):
                return self._is_own(one, seen) and self._is_own(other, seen)
            case ast.Constant(value=None):
                return True
        return False

    def _is_own_variable(self, name: str, seen: frozenset[str]) -> bool:
        """Whether the innermost function that binds a name binds it to own objects alone, or tests its class."""
        for function in reversed(self.functions):
            found = list(_bindings(function, name))
            if found:
                tests = [value for kind, value in found if kind == "test"]
                types = [value for kind, value in found if kind == "type"]
                values = [value for kind, value in found if kind == "value"]
                return any(value is not None and self._is_own(value, seen) for value in tests) or (
                    all(map(self._names_owner, types))
                    and all(value is not None and self._is_own(value, seen) for value in values)
                )
        return False


def _bindings(function: ast.AST, name: str) -> Iterator[tuple[str, ast.expr | None]]:
    """What a function binds a name to: ("value", what), ("type", annotation), or ("test", class of an isinstance)."""

    def binds(target: ast.AST | None) -> bool:
        return isinstance(target, ast.Name) and target.id == name

    for node in ast.walk(function):
        match node:
            case ast.arg(arg=argument, annotation=annotation) if argument == name:
                yield "type", annotation
            case ast.AnnAssign(target=target, annotation=annotation) if binds(target):
                yield "type", annotation
            case ast.Assign(targets=targets, value=value) if any(map(binds, targets)):
                yield "value", value
            case ast.NamedExpr(target=target, value=value) if binds(target):
                yield "value", value
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value) if binds(target):
                yield "value", value
            case ast.Tuple(elts=targets, ctx=ast.Store()) if any(map(binds, targets)):
                yield "value", None
            case ast.withitem(optional_vars=target) if binds(target):
                yield "value", None
            case ast.Call(func=ast.Name(id="isinstance"), args=[target, kind]) if binds(target):
                yield "test", kind
