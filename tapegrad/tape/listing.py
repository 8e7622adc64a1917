"""`Tape`: the entries of a tensor as users see them, a list that can be printed and checked."""

from __future__ import annotations

from tapegrad.tape.entries import (
    CONSUMED,
    FIRST_OPERAND,
    FLAGS,
    MARK,
    NODE,
    PLAN,
    PLAN_OBJECT,
    SLOT,
    Leaf,
    Page,
    TapeNode,
    is_consumed,
    leaf_at,
    operand_nodes,
    operand_slots,
    order_of,
    read_entry,
    slot_of,
)
from tapegrad.tape.layout import Layout


class Tape:
    """The entries that a tensor was computed by, oldest first; ``print`` lists them.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> tape = (x * x).tape()
    >>> len(tape)
    1
    >>> tape.verify()
    """

    def __init__(self, root: TapeNode | Leaf | None) -> None:
        seen: dict[int, TapeNode] = {}
        pending = [root] if isinstance(root, list) else []
        while pending:
            node = pending.pop()
            if node[SLOT] not in seen:
                seen[node[SLOT]] = node
                pending.extend(parent for parent in operand_nodes(node) if isinstance(parent, list))
        self._entries = sorted(seen.values(), key=lambda node: order_of(node[SLOT]))
        # What the entries had as operands when the tape was read: a backward pass frees it.
        self._operands = {slot: operand_nodes(node) for slot, node in seen.items()}

    def entries(self) -> list[tuple[TapeNode, list[Leaf | TapeNode]]]:
        """Return the nodes of the entries, oldest first, each with those of its operands when the tape was read."""
        return [
            (node, [operand for operand in self._operands[node[SLOT]] if operand is not None]) for node in self._entries
        ]

    def _repr_svg_(self) -> str | None:
        from tapegrad.tape.drawing import svg  # at call time: only notebooks draw

        return svg(self)

    def __len__(self) -> int:
        return len(self._entries)

    def verify(self) -> None:
        """Check the entries.

        Raises
        ------
        RuntimeError
            If an operand does not stand before its result, an entry and its node disagree, or a mark is left over.
        """
        for node in self._entries:
            slot, page, plan = node[:FIRST_OPERAND]
            words = read_entry(slot)
            checks = [
                ("the entry names another plan than its node", words[PLAN] == plan.address),
                ("the entry names another node", words[NODE] == id(node)),
                ("the node holds no page", isinstance(page, Page)),
                ("a mark is left over from a walk", words[MARK] == 0),
                ("the layout of the result is not known", isinstance(plan.result, Layout)),
            ]
            if not words[FLAGS] & CONSUMED:
                operands = zip(operand_slots(node), operand_nodes(node), strict=True)
                for index, (operand_slot, operand) in enumerate(operands):
                    name = f"operand {index}"
                    before = not isinstance(operand, list) or order_of(operand[SLOT]) < order_of(slot)
                    checks += [
                        (f"the slot of {name} is not that of its node", operand_slot == slot_of(operand)),
                        (f"{name} does not stand before its result", before),
                        (f"{name} names a leaf that is not at its slot",
                         not isinstance(operand, Leaf) or leaf_at(operand.slot) is operand),
                    ]  # fmt: skip
            for problem, passed in checks:
                if not passed:
                    raise RuntimeError(f"the tape is not in order at entry {order_of(slot)} ({plan.name}): {problem}")

    def __str__(self) -> str:
        names = {node[SLOT]: f"%{index}" for index, node in enumerate(self._entries)}
        leaf_names: dict[int, str] = {}

        def name(slot: int) -> str:
            if slot == 0:
                return "const"
            return names.get(slot) or leaf_names.setdefault(slot, f"leaf{len(leaf_names)}")

        rows = [("result", "opcode", "operands", "layout", "residuals", "consumed")]
        for node in self._entries:
            plan = node[PLAN_OBJECT]
            consumed = is_consumed(node)
            residuals = ", ".join(plan.saved) or "-"
            rows.append(
                (
                    names[node[SLOT]],
                    plan.name,
                    ", ".join(name(slot) for slot in operand_slots(node)) if not consumed else "freed",
                    repr(plan.result),
                    "freed" if consumed and plan.saved else residuals,
                    "yes" if consumed else "no",
                )
            )
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)

    __repr__ = __str__
