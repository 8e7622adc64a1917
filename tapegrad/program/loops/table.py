"""LLVM's text that walks over a table of calls: many operations of few kinds are data, and no code of their own.

A call is three 32-bit integers: the number of a function, and where among the pointers of all calls those to its
operands and to its results begin. The pointers are written before the first call: most lead to the arena, so they are
offsets to which its address is added, many at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tapegrad.program.apart import name_of
from tapegrad.program.fuse.text import constant_array
from tapegrad.program.loops.chains import chain_text, chains_of
from tapegrad.program.loops.driver import Code, declarations
from tapegrad.program.machine_code import SYMBOL

__all__ = ["Call", "pointer_bytes", "table_text"]

_MANY: Final = 8  # pointers that are written at a time

#: A function, how many of the places are operands, and the places, each a base and an offset.
Call = tuple[int, int, Sequence[tuple[int, int]]]

_WALK: Final = """
  %arena = ptrtoint ptr %scratch to i64
  %arena.one = insertelement <{many} x i64> poison, i64 %arena, i64 0
  %arenas = shufflevector <{many} x i64> %arena.one, <{many} x i64> poison, <{many} x i32> zeroinitializer
  br label %fill
fill:
  %f = phi i64 [ 0, %entry ], [ %f.next, %fill ]
  %offsets.p = getelementptr i32, ptr @offsets, i64 %f
  %offsets.w = load <{many} x i32>, ptr %offsets.p, align 4
  %offsets = zext <{many} x i32> %offsets.w to <{many} x i64>
  %filled = add <{many} x i64> %offsets, %arenas
  %filled.p = getelementptr i64, ptr %pointers, i64 %f
  store <{many} x i64> %filled, ptr %filled.p, align 8
  %f.next = add i64 %f, {many}
  %f.left = icmp ult i64 %f.next, {n_places}
  br i1 %f.left, label %fill, label %others
others:
  %o = phi i64 [ 0, %fill ], [ %o.next, %other ]
  %o.left = icmp ult i64 %o, {n_others}
  br i1 %o.left, label %other, label %walk
other:
  %other.p = getelementptr [3 x i32], ptr @others, i64 %o
  %base.n = getelementptr i32, ptr %other.p, i64 1
  %offset.p = getelementptr i32, ptr %other.p, i64 2
  %at.w = load i32, ptr %other.p, align 4
  %base.w = load i32, ptr %base.n, align 4
  %offset.w = load i32, ptr %offset.p, align 4
  %at.o = zext i32 %at.w to i64
  %base.i = zext i32 %base.w to i64
  %offset = zext i32 %offset.w to i64
  %base.p = getelementptr ptr, ptr %bases, i64 %base.i
  %base = load ptr, ptr %base.p, align 8
  %pointer = getelementptr i8, ptr %base, i64 %offset
  %pointer.p = getelementptr ptr, ptr %pointers, i64 %at.o
  store ptr %pointer, ptr %pointer.p, align 8
  %o.next = add i64 %o, 1
  br label %others
walk:
  br label %step
step:
  %at = phi ptr [ @calls, %walk ], [ %next, %done ]
  %operands.p = getelementptr i32, ptr %at, i64 1
  %results.p = getelementptr i32, ptr %at, i64 2
  %next = getelementptr i32, ptr %at, i64 3
  %which.w = load i32, ptr %at, align 4
  %operands.w = load i32, ptr %operands.p, align 4
  %results.w = load i32, ptr %results.p, align 4
  %which = zext i32 %which.w to i64
  %operands.n = zext i32 %operands.w to i64
  %results.n = zext i32 %results.w to i64
  %operands = getelementptr ptr, ptr %pointers, i64 %operands.n
  %results = getelementptr ptr, ptr %pointers, i64 %results.n
  %code.p = getelementptr ptr, ptr @functions, i64 %which
  %code = load ptr, ptr %code.p, align 8
  %may = icmp uge i64 %which, {n_plain}
  br i1 %may, label %asked, label %plain, !prof !0
plain:
  call void %code(ptr %operands, ptr %results, ptr %rest)
  br label %done
