"""What numba's compiler is told of a call of a program: the types, and LLVM's instructions.

A call checks shapes, makes the outputs, writes tables of pointers on the stack, and calls machine code by its address.
Addresses are dynamic globals to numba: it does not keep callers in its cache on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.np import arrayobj
from numba.np.numpy_support import as_dtype, from_dtype

from tapegrad.program.export.code import Way
from tapegrad.program.export.njit import data_of
from tapegrad.program.returned import Number
from tapegrad.program.signature import Slot
from tapegrad.program.templates import guard_words
from tapegrad.recording.objects import TensorObject
from tapegrad.runtime.structs import WORD
from tapegrad.tape.layout import Layout

__all__ = ["Call"]

_BYTE: Final = ir.IntType(8).as_pointer()
_WORD: Final = ir.IntType(64)
_ON_STACK: Final = 8192  # bytes of scratch memory
_ALIGNMENT: Final = 64


class Call:
    """A call of programs of one function, of which one computes it.

    Parameters
    ----------
    ways : sequence of Way
    """

    def __init__(self, ways: Sequence[Way]) -> None:
        self.ways = ways
        self.signature, program = ways[0].signature, ways[0].program
        self.inputs = [program.layouts[number] for number in program.inputs]
        self.outputs = [program.layouts[number] for number in program.outputs]
        args, kwargs = self.signature.arguments
        self.arguments = (*args, *kwargs.values())

    # ---- types

    def problem(self, args: types.BaseTuple) -> str:
        """Return what is wrong with the types of arguments; "" if they are right."""
        if len(args) != len(self.arguments):
            return f"it takes {len(self.arguments)} arguments, but got {len(args)}"
        problems = [self._problem(*leaf) for leaf in _leaves(self.arguments, args)]
        return next(filter(None, problems), "")

    def _problem(self, path: tuple[int, ...], leaf: Any, kind: Any) -> str:
        at = _named(path)
        if leaf is _MISFIT:
            return f"{at} should be {kind[0]}, but is {kind[1]}"
        if not isinstance(leaf, Slot):
            fits = isinstance(kind, _kinds_of(leaf))
            return "" if fits else f"{at} should be {leaf!r} as in the trace, but is of type {kind}"
        layout = self.inputs[leaf.number]
        if isinstance(kind, types.Array):
            if kind.dtype != from_dtype(layout.dtype) or kind.ndim != layout.ndim or not kind.aligned:
                return f"{at} should be an array {layout}, but is {kind}; convert it by astype() or np.reshape()"
            return ""
        if layout.ndim == 0 and isinstance(kind, (types.Number, types.Boolean)):
            given = as_dtype(types.unliteral(kind))
            if np.can_cast(given, layout.dtype, "same_kind"):
                return ""
        return f"{at} should be {'a number' if layout.ndim == 0 else 'an array'} {layout}, but is of type {kind}"

    def result_type(self, args: Any) -> Any:
        """Return the signature of a call with arguments of these types."""
        return self._type(self.signature.result)(args)

    def _type(self, tree: Any) -> Any:
        if isinstance(tree, Slot):
            layout = self.outputs[tree.number]
            element = from_dtype(layout.dtype)
            return types.Array(element, layout.ndim, "C") if layout.ndim else element
        if isinstance(tree, Number):
            return self._type(*tree)
        children = _children(tree)
        if children is not None:
            return types.Tuple([self._type(child) for child in children])
        return types.none if tree is None else _kinds_of(tree)[1]

    # ---- instructions

    def emit(self, context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        """Write the instructions of a call, and return what it computes."""
        return _Emitter(self, context, builder).call(values[0], signature.args[0])


class _Emitter:
    """Writes one call."""

    def __init__(self, call: Call, context: Any, builder: Any) -> None:
        self.call_, self.context, self.builder = call, context, builder
        self.name = call.signature.name

    def call(self, value: Any, kind: Any) -> Any:
        """Write all of a call."""
        builder, wanted = self.builder, self.call_
        pointers = {}
        for path, leaf, own in _leaves(wanted.arguments, kind):
            item = builder.extract_value(value, list(path))
            if isinstance(leaf, Slot):
                pointers[leaf.number] = self.pointer_to(item, own, wanted.inputs[leaf.number], _named(path))
            else:
                self.check_constant(item, own, leaf, _named(path))
        arrays = [self.output(layout) for layout in wanted.outputs]
        found = cgutils.alloca_once_value(builder, ir.Constant(_WORD, 0))
        for way in wanted.ways:
            missing = builder.icmp_unsigned("==", builder.load(found), ir.Constant(_WORD, 0))
            with builder.if_then(missing):
                self.way(way, [pointers[k] for k in range(len(pointers))], [pointer for pointer, _ in arrays], found)
        with builder.if_then(builder.icmp_unsigned("!=", builder.load(found), ir.Constant(_WORD, 1)), likely=False):
            for layout, (_, array) in zip(wanted.outputs, arrays, strict=True):
                if array is not None:
                    kind = types.Array(from_dtype(layout.dtype), layout.ndim, "C")
                    self.context.nrt.decref(builder, kind, array._getvalue())
            failed = builder.icmp_unsigned("==", builder.load(found), ir.Constant(_WORD, 2))
            with builder.if_then(failed):
                self.error(RuntimeError, "a matrix cannot be factored; the function in Python says why")
            where = "; ".join(dict.fromkeys(own.where for way in wanted.ways for own in way.program.guards))
            self.error(
                RuntimeError, "Python would take another branch for these values than in the trace. Call the compiled "
                f"function with such values first, then take its njit again. {where}",
            )  # fmt: skip
        return self.result(wanted.signature.result, arrays)

    def error(self, kind: type[Exception], message: str) -> None:
        self.context.call_conv.return_user_exc(self.builder, kind, (f"{self.name}.njit: {message}",))

    def check(self, holds: Any, kind: type[Exception], message: str) -> None:
        with self.builder.if_then(self.builder.not_(holds), likely=False):
            self.error(kind, message)

    # ---- arguments

    def pointer_to(self, item: Any, kind: Any, layout: Layout, at: str) -> Any:
        """Return a pointer to the elements of an argument, which is checked."""
        context, builder = self.context, self.builder
        if not isinstance(kind, types.Array):
            wanted = from_dtype(layout.dtype)
            number = context.cast(builder, item, types.unliteral(kind), wanted)
            room = cgutils.alloca_once_value(builder, context.data_model_manager[wanted].as_data(builder, number))
            return builder.bitcast(room, _BYTE)
        array = context.make_array(kind)(context, builder, value=item)
        message = f"{at} should be an array {layout}, but has another shape"
        for dim, length in enumerate(cgutils.unpack_tuple(builder, array.shape)):
            self.check(builder.icmp_signed("==", length, _as(length, layout.shape[dim])), ValueError, message)
        if kind.layout != "C":
            steps = cgutils.unpack_tuple(builder, array.strides)
            for dim, step in enumerate(steps) if layout.size else ():
                if layout.shape[dim] != 1:
                    fits = builder.icmp_signed("==", step, _as(step, layout.strides[dim]))
                    self.check(fits, ValueError, f"{at} does not stand row by row; use np.ascontiguousarray()")
        return builder.bitcast(array.data, _BYTE)

    def check_constant(self, item: Any, kind: Any, leaf: Any, at: str) -> None:
        """Check an argument that is the same in every call."""
        if leaf is not None:
            builder, wanted = self.builder, _kinds_of(leaf)[1]
            item = self.context.cast(builder, item, types.unliteral(kind), wanted)
            same = builder.icmp_signed("==", item, self.context.get_constant(wanted, leaf))
            self.check(same, ValueError, f"{at} should be {leaf!r}, as in the trace")

    def captured(self, tensor: Any) -> Any:
        """Return a pointer to the data of a tensor from outside."""
        data, address = data_of(tensor)
        offset = next(field.offset for field in TensorObject.fields() if field.name == "data")
        place = self.builder.bitcast(self.address(id(tensor) + offset, "tensor"), _WORD.as_pointer())
        same = self.builder.icmp_unsigned("==", self.builder.load(place), ir.Constant(_WORD, id(data)))
        self.check(same, RuntimeError, "a tensor from outside has other memory than before; take njit again")
        return self.address(address, "data")

    def address(self, number: int, info: str) -> Any:
        return self.context.add_dynamic_addr(self.builder, number, info=f"tapegrad.{info}")

    # ---- the call

    def output(self, layout: Layout) -> tuple[Any, Any]:
        """Return a pointer to the memory of an output, and its array; None for a number."""
        context, builder = self.context, self.builder
        element = from_dtype(layout.dtype)
        if not layout.ndim:
            room = cgutils.alloca_once(builder, context.get_data_type(element))
            return builder.bitcast(room, _BYTE), None
        lengths = [context.get_constant(types.intp, length) for length in layout.shape]
        array = arrayobj._empty_nd_impl(context, builder, types.Array(element, layout.ndim, "C"), lengths)
        return builder.bitcast(array.data, _BYTE), array

    def way(self, way: Way, inputs: list[Any], outputs: list[Any], found: Any) -> None:
        """Call one program; `found` becomes 1 if its guards hold, 2 if it fails."""
        builder, code = self.builder, way.code
        assert code is not None
        inputs = [*inputs, *map(self.captured, way.signature.captured)]
        offsets, words = guard_words([guard.outcome for guard in way.program.guards])
        values = cgutils.alloca_once(builder, _WORD, size=max(len(words), 1))
        cgutils.memset(builder, values, ir.Constant(_WORD, WORD * len(words)), 0)
        raw = builder.bitcast(values, _BYTE)
        outputs = [*outputs, *[builder.gep(raw, [ir.Constant(_WORD, offset)]) for offset in offsets]]
        scratch, release = self.scratch(code.scratch_bytes)
        given = [self.table(inputs), self.table(outputs), scratch]
        done = self.run(way, given)
        if release is not None:
            self.context.nrt.free(builder, release)
        holds: Any = ir.Constant(ir.IntType(1), 1)
        if words:
            table = cgutils.global_constant(builder, "outcomes", ir.Constant(ir.ArrayType(_WORD, len(words)), words))
            table = builder.bitcast(table, _WORD.as_pointer())
            same = cgutils.alloca_once_value(builder, holds)
            with cgutils.for_range(builder, ir.Constant(_WORD, len(words))) as loop:
                one, other = (builder.load(builder.gep(own, [loop.index])) for own in (values, table))
                equal = builder.icmp_unsigned("==", one, other)
                builder.store(builder.and_(builder.load(same), equal), same)
            holds = builder.load(same)
        status = builder.select(holds, ir.Constant(_WORD, 1), ir.Constant(_WORD, 0))
        builder.store(builder.select(done, status, ir.Constant(_WORD, 0 if words else 2)), found)

    def run(self, way: Way, given: list[Any]) -> Any:
        """Call machine code, and return whether it has not failed."""
        builder, code = self.builder, way.code
        assert code is not None
        if code.may_fail:
            given = [*given, ir.Constant(_BYTE, None), ir.Constant(_BYTE, None)]
            status = builder.call(self.function(code.address(), _WORD, given), given)
            return builder.icmp_unsigned("==", status, ir.Constant(_WORD, 0))
        if not way.stages:
            builder.call(self.function(code.address(), ir.VoidType(), given), given)
        for stage, count in enumerate(way.stages):
            more = [*given, *[ir.Constant(_WORD, own) for own in (stage, 0, count)]]
            builder.call(self.function(code.address(), ir.VoidType(), more), more)
        return ir.Constant(ir.IntType(1), 1)

    def function(self, address: int, result: Any, given: Sequence[Any]) -> Any:
        kind = ir.FunctionType(result, [own.type for own in given])
        return self.builder.bitcast(self.address(address, "program"), kind.as_pointer())

    def table(self, pointers: Sequence[Any]) -> Any:
        """Return a table of pointers on the stack."""
        table = cgutils.alloca_once(self.builder, _BYTE, size=max(len(pointers), 1))
        for number, pointer in enumerate(pointers):
            self.builder.store(pointer, self.builder.gep(table, [ir.Constant(_WORD, number)]))
        return self.builder.bitcast(table, _BYTE)

    def scratch(self, nbytes: int) -> tuple[Any, Any]:
        """Return memory for this call, and what is to be freed after it, if anything."""
        builder = self.builder
        if nbytes <= _ON_STACK:
            room = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(8), max(nbytes, 1)))
            room.align = _ALIGNMENT
            return builder.bitcast(room, _BYTE), None
        memory = self.context.nrt.allocate(builder, ir.Constant(_WORD, nbytes + _ALIGNMENT))
        self.check(cgutils.is_not_null(builder, memory), MemoryError, f"no {nbytes} bytes for the program")
        up = builder.add(builder.ptrtoint(memory, _WORD), ir.Constant(_WORD, _ALIGNMENT - 1))
        return builder.inttoptr(builder.and_(up, ir.Constant(_WORD, -_ALIGNMENT)), _BYTE), memory

    def result(self, tree: Any, arrays: Sequence[tuple[Any, Any]]) -> Any:
        """Return the tree of results."""
        context, builder = self.context, self.builder
        if isinstance(tree, Slot):
            pointer, array = arrays[tree.number]
            if array is not None:
                return array._getvalue()
            model = context.data_model_manager[from_dtype(self.call_.outputs[tree.number].dtype)]
            typed = builder.bitcast(pointer, model.get_data_type().as_pointer())
            return model.from_data(builder, builder.load(typed))
        if isinstance(tree, Number):
            return self.result(*tree, arrays)
        children = _children(tree)
        if children is not None:
            return context.make_tuple(builder, self.call_._type(tree), [self.result(own, arrays) for own in children])
        return context.get_dummy_value() if tree is None else context.get_constant(_kinds_of(tree)[1], tree)


_MISFIT: Final = object()


def _children(tree: Any) -> Sequence[Any] | None:
    """Return the children of a container; None of a leaf."""
    if isinstance(tree, dict):
        return list(tree.values())
    return tree if isinstance(tree, (tuple, list)) else None


def _leaves(tree: Any, kind: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any, Any]]:
    """Yield the leaves of a tree with their paths and types; a misfit with what is wanted, and its type."""
    children = _children(tree)
    if children is None:
        yield path, tree, kind
    elif not isinstance(kind, types.BaseTuple) or len(kind) != len(children):
        yield path, _MISFIT, (f"a tuple of {len(children)}", kind)
    else:
        for number, (child, own) in enumerate(zip(children, kind, strict=True)):
            yield from _leaves(child, own, (*path, number))


def _kinds_of(leaf: Any) -> tuple[Any, ...]:
    """Return which class of types serves for a leaf that is the same in every call, and the type that it has."""
    if leaf is None:
        return (types.NoneType,)
    if isinstance(leaf, bool):
        return types.Boolean, types.boolean
    return (types.Integer, types.int64) if isinstance(leaf, int) else (types.Float, types.float64)


def _named(path: tuple[int, ...]) -> str:
    first, *rest = path
    return f"argument {first}{''.join(f'[{number}]' for number in rest)}"


def _as(value: Any, number: int) -> Any:
    return ir.Constant(value.type, number)
