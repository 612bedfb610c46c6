"""
Which inputs matter
===================

A random layer mixes all inputs. Where only a few of them matter, it drowns these among the others. With
``metric="diagonal"`` a network learns a factor for each input, and multiplies the scaled inputs by it before the units
see them.
"""

import matplotlib.pyplot as plt
import numpy as np

from ocrep import PinvRegressor

rng = np.random.default_rng(0)
matter = [4, 11, 17, 23]  # of 30 inputs


def draw(n_rows):
    X = rng.uniform(-1, 1, (n_rows, 30))
    a, b, c, d = X[:, matter].T
    return X, np.sin(3 * a) + 2 * b**2 + c + c * d + 0.1 * rng.standard_normal(n_rows)


X, y = draw(1500)
X_test, y_test = draw(3000)

# %%
# The noise has a deviation of 0.1, so no model can do better than that.
models = {
    "random layer": PinvRegressor(random_state=0),
    "pairs": PinvRegressor(weight_init="pairs", random_state=0),
    "pairs, learned metric": PinvRegressor(weight_init="pairs", metric="diagonal", random_state=0),
}
errors = {}
for name, model in models.items():
    errors[name] = np.sqrt(np.mean((model.fit(X, y).predict(X_test) - y_test) ** 2))
    print(f"{name:22} RMSE on new rows {errors[name]:.3f}")

# %%
# ``metric_`` holds the factors. Their squares, as shares, say how much the network changes with each input. The factors
# begin with the importance of the inputs in a few trees. Then they are learned from the exact gradients of the network,
# and the layer is drawn again, here two times.
squares = models["pairs, learned metric"].metric_ ** 2
shares = squares / squares.sum()
print(f"share of the four inputs: {shares[matter].sum():.4f}")

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), width_ratios=[2, 1], layout="constrained")
left.bar(range(30), shares, color=["C0" if j in matter else "0.6" for j in range(30)])
left.set(xlabel="input", ylabel="share of the squared factors", xticks=[0, *matter, 29])
bars = right.barh(list(errors), list(errors.values()), color=["0.6", "0.6", "C0"])
right.bar_label(bars, fmt="%.2f", padding=3)
right.axvline(0.1, color="C3", linewidth=1, linestyle="--", label="noise")
right.set(xlabel="RMSE on new rows", xlim=(0, 1.3 * max(errors.values())))
right.invert_yaxis()
right.legend(loc="lower right")
plt.show()

# %%
# The shares are no test of significance, and an input that matters only together with others may get a small one: the
# fourth input above acts only through a product. ``metric="full"`` learns a matrix instead, which finds directions too.
