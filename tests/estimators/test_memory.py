"""H is never held whole: the peak memory of a large fit, also on many workers, measured in a process of its own."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
import numpy as np
from ocrep import PinvRegressor
from ocrep._linalg import parallel

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # kB on Linux

gamma, solver, n_rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
model = PinvRegressor(300, gamma=gamma, solver=solver, random_state=0)
model.fit(np.eye(10), np.arange(10.0))  # so that libraries are loaded
X = np.random.default_rng(0).uniform(-1, 1, size=(n_rows, 10))
y = np.sin(X[:, 0])
parallel._blas_threads = lambda: 16
before = peak()
model.fit(X, y)
print(peak() - before)
"""


@pytest.mark.parametrize(
    ("gamma", "solver", "n_rows"), [("ocrep", "auto", 1_000_000), ("kfold", "auto", 700_000), ("ocrep", "qr", 300_000)]
)
def test_sixteen_workers_stay_under_400_megabytes(gamma, solver, n_rows):
    arguments = [sys.executable, "-c", SCRIPT, gamma, solver, str(n_rows)]
    run = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert float(run.stdout) < 400
