"""
Which rule for γ?
=================

All rules read one factorisation, so the network is trained once for all of them.
"""

import matplotlib.pyplot as plt

from ocrep import GammaPathDisplay, PinvRegressor, compare_rules
from ocrep.datasets import load

X, y = load("housing", return_X_y=True)
table = compare_rules(X, y, n_hidden=100, random_state=0)
print(table.head(8))

# %%
# The curve shows why rules differ little here: the error is flat around its minimum. OCReP takes the γ of the best
# conditioning, cross-validation that of the least held-out error, and ``ocrep_cv`` the best-conditioned γ that
# cross-validation cannot tell from its best.
model = PinvRegressor(100, gamma="kfold", random_state=0).fit(X[::2], y[::2])
display = GammaPathDisplay.from_estimator(model, X[::2], y[::2], X_test=X[1::2], y_test=y[1::2])
display.figure_.set_size_inches(7, 3.5)
plt.show()
