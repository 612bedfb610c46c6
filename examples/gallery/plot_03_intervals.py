"""
How sure is it?
===============

``calibrate="loo"`` keeps the exact leave-one-out residuals, and ``predict_interval`` turns them into intervals. No rows
are held back. Intervals are wider where leverage is high, and where errors are large.
"""

import matplotlib.pyplot as plt
import numpy as np

from ocrep import PinvRegressor

rng = np.random.default_rng(0)
x = np.sort(np.concatenate([rng.uniform(-3, 0, 150), rng.uniform(0, 3, 30)]))[:, None]
y = np.sin(2 * x[:, 0]) + 0.2 * rng.standard_normal(len(x))
model = PinvRegressor(100, gamma="kfold", weight_scale=3.0, calibrate="loo", random_state=0).fit(x, y)

# %%
# The interval is wider where training rows are rare: there the leverage is larger.
new = np.linspace(-3.2, 3.2, 300)[:, None]
interval = model.predict_interval(new, coverage=0.9)
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(x, y, ".", color="0.6", label="training rows")
ax.plot(new, model.predict(new), color="C0", label="network")
ax.fill_between(new[:, 0], *interval.T, color="C0", alpha=0.2, label="90 % interval")
ax.set(xlabel="input", ylabel="target", ylim=(-2, 2))
ax.legend()
plt.show()

# %%
# How many of new rows from the same source lie inside?
fresh = np.concatenate([rng.uniform(-3, 0, 5000), rng.uniform(0, 3, 1000)])[:, None]
truth = np.sin(2 * fresh[:, 0]) + 0.2 * rng.standard_normal(6000)
low, high = model.predict_interval(fresh, coverage=0.9).T
print(f"{100 * np.mean((low <= truth) & (truth <= high)):.1f} % of 6,000 new rows")
