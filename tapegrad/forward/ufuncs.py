"""Ufuncs whose loops are kernels of ours, for functions that NumPy and SciPy compute more slowly.

They are made by `PyUFunc_FromFuncAndData` of NumPy's C API, at first use: until then nothing is loaded or compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad import vmath
from tapegrad.compiler import cache
from tapegrad.compiler.elements import as_pointer, load, load_at, store, store_at
from tapegrad.compiler.intrinsics import (
    call_void,
    clear_float_errors,
    float_errors,
    get,
    memcpy,
    put,
    raise_float_errors,
    stack,
)
from tapegrad.kernels.rules import rule_parameters
from tapegrad.runtime import platform
from tapegrad.runtime.locks import module_lock
from tapegrad.runtime.objects import Ufunc, numpy_function

__all__ = ["Function", "completed", "loop_of"]

_NUMBERS = {"float32": 11, "float64": 12}  # of dtypes in NumPy's C API
FLOAT_ERRORS = sum(platform.FLOAT_ERRORS)
_BLOCK = 256
_lock = module_lock()
_alive: list[Any] = []  # NumPy keeps the addresses of what a ufunc is made from


class Function:
    """A function of arrays: a ufunc of ours where it is faster, else another function.

    NumPy has loops made by hand for AVX-512; all others are slower than ours.

    Parameters
    ----------
    name : str
        Of the function in `tapegrad.vmath`, unless there is a formula.
    other : callable
        NumPy's ufunc of that name, or what computes it where there is none.
    dtypes : sequence of str
        Where ours is faster than NumPy's loop for AVX-512, too.
    errors : str
        Of which errors NumPy is to be told: ``invalid`` (nan of numbers), ``divide`` or ``over`` (an infinity of
        finite numbers; where both are named, the former if one of the numbers is 0), ``under`` (of finite numbers
        other than 0 less than the least normal one).
    formula : callable, optional
        What it computes on numbers, with functions of ``xp``; of one operand, of two or of three.
    of_complex : callable, optional
        What computes it of complex numbers; default `other`.
    """

    def __init__(
        self,
        name: str,
        other: Callable[..., Any],
        dtypes: Sequence[str] = tuple(_NUMBERS),
        errors: str = "",
        formula: Callable[..., Any] | None = None,
        of_complex: Callable[..., Any] | None = None,
    ) -> None:
        self.name = self.__name__ = name
        self.other = other
        self.of_complex = of_complex or other
        self.dtypes = dtypes
        self.errors = errors
        self.formula = formula
        self._made: dict[str, Callable[..., Any]] = {}
        self._chosen: dict[np.dtype, Callable[..., Any]] = {}

    def of(self, dtype: np.dtype) -> Callable[..., Any]:
        """Return the function to call for a dtype."""
        chosen = self._chosen.get(dtype)
        if chosen is None:
            name = dtype.name
            ours = name in self.dtypes or (name in _NUMBERS and not has_wide_loop(self.other, dtype))
            others = self.of_complex if dtype.kind == "c" else self.other
            chosen = self._chosen[dtype] = self.ufunc(name) if ours else others
        return chosen

    def ufunc(self, dtype: str) -> Callable[..., Any]:
        """Return our ufunc for float32 or float64."""
        with _lock:
            if dtype not in self._made:
                function = self.formula or getattr(vmath, self.name)
                nin = len(rule_parameters(self.formula)) if self.formula else 1
                self._made[dtype] = _make(self.name, function, nin, dtype, self.errors)
            return self._made[dtype]

    def __call__(self, *operands: Any) -> Any:
        """Compute the function."""
        return self.of(np.result_type(*operands))(*operands)


def has_wide_loop(function: Callable[..., Any], dtype: np.dtype) -> bool:
    """Return whether NumPy computes a ufunc of one dtype by a loop for AVX-512 on this CPU."""
    from numpy.lib.introspect import opt_func_info

    if not isinstance(function, np.ufunc):
        return False
    loops = opt_func_info(func_name=f"^{function.__name__}$").get(function.__name__, {})
    target = loops.get(dtype.char * (function.nin + function.nout), {}).get("current", "")
    return "AVX512" in target or "X86_V4" in target


@functools.lru_cache(maxsize=1024)
def loop_of(ufunc: np.ufunc, dtypes: tuple[np.dtype, ...]) -> tuple[int, int] | None:
    """Return the addresses of a ufunc's loop for these dtypes and of its data; None if it has no such loop."""
    import ctypes

    inside, nargs, wanted = Ufunc(id(ufunc)), ufunc.nargs, bytes([dtype.num for dtype in dtypes])
    codes = ctypes.string_at(inside.types, ufunc.ntypes * nargs)
    for number in range(ufunc.ntypes):
        function = inside.functions.unchecked(number) if codes[number * nargs : (number + 1) * nargs] == wanted else 0
        if function:
            return function, inside.data.unchecked(number) if inside.data else 0
    return None


