"""The page of GPUs: its code runs smaller, on torch where the tests have it, else on a device of another library."""

from types import SimpleNamespace

import numpy as np
from support.device import DEVICE, LIBRARY, on_device, to_numpy, xp
from support.pages import blocks

from ocrep import PinvRegressor


def torch_by_array_api():
    """The functions of torch that the page calls, on the device of another array library."""

    def randn(*shape, device, dtype):
        assert device == "cuda"
        return on_device(np.random.default_rng(0).normal(size=shape), dtype)

    return SimpleNamespace(randn=randn, float64=xp.float64, sin=xp.sin, sum=lambda X, dim: xp.sum(X, axis=dim))


def test_arrays_on_a_device_are_fitted_as_the_page_of_gpus_says():
    names, smaller = {}, [("1_000_000", "2_000"), ("4096", "64")]
    if LIBRARY == "torch":
        smaller.append(('"cuda"', f'"{DEVICE.type}"'))
    else:
        names["torch"] = torch_by_array_api()
        smaller.append(("import torch\n", ""))  # other libraries look for that module
    (block,) = blocks("docs/gpu.md", "python no-run")
    block.run(names, smaller)
    X, y, model = (names[name] for name in ("X", "y", "model"))
    predicted = to_numpy(model.predict(X))  # they lie where the rows lay
    here = PinvRegressor(64, activation="tanh", random_state=0).fit(to_numpy(X), to_numpy(y))
    np.testing.assert_allclose(predicted, here.predict(to_numpy(X)), atol=1e-6)
