"""Objectives of approximate inference and of decisions."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from tests.numpy_programs.likelihoods import squared_exponential
from tests.numpy_programs.registry import draw, program, uniform


def banana(x: Any) -> Any:
    """Return the log density of a bent normal distribution at each row."""
    return -0.5 * x[..., 0] ** 2 - 2.0 * (x[..., 1] - 0.5 * x[..., 0] ** 2) ** 2


@program(parameters=[draw(2), draw(2, seed=1, scale=0.3)], data=[draw(10, 2)])
def black_box_variational_inference(mean: Any, log_scale: Any, noise: Any) -> Any:
    """Evidence lower bound of a normal approximation, with fixed noise."""
    samples = mean + np.exp(log_scale) * noise
    return np.mean(banana(samples)) + np.sum(log_scale)


@program(parameters=[draw(3), draw(3, 3)], data=[draw(3, seed=1), draw(3, 3, seed=1, scale=0.3)])
def natural_gradient_step(mean: Any, factor: Any, slope: Any, curvature: Any) -> Any:
    """What a step along the natural gradient minimises: a linear model and the divergence from a standard normal."""
    lower = np.tril(factor, -1) + np.diag(np.exp(np.diag(factor)))
    precision = np.matmul(lower, np.transpose(lower))
    covariance = np.linalg.inv(precision)
    model = np.dot(slope, mean) + np.sum(curvature * (covariance + np.outer(mean, mean)))
    divergence = 0.5 * (np.trace(covariance) + mean @ mean + np.linalg.slogdet(precision)[1] - len(slope))
    return model + divergence / 0.3


@program(
    parameters=[draw(5, 3, scale=0.5), draw(3), draw(3, 4, scale=0.5), draw(2, 5), draw(5)],
    data=[(uniform(6, 5) > 0.5) * 1.0, draw(6, 2)],
)
def variational_autoencoder(
    encoder: Any, bias: Any, heads: Any, decoder: Any, shift: Any, images: Any, noise: Any
) -> Any:
    """Evidence lower bound of binary images."""
    mean, log_scale = np.split(np.tanh(images @ encoder + bias) @ heads, 2, axis=1)
    logits = (mean + np.exp(log_scale) * noise) @ decoder + shift
    likelihood = np.sum(images * logits - np.logaddexp(0, logits), axis=1)
    divergence = np.sum(0.5 * (np.exp(2 * log_scale) + mean**2 - 1) - log_scale, axis=1)
    return np.mean(likelihood - divergence)


@program(parameters=[uniform(3, 2, high=3.0, seed=1)], data=[uniform(7, 2, high=3.0), draw(7)])
def expected_improvement(candidates: Any, points: Any, values: Any) -> Any:
    """Expected improvement of candidates over the best value, under a Gaussian process."""
    covariance = squared_exponential(points, points, 1.0, 0.9) + 0.01 * np.eye(len(points), dtype=points.dtype)
    cross = squared_exponential(candidates, points, 1.0, 0.9)
    mean = cross @ np.linalg.solve(covariance, values)
    variance = 1.01 - np.sum(cross * np.transpose(np.linalg.solve(covariance, np.transpose(cross))), axis=1)
    scale = np.sqrt(variance)
    z = (mean - np.max(values)) / scale
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return np.sum(scale * (z * 0.5 * (1 + special.erf(z / np.sqrt(2))) + density))


@program(parameters=[draw(2), draw(2, seed=1), -1.5])
def leapfrog_energy(position: Any, momentum: Any, log_step: Any) -> Any:
    """Error of the energy after steps of Hamiltonian Monte Carlo."""

    def force(x: Any) -> Any:
        bend = x[1] - 0.5 * x[0] ** 2
        return np.stack([-x[0] + 4.0 * bend * x[0], -4.0 * bend])

    step, before = np.exp(log_step), 0.5 * np.dot(momentum, momentum) - banana(position)
    for _ in range(5):
        momentum = momentum + 0.5 * step * force(position)
        position = position + step * momentum
        momentum = momentum + 0.5 * step * force(position)
    return 0.5 * np.dot(momentum, momentum) - banana(position) - before


@program(parameters=[draw(5, 2), draw(4, 2, seed=1)])
def optimal_transport(sources: Any, targets: Any) -> Any:
    """Cost of moving points onto others with a penalty on certainty, by Sinkhorn's iteration."""
    costs = np.sum((sources[:, None] - targets[None]) ** 2, axis=2)
    rows, columns = -np.log(len(sources)), -np.log(len(targets))
    g = np.zeros_like(costs[0])
    for _ in range(6):
        f = rows - np.logaddexp.reduce(g - costs, axis=1)
        g = columns - np.logaddexp.reduce(f[:, None] - costs, axis=0)
    return np.sum(np.exp(f[:, None] + g - costs) * costs)
