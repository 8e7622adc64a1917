"""Checkers: what must hold of a function of tensors, whoever made it."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

import numpy as np

import tapegrad as tg
from tapegrad import autograd
from tapegrad.runtime.memory import INTERPRETS
from tapegrad.testing.calls import leaf
from tapegrad.testing.differences import differences, slope

Arrays = Sequence[np.ndarray]
SLOWER = 100 if INTERPRETS else 1  # how many times fewer repetitions a test may make do with
TOLERANCE = {"float32": 3e-5, "float64": 1e-11, "complex64": 3e-5, "complex128": 1e-11}
# Finite differences with a larger error, relative to the largest result, prove nothing.
CONVERGED = {"float32": 0.02, "float64": 1e-5, "complex64": 0.02, "complex128": 1e-5}


@dataclass(frozen=True)
class Problem:
    """A function of tensors and operands for it, those with the numbers `wanted` to be differentiated by."""

    function: Callable[..., tg.Tensor]
    operands: tuple[Any, ...]
    wanted: tuple[int, ...]

    @property
    def point(self) -> list[np.ndarray]:
        """The operands to be differentiated by."""
        return [self.operands[number] for number in self.wanted]

    def tensors(self, point: Arrays | None = None, *, leaves: bool = True) -> list[tg.Tensor]:
        """Return new tensors over the operands to be differentiated by."""
        return [leaf(array, leaves) for array in (self.point if point is None else point)]

    def __call__(self, tensors: Sequence[tg.Tensor]) -> tg.Tensor:
        arguments = list(self.operands)
        for number, tensor in zip(self.wanted, tensors, strict=True):
            arguments[number] = tensor
        return self.function(*arguments)

    def value(self, point: Arrays | None = None) -> np.ndarray:
        """Return the result as an array."""
        out = self(self.tensors(point, leaves=False))
        check_layout(out)
        return out.numpy()

    def cotangent(self) -> np.ndarray:
        """Return a random cotangent of the result."""
        return random_like(self.value(), "cotangent")

    def weights(self) -> list[np.ndarray]:
        """Return random numbers of the gradients' shapes."""
        return [random_like(array, f"weights {number}") for number, array in enumerate(self.point)]


def random_like(array: np.ndarray, purpose: str = "") -> np.ndarray:
    """Return random numbers, the same for the same shape and purpose, of either sign and not near 0."""
    rng = np.random.default_rng(zlib.crc32(f"{array.shape} {purpose}".encode()))

    def numbers() -> np.ndarray:
        return rng.uniform(0.3, 1.0, array.shape) * rng.choice([-1.0, 1.0], array.shape)

    values = numbers() + 1j * numbers() if array.dtype.kind == "c" else numbers()
    return np.asarray(values).astype(array.dtype)


def inner(a: Arrays, b: Arrays) -> float:
    """Return Re<a, b>, in double precision."""
    wide = [(np.asarray(x, complex), np.asarray(y, complex)) for x, y in zip(a, b, strict=True)]
    return float(sum(np.vdot(x, y).real for x, y in wide))


def variants(array: np.ndarray) -> dict[str, np.ndarray]:
    """Return arrays of the same values that lie in memory in other ways."""
    gaps = np.empty([3 * length for length in array.shape], array.dtype)
    gaps = gaps[(..., *(slice(1, None, 3) for _ in array.shape))]
    backwards = np.empty_like(array)[(..., *(slice(None, None, -1) for _ in array.shape))]
    unaligned = np.empty(array.nbytes + 4, np.uint8)[4:].view(array.dtype).reshape(array.shape)
    found = {"gaps": gaps, "backwards": backwards, "unaligned": unaligned, "read-only": array.copy()}
    for own in found.values():
        own[...] = array
    found["read-only"].flags.writeable = False
    return found | {"Fortran": np.array(array, order="F")}


# Ways to a gradient ----------------------------------------------------------------------------------------------


def by_kernel(problem: Problem, ct: np.ndarray, point: Arrays | None = None) -> list[np.ndarray]:
    """Return the gradients that `backward` leaves in the leaves."""
    leaves = problem.tensors(point)
    autograd.backward(problem(leaves), leaf(ct, False))
    return gradients_of(leaves)


