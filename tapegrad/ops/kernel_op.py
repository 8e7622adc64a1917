"""`kernel_op`: an elementwise operation of the user's, whose forward and derivatives run as compiled kernels."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad import vmath
from tapegrad.forward.ufuncs import Function
from tapegrad.kernels.rules import rule_parameters
from tapegrad.ops.table.elementwise import bind_operands, elementwise
from tapegrad.ops.table.gateway import connect
from tapegrad.ops.table.op import Op, Sample, xp
from tapegrad.ops.table.promotion import forward_for
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor

_MOST_OF_A_UFUNC = 3  # operands
_SHAPES = {
    1: (((),), ((3,),), ((2, 3),), ((0, 3),)),
    2: (((), ()), ((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 3))),
}


@public()
def kernel_op(
    forward: Callable[..., Any],
    vjp: Callable[..., Any],
    *,
    name: str | None = None,
    domain: tuple[float, float] = (-3.0, 3.0),
    samples: Sequence[Sample] | None = None,
    oracle: Callable[..., Any] | None = None,
) -> Callable[..., Tensor]:
    """Make an elementwise operation of functions of numbers, which are compiled: no Python runs in a backward pass.

    Parameters
    ----------
    forward : callable
        From numbers, one for each operand, to a number: plain Python that Numba compiles, or a function that
        ``numba.njit`` has decorated. Its parameter names are those of the operands.
    vjp : callable
        From the cotangent of the result to those of the operands: a tuple of numbers, or a number for one operand. Its
        parameters are ``ct`` and what the tape is to keep: names of operands, and ``out`` for the result.
    name : str, optional
        Default the name of `forward`.
    domain : tuple of float
        The range from which `tapegrad.testing.check_op` draws operands.
    samples : sequence of Sample, optional
        The operands' shapes with which it checks the operation.
    oracle : callable, optional
        The same function in NumPy, which it compares with; default `forward`, called in Python for each element.

    Returns
    -------
    callable
        A function of tensors, arrays and numbers, which broadcasts.

    Raises
    ------
    ValueError
        If `vjp` asks for something else, or there is another operation of this name.

    Notes
    -----
    The operation may be differentiated once, and a second derivative raises. An operation whose derivatives are written
    as ops are has all of them: see docs/add_an_op.md.

    Examples
    --------
    >>> import math
    >>> import tapegrad as tg
    >>> def bump(x, width):
    ...     return math.exp(-1.0 / (1.0 - (x / width) ** 2)) if abs(x) < width else 0.0
    >>> def bump_vjp(ct, x, width, out):
    ...     u = x / width
    ...     slope = -2.0 * u * out / (1.0 - u * u) ** 2 if abs(u) < 1.0 else 0.0
    ...     return ct * slope / width, -ct * slope * u / width
    >>> smooth_bump = tg.kernel_op(bump, bump_vjp)
    >>> x = tg.tensor([-2.0, 0.0, 0.5], requires_grad=True)
    >>> y = smooth_bump(x, 1.0)
    >>> y
    tensor([0.0000, 0.3679, 0.2636], grad_fn=<BumpBackward0>)
    >>> y.sum().backward()
    >>> x.grad
    tensor([ 0.0000, -0.0000, -0.4686])
    """
    forward, vjp = _in_python(forward), _in_python(vjp)
    name = name or forward.__name__
    operands, asked = rule_parameters(forward), rule_parameters(vjp)
    unknown = sorted(set(asked) - {"ct", "out", *operands})
    if unknown or "ct" not in asked or not operands:
        raise ValueError(f"kernel_op {name}: vjp takes ct and of {[*operands, 'out']}, not {unknown or 'no ct'}")
    rules = tuple([_rule(f"{name}_vjp{number}", vjp, asked, number, len(operands)) for number in range(len(operands))])
    shapes = _SHAPES.get(len(operands), (((2, 3),) * len(operands), ((),) * (len(operands) - 1) + ((3,),)))
    return elementwise(
        name, operands, _ufunc(name, forward), rules, fx=forward, to_float=True, domain=domain, real_only=True,
        oracle=oracle or _one_by_one(forward), samples=samples or tuple([Sample(own) for own in shapes]),
    )  # fmt: skip


def _in_python(function: Callable[..., Any]) -> Any:
    """Return a function that `numba.njit` has decorated as it was before, and so those that it calls.

    Kernels compile them, and keep them on disk.
    """
    function = getattr(function, "py_func", function)
    if not isinstance(function, types.FunctionType):
        return function
    code, found = function.__code__, function.__globals__
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    compiled = {name: found[name] for name in code.co_names if hasattr(found.get(name), "py_func")}
    if not compiled and not any(hasattr(own, "py_func") for own in cells):
        return function
    names = {**found, **{name: _in_python(own) for name, own in compiled.items()}}
    closure = tuple([types.CellType(_in_python(own) if hasattr(own, "py_func") else own) for own in cells])
    return types.FunctionType(code, names, function.__name__, function.__defaults__, closure)


def _one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: np.vectorize(function, otypes=[np.result_type(*operands)])(*operands)


def _ufunc(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of numbers as one of arrays; numbers of other kinds than ours are computed in Python."""
    other = _one_by_one(function)
    return other if len(rule_parameters(function)) > _MOST_OF_A_UFUNC else Function(name, other, formula=function)


def _rule(name: str, vjp: Callable[..., Any], asked: Sequence[str], operand: int, count: int) -> Callable[..., Any]:
    """Return the rule of one operand: an op, whose formula is a part of what `vjp` returns."""
    names = ", ".join(asked)
    part = eval(f"lambda {names}: vjp({names})" + (f"[{operand}]" if count > 1 else ""), {"vjp": vjp})
    forward = _ufunc(name, part)
    op = Op(
        name=name, operands=tuple(asked), forward=forward, vjp=(_refused,) * len(asked), family="elementwise", fx=part,
        prepare_forward=forward_for(forward, None, True), bind=bind_operands(name, tuple(asked)), real_only=True,
        samples=(Sample(((3,),) * len(asked)),),
    )  # fmt: skip
    setattr(xp, name, connect(op))
    setattr(vmath, name, part)
    rule: Callable[..., Any] = eval(f"lambda {names}: xp.{name}({names})", {"xp": xp})
    return rule


def _refused(ct: Any) -> Any:
    raise RuntimeError("trying to differentiate twice an operation of kernel_op, which has first derivatives only")
