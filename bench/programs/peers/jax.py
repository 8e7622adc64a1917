"""JAX: value and derivative as one jitted function; a call is over when its results are there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from bench.problems import Data
from bench.programs.ode import STEP as ODE_STEP
from bench.programs.ode import slope
from bench.programs.pendulum import EFFORT, FRICTION, GRAVITY, STEP
from bench.programs.tools import bound
from bench.programs.workload import Workload
from bench.tools.jax import FUNCTIONS

__all__ = ["array", "function"]

array = jnp.asarray


def _pendulum(torques: Any) -> Any:
    def turn(state: Any, torque: Any) -> Any:
        angle, speed, total = state
        speed = speed + STEP * (torque - FRICTION * speed - GRAVITY * jnp.sin(angle))
        angle = angle + STEP * speed
        return (angle, speed, total + EFFORT * torque**2 + STEP * (1.0 + jnp.cos(angle))), None

    (angle, speed, total), _ = jax.lax.scan(turn, (0.0, 0.0, 0.0), torques)
    return total + 10.0 * (1.0 + jnp.cos(angle)) + speed * speed


def _ode(p: Any, y: Any, measured: Any) -> Any:
    h = ODE_STEP

    def turn(y: Any, wanted: Any) -> Any:
        k1 = slope(FUNCTIONS, y, p)
        k2 = slope(FUNCTIONS, y + 0.5 * h * k1, p)
        k3 = slope(FUNCTIONS, y + 0.5 * h * k2, p)
        k4 = slope(FUNCTIONS, y + h * k3, p)
        y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return y, ((y - wanted) ** 2).sum()

    return jax.lax.scan(turn, y, measured)[1].sum()


#: Programs whose loop of 200 turns its compiler would unroll for minutes, written with its own loop.
_LOOPS = {"pendulum": _pendulum, "ode": _ode}


def function(workload: Workload, data: Data) -> Callable[..., Any]:
    program = _LOOPS.get(workload.name) or bound(workload, FUNCTIONS, data)
    inputs = tuple(range(len(data.inputs)))

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
