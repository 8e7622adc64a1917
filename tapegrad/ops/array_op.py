"""Operations of users over whole arrays, whose forward and rules are functions that fill an array: see `kernel_op`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.jit import JitError
from tapegrad.dtypes import default_dtype
from tapegrad.forward.computed import computed
from tapegrad.kernels.arrays import array_geometry, array_kernel
from tapegrad.kernels.elementwise import BIND
from tapegrad.ops.broadcasting import contiguous
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, Op, Sample, xp
from tapegrad.ops.table.public import publish
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.runtime.source_text import evaluated
from tapegrad.tape.layout import Layout, dtype_name
from tapegrad.tensor import Tensor, from_array

Shape = tuple[int, ...]
_MOST_OPERANDS: Final = 15  # that a compiled forward takes


class ArrayRule(NamedTuple):
    """The rule of one operand, as an op too.

    Attributes
    ----------
    function : callable, optional
        Adds to its last argument, which has the shape of the operand; the arguments before it are what `names` says.
        Without it the sweep calls the rule.
    names : tuple of str
        ``ct`` first, then residuals.
    rule : callable
        The same with tensors, as of `Op.vjp`.
    """

    function: Callable[..., None] | None
    names: tuple[str, ...]
    rule: Callable[..., Any]


def array_op(
    name: str,
    operands: tuple[str, ...],
    function: Callable[..., None],
    rules: Sequence[ArrayRule | None],
    shape: Callable[..., Shape] | None,
    *,
    samples: Sequence[Sample] = (),
    domain: tuple[float, float] = (-3.0, 3.0),
    oracle: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Make an op of a function that fills its last argument, and return the function that users call.

    Parameters
    ----------
    name : str
    operands : tuple of str
    function : callable
    rules : sequence of ArrayRule
        None for operands that have no gradient.
    shape : callable, optional
        From the operands' shapes to the result's; without it the shape is an attribute.
    samples, domain, oracle
        As in `Op`.
    """
    if len(operands) > _MOST_OPERANDS:
        raise ValueError(f"kernel_op {name}: at most {_MOST_OPERANDS} operands, not {len(operands)}")

    def result_shape(shapes: Sequence[Shape], attrs: dict[str, Any]) -> Shape:
        return tuple([int(length) for length in shape(*shapes)]) if shape is not None else attrs["shape"]

    def in_python(*values: Any, **attrs: Any) -> Any:
        arrays = [np.asarray(value) for value in values]
        dtype = _common_dtype([array.dtype for array, rule in zip(arrays, rules, strict=True) if rule is not None])
        out = np.zeros(result_shape([array.shape for array in arrays], attrs), dtype)
        function(*[array[()] for array in arrays], out)
        return out[()]

    def prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
        shapes = [layout.shape for layout in layouts]
        target, dtype = result_shape(shapes, attrs), _dtype_of(layouts, rules)
        compute = computed(
            _address(name, function, layouts, dtype, len(target)), array_geometry([*shapes, target]), target, dtype,
            in_python, adds=True, by_status=True,
        )  # fmt: skip
        if any(layout.inline for layout in layouts):
            return lambda *values: compute(*map(np.asarray, values))
        return compute

    def step(plan: Plan, operand: int) -> Step | None:
        own, target = rules[operand], plan.layouts[operand]
        if own is None or own.function is None:
            return None
        layouts = [plan.layout(residual) for residual in own.names]
        shapes = [*[layout.shape for layout in layouts], target.shape]
        kernel = functools.partial(
            _address, f"{name}-vjp{operand}", own.function, layouts, target.dtype, len(target.shape)
        )
        return Step(kernel, array_geometry(shapes), [plan.source(own_name) for own_name in own.names], into_view=True)

    def bind(*values: Any, **attrs: Any) -> Bound:
        if len(values) != len(operands):
            raise TypeError(f"{name}() takes {len(operands)} operands, {', '.join(operands)}, and got {len(values)}")
        tensors = [
            as_operand(value, name, own, at) for at, (own, value) in enumerate(zip(operands, values, strict=True), 1)
        ]
        dtype = _dtype_of([tensor._layout for tensor in tensors], rules)
        return Bound(
            [_in_order(own, None if rule is None else dtype) for own, rule in zip(tensors, rules, strict=True)], attrs
        )

    op = Op(
        name=name, operands=operands, forward=in_python, family="array", step=step, bind=bind, prepare_forward=prepare,
        vjp=tuple([NOT_DIFFERENTIABLE if own is None else own.rule for own in rules]), real_only=True,
        attrs=() if shape is not None else ("shape",), oracle=oracle or in_python, samples=samples, domain=domain,
    )  # fmt: skip
    call = connect(op)
    plans = op.plans
    if shape is None:
        return publish(lambda *values, shape: plans.call(*values, shape=shape), op, "")
    return publish(call, op, function.__doc__ or "")


def array_rule(
    name: str,
    function: Callable[..., None],
    names: tuple[str, ...],
    operand: str,
    constants: Sequence[str],
    refused: Callable[[Any], Any],
) -> ArrayRule:
    """Return the rule of an operand from the function that adds to its cotangent; it is made an op.

    Parameters
    ----------
    name : str
        Of that op.
    function : callable
    names : tuple of str
        What the function takes before the cotangent.
    operand : str
    constants : sequence of str
        Operands that have no gradient.
    refused : callable
        The rule of the op's own operands.
    """
    rules = [None if own in constants else ArrayRule(None, ("ct",), refused) for own in names]
    array_op(name, names, function, rules, None)
    listed = ", ".join(names)
    rule = evaluated(f"lambda {listed}, {operand}_shape: xp.{name}({listed}, shape={operand}_shape)", {"xp": xp})
    return ArrayRule(function, names, rule)


def _common_dtype(dtypes: Sequence[np.dtype]) -> np.dtype:
    floating = [dtype for dtype in dtypes if dtype.kind in "fc"]
    return np.result_type(*floating) if floating else default_dtype()


def _dtype_of(layouts: Sequence[Layout], rules: Sequence[Any]) -> np.dtype:
    """Return the dtype of the operands that have gradients, and of the result; Python's numbers do not count."""
    own = [layout for layout, rule in zip(layouts, rules, strict=True) if rule is not None]
    return _common_dtype([layout.dtype for layout in own if not layout.weak])


def _in_order(tensor: Tensor, dtype: np.dtype | None) -> Tensor:
    """Return an operand as an array, of this dtype and contiguous."""
    if tensor._layout.weak:
        return from_array(np.asarray(tensor._data, dtype))
    return contiguous(tensor if dtype is None else xp.cast(tensor, dtype))


def _address(name: str, function: Callable[..., None], layouts: Sequence[Layout], dtype: np.dtype, ndim: int) -> int:
    """Return the address of a function's kernel for operands of these layouts and a target."""
    kinds = (*[(dtype_name(layout.dtype), len(layout.shape)) for layout in layouts], (dtype_name(dtype), ndim))
    try:
        return address_of(name, array_kernel(function, kinds), bind=BIND)
    except Exception as error:
        if not (isinstance(error, (JitError, TypeError)) or type(error).__module__.startswith("numba")):
            raise
        shown = ", ".join(f"{kind}[{', '.join(':' * dims)}]" if dims else kind for kind, dims in kinds)
        raise TypeError(
            f"kernel_op {name}: {function.__name__}({shown}) cannot be compiled: it has to consist of loops over "
            f"elements, and may neither make arrays nor raise errors. {error}"
        ) from error
