"""
An ill-posed problem
====================

A signal was blurred, and noise was added. Undoing the blur is a least-squares problem with a condition number
of 10¹⁰ and
more. ``TikhonovRegressor`` regularizes it; the rules for inverse problems choose γ.
"""

import matplotlib.pyplot as plt
import numpy as np

from ocrep import TikhonovRegressor

n = 200
t = np.linspace(0, 1, n)
blur = np.exp(-0.5 * ((t[:, None] - t[None, :]) / 0.03) ** 2)
blur /= blur.sum(axis=1, keepdims=True)
signal = 1.0 * (np.abs(t - 0.3) < 0.1) + np.maximum(0, 1 - np.abs(t - 0.7) / 0.12)
measured = blur @ signal + 0.005 * np.random.default_rng(0).standard_normal(n)

# %%
# The blur is the matrix of features, and the signal the vector of weights. There is no constant to fit.
model = TikhonovRegressor(gamma="gcv", fit_intercept=False).fit(blur, measured)
print(f"condition number {model.condition_number_:.0e} before, {model.regularized_condition_number_:.0e} after")
fig, axes = plt.subplots(2, 2, figsize=(8, 5), layout="constrained", sharex=True, sharey=True)
for ax, rule in zip(axes.flat, ("gcv", "lcurve", "quasi_optimality", "evidence"), strict=True):
    found = model.with_gamma(rule)
    ax.plot(t, signal, color="0.7", label="signal")
    ax.plot(t, measured, ":", color="0.5", label="measured")
    ax.plot(t, found.coef_, color="C1", label="recovered")
    ax.set_title(f"{rule}, γ = {found.gamma_:.1e}", fontsize=10)
axes[0, 0].legend(fontsize=8)
plt.show()
