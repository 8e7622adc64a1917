"""LLVM's text: values in vectors of some width, and the functions that they call."""

from __future__ import annotations

import functools
import re
import struct
from typing import Final

import numpy as np

__all__ = ["FENCE", "SCALARS", "Text", "constant", "first_lanes", "typed", "vmath_text"]

SCALARS: Final = {"d": "double", "f": "float", "l": "i64", "i": "i32", "?": "i1"}
#: As elements of memory.
STORED: Final = {**SCALARS, "?": "i8"}
#: Instructions that are not the same when they come again.
_AGAIN: Final = ("getelementptr", "mul i64", "add i64")
_SUFFIX: Final = {"d": "f64", "f": "f32", "l": "i64", "i": "i32", "?": "i1"}
#: What LLVM moves no access to memory across. It is no instruction of the CPU.
FENCE: Final = 'fence syncscope("singlethread") seq_cst'
#: Stores between fences. LLVM's scheduler holds each access against all others between two fences: 5,000 scalars in one
#: block take it a second.
_STORES: Final = 64
#: Lines of a block of straight code. LLVM's code generator looks through a block for each load: 9,000 lines take it two
#: seconds in one block, half of one in five.
_BLOCK: Final = 2000
BYTES: Final = {"d": 8, "f": 4, "l": 8, "i": 4, "?": 1}


def typed(char: str, width: int) -> str:
    """Return LLVM's type of a dtype; width 1 is a scalar."""
    return SCALARS[char] if width == 1 else f"<{width} x {SCALARS[char]}>"


def suffix(char: str, width: int) -> str:
    """Return the end of an intrinsic's name."""
    return _SUFFIX[char] if width == 1 else f"v{width}{_SUFFIX[char]}"


def bits_of(value: float, dtype: str) -> str:
    """Return a floating constant as LLVM writes it: the bits of it as a float64."""
    wide = float(np.float32(value)) if dtype == "f" else float(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', wide))[0]:016X}"


def constant(value: float, char: str, width: int) -> str:
    """Return a constant in every lane."""
    if char in "df":
        number = bits_of(value, char)
    else:
        number = str(int(value)) if char in "li" else ("true" if value else "false")
    return number if width == 1 else f"splat ({SCALARS[char]} {number})"


def first_lanes(count: int, width: int) -> str:
    """Return the mask of the first lanes of a vector."""
    return "<" + ", ".join(f"i1 {'true' if lane < count else 'false'}" for lane in range(width)) + ">"


def constant_array(name: str, data: np.ndarray) -> str:
    """Return the definition of an array of constants."""
    raw = data.tobytes()
    text = "\\" + raw.hex("\\") if raw else ""
    return f'{name} = internal constant [{len(raw)} x i8] c"{text}", align 64'


class Text:
    """The lines of a function, and what the module declares."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}
        self.functions_before: list[list[str]] = []  # the lines of functions that run before this one
        self.functions: set[tuple[str, str, int]] = set()  # of vmath: name, dtype, width
        self.n_formulas = 0  # calls of these
        self._count = 0
        self._begins = 0  # where this block does
        self._known: dict[str, str] = {}  # names by instructions of this block

    def name(self) -> str:
        """Return a new name of a value."""
        self._count += 1
        return f"%v{self._count}"

    def label(self) -> str:
        """Return a new name of a block."""
        self._count += 1
        return f"b{self._count}"

    def put(self, line: str) -> None:
        """Write an instruction without a result."""
        self.lines.append("  " + line)

    def split(self, stores: int) -> None:
        """Write a fence behind some of the stores, of which there were so many."""
        if stores % _STORES == 0:
            self.put(FENCE)

    def cut(self) -> None:
        """Go on in another block, if this one is long; LLVM does not know that nothing else can happen."""
        if len(self.lines) - self._begins < _BLOCK:
            return
        self.declared["@going"] = "@going = internal global i8 1"
        self.declared["llvm.trap"] = "declare void @llvm.trap()"
        following, never = self.label(), self.label()
        goes = self.op(f"icmp ne i8 {self.op('load volatile i8, ptr @going')}, 0")
        self.put(f"br i1 {goes}, label %{following}, label %{never}")
        self.start(never)
        self.put("call void @llvm.trap()")
        self.put("unreachable")
        self.start(following)

    def op(self, line: str) -> str:
        """Write an instruction, and return the name of its result: of an earlier one of this block that is the same."""
        name = self._known.get(line)
        if name is None:
            name = self.name()
            self.lines.append(f"  {name} = {line}")
            if line.startswith(_AGAIN):
                self._known[line] = name
        return name

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self._begins = len(self.lines)
        self._known.clear()

    def begin(self, *, after_this: bool = False) -> None:
        """Begin another function, which may run `after_this`."""
        if after_this:
            self.functions_before.append(self.lines)
        self.lines, self._begins = [], 0
        self._known.clear()

    def call(self, function: str, result: str, *args: str) -> str:
        """Call a function with typed arguments."""
        if function not in self.declared:
            kinds = ", ".join(_type_of(arg) for arg in args)
            self.declared[function] = f"declare {result} @{function}({kinds})"
        line = f"call {result} @{function}({', '.join(args)})"
        if result == "void":
            self.put(line)
            return ""
        return self.op(line)

    def formula(self, name: str, char: str, width: int, args: list[str]) -> str:
        """Call a function of vmath."""
        self.functions.add((name, char, width))
        self.n_formulas += 1
        kind = typed(char, width)
        return self.op(f"call {kind} @{symbol(name, char, width)}({', '.join(f'{kind} {arg}' for arg in args)})")


def _type_of(arg: str) -> str:
    return arg[: arg.index(">") + 1] if arg.startswith("<") else arg[: arg.index(" ")]


def symbol(name: str, char: str, width: int) -> str:
    """Return the name of a function of vmath in a module."""
    return f"tg_{name}_{char}{width}"


@functools.lru_cache(64)
def vmath_text(functions: frozenset[tuple[str, str, int]], is_inlined: bool = True) -> tuple[str, frozenset[str]]:
    """Return the definitions of functions of vmath, which become a part of the loops, and the names of their text."""
    if not functions:
        return "", frozenset()
    from llvmlite import ir

    from tapegrad.vmath.functions import define

    module = ir.Module()
    tops = set()
    for name, char, width in sorted(functions):
        top = symbol(name, char, width)
        tops.add(top)
        define(module, top, name, ir.DoubleType() if char == "d" else ir.FloatType(), width if width > 1 else 0)
    text = re.sub(r"^(target .*|source_filename.*|; ModuleID.*)$", "", str(module), flags=re.MULTILINE)
    text = text.replace("define weak_odr", "define internal")
    for top in tops if is_inlined else ():  # they are part of the loops; their rare branches stay apart
        text = re.sub(rf'(@"{top}"\([^\n]*\)) ([^\n]*)\bnoinline\b', r"\1 \2alwaysinline", text)
    return text.replace("readnone", ""), frozenset(re.findall(r'@"([\w.]+)"\(', text))
