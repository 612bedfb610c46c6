"""
Deep, wide, many
================

Is one hidden layer enough? Stacked random layers, a bag of networks and random Fourier features, side by side.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import BaggingRegressor
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocrep import PinvRegressor, RandomLayer, TikhonovRegressor
from ocrep.datasets import load

X, y = load("abalone", return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
models = {
    "wide: 500 units": PinvRegressor(500, random_state=0),
    "deep: 200 units on 200 units": make_pipeline(RandomLayer(200, random_state=1), PinvRegressor(200, random_state=0)),
    "many: a bag of 10 networks of 100": BaggingRegressor(PinvRegressor(100), n_estimators=10, random_state=0),
    "Fourier: 500 features": make_pipeline(
        StandardScaler(), RBFSampler(gamma=0.05, n_components=500, random_state=0), TikhonovRegressor()
    ),
}
times, errors = {}, {}
for name, model in models.items():
    begin = perf_counter()
    model.fit(X_train, y_train)
    times[name] = perf_counter() - begin
    errors[name] = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
    print(f"{name:<34} error {errors[name]:.3f}, time {times[name] / times['wide: 500 units']:.1f}")

# %%
# On tables of this size the differences are small: one wide layer is hard to beat for its time.
figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, error in errors.items():
    axis.plot(times[name], error, "o", label=name)
axis.set(xlabel="seconds of fitting", ylabel="test error (RMSE)", xscale="log")
axis.legend()
plt.show()
