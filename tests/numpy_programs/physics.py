"""Simulations, and functions that optimisers are tried on."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numpy_programs.registry import draw, program, uniform


def advect(field: Any, up: Any, left: Any) -> Any:
    """Return a periodic field after a velocity moved it, by interpolation at where each cell came from."""
    rows, columns = field.shape
    y = np.arange(rows, dtype=up.dtype)[:, None] - up
    x = np.arange(columns, dtype=up.dtype) - left
    top, side = np.floor(y), np.floor(x)
    down, right = y - top, x - side
    i, j = top.astype(int) % rows, side.astype(int) % columns
    below, beside = (i + 1) % rows, (j + 1) % columns
    upper = (1 - right) * field[i, j] + right * field[i, beside]
    lower = (1 - right) * field[below, j] + right * field[below, beside]
    return (1 - down) * upper + down * lower


def without_divergence(up: Any, left: Any) -> Any:
    """Return a velocity without most of its sources, by Jacobi's iteration for the pressure."""
    sources = 0.5 * (np.roll(up, -1, axis=0) - np.roll(up, 1, axis=0) + np.roll(left, -1, 1) - np.roll(left, 1, 1))
    pressure = np.zeros_like(sources)
    for _ in range(4):
        around = sum(np.roll(pressure, shift, axis) for shift in (1, -1) for axis in (0, 1))
        pressure = 0.25 * (around - sources)
    up = up - 0.5 * (np.roll(pressure, -1, axis=0) - np.roll(pressure, 1, axis=0))
    return up, left - 0.5 * (np.roll(pressure, -1, axis=1) - np.roll(pressure, 1, axis=1))


@program(parameters=[draw(4, 5, scale=0.4), draw(4, 5, scale=0.4, seed=1)], data=[uniform(4, 5), uniform(4, 5, seed=1)])
def smoke_control(up: Any, left: Any, smoke: Any, target: Any) -> Any:
    """Squared distance of smoke from a target after a fluid carried it."""
    for _ in range(3):
        up, left = advect(up, up, left), advect(left, up, left)
        up, left = without_divergence(up, left)
        smoke = advect(smoke, up, left)
    return np.mean((smoke - target) ** 2)


@program(parameters=[draw(4, 6)], data=[uniform(4, 6, low=-0.1, high=0.1)])
def wing(logits: Any, lift: Any) -> Any:
    """Lift less drag of an obstacle in a wind, whose place the cells' occlusions say."""
    columns = np.arange(logits.shape[1])
    inside = (columns > 0) & (columns < columns[-1])
    free = 1.0 - np.where(inside, 1.0 / (1.0 + np.exp(-logits)), 0.0)
    up, left = lift, np.ones_like(lift) * 0.6
    for _ in range(3):
        up, left = without_divergence(up * free, left * free)
        up, left = advect(up, up, left), advect(left, up, left)
    return np.mean(up) - np.mean(np.square(left - 0.6))


@program(parameters=[draw(7)])
def rosenbrock(x: Any) -> Any:
    """Height of a bent valley."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


@program(parameters=[[1.3, 2.1, 0.4, 0.1]], data=[np.linspace(0, 3, 15), np.cos(np.linspace(0, 6, 15))])
def sinusoid_fit(wave: Any, times: Any, values: Any) -> Any:
    """Squared error of a sinusoid with a trend."""
    amplitude, frequency, phase, trend = wave
    return np.sum((amplitude * np.sin(frequency * times + phase) + trend * times - values) ** 2)


@program(parameters=[draw(5)], data=[draw(5, 5, seed=1, scale=0.5)])
def tanh_chain(x: Any, weights: Any) -> Any:
    """Result of many small layers, each a node of a deep graph."""
    for _ in range(10):
        x = np.tanh(np.dot(weights, x) + 0.1)
    return np.dot(x, x)
