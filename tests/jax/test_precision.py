"""JAX computes in single precision unless it is told otherwise: `make test-jax`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.problems import smooth_problem

from ocrep import PinvRegressor


def test_single_precision_is_refused_with_what_to_do():
    X, y = smooth_problem(30, 4)
    jax.config.update("jax_enable_x64", True)
    model = PinvRegressor(5, random_state=0).fit(jnp.asarray(X), jnp.asarray(y))
    jax.config.update("jax_enable_x64", False)
    try:
        single = jnp.asarray(X.astype(np.float32))
        for call in (lambda: PinvRegressor(5).fit(single, y), lambda: model.predict(single)):
            with pytest.raises(TypeError, match=r'jax\.config\.update\("jax_enable_x64", True\)'):
                call()
    finally:
        jax.config.update("jax_enable_x64", True)


def test_rows_fewer_than_features():
    X, y = smooth_problem(40, 4)
    model = PinvRegressor(100, gamma="kfold", fit_intercept=True, random_state=0)
    gamma, expected = model.fit(X, y).gamma_, model.predict(X)
    found = model.fit(jnp.asarray(X), jnp.asarray(y))
    np.testing.assert_allclose(found.gamma_, gamma, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(found.predict(jnp.asarray(X))), expected, rtol=1e-5)
