"""Stops: operations that fusing refuses, computed by their forwards on arrays over the memory of a call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.program.machine_code import SYMBOL
from tapegrad.program.program import Entry, Program
from tapegrad.program.stopping import StopFields, call_stop
from tapegrad.program.templates import Input, Pieces, input_words
from tapegrad.recording.objects import runtime
from tapegrad.runtime.objects import numpy_function
from tapegrad.runtime.structs import WORD, sizeof
from tapegrad.tape.layout import Layout

CALL: Final = "tapegrad_call_stop"  # `call_stop` in modules
_NEW_VIEW: Final = 94  # of PyArray_NewFromDescr in NumPy's table


class Stop:
    """Code of one operation, used like `tapegrad.program.fuse.Fused`: LLVM's text that calls Python.

    Attributes
    ----------
    words : array
        Of `StopFields`.
    reason : str
        Why it is not fused.
    """

    scratch_bytes: Final = 0
    may_fail: Final = True

    def __init__(self, program: Program, reason: str) -> None:
        (self.entry,) = program.entries
        self.program, self.reason = program, reason.removeprefix(f"{self.entry.op.name}: ")
        self._arguments, self._pieces = _pieces(program, self.entry)
        self.stops = [self._pieces.placed()]

    @property
    def imports(self) -> Mapping[str, int]:
        """Functions that the text calls."""
        return MappingProxyType({CALL: load_stop()})

    @property
    def ir(self) -> str:
        """LLVM's text."""
        lines: list[str] = []
        pointers = {number: f"%inputs, i64 {k}" for k, number in enumerate(self.program.inputs)}
        pointers |= {number: f"%outputs, i64 {k}" for k, number in enumerate(self.program.outputs)}
        for table, numbers in (("arguments", self._arguments), ("results", self.entry.results)):
            lines.append(f"  %{table} = alloca [{max(len(numbers), 1)} x ptr], align 8")
            for k, number in enumerate(numbers):
                value = "null"  # a constant, or a result that nobody wants
                if number in pointers:
                    value = f"%{table}{k}"
                    lines += [
                        f"  {value}.p = getelementptr ptr, ptr {pointers[number]}",
                        f"  {value} = load ptr, ptr {value}.p, align 8",
                    ]
                lines += [
                    f"  %{table}{k}.t = getelementptr ptr, ptr %{table}, i64 {k}",
                    f"  store ptr {value}, ptr %{table}{k}.t, align 8",
                ]
        return "\n".join([
            f"declare i64 @{CALL}(ptr, ptr, ptr, ptr)",
            f"define i64 @{SYMBOL}(ptr %inputs, ptr %outputs, ptr %scratch, ptr %call, ptr %stops) nounwind {{",
            *lines,
            "  %stop = load ptr, ptr %stops, align 8",
            f"  %status = call i64 @{CALL}(ptr %stop, ptr %arguments, ptr %results, ptr %call)",
            "  ret i64 %status",
            "}", "",
        ])  # fmt: skip

    @property
    def key(self) -> str:
        """What decides the machine code."""
        return self.ir

    def source(self) -> str:
        """Return the operation as a line."""
        return str(self.program).splitlines()[1].strip()

    def explain(self) -> list[str]:
        """Return why the operation is not fused."""
        return [f"{self.entry.op.name} is called: {self.reason}"]


@functools.cache  # to look it up takes 7 ms
def load_stop() -> int:
    """Return the address of the compiled function that calls Python."""
    return address_of(call_stop.__name__, call_stop, ("int64",) * 4)


def _pieces(program: Program, entry: Entry) -> tuple[tuple[int, ...], Pieces]:
    """Return the values that the forward takes, the words of `StopFields`, and what they refer to."""
    op, layouts = entry.op, program.layouts
    forward = op.forward_for(tuple([layouts[number] for number in entry.operands]), dict(entry.attrs))
    arguments = (*entry.operands, *entry.index_arrays)
    if isinstance(forward, np.ufunc) and _makes(forward, program, entry):
        arguments += entry.results  # it writes where the result shall stand
    if len(entry.results) > 1:
        forward = _as_tuple(forward)
    pieces = Pieces(sizeof(StopFields) // WORD)
    constants, operands = [], []
    for number in arguments:
        value = program.constants.get(number)
        constants.append(0 if value is None else pieces.hold(value))
        operands.append(input_words(pieces, Input(np.ndarray, layouts[number]), 0))
    results = [layouts[number] for number in entry.results]
    fields = {
        "runtime": runtime().ctypes.data,
        "new_view": numpy_function("_ARRAY_API", _NEW_VIEW),
        "forward": pieces.hold(forward),
        "settle": pieces.hold(tuple([_settle(layout) for layout in results])),
        "n_operands": len(operands),
        "constants": pieces.add(constants),
        "operands": pieces.table(operands),
        "n_results": len(results),
        "results": pieces.table([input_words(pieces, Input(np.ndarray, layout), 0) for layout in results]),
        "sizes": pieces.add([layout.nbytes for layout in results]),
    }
    for name, word in fields.items():
        pieces.words[StopFields.word(name)] = word
    return arguments, pieces


def _makes(ufunc: np.ufunc, program: Program, entry: Entry) -> bool:
    """Return whether a ufunc's only result has by itself the dtype of the operation's."""
    if ufunc.nout != 1 or ufunc.nin != len(entry.operands) or entry.index_arrays:
        return False
    kinds = [type(program.constants[number]) if program.layouts[number].weak else program.layouts[number].dtype
             for number in entry.operands]  # fmt: skip
    result = program.layouts[entry.results[0]]
    try:
        return bool(result.ndim and ufunc.resolve_dtypes((*kinds, None))[-1] == result.dtype)
    except (TypeError, ValueError):  # it has no such loop: the operation does more
        return False


def _as_tuple(forward: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: tuple(forward(*operands))


def _settle(layout: Layout) -> Callable[[Any], Any]:
    """Return a function that makes an array of a layout; None of another shape."""

    def settled(value: Any) -> Any:
        array = np.array(value, layout.dtype, order="C")
        return array if array.shape == layout.shape else None

    return settled
