"""Whether the operations of a program that was read are possible: their attributes, shapes and dtypes.

The result of an operation is derived anew: operands of the same shapes are given to its forward. Large elementwise ones
are represented by single elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.ops.table.gateway import constant
from tapegrad.ops.table.op import Bound, Op
from tapegrad.program.batch import Batch
from tapegrad.program.checkpoints import Checkpointed
from tapegrad.program.files.makers import dtype_of
from tapegrad.program.scan import Scan
from tapegrad.tape.layout import Layout, broadcast_shape, contiguous_layout, layout_of

__all__ = ["constant_layout", "input_layout", "results_of"]

_LARGEST: Final = 1 << 47  # elements, which an address can count
_MOST: Final = 1 << 30  # bytes of the operands of one operation that is tried
_NUMBERS: Final = frozenset({"value", "nan", "posinf", "neginf"})  # attributes that are elements of results
_HIGHEST: Final = 8  # order of derivatives
_LONGER: Final = 1 << 24  # than the elements there are: lengths that are attributes, e.g. of what a number spreads to


def input_layout(dtype: str, shape: Sequence[int]) -> Layout:
    """Return the layout of a dtype's name and a shape."""
    if min(shape, default=0) < 0 or math.prod(shape) > _LARGEST or len(shape) > 64:
        raise ValueError(f"{list(shape)} is no shape of an array")
    return contiguous_layout(tuple(shape), dtype_of(dtype))


def constant_layout(value: Any) -> Layout:
    """Return the layout of a constant."""
    if not isinstance(value, (np.ndarray, np.generic, bool, int, float, complex)):
        raise ValueError(f"a {type(value).__name__} is no constant")
    return layout_of(value)


def results_of(
    op: Op,
    layouts: Sequence[Layout],
    constants: Mapping[int, Any],
    operands: Sequence[int],
    attrs: Mapping[str, Any],
    arrays: Sequence[int],
    known: dict[Any, list[Layout]],
) -> list[Layout]:
    """Return the layouts of the results of an operation.

    Parameters
    ----------
    op : Op
    layouts, constants
        Of the program.
    operands, arrays : sequence of int
        Numbers of operands, and of arrays of indices.
    attrs : mapping
    known : dict
        What was found before.

    Raises
    ------
    Exception
        If it is not possible; of any class that the operation's functions raise.
    """
    if set(attrs) != set(op.attrs):
        raise ValueError(f"{op.name}() has the attributes {list(op.attrs)}, not {list(attrs)}")
    of_operands = [layouts[number] for number in operands]
    if op.family == "batch":
        return _of_batch(of_operands, attrs["batch"])
    if op.family == "scan":
        return _of_loop(op, of_operands, attrs["scan"] if op.name == "scan" else attrs["checkpoints"])
    if op.family == "custom_root":
        return _of_root(of_operands, attrs["equations"])
    if op.family == "batch_way":
        return _of_way(of_operands, attrs["outcomes"])
    key = op, tuple(of_operands), repr(attrs), tuple([_number(number, layouts, constants) for number in arrays])
    if key not in known:
        _check_lengths(op, [*of_operands, *[layouts[number] for number in arrays]], attrs)
        known[key] = _tried(op, layouts, constants, operands, dict(attrs), arrays)
    return known[key]


def _number(number: int, layouts: Sequence[Layout], constants: Mapping[int, Any]) -> Any:
    return number if number in constants else layouts[number]


def _check_lengths(op: Op, layouts: Sequence[Layout], attrs: Mapping[str, Any]) -> None:
    """Refuse lengths that no such operands have: memory for these might not be there."""
    most = _LONGER + 4 * max([layout.size for layout in layouts], default=0)
    for name in attrs.keys() - _NUMBERS:
        for number in _integers(attrs[name]):
            if abs(number) > most:
                raise ValueError(f"{op.name}(): {name} has the length {number}, but its operands have fewer elements")


def _integers(value: Any) -> Iterator[int]:
    if type(value) is int:
        yield value
    elif isinstance(value, tuple):
        for own in value:
            yield from _integers(own)


def _tried(
    op: Op, layouts: Sequence[Layout], constants: Mapping[int, Any], operands: Sequence[int], attrs: dict[str, Any],
    arrays: Sequence[int],
) -> list[Layout]:  # fmt: skip
    """Return the layouts that an operation's forward gives."""
    chosen = tuple([layouts[number] for number in operands])
    shape: tuple[int, ...] | None = None
    if op.is_elementwise and not arrays:
        shape = broadcast_shape(*[own.shape for own in chosen])
        chosen = tuple([own if own.weak else contiguous_layout((1,) * own.ndim, own.dtype) for own in chosen])
    nbytes = sum(own.nbytes for own in chosen) + sum(layouts[number].nbytes for number in arrays)
    if nbytes > _MOST:
        raise ValueError(f"its operands have {nbytes} bytes, which is too much to check it")
    if op.real_only and any(own.dtype.kind == "c" for own in chosen):
        raise ValueError(f"{op.name}() takes no complex numbers")
    if op.check_dtypes:
        op.check_dtypes(chosen)
    pairs = zip(operands, chosen, strict=True)
    data = [constants[number] if own.weak else _example(own, shape is not None) for number, own in pairs]
    indices = tuple([
        np.asarray(constants[number]) if number in constants else np.zeros(layouts[number].shape, layouts[number].dtype)
        for number in arrays
    ])  # fmt: skip
    bound = Bound([constant(own, layout_of(own)) for own in data], attrs, indices)
    if op.check is not None:
        op.check(bound)
    if op.name in _CHECKS and not _CHECKS[op.name](chosen[0], attrs):
        raise ValueError(f"{op.name}() of {chosen[0]} cannot have these attributes: {attrs}")
    _bind_again(op, bound)
    with np.errstate(all="ignore"):
        out = op.forward_for(chosen, attrs)(*data, *indices)
    found = [layout_of(np.asarray(own)) for own in ((out,) if len(op.results) == 1 else out)]
    if shape is not None:
        return [contiguous_layout(shape, own.dtype) for own in found]
    return [contiguous_layout(own.shape, own.dtype) for own in found]


