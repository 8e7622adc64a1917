"""`program.c`: a program as object code and a header, for C and whatever calls C."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from tapegrad._version import __version__
from tapegrad.compiler import cpu
from tapegrad.compiler.jit import SYMBOL, ir_of
from tapegrad.compiler.modules import assemble_module
from tapegrad.compiler.object_files import undefined_symbols
from tapegrad.func.trees import fields_of, flatten, is_record
from tapegrad.program.export.code import Way, ways_of
from tapegrad.program.export.njit import data_of
from tapegrad.program.fuse.text import constant_array
from tapegrad.program.native.factors import bytes_of_integers
from tapegrad.program.program import Program
from tapegrad.program.routines import KERNELS
from tapegrad.program.signature import Slot
from tapegrad.program.templates import guard_words
from tapegrad.tape.layout import Layout

__all__ = ["written"]

_TYPES: Final[Mapping[str, str]] = {
    "float64": "double", "float32": "float", "bool": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
#: Names that C has given already: its own words, and functions of its libraries that the code may call.
_TAKEN: Final = frozenset(vars(math)) | frozenset(
    """auto bool break case char const continue default do double else enum extern false float for goto if inline int
    long main register restrict return short signed sizeof static struct switch true typedef union unsigned void
    volatile while abs calloc cbrt exit free malloc memcpy memset realloc rint round tgamma""".split()  # noqa: SIM905
)
_ON_STACK: Final = 1 << 15  # bytes of scratch memory
_READS_PIVOTS: Final = frozenset({"det", "slogdet", "cofactors"})
#: What the function returns.
_STATUS: Final[Mapping[str, str]] = {
    "OK": "the outputs are written",
    "OTHER_BRANCH": "the function takes another branch for these values than in the trace",
    "NO_FACTOR": "a matrix cannot be factored",
    "NO_MEMORY": "there is no memory",
}


def written(program: Program, path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Write the object code and the header of a program, and return where they are.

    Raises
    ------
    TypeError
        See `Program.c`.
    """
    (way,) = ways_of([program], "c")
    place = Path(path)
    name = _identifier(way.signature.name)
    if not place.is_dir():
        name, place = _identifier(place.stem), place.parent
    exported = _Exported(way, name)
    target, header = place / f"{name}.o", place / f"{name}.h"
    target.write_bytes(exported.code)
    header.write_text(exported.header())
    return target, header


def _identifier(name: str) -> str:
    found = re.sub(r"[^0-9A-Za-z_]+", "_", name).strip("_")
    if not found.isidentifier():
        return "program"
    return f"{found}_program" if found in _TAKEN else found


