"""The memory that a graph keeps for its backward pass, by operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tapegrad.tape import views
from tapegrad.tape.drawing import in_words, residual_spans, span_of
from tapegrad.tape.entries import PLAN_OBJECT, Leaf
from tapegrad.tape.listing import Tape

if TYPE_CHECKING:
    from tapegrad.tensor import Tensor


class Memory(Mapping[str, int]):
    """Bytes of residuals by operation, largest first; ``print`` shows a table.

    Attributes
    ----------
    total : int
        The bytes of all residuals. Memory that several entries have saved counts once, for the first of them.
    leaves : int
        The bytes that are the data of leaves, which they would keep anyway; not part of the total.
    """

    def __init__(self, by_op: dict[str, int], counts: dict[str, int], leaves: int) -> None:
        self._by_op = dict(sorted(by_op.items(), key=lambda item: -item[1]))
        self._counts, self.leaves = counts, leaves
        self.total = sum(by_op.values())

    def __getitem__(self, op: str) -> int:
        return self._by_op[op]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_op)

    def __len__(self) -> int:
        return len(self._by_op)

    def __repr__(self) -> str:
        rows = [("op", "entries", "saved")]
        rows += [(op, str(self._counts[op]), in_words(size)) for op, size in self._by_op.items()]
        rows.append(("total", str(sum(self._counts.values())), in_words(self.total)))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [f"{op.ljust(widths[0])}  {n.rjust(widths[1])}  {size.rjust(widths[2])}" for op, n, size in rows]
        return "\n".join([*lines, f"data of leaves, not counted: {in_words(self.leaves)}"])


def memory(tensor: Tensor) -> Memory:
    """Return the memory of a tensor's graph: the bytes of the residuals that each operation keeps.

    Parameters
    ----------
    tensor : Tensor
        A result.

    Returns
    -------
    Memory
        A mapping from names of operations to bytes, largest first.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.ones(100, requires_grad=True)
    >>> tg.autograd.graph.memory((x.exp() * x).sin().sum())
    op   entries   saved
    exp        1   800 B
    sin        1   800 B
    mul        1     0 B
    sum        1     0 B
    total      4  1.6 kB
    data of leaves, not counted: 800 B
    """
    tape = Tape(views.renewed(tensor)._node)
    entries = tape.entries()
    leaves = [operand.tensor() for _, operands in entries for operand in operands if isinstance(operand, Leaf)]
    of_leaves = {span_of(leaf._data) for leaf in leaves if leaf is not None}
    seen: set[tuple[int, int]] = set()
    by_op: dict[str, int] = {}
    counts: dict[str, int] = {}
    for node, _ in entries:
        name = node[PLAN_OBJECT].name
        spans = residual_spans(node) - seen
        seen |= spans
        by_op[name] = by_op.get(name, 0) + sum(size for _, size in spans - of_leaves)
        counts[name] = counts.get(name, 0) + 1
    return Memory(by_op, counts, sum(size for _, size in seen & of_leaves))
