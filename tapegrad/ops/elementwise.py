"""The families of elementwise rows: unary, binary, and any number of operands; here is the recording path.

`unary` and `binary` return the function that users call. Its body is the hot path of tapegrad, so it is written out
twice and flat: it finds the plan by the operands' layouts, computes, and writes handle and entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tapegrad import errors, modes
from tapegrad.kernels import elementwise_step
from tapegrad.layout import FLOAT, Layout
from tapegrad.ops.promotion import forward_for
from tapegrad.ops.record import apply, as_operand, finish, new_plan
from tapegrad.ops.row import ErrorSample, Row, Sample, Vjp, xp
from tapegrad.plan import Plan
from tapegrad.printing import format_tensor
from tapegrad.tape import MEMORY, pack_binary, pack_unary, recorder
from tapegrad.tensor import Tensor, from_array

_new = object.__new__  # half the time of Tensor.__new__, which goes through a wrapper
_MAX_PLANS = 1024  # operand layouts that one row remembers before it starts over

UNARY_SAMPLES = (Sample(((),)), Sample(((3,),)), Sample(((2, 3),)), Sample(((0, 3),)))
BINARY_SAMPLES = (
    Sample(((), ())),
    Sample(((3,), (3,))),
    Sample(((2, 3), (3,))),
    Sample(((2, 1), (1, 3))),
    Sample(((), (2, 3))),
    Sample(((2, 0), (2, 1))),
)


_EXAMPLE_OPERANDS = ([0.5, 2.0], [2.0, 2.0])


def _doc(row: Row, summary: str, formula: str) -> str:
    """Return the docstring of a row: the family's part, the row's sentence and formula, and an example computed now."""
    binary_row = len(row.operands) == 2
    lines = [summary, "", "Parameters", "----------"]
    lines += ["input, other : Tensor, array or number"] if binary_row else ["input : Tensor, array or number"]
    lines += ["", "Returns", "-------", "Tensor"]
    if binary_row:
        lines += ["    Of the shape that the operands broadcast to."]
        lines += ["", "Raises", "------", "RuntimeError", "    If the shapes do not broadcast."]
        lines += ["TypeError", "    If an operand is no tensor, array or number."]
    else:
        lines += ["    Of the operand's shape.", "", "Raises", "------", "TypeError"]
        lines += ["    If the operand is no tensor, array or number."]
    if formula:
        lines += ["", "Notes", "-----", f"Derivative: {formula}"]
    operands = _EXAMPLE_OPERANDS[: len(row.operands)]
    arguments = ", ".join(f"tg.tensor({values})" for values in operands)
    with np.errstate(all="ignore"):  # 2 has no arc sine
        out = format_tensor((row.oracle or row.forward)(*map(np.array, operands)))
    lines += ["", "Examples", "--------", ">>> import tapegrad as tg", f">>> tg.{row.name}({arguments})", out]
    return "\n".join(lines)


def unary(
    name: str,
    forward: Callable[..., Any],
    vjp: Vjp,
    *,
    doc: str,
    derivative: str = "",
    domain: tuple[float, float] = (-3.0, 3.0),
    special: Mapping[Any, Any] | None = None,
    to_float: bool = True,
    node: str = "",
    real_only: bool = False,
    oracle: Callable[..., Any] | None = None,
    errors: Sequence[ErrorSample] = (),
) -> Callable[[Any], Tensor]:
    """Make the row of an elementwise function of one operand ``x``, and return the function.

    Parameters
    ----------
    name : str
    forward : ufunc
    vjp : callable
        Rule; may ask for ``ct``, ``x``, ``out``.
    doc, derivative : str
        A sentence on what it computes, and the derivative as a formula.
    domain, special, node, real_only, oracle, errors
        As in `Row`.
    to_float : bool
        Integers are converted to the default dtype.
    """
    row = Row(
        name=name,
        operands=("x",),
        forward=forward,
        vjp=(vjp,),
        family="unary",
        step=elementwise_step,
        node=node,
        real_only=real_only,
        oracle=oracle,
        domain=domain,
        special=special or {},
        samples=UNARY_SAMPLES,
        errors=errors,
        prepare_forward=forward_for(forward, None, to_float),
    )
    plans: dict[Layout, Plan] = row.plans

    def record_new(value: Any) -> Tensor:
        x = as_operand(value, name, "input", 1)
        layout = x._layout if modes.is_grad_enabled() else x._layout.plain
        plan = plans.get(layout)
        if plan is None:
            plan, out = new_plan(row, (layout,), [x._data], {})
            if len(plans) >= _MAX_PLANS:
                plans.clear()
            plans[layout] = plan
        else:
            out = plan.forward(x._data)
        return finish(plan, out, (x,))

    def call(input: Any) -> Tensor:
        if input.__class__ is not Tensor or modes.disabled:
            return record_new(input)
        layout = input._layout
        if layout not in plans:
            return record_new(input)
        plan = plans[layout]
        x = input._data
        out = plan.forward(x)
        result = _new(Tensor)
        result._data = out
        result._layout = plan.result
        result._grad = None
        if not plan.records:
            result._handle = None
            result._slot = 0
            return result
        page = recorder.page
        try:
            slot = page.free.pop()
        except IndexError:
            page, slot = recorder.take_slot()
        save = plan.save
        if save == 1:
            handle = [slot, page, plan, input._handle, x]
        elif save == 2:
            handle = [slot, page, plan, input._handle, out]
        elif save == 0:
            handle = [slot, page, plan, input._handle]
        else:
            handle = [slot, page, plan, input._handle, x, out]
        result._handle = handle
        result._slot = slot
        pack_unary(MEMORY, slot, plan.address, id(handle), input._slot)
        return result

    return _publish(call, row, _doc(row, doc, derivative))


def binary(
    name: str,
    forward: Callable[..., Any],
    vjp: tuple[Vjp, Vjp],
    *,
    doc: str,
    derivative: str = "",
    scalar: Callable[..., Any] | None = None,
    bilinear: bool = False,
    domain: tuple[float, float] = (-3.0, 3.0),
    special: Mapping[Any, Any] | None = None,
    to_float: bool = False,
    node: str = "",
    real_only: bool = False,
    oracle: Callable[..., Any] | None = None,
    samples: Sequence[Sample] = BINARY_SAMPLES,
    extra_errors: Sequence[ErrorSample] = (),
) -> Callable[[Any, Any], Tensor]:
    """Make the row of an elementwise function of two operands ``x`` and ``y``, and return the function.

    Parameters
    ----------
    name : str
    forward : ufunc
    vjp : pair of callable
        Rules for ``x`` and for ``y``; they undo no broadcasting.
    doc, derivative : str
        A sentence on what it computes, and the derivatives as formulas.
    scalar : callable, optional
        The operator that computes the same on scalars, and faster.
    bilinear : bool
        Whether it is linear in each operand; a promise that tests hold.
    domain, special, node, real_only, oracle, samples, extra_errors
        As in `Row`.
    to_float : bool
        Integers are converted to the default dtype.
    """
    row = Row(
        name=name,
        operands=("x", "y"),
        forward=forward,
        vjp=vjp,
        family="binary",
        step=elementwise_step,
        node=node,
        real_only=real_only,
        oracle=oracle,
        domain=domain,
        special=special or {},
        samples=samples,
        bilinear=bilinear,
        errors=(
            ErrorSample(
                lambda: call(from_array(np.ones(3)), from_array(np.ones(2))),
                RuntimeError,
                "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 0",
            ),
            *extra_errors,
        ),
        prepare_forward=forward_for(forward, scalar, to_float),
    )
    plans: dict[Layout, dict[Layout, Plan]] = row.plans

    def record_new(first: Any, second: Any) -> Tensor:
        x, y = as_operand(first, name, "input", 1), as_operand(second, name, "other", 2)
        if y._layout.weak and x._layout.floating and not isinstance(y._data, (float, complex)):
            y._data, y._layout = float(y._data), FLOAT  # an integer, which residuals cannot be read from
        if x._layout.weak and y._layout.floating and not isinstance(x._data, (float, complex)):
            x._data, x._layout = float(x._data), FLOAT
        record = modes.is_grad_enabled()
        layout_x = x._layout if record else x._layout.plain
        layout_y = y._layout if record else y._layout.plain
        plan = plans.get(layout_x, {}).get(layout_y)
        if plan is None:
            check_broadcast(name, (x, y))
            plan, out = new_plan(row, (layout_x, layout_y), [x._data, y._data], {})
            if len(plans) >= _MAX_PLANS or len(plans.get(layout_x, ())) >= _MAX_PLANS:
                plans.clear()
            plans.setdefault(layout_x, {})[layout_y] = plan
        else:
            out = plan.forward(x._data, y._data)
        return finish(plan, out, (x, y))

    # Assignments stand one by one: CPython makes a tuple for four on a line.
    def call(input: Any, other: Any) -> Tensor:
        if input.__class__ is Tensor:
            layout_x = input._layout
            x = input._data
            handle_x = input._handle
            slot_x = input._slot
        elif input.__class__ is float:
            layout_x = FLOAT
            x = input
            handle_x = None
            slot_x = 0
        else:
            return record_new(input, other)
        if other.__class__ is Tensor:
            layout_y = other._layout
            y = other._data
            handle_y = other._handle
            slot_y = other._slot
        elif other.__class__ is float or (other.__class__ is int and layout_x.floating):
            layout_y = FLOAT
            y = float(other)
            handle_y = None
            slot_y = 0
        else:
            return record_new(input, other)
        if modes.disabled:
            return record_new(input, other)
        try:
            plan = plans[layout_x][layout_y]
        except KeyError:
            return record_new(input, other)
        out = plan.forward(x, y)
        result = _new(Tensor)
        result._data = out
        result._layout = plan.result
        result._grad = None
        if not plan.records:
            result._handle = None
            result._slot = 0
            return result
        page = recorder.page
        try:
            slot = page.free.pop()
        except IndexError:
            page, slot = recorder.take_slot()
        save = plan.save
        if save == 3:
            handle = [slot, page, plan, handle_x, handle_y, x, y]
        elif save == 0:
            handle = [slot, page, plan, handle_x, handle_y]
        elif save == 2:
            handle = [slot, page, plan, handle_x, handle_y, y]
        elif save == 1:
            handle = [slot, page, plan, handle_x, handle_y, x]
        else:
            handle = [slot, page, plan, handle_x, handle_y]
            handle += [value for bit, value in enumerate((x, y, out)) if save >> bit & 1]
        result._handle = handle
        result._slot = slot
        pack_binary(MEMORY, slot, plan.address, id(handle), slot_x, slot_y)
        return result

    return _publish(call, row, _doc(row, doc, derivative))


def elementwise(
    name: str,
    operands: tuple[str, ...],
    forward: Callable[..., Any],
    vjp: tuple[Vjp, ...],
    *,
    to_float: bool = False,
    promoted: tuple[int, ...] | None = None,
    domain: tuple[float, float] = (-3.0, 3.0),
    special: Mapping[Any, Any] | None = None,
    node: str = "",
    real_only: bool = False,
    oracle: Callable[..., Any] | None = None,
    samples: Sequence[Sample],
    extra_errors: Sequence[ErrorSample] = (),
) -> Callable[..., Tensor]:
    """Make the row of an elementwise function of several operands, and return what records it.

    Parameters
    ----------
    operands : tuple of str
    promoted : tuple of int, optional
        Numbers of the operands that are converted to a common dtype; default all (a condition is not).
    """
    row = Row(
        name=name,
        operands=operands,
        forward=forward,
        vjp=vjp,
        family="elementwise",
        step=elementwise_step,
        node=node,
        real_only=real_only,
        oracle=oracle,
        domain=domain,
        special=special or {},
        samples=samples,
        errors=extra_errors,
        prepare_forward=forward_for(forward, None, to_float, promoted),
    )

    def call(*values: Any) -> Tensor:
        tensors = [
            as_operand(value, name, operand, place)
            for place, (operand, value) in enumerate(zip(operands, values, strict=True), 1)
        ]
        floating = any(tensor._layout.floating for tensor in tensors)
        for tensor in tensors:
            if floating and tensor._layout.weak and tensor.dtype.kind in "iu":
                tensor._data, tensor._layout = float(tensor._data), FLOAT
        check_broadcast(name, tensors)
        return apply(row, tensors, {})

    return _publish(call, row, "")


def check_broadcast(call: str, operands: Sequence[Tensor]) -> None:
    """Raise PyTorch's error unless the operands' shapes broadcast."""
    shape: tuple[int, ...] = ()
    for operand in operands:
        try:
            shape = np.broadcast_shapes(shape, operand.shape)
        except ValueError:
            raise errors.broadcast_mismatch(call, shape, operand.shape) from None


def _publish(call: Callable[..., Tensor], row: Row, doc: str) -> Callable[..., Tensor]:
    call.__name__ = call.__qualname__ = row.name
    call.__module__ = "tapegrad"
    call.__doc__ = doc
    call.row = row  # type: ignore[attr-defined]
    setattr(xp, row.name, call)
    return call
