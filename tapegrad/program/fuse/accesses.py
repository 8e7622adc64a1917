"""How bodies read and write memory: neighbours, strided and masked lanes, and what indices choose."""

from __future__ import annotations

from collections.abc import Sequence

from tapegrad.program.fuse.scalars import Node
from tapegrad.program.fuse.text import BYTES, SCALARS, STORED, Text, constant, suffix, typed
from tapegrad.program.machine_code import Refused

__all__ = ["Accesses", "Memory"]


class Memory:
    """Where the parts of a function's memory begin."""

    def __init__(self) -> None:
        self.pointers: dict[tuple[str, int], str] = {}
        self.sizes: dict[tuple[str, int], int] = {}  # in elements


class Accesses:
    """Instructions that read and write memory, for the lanes of one vector.

    Parameters
    ----------
    text : Text
    memory : Memory
    width : int
        Lanes of a vector; 1 for straight code, and for loops over single elements.
    uniform : dict
        Names of the scalar values that are known outside, by numbers of nodes.
    axis, position : int and str, optional
        The axis that lanes run along, and the position of the first lane.
    bounds : pair of int
        Between which all positions are, for the proof that loads stay within memory.
    mask : str
        The name of the vector that says which lanes count; "" for all.
    sequential : dict
        Positions along other axes, by axis.
    """

    def __init__(
        self, text: Text, memory: Memory, width: int, uniform: dict[int, str], axis: int = -1, position: str = "0",
        bounds: tuple[int, int] = (0, 1), mask: str = "",
    ) -> None:  # fmt: skip
        self.text, self.memory, self.width, self.uniform = text, memory, width, uniform
        self.axis, self.position, self.bounds, self.mask = axis, position, bounds, mask
        self.names: dict[int, str] = uniform if width == 1 and axis < 0 else {}

    def _positions(self, axis: int) -> str:
        """Return the positions of the lanes along an axis."""
        if self.width == 1:
            return self.position if self.position.startswith("%") else self.text.op(f"add i64 0, {self.position}")
        start = self.spread(self.position, "l")
        lanes = ", ".join(f"i64 {lane}" for lane in range(self.width))
        return self.text.op(f"add {typed('l', self.width)} {start}, <{lanes}>")

    def _along(self, base: tuple[str, int], strides: Sequence[tuple[int, int]]) -> list[tuple[str, int, int, int]]:
        """Return for each axis the first lane's position, the stride, and between which positions all lanes are."""
        if any(axis != self.axis for axis, _ in strides):
            raise Refused("there is more than one long dimension")
        return [(self.position, stride, *self.bounds) for _, stride in strides if stride]

    def prove(self, base: tuple[str, int], offset: int, strides: Sequence[tuple[int, int]]) -> None:
        """Prove that what all lanes access is within memory."""
        low = high = offset
        for _, stride, first, end in self._along(base, strides):
            ends = stride * first, stride * (end - 1)
            low, high = low + min(ends), high + max(ends)
        if low < 0 or high >= self.memory.sizes[base]:
            raise Refused(f"an access to {base} at {low} to {high} of {self.memory.sizes[base]}")

    def _address(self, base: tuple[str, int], offset: int, strides: Sequence[tuple[int, int]], char: str) -> str:
        """Return the address of the element of the first lane; prove that all are within memory."""
        self.prove(base, offset, strides)
        text, at = self.text, ""
        for position, stride, *_ in self._along(base, strides):
            far = position if stride == 1 else text.op(f"mul i64 {position}, {stride}")
            at = text.op(f"add i64 {at}, {far}") if at else far
        if offset:
            at = text.op(f"add i64 {at}, {offset}") if at else str(offset)
        pointer = self.memory.pointers[base]
        return text.op(f"getelementptr {STORED[char]}, ptr {pointer}, i64 {at}") if at else pointer

    def _load(self, node: Node) -> str:
        base, offset, strides = node.attr
        return self._load_at(base, offset, strides, node.dtype)

    def load_vector(self, base: tuple[str, int], offset: int, char: str) -> str:
        """Load neighbours, from the position of this body on."""
        return self._load_at(base, offset, ((self.axis, 1),), char)

    def _load_at(self, base: tuple[str, int], offset: int, strides: Sequence[tuple[int, int]], char: str) -> str:
        text = self.text
        stride = dict(strides).get(self.axis, 0)
        address = self._address(base, offset, strides, char)
        kind, align = STORED[char], BYTES[char]
        if self.width == 1 or not stride:
            value = text.op(f"load {kind}, ptr {address}, align {align}")
            value = text.op(f"icmp ne i8 {value}, 0") if char == "?" else value
            return self.spread(value, char)
        vector = f"<{self.width} x {kind}>"
        if stride == 1 and not self.mask:
            value = text.op(f"load {vector}, ptr {address}, align {align}")
        elif stride == 1:
            name = f"llvm.masked.load.v{self.width}{'i8' if char == '?' else suffix(char, 1)}.p0"
            value = text.call(
                name,
                vector,
                f"ptr {address}",
                f"i32 {align}",
                f"<{self.width} x i1> {self.mask}",
                f"{vector} {_ones(char)}",
            )
        else:
            pointers = self._lane_pointers(address, stride, kind)
            name = f"llvm.masked.gather.v{self.width}{'i8' if char == '?' else suffix(char, 1)}.v{self.width}p0"
            value = text.call(
                name, vector, f"<{self.width} x ptr> {pointers}", f"i32 {align}",
                f"<{self.width} x i1> {self.mask or 'splat (i1 true)'}", f"{vector} {_ones(char)}",
            )  # fmt: skip
        return text.op(f"icmp ne {vector} {value}, zeroinitializer") if char == "?" else value

    def _gather(self, node: Node, index: str) -> str:
        """Load the elements that indices choose: negative ones count from the end, others are cut off at the ends."""
        base, offset, strides, step, count = node.attr
        char, text, width = node.dtype, self.text, self.width
        if char == "?" or dict(strides).get(self.axis, 0):
            raise Refused("indices choose elements in lanes")
        self.prove(base, offset + step * (count - 1), strides)
        address, of = self._address(base, offset, strides, char), typed("l", width)
        below = text.op(f"icmp slt {of} {index}, {constant(0, 'l', width)}")
        wrapped = text.op(f"add {of} {index}, {constant(count, 'l', width)}")
        index = text.op(f"select {typed('?', width)} {below}, {of} {wrapped}, {of} {index}")
        for name, end in (("smax", 0), ("smin", count - 1)):
            index = text.call(
                f"llvm.{name}.{suffix('l', width)}", of, f"{of} {index}", f"{of} {constant(end, 'l', width)}"
            )
        at = index if step == 1 else text.op(f"mul {of} {index}, {constant(step, 'l', width)}")
        kind, result = STORED[char], "poison"
        for lane in range(width):
            one = at if width == 1 else text.op(f"extractelement {of} {at}, i64 {lane}")
            pointer = text.op(f"getelementptr {kind}, ptr {address}, i64 {one}")
            value = text.op(f"load {kind}, ptr {pointer}, align {BYTES[char]}")
            if width == 1:
                return value
            result = text.op(f"insertelement {typed(char, width)} {result}, {kind} {value}, i64 {lane}")
        return result

    def _lane_pointers(self, address: str, stride: int, kind: str) -> str:
        lanes = ", ".join(f"i64 {lane * stride}" for lane in range(self.width))
        return self.text.op(f"getelementptr {kind}, ptr {address}, <{self.width} x i64> <{lanes}>")

    def store(
        self,
        node: Node,
        base: tuple[str, int],
        offset: int,
        stride: int,
        strides: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        """Write the value of a node for the lanes of this body, which stand by a stride."""
        strides = ((self.axis, stride),) * bool(stride) if strides is None else strides
        self.put_at(self.name(node), node.dtype, base, offset, stride, strides)

    def put_at(
        self, value: str, char: str, base: tuple[str, int], offset: int, stride: int, strides: Sequence[tuple[int, int]]
    ) -> None:
        """Write a value for the lanes of this body; see `store`."""
        text = self.text
        address = self._address(base, offset, strides, char)
        kind = STORED[char] if self.width == 1 else f"<{self.width} x {STORED[char]}>"
        if char == "?":
            value = text.op(f"zext {typed(char, self.width)} {value} to {kind}")
        if self.width == 1 or (stride == 1 and not self.mask):
            text.put(f"store {kind} {value}, ptr {address}, align {BYTES[char]}")
        elif stride == 1:
            name = f"llvm.masked.store.v{self.width}{'i8' if char == '?' else suffix(char, 1)}.p0"
            text.call(
                name,
                "void",
                f"{kind} {value}",
                f"ptr {address}",
                f"i32 {BYTES[char]}",
                f"<{self.width} x i1> {self.mask}",
            )
        else:
            pointers = self._lane_pointers(address, stride, STORED[char])
            name = f"llvm.masked.scatter.v{self.width}{'i8' if char == '?' else suffix(char, 1)}.v{self.width}p0"
            text.call(
                name, "void", f"{kind} {value}", f"<{self.width} x ptr> {pointers}", f"i32 {BYTES[char]}",
                f"<{self.width} x i1> {self.mask or 'splat (i1 true)'}",
            )  # fmt: skip

    def name(self, node: Node) -> str:
        """Return the name of a value that was computed here or outside."""
        if node.kind == "const":
            return constant(node.attr, node.dtype, self.width)
        if node.kind == "zero":
            return constant(0, node.dtype, self.width)
        known = self.names.get(node.number)
        if known is None:
            known = self.names[node.number] = self.spread(self.uniform[node.number], node.dtype)
        return known

    def spread(self, scalar: str, char: str) -> str:
        """Return a scalar in all lanes."""
        if self.width == 1:
            return scalar
        kind = typed(char, self.width)
        one = self.text.op(f"insertelement {kind} poison, {SCALARS[char]} {scalar}, i64 0")
        return self.text.op(f"shufflevector {kind} {one}, {kind} poison, <{self.width} x i32> zeroinitializer")


def _ones(char: str) -> str:
    """Return what lanes hold that do not count: the functions of vmath have no rare case there."""
    return "splat (double 1.0)" if char == "d" else "splat (float 1.0)" if char == "f" else "zeroinitializer"
