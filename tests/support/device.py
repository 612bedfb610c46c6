"""Arrays of another library than NumPy: strict array API on a device of its own, or torch or JAX by OCREP_ARRAYS."""

import os

import numpy as np

LIBRARY = os.environ.get("OCREP_ARRAYS", "array_api_strict")

if LIBRARY == "torch":
    import torch
    from array_api_compat import torch as xp

    DEVICE = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
elif LIBRARY == "jax":
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as xp

    DEVICE = jax.devices()[0]
else:
    import array_api_strict as xp

    DEVICE = xp.Device("device1")


def on_device(array, dtype=None):
    """The array in the library under test; floats become float64 unless a dtype is named."""
    array = np.asarray(array)
    dtype = dtype or (xp.float64 if array.dtype.kind == "f" else xp.int64)
    return xp.reshape(xp.asarray(array.tolist(), dtype=dtype, device=DEVICE), array.shape)


def to_numpy(array):
    """Fetch an array, which must lie where the rows lay."""
    assert isinstance(array, type(on_device([0.0])))
    assert array.device == DEVICE
    if LIBRARY == "torch":
        return array.cpu().numpy()
    if LIBRARY == "jax":
        return np.asarray(array)
    return np.asarray(xp.asarray(array, device=xp.Device("CPU_DEVICE"))._array)