def completed(formula: Callable[..., Any], other: np.ufunc, dtype: np.dtype) -> Callable[..., Any]:
    """Return the ufunc of a formula which is nan where another ufunc is to compute a number, by its loop."""
    rest = loop_of(other, (dtype,) * other.nargs)
    return other if rest is None else _make(other.__name__, formula, other.nin, dtype.name, "", rest)


def _make(
    name: str, function: Callable[..., Any], nin: int, dtype: str, errors: str, rest: tuple[int, int] | None = None
) -> Callable[..., Any]:
    """Return the ufunc of a function of `nin` numbers, for one dtype; another loop computes what is nan."""
    import ctypes

    loop = cache.address_of(
        f"ufunc-{name}-{dtype}",
        inner_loop(function, nin, dtype, errors, rest is not None),
        ("int64",) * 4,
        {"xp": vmath},
    )
    word, text = ctypes.c_void_p, ctypes.c_char_p
    words = (word * 2)(*rest or ())
    functions, data = (word * 1)(loop), (word * 1)(ctypes.addressof(words))
    types = bytes([_NUMBERS[dtype]] * (nin + 1))
    names = (name.encode(), f"{name} of tapegrad, for {dtype}.".encode())
    _alive.append((functions, data, words, types, names))
    # (functions, data, types, ntypes, nin, nout, identity, name, doc, unused); -1: there is no identity.
    make = ctypes.PYFUNCTYPE(ctypes.py_object, word, word, text, *[ctypes.c_int] * 4, text, text, ctypes.c_int)(
        numpy_function("_UFUNC_API", 1)
    )
    made: Callable[..., Any] = make(
        ctypes.addressof(functions), ctypes.addressof(data), types, 1, nin, 1, -1, *names, 0
    )
    return made


def _compute(function: Callable[..., Any], dtype: str, nin: int) -> Callable[..., None]:
    """Return the loop over contiguous operands and a contiguous result: ``(operands*, results, n)``."""

    def of_one(operands: int, results: int, n: int) -> None:
        x, out = as_pointer(get(operands, 0), dtype), as_pointer(results, dtype)
        for i in range(n):
            store(out, i, function(load(x, i)))

    def of_two(operands: int, results: int, n: int) -> None:
        x, y = as_pointer(get(operands, 0), dtype), as_pointer(get(operands, 1), dtype)
        out = as_pointer(results, dtype)
        for i in range(n):
            store(out, i, function(load(x, i), load(y, i)))

    def of_three(operands: int, results: int, n: int) -> None:
        x, y = as_pointer(get(operands, 0), dtype), as_pointer(get(operands, 1), dtype)
        z, out = as_pointer(get(operands, 2), dtype), as_pointer(results, dtype)
        for i in range(n):
            store(out, i, function(load(x, i), load(y, i), load(z, i)))

    def of_four(operands: int, results: int, n: int) -> None:
        x, y = as_pointer(get(operands, 0), dtype), as_pointer(get(operands, 1), dtype)
        z, w = as_pointer(get(operands, 2), dtype), as_pointer(get(operands, 3), dtype)
        out = as_pointer(results, dtype)
        for i in range(n):
            store(out, i, function(load(x, i), load(y, i), load(z, i), load(w, i)))

    return {1: of_one, 2: of_two, 3: of_three, 4: of_four}[nin]


