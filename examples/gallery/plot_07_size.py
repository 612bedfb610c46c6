"""
How many units?
===============

The first m units of a layer of M are the layer of m, so one factor holds every size, with exact cross-validation.
"""

import matplotlib.pyplot as plt

from ocrep import HiddenSizeDisplay, PinvRegressor
from ocrep.datasets import load

X, y = load("housing", return_X_y=True)
network = PinvRegressor(300, gamma="kfold", random_state=0).fit(X, y)
display = HiddenSizeDisplay.from_estimator(network, X, y, sizes=range(10, 301, 10))
display.figure_.set_size_inches(7, 3.5)
plt.show()

# %%
# ``n_hidden="auto"`` takes the best size.
model = PinvRegressor("auto", gamma="kfold", random_state=0).fit(X, y)
print(f"{model.n_hidden_} units, γ = {model.gamma_:.2g}")