def _has_dims(layout: Layout, attrs: Mapping[str, Any]) -> bool:
    dims = attrs["dim"]
    return type(dims) is tuple and all(type(own) is int and 0 <= own < layout.ndim for own in dims)


def _has_parts(layout: Layout, attrs: Mapping[str, Any]) -> bool:
    parts = attrs["parts"]
    is_shape = type(parts) is tuple and len(parts) == 3 and all(type(own) is int and own >= 0 for own in parts)
    return is_shape and math.prod(parts) == layout.size


def _is_low(layout: Layout, attrs: Mapping[str, Any]) -> bool:
    return all(type(own) is int and 0 <= own < _HIGHEST for own in attrs.values())


#: What the kernels of an operation take for granted, if its public function finds the attributes.
_CHECKS: Final[Mapping[str, Callable[[Layout, Mapping[str, Any]], bool]]] = {
    "class_loss": _has_dims, "class_nll": _has_dims, "recurrence": _has_dims, "standardize": _has_parts,
    "beta_derivative": _is_low, "gamma_derivative": _is_low,
}  # fmt: skip


def _example(layout: Layout, is_elementwise: bool) -> Any:
    """Return an array that most functions take: ones, or of matrices the identity; of integers 0, which is an index."""
    if layout.ndim > 1 and layout.dtype.kind in "fc":
        return np.broadcast_to(np.eye(*layout.shape[-2:], dtype=layout.dtype), layout.shape).copy()
    is_one = is_elementwise or layout.dtype.kind in "fc"  # which integers are divided by
    return np.ones(layout.shape, layout.dtype) if is_one else np.zeros(layout.shape, layout.dtype)


def _bind_again(op: Op, bound: Bound) -> None:
    """Let an operation check attributes as those of a call, where it takes them as they are."""
    if op.bind is None or bound.index_arrays:
        return
    operands = [list(bound.operands)] if op.variadic else bound.operands
    short = {name: own[0] if type(own) is tuple and len(own) == 1 else own for name, own in bound.attrs.items()}
    for attrs in (bound.attrs, short):
        try:
            again = op.bind(*operands, **attrs)
        except TypeError:
            continue  # it takes them in another form
        if again.__class__ is Bound and again.attrs.keys() == bound.attrs.keys() and again.attrs != bound.attrs:
            raise ValueError(f"{op.name}() has the attributes {again.attrs}, not {bound.attrs}")
        return


def _of_batch(operands: Sequence[Layout], batch: Any) -> list[Layout]:
    if not isinstance(batch, Batch) or len(batch.mapped) != len(operands):
        raise ValueError(f"vmap() takes programs of {len(operands)} inputs")
    first = operands[batch.mapped.index(True)]
    if not first.ndim:
        raise ValueError("vmap() takes arrays of items")
    whole = batch.whole(first.shape[0])
    for given, number in zip(operands, whole.inputs, strict=True):
        if given is not whole.layouts[number]:
            raise ValueError(f"vmap() takes {whole.layouts[number]} here, not {given}")
    return [whole.layouts[number] for number in whole.outputs]


def _of_loop(op: Op, operands: Sequence[Layout], loop: Any) -> list[Layout]:
    whole = loop.whole() if isinstance(loop, Scan | Checkpointed) else None
    if whole is None or op is not whole.entries[0].op:
        raise ValueError(f"{op.name}() takes a loop of {len(operands)} operands")
    for given, number in zip(operands, whole.inputs, strict=True):
        if given is not whole.layouts[number]:
            raise ValueError(f"{op.name}() takes {whole.layouts[number]} here, not {given}")
    return [whole.layouts[number] for number in whole.outputs]


def _of_root(operands: Sequence[Layout], equations: Any) -> list[Layout]:
    if equations is not None or not operands or operands[-1].weak or operands[-1].dtype.kind not in "fc":
        raise ValueError("custom_root() has a root as its last operand, and no equations in files")
    return [operands[-1]]


def _of_way(operands: Sequence[Layout], outcomes: Any) -> list[Layout]:
    if type(outcomes) is not tuple or len(outcomes) != len(operands) or not outcomes:
        raise ValueError(f"takes_way() has {len(operands)} outcomes")
    for layout, (data, dtype, shape) in zip(operands, outcomes, strict=True):
        if type(data) is not bytes or (layout.dtype.str, layout.shape, layout.nbytes) != (dtype, shape, len(data)):
            raise ValueError(f"the outcome of a value {layout} is another one")
    return [contiguous_layout((), np.dtype(bool))]
