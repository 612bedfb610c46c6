"""
One γ per target
================

Encoding models predict thousands of responses, such as voxels of the brain, from the same features. Some responses
follow the features closely, and others are almost only noise, so that no single γ suits them all.
``gamma_per_target=True`` chooses one for each by exact cross-validation, from the decompositions that one γ needs.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import r2_score

from ocrep import TikhonovRegressor

rng = np.random.default_rng(0)
n_rows, n_features, n_targets = 800, 100, 2000
X = rng.standard_normal((n_rows, n_features))
noise = np.geomspace(1.0, 100.0, n_targets)
truth = X @ rng.standard_normal((n_features, n_targets))
Y = truth + noise * rng.standard_normal((n_rows, n_targets))
train, test = slice(0, 300), slice(300, None)

# %%
# One γ for all targets, and one for each. The folds are factored once, whatever the number of targets.
models = {"one γ": TikhonovRegressor(), "one γ per target": TikhonovRegressor(gamma_per_target=True)}
scores = {}
for name, model in models.items():
    begin = perf_counter()
    model.fit(X[train], Y[train])
    seconds = perf_counter() - begin
    scores[name] = r2_score(Y[test], model.predict(X[test]), multioutput="raw_values")
    print(f"{name:<16} mean R² {scores[name].mean():.3f}, worst {scores[name].min():.3f}, {seconds:.1f} s")

# %%
# The γ that a target gets grows with its noise, as the theory of ridge regression says: the best γ is the variance of
# the noise over that of the weights, which is 1 here. Where almost nothing can be learned, any large γ is as good.
one, each = (model.gamma_ for model in models.values())
fig, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
axes[0].loglog(noise, each, ".", markersize=3, label="one γ per target")
axes[0].loglog(noise, noise**2, color="black", label="variance of the noise")
axes[0].axhline(one, color="C1", label="one γ")
axes[0].set(xlabel="standard deviation of the noise", ylabel="γ")
axes[0].legend()
axes[1].semilogx(noise, scores["one γ per target"] - scores["one γ"], ".", markersize=3)
axes[1].axhline(0.0, color="black", linewidth=0.8)
axes[1].set(xlabel="standard deviation of the noise", ylabel="gain in R² on new rows")
plt.show()

# %%
# A γ per target is also a ridge regression per target: the model of any column is that of fitting it alone.
alone = TikhonovRegressor().fit(X[train], Y[train, 700])
print(np.allclose(alone.coef_, models["one γ per target"].coef_[700], rtol=1e-12, atol=0))
