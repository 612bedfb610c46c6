"""
Reading the report
==================

``ocrep.report`` writes one offline HTML page about a network on a table. This example shows its two main pictures.
"""

import matplotlib.pyplot as plt

from ocrep import ConditionDisplay, PinvRegressor, SpectrumDisplay
from ocrep.datasets import load

X, y = load("housing", return_X_y=True)
model = PinvRegressor(100, random_state=0).fit(X, y)

# %%
# **The spectrum.** Singular values that fall slowly: every direction of H carries information. A cliff: the
# directions
# beyond it are noise, and γ must damp them.
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
SpectrumDisplay.from_estimator(model, ax=ax)
plt.show()

# %%
# **The condition number** against γ, with the chosen γ marked. Left of its minimum predictions become sensitive
# to noise,
# right of it the network becomes too smooth.
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ConditionDisplay.from_estimator(model, ax=ax)
plt.show()
