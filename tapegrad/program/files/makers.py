"""Values that the text of programs writes as calls: arrays, dtypes, named tuples, batches; checked when made."""

from __future__ import annotations

import base64
import keyword
import math
from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import TORCH_NAMES
from tapegrad.ops.parts import Part
from tapegrad.program.batch import Batch, batch_of
from tapegrad.program.checkpoints import Checkpointed, checkpointed
from tapegrad.program.program import Program
from tapegrad.program.returned import Number
from tapegrad.program.scan import Scan, scan_of
from tapegrad.program.signature import Slot

__all__ = ["MAKERS", "array_text", "dtype_of"]

_FEW: Final = 8  # elements of an array that are written as numbers
_MOST_TURNS: Final = 1 << 31  # of a loop back
_DTYPES: Final[Mapping[Any, np.dtype]] = {np.dtype(own).name: np.dtype(own) for own in TORCH_NAMES}


def array_text(array: np.ndarray) -> str:
    """Return an array: a few numbers as they are, else the bytes of all as base64."""
    if array.size <= _FEW and array.dtype.kind in "fiub" and np.isfinite(array).all():
        data = str(tuple(array.reshape(-1).tolist()))
    else:
        data = f'"{base64.b64encode(array.tobytes()).decode()}"'
    return f'array("{array.dtype.name}", {list(array.shape)}, {data})'


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 64 and all(type(own) is int and own >= 0 for own in value)


def _array(dtype: str, shape: list[int], data: str | tuple[Any, ...]) -> np.ndarray:
    kind = dtype_of(dtype)
    if not _is_shape(shape):
        raise ValueError(f"{shape!r} is no shape")
    if isinstance(data, tuple):
        if not all(isinstance(own, (bool, int, float)) for own in data) or math.prod(shape) != len(data):
            raise ValueError(f"an array {dtype}{shape} has {math.prod(shape)} numbers, not {len(data)}")
        return np.array(data, kind).reshape(shape)
    raw = base64.b64decode(data, validate=True)
    if math.prod(shape) * kind.itemsize != len(raw):
        raise ValueError(f"an array {dtype}{shape} has {math.prod(shape) * kind.itemsize} bytes, not {len(raw)}")
    if kind.kind == "b" and raw.strip(b"\0\1"):
        raise ValueError("an array of truth values has other bytes than 0 and 1")
    return np.frombuffer(bytearray(raw), kind).reshape(shape)


def dtype_of(name: Any) -> np.dtype:
    """Return the dtype of a name."""
    found: np.dtype | None = _DTYPES.get(name)
    if found is None:
        raise ValueError(f"{name!r} is no dtype")
    return found


def _scalar(array: Any) -> Any:
    if not isinstance(array, np.ndarray) or array.ndim:
        raise ValueError("a scalar has no dimensions")
    return array[()]


def _part(shape: Any, strides: Any, offset: Any, of_real: Any) -> Part:
    part = Part(shape, strides, offset, of_real)
    if not (
        type(shape) is tuple and type(strides) is tuple and all(type(own) is int for own in (*shape, *strides, offset))
        and len(shape) == len(strides) and min(shape, default=0) >= 0 and type(of_real) is bool
    ):  # fmt: skip
        raise ValueError(f"{part} is no part of an array")
    return part


