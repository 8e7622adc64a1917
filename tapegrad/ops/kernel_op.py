"""`kernel_op`: an operation of the user's, of numbers or of arrays, whose forward and derivatives are kernels."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad import vmath
from tapegrad.forward.ufuncs import Function
from tapegrad.kernels.rules import rule_parameters
from tapegrad.ops.array_op import ArrayRule, array_op, array_rule
from tapegrad.ops.table.elementwise import bind_operands, elementwise
from tapegrad.ops.table.gateway import connect
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Op, Sample, xp
from tapegrad.ops.table.promotion import forward_for
from tapegrad.ops.table.public import public
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.runtime.source_text import evaluated
from tapegrad.tensor import Tensor

_MOST_OF_A_UFUNC = 3  # operands
_SHAPES = {
    1: (((),), ((3,),), ((2, 3),), ((0, 3),)),
    2: (((), ()), ((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 3))),
}


@public()
def kernel_op(
    forward: Callable[..., Any],
    vjp: Callable[..., Any] | Sequence[Callable[..., Any] | None],
    *,
    shape: Callable[..., tuple[int, ...]] | None = None,
    name: str | None = None,
    domain: tuple[float, float] = (-3.0, 3.0),
    samples: Sequence[Sample] | None = None,
    oracle: Callable[..., Any] | None = None,
) -> Callable[..., Tensor]:
    """Make an operation of functions that are compiled: no Python runs in a backward pass.

    Parameters
    ----------
    forward : callable
        From numbers, one for each operand, to a number: plain Python, which is compiled, or a function that
        ``numba.njit`` has decorated. Its parameter names are those of the operands. With `shape` it takes arrays (a
        tensor without dimensions is a number) and as last argument the result, an array of zeros, which it fills.
    vjp : callable, or sequence of (callable or None)
        For each operand the function from the cotangent of the result to that of the operand; None for operands without
        gradient. Its parameters are the cotangent, and what the tape is to keep: names of operands, and ``out`` for the
        result. With `shape` its last argument is the operand's cotangent, to which it adds. One function of numbers may
        serve all operands, and return a tuple. A function that `kernel_op` made has derivatives, and so the operation
        has second ones; other functions have none.
    shape : callable, optional
        From the shapes of the operands to that of the result.
    name : str, optional
        Default the name of `forward`.
    domain : tuple of float
        The range from which `tapegrad.testing.check_op` draws operands.
    samples : sequence of Sample, optional
        The operands' shapes with which it checks the operation; it needs them if there is a `shape`.
    oracle : callable, optional
        The same function in NumPy, which it compares with; default `forward`, called in Python.

    Returns
    -------
    callable
        A function of tensors, arrays and numbers. Without `shape` it broadcasts.

    Raises
    ------
    ValueError
        If `vjp` asks for something else, or there is another operation of this name.
    TypeError
        If a function cannot be compiled; raised at the first call. Functions of arrays consist of loops over elements:
        they make no arrays.

    Notes
    -----
    Operands with a gradient, and the result, are all of one dtype, ``float32`` or ``float64``; operands without keep
    theirs. Operations whose derivatives are written as ops have all of them: see docs/develop/add_an_op.md.

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
    function = _in_python(forward)
    name = name or function.__name__
    parameters = rule_parameters(function)
    operands = parameters if shape is None else parameters[:-1]
    if not operands:
        raise ValueError(f"kernel_op {name}: forward has no operands")
    parts = _parts(name, operands, vjp, shape is not None)
    if shape is not None:
        constants = [own for own, part in zip(operands, parts, strict=True) if part is None]
        rules = [None if own is None else own.rule_of_arrays(f"{name}_vjp{number}", operands[number], constants)
                 for number, own in enumerate(parts)]  # fmt: skip
        made = array_op(name, operands, function, rules, shape, samples=samples or (), domain=domain, oracle=oracle)
    else:
        shapes = _SHAPES.get(len(operands), (((2, 3),) * len(operands), ((),) * (len(operands) - 1) + ((3,),)))
        by_operand = tuple([
            NOT_DIFFERENTIABLE if own is None else own.rule(f"{name}_vjp{number}") for number, own in enumerate(parts)
        ])  # fmt: skip
        made = elementwise(
            name, operands, _ufunc(name, function), by_operand, fx=function, to_float=True, domain=domain,
            real_only=True, oracle=oracle or _one_by_one(function),
            samples=samples or tuple([Sample(own) for own in shapes]),
        )  # fmt: skip
        setattr(vmath, name, function)  # where kernels find it that call it as a rule
    made.function = function  # type: ignore[attr-defined]
    return made


