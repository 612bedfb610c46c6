"""
Why the pseudoinverse explodes
==============================

Without regularization, a random hidden layer works until it has about as many units as there are rows. Then the error
explodes. A small γ, chosen from the spectrum, prevents it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from ocrep import PinvRegressor
from ocrep.datasets import load

X, y = load("machine_cpu", return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)

# %%
# One fit per size gives every rule: ``with_gamma`` changes γ without the data.
sizes = [5, 10, 20, 40, 60, 80, 100, 120, 140, 160, 200, 300]
errors = {"none": [], "ocrep": [], "ocrep_cv": []}
for size in sizes:
    model = PinvRegressor(size, gamma="ocrep_cv", fit_intercept=False, direct_link=False, random_state=0)
    model.fit(X_train, y_train)
    for rule, found in errors.items():
        found.append(np.sqrt(np.mean((model.with_gamma(rule).predict(X_test) - y_test) ** 2)))

# %%
# The training set has 146 rows. The plain pseudoinverse fails there, and recovers only slowly beyond.
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
for (rule, found), style in zip(errors.items(), ("--", "-", "-"), strict=True):
    ax.semilogy(sizes, found, style, marker=".", label=f'gamma="{rule}"')
ax.axvline(len(y_train), color="0.7", zorder=0)
ax.set(xlabel="hidden units", ylabel="test error (RMSE)")
ax.legend()
plt.show()
