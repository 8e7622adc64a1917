"""A compiled integrand as a C function, which SciPy calls without Python: ``double f(double x, void *data)``."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import scipy

from tapegrad.compiler.cache import address_of_ir
from tapegrad.program.fuse import Fused

__all__ = ["low_level"]

_SYMBOL: Final = "integrand"
_SCRATCH: Final = 1 << 15  # bytes on the stack
_SIGNATURE: Final = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_void_p)


def _text(n_values: int, scratch: int) -> str:
    """Return LLVM's text of a function that calls a program's code; `data` has its address, and further inputs'."""
    lines = [
        f"define double @{_SYMBOL}(double %x, ptr %data) nounwind {{",
        "  %input = alloca double",
        "  %output = alloca double",
        f"  %inputs = alloca [{n_values + 1} x ptr]",
        "  %outputs = alloca [1 x ptr]",
        f"  %scratch = alloca [{max(scratch, 1)} x i8], align 64",
        "  store double %x, ptr %input",
        "  store ptr %input, ptr %inputs",
        "  store ptr %output, ptr %outputs",
    ]
    for place in range(n_values):
        lines += [
            f"  %from{place} = getelementptr ptr, ptr %data, i64 {place + 1}",
            f"  %to{place} = getelementptr ptr, ptr %inputs, i64 {place + 1}",
            f"  %value{place} = load ptr, ptr %from{place}",
            f"  store ptr %value{place}, ptr %to{place}",
        ]
    return "\n".join([
        *lines,
        "  %code = load ptr, ptr %data",
        "  call void %code(ptr %inputs, ptr %outputs, ptr %scratch)",
        "  %result = load double, ptr %output",
        "  ret double %result",
        "}",
    ])  # fmt: skip


@functools.cache
def _integrand(n_values: int, has_scratch: bool) -> int:
    text = _text(n_values, _SCRATCH if has_scratch else 0)
    return address_of_ir("integrand", text, lambda: text, _SYMBOL)


@functools.lru_cache(maxsize=64)
def _address(code: Fused) -> int:
    return code.address()  # which takes 0.1 ms


@contextlib.contextmanager
def low_level(compiled: Any, values: Sequence[Any]) -> Iterator[scipy.LowLevelCallable | None]:
    """Give a compiled function of a number and values, which was called, as what SciPy calls.

    None if Python has to look at each call: because of guards, or of operations that are not fused.
    """
    programs = compiled.programs
    if len(programs) != 1:
        yield None
        return
    (program,) = programs
    code = program.run.fused
    layouts = [program.layouts[number] for number in program.inputs]
    fits = (
        isinstance(code, Fused)
        and not code.may_fail
        and not code.stages
        and code.scratch_bytes <= _SCRATCH
        and not program.run.checked.guards
        and len(layouts) == 1 + len(values)
        and all(own.dtype == np.asarray(value).dtype for own, value in zip(layouts, (0.0, *values), strict=True))
        and [program.layouts[number].dtype for number in program.outputs] == [np.float64]
    )
    if not fits or not isinstance(code, Fused):
        yield None
        return
    address = _integrand(len(values), bool(code.scratch_bytes))
    arrays = [np.ascontiguousarray(value) for value in values]  # which live while the function is called
    table = (ctypes.c_void_p * (1 + len(arrays)))(_address(code), *[own.ctypes.data for own in arrays])
    yield scipy.LowLevelCallable(_SIGNATURE(address), ctypes.cast(table, ctypes.c_void_p))
