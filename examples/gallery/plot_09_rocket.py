"""
A head for ROCKET-style features
================================

Random convolutions turn a time series into thousands of features, and a linear classifier does the rest. Usually that
is ``RidgeClassifierCV``. ``TikhonovClassifier`` takes its place, with probabilities, and needs no grid of γ.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import log_loss

from ocrep import TikhonovClassifier

rng = np.random.default_rng(0)
n_rows, length, n_kernels = 600, 150, 500


def series(label):
    """Noise with a bump whose shape tells the class."""
    t = np.arange(length)
    start = rng.integers(20, 100)
    shape = np.sin((0.25 + 0.1 * label) * (t - start)) * np.exp(-(((t - start - 15) / 12) ** 2))
    return shape + 0.6 * rng.standard_normal(length)


labels = rng.integers(0, 3, n_rows)
X = np.stack([series(label) for label in labels])

figure, axes = plt.subplots(3, 1, figsize=(6, 3.6), layout="constrained", sharex=True)
for label, axis in enumerate(axes):
    axis.plot(X[labels == label][0])
    axis.set(ylabel=f"class {label}")
plt.show()


# %%
# Two features per kernel: the largest response, and the share of positive ones.
def rocket(X, seed=0):
    """Random dilated convolutions of each row."""
    rng = np.random.default_rng(seed)
    features = []
    for _ in range(n_kernels):
        dilation = 2 ** rng.integers(0, 4)
        kernel = rng.standard_normal(9)
        taps = np.zeros(8 * dilation + 1)
        taps[::dilation] = kernel - kernel.mean()
        response = np.apply_along_axis(np.convolve, 1, X, taps, mode="valid") + rng.uniform(-1, 1)
        features += [response.max(axis=1), (response > 0).mean(axis=1)]
    return np.column_stack(features)


F = rocket(X)
F = (F - F[:300].mean(axis=0)) / F[:300].std(axis=0)
print(F.shape)

# %%
# 300 rows and 1,000 features: fewer rows than columns, which is solved in as many dimensions as there are rows.
models = {
    "RidgeClassifierCV": RidgeClassifierCV(np.logspace(-3, 3, 10)),
    "TikhonovClassifier": TikhonovClassifier(gamma="loo", calibrate="loo"),
}
for name, model in models.items():
    begin = perf_counter()
    model.fit(F[:300], labels[:300])
    seconds = perf_counter() - begin
    print(f"{name:<19} accuracy {model.score(F[300:], labels[300:]):.3f}, {1000 * seconds:.0f} ms")
probabilities = models["TikhonovClassifier"].predict_proba(F[300:])
print(f"log-loss {log_loss(labels[300:], probabilities):.3f}, that of guessing {np.log(3):.3f}")
