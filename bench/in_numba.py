"""A sampler and an optimiser as a whole in Numba's compiled code, against the same in Python, and in JAX.

``python -m bench.in_numba`` prints the table of docs/howto/numba.md. All three compute the same chain and the same
minimum, which is checked before anything is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tapegrad as tg
from tapegrad.program import Program

Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SIGMA = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
DRAWS, LEAPS, STEP = 2000, 10, 0.15
TURNS, RATE, MOMENTUM = 20_000, 1e-4, 0.9


def eight_schools(q: Any, xp: Any) -> Any:
    """Return the log density of Rubin's eight schools, not centred."""
    mu, log_tau, eta = q[0], q[1], q[2:]
    tau = xp.exp(log_tau)
    residuals = (Y - mu - tau * eta) / SIGMA
    prior = 0.5 * (eta * eta).sum() + 0.5 * (mu / 5.0) ** 2 + xp.log1p((tau / 5.0) ** 2)
    return log_tau - prior - 0.5 * (residuals * residuals).sum()


def rosenbrock(x: Any) -> Any:
    """Return Rosenbrock's function."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def sample(both: Any, q: Any, momenta: Any, uniforms: Any) -> Any:
    """Return a chain of Hamiltonian Monte Carlo (Neal, 2011); `both` returns gradient and log density."""
    chain = np.empty(momenta.shape)
    gradient, density = both(q)
    for n in range(len(momenta)):
        p, x, slope, there = momenta[n].copy(), q, gradient, density
        before = density - 0.5 * (p * p).sum()
        for _ in range(LEAPS):
            p = p + 0.5 * STEP * slope
            x = x + STEP * p
            slope, there = both(x)
            p = p + 0.5 * STEP * slope
        if np.log(uniforms[n]) < there - 0.5 * (p * p).sum() - before:
            q, gradient, density = x, slope, there
        chain[n] = q
    return chain


def descend(gradient: Any, x: Any, turns: int) -> Any:
    """Return where gradient descent with momentum ends."""
    v = np.zeros(x.shape)
    for _ in range(turns):
        v = MOMENTUM * v - RATE * gradient(x)
        x = x + v
    return x


def of_jax(momenta: Any, uniforms: Any) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """Return both as compiled functions of JAX, whose loops are `lax.scan` and `fori_loop`."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    both = jax.value_and_grad(lambda q: eight_schools(q, jnp))
    slope = jax.grad(rosenbrock)

    def draw(state: Any, given: Any) -> Any:
        q, gradient, density = state
        p, uniform = given
        before = density - 0.5 * (p * p).sum()

        def leap(_: Any, own: Any) -> Any:
            x, p, gradient, _ = own
            p = p + 0.5 * STEP * gradient
            x = x + STEP * p
            density, gradient = both(x)
            return x, p + 0.5 * STEP * gradient, gradient, density

        x, p, after, there = jax.lax.fori_loop(0, LEAPS, leap, (q, p, gradient, density))
        accepted = jnp.log(uniform) < there - 0.5 * (p * p).sum() - before
        state = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), (x, after, there), state)
        return state, state[0]

    @jax.jit
    def chain(q: Any) -> Any:
        density, gradient = both(q)
        return jax.lax.scan(draw, (q, gradient, density), (momenta, uniforms))[1]

    @jax.jit
    def minimum(x: Any) -> Any:
        def turn(_: Any, own: Any) -> Any:
            x, v = own
            v = MOMENTUM * v - RATE * slope(x)
            return x + v, v

        return jax.lax.fori_loop(0, TURNS, turn, (x, jnp.zeros(x.shape)))[0]

    return lambda: np.asarray(chain(np.zeros(10))), lambda x: np.asarray(minimum(x))


def report() -> str:
    """Return the table, in Markdown."""
    import numba

    rng = np.random.default_rng(0)
    momenta, uniforms, start = rng.normal(size=(DRAWS, 10)), rng.uniform(size=DRAWS), np.full(100, 0.5)
    both = Program.trace(tg.func.grad_and_value(lambda q: eight_schools(q, tg)), np.zeros(10))
    slope = Program.trace(tg.func.grad(rosenbrock), start)
    sampled, descended = numba.njit(sample), numba.njit(descend)
    ways: dict[str, list[Callable[[], Any]]] = {
        "`@njit` around `program.njit`": [
            lambda: sampled(both.njit, np.zeros(10), momenta, uniforms),
            lambda: descended(slope.njit, start, TURNS),
        ],
        "Python around `program`": [
            lambda: sample(both, np.zeros(10), momenta, uniforms),
            lambda: descend(slope, start, TURNS),
        ],
    }
    try:
        chain, minimum = of_jax(momenta, uniforms)
        ways["`jax.jit` of the whole"] = [chain, lambda: minimum(start)]
    except ImportError:
        pass
    first = next(iter(ways.values()))
    rows = ["| | HMC of eight schools | gradient descent |", "| --- | --- | --- |"]
    for functions in ways.values():
        for own, other in zip(functions, first, strict=True):
            np.testing.assert_allclose(own(), other(), rtol=1e-6, atol=1e-8)
    times = {name: [float("inf")] * 2 for name in ways}
    for _ in range(7):
        for name, functions in ways.items():
            for k, function in enumerate(functions):
                begin = time.perf_counter()
                function()
                times[name][k] = min(times[name][k], time.perf_counter() - begin)
    rows += [f"| {name} | {one * 1e3:.1f} ms | {two * 1e3:.1f} ms |" for name, (one, two) in times.items()]
    return "\n".join(rows)


if __name__ == "__main__":
    print(report())
