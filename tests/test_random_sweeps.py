"""Random programs and passes over them, held against a sweep over a list, written out here in NumPy.

What is drawn is what a sweep decides about: which entries are reached, which of them lead to an input, which were
consumed, whose cotangent is whose memory, where hooks and rules without kernel stop it, and roots that are reached
from others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.runtime import blocking

EYE, WEIGHTS = 3.0 * np.eye(2), np.array([1.0, -2.0])


def _inverse_rule(ct: np.ndarray, out: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    return [-out.T @ ct @ out.T]


def _max_rule(ct: np.ndarray, out: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    chosen = np.arange(x.shape[-1]) == np.argmax(x, -1)[..., None] if x.ndim else np.True_
    return [np.where(chosen, ct[..., None] if x.ndim else ct, 0.0)]


def _eigenvalues_rule(ct: np.ndarray, out: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    vectors = np.linalg.eigh(x).eigenvectors
    return [ct * (vectors * WEIGHTS) @ vectors.T]


# For each operation: ours, NumPy's, and the cotangents of its operands. Those of `inv` and `eigenvalues` are found by
# rules in Python, of the latter for one of two results.
OPERATIONS: dict[str, tuple[int, Callable[..., Any], Callable[..., Any], Callable[..., list[Any]]]] = {
    "add": (2, lambda x, y: x + y, np.add, lambda ct, out, x, y: [ct, ct]),
    "sub": (2, lambda x, y: x - y, np.subtract, lambda ct, out, x, y: [ct, -ct]),
    "mul": (2, lambda x, y: x * y, np.multiply, lambda ct, out, x, y: [ct * y, ct * x]),
    "sin": (1, tg.sin, np.sin, lambda ct, out, x: [ct * np.cos(x)]),
    "tanh": (1, tg.tanh, np.tanh, lambda ct, out, x: [ct * (1 - out * out)]),
    "neg": (1, lambda x: -x, np.negative, lambda ct, out, x: [-ct]),
    "sum": (1, lambda x: x.sum(), np.sum, lambda ct, out, x: [np.broadcast_to(ct, x.shape)]),
    "turned": (1, lambda x: x.T if x.ndim == 2 else -x, lambda x: x.T if x.ndim == 2 else -x,
               lambda ct, out, x: [ct.T if x.ndim == 2 else -ct]),
    "max": (1, lambda x: tg.max(x, -1).values, lambda x: x.max(-1) if x.ndim else x, _max_rule),
    "row": (1, lambda x: x[:1] if x.ndim else x + 0.0, lambda x: x[:1] if x.ndim else x,
            lambda ct, out, x: [np.concatenate([ct, np.zeros((len(x) - 1, *x.shape[1:]))]) if x.ndim else ct]),
    "stack": (4, lambda *x: tg.stack([v.sum() for v in x]).reshape(2, 2),
              lambda *x: np.reshape([*map(np.sum, x)], (2, 2)),
              lambda ct, out, *x: [np.broadcast_to(part, v.shape) for part, v in zip(ct.ravel(), x, strict=True)]),
    "inv": (1, tg.linalg.inv, np.linalg.inv, _inverse_rule),
    "eigenvalues": (1, lambda x: (tg.linalg.eigh(x).eigenvalues * WEIGHTS).sum(),
                    lambda x: (np.linalg.eigvalsh(x) * WEIGHTS).sum(), _eigenvalues_rule),
}  # fmt: skip


class Variable:
    """A tensor of a program, with its value and what the reference needs of it."""

    def __init__(self, tensor: tg.Tensor, value: Any, operation: str = "", operands: tuple[Variable, ...] = ()) -> None:
        self.tensor, self.value, self.operation, self.operands = tensor, np.asarray(value), operation, operands
        self.tracked = tensor.requires_grad
        self.factors: list[float] = []  # of hooks
        self.is_kept = self.is_consumed = False
        self.grad: np.ndarray | float | None = None

    @property
    def shows_a_leaf(self) -> bool:
        """Whether it is a view of a leaf, which no pass consumes."""
        least = {"turned": 2, "row": 1}.get(self.operation, 3)  # of fewer dimensions they compute
        return self.value.ndim >= least and (not self.operands[0].operation or self.operands[0].shows_a_leaf)

    def hook(self, factor: float) -> None:
        self.tensor.register_hook(lambda ct: ct * factor)
        self.factors.append(factor)

    def cotangents(self, ct: np.ndarray) -> list[Any]:
        found = OPERATIONS[self.operation][3](ct, self.value, *[own.value for own in self.operands])
        return [_reduced(part, own.value.shape) for part, own in zip(found, self.operands, strict=True)]


def _reduced(ct: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Undo broadcasting."""
    ct = ct.sum(tuple(range(ct.ndim - len(shape))))
    return ct.sum(tuple(dim for dim, length in enumerate(shape) if length != ct.shape[dim]), keepdims=True)


