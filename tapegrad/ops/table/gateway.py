"""The gateway: from a call to its result and its entry, for every kind of op."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType
from typing import Any, Final

import numpy as np

from tapegrad import errors, modes, pass_modes
from tapegrad.dtypes import check_dtype
from tapegrad.forward import templates
from tapegrad.forward.prepared import first_result, prepared
from tapegrad.ops.table.op import Bound, NotYet, Op
from tapegrad.ops.table.results import several_results, with_nodes_named
from tapegrad.recording.keys import MAKES_VIEWS, SEQUENCE_OF_OPERANDS
from tapegrad.recording.plan import Plan
from tapegrad.recording.plan_cache import PlanCache, compiled
from tapegrad.recording.steps import address_of_array
from tapegrad.tape import versions, views
from tapegrad.tape.layout import BOOL, COMPLEX, FLOAT, INTEGER, InferenceLayout, Layout, inference, layout_of
from tapegrad.tensor import Tensor

#: Classes whose instances are operands as they are; those of other classes get a plain twin.
OPERANDS: Final[list[type[Tensor]]] = [Tensor]
#: The data of a tensor, also of one that is traced, which hides them.
raw_data: Final[Callable[[Tensor], Any]] = vars(Tensor)["_data"].__get__
_new = object.__new__  # half the time of Tensor.__new__, which goes through a wrapper


def constant(data: Any, layout: Layout) -> Tensor:
    """Return a tensor that no gradient is wanted for."""
    result = _new(Tensor)
    result._data, result._layout, result._node, result._grad = data, layout, None, None
    return result


def plain(tensor: Tensor) -> Tensor:
    """Return a plain tensor with the data and the node of an instance of a subclass."""
    result = _new(Tensor)
    result._data, result._layout, result._node, result._grad = tensor._data, tensor._layout, tensor._node, None
    result._viewed = getattr(tensor, "_viewed", tensor)  # views of the one are views of the other
    return result


def as_operand(value: Any, call: str, name: str, position: int) -> Tensor:
    """Return an operand as a plain tensor: arrays, NumPy scalars and Python numbers become constants.

    Raises
    ------
    TypeError
        If it is none of these.
    """
    if isinstance(value, Tensor):
        mode = modes.mode.value
        if mode:
            value = views.renewed(value)
            tracer = modes.tracer() if mode & modes.INTERCEPTORS else None
            if tracer is not None:
                value = tracer.operand(value)
        return value if value.__class__ in OPERANDS else plain(value)
    if isinstance(value, np.generic):
        check_dtype(value.dtype)
        return constant(value, layout_of(value))
    if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
        try:
            check_dtype(value.dtype)
        except TypeError:
            if value.dtype.isnative:
                raise
            return as_operand(value.astype(value.dtype.newbyteorder("=")), call, name, position)
        data = np.asarray(value if value.flags.aligned else value.copy())
        return constant(data, layout_of(data))
    for kind, layout in ((bool, BOOL), (int, INTEGER), (float, FLOAT), (complex, COMPLEX)):
        if isinstance(value, kind):
            return constant(value, layout)
    raise errors.not_a_tensor(call, name, position, value)


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of a tensor, array or number."""
    return value.shape if isinstance(value, Tensor) else np.shape(value)


def is_complex(value: Any) -> bool:
    """Whether a tensor, array or number is of a complex dtype."""
    if value.__class__ is Tensor or isinstance(value, Tensor):
        return bool(value._layout.dtype.kind == "c")
    return value.__class__ is not float and bool(np.iscomplexobj(value))


def values_of(value: Any, call: str, name: str, position: int) -> np.ndarray:
    """Return the data of an operand as an array, for functions that have no gradient; errors are `as_operand`'s."""
    return np.asarray(as_operand(value, call, name, position)._data)


