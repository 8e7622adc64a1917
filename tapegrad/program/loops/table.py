"""LLVM's text that walks over a table of calls: many operations of few kinds are data, and no code of their own.

A call is some 32-bit integers: the number of a function, how many operands it has, how many operands and results, and
where each of these stands: the number of a base, and the bytes behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tapegrad.program.fuse.text import constant_array
from tapegrad.program.loops.driver import Code, declarations, name_of
from tapegrad.program.machine_code import SYMBOL

__all__ = ["Call", "table_text"]

_FEW: Final = 3  # operands and results whose places are worked out without a loop
_HEAD: Final = 3  # integers before the places

#: A function, how many of the places are operands, and the places, each a base and an offset.
Call = tuple[int, int, Sequence[tuple[int, int]]]

_WALK: Final = """
  br label %step
step:
  %at = phi ptr [ @calls, %entry ], [ %next, %done ]
  %counts.p = getelementptr i32, ptr %at, i64 1
  %all.p = getelementptr i32, ptr %at, i64 2
  %places = getelementptr i32, ptr %at, i64 {head}
  %which.w = load i32, ptr %at, align 4
  %count.w = load i32, ptr %counts.p, align 4
  %all.w = load i32, ptr %all.p, align 4
  %which = zext i32 %which.w to i64
  %count = zext i32 %count.w to i64
  %all = zext i32 %all.w to i64
{few}
  %many = icmp ugt i64 %all, {fewest}
  br i1 %many, label %more, label %ready
more:
  %k = phi i64 [ {fewest}, %step ], [ %k.next, %more ]
{one}
  %k.next = add i64 %k, 1
  %left = icmp ult i64 %k.next, %all
  br i1 %left, label %more, label %ready
ready:
  %results = getelementptr ptr, ptr %slots, i64 %count
  %code.p = getelementptr ptr, ptr @functions, i64 %which
  %code = load ptr, ptr %code.p, align 8
  %size.max = call i64 @llvm.umax.i64(i64 %all, i64 {fewest})
  %size = shl i64 %size.max, 1
  %next = getelementptr i32, ptr %places, i64 %size
  %may = icmp uge i64 %which, {n_plain}
  br i1 %may, label %asked, label %plain, !prof !0
plain:
  call void %code(ptr %slots, ptr %results, ptr %rest)
  br label %done
asked:
  %stop.n = getelementptr i64, ptr @stop_of, i64 %which
  %stop.at = load i64, ptr %stop.n, align 8
  %stop = getelementptr ptr, ptr %stops, i64 %stop.at
  %status = call i64 %code(ptr %slots, ptr %results, ptr %rest, ptr %call, ptr %stop)
  %fails = icmp ne i64 %status, 0
  br i1 %fails, label %failed, label %done
failed:
  ret i64 %status
done:
  %end = icmp eq ptr %next, getelementptr (i32, ptr @calls, i64 {size})
  br i1 %end, label %after, label %step