def program(rng: np.random.Generator) -> list[Variable]:
    """Return leaves, a constant, and what was computed of them, in order."""
    known = []
    for shape in ((2, 2), (2, 2), (), (2, 2)):
        value = rng.normal(size=shape)
        known.append(Variable(tg.tensor(value, requires_grad=len(known) < 3), value))
    for _ in range(rng.integers(3, 14)):
        name = rng.choice(list(OPERATIONS))
        count, ours, theirs, _ = OPERATIONS[name]
        operands = [known[-1 - min(int(rng.exponential(4)), len(known) - 1)] for _ in range(count)]
        if name in ("inv", "eigenvalues"):
            whole = [own for own in known if own.value.shape == (2, 2)]
            own = whole[rng.integers(len(whole))]
            if name == "inv":  # of a matrix that has one
                moved = Variable(tg.tanh(own.tensor), np.tanh(own.value), "tanh", (own,))
                other = Variable(tg.tensor(EYE), EYE)
            else:
                moved, other = Variable(own.tensor.T, own.value.T, "turned", (own,)), own
            known += [moved] if other is own else [other, moved]
            known.append(Variable(moved.tensor + other.tensor, moved.value + other.value, "add", (moved, other)))
            operands = [known[-1]]
        result = ours(*[own.tensor for own in operands])
        known.append(Variable(result, theirs(*[own.value for own in operands]), name, tuple(operands)))
        np.testing.assert_allclose(result.detach().numpy(), known[-1].value, rtol=1e-12)
    for own in known:
        if own.tracked and rng.random() < 0.2:
            own.hook(rng.choice([-1.0, 0.5, 2.0]))
        if own.tracked and own.operation and rng.random() < 0.1:
            own.tensor.retain_grad()
            own.is_kept = True
    return known


class FreedError(Exception):
    """The reference meets an entry that a pass has gone through."""


def reference(
    known: list[Variable], roots: list[Variable], seeds: list[np.ndarray], inputs: list[Variable] | None, retain: bool
) -> dict[Variable, np.ndarray]:
    """Return the cotangents of inputs; without any, add to the gradients of leaves."""
    reached: set[Variable] = set()
    pending = list(roots)
    while pending:
        own = pending.pop()
        if own in reached or not own.tracked:
            continue
        reached.add(own)
        if not own.is_consumed:
            pending += own.operands
        elif inputs is None or set(inputs) != {own}:
            raise FreedError
    cts: dict[Variable, Any] = {}
    for root, seed in zip(roots, seeds, strict=True):
        cts[root] = cts.get(root, 0.0) + seed
    needed: dict[Variable, bool] = {}  # whether an input is this one or stands before it
    runs: dict[Variable, bool] = {}
    for own in known:
        runs[own] = own in reached and not own.is_consumed and any(needed[operand] for operand in own.operands)
        needed[own] = own in reached and (runs[own] or (not own.operation if inputs is None else own in inputs))
    results = {}
    for own in reversed(known):
        is_result = needed[own] and not (runs[own] if inputs is None else own not in inputs)
        if own not in cts or not (runs[own] or is_result):
            continue
        for factor in own.factors:
            cts[own] = cts[own] * factor
        if is_result:
            results[own] = cts[own]
        if own.is_kept or (is_result and inputs is None):
            own.grad = cts[own] if own.grad is None else own.grad + cts[own]
        if runs[own]:
            own.is_consumed = not (retain or own.shows_a_leaf)
            for operand, part in zip(own.operands, own.cotangents(np.asarray(cts[own])), strict=True):
                if needed[operand]:
                    cts[operand] = cts.get(operand, 0.0) + part
    return results


def check(found: tg.Tensor | None, expected: Any) -> None:
    assert (found is None) == (expected is None)
    if found is not None:
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-9, atol=1e-11)


@pytest.fixture
def _division() -> Iterator[None]:
    before = blocking.division
    yield
    blocking.set_block_size(before.block)
    blocking.division = before


@pytest.mark.usefixtures("_division")
@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("block", [0, 1])
def test_passes(part: int, block: int) -> None:
    blocking.set_block_size(block)  # 1: matrices are gone through in groups of entries
    rng = np.random.default_rng(part)
    refused = 0
    for _ in range(25):
        known = program(rng)
        computed = [own for own in known if own.tracked and own.operation]
        for _ in range(4 if computed else 0):
            roots = [computed[-1 - min(int(rng.exponential(2)), len(computed) - 1)] for _ in range(rng.integers(1, 4))]
            seeds = [rng.normal(size=root.value.shape) for root in roots]
            retain, creates = rng.random() < 0.6, rng.random() < 0.2
            tensors, given = [own.tensor for own in roots], [tg.tensor(seed) for seed in seeds]
            inputs: list[Variable] | None = None
            if rng.random() < 0.5:
                tracked = [own for own in known if own.tracked]
                inputs = [tracked[place] for place in rng.permutation(len(tracked))[: rng.integers(1, 4)]]
            try:
                expected = reference(known, roots, seeds, inputs, retain or creates)
            except FreedError:
                refused += 1
                with pytest.raises(RuntimeError, match="a second time"):
                    run(tensors, given, inputs, retain, creates)
                continue
            found = run(tensors, given, inputs, retain, creates)
            for own, result in zip(inputs or (), found or (), strict=True):
                check(result, expected.get(own))
            for own in known:
                if not own.operation or own.is_kept:
                    check(own.tensor.grad, own.grad)
    assert refused > 3


def run(
    tensors: list[tg.Tensor], seeds: list[tg.Tensor], inputs: list[Variable] | None, retain: bool, creates: bool
) -> Any:
    options: dict[str, Any] = {"retain_graph": retain or creates, "create_graph": creates}
    if inputs is None:
        return tg.autograd.backward(tensors, seeds, **options)
    return tg.autograd.grad(tensors, [own.tensor for own in inputs], seeds, allow_unused=True, **options)
