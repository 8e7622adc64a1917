"""From formulas to functions of kernels: on one number, and on vectors, which LLVM's vectoriser puts in its place.

A formula is emitted once for a single number and once for each width of vectors, as LLVM functions. Calls of the first
name the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.compiler import cpu, values
from tapegrad.compiler.arithmetic import arithmetic, cast, compared, divided
from tapegrad.compiler.intrinsics import VECTORISABLE, Intrinsic
from tapegrad.compiler.mathematics import FUNCTIONS
from tapegrad.compiler.values import NotCompilableError, Value
from tapegrad.runtime.platform import has
from tapegrad.vmath.lanes import Lanes, narrow, wide
from tapegrad.vmath.pairs import Pair, Part

__all__ = ["FORMULAS", "define", "function", "in_double", "of_complex"]

Formula = Callable[..., Any]

_NAMES_VECTORS = has("vector_names")

#: The formulas by name: in float64, in float32, `rare` and `whole`, as `function` takes them.
FORMULAS: dict[str, tuple[Formula, Formula, str | Formula, bool]] = {}


def function(
    name: str,
    double: Formula,
    single: Formula,
    *,
    otherwise: Callable[[Pair], Pair] | None = None,
    rare: str | Formula = "",
    whole: bool = False,
) -> Intrinsic:
    """Return the function of kernels that computes a formula.

    Parameters
    ----------
    name : str
        A name of its own in object code.
    double, single : callable
        The formula on `Lanes` of float64 and of float32. With `rare` it returns a mask besides.
    otherwise : callable, optional
        The formula of complex numbers, in `tapegrad.vmath.pairs`.
    rare : str
        A function of libm, or a formula on one float64, for lanes where the mask is true. While there are none, it
        costs one branch.
    whole : bool
        `rare` is a formula for all lanes of a vector, float64 or float32, of which one has a true mask.
    """
    FORMULAS[name] = double, single, rare, whole

    def emit(builder: Any, *args: Value) -> Value:
        if not any(values.is_complex(own.kind) for own in args):
            return _of_reals(builder, name, double, single, rare, whole, args)
        if otherwise is None:
            raise NotCompilableError(f"{name} of complex numbers")
        return _of_complex(builder, otherwise, *args)

    return Intrinsic(emit)


def in_double(name: str, double: Formula, everywhere: Formula | None = None) -> Intrinsic:
    """Return the function of kernels that computes float32 numbers in float64, too.

    `everywhere` is the formula for all lanes of a vector of which `double` returns that one is rare; see `function`.
    """

    def single(*args: Lanes) -> Any:
        result = double(*map(wide, args))
        return (narrow(result[0]), result[1]) if everywhere else narrow(result)

    def rare(x: Lanes) -> Lanes:
        assert everywhere is not None
        found: Lanes = narrow(everywhere(wide(x))) if x.single else everywhere(x)
        return found

    return function(name, double, single, rare=rare if everywhere else "", whole=True)


def of_complex(formula: Callable[[Pair], Pair]) -> Intrinsic:
    """Return the function of kernels that computes a formula of complex numbers."""

    def emit(builder: Any, x: Value) -> Value:
        return _of_complex(builder, formula, x)

    return Intrinsic(emit)


def _of_reals(
    builder: Any, name: str, double: Formula, single: Formula, rare: str | Formula, whole: bool, args: Sequence[Value]
) -> Value:
    kind = "float32" if all(own.kind == "float32" for own in args) else "float64"
    numbers = [cast(builder, own, kind).one for own in args]
    formula = single if kind == "float32" else double
    return Value(kind, (_call_formula(builder, name, formula, rare, whole, numbers),))


def _of_complex(builder: Any, formula: Callable[[Pair], Pair], x: Value) -> Value:
    found = formula(Pair(*[_Number(builder, part) for part in values.parts(x)]))
    return Value(x.kind, (found.real.value.one, found.imag.value.one))


class _Number(Part):
    """A real number of a kernel, as formulas of complex numbers take it."""

    __slots__ = ("builder", "value")

    def __init__(self, builder: Any, value: Value) -> None:
        self.builder, self.value = builder, value

    @property
    def is_double(self) -> bool:
        """Whether it is a float64."""
        return bool(self.value.kind == "float64")

    def of(self, name: str, *others: Any) -> _Number:
        """Return what a function makes of this number, and of others: Python's are of its dtype."""
        kind = next(own.value.kind for own in (*others, self) if isinstance(own, _Number))
        args = [own.value if isinstance(own, _Number) else values.known_as(own, kind) for own in (self, *others)]
        return _Number(self.builder, self._computed(name, args))

    def _computed(self, name: str, args: list[Value]) -> Value:
        if name in FORMULAS:
            return _of_reals(self.builder, name, *FORMULAS[name], args)
        if name in ("add", "sub", "mul"):
            return arithmetic(self.builder, name, *args)
        if name in _SIGNS:
            return compared(self.builder, _SIGNS[name], *args)
        return _OTHERS[name](self.builder, *args)


