"""H is never held whole, at least 480 MB here: the peak memory of a fit by 16 workers, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import resource, sys

sys.path.insert(0, sys.argv[4])
import numpy as np
from ocrep import PinvRegressor
from support.workers import use_workers

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # kB on Linux

gamma, solver, n_rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
model = PinvRegressor(300, gamma=gamma, solver=solver, random_state=0)
model.fit(np.eye(10), np.arange(10.0))  # so that libraries are loaded
X = np.random.default_rng(0).uniform(-1, 1, size=(n_rows, 10))
y = np.sin(X[:, 0])
use_workers(16)
before = peak()
model.fit(X, y)
print(peak() - before)
"""


@pytest.mark.parametrize(
    ("gamma", "solver", "n_rows"), [("ocrep", "auto", 400_000), ("kfold", "auto", 400_000), ("ocrep", "qr", 200_000)]
)
def test_sixteen_workers_stay_under_400_megabytes(gamma, solver, n_rows):
    arguments = [sys.executable, "-c", SCRIPT, gamma, solver, str(n_rows), str(Path(__file__).parents[1])]
    run = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert float(run.stdout) < 400
