"""Rows of structs: loaded and stored whole, and transposed in registers, so that no lane is gathered alone.

Eight rows of eight numbers become eight columns in three stages of shuffles, of pairs, of fours and of eights, and the
same three stages lead back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tapegrad.program.fuse.bodies import Body
from tapegrad.program.fuse.scalars import FLOATS, Node
from tapegrad.program.fuse.schedule import Root
from tapegrad.program.fuse.text import BYTES, STORED, Text, first_lanes, suffix, typed

__all__ = ["STAGES", "address", "joined", "load_rows", "store_rows", "transposed"]

STAGES: Final = (
    (1, (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)),
    (2, (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)),
    (4, (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)),
)
_FEW: Final = 4  # longest rows that are loaded without gaps


def load_rows(body: Body, nodes: Sequence[Node]) -> None:
    """Load those nodes of a body that are parts of rows, if rows are worth it."""
    if body.mask or body.width % 8:
        return
    groups: dict[Any, list[Node]] = {}
    for node in nodes:
        if node.kind == "load" and node.dtype in FLOATS and node.number not in body.names:
            base, offset, strides = node.attr
            if len(strides) == 1 and strides[0][0] == body.axis and strides[0][1] > 1:
                stride = strides[0][1]
                key = base, stride, offset // stride if stride <= _FEW else 0, node.dtype
                groups.setdefault(key, []).append(node)
    for (base, stride, row, _), group in groups.items():
        if stride <= _FEW:
            _load_close(body, base, stride, row * stride, group)
        else:
            _load_blocks(body, base, stride, sorted(group, key=lambda node: node.attr[1]))


def address(body: Body, base: tuple[str, int], stride: int, offset: int, char: str = "d") -> str:
    """Return the address of an element of a body's first row."""
    at = body.text.op(f"mul i64 {body.position}, {stride}")
    at = body.text.op(f"add i64 {at}, {offset}") if offset else at
    return body.text.op(f"getelementptr {STORED[char]}, ptr {body.memory.pointers[base]}, i64 {at}")


def _inside(body: Body, base: tuple[str, int], stride: int, first: int, count: int) -> bool:
    """Return whether elements first to first + count of all rows are within memory."""
    low, high = body.bounds
    return low * stride + first >= 0 and (high - 1) * stride + first + count <= body.memory.sizes[base]


def _load_close(body: Body, base: tuple[str, int], stride: int, start: int, group: Sequence[Node]) -> None:
    """Load short rows without gaps, and pick the columns."""
    if not _inside(body, base, stride, start, stride):
        return
    total, text, char = body.width * stride, body.text, group[0].dtype
    kind = typed(char, total)
    value = text.op(f"load {kind}, ptr {address(body, base, stride, start, char)}, align {BYTES[char]}")
    for node in group:
        column = node.attr[1] - start
        lanes = ", ".join(f"i32 {lane * stride + column}" for lane in range(body.width))
        body.names[node.number] = text.op(
            f"shufflevector {kind} {value}, {kind} poison, <{body.width} x i32> <{lanes}>"
        )


