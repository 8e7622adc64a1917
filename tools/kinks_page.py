"""The last section of docs/understand/kinks.md: the points at which an op of the table states its gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tapegrad.ops.table.op import Op, op_table

PAGE = "docs/understand/kinks.md"
HEADING = "## Points that the table states\n"
HEAD = """
Each row of the op table may name points with the gradient there, as `special`; tests hold rules and kernels to them.
`python -m tools.stubs` writes this section. The gradient stands behind the point, in the order of the operands.

| Op | Operands | Points |
| --- | --- | --- |
"""


def as_text(values: Any) -> str:
    """Return a number, or several, as pages show them."""
    return ", ".join(f"{value:.4g}" for value in (values if isinstance(values, tuple) else (values,)))


def _rows() -> Iterator[str]:
    for op in sorted(op_table.values(), key=lambda op: op.name):
        if op.special:
            yield f"| `{op.name}` | {', '.join(op.operands)} | {'; '.join(_points(op))} |"


def _points(op: Op) -> Iterator[str]:
    for point, gradient in op.special.items():
        yield f"{as_text(point)}: {as_text(gradient)}"


def page(text: str) -> str:
    """Return the page, of which the text is an older version, with the section as the table has it."""
    return text.partition(HEADING)[0] + HEADING + HEAD + "\n".join(_rows()) + "\n"
