"""The operations of programs by name, those that are no public functions among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tapegrad.program.batched  # noqa: F401  # installs how batches compute
from tapegrad.ops.table.loading import built_in, load_all
from tapegrad.ops.table.op import Op
from tapegrad.program.batch import batch_op, takes_way_op
from tapegrad.program.checkpoints import Checkpointed, back_op
from tapegrad.program.implicit import root_op
from tapegrad.program.program import detach_op
from tapegrad.program.scan import Scan

__all__ = ["operation"]

_OF_PROGRAMS = {own.name: own for own in (detach_op, takes_way_op)}


def operation(name: str, n_operands: int, n_results: int, attrs: Mapping[str, Any]) -> Op:
    """Return an operation, of a loop that of its attribute.

    Raises
    ------
    ValueError
        If there is none of this name, or it has other numbers of operands or results.
    """
    op: Op | None
    if name == "scan" and isinstance(attrs.get("scan"), Scan):
        op = attrs["scan"].op
    elif name == "scan_back" and isinstance(attrs.get("checkpoints"), Checkpointed):
        op = back_op(n_operands, n_results)
    elif name == "custom_root":
        op = root_op(n_operands)
    elif name == "vmap":
        op = batch_op(n_operands, n_results)
    else:
        op = _OF_PROGRAMS.get(name) or built_in.get(name)
    if op is None:
        load_all()
        op = built_in.get(name)
    if op is None:
        raise ValueError(f"there is no operation {name[:40]!r}")
    if not op.variadic and len(op.operands) != n_operands:
        raise ValueError(f"{name}() takes {len(op.operands)} operands, not {n_operands}")
    if len(op.results) != n_results:
        raise ValueError(f"{name}() has {len(op.results)} results, not {n_results}")
    return op
