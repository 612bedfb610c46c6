"""The paper's eight data sets by name: `load` one, list their `names`, or read about them with `info`.

The package contains seven of them; Delta Ailerons is read from the folder in the environment variable `OCREP_DATA`,
or downloaded on first use. Only `load` imports NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ocrep.datasets.registry import DataSet, info, names

if TYPE_CHECKING:
    from ocrep.datasets.loader import load

__all__ = ["DataSet", "info", "load", "names"]


def __getattr__(name: str) -> Any:
    if name == "load":
        from ocrep.datasets.loader import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
