"""Elements at an array of indices along one dimension: taken, added up, written. Compiled code serves such calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tapegrad import modes
from tapegrad.kernels.indexed import ARRAY
from tapegrad.ops.index_keys import WHOLE
from tapegrad.ops.index_put import attributes_of, index_put_op, index_replace
from tapegrad.ops.indexing import index_gather, index_gather_op, index_scatter_add, index_scatter_add_op
from tapegrad.ops.table.gateway import compute
from tapegrad.ops.table.index_values import index_values
from tapegrad.ops.table.op import Bound, Op
from tapegrad.ops.table.results import with_nodes_named
from tapegrad.recording.keys import TAKES_ARRAYS
from tapegrad.recording.plan_cache import PlanCache
from tapegrad.tensor import Tensor


def _served(
    op: Op, attrs: Callable[..., dict[str, Any]], by_key: Callable[..., Tensor], node_name: str = ""
) -> Callable[..., Tensor]:
    """Return the function of an op's operands, a dimension, the indices along it and further arguments.

    The indices are a tensor of int64, of numbers that are known to be in range. Compiled code finds plans, and Python
    does not look at the arguments again.

    Parameters
    ----------
    op : Op
    attrs : callable
        Makes attributes of the key of the dimension, the array of indices and the further arguments.
    by_key : callable
        The function of the op that tracers see: it takes operands, a tuple of one array, the key, and the rest.
    node_name : str
        Of its nodes; default as the op says.
    """
    plans, n, op = PlanCache(), len(op.operands), with_nodes_named(op, node_name or op.node_name)

    def call_new(*args: Any) -> Tensor:
        operands, (place, given, *rest) = args[:n], args[n:]
        key, arrays = (*[WHOLE] * place, ARRAY), (index_values(given),)
        if modes.mode.value & modes.INTERCEPTORS:
            return by_key(*operands, arrays, key, *rest)
        result, plan = compute(op, Bound(operands, attrs(key, arrays, *rest), arrays), is_seen=True)
        if plan is not None:
            plans.insert(plan, args, {}, operands, arrays)
        return result  # type: ignore[no-any-return]

    plans.connect(op.name, n, call_new, 3, TAKES_ARRAYS)
    return lambda *args: plans.call(*args)  # which the first call replaces


def _taken_as(name: str) -> Callable[..., Tensor]:
    return _served(index_gather_op, lambda key, arrays: {"key": key}, index_gather, f"{name}Backward0")


#: Elements: of an operand, a dimension and indices. In PyTorch, each is an operation.
taken, selected, embedded = _taken_as("Take"), _taken_as("IndexSelect"), _taken_as("Embedding")
#: Zeros of a shape to which elements are added: of these, a dimension, indices and the shape.
added_up: Final = _served(
    index_scatter_add_op, lambda key, arrays, shape: {"key": key, "shape": shape}, index_scatter_add
)
#: A copy of an operand with elements replaced: of it, the new elements, a dimension and indices.
written: Final = _served(index_put_op, attributes_of, index_replace)
