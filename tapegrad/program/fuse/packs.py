"""Scalars of straight code that are computed alike, and stored side by side: packs of them become vectors.

S. Larsen, S. Amarasinghe, "Exploiting superword level parallelism with multimedia instruction sets" (2000). A pack is
found from what is stored, and its operands are packs in turn. All nodes of a pack have the same distance from what is
loaded, so that packs never wait for each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from tapegrad.program.fuse.scalars import COMMUTATIVE, Node

__all__ = ["Pack", "Store", "is_window", "pack", "runs"]

Store = tuple[Node, tuple[str, int], int]
Nodes = tuple[Node, ...]
_OUTSIDE: Final = frozenset(("const", "zero", "red", "gather", "libm", "index", "place"))
_GAINS: Final = {"load": 0.0, "call": 20.0, "div": 4.0, "sqrt": 4.0}  # by a pack, for each scalar but one
_SIZE: Final = 4  # packs of 8 were never faster: few arrays of straight code have rows of 8
_ENOUGH: Final = 1 / 8  # of all instructions, that packs must save: they change the order of the others


class Pack:
    """Nodes that are computed by one instruction.

    Attributes
    ----------
    nodes : tuple of Node
        Its lanes.
    numbers : tuple of int
        Of its nodes.
    operands : list of tuple of Node
        What stands in the lanes of each operand.
    """

    __slots__ = ("nodes", "numbers", "operands")

    def __init__(self, nodes: Nodes) -> None:
        self.nodes, self.operands = nodes, _operands(nodes)
        self.numbers = _numbers(nodes)


def pack(nodes: Sequence[Node], stores: Sequence[Store], known: Iterable[int]) -> dict[int, Pack]:
    """Return the packs that are worth it, by the numbers of their nodes.

    Parameters
    ----------
    nodes : sequence of Node
        What is computed, each behind its arguments.
    stores : sequence of (Node, base, offset)
    known : iterable of int
        The numbers of nodes that are computed already.
    """
    levels = dict.fromkeys(known, 0)
    for node in nodes:
        if node.number not in levels:
            levels[node.number] = 1 + max([levels.get(arg.number, 0) for arg in node.args], default=-1)
    finder = _Finder(nodes, levels, set(known))
    finder.grow(lanes for lanes, _, _ in runs(stores))
    for lanes in _neighbours(nodes, levels):
        finder.grow([lanes])
    return _worth(nodes, stores, levels, finder)


def runs(stores: Sequence[Store]) -> Iterable[tuple[Nodes, tuple[str, int], int]]:
    """Yield what is stored side by side, in vectors."""
    ordered = sorted(stores, key=lambda store: (store[1], store[0].dtype, store[2]))
    for _, group in groupby(enumerate(ordered), lambda own: (own[1][1], own[1][0].dtype, own[1][2] - own[0])):
        run = [store for _, store in group]
        for at in range(0, len(run) - _SIZE + 1, _SIZE):
            part = run[at : at + _SIZE]
            yield tuple([node for node, _, _ in part]), part[0][1], part[0][2]


def _neighbours(nodes: Sequence[Node], levels: dict[int, int]) -> Iterable[Nodes]:
    """Yield nodes that were made one after the other, as elements of an array are; results before their arguments."""
    groups: dict[object, list[Node]] = {}
    for node in nodes:
        if node.kind not in _OUTSIDE and node.kind != "load":
            groups.setdefault((levels[node.number], node.kind, node.attr, node.dtype), []).append(node)
    for group in reversed(groups.values()):
        for at in range(0, len(group) - _SIZE + 1, _SIZE):
            yield tuple(group[at : at + _SIZE])


class _Finder:
    """Finds packs from others: by their operands, and by what they are operands of."""

    def __init__(self, nodes: Sequence[Node], levels: dict[int, int], known: set[int]) -> None:
        self.levels, self.known = levels, known
        self.packs: dict[int, Pack] = {}
        self.found: list[Pack] = []
        self.users: dict[int, list[Node]] = {}
        for node in nodes:
            for arg in node.args:
                self.users.setdefault(arg.number, []).append(node)

    def grow(self, seeds: Iterable[Nodes]) -> None:
        """Add the packs that some nodes are, if they are, and all that follow."""
        waiting, at = list(seeds), len(self.found)
        while waiting or at < len(self.found):
            if waiting:
                waiting += self.add(waiting.pop(0))
            else:
                for user in self.users.get(self.found[at].nodes[0].number, ()):
                    waiting.append(self.beside(self.found[at], user))
                at += 1

    def add(self, lanes: Nodes) -> list[Nodes]:
        """Add a pack; return its operands."""
        if len(lanes) < 2 or any(own.number in self.packs or own.number in self.known for own in lanes):
            return []
        if not _is_alike(lanes, self.levels):
            return []
        made = Pack(lanes)
        self.found.append(made)
        self.packs.update((number, made) for number in made.numbers)
        return made.operands

    def beside(self, made: Pack, user: Node) -> Nodes:
        """Return the nodes that do with each lane of a pack what one does with the first."""
        if user.number in self.packs or user.number in self.known:
            return ()
        lanes = [user]
        for own in made.nodes[1:]:
            near = [
                other for other in self.users.get(own.number, ())
                if other.kind == user.kind and self.levels[other.number] == self.levels[user.number]
                and other.number not in self.packs
            ]  # fmt: skip
            if not near:
                return ()
            last = {arg.number for arg in lanes[-1].args}
            lanes.append(max(near, key=lambda other: sum(arg.number in last for arg in other.args)))
        return tuple(lanes)


def _worth(nodes: Sequence[Node], stores: Sequence[Store], levels: dict[int, int], finder: _Finder) -> dict[int, Pack]:
    """Return the packs that save instructions, if together they save enough."""
    packs, found = finder.packs, finder.found
    scalars: dict[int, int] = {}  # how often a node is an argument of a scalar
    for node in nodes:
        if node.number not in packs:
            for arg in node.args:
                scalars[arg.number] = scalars.get(arg.number, 0) + 1
    uses = Counter(_numbers(lanes) for made in found for lanes in made.operands)
    total = 0.0
    for made in sorted(found, key=lambda own: levels[own.nodes[0].number]):
        gain = (len(made.nodes) - 1) * _GAINS.get(made.nodes[0].kind, 1.0)
        gain -= sum(_cost(lanes, packs) / uses[_numbers(lanes)] for lanes in made.operands)
        gain -= sum(own.number in scalars for own in made.nodes)
        if gain < 0:
            for own in made.nodes:
                del packs[own.number]
                for arg in own.args:
                    scalars[arg.number] = scalars.get(arg.number, 0) + 1
        else:
            total += gain
    if total < _ENOUGH * len(nodes):
        return {}
    wanted = {own.number for made in packs.values() for lanes in made.operands for own in lanes}
    wanted |= {node.number for node, _, _ in stores}
    return {
        number: made for number, made in packs.items()
        if made.nodes[0].kind != "load" or any(own.number in wanted for own in made.nodes)
    }  # fmt: skip


def _is_alike(nodes: Nodes, levels: dict[int, int]) -> bool:
    """Return whether one instruction can compute some nodes."""
    first = nodes[0]
    if len({own.number for own in nodes}) < len(nodes) or any(own.kind in _OUTSIDE or own.axes for own in nodes):
        return False
    if any(own.kind != first.kind for own in nodes):
        return False
    if first.kind == "load":
        base, offset, _ = first.attr
        return all(own.dtype == first.dtype and own.attr[:2] == (base, offset + lane) for lane, own in enumerate(nodes))
    kinds = {(own.attr, own.dtype, own.args[0].dtype, levels.get(own.number), _divisor(own)) for own in nodes}
    return len(kinds) == 1


def _divisor(node: Node) -> object:
    """Return the constant that a node divides by: a product takes the place of such a quotient."""
    return node.args[1].attr if node.kind == "div" and node.args[1].kind == "const" else None


def _operands(nodes: Nodes) -> list[Nodes]:
    """Return the lanes of each operand; products and sums may take them in either order."""
    if not nodes[0].args:
        return []
    rows = [nodes[0].args]
    for node in nodes[1:]:
        args = node.args
        if node.kind in COMMUTATIVE or node.kind == "fma":
            other = (args[1], args[0], *args[2:])
            if sum(map(_likeness, rows[-1], other)) > sum(map(_likeness, rows[-1], args)):
                args = other
        rows.append(args)
    return list(zip(*rows, strict=True))


def _numbers(nodes: Nodes) -> tuple[int, ...]:
    return tuple([node.number for node in nodes])


def _likeness(one: Node, two: Node) -> int:
    if one is two:
        return 3
    if one.kind == "load" == two.kind and one.attr[0] == two.attr[0]:
        return 4 if one.attr[1] + 1 == two.attr[1] else 2
    return int(one.kind == two.kind)


def is_window(lanes: Nodes) -> bool:
    """Return whether all nodes are loads from as many neighbours as there are lanes."""
    if any(own.kind != "load" or own.attr[0] != lanes[0].attr[0] for own in lanes):
        return False
    offsets: list[int] = [own.attr[1] for own in lanes]
    return max(offsets) - min(offsets) < len(lanes)


def _cost(lanes: Nodes, packs: dict[int, Pack]) -> float:
    """Return how many instructions it takes to put nodes into the lanes of a vector."""
    first = lanes[0]
    if all(own is first for own in lanes):
        return 0.0 if first.kind in ("const", "load", "zero") else 1.0
    if all(own.kind in ("const", "zero") for own in lanes):
        return 0.0
    if is_window(lanes):
        return 1.0
    sources = {id(packs.get(own.number)): packs.get(own.number) for own in lanes}
    if None not in sources.values() and len(sources) < 3:
        (source, *others) = sources.values()
        in_order = source is not None and source.numbers == _numbers(lanes)
        return 0.0 if in_order and not others else float(len(sources))
    return float(len(lanes))
