"""Neural networks for tables, trained in closed form, with the regularization chosen by exact cross-validation.

The public names are those of `__init__.pyi`. Each is imported when first used (PEP 562), so `import ocrep` is fast.
"""

import ast
from importlib import import_module

__version__ = "0.1.0"

with open(f"{__path__[0]}/__init__.pyi", encoding="utf-8") as _stub:
    _HOMES = {
        alias.name: statement.module
        for statement in ast.parse(_stub.read()).body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'ocrep' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    if name in vars(home) or ("__getattr__" in vars(home) and home.__name__ != __name__):
        return getattr(home, name)
    return import_module(f"{home.__name__}.{name}")


def __dir__() -> list[str]:
    return __all__
