"""
Features that do not fit in memory
==================================

``ocrep.scan`` reads files, arrays on disk and streams block by block. The answer is that of ``fit`` on all rows
at once.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ocrep
from ocrep import PinvRegressor

folder = tempfile.TemporaryDirectory()
rows = np.lib.format.open_memmap(Path(folder.name, "rows.npy"), mode="w+", dtype=np.float32, shape=(200_000, 12))
rng = np.random.default_rng(0)
for start in range(0, len(rows), 20_000):
    block = rng.uniform(-1, 1, (20_000, 12)).astype(np.float32)
    block[:, -1] = np.sin(3 * block[:, 0]) * block[:, 1] + 0.1 * rng.standard_normal(20_000)
    rows[start : start + 20_000] = block
rows.flush()

# %%
# Arrays on disk go into ``fit`` as they are. For files of rows, ``ocrep.scan("data/*.parquet", target="y")``
# does the same.
on_disk = np.load(Path(folder.name, "rows.npy"), mmap_mode="r")
model = PinvRegressor(300, weight_init="pairs", units_see=2, random_state=0).fit(
    ocrep.scan(on_disk[:, :-1], on_disk[:, -1])
)
print(f"γ = {model.gamma_:.3g} from {model.factor_.counts.n_seen} rows")

# %%
# Predictions come block by block too.
errors = [
    np.mean((predicted - target) ** 2)
    for predicted, target in zip(
        model.predict_blocks(on_disk[start : start + 50_000, :-1] for start in range(0, 200_000, 50_000)),
        (on_disk[start : start + 50_000, -1] for start in range(0, 200_000, 50_000)),
        strict=True,
    )
]
print(f"RMSE {np.sqrt(np.mean(errors)):.3f}, of which 0.100 is noise")
some = on_disk[:500]
plt.figure(figsize=(4.5, 4), layout="constrained")
plt.scatter(some[:, -1], model.predict(some[:, :-1]), s=8)
plt.axline((0, 0), slope=1, color="grey", linestyle=":")
plt.gca().set(xlabel="target", ylabel="prediction")
plt.show()
folder.cleanup()
