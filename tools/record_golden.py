"""Record the golden fits again: `python tools/record_golden.py tests/golden/fits.npz`.

Do so only when a result is meant to change, and say in the commit which ones did and why.
"""

import inspect
import json
import sys
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import ocrep

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from golden.cases import CASES, PARAMETERS, run
from golden.rows import PROBLEMS, fingerprint


def check_parameters() -> None:
    """Raise unless the cases give every parameter, so that defaults may change."""
    for name, given in PARAMETERS.items():
        missing = sorted(set(inspect.signature(getattr(ocrep, name)).parameters) - set(given))
        if missing:
            raise ValueError(f"The cases must give every parameter of {name}, and {missing} are missing.")


def packed(results: dict[str, dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Pack each case into one vector, since a small array has a long header; "layout" says what lies where."""
    layout = {
        name: [(key, values.dtype.str, values.shape) for key, values in found.items()]
        for name, found in results.items()
    }
    vectors = {
        name: np.concatenate([values.ravel().astype(np.float64) for values in found.values()])
        for name, found in results.items()
    }
    data = {name: fingerprint(name) for name in PROBLEMS}
    return {**vectors, "layout": np.array(json.dumps(layout)), "data": np.array(json.dumps(data))}


if __name__ == "__main__":
    check_parameters()
    with threadpool_limits(1):
        results = {name: run(case) for name, case in CASES.items()}
    np.savez_compressed(Path(sys.argv[1]), **packed(results))
