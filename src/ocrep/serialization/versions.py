"""`show_versions`: what a report of a bug should say about the machine and the libraries."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, requires, version

from joblib import cpu_count
from threadpoolctl import threadpool_info

from ocrep import __version__


def show_versions() -> None:
    """Print the versions of Python, ocrep and the libraries it can use, the BLAS, and the number of usable cores.

    See Also
    --------
    sklearn.show_versions : The same for scikit-learn.

    Examples
    --------
    >>> import ocrep
    >>> ocrep.show_versions()  # doctest: +ELLIPSIS
    ocrep: ...
    """
    width = max(len(name) for name, _ in _versions())
    for name, found in _versions():
        print(f"{name + ':':<{width + 1}} {found}")


def _versions() -> list[tuple[str, str]]:
    """Names and versions, in the order in which they are printed."""
    lines = [("ocrep", __version__), ("python", sys.version.replace("\n", " ")), ("system", platform.platform())]
    lines.append(("usable cores", str(cpu_count())))
    lines += [(name, _version(name)) for name in _libraries()]
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return lines + [
        ("BLAS", f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads") for pool in pools
    ]


def _libraries() -> list[str]:
    """Every library that ocrep requires, or uses if it is installed."""
    names = (_name(requirement) for requirement in requires("ocrep") or ())
    return list(dict.fromkeys(name for name in names if name != "ocrep"))


def _name(requirement: str) -> str:
    end = next(i for i, letter in enumerate(requirement + ";") if not (letter.isalnum() or letter in "-_."))
    return requirement[:end]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
