"""A plan of nests of loops: what each computes, and what stands in memory between them. `nests.py` makes it."""

from __future__ import annotations

from typing import Final

from tapegrad.program.fuse.scalars import Node
from tapegrad.program.fuse.text import BYTES

__all__ = ["LANES", "SIZE", "Base", "Nest", "NestPlan", "Stage", "Target"]

LANES: Final = 0  # the axis in the lanes
SIZE: Final = 8  # of vectors: as many partial results sums have, whatever the width of this CPU's registers
Base = tuple[str, int]


class Target:
    """What a nest leaves behind.

    Attributes
    ----------
    node : Node
        What is computed in each turn.
    kind : str
        ``store``; ``lanes``, a reduction over lanes; or ``inner``, a reduction over the nest's innermost axis.
    how : str
        Of a reduction: ``sum``, ``max``, ``min``, ``prod``.
    base, offset, strides
        Where the result is stored; strides by axes.
    """

    def __init__(self, node: Node, kind: str, how: str, base: Base, offset: int, strides: dict[int, int]) -> None:
        self.node, self.kind, self.how = node, kind, how
        self.base, self.offset, self.strides = base, offset, strides

    @property
    def terms(self) -> tuple[Node, ...]:
        """What is computed before it is added up: a product is a part of its addition."""
        return self.node.args if self.how == "sum" and self.node.kind == "mul" else (self.node,)


class Nest:
    """Loops around some targets.

    Attributes
    ----------
    outer : tuple of int
        The axes of the loops, from outside; not that of the lanes.
    lanes : bool
        Whether it runs along the lanes.
    inner : int, optional
        The axis that is reduced innermost.
    factors : dict
        If more sums over lanes are made than registers hold: what is added up, or multiplied before, by numbers.
    room : Base
        Where these stand for a chunk of lanes then.
    """

    def __init__(self, outer: tuple[int, ...], lanes: bool, inner: int | None) -> None:
        self.outer, self.lanes, self.inner = outer, lanes, inner
        self.targets: list[Target] = []
        self.factors: dict[int, Node] = {}
        self.room: Base = "", 0


class Stage:
    """What is computed between two reductions over lanes: nests without lanes, scalars, nests in chunks of lanes."""

    def __init__(self) -> None:
        self.scalars: list[tuple[Node, Base, int]] = []
        self.before: list[Nest] = []
        self.chunked: list[Nest] = []


class NestPlan:
    """The stages of a program, and its memory.

    Attributes
    ----------
    lengths : dict
        Of axes.
    memory : dict
        From the bases of arrays between nests to their numbers of elements, and their dtype.
    """

    def __init__(self, lengths: dict[int, int]) -> None:
        self.lengths = lengths
        self.memory: dict[Base, tuple[int, str]] = {}
        self.stages: list[Stage] = []

    @property
    def count(self) -> int:
        """How many nests there are."""
        return sum(len(stage.before) + len(stage.chunked) for stage in self.stages)

    @property
    def nbytes(self) -> int:
        """How much memory stands between nests."""
        return sum(size * BYTES[char] for size, char in self.memory.values())