def by_rule(problem: Problem, ct: np.ndarray) -> list[np.ndarray]:
    """Return the gradients by the differentiable rules."""
    leaves = problem.tensors()
    found = autograd.grad(
        problem(leaves), leaves, leaf(ct, False), create_graph=True, allow_unused=True, materialize_grads=True
    )
    return [gradient.detach().numpy() for gradient in found]


def second_gradients(
    problem: Problem, ct: np.ndarray, weights: Arrays, point: Arrays | None = None, further: Arrays = ()
) -> list[np.ndarray]:
    """Return the derivatives of the weighed sum of the gradients by the operands and by the cotangent.

    With `further` weights, of these derivatives, return those of their weighed sum.
    """
    leaves, seed = problem.tensors(point), leaf(ct)
    found = autograd.grad(problem(leaves), leaves, seed, create_graph=True, allow_unused=True, materialize_grads=True)
    for own_weights in (weights, further) if further else (weights,):
        pairs = [
            (own, leaf(weight, False)) for own, weight in zip(found, own_weights, strict=True) if own.requires_grad
        ]
        if not pairs:
            return [np.zeros_like(array) for array in (*problem.point, ct)]
        found = autograd.grad(
            [own for own, _ in pairs], [*leaves, seed], [weight for _, weight in pairs],
            create_graph=bool(further), allow_unused=True, materialize_grads=True,
        )  # fmt: skip
    return [own.detach().numpy() for own in found]


def gradients_of(leaves: Sequence[tg.Tensor]) -> list[np.ndarray]:
    """Return the leaves' gradients, after a look at their layouts; zeros where there is none."""
    found = []
    for tensor in leaves:
        gradient = tensor.grad
        if gradient is None:
            found.append(np.zeros(tensor.shape, tensor.dtype))
            continue
        assert (gradient.shape, gradient.dtype) == (tensor.shape, tensor.dtype), "a gradient is of its tensor's layout"
        assert gradient.is_leaf
        assert not gradient.requires_grad
        check_layout(gradient)
        found.append(gradient.numpy())
    return found


