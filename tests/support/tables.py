"""One table of rows for tests that pass it on as a data frame, in parts or by column."""

import numpy as np
import pandas as pd
from support.problems import smooth_problem

INPUTS = list("abcd")


def table_of_rows(n_rows):
    """Inputs, a smooth target, labels as texts and as numbers, and whole weights of which some are zero."""
    X, y = smooth_problem(n_rows, len(INPUTS))
    frame = pd.DataFrame(X, columns=INPUTS)
    frame["y"] = y
    frame["label"] = np.array(["no", "some", "yes"])[(y > 0).astype(int) + (y > 0.7)]
    frame["number"] = (y > 0.2).astype(int)
    frame["weight"] = np.random.default_rng(1).integers(0, 4, n_rows).astype(float)
    return frame
