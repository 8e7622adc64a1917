"""Losses of neural networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numpy_programs.registry import draw, program

IMAGES, LABELS = draw(4, 6, 6), np.array([0, 2, 1, 2])


def sigmoid(x: Any) -> Any:
    return 0.5 * (np.tanh(0.5 * x) + 1.0)


def cross_entropy(logits: Any, labels: Any) -> Any:
    """Return the mean of the negative log probabilities of labels."""
    logits = logits - np.max(logits, axis=1, keepdims=True)
    log_sums = np.log(np.sum(np.exp(logits), axis=1))
    return np.mean(log_sums - logits[np.arange(len(labels)), labels])


@program(parameters=[draw(1, 5), draw(5), draw(5, 4), draw(4), draw(4, 1)], data=[np.linspace(-2, 2, 9)])
def tanh_network(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, x: Any) -> Any:
    """Squared error of a network that learns a curve, with a penalty on its weights."""
    hidden = x[:, np.newaxis]
    for weights, bias in ((w1, b1), (w2, b2)):
        hidden = np.tanh(np.dot(hidden, weights) + bias)
    penalty = sum(np.sum(weights**2) for weights in (w1, w2, w3))
    return np.mean((np.ravel(hidden @ w3) - x * np.cos(x)) ** 2) + 0.01 * penalty


@program(parameters=[draw(2, 3), draw(3, 3), draw(3), draw(3, 2)], data=[draw(6, 3, 2)])
def recurrent_network(inward: Any, across: Any, start: Any, outward: Any, inputs: Any) -> Any:
    """Squared error of predictions of the next element of each sequence."""
    state, outputs = np.broadcast_to(start, (inputs.shape[1], len(start))), []
    for element in inputs[:-1]:
        state = np.tanh(np.dot(element, inward) + np.dot(state, across))
        outputs.append(np.dot(state, outward))
    return np.mean(np.square(np.stack(outputs) - inputs[1:]))


@program(parameters=[draw(5, 12, scale=0.5), draw(12, scale=0.5), draw(3, 3)], data=[draw(5, 4, 2), LABELS])
def long_short_term_memory(weights: Any, bias: Any, outward: Any, inputs: Any, labels: Any) -> Any:
    """Cross entropy of classes of sequences."""
    state = memory = np.zeros((inputs.shape[1], 3), inputs.dtype)
    for element in inputs:
        gates = np.concatenate([element, state], axis=1) @ weights + bias
        enter, keep, show, proposal = np.split(gates, 4, axis=1)
        memory = sigmoid(keep) * memory + sigmoid(enter) * np.tanh(proposal)
        state = sigmoid(show) * np.tanh(memory)
    return cross_entropy(state @ outward, labels)


@program(parameters=[draw(2, 3, 3, seed=1), draw(2), draw(18, 3, scale=0.3)], data=[IMAGES, LABELS])
def convolutional_network_by_fft(filters: Any, bias: Any, dense: Any, images: Any, labels: Any) -> Any:
    """Cross entropy of classes of images, whose convolutions are products of spectra."""
    shape = images.shape[1:]
    spectra = np.fft.rfft2(images)[:, None] * np.fft.rfft2(filters, shape)
    features = np.maximum(np.fft.irfft2(spectra, shape) + bias[:, None, None], 0.0)
    pooled = np.mean(np.reshape(features, (len(images), 2, 3, 2, 3, 2)), axis=(3, 5))
    return cross_entropy(np.reshape(pooled, (len(images), -1)) @ dense, labels)


@program(parameters=[draw(2, 3, 3), draw(3, 2, 2, 2), draw(3, 3)], data=[IMAGES, LABELS])
def convolutional_network_by_windows(first: Any, second: Any, dense: Any, images: Any, labels: Any) -> Any:
    """Cross entropy of classes of images, whose convolutions are sums over windows."""
    windows = np.lib.stride_tricks.sliding_window_view
    features = np.tanh(np.einsum("nyxij,cij->ncyx", windows(images, (3, 3), axis=(1, 2)), first))
    features = np.tanh(np.einsum("ncyxij,dcij->ndyx", windows(features, (2, 2), axis=(2, 3)), second))
    return cross_entropy(np.max(features, axis=(2, 3)) @ dense, labels)


@program(parameters=[draw(2, 4), draw(4), draw(4, 2), draw(2)], data=[draw(5, 2, seed=1)])
def differential_equation_network(w1: Any, b1: Any, w2: Any, start: Any, path: Any) -> Any:
    """Squared distance of a path from the solution of a differential equation that a network makes."""

    def velocity(x: Any) -> Any:
        return np.tanh(x @ w1 + b1) @ w2

    x, step, error = start, 0.1, 0.0
    for seen in path:
        k1 = velocity(x)
        k2 = velocity(x + 0.5 * step * k1)
        k3 = velocity(x + 0.5 * step * k2)
        k4 = velocity(x + step * k3)
        x = x + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        error = error + np.sum((x - seen) ** 2)
    return error
