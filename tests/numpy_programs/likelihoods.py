"""Log likelihoods of statistical models."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from tests.numpy_programs.registry import draw, program, uniform

POINTS = uniform(9, 2, high=3.0)
CURVE = np.sin(POINTS[:, 0]) + 0.5 * POINTS[:, 1]
KERNEL = [0.3, -0.2, -1.5]


def squared_exponential(a: Any, b: Any, amplitude: Any, length: Any) -> Any:
    """Return the covariances of a smooth random function at each point of `a` with each of `b`."""
    gaps = (a[:, None, :] - b[None, :, :]) / length
    return amplitude * np.exp(-0.5 * np.sum(gaps**2, axis=-1))


@program(parameters=[KERNEL], data=[POINTS, CURVE])
def gaussian_process_by_cholesky(log_kernel: Any, points: Any, values: Any) -> Any:
    """Log marginal likelihood of values at points, by a factor of their covariance."""
    amplitude, length, noise = np.exp(log_kernel)
    covariance = squared_exponential(points, points, amplitude, length) + noise * np.eye(
        len(points), dtype=points.dtype
    )
    factor = np.linalg.cholesky(covariance)
    white = np.linalg.solve(factor, values)
    return -0.5 * np.dot(white, white) - np.sum(np.log(np.diag(factor))) - 0.5 * len(values) * np.log(2 * np.pi)


@program(parameters=[KERNEL], data=[POINTS, CURVE])
def gaussian_process_by_slogdet(log_kernel: Any, points: Any, values: Any) -> Any:
    """Log marginal likelihood of values at points, by the determinant of their covariance."""
    kernel = np.exp(log_kernel)
    noise = kernel[2] * np.eye(len(points), dtype=points.dtype)
    covariance = squared_exponential(points, points, kernel[0], kernel[1]) + noise
    _, log_volume = np.linalg.slogdet(covariance)
    return -0.5 * (values @ np.linalg.solve(covariance, values) + log_volume + len(values) * np.log(2 * np.pi))


@program(parameters=[draw(3), draw(3, 2), draw(3, 2, seed=1, scale=0.3)], data=[draw(12, 2)])
def gaussian_mixture(logits: Any, means: Any, log_scales: Any, points: Any) -> Any:
    """Log likelihood of points under a mixture of normal distributions."""
    log_weights = logits - np.log(np.sum(np.exp(logits)))
    gaps = (points[:, None, :] - means) * np.exp(-log_scales)
    joint = log_weights - np.sum(0.5 * gaps**2 + log_scales, axis=-1)
    largest = np.max(joint, axis=1, keepdims=True)
    return np.sum(np.squeeze(largest, axis=1) + np.log(np.sum(np.exp(joint - largest), axis=1)))


@program(parameters=[draw(3)], data=[draw(10, 3), np.sign(draw(10))])
def logistic_regression(weights: Any, features: Any, signs: Any) -> Any:
    """Penalised log likelihood of signs."""
    margins = signs * np.dot(features, weights)
    return -np.sum(np.logaddexp(0, -margins)) - 0.1 * np.sum(np.square(weights))


@program(parameters=[draw(3)], data=[draw(10, 3), draw(10) > 0])
def probit_regression(weights: Any, features: Any, labels: Any) -> Any:
    """Log likelihood of labels whose causes are normally distributed."""
    scores = features @ weights
    return np.mean(special.log_ndtr(np.where(labels, scores, -scores)))


@program(parameters=[draw(2), 0.4], data=[draw(8, 2), np.array([0, 3, 1, 7, 2, 2, 0, 5])])
def negative_binomial(weights: Any, log_shape: Any, features: Any, counts: Any) -> Any:
    """Log likelihood of counts that vary more than those of Poisson's distribution."""
    shape, means = np.exp(log_shape), np.exp(features @ weights)
    choices = special.gammaln(counts + shape) - special.gammaln(shape) - special.gammaln(counts + 1.0)
    return np.sum(choices + shape * np.log(shape / (shape + means)) + special.xlogy(counts, means / (shape + means)))


@program(parameters=[[0.9, 0.4], [-0.5, -1.0]], data=[draw(7)])
def kalman_filter(dynamics: Any, log_noise: Any, series: Any) -> Any:
    """Log likelihood of a noisy series of positions, of which each speed depends on the last."""
    process, noise = np.exp(log_noise)
    one = np.ones_like(process)
    step = np.stack([np.stack([one, dynamics[1]]), np.stack([0 * one, dynamics[0]])])
    mean, covariance = np.zeros(2, series.dtype), np.eye(2, dtype=series.dtype)
    total = 0.0
    for seen in series:
        mean, covariance = step @ mean, step @ covariance @ step.T + process * np.eye(2, dtype=series.dtype)
        error, spread = seen - mean[0], covariance[0, 0] + noise
        total = total - 0.5 * (error**2 / spread + np.log(2 * np.pi * spread))
        gain = covariance[:, 0] / spread
        mean, covariance = mean + gain * error, covariance - np.outer(gain, covariance[0])
    return total


@program(parameters=[draw(3), draw(3, 3), draw(3, 4)], data=[np.array([0, 2, 1, 3, 3, 0, 2])])
def hidden_markov_model(initial: Any, transitions: Any, emissions: Any, symbols: Any) -> Any:
    """Log likelihood of symbols by the forward algorithm."""
    transitions = transitions - np.logaddexp.reduce(transitions, axis=1, keepdims=True)
    emissions = emissions - np.logaddexp.reduce(emissions, axis=1, keepdims=True)
    forward = initial - np.logaddexp.reduce(initial) + emissions[:, symbols[0]]
    for symbol in symbols[1:]:
        forward = np.logaddexp.reduce(forward[:, None] + transitions, axis=0) + emissions[:, symbol]
    return np.logaddexp.reduce(forward)


@program(parameters=[[0.5, -0.3], -0.2], data=[draw(16)])
def whittle_likelihood(coefficients: Any, log_noise: Any, series: Any) -> Any:
    """Log likelihood of an autoregressive series in the domain of frequencies."""
    powers = np.abs(np.fft.rfft(series)) ** 2 / len(series)
    response = np.fft.rfft(np.concatenate([np.ones(1, series.dtype), -coefficients]), len(series))
    density = np.exp(log_noise) / (np.real(response) ** 2 + np.imag(response) ** 2)
    return -np.sum(np.log(density) + powers / density)


@program(parameters=[draw(6, 3)], data=[np.array([0, 2, 5])])
def determinantal_process(features: Any, chosen: Any) -> Any:
    """Log likelihood of a subset of items that repel those of similar features."""
    kernel = np.einsum("ik,jk->ij", features, features) + 0.1 * np.eye(len(features), dtype=features.dtype)
    whole = np.linalg.slogdet(kernel + np.eye(len(features), dtype=features.dtype))
    return np.linalg.slogdet(kernel[np.ix_(chosen, chosen)])[1] - whole[1]
