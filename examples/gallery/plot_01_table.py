"""
A table with text, dates and gaps
=================================

``TableRegressor`` takes a data frame as it is. Here it predicts the weight of penguins from the raw notes of those who
measured them: species, island, the date of the egg, isotopes in the blood, and comments.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import KFold, cross_val_predict

from ocrep import PinvRegressorCV, TableRegressor
from ocrep.datasets import load_penguins

frame = load_penguins().dropna(subset=["Body Mass (g)"])
X, y = frame.drop(columns="Body Mass (g)"), frame["Body Mass (g)"].to_numpy()
X.iloc[:3, 2:9]

# %%
# Nothing is prepared. Columns that tell nothing are left out, and gaps are inputs too.
network = PinvRegressorCV("quick", random_state=0)
model = TableRegressor(network, random_state=0).fit(X, y)
print("not used:", model.left_out_)
print("gaps:", model.gaps_)

# %%
# The coder names what it made of each column.
names = model.coder_.get_feature_names_out()
for column in ("Date Egg", "Sex", "Comments"):
    place = list(X.columns).index(column)
    print(f"{column}: {', '.join(names[model.coder_.origin_ == place])}")

# %%
# All that is learned is learned in ``fit``, so ``cross_val_predict`` shows birds that the model has not seen.
predicted = cross_val_predict(model, X, y, cv=KFold(5, shuffle=True, random_state=0))
print(f"R² on held-out birds: {1 - np.mean((y - predicted) ** 2) / np.var(y):.2f}")
fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
for species, rows in X.reset_index().groupby("Species").groups.items():
    ax.plot(predicted[rows], y[rows], ".", label=species.split(" (")[0])
ax.axline((4000, 4000), slope=1, color="0.6", linewidth=1)
ax.set(xlabel="predicted weight, g", ylabel="weight, g")
ax.legend()
plt.show()
