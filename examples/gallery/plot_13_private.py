"""
Rows that may not travel
========================

Three hospitals want one model. Their rows must not leave the house, but a factor may: it has as many rows as columns,
whatever the number of patients.
"""

import matplotlib.pyplot as plt
import numpy as np

from ocrep import Factor, rules
from ocrep.datasets import load

X, y = load("abalone", return_X_y=True)
H = np.column_stack([(X - X.mean(0)) / X.std(0), np.ones(len(X))])
hospitals = np.array_split(np.arange(len(X)), 3)

# %%
# Each one sends the triangular factor of its own rows.
sent = [Factor.of(H[rows], y[rows]) for rows in hospitals]
print(
    [factor.spectrum().sigma.shape[0] for factor in sent],
    "singular values instead of",
    [len(r) for r in hospitals],
    "rows",
)

# %%
# The merge of the three is the factor of all rows, to the last digits.
merged = sent[0].merge(sent[1]).merge(sent[2]).spectrum()
whole = Factor.of(H, y).spectrum()
gamma = rules.resolve("gcv").choose(merged).gamma
print(
    f"γ = {gamma:.4g}, largest difference of weights {np.abs(merged.weights(gamma) - whole.weights(gamma)).max():.0e}"
)

# %%
# What a factor reveals: sums of squares and products of the columns, and so means and correlations. A column that is
# nonzero for one patient only reveals that patient. Agree on columns and on a least number of rows first.
figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
for number, factor in enumerate(sent, 1):
    axis.semilogy(factor.spectrum().sigma, ".-", label=f"hospital {number}")
axis.semilogy(merged.sigma, "k.-", label="all three, merged")
axis.set(xlabel="index", ylabel="singular value")
axis.legend()
plt.show()