def _named(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    words = (name, *fields)
    if not all(type(own) is str and own.isidentifier() and not keyword.iskeyword(own) for own in words):
        raise ValueError(f"a named tuple has identifiers as names, not {words}")
    kind: Any = namedtuple(name, fields)  # type: ignore[misc]
    return kind._make(values)


def _number(output: Any) -> Number:
    if not isinstance(output, Slot):
        raise ValueError(f"a number is an output, not {output!r}")
    return Number((output,))


def _batch(ways: tuple[Program, ...], mapped: tuple[bool, ...], flags: bool) -> Batch:
    if not ways or not all(isinstance(way, Program) for way in ways) or type(flags) is not bool:
        raise ValueError("a batch has programs")
    if type(mapped) is not tuple or {type(own) for own in mapped} != {bool} or True not in mapped:
        raise ValueError("a batch says of each input whether it has the items, and one has")
    kinds = {
        tuple([(way.layouts[number].shape, way.layouts[number].dtype) for number in (*way.inputs, *way.outputs)])
        for way in ways
    }
    if len(kinds) > 1 or len(ways[0].inputs) != len(mapped) or any(way.guards for way in ways):
        raise ValueError("the programs of a batch have the same inputs and outputs, and no guards")
    outputs = [ways[0].layouts[number] for number in ways[0].outputs]
    if not outputs or (flags and (outputs[-1].shape, outputs[-1].dtype) != ((), np.dtype(bool))):
        raise ValueError("the last output of a batch with ways says whether an item takes one of them")
    if len(ways) > 1 and not flags:
        raise ValueError("a batch of several ways has flags")
    return batch_of(ways, mapped, flags)


def _scan(
    programs: Any, counts: Any, length: Any, reverse: Any, counted: Any, kept: Any, examples: Any, slots: Any = 0
) -> Scan:  # fmt: skip
    if (
        type(programs) is not tuple
        or not 1 <= len(programs) <= 2
        or not all(isinstance(own, Program) for own in programs)
    ):
        raise ValueError("a loop has the program of a turn, and perhaps that of a condition")
    body, *conditions = programs
    if len(counts) != 3 or not _is_shape(list(counts)) or sum(counts) != len(body.inputs):
        raise ValueError(f"a turn has {len(body.inputs)} inputs, not {counts}")
    n_consts, n_rows, n_carried = counts
    given, made = [[body.layouts[number] for number in own] for own in (body.inputs, body.outputs)]
    carried = given[n_consts + n_rows :]
    if type(kept) is not tuple or not all(type(own) is int and 0 <= own < n_carried for own in kept):
        raise ValueError(f"a loop keeps some of {n_carried} values, not {kept}")
    first = len(body.outputs) - len(kept)
    if body.guards or first < n_carried or any(one is not two for one, two in zip(made, carried, strict=False)):
        raise ValueError("a turn has no guards, and returns values like those that are carried, then rows")
    if [body.inputs[n_consts + n_rows + own] for own in kept] != list(body.outputs[first:]):
        raise ValueError("the last rows of a turn are the carried values that are kept")
    if type(reverse) is not bool or type(counted) is not bool or (counted and conditions):
        raise ValueError("a loop has a number of turns, or a condition")
    has_arrays = n_rows > 0 or len(body.outputs) > n_carried
    if not (length is None and not has_arrays and (counted or conditions)) and (type(length) is not int or length < 0):
        raise ValueError(f"a loop of {length} turns")
    for condition in conditions:
        wanted = [*given[:n_consts], *carried]
        found, (*result,) = [[condition.layouts[number] for number in own]
                             for own in (condition.inputs, condition.outputs)]  # fmt: skip
        if condition.guards or found != wanted or [(own.shape, own.dtype) for own in result] != [((), np.dtype(bool))]:
            raise ValueError("a condition takes the constants and the carried values, and returns a truth value")
    layouts = [(own.shape, own.dtype) for own in given]
    if type(examples) is not tuple or [(own.shape, own.dtype) for own in examples] != layouts:
        raise ValueError("the examples of a turn are like its inputs")
    if type(slots) is not int or not 0 <= slots < _MOST_TURNS or (slots and kept):
        raise ValueError("a loop keeps values for its rule, or computes them again from some checkpoints")
    options = {"reverse": reverse, "counted": counted, "kept": kept, "slots": slots}
    return scan_of(body, counts, length, examples, condition=next(iter(conditions), None), **options)


def _back(scan: Any, kept: Any, back: Any, slots: Any) -> Checkpointed:
    if not isinstance(scan, Scan) or not isinstance(back, Scan):
        raise ValueError("a loop back has two loops, that of the turns and that back")
    if any(own.condition is not None or own.kept or own.slots for own in (scan, back)):
        raise ValueError("the loops of a loop back have numbers of turns, and keep nothing")
    if (scan.length, scan.counted) != (back.length, back.counted) or scan.reverse is back.reverse:
        raise ValueError("a loop back has as many turns as the loop, in the other order")
    if type(kept) is not tuple or not all(type(own) is int and 0 <= own < scan.n_carried for own in kept):
        raise ValueError(f"a loop back takes some of {scan.n_carried} carried values, not {kept}")
    if type(slots) is not int or not 0 < slots <= min(scan.length or _MOST_TURNS, _MOST_TURNS):
        raise ValueError(f"a loop back has a checkpoint, and no more than turns; not {slots}")
    takes, gives = [[own.body.layouts[number] for number in own.body.inputs] for own in (scan, back)]
    (n_consts, n_rows, _), (n_given, n_taken, _) = scan.counts, back.counts
    consts, rows, carried = takes[:n_consts], takes[n_consts : n_consts + n_rows], takes[n_consts + n_rows :]
    given, taken = gives[:n_given], gives[n_given : n_given + n_taken]
    wanted = [*rows, *[carried[own] for own in kept]]
    if given[: len(consts)] != consts or taken[: len(wanted)] != wanted:
        raise ValueError("a turn back takes what the turn takes, and the carried values that it was given")
    return checkpointed(scan, kept, back, slots)


MAKERS: Final[dict[str, Callable[..., Any]]] = {
    "complex": complex,
    "bytes": bytes.fromhex,
    "array": _array,
    "scalar": _scalar,
    "dtype": dtype_of,
    "Part": _part,
    "named": _named,
    "number": _number,
    "batch": _batch,
    "scan": _scan,
    "back": _back,
}
