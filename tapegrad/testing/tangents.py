"""`jvpcheck`: forward mode of whole functions against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from tapegrad.autograd.forward_mode import forward_mode
from tapegrad.tensor import Tensor
from tapegrad.testing.calls import Call, as_tuple, leaf, verdict
from tapegrad.testing.differences import slope
from tapegrad.testing.report import Limits, Part, compare

__all__ = ["jvpcheck"]

# The words for a part, the input that it belongs to, directions, and slopes along these with their errors.
Slopes = tuple[str, Tensor | None, list[list[np.ndarray]], np.ndarray, np.ndarray]


def jvpcheck(
    function: Callable[..., Any], inputs: Any, tangents: Any = None, *, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, raise_exception: bool = True,
) -> bool:  # fmt: skip
    """Check forward mode, the product of a function's Jacobian and tangents, against central finite differences.

    Parameters
    ----------
    function, inputs, eps, atol, rtol, raise_exception
        As for `gradcheck`.
    tangents : Tensor or tuple of Tensor, optional
        A tangent for each input that requires grad, of its shape. By default each element is moved alone, so that the
        error can name the input that it comes from.

    Returns
    -------
    bool
        Whether the tangents agree.

    Raises
    ------
    GradcheckError, TypeError
        As `gradcheck`.
    ValueError
        If no input requires grad, or tangents are not as many as the inputs that do, and of their shapes.

    Notes
    -----
    The tangent of an op is derived from its derivative rules. It follows every op that the function calls. It does not
    follow detached tensors, NumPy arrays and backward passes inside the function.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.testing import jvpcheck
    >>> x = tg.tensor([0.5, 2.0], dtype=tg.float64, requires_grad=True)
    >>> jvpcheck(lambda x: x.sin() * x, x)
    True
    >>> jvpcheck(lambda x: x.sin() * x, x, tg.tensor([1.0, -1.0], dtype=tg.float64))
    True
    """
    call = Call(function, inputs, "jvpcheck")
    return verdict(call, [partial(check_tangents, tangents=tangents)], Limits(eps, atol, rtol), raise_exception)


def check_tangents(call: Call, limits: Limits, tangents: Any = None, by: Callable[..., Any] = forward_mode) -> None:
    """Raise a GradcheckError unless forward mode, or `by`, agrees with finite differences."""
    known = _slopes_of_elements(call, limits.eps) if tangents is None else _slope_along(call, tangents, limits.eps)
    outputs = call.outputs()
    call.expect_zeros(outputs, limits.eps)
    for words, tensor, directions, values, errors in known:
        rows = [_tangents(call, direction, by) for direction in directions]
        for place, output in enumerate(outputs):
            if not output.requires_grad or not rows:
                continue
            columns = call.columns(outputs, place)
            if tensor is None:
                part = Part(f"{words} for output {place}", f"output {place}", output.shape, mode="forward mode")
            else:
                part = call.part(words, place, output, tensor, "forward mode")
            expected = values[:, columns] if output.dtype.kind == "c" else values[:, columns].real
            compare(np.stack([row[place] for row in rows]), expected, errors[:, columns], limits, part)


def _slopes_of_elements(call: Call, eps: float) -> Iterator[Slopes]:
    """Return slopes along each element of each input."""
    for number, (tensor, (values, errors)) in enumerate(zip(call.wanted, call.jacobians(eps), strict=True)):
        for k, name in enumerate(("real", "imaginary")[: values.shape[1]]):
            prefix = f"While considering the {name} part of complex inputs only, " if values.shape[1] > 1 else ""
            directions = [[np.zeros(own.shape, own.dtype) for own in call.wanted] for _ in range(tensor.numel())]
            for index, direction in zip(np.ndindex(tensor.shape), directions, strict=True):
                direction[number][index] = (1, 1j)[k]
            yield f"{prefix}Jacobian computed with forward mode", tensor, directions, values[:, k], errors[:, k]


def _slope_along(call: Call, tangents: Any, eps: float) -> list[Slopes]:
    """Return the slope along given tangents."""
    given, shapes = as_tuple(tangents), [tensor.shape for tensor in call.wanted]
    if [getattr(own, "shape", None) for own in given] != shapes:
        raise ValueError(
            f"jvpcheck expects a tangent for each input that requires grad, of shapes {list(map(list, shapes))}, but "
            f"got {[list(own.shape) if isinstance(own, Tensor) else type(own).__name__ for own in given]}."
        )
    direction = [np.asarray(own.detach().numpy(), to.dtype) for own, to in zip(given, call.wanted, strict=True)]
    values, errors = slope(call.moved, call.point, direction, step=eps / 2)
    return [("Tangent mismatch", None, [direction], values[None], errors[None])]


def _tangents(call: Call, directions: Sequence[np.ndarray], by: Callable[..., Any]) -> list[np.ndarray]:
    """Return the tangents of all outputs along directions, as vectors; none for integers."""
    primals = [leaf(array, False) for array in call.point]
    outputs: list[Tensor] = []

    def function(*replaced: Tensor) -> tuple[Tensor, ...]:
        outputs.extend(call.outputs(replaced))
        return tuple(outputs)

    _, found = by(function, tuple(primals), tuple([leaf(array, False) for array in directions]))
    return [
        np.zeros(output.numel(), output.dtype) if tangent is None else np.ravel(tangent.detach().numpy())
        for output, tangent in zip(outputs, found, strict=True)
    ]