def _extreme(sign: str) -> Callable[..., Value]:
    def emit(builder: Any, x: Value, y: Value) -> Value:
        chosen = builder.select(compared(builder, sign, x, y).one, x.one, y.one)
        both = arithmetic(builder, "add", x, y)  # nan if one is
        return Value(x.kind, (builder.select(compared(builder, "!=", both, both).one, both.one, chosen),))

    return emit


_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_OTHERS: dict[str, Callable[..., Value]] = {
    "div": divided, "maximum": _extreme(">"), "minimum": _extreme("<"),
    "neg": lambda builder, x: Value(x.kind, (builder.fneg(x.one),)),
    "logical_or": lambda builder, x, y: arithmetic(builder, "or", x, y),
    "logical_and": lambda builder, x, y: arithmetic(builder, "and", x, y),
    "abs": FUNCTIONS[abs], "sqrt": FUNCTIONS[np.sqrt], "copysign": FUNCTIONS[np.copysign],
    "atan2": FUNCTIONS[np.arctan2], "where": FUNCTIONS[np.where],
}  # fmt: skip


def register_bits() -> int:
    """Return the width of the CPU's vector registers."""
    features = cpu.features()
    return 512 if features.get("avx512f") else 256 if features.get("avx2") else 128


def _call_formula(
    builder: Any, name: str, formula: Formula, rare: str | Formula, whole: bool, values: list[Any]
) -> Any:
    """Call the function of one number, and tell LLVM which functions of vectors stand for it."""
    (kind,) = {str(value.type) for value in values}
    widths = [register_bits() // 64] + ([register_bits() // 32] if kind == "float" else [])
    about = formula, rare, whole, values[0].type, len(values)
    scalar = _define(builder.module, f"{VECTORISABLE}{name}_{kind}", *about, 0)
    result = builder.call(scalar, values)
    if not _NAMES_VECTORS:
        return result
    mappings = []
    for width in widths:
        vector = f"{scalar.name}{width}"
        _define(builder.module, vector, *about, width)
        mappings.append(f"_ZGV_LLVM_N{width}{'v' * len(values)}_{scalar.name}({vector})")
    # llvmlite knows this attribute not, so past its check. LLVM: docs/LangRef, "vector-function-abi-variant".
    set.add(result.attributes, f'"vector-function-abi-variant"="{",".join(mappings)}"')
    return result


def define(module: Any, symbol: str, name: str, kind: Any, width: int) -> Any:
    """Define the function of a known formula on vectors, or on one number where the width is 0, in a module."""
    double, single, rare, whole = FORMULAS[name]
    formula = double if str(kind) == "double" else single
    return _define(module, symbol, formula, rare, whole, kind, double.__code__.co_argcount, width)


def _define(
    module: Any, name: str, formula: Formula, rare: str | Formula, whole: bool, kind: Any, count: int, width: int
) -> Any:
    """Return the LLVM function of a formula in a module, defined if need be."""
    from llvmlite import ir

    known = module.globals.get(name)
    if known is not None:
        return known
    own = ir.VectorType(kind, width) if width else kind
    made = ir.Function(module, ir.FunctionType(own, [own] * count), name)
    made.linkage = "weak_odr"  # numba links the modules of all functions that call it; none may drop it
    for attribute in ("noinline", "nounwind", "readnone"):
        made.attributes.add(attribute)
    builder = ir.IRBuilder(made.append_basic_block())
    args = [Lanes(builder, value) for value in made.args]
    result = formula(*args)
    if not rare:
        builder.ret(result.value)
        return made
    result, mask = result
    chosen, kind_of_mask = mask.value, ir.IntType(width or 1)
    some = chosen
    if width:
        chosen = builder.bitcast(chosen, kind_of_mask)
        some = builder.icmp_unsigned("!=", chosen, kind_of_mask(0))
    before = builder.block
    with builder.if_then(some, likely=False):
        if whole and not isinstance(rare, str):
            slow = builder.call(_define(module, f"{name}_rare", rare, "", False, kind, count, width), made.args)
        else:
            lanewise = _lanewise(module, f"{name}_rare", rare, own, count)
            slow = builder.call(lanewise, [*made.args, result.value, chosen])
        after = builder.block
    out = builder.phi(own)
    out.add_incoming(result.value, before)
    out.add_incoming(slow, after)
    builder.ret(out)
    return made


def _lanewise(module: Any, name: str, rare: str | Formula, own: Any, count: int) -> Any:
    """Define a function that replaces the lanes of a result that a mask chooses, one after the other, in float64.

    It stands apart so that the common way through its caller needs no stack.
    """
    from llvmlite import ir

    double, index = ir.DoubleType(), ir.IntType(32)
    width = getattr(own, "count", 0)
    element, mask_type = getattr(own, "element", own), ir.IntType(width or 1)
    if isinstance(rare, str):
        function = module.globals.get(rare)
        if function is None:
            function = ir.Function(module, ir.FunctionType(double, [double] * count), rare)
    else:
        function = _define(module, f"{VECTORISABLE}{rare.__name__}", rare, "", False, double, count, 0)
    made = ir.Function(module, ir.FunctionType(own, [own] * (count + 1) + [mask_type]), name)
    made.linkage = "internal"
    for attribute in ("noinline", "nounwind"):
        made.attributes.add(attribute)
    *values, result, mask = made.args
    builder = ir.IRBuilder(made.append_basic_block())

    def one(args: list[Any]) -> Any:
        if element == double:
            return builder.call(function, args)
        return builder.fptrunc(builder.call(function, [builder.fpext(value, double) for value in args]), element)

    if not width:
        builder.ret(one(values))
        return made
    memory = []
    for value in (*values, result):
        memory.append(builder.alloca(own))
        builder.store(value, memory[-1])
    start, turn, asked, end, done = builder.block, *(made.append_basic_block() for _ in range(4))
    builder.branch(turn)
    builder.position_at_end(turn)
    lane = builder.phi(index)
    bit = builder.lshr(mask, builder.trunc(lane, mask_type) if width < 32 else lane)
    builder.cbranch(builder.trunc(bit, ir.IntType(1)), asked, end)
    builder.position_at_end(asked)
    places = [
        builder.gep(builder.bitcast(place, element.as_pointer()), [lane], source_etype=element) for place in memory
    ]
    builder.store(one([builder.load(place, typ=element) for place in places[:-1]]), places[-1])
    builder.branch(end)
    builder.position_at_end(end)
    after = builder.add(lane, index(1))
    builder.cbranch(builder.icmp_unsigned("<", after, index(width)), turn, done)
    lane.add_incoming(index(0), start)
    lane.add_incoming(after, end)
    builder.position_at_end(done)
    builder.ret(builder.load(memory[-1], typ=own))
    return made
