"""
A network without a training loop
=================================

One hidden layer, output weights in closed form, everything else chosen by exact cross-validation.
"""

import matplotlib.pyplot as plt
import numpy as np

from ocrep import PinvRegressor

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-3, 3, 200))[:, None]
y = np.sinc(x[:, 0]) + 0.1 * rng.standard_normal(200)

# %%
# ``fit`` draws 200 sigmoid units, forms the matrix H of their outputs, and solves one linear problem. γ is chosen by
# exact three-fold cross-validation, from one small factor of H.
model = PinvRegressor(200, weight_scale=4.0, random_state=0).fit(x, y)
print(f"γ = {model.gamma_:.2g}, condition number {model.regularized_condition_number_:.0f}")

# %%
# The prediction comes with a standard deviation.
new = np.linspace(-3.5, 3.5, 400)[:, None]
mean, std = model.predict(new, return_std=True)
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(x, y, ".", color="0.6", label="training rows")
ax.plot(new, mean, color="C0", label="network")
ax.fill_between(new[:, 0], mean - 2 * std, mean + 2 * std, color="C0", alpha=0.2, label="± 2 standard deviations")
ax.set(xlabel="input", ylabel="target")
ax.legend()
plt.show()
