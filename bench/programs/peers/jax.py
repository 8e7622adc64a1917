"""JAX: value and derivative as one jitted function; a call is over when its results are there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from bench.problems import Data
from bench.programs.tools import bound
from bench.programs.workload import Workload
from bench.tools.jax import FUNCTIONS

__all__ = ["array", "function"]

array = jnp.asarray


def function(workload: Workload, data: Data) -> Callable[..., Any]:
    program, inputs = bound(workload, FUNCTIONS, data), tuple(range(len(data.inputs)))

    def gradient(*arrays: Any) -> Any:
        value, grads = jax.value_and_grad(program, inputs)(*arrays)
        return value, *grads

    def items(*arrays: Any) -> Any:
        value, pull = jax.vjp(lambda *own: program(*own, *arrays[len(inputs) :]), *arrays[: len(inputs)])
        return value, *pull(jnp.ones_like(value))

    @jax.vmap
    def jacobian(*arrays: Any) -> Any:
        return program(*arrays), *jax.jacrev(program, inputs)(*arrays)

    compiled = jax.jit({"gradient": gradient, "items": items, "jacobian": jacobian}[workload.derivative])
    return lambda *arrays: jax.block_until_ready(compiled(*arrays))
