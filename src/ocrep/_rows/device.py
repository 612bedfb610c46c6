"""Arrays of another library than NumPy: recognised, and checked without copying them to the host."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj, is_numpy_array

from ocrep._linalg.arrays import Array, array_namespace, device_of, to_device_of


def on_device(X: Any) -> bool:
    """Whether X is an array of another library than NumPy, which scikit-learn's own checks would copy to the host."""
    if is_array_api_obj(X):
        return not is_numpy_array(X) and hasattr(array_namespace(X), "float64")
    if hasattr(X, "__cuda_array_interface__"):
        raise TypeError(
            f"X is on a GPU as a {type(X).__name__}, which is not an array of torch or CuPy: install torch and give "
            "torch.as_tensor(X), or copy X to the host as a NumPy array."
        )
    return False


def as_real(values: Array, name: str) -> Array:
    """Whole numbers as float64; float16, whose eleven bits no answer here could honour, and complex are refused."""
    xp = array_namespace(values)
    if xp.isdtype(values.dtype, ("bool", "integral")):
        return xp.astype(values, xp.float64)
    if values.dtype not in (xp.float32, xp.float64):
        raise ValueError(f"{name} has dtype {values.dtype}: convert it to float32 or float64.")
    return values


def beside(name: str, values: Any, X: Array) -> Array:
    """Targets or weights where X is: those on the host follow X, as in scikit-learn; those elsewhere raise."""
    if is_array_api_obj(values) and not is_numpy_array(values):
        check_same_device(name, values, X)
        return values
    array = np.asarray(values)
    if array.dtype.kind not in "biu" and array.dtype != np.float32:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"X is on {device_of(X)}, and {name} holds texts or objects, which cannot follow it: encode {name} as "
                "numbers first."
            ) from None
    return to_device_of(X, array)


def check_same_device(name: str, values: Any, X: Array) -> None:
    """Raise unless `values` are of the library of X and on its device."""
    same = is_array_api_obj(values) and array_namespace(values) == array_namespace(X)
    if not same or device_of(values) != device_of(X):
        where = f"on {device_of(values)}" if same else f"a {type(values).__module__}.{type(values).__name__}"
        mine = f"a {type(X).__module__}.{type(X).__name__} on {device_of(X)}"
        raise ValueError(f"X is {mine}, but {name} is {where}: move it to the device of X.")
