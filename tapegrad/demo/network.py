"""The network of the demo: two layers, trained on mini-batches with Adam."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

import tapegrad as tg
from tapegrad import Tensor
from tapegrad.compiler import cache
from tapegrad.data import load_digits
from tapegrad.nn.functional import cross_entropy

HIDDEN = 64
BATCH = 64
LEARNING_RATE = 0.01
_SPLIT_SEED = 0  # not an option: all runs are tested on the same digits


@dataclass(frozen=True)
class Digits:
    """Images of shape (n, 64) and their labels of shape (n,)."""

    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: np.ndarray) -> Digits:
        return Digits(self.images[rows], self.labels[rows])


def split_digits() -> tuple[Digits, Digits]:
    """Return the digits to train on, 80 % of all, and those to test on."""
    digits = Digits(*load_digits())
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(digits))
    count = len(digits) * 4 // 5
    return digits[order[:count]], digits[order[count:]]


def initial_params(rng: np.random.Generator) -> list[Tensor]:
    """Return weights and biases of both layers: uniform weights of variance 1 / inputs, no bias."""
    params = []
    for inputs, outputs in ((64, HIDDEN), (HIDDEN, 10)):
        bound = np.sqrt(3 / inputs)
        params.append(tg.tensor(rng.uniform(-bound, bound, (inputs, outputs)), requires_grad=True))
        params.append(tg.zeros(outputs, requires_grad=True))
    return params


def scores(params: Sequence[Tensor], images: np.ndarray) -> Tensor:
    """Return how much each image looks like each of the ten digits."""
    weight1, bias1, weight2, bias2 = params
    hidden = tg.tanh(images @ weight1 + bias1)  # (n, 64) @ (64, HIDDEN)
    return hidden @ weight2 + bias2  # (n, HIDDEN) @ (HIDDEN, 10)


def loss_of(params: Sequence[Tensor], digits: Digits) -> Tensor:
    """Return the mean cross-entropy."""
    return cross_entropy(scores(params, digits.images), tg.from_numpy(digits.labels))


def accuracy_of(params: Sequence[Tensor], digits: Digits) -> float:
    """Return the fraction of digits that are told right."""
    with tg.no_grad():
        found = scores(params, digits.images).argmax(1).numpy()
    return float(np.mean(found == digits.labels))


@dataclass
class Training:
    """The parameters while they are learned, and the results of each epoch so far.

    Attributes
    ----------
    losses, accuracies : list of float
        For each epoch the mean loss of its batches, and the test accuracy after it.
    steps : int
        How many were timed. A step that compiles a kernel, or loads one, is not.
    seconds : float
        How long these took.
    """

    train: Digits
    test: Digits
    seed: int
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    steps: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.params = initial_params(self.rng)
        self.optimizer = tg.optim.Adam(self.params, lr=LEARNING_RATE)
        self.steps_per_epoch = -(-len(self.train) // BATCH)

    def epoch(self, after_step: Callable[[], object]) -> None:
        """Learn from each digit once, in a new order."""
        total = 0.0
        order = self.rng.permutation(len(self.train))
        for start in range(0, len(order), BATCH):
            batch = self.train[order[start : start + BATCH]]
            total += self._step(batch) * len(batch)
            after_step()
        self.losses.append(total / len(order))
        self.accuracies.append(accuracy_of(self.params, self.test))

    def _step(self, batch: Digits) -> float:
        kernels = cache.stats.compiled, cache.stats.loaded
        begin = perf_counter()
        loss = loss_of(self.params, batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if kernels == (cache.stats.compiled, cache.stats.loaded):
            self.steps += 1
            self.seconds += perf_counter() - begin
        return float(loss.item())
