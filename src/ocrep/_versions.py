"""`show_versions`: what a report of a bug should say about the machine and the libraries."""

from __future__ import annotations

import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version

import scipy.linalg  # noqa: F401 (a BLAS is listed once it is loaded, and SciPy may bring its own)
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
    lines = [
        ("ocrep", __version__),
        ("python", sys.version.replace("\n", " ")),
        ("system", platform.platform()),
        ("usable cores", str(cpu_count())),
    ]
    # A library may be required by several extras; "ocrep" itself is, because one extra may contain others.
    names = dict.fromkeys(re.split(r"[^\w.-]", requirement)[0] for requirement in requires("ocrep") or ())
    for name in names:
        if name != "ocrep":
            try:
                lines.append((name, version(name)))
            except PackageNotFoundError:
                lines.append((name, "not installed"))
    lines += [
        ("BLAS", f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads")
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]
    width = max(len(name) for name, _ in lines)
    for name, found in lines:
        print(f"{name + ':':<{width + 1}} {found}")
