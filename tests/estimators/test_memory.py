"""H is never held whole: the peak memory of a large fit, measured in a process of its own."""

import subprocess
import sys

SCRIPT = """
import resource
import numpy as np
from ocrep import PinvRegressor

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # kB on Linux

PinvRegressor(300, random_state=0).fit(np.eye(10), np.ones(10))  # so that libraries are loaded
X = np.random.default_rng(0).uniform(-1, 1, size=(1_000_000, 10))
y = np.sin(X[:, 0])
before = peak()
PinvRegressor(300, random_state=0).fit(X, y)
print(peak() - before)
"""


def test_a_million_rows_stay_under_600_megabytes():
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 600
