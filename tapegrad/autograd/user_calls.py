"""A call of a function that a user gave to `tapegrad.autograd.functional`: checks, inputs, outputs, results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from tapegrad.autograd.backward import grad
from tapegrad.autograd.roots import zeros_of
from tapegrad.modes import enable_grad
from tapegrad.tape.entries import private_leaf
from tapegrad.tensor import Tensor, from_array

OUTPUTS: Final = "outputs of the user-provided function"


def _as_tuple(value: Any, argument: str, call: str) -> tuple[bool, tuple[Any, ...]]:
    """Return whether a value is a tuple, and a tuple of tensors."""
    is_tuple = isinstance(value, tuple)
    values = value if is_tuple else (value,)
    for index, one in enumerate(values):
        if not isinstance(one, (Tensor, np.ndarray)):
            which = f"the value at index {index}" if is_tuple else f"the given {argument}"
            raise TypeError(
                f"The {argument} given to {call} must be either a Tensor or a tuple of Tensors but {which} has type "
                f"{type(one)}."
            )
    return is_tuple, tuple(one if isinstance(one, Tensor) else from_array(one) for one in values)


class Call:
    """A call of a user's function: its inputs as the function gets them, its outputs, and what becomes of results.

    Attributes
    ----------
    name : str
        The function that the user called, for messages.
    inputs, outputs : tuple of Tensor
    create_graph, strict : bool
    """

    def __init__(self, name: str, func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool) -> None:
        self.name, self.create_graph, self.strict = name, create_graph, strict
        self.has_tuple, tensors = _as_tuple(inputs, "inputs", name)
        self.has_arrays = all(isinstance(one, np.ndarray) for one in (inputs if self.has_tuple else (inputs,)))
        with enable_grad():
            self.inputs = tuple(self._fresh(tensor) for tensor in tensors)
            self.returns_tuple, self.outputs = _as_tuple(func(*self.inputs), OUTPUTS, name)
        for index, output in enumerate(self.outputs):
            if strict and not output.requires_grad:
                raise RuntimeError(
                    f"Output {index} of the user-provided function does not require gradients. The outputs must be "
                    f"computed in a differentiable manner from the input when running in strict mode."
                )

    def _fresh(self, tensor: Tensor) -> Tensor:
        """Return an input as a tensor of its own, so that the same tensor inside the function is another one."""
        belongs = self.create_graph and tensor.requires_grad
        fresh: Tensor = tensor.view_as(tensor) if belongs else private_leaf(tensor.detach())
        return fresh

    def vectors(self, v: Any, like: Sequence[Tensor], has_tuple: bool, what: str) -> list[Tensor]:
        """Return the vectors of a product: as many as there are tensors like them, and of their shapes."""
        if v is None:
            if len(like) != 1 or like[0].numel() != 1:
                raise RuntimeError(f"The vector v can only be None if {what} a single Tensor with a single element.")
            return [from_array(np.ones(like[0].shape, like[0].dtype))]
        _, vectors = _as_tuple(v, "v", self.name)
        if len(vectors) != len(like):
            if has_tuple:
                raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}.")
            raise RuntimeError("The given v should contain a single Tensor.")
        for index, (vector, to) in enumerate(zip(vectors, like, strict=True)):
            if vector.shape != to.shape:
                raise RuntimeError(
                    f"{f'Entry {index} in ' * has_tuple}v has invalid size: should be {list(to.shape)} but got "
                    f"{list(vector.shape)}."
                )
        return list(vectors) if self.create_graph else [vector.detach() for vector in vectors]

    def single(self) -> Tensor:
        """Return the only output, of one element, which has a Hessian."""
        if self.returns_tuple:
            raise RuntimeError(f"The function given to {self.name} should return a single Tensor")
        if self.outputs[0].numel() != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {self.name} should contain a single element"
            )
        (output,) = self.outputs
        return output  # type: ignore[no-any-return]

    def slopes(
        self, roots: Sequence[Tensor | None], inputs: Sequence[Tensor], vectors: Sequence[Tensor] | None, create: bool
    ) -> Sequence[Tensor | None]:
        """Return gradients of those roots that have any."""
        kept = [index for index, root in enumerate(roots) if root is not None and root.requires_grad]
        if not kept:
            return [None] * len(inputs)
        chosen: Any = [roots[index] for index in kept]
        cts: Any = None if vectors is None else [vectors[index] for index in kept]
        if len(kept) == 1:
            chosen, cts = chosen[0], None if cts is None else cts[0]
        gradients: Sequence[Tensor | None] = grad(chosen, inputs, cts, create_graph=create, allow_unused=True)
        return gradients

    def filled(self, gradients: Sequence[Tensor | None], like: Sequence[Tensor], what: str) -> list[Tensor]:
        """Return slopes, with zeros for None, which strict mode refuses."""
        if self.strict:
            for index, slope in enumerate(gradients):
                if slope is None:
                    refuse(f"The {what} of the user-provided function is independent of input {index}.")
                if self.create_graph and not slope.requires_grad:
                    kind = "jacobian" if what == "output" else what
                    refuse(f"The {kind} of the user-provided function is independent of input {index}.", True)
        return [zeros_of(x) if slope is None else slope for x, slope in zip(like, gradients, strict=True)]

    def result(self, tensors: Sequence[Tensor], has_tuple: bool) -> Any:
        """Return tensors as users get them."""
        values = [tensor if self.create_graph else tensor.detach() for tensor in tensors]
        if self.has_arrays and not self.create_graph:
            return tuple(value.numpy() for value in values) if has_tuple else values[0].numpy()
        return tuple(values) if has_tuple else values[0]

    def returned(self) -> Any:
        """Return the outputs."""
        return self.result(self.outputs, self.returns_tuple)


def refuse(problem: str, with_graph: bool = False) -> NoReturn:
    """Raise the error of strict mode."""
    raise RuntimeError(f"{problem} This is not allowed in strict mode{' when create_graph=True' * with_graph}.")


def check_jacobian(slopes: Sequence[Tensor | None], strict: bool) -> None:
    """In strict mode, refuse a gradient that does not depend on the inputs."""
    for index, slope in enumerate(slopes if strict else ()):
        if slope is None:
            refuse(f"The output of the user-provided function is independent of input {index}.")
        if not slope.requires_grad:
            raise RuntimeError(
                f"While computing the hessian, found that the jacobian of the user-provided function with respect to "
                f"input {index} is independent of the input. This is not allowed in strict mode. You should ensure "
                f"that your function is twice differentiable and that the jacobian depends on the inputs (this would "
                f"be violated by a linear function for example)."
            )