class _Exported:
    """A program for C.

    Attributes
    ----------
    code : bytes
        Object code.
    """

    def __init__(self, way: Way, name: str) -> None:
        self.way, self.name = way, name
        program, captured = way.program, way.signature.captured
        self.inputs = [program.layouts[number] for number in program.inputs[: len(program.inputs) - len(captured)]]
        self.outputs = [program.layouts[number] for number in program.outputs]
        for layout in (*self.inputs, *self.outputs):
            if layout.dtype.name not in _TYPES:
                raise TypeError(f"c: {way.signature.name} has values of {layout.dtype}; C has {', '.join(_TYPES)} here")
        assert way.code is not None
        kernels = sorted(KERNELS.keys() & way.code.imports.keys())
        self.routines = {own: _standard(own, program) for own in way.code.imports if own not in kernels}
        ir = way.code.ir
        for own, standard in self.routines.items():
            ir = re.sub(rf"@{re.escape(own)}\b", f"@{standard}", ir)
        text = f"{ir}\n{self._function()}"
        known = frozenset({*self.routines.values(), "malloc", "free"})
        parts = {own: ir_of(KERNELS[own][1](), ("int64",) * 3, own) for own in kernels}
        self.code = assemble_module(text, name, known, parts=parts)

    def _function(self) -> str:
        """Return LLVM's text of the function, which calls the program's."""
        way, code = self.way, self.way.code
        assert code is not None
        offsets, words = guard_words([guard.outcome for guard in way.program.guards])
        data = [
            constant_array(f"@c.captured{k}", np.asarray(data_of(own)[0]))
            for k, own in enumerate(way.signature.captured)
        ]
        parameters = [f"ptr %in{k}" for k in range(len(self.inputs))] + [
            f"ptr %out{k}" for k in range(len(self.outputs))
        ]
        inputs = [own.removeprefix("ptr ") for own in parameters[: len(self.inputs)]]
        inputs += [f"@c.captured{k}" for k in range(len(data))]
        outputs = [f"%out{k}" for k in range(len(self.outputs))]
        lines = [f"  %guards = alloca [{max(len(words), 1)} x i64], align 8"]
        for k, _ in enumerate(words):
            lines += [f"  %g{k}.at = getelementptr i64, ptr %guards, i64 {k}", f"  store i64 0, ptr %g{k}.at"]
        for k, offset in enumerate(offsets):
            lines.append(f"  %value{k} = getelementptr i8, ptr %guards, i64 {offset}")
            outputs.append(f"%value{k}")
        for table, pointers in (("ins", inputs), ("outs", outputs)):
            lines.append(f"  %{table} = alloca [{max(len(pointers), 1)} x ptr], align 8")
            for k, pointer in enumerate(pointers):
                lines.append(f"  %{table}{k}.at = getelementptr ptr, ptr %{table}, i64 {k}")
                lines.append(f"  store ptr {pointer}, ptr %{table}{k}.at")
        size, is_large = max(code.scratch_bytes, 1), code.scratch_bytes > _ON_STACK
        declared = []
        if is_large:
            declared = ["declare ptr @malloc(i64)", "declare void @free(ptr)"]
            lines += [
                f"  %memory = call ptr @malloc(i64 {size + 63})",
                "  %is_none = icmp eq ptr %memory, null",
                "  br i1 %is_none, label %none, label %there",
                "none:", "  ret i32 3", "there:",
                "  %at = ptrtoint ptr %memory to i64", "  %up = add i64 %at, 63", "  %down = and i64 %up, -64",
                "  %scratch = inttoptr i64 %down to ptr",
            ]  # fmt: skip
        else:
            lines.append(f"  %scratch = alloca [{size} x i8], align 64")
        lines += self._call()
        lines += ["  call void @free(ptr %memory)"] if is_large else []
        fits = "true"
        for k, word in enumerate(words):
            lines += [
                f"  %g{k} = load i64, ptr %g{k}.at",
                f"  %same{k} = icmp eq i64 %g{k}, {word}",
                f"  %fits{k} = and i1 {fits}, %same{k}",
            ]
            fits = f"%fits{k}"
        failed = 1 if words else 2  # in another branch, a matrix may be any
        lines += [
            f"  %branch = select i1 {fits}, i32 0, i32 1",
            f"  %result = select i1 %done, i32 %branch, i32 {failed}",
        ]
        head = f"define i32 @{self.name}({', '.join(parameters)}) nounwind {{"
        return "\n".join([*data, *declared, head, *lines, "  ret i32 %result", "}", ""])

    def _call(self) -> Iterator[str]:
        """Yield the lines of the call of the program's function."""
        code = self.way.code
        assert code is not None
        given = "ptr %ins, ptr %outs, ptr %scratch"
        if code.may_fail:
            yield f"  %status = call i64 @{SYMBOL}({given}, ptr null, ptr null)"
            yield "  %done = icmp eq i64 %status, 0"
            return
        for stage, count in enumerate(self.way.stages):
            yield f"  call void @{SYMBOL}({given}, i64 {stage}, i64 0, i64 {count})"
        if not self.way.stages:
            yield f"  call void @{SYMBOL}({given})"
        yield "  %done = icmp eq i32 0, 0"

    def header(self) -> str:
        """Return the header."""
        upper, program = self.name.upper(), self.way.program
        libraries = sorted(undefined_symbols(self.code) - set(self.routines.values()))
        lines = [
            f"/* {self.name}: made of a program by tapegrad {__version__}, for CPUs like {cpu.name()}.",
            f" * Functions that it calls: {', '.join(libraries) or 'none'}.",
        ]
        if self.routines:
            bits = "64" if any(own.endswith("_64_") for own in self.routines.values()) else "32 or 64"
            lines.append(
                f" * And of BLAS and LAPACK, with integers of {bits} bits: {', '.join(sorted(self.routines.values()))}."
            )
        if self.way.signature.captured:
            lines.append(" * Tensors from outside the function are constants, as they were when this was written.")
        lines += [
            " * Arrays stand row by row. Outputs overlap nothing. Threads may call it at the same time. */",
            f"#ifndef {upper}_H", f"#define {upper}_H", "", "#include <stdbool.h>", "#include <stdint.h>", "",
            "#ifdef __cplusplus", 'extern "C" {', "#endif", "",
        ]  # fmt: skip
        lines += [f"#define {upper}_{own} {k} /* {what} */" for k, (own, what) in enumerate(_STATUS.items())]
        parameters, comments = [], []
        args, kwargs = self.way.signature.arguments
        for kind, layouts, tree, const in (
            ("in", self.inputs, (*args, *kwargs.values()), "const "),
            ("out", self.outputs, self.way.signature.result, ""),
        ):
            paths = {leaf.number: path for path, leaf in _paths(tree) if isinstance(leaf, Slot)}
            for k, layout in enumerate(layouts):
                lines.append(f"#define {upper}_{kind.upper()}{k}_SIZE {layout.size}")
                what = "argument" if kind == "in" else "result"
                comments.append(f" * {kind}{k}: {what} {paths[k]}".rstrip() + f", {_shape(layout)}")
                parameters.append(f"{const}{_TYPES[layout.dtype.name]} *{kind}{k}")
        fixed = [repr(leaf) for leaf in flatten((args, kwargs)) if not isinstance(leaf, Slot)]
        comments += [f" * Other arguments are as in the trace: {', '.join(fixed)}"] if fixed else []
        comments += [f" * Guard: {guard.where.splitlines()[0]}".replace("*/", "* /") for guard in program.guards]
        return "\n".join([
            *lines, "", "/*", *comments, " */", f"int {self.name}({', '.join(parameters) or 'void'});", "",
            "#ifdef __cplusplus", "}", "#endif", "", "#endif", "",
        ])  # fmt: skip


def _standard(name: str, program: Program) -> str:
    """Return the name of a routine in libraries: with 64 if the code reads integers of 64 bits that it has written."""
    reads = any(entry.op.name in _READS_PIVOTS for entry in program.entries) and bytes_of_integers() == 8
    return f"{name.removeprefix('tapegrad_')}{'_64_' if reads else '_'}"


def _paths(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a tree, and how Python gets to them."""
    if is_record(tree):
        for field, child in fields_of(tree).items():
            yield from _paths(child, f"{path}.{field}")
    elif isinstance(tree, (dict, tuple, list)):
        pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, child in pairs:
            yield from _paths(child, f"{path}[{key!r}]")
    else:
        yield path, tree


def _shape(layout: Layout) -> str:
    return " x ".join(map(str, layout.shape)) if layout.ndim else "a number"