def _load_blocks(body: Body, base: tuple[str, int], stride: int, group: list[Node]) -> None:
    """Load eight columns of eight rows at a time."""
    char, text = group[0].dtype, body.text
    while group:
        first = group[0].attr[1]
        last_start = body.memory.sizes[base] - 8 - (body.bounds[1] - 1) * stride
        start = min(first, last_start)
        if first - start >= 8:
            return  # behind the last eight columns that are within memory for all rows
        block = [node for node in group if start <= node.attr[1] < start + 8]
        group = [node for node in group if node.attr[1] >= start + 8]
        if len(block) < 3 or not _inside(body, base, stride, start, 8):
            continue
        wanted = sorted({node.attr[1] - start for node in block})
        columns: dict[int, list[str]] = {column: [] for column in wanted}
        at = address(body, base, stride, start, char)
        for part in range(body.width // 8):
            rows = []
            for lane in range(8):
                pointer = text.op(f"getelementptr {STORED[char]}, ptr {at}, i64 {(part * 8 + lane) * stride}")
                rows.append(text.op(f"load {typed(char, 8)}, ptr {pointer}, align {BYTES[char]}"))
            turned = transposed(text, rows, char)
            for column in wanted:
                columns[column].append(turned[column])
        for node in block:
            body.names[node.number] = joined(body, columns[node.attr[1] - start], char)


def transposed(text: Text, rows: list[str], char: str) -> list[str]:
    """Transpose eight vectors of eight numbers."""
    kind = typed(char, 8)
    for step, low, high in STAGES:
        made = list(rows)
        for k in range(8):
            if not k & step:
                for target, lanes in ((k, low), (k | step, high)):
                    order = ", ".join(f"i32 {lane}" for lane in lanes)
                    made[target] = text.op(
                        f"shufflevector {kind} {rows[k]}, {kind} {rows[k | step]}, <8 x i32> <{order}>"
                    )
        rows = made
    return rows


def joined(body: Body, parts: list[str], char: str = "d") -> str:
    """Join vectors of eight."""
    width = 8
    while len(parts) > 1:
        kind, lanes = typed(char, width), ", ".join(f"i32 {lane}" for lane in range(2 * width))
        parts = [
            body.text.op(f"shufflevector {kind} {one}, {kind} {two}, <{2 * width} x i32> <{lanes}>")
            for one, two in zip(parts[::2], parts[1::2], strict=True)
        ]
        width *= 2
    return parts[0]


def store_rows(body: Body, roots: Sequence[tuple[Root, Node]]) -> list[tuple[Root, Node]]:
    """Store those values that make up rows; return the others."""
    if body.mask or body.width % 8:
        return list(roots)
    groups: dict[Any, list[tuple[Root, Node]]] = {}
    rest = []
    for root, node in roots:
        if node.dtype in FLOATS and root.stride > 1 and (root.low, root.high) != (0, 0):
            groups.setdefault((root.base, root.stride, node.dtype), []).append((root, node))
        else:
            rest.append((root, node))
    for (base, stride, _), group in groups.items():
        group.sort(key=lambda each: each[0].offset)
        whole = [root.offset for root, _ in group] == list(range(stride))
        if not whole or not _inside(body, base, stride, 0, stride):
            rest += group
        elif stride <= _FEW:
            _store_close(body, base, stride, [node for _, node in group])
        else:
            _store_blocks(body, base, stride, [node for _, node in group])
    return rest


def _store_close(body: Body, base: tuple[str, int], stride: int, nodes: Sequence[Node]) -> None:
    """Store short rows without gaps."""
    text, width, char = body.text, body.width, nodes[0].dtype
    values = [body.name(node) for node in nodes]
    kind, joined = typed(char, width), values[0]
    size = width
    for value in values[1:]:  # one after the other behind each other
        grown = size + width
        spread = ", ".join(f"i32 {lane if lane < width else 'poison'}" for lane in range(size))
        other = (
            value
            if size == width
            else text.op(f"shufflevector {kind} {value}, {kind} poison, <{size} x i32> <{spread}>")
        )
        order = ", ".join(f"i32 {lane}" for lane in [*range(size), *range(size, size + width)])
        joined = text.op(
            f"shufflevector {typed(char, size)} {joined}, {typed(char, size)} {other}, <{grown} x i32> <{order}>"
        )
        size = grown
    order = ", ".join(f"i32 {column * width + lane}" for lane in range(width) for column in range(stride))
    whole = typed(char, size)
    mixed = text.op(f"shufflevector {whole} {joined}, {whole} poison, <{size} x i32> <{order}>")
    text.put(f"store {whole} {mixed}, ptr {address(body, base, stride, 0, char)}, align {BYTES[char]}")


def _store_blocks(body: Body, base: tuple[str, int], stride: int, nodes: Sequence[Node]) -> None:
    """Store eight columns of eight rows at a time; the last block overlaps the one before."""
    text, width, char = body.text, body.width, nodes[0].dtype
    values = [body.name(node) for node in nodes]
    at, kind = address(body, base, stride, 0, char), typed(char, 8)
    starts = [*range(0, stride - 7, 8), stride - 8] if stride >= 8 else [0]
    for start in dict.fromkeys(starts):
        count = min(8, stride)
        for part in range(width // 8):
            columns = [_part(body, value, part, char) for value in values[start : start + count]]
            rows = transposed(text, columns + ["poison"] * (8 - count), char)
            for lane, row in enumerate(rows):
                far = (part * 8 + lane) * stride + start
                pointer = text.op(f"getelementptr {STORED[char]}, ptr {at}, i64 {far}")
                if count == 8:
                    text.put(f"store {kind} {row}, ptr {pointer}, align {BYTES[char]}")
                else:
                    text.call(
                        f"llvm.masked.store.{suffix(char, 8)}.p0", "void", f"{kind} {row}", f"ptr {pointer}",
                        f"i32 {BYTES[char]}", f"<8 x i1> {first_lanes(count, 8)}",
                    )  # fmt: skip


def _part(body: Body, value: str, part: int, char: str) -> str:
    """Return eight lanes of a value."""
    if body.width == 8:
        return value
    kind, lanes = typed(char, body.width), ", ".join(f"i32 {part * 8 + lane}" for lane in range(8))
    return body.text.op(f"shufflevector {kind} {value}, {kind} poison, <8 x i32> <{lanes}>")