class _Part(NamedTuple):
    """The function that computes the cotangent of one operand.

    Attributes
    ----------
    function : callable
    names : tuple of str
        Of its arguments: ``ct`` first. An operation calls it otherwise.
    op : str
        The operation of `kernel_op` that it is; empty for a plain function.
    """

    function: Callable[..., Any]
    names: tuple[str, ...]
    op: str

    def rule(self, name: str) -> Callable[..., Any]:
        """Return the rule of an elementwise operation; a plain function is made an op of this name."""
        if not self.op:
            _make_op(name, self.function, self.names)
        return self._called(self.op or name)

    def rule_of_arrays(self, name: str, operand: str, constants: Sequence[str]) -> ArrayRule:
        """Return the rule of an operation over arrays; a plain function is made an op of this name."""
        if self.op:
            return ArrayRule(self.function, self.names, self._called(self.op))
        return array_rule(name, self.function, self.names, operand, constants, _refused)

    def _called(self, op: str) -> Callable[..., Any]:
        names = ", ".join(self.names)
        rule: Callable[..., Any] = evaluated(f"lambda {names}: xp.{op}({names})", {"xp": xp})
        return rule


def _parts(name: str, operands: tuple[str, ...], vjp: Any, of_arrays: bool) -> list[_Part | None]:
    """Return the function of each operand, None for operands without gradient."""
    if callable(vjp) and len(operands) > 1:
        if of_arrays or hasattr(vjp, "op"):
            raise ValueError(f"kernel_op {name}: vjp is a function for each of {list(operands)}, not one for all")
        function = _in_python(vjp)
        names = _arguments(name, operands, rule_parameters(function))
        return [_Part(_item(function, names, number), names, "") for number in range(len(operands))]
    functions = (vjp,) if callable(vjp) else tuple(vjp)
    if len(functions) != len(operands):
        raise ValueError(f"kernel_op {name}: {len(functions)} functions in vjp for operands {list(operands)}")
    parts: list[_Part | None] = []
    for own in functions:
        op = getattr(own, "op", None)
        if op is not None and (op.family == "array") != of_arrays:
            raise ValueError(
                f"kernel_op {name}: an operation of arrays and one of numbers cannot be rules of each other"
            )
        function = None if own is None else _in_python(getattr(own, "function", own))
        if function is None:
            parts.append(None)
            continue
        names = _arguments(name, operands, rule_parameters(function)[: -1 if of_arrays else None])
        parts.append(_Part(function, names, "" if op is None else op.name))
    return parts


def _arguments(name: str, operands: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments of a rule: the first is the cotangent, whatever the function calls it."""
    known = {*operands, "out"}
    if not names or names[0] in known or not known.issuperset(names[1:]):
        raise ValueError(
            f"kernel_op {name}: vjp takes ct and of {[*operands, 'out']}, not {list(names)}; the first, the cotangent, "
            "has another name than operands"
        )
    return "ct", *names[1:]


def _item(function: Callable[..., Any], names: Sequence[str], number: int) -> Callable[..., Any]:
    """Return a function that returns one item of what another one returns."""
    listed = ", ".join(names)
    item: Callable[..., Any] = evaluated(f"lambda {listed}: function({listed})[{number}]", {"function": function})
    return item


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


def _make_op(name: str, function: Callable[..., Any], operands: tuple[str, ...]) -> None:
    """Make the op that a rule calls, without a derivative; kernels call its formula."""
    forward = _ufunc(name, function)
    op = Op(
        name=name, operands=operands, forward=forward, vjp=(_refused,) * len(operands), family="elementwise",
        fx=function, prepare_forward=forward_for(forward, None, True), bind=bind_operands(name, operands),
        real_only=True, samples=(Sample(((3,),) * len(operands)),),
    )  # fmt: skip
    setattr(xp, name, connect(op))
    setattr(vmath, name, function)


def _refused(ct: Any) -> Any:
    raise RuntimeError(
        "trying to differentiate twice an operation of kernel_op whose vjp has no derivative; give it a vjp that "
        "kernel_op made, too"
    )
