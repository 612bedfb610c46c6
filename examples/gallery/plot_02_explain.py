"""
Explain a model
===============

Which columns matter, what each of them does, and why one row is predicted as it is: here for the weight of penguins.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from ocrep import PinvRegressorCV, TableRegressor, explain
from ocrep.datasets import load_penguins

frame = load_penguins().dropna(subset=["Body Mass (g)"]).drop(columns="Comments")
X, y = frame.drop(columns="Body Mass (g)"), frame["Body Mass (g)"]
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = TableRegressor(PinvRegressorCV("quick", random_state=0), random_state=0).fit(X_train, y_train)
print(f"R² on held-out birds: {model.score(X_test, y_test):.2f}")

# %%
# Which columns matter: how much R² falls on held-out birds when the values of a column are permuted. Columns that say
# the same are permuted together; permuting one of them alone would show nothing.
importance = explain.importance(model, X_test, y_test)
importance.frame.head()

# %%
ax = importance.plot()
ax.figure.set_size_inches(7, 4)
plt.show()

# %%
# What a column does: the effect is accumulated from short intervals, in which birds stay as they are. Categories are
# bars, and gaps are one of them.
fig, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
explain.effect(model, X_train, "Flipper Length (mm)").plot(axes[0])
explain.effect(model, X_train, "Sex").plot(axes[1])
for ax in axes:
    ax.set_ylabel("effect on the weight, g")
plt.show()

# %%
# Why this bird: what each column adds to its prediction, from the mean of the training rows. The contributions add up
# exactly.
contributions = explain.contributions(model, X_test)
heaviest = int(contributions.predicted.argmax())
ax = contributions.plot(row=heaviest)
ax.figure.set_size_inches(7, 4)
plt.show()