def by_differences(problem: Problem, ct: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the gradients by finite differences, element by element, each with an estimate of the error.

    PyTorch's convention for complex numbers: the gradient of Re<ct, f> is its slope along 1 plus i times that along i.
    """
    found = differences(lambda moved: inner([ct], [problem.value(moved)]), problem.point, ct)
    gradients = []
    for array, (slopes, errors) in zip(problem.point, found, strict=True):
        gradient = slopes @ (1, 1j)[: slopes.shape[-1]]
        gradients.append((np.asarray(gradient, array.dtype), np.asarray(errors.sum(-1))))
    return gradients


# Checkers --------------------------------------------------------------------------------------------------------


def check_layout(tensor: tg.Tensor) -> None:
    """Check what a tensor believes about its data: sweeps read it through nothing else."""
    data, layout = np.asarray(tensor._data), tensor._layout
    assert (layout.shape, layout.dtype) == (data.shape, data.dtype), "the layout is not that of the data"
    if data.size > 1:
        kept = [place for place, length in enumerate(data.shape) if length > 1]
        assert [layout.strides[k] for k in kept] == [data.strides[k] for k in kept], "the strides are not the data's"
    assert layout.requires_grad == tensor.requires_grad


def assert_close(actual: Arrays, expected: Arrays, error: Any = 0.0, *, dtype: Any = None, what: str = "") -> None:
    """Compare arrays up to the rounding of a dtype, relative to the largest number, and up to an error."""
    errors = error if isinstance(error, list) else [error] * len(expected)
    for number, (own, other, extra) in enumerate(zip(actual, expected, errors, strict=True)):
        tolerance = TOLERANCE.get(np.dtype(dtype or own.dtype).name, 0.0)
        own, other = (np.asarray(array, np.result_type(array, np.float64)) for array in (own, other))
        assert own.shape == other.shape, f"{what} {number}: shape {own.shape} instead of {other.shape}"
        finite = np.abs(other[np.isfinite(other)])
        scale = max(1.0, float(finite.max(initial=0.0)))
        with np.errstate(all="ignore"):
            close = (
                (np.abs(own - other) <= tolerance * scale + 10 * extra)
                | (own == other)
                | (np.isnan(own) & np.isnan(other))
            )
        assert close.all(), f"{what} {number}: {own} instead of {other}"


def has_converged(value: Any, error: Any, ct: np.ndarray) -> bool:
    """Whether finite differences prove something."""
    scale = max(1.0, float(np.abs(value).max(initial=0.0)))
    return bool(np.max(error, initial=0.0) <= CONVERGED[ct.dtype.name] * scale)


def assert_converged(value: Any, error: Any, ct: np.ndarray) -> None:
    """Check that finite differences prove something."""
    assert has_converged(value, error, ct), "finite differences do not converge here: move the point"


def check_gradient(problem: Problem) -> None:
    """Check the kernels against finite differences."""
    ct = problem.cotangent()
    found = by_differences(problem, ct)
    for expected, error in found:
        assert_converged(expected, error, ct)
    actual = by_kernel(problem, ct)
    assert_close(actual, [value for value, _ in found], [error for _, error in found], what="gradient of operand")


def check_rule(problem: Problem, ct: np.ndarray | None = None) -> None:
    """Check the kernels against the differentiable rules."""
    ct = problem.cotangent() if ct is None else ct
    with np.errstate(all="ignore"):
        expected = by_kernel(problem, ct)
        lowest = max([*expected, ct], key=lambda array: np.finfo(array.dtype).eps).dtype
        assert_close(by_rule(problem, ct), expected, what="rule for operand", dtype=lowest)


def check_second(
    problem: Problem, directions: int = 2, demand: Callable[[Any, Any, np.ndarray], None] = assert_converged
) -> None:
    """Check the derivatives of the gradients by operands and cotangent against finite differences of the gradients."""
    ct, point, weights = problem.cotangent(), problem.point, problem.weights()
    seconds = second_gradients(problem, ct, weights)
    rng = np.random.default_rng(5)

    def weighed(moved: list[np.ndarray]) -> float:
        return inner(weights, by_kernel(problem, moved[-1], moved[:-1]))

    for _ in range(directions):
        moved = [*point, ct]
        direction = [rng.normal(size=own.shape) * (1 if own.dtype.kind == "f" else 1 + 1j) for own in moved]
        direction = [own.astype(like.dtype) for own, like in zip(direction, moved, strict=True)]
        expected, error = slope(weighed, moved, direction, ct)
        actual = inner(seconds, direction)
        demand(expected, error, ct)
        assert_close([np.array(actual)], [np.array(expected)], 1e-9 + error, what="second order along direction")


#: Cases whose third derivatives are not checked, with the reason.
WITHOUT_THIRD: Final = {
    **dict.fromkeys(("det-5", "det-6"), "the matrix is singular: a third derivative is refused"),
    "triplet_margin_loss-2": "third derivatives of a norm of order 3 jump: differences do not converge",
}


def check_third(
    problem: Problem, directions: int = 1, demand: Callable[[Any, Any, np.ndarray], None] = assert_converged
) -> None:
    """Check the derivatives of the second derivatives by operands and cotangent against finite differences of these."""
    ct, weights, rng = problem.cotangent(), problem.weights(), np.random.default_rng(7)
    at = [*problem.point, ct]

    def like_these() -> list[np.ndarray]:
        found = [rng.normal(size=own.shape) * (1 if own.dtype.kind == "f" else 1 + 1j) for own in at]
        return [own.astype(like.dtype) for own, like in zip(found, at, strict=True)]

    further = like_these()
    thirds = second_gradients(problem, ct, weights, further=further)
    for _ in range(directions):
        direction = like_these()
        expected, error = slope(
            lambda moved: inner(further, second_gradients(problem, moved[-1], weights, moved[:-1])), at, direction, ct
        )
        actual = inner(thirds, direction)
        demand(expected, error, ct)
        assert_close([np.array(actual)], [np.array(expected)], 1e-9 + error, what="third order along direction")


def check_transpose(problem: Problem) -> None:
    """Check that <ct, J v> = <J^H ct, v>, with J v from finite differences."""
    ct, point, v = problem.cotangent(), problem.point, problem.weights()
    forward, error = slope(lambda moved: inner([ct], [problem.value(moved)]), point, v, ct)
    assert_converged(forward, error, ct)
    backward = inner(by_kernel(problem, ct), v)
    assert_close([np.array(backward)], [np.array(forward)], error, what="<ct, J v> and <J^H ct, v>")


def check_layouts(problem: Problem) -> None:
    """Check that result and gradients do not depend on how operands and cotangent lie in memory."""
    ct, value = problem.cotangent(), problem.value()
    expected = by_kernel(problem, ct)
    ways = [variants(array) for array in problem.point]
    for name, own_ct in variants(ct).items():
        point = [way[name] for way in ways]
        assert_close([problem.value(point)], [value], what=f"result, operands {name},")
        assert_close(by_kernel(problem, ct, point), expected, what=f"gradient, operands {name}, of operand")
        assert_close(by_kernel(problem, own_ct), expected, what=f"gradient, cotangent {name}, of operand")


def check_stretched(problem: Problem) -> None:
    """Check operands and cotangent whose elements are all one place in memory."""
    ct = problem.cotangent()
    point = [np.broadcast_to(array.reshape(-1)[:1].reshape(()) if array.size else 1.0, array.shape).astype(array.dtype)
             for array in problem.point]  # fmt: skip
    flat = [np.broadcast_to(array.reshape(-1)[0] if array.size else array, array.shape) for array in point]
    assert_close([problem.value(flat)], [problem.value(point)], what="result of stretched operands")
    assert_close(by_kernel(problem, ct, flat), by_kernel(problem, ct, point), what="gradient of stretched operand")
    one = np.broadcast_to(ct.reshape(-1)[0] if ct.size else ct, ct.shape)
    assert_close(
        by_kernel(problem, one), by_kernel(problem, one.copy()), what="gradient, stretched cotangent, of operand"
    )


def check_precision(problem: Problem, precise: Problem) -> None:
    """Check result and gradients in low precision against those of the same problem in high precision."""
    ct = precise.cotangent()
    low, high = ct.astype(problem.value().dtype), ct
    assert_close([problem.value()], [precise.value()], what="result", dtype=np.float32)
    assert_close(by_kernel(problem, low), by_kernel(precise, high), what="gradient of operand", dtype=np.float32)


def check_accumulation(problem: Problem) -> None:
    """Check that gradients add up: in the leaves, over two passes, and in a result, with what came before and later."""
    ct = problem.cotangent()
    once = by_kernel(problem, ct)
    leaves = problem.tensors()
    out = problem(leaves)
    for times in (1, 2):
        autograd.backward(out, leaf(ct, False), retain_graph=True)
        assert_close(gradients_of(leaves), [times * own for own in once], what=f"gradient after pass {times}, operand")
    for name in ("gaps", "backwards", "unaligned", "Fortran"):  # ways in which an assigned gradient may lie in memory
        leaves = problem.tensors()
        for own in leaves:
            own.grad = leaf(variants(np.ones(own.shape, own.dtype))[name], False)
        kept = [own.grad for own in leaves]
        autograd.backward(problem(leaves), leaf(ct, False))
        assert all(own.grad is before for own, before in zip(leaves, kept, strict=True))
        assert_close(
            [own.numpy() for own in kept], [1 + own for own in once], what=f"gradient added to {name}, operand"
        )
    weights = problem.weights()
    expected = [2 * (own + weight) for own, weight in zip(once, weights, strict=True)]
    for first in (True, False):
        leaves = problem.tensors()
        middles = [own * 2.0 for own in leaves]
        halves = [own * 0.5 for own in middles]  # so that the function is evaluated at its point
        out = problem(halves) if first else None
        others = [own * 0.5 for own in middles]
        out = problem(halves) if out is None else out
        seeds = [leaf(array, False) for array in (ct, *weights)]
        autograd.backward([out, *others], seeds)
        wanted = [(own / 2) for own in expected]
        assert_close(gradients_of(leaves), wanted, what="gradient with another use of operand")


def python_functions(call: Callable[[], object]) -> set[tuple[str, str]]:
    """Return the functions written in Python that a call runs: the names of their files, and theirs."""
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            seen.add((Path(frame.f_code.co_filename).name, frame.f_code.co_name))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return seen


def is_known(call: Callable[[], object]) -> bool:
    """Whether compiled code serves a call of an op: it has a plan for it, so Python's path is not taken."""
    return not {"gateway.py", "indexing.py"} & {file for file, _ in python_functions(call)}
