"""Arrays of another library than NumPy: recognised, and checked without copying them to the host."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj, is_jax_array, is_numpy_array

from ocrep._linalg.arrays import Array, array_namespace, device_of, to_device_of, to_host


def on_device(X: Any) -> bool:
    """Whether X is an array of another library than NumPy, which scikit-learn's own checks would copy to the host."""
    if is_array_api_obj(X):
        if is_numpy_array(X):
            return False
        _check_double_precision(X)
        return hasattr(array_namespace(X), "float64")
    if hasattr(X, "__cuda_array_interface__"):
        raise TypeError(
            f"X is on a GPU as a {type(X).__name__}, which is not an array of torch or CuPy: install torch and give "
            "torch.as_tensor(X), or copy X to the host as a NumPy array."
        )
    return False


def _check_double_precision(X: Array) -> None:
    """Raise for arrays whose library, or device, turns float64 into float32 or refuses it."""
    if is_jax_array(X) and np.dtype(array_namespace(X).result_type(float)) != np.float64:
        raise TypeError(
            "X is a JAX array, and JAX computes in single precision unless it is told otherwise: call "
            'jax.config.update("jax_enable_x64", True) before the first array is made.'
        )
    if str(device_of(X)).startswith("mps"):
        raise TypeError("X is on Apple's MPS, which has no float64, and γ needs it: give X.cpu(), or a NumPy array.")


def as_real(values: Array, name: str) -> Array:
    """Whole numbers as float64; float16, whose eleven bits no answer here could honour, and complex are refused."""
    xp = array_namespace(values)
    if xp.isdtype(values.dtype, ("bool", "integral")):
        return xp.astype(values, xp.float64)
    if values.dtype not in (xp.float32, xp.float64):
        raise ValueError(f"{name} has dtype {values.dtype}: convert it to float32 or float64.")
    return values


def beside(name: str, values: Any, X: Array) -> Array:
    """Targets or weights where X is: those of other libraries and devices follow X, as in scikit-learn."""
    if is_array_api_obj(values) and not is_numpy_array(values):
        return values if _place_of(values) == _place_of(X) else to_device_of(X, to_host(values))
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


def check_place(call: str, trained: Array, X: Any) -> None:
    """Raise unless X is of the library and on the device of what was trained; `call` says what X was given to."""
    theirs = _place_of(X) if on_device(X) else None
    mine = None if isinstance(trained, np.ndarray) else _place_of(trained)
    if mine != theirs:
        raise ValueError(
            f"X of {call} must use the same namespace and device as in training, which was on {_told(mine)}, but X is "
            f"on {_told(theirs)}: move it there."
        )


def _place_of(values: Array) -> tuple[Any, Any]:
    return array_namespace(values), device_of(values)


def _told(place: tuple[Any, Any] | None) -> str:
    return "the host with NumPy" if place is None else f"{place[1]} with {place[0].__name__}"


def host_array(values: Any) -> Any:
    """Arrays of other libraries as NumPy's, all else as it is."""
    return to_host(values) if is_array_api_obj(values) and not is_numpy_array(values) else values
