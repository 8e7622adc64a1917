"""Machine code from LLVM's text, for tests of what calls it."""

from typing import NamedTuple

import numpy as np

import tapegrad as tg
from tapegrad.compiler import cache
from tapegrad.program.entry import Input, Variant, make_entry
from tapegrad.tape.layout import contiguous_layout

MISSED = "Python was called"

HEAD = "define void @f(ptr noalias %inputs, ptr noalias %outputs, ptr noalias %scratch)"


def compiled(body):
    """Return the address of the machine code of a function with this body."""
    text = f"{HEAD} {{\n{body}\n}}\ndeclare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
    return cache.address_of_ir("test", text, lambda: text, "f")


def pointers(inputs, outputs):
    """Return the text that loads the first pointers of both tables, as %i0, ... and %o0, ..."""
    lines = []
    for kind, table, count in (("i", "inputs", inputs), ("o", "outputs", outputs)):
        for number in range(count):
            lines += [
                f"%{kind}p{number} = getelementptr ptr, ptr %{table}, i64 {number}",
                f"%{kind}{number} = load ptr, ptr %{kind}p{number}",
            ]
    return "\n".join(lines)


def copies(sizes):
    """Return machine code that copies each input, of so many bytes, to the output of its number."""
    lines = [pointers(len(sizes), len(sizes))]
    for number, size in enumerate(sizes):
        lines.append(f"call void @llvm.memcpy.p0.p0.i64(ptr %o{number}, ptr %i{number}, i64 {size}, i1 false)")
    return compiled("\n".join([*lines, "ret void"]))


def squares(n):
    """Return machine code of the sum of squares of n numbers, and its gradient; scratch holds the squares."""
    return compiled(f"""
  {pointers(1, 2)}
  br label %first
first:
  %i = phi i64 [0, %0], [%next, %first]
  %xp = getelementptr double, ptr %i0, i64 %i
  %x = load double, ptr %xp
  %sp = getelementptr double, ptr %scratch, i64 %i
  %square = fmul double %x, %x
  store double %square, ptr %sp
  %gp = getelementptr double, ptr %o1, i64 %i
  %twice = fadd double %x, %x
  store double %twice, ptr %gp
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {n}
  br i1 %more, label %first, label %second
second:
  %j = phi i64 [0, %first], [%after, %second]
  %sum = phi double [0.0, %first], [%total, %second]
  %tp = getelementptr double, ptr %scratch, i64 %j
  %term = load double, ptr %tp
  %total = fadd double %sum, %term
  %after = add i64 %j, 1
  %again = icmp ult i64 %after, {n}
  br i1 %again, label %second, label %end
end:
  store double %total, ptr %o0
  ret void
""")


def form(*shape, dtype=np.float64):
    return contiguous_layout(shape, np.dtype(dtype))


def of_squares(n, **options):
    """Return the variant for an array, or a tensor, of n numbers."""
    kind = tg.Tensor if options.get("as_tensors") else np.ndarray
    return Variant(squares(n), [Input(kind, form(n))], [form(), form(n)], scratch=8 * n, **options)


def missed(*args, **kwargs):
    return MISSED, args, kwargs


def entry_of(*variants, fallback=missed):
    return make_entry(fallback, variants)[0]


def is_missed(out):
    return isinstance(out, tuple) and isinstance(out[0], str) and out[0] == MISSED


class Pair(NamedTuple):
    first: object
    second: object


def numbers(count, arguments, **options):
    """Return the variant that returns copies of so many numbers."""
    return Variant(copies([8] * count), arguments, [form()] * count, **options)


ONE = Input(np.ndarray, form())