asked:
  %stop.n = getelementptr i64, ptr @stop_of, i64 %which
  %stop.at = load i64, ptr %stop.n, align 8
  %stop = getelementptr ptr, ptr %stops, i64 %stop.at
  %status = call i64 %code(ptr %operands, ptr %results, ptr %rest, ptr %call, ptr %stop)
  %fails = icmp ne i64 %status, 0
  br i1 %fails, label %failed, label %done
failed:
  ret i64 %status
done:
  %end = icmp eq ptr %next, getelementptr (i32, ptr @calls, i64 {n_words})
  br i1 %end, label %after, label %step
after:
"""


def pointer_bytes(calls: Sequence[Sequence[tuple[int, int]]]) -> int:
    """Return the memory for the pointers to all places of calls."""
    return 8 * -(-sum(map(len, calls)) // _MANY) * _MANY


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
        ``arena``, ``constants``, ``inputs K`` or ``outputs K``. The arena is the first.
    copies : sequence of tuple
        What is copied in the end: from a place, to a place, how many bytes.
    constants : array of uint8
        The memory of constants.
    arena_bytes : int
        Behind the arena stand the pointers, `pointer_bytes`.
    """
    n_plain = sum(not own.may_fail for own in codes)
    links = chains_of([which for which, *_ in calls], n_plain)
    chains = {own: place for place, own in enumerate(dict.fromkeys(own for own in links if len(own) > 1))}
    sizes = {which: (count, len(own)) for which, count, own in calls}
    places = [place for *_, own in calls for place in own]
    words: list[int] = []
    first = 0
    for own in links:
        words += (chains.get(own, len(chains) + own[0]), first, first + sizes[own[0]][0])
        first += sum(sizes[which][1] for which in own)
    n_bytes = pointer_bytes([own for *_, own in calls])
    offsets = np.zeros(n_bytes // 8, np.int32)
    offsets[: len(places)] = [offset if base == 0 else 0 for base, offset in places]
    others = [(at, *place) for at, place in enumerate(places) if place[0] != 0]
    stop_of = np.cumsum([0] * len(chains) + [0, *[len(own.stops) for own in codes]])[:-1]
    names = [name_of(own) for own in codes]
    functions = [f"ptr @{own}" for own in (*[f"chain{k}" for k in chains.values()], *names)]
    head = [f"  %bases = alloca [{len(bases)} x ptr], align 8"]
    for k, base in enumerate(bases):
        kind, _, number = base.partition(" ")
        pointer = {"arena": "%scratch", "constants": "@constants"}.get(kind, f"%base{k}")
        if number:
            head += [
                f"  {pointer}.p = getelementptr ptr, ptr %{kind}, i64 {number}",
                f"  {pointer} = load ptr, ptr {pointer}.p, align 8",
            ]
        head += [f"  %to{k} = getelementptr ptr, ptr %bases, i64 {k}", f"  store ptr {pointer}, ptr %to{k}, align 8"]
    head += [
        f"  %pointers = getelementptr i8, ptr %scratch, i64 {arena_bytes}",
        f"  %rest = getelementptr i8, ptr %pointers, i64 {n_bytes}",
    ]
    counts = {"n_places": len(places), "n_others": len(others), "n_words": len(words)}
    walk = _WALK.format(many=_MANY, n_plain=len(chains) + n_plain, **counts)
    return "\n".join([
        constant_array("@calls", np.array(words, np.int32)), constant_array("@offsets", offsets),
        constant_array("@others", np.array(others, np.int32)), constant_array("@constants", constants),
        constant_array("@stop_of", stop_of.astype(np.int64)),
        f"@functions = internal constant [{len(functions)} x ptr] [{', '.join(functions)}]",
        *[chain_text(f"chain{k}", [(names[own], *sizes[own]) for own in chain]) for chain, k in chains.items()],
        *declarations(codes), "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        f"define i64 @{SYMBOL}(ptr %inputs, ptr %outputs, ptr %scratch, ptr %call, ptr %stops) nounwind {{", "entry:",
        *head, walk, *[line for k, own in enumerate(copies) for line in _copy(k, *own)],
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
