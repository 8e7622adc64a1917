"""Forward mode of whole functions, by the tangents of all ops that they call, and `jvpcheck`, which checks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.autograd.jvp import Tangents, jvp
from tapegrad.ops.table.gateway import compute
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, Op
from tapegrad.tensor import Tensor
from tapegrad.testing.calls import Call, as_tuple, leaf
from tapegrad.testing.differences import slope
from tapegrad.testing.gradients import expect_zeros, verdict
from tapegrad.testing.report import Part, Tolerance, compare

__all__ = ["forward_mode", "jvpcheck"]


def forward_mode(
    function: Callable[..., Any], primals: Sequence[Tensor], tangents: Tangents
) -> tuple[Any, tuple[Tensor | None, ...]]:
    """Return what a function returns, and the tangent of each output; None stands for zeros.

    Tangents follow every op that the function calls. They do not follow detached tensors, NumPy arrays, writes in
    place and backward passes inside the function.
    """
    # Tensors are kept, so that no other gets the same id.
    known: dict[int, tuple[Tensor, Tensor | None]] = {
        id(primal): (primal, tangent) for primal, tangent in zip(primals, tangents, strict=True)
    }

    def tangent_of(value: Any) -> Tensor | None:
        return known[id(value)][1] if id(value) in known else None

    def dual(op: Op, bound: Bound) -> Any:
        out = compute(op, bound)[0]
        own = [
            None if op.rule(operand) is NOT_DIFFERENTIABLE else tangent_of(x)
            for operand, x in enumerate(bound.operands)
        ]
        if any(tangent is not None for tangent in own):
            results = out if isinstance(out, tuple) else (out,)
            if any(result._layout.floating for result in results):
                found = jvp(op, bound, out, own)
                for result, tangent in zip(results, as_tuple(found), strict=True):
                    known[id(result)] = (result, tangent)
        return out

    with modes.intercept(dual):
        value = function(*primals)
    return value, tuple(tangent_of(output) for output in as_tuple(value))


def jvpcheck(
    function: Callable[..., Any],
    inputs: Any,
    tangents: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
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
    follow detached tensors, NumPy arrays, writes in place and backward passes inside the function.

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
    call.warn_of_low_precision()
    tolerance = Tolerance(atol, rtol)
    if tangents is None:
        return verdict(lambda: _check_elements(call, eps, tolerance), raise_exception)
    given = as_tuple(tangents)
    shapes = [tensor.shape for tensor in call.wanted]
    if [getattr(own, "shape", None) for own in given] != shapes:
        raise ValueError(
            f"jvpcheck expects a tangent for each input that requires grad, of shapes {list(map(list, shapes))}, but "
            f"got {[list(own.shape) if isinstance(own, Tensor) else type(own).__name__ for own in given]}."
        )
    return verdict(lambda: _check_direction(call, given, eps, tolerance), raise_exception)


def _tangents(call: Call, directions: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the tangents of all outputs along directions, as vectors; none for integers."""
    primals = [leaf(array, False) for array in call.point]
    outputs: list[Tensor] = []

    def function(*replaced: Tensor) -> tuple[Tensor, ...]:
        outputs.extend(call.outputs(replaced))
        return tuple(outputs)

    _, found = forward_mode(function, primals, [leaf(array, False) for array in directions])
    return [
        np.zeros(output.numel(), output.dtype) if tangent is None else np.ravel(tangent.detach().numpy())
        for output, tangent in zip(outputs, found, strict=True)
    ]


def _check_direction(call: Call, tangents: Sequence[Tensor], eps: float, tolerance: Tolerance) -> None:
    outputs = call.outputs()
    if not any(output.requires_grad for output in outputs):
        expect_zeros(call, call.jacobians(eps))
    directions = [
        np.asarray(own.detach().numpy(), tensor.dtype) for own, tensor in zip(tangents, call.wanted, strict=True)
    ]
    values, errors = slope(call.moved, call.point, directions, step=eps / 2)
    for place, actual in enumerate(_tangents(call, directions)):
        output, columns = outputs[place], call.columns(outputs, place)
        if output.requires_grad:
            part = Part(f"Tangent mismatch for output {place}", f"output {place}", output.shape, mode="forward mode")
            compare(actual[None], _like(values[None, columns], output), errors[None, columns], tolerance, part)


def _check_elements(call: Call, eps: float, tolerance: Tolerance) -> None:
    outputs, numerical = call.outputs(), call.jacobians(eps)
    if not any(output.requires_grad for output in outputs):
        expect_zeros(call, numerical)
    for number, (tensor, (values, errors)) in enumerate(zip(call.wanted, numerical, strict=True)):
        for k, name in enumerate(("real", "imaginary")[: values.shape[1]]):
            prefix = f"While considering the {name} part of complex inputs only, " if values.shape[1] > 1 else ""
            rows = []
            for index in np.ndindex(tensor.shape):
                directions = [np.zeros(own.shape, own.dtype) for own in call.wanted]
                directions[number][index] = (1, 1j)[k]
                rows.append(_tangents(call, directions))
            for place, output in enumerate(outputs):
                if output.requires_grad and rows:
                    columns = call.columns(outputs, place)
                    part = call.part(
                        f"{prefix}Jacobian computed with forward mode", place, output, tensor, "forward mode"
                    )
                    expected = _like(values[:, k, columns], output)
                    compare(np.stack([row[place] for row in rows]), expected, errors[:, k, columns], tolerance, part)


def _like(values: np.ndarray, output: Tensor) -> np.ndarray:
    """Return slopes as real numbers if the output is real: others may be complex."""
    return values if output.dtype.kind == "c" else values.real
