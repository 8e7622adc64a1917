"""JAX: value and gradients as one function, compiled ahead; a call is over when its results are there."""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bench.problems import Data, Problem
from bench.tools.functions import like_numpy
from bench.tools.manual import result

__all__ = ["FUNCTIONS", "GRADIENTS", "prepare", "result"]

GRADIENTS = True
FUNCTIONS = like_numpy(
    jnp, sigmoid=jax.nn.sigmoid, relu=jax.nn.relu, softmax=jax.nn.softmax, logsumexp=jax.scipy.special.logsumexp,
    constant=jax.lax.stop_gradient, sqrt=jnp.sqrt, erf=jax.scipy.special.erf, stack=jnp.stack, cat=jnp.concatenate,
    eye=jnp.eye, diagonal=jnp.diagonal, inv=jnp.linalg.inv, cholesky=jnp.linalg.cholesky,
    solve_lower=partial(jax.scipy.linalg.solve_triangular, lower=True),
)  # fmt: skip
jax.config.update("jax_enable_x64", True)


def prepare(problem: Problem, data: Data) -> Callable[[], Any]:
    inputs = tuple(map(jnp.asarray, data.inputs))
    # Arrays are arguments, as a training step's batch is; numbers are known when the function is compiled.
    arrays = tuple(jnp.asarray(value) for value in data.constants if isinstance(value, np.ndarray))

    def loss(inputs: Any, arrays: Any) -> Any:
        given = iter(arrays)
        constants = [next(given) if isinstance(value, np.ndarray) else value for value in data.constants]
        return problem.program(FUNCTIONS, *inputs, *constants)

    function = jax.jit(jax.value_and_grad(loss)).lower(inputs, arrays).compile()
    return lambda: jax.block_until_ready(function(inputs, arrays))
