"""A user's function at a point: which inputs are perturbed, its outputs, and its Jacobian by finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.backward import grad
from tapegrad.tensor import Tensor, from_array
from tapegrad.testing.differences import differences
from tapegrad.testing.report import GradcheckError, Limits, Part

__all__ = ["Call", "as_tuple", "cotangents_of", "gradients_of", "leaf", "repeated", "verdict"]


def as_tuple(values: Any) -> tuple[Any, ...]:
    """Return a tensor, tuple or list as a tuple."""
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def leaf(array: np.ndarray, requires_grad: bool = True) -> Tensor:
    """Return a tensor over an array, whatever its strides and flags."""
    tensor = from_array(np.asarray(array))
    return tensor.requires_grad_() if requires_grad else tensor


class Call:
    """A function with its inputs; those that require grad are what it is differentiated by, each tensor once."""

    def __init__(self, function: Callable[..., Any], inputs: Any, check: str) -> None:
        self.function, self.inputs, self.check = function, as_tuple(inputs), check
        self.places: dict[int, int] = {}
        for place, value in enumerate(self.inputs):
            if isinstance(value, Tensor) and value.requires_grad:
                self.places.setdefault(id(value), place)
        self.output_words: dict[int, str] = {}  # of those that are not called by their numbers
        self.input_words: dict[int, str] = {}
        if not self.places:
            raise ValueError(
                f"{check} expects at least one input tensor to require gradient, "
                "but none of them have requires_grad=True."
            )
        self.wanted: list[Tensor] = [self.inputs[place] for place in self.places.values()]

    def warn_of_low_precision(self) -> None:
        """Warn the caller of a check if an input is of single precision."""
        for place in self.places.values():
            if self.inputs[place].dtype not in (np.float64, np.complex128):
                warnings.warn(
                    f"Input #{place} requires gradient and is not a double precision floating point or complex. "
                    "This check will likely fail if all the inputs are not of double precision floating point or "
                    "complex. ",
                    stacklevel=4,
                )

    def outputs(self, replaced: Sequence[Tensor] | None = None) -> list[Tensor]:
        """Return the function's outputs, with other tensors in place of those in `wanted`, if given."""
        others = dict(zip(self.places, self.wanted if replaced is None else replaced, strict=True))
        outputs = as_tuple(self.function(*[others.get(id(value), value) for value in self.inputs]))
        for place, value in enumerate(outputs):
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"{self.check} expects a function that returns a tensor or a tuple of tensors, but output {place} "
                    f"is a {type(value).__name__}."
                )
        return list(outputs)

    @property
    def point(self) -> list[np.ndarray]:
        """Copies of the data of what the function is differentiated by."""
        return [tensor.detach().numpy().copy() for tensor in self.wanted]

    def random_tangents(self) -> list[Tensor]:
        """Return a random tangent of each tensor in `wanted`, the same in each call."""
        return [leaf(array, False) for array in cotangents_of(self.wanted)]

    def moved(self, point: Sequence[np.ndarray]) -> np.ndarray:
        """Return the elements of all outputs at another point, as one vector in double precision."""
        values = [np.ravel(value.detach().numpy()) for value in self.outputs([leaf(array) for array in point])]
        wide = np.result_type(np.float64, *values) if values else np.float64
        return np.concatenate([np.empty(0, wide), *values]).astype(wide)

    def jacobians(self, eps: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return slopes along each element of each input, and their errors: (elements, units, outputs' elements)."""
        found = differences(self.moved, self.point, step=eps / 2)
        sizes = [tensor.numel() for tensor in self.wanted]
        return [
            (values.reshape(size, *values.shape[-2:]), errors.reshape(size, *errors.shape[-2:]))
            for size, (values, errors) in zip(sizes, found, strict=True)
        ]

    def columns(self, outputs: Sequence[Tensor], place: int) -> slice:
        """Return where the elements of an output stand in `moved`."""
        first = sum(output.numel() for output in outputs[:place])
        return slice(first, first + outputs[place].numel())

    def expect_zeros(self, outputs: Sequence[Tensor], eps: float) -> None:
        """Raise a GradcheckError if the function has slopes, but none of its outputs requires grad."""
        if any(output.requires_grad for output in outputs):
            return
        for tensor, (values, _) in zip(self.wanted, self.jacobians(eps), strict=True):
            if np.any(values != 0):
                raise GradcheckError(
                    "Numerical gradient for function expected to be zero: no output requires grad, but finite "
                    f"differences with respect to {self.words_of(tensor)} are up to {np.abs(values).max():.6g}. Is a "
                    "result detached, converted to NumPy, or computed with grad mode off?"
                )

    def words_of(self, tensor: Tensor) -> str:
        """Return what an input is called in messages."""
        place = self.places[id(tensor)]
        return self.input_words.get(place, f"input {place}")

    def part(self, what: str, place: int, output: Tensor, tensor: Tensor, mode: str) -> Part:
        """Return what the part of a Jacobian for an output and an input is of."""
        mismatch = f"{what} mismatch for output {place} with respect to input {self.places[id(tensor)]}"
        of_output = self.output_words.get(place, f"output {place}")
        return Part(mismatch, of_output, output.shape, self.words_of(tensor), tensor.shape, mode)


def gradients_of(
    outputs: Sequence[Tensor], wanted: Sequence[Tensor], cotangents: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Return the gradients as columns, in double precision."""
    seeds = [leaf(array, False) for array in cotangents]
    found = grad(outputs, wanted, seeds, retain_graph=True, allow_unused=True, materialize_grads=True)
    return [np.array(own.detach().numpy(), np.result_type(own.dtype, float)).reshape(-1, 1) for own in found]


def repeated(
    outputs: Sequence[Tensor], wanted: Sequence[Tensor], cotangents: Sequence[np.ndarray], nondet_tol: float
) -> list[np.ndarray]:
    """Return `gradients_of`, or raise a GradcheckError if a second pass gives others."""
    found, again = (gradients_of(outputs, wanted, cotangents) for _ in range(2))
    largest = max(np.abs(one - other).max(initial=0.0) for one, other in zip(found, again, strict=True))
    if largest > nondet_tol:
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
            "gives different values, although analytical gradient matches numerical gradient. The tolerance for "
            f"nondeterminism was {nondet_tol}; gradients differ by {largest:.3g}."
        )
    return found


def cotangents_of(outputs: Sequence[Tensor], seed: int = 0) -> list[np.ndarray]:
    """Return random numbers like the outputs, the same in each call, of either sign and not near 0."""
    rng = np.random.default_rng(seed)

    def numbers(output: Tensor) -> Any:
        return rng.uniform(0.3, 1.0, output.shape) * rng.choice([-1.0, 1.0], output.shape)

    return [
        np.asarray(numbers(own) + 1j * numbers(own) if own.dtype.kind == "c" else numbers(own)).astype(own.dtype)
        for own in outputs
    ]


def verdict(
    call: Call, checks: Iterable[Callable[[Call, Limits], None]], limits: Limits, raise_exception: bool
) -> bool:
    """Return whether all checks pass, or raise the error of the first that does not."""
    call.warn_of_low_precision()
    try:
        for check in checks:
            check(call, limits)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True