def inner_loop(
    function: Callable[..., Any], nin: int, dtype: str, errors: str, is_completed: bool = False
) -> Callable[..., int]:
    """Return NumPy's inner loop ``(args**, dims*, steps*, data)`` of a function of numbers.

    Vectors need neighbours, and a target that is no operand: what is not so goes through blocks on the stack. The data
    are the address of the loop that completes the results, and of its data.
    """
    size = np.dtype(dtype).itemsize
    block = _BLOCK
    room = block * size
    blocks, table = (nin + 1) * room, nin * 8
    every = FLOAT_ERRORS
    # Those that are not wanted become 0.
    kinds = "invalid", "divide", "over", "under"
    invalid, divide, over, under = (
        flag * (kind in errors) for flag, kind in zip(platform.FLOAT_ERRORS, kinds, strict=True)
    )
    at_zero, elsewhere, wanted = divide or over, over or divide, invalid | divide | over | under
    tiny = float(np.finfo(dtype).tiny)
    compute = _compute(function, dtype, nin)

    def errors_of(operands: int, results: int, n: int) -> int:
        """Return the flags of floating-point errors. The CPU sets some for branches that are not taken, too."""
        if not float_errors(wanted):
            return 0
        out = as_pointer(results, dtype)
        found = 0
        for i in range(n):
            numbers, finite, zero = True, True, False
            for k in range(nin):
                value = load_at(get(operands, k), i * size, dtype)
                numbers &= value == value
                finite &= value - value == value - value
                zero |= value == 0
            result = load(out, i)
            if result != result:
                found |= invalid * numbers
            elif result - result != result - result:
                found |= (at_zero if zero else elsewhere) * finite
            elif abs(result) < tiny:
                found |= under * (finite and not zero)
        return found

    def complete(operands: int, results: int, n: int, data: int) -> None:
        """Have another loop compute what is nan."""
        out = as_pointer(results, dtype)
        places, words = stack(table + 8), stack(table + 16)
        put(words, 0, 1)
        for k in range(nin + 1):
            put(words, k + 1, size)
        for i in range(n):
            if load(out, i) != load(out, i):
                for k in range(nin):
                    put(places, k, get(operands, k) + i * size)
                put(places, nin, results + i * size)
                call_void(get(data, 0), places, words, words + 8, get(data, 1))

    def kernel(args: int, dims: int, steps: int, data: int) -> int:
        target, n, skip = get(args, nin), get(dims, 0), get(steps, nin)
        memory, operands = stack(blocks), stack(table)
        wrong = 0
        for k in range(nin):
            put(operands, k, memory + k * room)
            if get(steps, k) == 0:  # one number, which fills a block
                part = as_pointer(memory + k * room, dtype)
                for i in range(min(block, n)):
                    store(part, i, load_at(get(args, k), 0, dtype))
        # To note errors element by element would take half as long as a sine: the note would be spilled at each call.
        for first in range(0, n, block):
            count = min(block, n - first)
            for k in range(nin):
                source, step = get(args, k), get(steps, k)
                begin = source + first * step
                if step == size and (source >= target + n * size or target >= source + n * size):
                    put(operands, k, begin)
                elif step == size:
                    memcpy(memory + k * room, begin, count * size)
                elif step != 0:
                    part = as_pointer(memory + k * room, dtype)
                    for i in range(count):
                        store(part, i, load_at(begin, i * step, dtype))
            results = target + first * skip if skip == size else memory + nin * room
            compute(operands, results, count)
            if is_completed:
                complete(operands, results, count, data)
            if wanted:
                wrong |= errors_of(operands, results, count)
            if skip != size:
                part = as_pointer(results, dtype)
                for i in range(count):
                    store_at(target + first * skip, i * skip, load(part, i), dtype)
        if float_errors(every):
            clear_float_errors(every)
        if wrong:
            raise_float_errors(wrong)
        return 0

    return kernel
