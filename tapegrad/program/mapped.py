"""`vmap` by programs: the function is traced for one item, and its program runs for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.func.trees import flatten, rebuild
from tapegrad.ops.creation import as_tensor
from tapegrad.ops.table.gateway import raw_data
from tapegrad.program import batched  # noqa: F401  # installs how a batch computes
from tapegrad.program.batch import MOST_OPERANDS, apply_batch, batch_of
from tapegrad.program.trace import TracingError, trace
from tapegrad.tensor import Tensor

_VALUES = (Tensor, np.ndarray, np.generic)


def mapped(function: Callable[..., Any], operands: Sequence[Tensor]) -> Any:
    """Return what a function returns for all items: tensors have the items along the first dimension.

    Parameters
    ----------
    function : callable
        Of an item's part of each operand; it returns a tree.
    operands : sequence of Tensor
        They have the items along the first dimension.

    Returns
    -------
    object
        None if the function cannot be traced, or does not do the same for all items.
    """
    returned: list[Any] = []

    def call(*items: Tensor) -> list[Tensor]:
        returned.append(function(*items))
        return [as_tensor(leaf) for leaf in flatten(returned[0]) if isinstance(leaf, _VALUES)]

    is_recorded = modes.is_grad_enabled()
    wanted = [own.requires_grad and is_recorded for own in operands]
    try:
        program, captured = trace(call, [raw_data(own)[0] for own in operands], wanted)
    except TracingError:
        return None
    tree = returned.pop()
    count = len(operands) + len(captured)
    if program.guards or program.has_functions or count > MOST_OPERANDS or not program.outputs:
        return None
    batch = batch_of(program, [True] * len(operands) + [False] * len(captured))
    results = iter(apply_batch(batch, [*operands, *captured]))
    return rebuild(tree, [next(results) if isinstance(leaf, _VALUES) else leaf for leaf in flatten(tree)])
