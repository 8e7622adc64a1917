"""The families of elementwise ops: unary, binary, and any number of operands.

Each makes an op and returns the function that users call, which calls `tapegrad.recording.record`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tapegrad import errors
from tapegrad.forward.ufuncs import Function
from tapegrad.kernels.elementwise import elementwise_step, fused_step
from tapegrad.ops.table.callers import caller
from tapegrad.ops.table.docs import BINARY, UNARY, binary_docs, op_docstring
from tapegrad.ops.table.gateway import as_operand, connect, constant
from tapegrad.ops.table.op import Bound, ErrorSample, Op, Sample, Vjp, on_arrays
from tapegrad.ops.table.promotion import forward_for
from tapegrad.ops.table.public import Names, module_of, publish
from tapegrad.tape.layout import FLOAT, Layout, broadcast_shape
from tapegrad.tensor import Tensor, from_array

UNARY_SAMPLES = (Sample(((),)), Sample(((3,),)), Sample(((2, 3),)), Sample(((0, 3),)))
BINARY_SAMPLES = (
    Sample(((), ())),
    Sample(((3,), (3,))),
    Sample(((2, 3), (3,))),
    Sample(((2, 1), (1, 3))),
    Sample(((2, 3), (2, 1))),
    Sample(((), (2, 3))),
    Sample(((2, 0), (2, 1))),
)


METHOD = Names(method=True, inplace=True)  # public, and a method, also one that writes


def _of_input(input: Any) -> Any: ...  # the parameters of functions of one operand, and of two


def _of_input_and_other(input: Any, other: Any) -> Any: ...


def unary(
    name: str,
    forward: Callable[..., Any] | None,
    vjp: Vjp,
    *,
    doc: str,
    derivative: str = "",
    domain: tuple[float, float] = (-3.0, 3.0),
    special: Mapping[Any, Any] | None = None,
    to_float: bool = True,
    node_name: str = "",
    real_only: bool = False,
    oracle: Callable[..., Any] | None = None,
    errors: Sequence[ErrorSample] = (),
    flags: int = 0,
    call: Callable[..., Any] | None = None,
    check_dtypes: Callable[[tuple[Layout, ...]], None] | None = None,
    fx: Callable[..., Any] | None = None,
    linear: bool = False,
    names: Names | None = METHOD,
) -> Callable[[Any], Tensor]:
    """Make the op of an elementwise function of one operand ``x``, and return the function.

    Parameters
    ----------
    name : str
    forward : ufunc, or None
        None makes one of `fx`.
    vjp : callable
        Rule; may ask for ``ct``, ``x``, ``out``.
    doc, derivative : str
        A sentence on what it computes, and the derivative as a formula.
    domain, special, node, real_only, oracle, errors, call, check_dtypes, fx, linear
        As in `Op`.
    to_float : bool
        Integers are converted to the default dtype.
    flags : int
        See `tapegrad.recording.keys`.
    names : Names, optional
        Where users find it; None for nowhere.
    """
    forward = forward or _made_of(name, fx)
    op = Op(
        name=name,
        operands=("x",),
        forward=forward,
        vjp=(vjp,),
        family="unary",
        step=elementwise_step,
        node_name=node_name,
        real_only=real_only,
        oracle=oracle,
        domain=domain,
        special=special or {},
        samples=UNARY_SAMPLES,
        errors=errors,
        call=call,
        check_dtypes=check_dtypes,
        fx=fx,
        linear=linear,
        prepare_forward=forward_for(forward, None, to_float),
        bind=bind_operands(name, ("x",)),
    )
    connect(op, 0, flags)
    call = caller(op.plans, _of_input, name=name)
    call.plans = op.plans  # type: ignore[attr-defined]
    return publish(call, op, op_docstring(op, doc, UNARY, derivative, module_of(names)), names)


def binary(
    name: str,
    forward: Callable[..., Any] | None,
    vjp: tuple[Vjp, Vjp],
    *,
    doc: str,
    derivative: str = "",
    scalar: Callable[..., Any] | None = None,
    fx: Callable[..., Any] | None = None,
    linear: bool = False,
    bilinear: bool = False,
    domain: tuple[float, float] = (-3.0, 3.0),
    special: Mapping[Any, Any] | None = None,
    to_float: bool = False,
    node_name: str = "",
    real_only: bool = False,
    oracle: Callable[..., Any] | None = None,
    samples: Sequence[Sample] = BINARY_SAMPLES,
    extra_errors: Sequence[ErrorSample] = (),
    check_dtypes: Callable[[tuple[Layout, ...]], None] | None = None,
    names: Names | None = METHOD,
    signature: Callable[[Any, Any], Any] = _of_input_and_other,
) -> Callable[[Any, Any], Tensor]:
    """Make the op of an elementwise function of two operands ``x`` and ``y``, and return the function.

    Parameters
    ----------
    name : str
    forward : ufunc, or None
        None makes one of `fx`.
    vjp : pair of callable
        Rules for ``x`` and for ``y``; they undo no broadcasting.
    doc, derivative : str
        A sentence on what it computes, and the derivatives as formulas.
    scalar : callable, optional
        The operator that computes the same on scalars, and faster.
    domain, special, node, real_only, oracle, samples, extra_errors, check_dtypes, fx, linear, bilinear
        As in `Op`.
    to_float : bool
        Integers are converted to the default dtype.
    names : Names, optional
        Where users find it; None for nowhere.
    signature : callable, optional
        Has the public function's parameters, if these are not ``input`` and ``other``.
    """
    forward = forward or _made_of(name, fx)
    op = Op(
        name=name,
        operands=("x", "y"),
        forward=forward,
        vjp=vjp,
        family="binary",
        step=elementwise_step,
        fused=fused_step,
        node_name=node_name,
        real_only=real_only,
        oracle=oracle,
        domain=domain,
        special=special or {},
        samples=samples,
        fx=fx,
        linear=linear,
        bilinear=bilinear,
        check_dtypes=check_dtypes,
        errors=(
            ErrorSample(
                lambda: call(from_array(np.ones(3)), from_array(np.ones(2))),
                RuntimeError,
                "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 0",
            ),
            *extra_errors,
        ),
        prepare_forward=forward_for(forward, scalar, to_float),
        bind=bind_operands(name, ("x", "y")),
        check=lambda bound: check_broadcast(name, bound.operands),
    )
    connect(op)

    call = caller(op.plans, signature, name=name)
    call.plans = op.plans  # type: ignore[attr-defined]
    common = BINARY if signature is _of_input_and_other else binary_docs(signature)
    return publish(call, op, op_docstring(op, doc, common, derivative, module_of(names)), names)


def elementwise(
    name: str,
    operands: tuple[str, ...],
    forward: Callable[..., Any] | None,
    vjp: tuple[Vjp, ...],
    *,
    doc: str = "",
    to_float: bool = False,
    promoted: tuple[int, ...] | None = None,
    fx: Callable[..., Any] | None = None,
    linear: bool = False,
    domain: tuple[float, float] = (-3.0, 3.0),
    special: Mapping[Any, Any] | None = None,
    node_name: str = "",
    real_only: bool = False,
    oracle: Callable[..., Any] | None = None,
    samples: Sequence[Sample],
    extra_errors: Sequence[ErrorSample] = (),
    call: Callable[..., Any] | None = None,
    check_dtypes: Callable[[tuple[Layout, ...]], None] | None = None,
) -> Callable[..., Tensor]:
    """Make the op of an elementwise function of several operands, and return the function.

    Parameters
    ----------
    operands : tuple of str
    doc : str
        A sentence, unless a public function is made of it that has one.
    promoted : tuple of int, optional
        Indices of the operands that are converted to a common dtype; default all (a condition is not).
    forward, fx, linear
        As of `unary`.
    """
    forward = forward or _made_of(name, fx)
    op = Op(
        name=name,
        operands=operands,
        forward=forward,
        vjp=vjp,
        family="elementwise",
        step=elementwise_step,
        fx=fx,
        linear=linear,
        node_name=node_name,
        real_only=real_only,
        oracle=oracle,
        domain=domain,
        special=special or {},
        samples=samples,
        errors=extra_errors,
        call=call,
        check_dtypes=check_dtypes,
        prepare_forward=forward_for(forward, None, to_float, promoted),
        bind=bind_operands(name, operands, promoted or ()),
        check=lambda bound: check_broadcast(name, bound.operands),
    )

    connect(op)
    plans = op.plans

    def function(*values: Any) -> Tensor:
        return plans.call(*values)

    return publish(function, op, doc)


def _made_of(name: str, fx: Callable[..., Any] | None) -> Function:
    """Return the forward that computes a formula in one pass over the elements."""
    if fx is None:
        raise ValueError(f"op {name} has neither a forward nor a formula")
    return Function(name, on_arrays(fx), errors="invalid divide", formula=fx)


_PUBLIC_NAMES = {"x": "input", "y": "other"}


def bind_operands(name: str, operands: Sequence[str], promoted: Sequence[int] = ()) -> Callable[..., Bound]:
    """Return `Op.bind`: it converts operands to tensors, and integers beside floating operands to floats.

    Parameters
    ----------
    name : str
        Of the op, for messages.
    operands : sequence of str
    promoted : sequence of int, optional
        Indices of the operands that are converted to a common dtype; default all.
    """
    if len(operands) == 1:
        only = _PUBLIC_NAMES.get(operands[0], operands[0])
        return lambda value: Bound((as_operand(value, name, only, 1),))
    names = [_PUBLIC_NAMES.get(operand, operand) for operand in operands]
    indices = tuple(promoted) or tuple(range(len(names)))

    def bind(*values: Any) -> Bound:
        tensors = [
            as_operand(value, name, operand, position)
            for position, (operand, value) in enumerate(zip(names, values, strict=True), 1)
        ]
        for index in indices:
            layout = tensors[index]._layout
            # Residuals cannot be read from an integer.
            if layout.weak and not layout.floating and any(tensor._layout.floating for tensor in tensors):
                tensors[index] = constant(float(tensors[index]._data), FLOAT)
        return Bound(tensors)

    return bind


def check_broadcast(call: str, operands: Sequence[Tensor]) -> tuple[int, ...]:
    """Return the shape that the operands' shapes broadcast to; raise PyTorch's error unless they do."""
    shape = operands[0].shape
    for operand in operands[1:]:
        if operand.shape == shape:
            continue
        try:
            shape = broadcast_shape(shape, operand.shape)
        except ValueError:
            raise errors.broadcast_mismatch(call, shape, operand.shape) from None
    return shape