def connect(
    op: Op,
    n_arguments: int = 0,
    flags: int = 0,
    *,
    name: str | None = None,
    bind: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Connect an op and return its call, which takes arguments by position.

    Compiled code serves it where there is a plan, otherwise the functions of this file.

    Parameters
    ----------
    op : Op
        With `Op.bind`.
    n_arguments : int
        The most arguments besides operands that compiled code looks at.
    flags : int
        See `tapegrad.recording.keys`.
    name, bind
        Of a second function of the op, which takes other arguments. If `bind` returns no `Bound`, that is the result.
    """
    plans = op.plans if bind is None else PlanCache()
    bind = bind or op.bind
    assert bind is not None, f"op {op.name} binds no arguments"

    def call_new(*args: Any, **kwargs: Any) -> Any:
        interceptor = modes.interceptor()
        if interceptor is not None:
            result = modes.around_call(plans.call, args, kwargs)
            if result is not NotImplemented:
                return result
        if flags & MAKES_VIEWS and args and args[0].__class__ is Tensor and args[0]._layout.inline:
            args[0]._array()  # which is what views are of; compiled code may know that layout
            return plans.call(*args, **kwargs)
        if interceptor is not None:
            return call_intercepted(interceptor, plans, call_bound, args, kwargs)
        bound = bind(*args, **kwargs)
        if bound.__class__ is not Bound:
            return bound  # the result, which other ops computed
        result, plan = compute(op, bound, is_seen=True)
        if plan is not None:
            plans.insert(plan, args, kwargs, bound.operands, bound.index_arrays)
        return result

    def call_bound(*args: Any, **kwargs: Any) -> Any:
        bound = bind(*args, **kwargs)
        return bound if bound.__class__ is not Bound else compute(op, bound)[0]

    n_operands = 1 if op.variadic else len(op.operands)
    plans.connect(
        name or op.name, n_operands, call_new, n_arguments, flags | (SEQUENCE_OF_OPERANDS if op.variadic else 0)
    )
    return lambda *args: plans.call(*args)


def connect_as(node_name: str, op: Op, n_arguments: int = 0, **more: Any) -> Callable[..., Tensor]:
    """Connect an op once more, for calls whose nodes have another name; see `connect`."""
    flags = more.pop("flags", op.plans.flags & ~SEQUENCE_OF_OPERANDS)
    return connect(with_nodes_named(op, node_name), n_arguments, flags, **more)


def apply(op: Op, bound: Bound) -> Tensor:
    """Compute an op and record it: for ops that are not connected."""
    result: Tensor = compute(op, bound)[0]
    return result


def compute(op: Op, bound: Bound, *, is_seen: bool = False) -> tuple[Any, Plan | None]:
    """Compute an op and record it; return the result, and the plan if it is not new and no interceptor was called.

    A new plan is not put into the table of compiled code: a program may have other lengths in each step. The call
    `is_seen` if there is no interceptor that has yet to see it.
    """
    operands, _, index_arrays = bound
    interceptor = None if is_seen else modes.interceptor()
    if interceptor is not None:
        with modes.uninterrupted():
            return interceptor(op, bound), None
    enabled = modes.is_grad_enabled()
    layouts = tuple([tensor._layout if enabled else tensor._layout.plain for tensor in operands])
    plan, out, is_known = forward(op, bound, layouts)
    known_plan = plan if is_known else None
    if plan.pack is not None:
        return plan.pack(plan, out, *operands), known_plan
    return compiled.finish(plan, out, *operands, *index_arrays), known_plan


def call_intercepted(
    interceptor: Any, plans: PlanCache, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return the result of a call whose operations are intercepted.

    An interceptor that remembers calls has a method `called_op`, which gets the plans of the op, the function that
    binds and computes any call, and the arguments.
    """
    remembers = getattr(interceptor, "called_op", None)
    return call(*args, **kwargs) if remembers is None else remembers(plans, call, args, kwargs)


def forward(
    op: Op,
    bound: Bound,
    layouts: tuple[Layout, ...],
    *,
    is_ordinary: bool = False,
    show: Callable[[Layout], np.ndarray] | None = None,
) -> tuple[Plan, Any, bool]:
    """Compute an op and record nothing; return its plan, the result's data, and whether the plan was known.

    In a trace NumPy computes what else a kernel would have to be compiled for, unless the call `is_ordinary`. If nobody
    asks for the result's values, a function may `show` an array of its layout.
    """
    operands, attrs, index_arrays = bound
    arrays = tuple([(array.shape, array.strides, array.dtype) for array in index_arrays]) if index_arrays else ()
    key = (layouts, tuple(attrs.values()), arrays)
    data = [raw_data(tensor) for tensor in operands]
    plan = op.plans.get(key)
    if plan is not None:
        return plan, plan.forward(*data, *index_arrays) if show is None else shown(plan, data, show), True
    if not is_ordinary and pass_modes.is_tracing():
        from tapegrad.ops.table.traced_forward import traced  # at call time: it imports this

        plan_and_out = traced(op, bound, layouts, data, key, show)
        if plan_and_out is not None:
            return *plan_and_out, False
    plan, out = new_plan(op, bound, layouts, data)
    op.plans.remember(key, plan)
    return plan, out, False


def shown(plan: Plan, data: Sequence[Any], show: Callable[[Layout], np.ndarray]) -> np.ndarray:
    """Return an array of the layout of a plan's result; a view, if it is one."""
    view: np.ndarray | None = plan.forward(*data) if plan.view_offset is not None else None
    return show(plan.result) if view is None else view


def new_plan(op: Op, bound: Bound, layouts: tuple[Layout, ...], data: list[Any]) -> tuple[Plan, Any]:
    """Return the plan of a new kind of call, and the result from which it was made."""
    _, attrs, index_arrays = bound
    if op.check is not None:
        op.check(bound)
    kind = templates.kind_of(op, layouts)
    ready = templates.find(kind, layouts, attrs) if kind is not None and kind.functions else None
    if ready is None:
        if kind is None or kind.facts is None:
            check_layouts(op, layouts)
        if kind is not None:
            kind.facts = True  # they were checked
        forward = op.forward_for(layouts, attrs)
        out = first_result(forward, layouts, data) if not index_arrays else forward(*data, *index_arrays)
        result = layout_of(out) if len(op.results) == 1 else None
        ready = forward if result is None else prepared(forward, layouts, result)
        if kind is not None and kind.learns:
            templates.learn(kind, op, layouts, attrs, result)
    else:
        out = ready(*data, *index_arrays)
        result = layout_of(out) if len(op.results) == 1 else None
    if result is None:
        plan = several_results(op, layouts, attrs, ready, out)
        check_saved(plan)
        return plan, out
    offset = None
    if ready.__class__ is not BuiltinFunctionType and len(data) == 1 and out.__class__ is np.ndarray:
        offset = _view_offset(out, data[0])
    if offset is not None and layouts[0].__class__ is InferenceLayout:
        result = inference(result)  # as what it is a view of
    plan = Plan(op, layouts, attrs, ready, result, names_of_arrays(len(index_arrays)), view_offset=offset)
    check_saved(plan)
    return plan, out


def check_saved(plan: Plan) -> None:
    """Raise an error if a tensor of inference mode would be a residual."""
    for number, layout in enumerate(plan.layouts if plan.records else ()):
        if layout.__class__ is InferenceLayout and (plan.op.variadic or plan.op.operands[number] in plan.saved):
            raise RuntimeError(errors.INFERENCE_SAVED)


@functools.cache
def names_of_arrays(count: int) -> tuple[str, ...]:
    """Return the names of index arrays, as residuals."""
    return tuple([f"index_array{number}" for number in range(count)])


def check_layouts(op: Op, layouts: tuple[Layout, ...]) -> None:
    """Raise an error if the op does not take operands of these dtypes, or has no rule yet."""
    for operand, layout in enumerate(layouts):
        if layout.requires_grad:
            rule = op.rule(operand)
            if isinstance(rule, NotYet):
                raise NotImplementedError(f"the derivative for '{op.name}' is not implemented: {rule.reason}")
    if op.real_only and any(layout.dtype.kind == "c" for layout in layouts):
        name = op.name.removesuffix("_along")  # users call max and median
        raise NotImplementedError(
            f"{name} not implemented for complex tensors; take the real part or the absolute value first"
        )
    if op.check_dtypes:
        op.check_dtypes(layouts)


def _view_offset(out: np.ndarray, data: Any) -> int | None:
    """Return the offset of a result in its operand's memory, in bytes; None if it is no view."""
    if out.base is None or not isinstance(data, np.ndarray):
        return None
    if out.base is data or out.base is data.base:
        shares = True
    elif out.size:
        shares = np.may_share_memory(out, data)
    else:  # an array without elements shares no memory, even if it is a view
        shares = versions.owner_of(out) is versions.owner_of(data)
    return address_of_array(out) - address_of_array(data) if shares else None
