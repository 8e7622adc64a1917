"""Loops in LLVM's text, which functions write the bodies of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapegrad.program.fuse.text import Text

__all__ = ["Turns"]


class Turns:
    """Writes loops.

    Attributes
    ----------
    text : Text
    block : str
        The label of the block that is being written.
    """

    def __init__(self) -> None:
        self.text = Text()
        self.block = "entry"

    def either(self, condition: str, ways: Sequence[Callable[[], None]]) -> None:
        """Write two pieces of code, of which a condition chooses the first if it is true."""
        text = self.text
        *labels, after = text.label(), text.label(), text.label()
        text.put(f"br i1 {condition}, label %{labels[0]}, label %{labels[1]}")
        for label, write in zip(labels, ways, strict=True):
            text.start(label)
            self.block = label
            write()
            text.put(f"br label %{after}")
        text.start(after)
        self.block = after

    def loop_over(self, length: int | str, step: int, body: Callable[[str], None]) -> None:
        """Write a loop of which a function writes the body; it is run at least once."""

        def turn(position: str, _: list[str]) -> list[str]:
            body(position)
            return []

        self.accumulate(length, step, (), turn)

    def accumulate(
        self,
        length: int | str,
        step: int,
        starts: Sequence[tuple[str, str]],
        body: Callable[[str, list[str]], list[str]],
    ) -> list[str]:
        """Write a loop that carries values, of which types and starts are given; return their last."""
        text = self.text
        before, loop, after = self.block, text.label(), text.label()
        text.put(f"br label %{loop}")
        text.start(loop)
        self.block = loop
        position, following, top = text.name(), text.name(), len(text.lines)
        names = [text.name() for _ in starts]
        ends = body(position, names)
        text.put(f"{following} = add nuw nsw i64 {position}, {step}")
        phis = [f"  {position} = phi i64 [ 0, %{before} ], [ {following}, %{self.block} ]"]
        for name, (kind, start), end in zip(names, starts, ends, strict=True):
            phis.append(f"  {name} = phi {kind} [ {start}, %{before} ], [ {end}, %{self.block} ]")
        text.lines[top:top] = phis
        more = text.op(f"icmp slt i64 {following}, {length}")
        text.put(f"br i1 {more}, label %{loop}, label %{after}")
        text.start(after)
        self.block = after
        return ends