after:
"""


def _place(k: str, offset: str) -> str:
    """Return the lines that store a pointer to an operand or result: `offset` is that of its integers."""
    name = f"%p{k.removeprefix('%')}"
    return "\n".join([
        f"  {name}.n = getelementptr i32, ptr %places, i64 {offset}",
        f"  {name}.o = getelementptr i32, ptr {name}.n, i64 1",
        f"  {name}.base.w = load i32, ptr {name}.n, align 4",
        f"  {name}.base.i = zext i32 {name}.base.w to i64",
        f"  {name}.base.p = getelementptr ptr, ptr %bases, i64 {name}.base.i",
        f"  {name}.base = load ptr, ptr {name}.base.p, align 8",
        f"  {name}.off.w = load i32, ptr {name}.o, align 4",
        f"  {name}.off = zext i32 {name}.off.w to i64",
        f"  {name} = getelementptr i8, ptr {name}.base, i64 {name}.off",
        f"  {name}.to = getelementptr ptr, ptr %slots, i64 {k}",
        f"  store ptr {name}, ptr {name}.to, align 8",
    ])  # fmt: skip


def table_text(
    codes: Sequence[Code],
    calls: Sequence[Call],
    bases: Sequence[str],
    copies: Sequence[tuple[tuple[int, int], tuple[int, int], int]],
    constants: np.ndarray,
    arena_bytes: int,
) -> str:
    """Return the module that makes calls one after the other, which declares their functions.

    Parameters
    ----------
    codes : sequence of Code
        The functions; those that may fail stand behind the others.
    calls : sequence of Call
        At least one.
    bases : sequence of str
        ``arena``, ``constants``, ``inputs K`` or ``outputs K``.
    copies : sequence of tuple
        What is copied in the end: from a place, to a place, how many bytes.
    constants : array of uint8
        The memory of constants.
    arena_bytes : int
    """
    words: list[int] = []
    for which, count, places in calls:
        words += (which, count, len(places), *[word for place in places for word in place])
        words += [0, 0] * (_FEW - len(places))
    n_plain = sum(not own.may_fail for own in codes)
    stop_of = np.cumsum([0, *[len(own.stops) for own in codes]])[:-1]
    width = max(max(len(places) for *_, places in calls), _FEW)
    head = [f"  %bases = alloca [{len(bases)} x ptr], align 8", f"  %slots = alloca [{width} x ptr], align 8"]
    for k, base in enumerate(bases):
        kind, _, number = base.partition(" ")
        pointer = {"arena": "%scratch", "constants": "@constants"}.get(kind, f"%base{k}")
        if number:
            head += [
                f"  {pointer}.p = getelementptr ptr, ptr %{kind}, i64 {number}",
                f"  {pointer} = load ptr, ptr {pointer}.p, align 8",
            ]
        head += [f"  %to{k} = getelementptr ptr, ptr %bases, i64 {k}", f"  store ptr {pointer}, ptr %to{k}, align 8"]
    walk = _WALK.format(
        head=_HEAD, fewest=_FEW, n_plain=n_plain, size=len(words),
        few="\n".join(_place(str(k), str(2 * k)) for k in range(_FEW)),
        one="  %k.words = shl i64 %k, 1\n" + _place("%k", "%k.words"),
    )  # fmt: skip
    return "\n".join([
        constant_array("@calls", np.array(words, np.int32)), constant_array("@constants", constants),
        constant_array("@stop_of", stop_of.astype(np.int64)),
        f"@functions = internal constant [{len(codes)} x ptr] [{', '.join(f'ptr @{name_of(own)}' for own in codes)}]",
        *declarations(codes), "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        "declare i64 @llvm.umax.i64(i64, i64)",
        f"define i64 @{SYMBOL}(ptr %inputs, ptr %outputs, ptr %scratch, ptr %call, ptr %stops) nounwind {{", "entry:",
        *head, f"  %rest = getelementptr i8, ptr %scratch, i64 {arena_bytes}", walk,
        *[line for k, own in enumerate(copies) for line in _copy(k, *own)],
        "  ret i64 0", "}", '!0 = !{!"branch_weights", i32 1, i32 1000}', "",
    ])  # fmt: skip


def _copy(number: int, source: tuple[int, int], target: tuple[int, int], nbytes: int) -> list[str]:
    lines, names = [], []
    for word, (base, offset) in (("from", source), ("into", target)):
        name = f"%{word}{number}"
        names.append(name)
        lines += [
            f"  {name}.p = getelementptr ptr, ptr %bases, i64 {base}",
            f"  {name}.base = load ptr, ptr {name}.p, align 8",
            f"  {name} = getelementptr i8, ptr {name}.base, i64 {offset}",
        ]
    call = f"  call void @llvm.memcpy.p0.p0.i64(ptr {names[1]}, ptr {names[0]}, i64 {nbytes}, i1 false)"
    return [*lines, call] if nbytes else []
