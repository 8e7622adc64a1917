"""What an operation has saved, as PyTorch shows it: ``grad_fn._saved_self`` and its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad import errors
from tapegrad.autograd.saved_hooks import saved_tensors_hooks
from tapegrad.ops.table.gateway import constant
from tapegrad.recording.plan import Plan
from tapegrad.tape import traces, versions
from tapegrad.tape.entries import PLAN_OBJECT, SLOT, Leaf, TapeNode, describe, order_of
from tapegrad.tape.graph import name_of, output_of, source_of
from tapegrad.tape.hooks import Packed, is_freed
from tapegrad.tensor import Tensor, from_array

# PyTorch's names of our operands, where they differ; first those of single operations.
_OF_OPS: Final = {"pow": {"y": "exponent"}, "dot": {"y": "tensor"}, "mm": {"y": "mat2"}}
_NAMES: Final = {"x": "self", "y": "other", "out": "result", "condition": "condition"}


def saved_names(node: TapeNode) -> tuple[str, ...]:
    """Return PyTorch's names of what an operation saves or could save: operands, its result, attributes."""
    plan = node[PLAN_OBJECT]
    return tuple([_shown(plan, name) for name in (*plan.op.operands, "out", *plan.attrs)])


def _shown(plan: Plan, name: str) -> str:
    return _OF_OPS.get(plan.op.name, {}).get(name) or _NAMES.get(name, name)


def saved_value(node: TapeNode, shown: str) -> Any:
    """Return a saved value by PyTorch's name; None for an operand that the rules do not need.

    Raises
    ------
    RuntimeError
        If a backward pass has freed it, or it was written to since.
    AttributeError
        If the operation has nothing of that name.
    """
    plan = node[PLAN_OBJECT]
    for name in (*plan.op.operands, *plan.op.results, "out"):
        if _shown(plan, name) == shown:
            return _residual(node, plan, name) if name in plan.saved else None
    if shown in plan.attrs:
        return plan.attrs[shown]
    raise AttributeError(f"{name_of(node)!r} object has no attribute '_saved_{shown}'", name=f"_saved_{shown}")


class SavedTensor:
    """What an operation has saved, before it is unpacked: ``grad_fn._raw_saved_self``.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> y = x.exp()
    >>> y.grad_fn._raw_saved_result.register_hooks(lambda t: t.tolist(), lambda values: tg.tensor(values))
    >>> y.sum().backward()
    >>> x.grad
    tensor([2.7183, 7.3891])
    """

    def __init__(self, node: TapeNode, shown: str) -> None:
        saved_value(node, shown)  # raises if there is nothing of that name, or it was freed
        plan = node[PLAN_OBJECT]
        name = next((candidate for candidate in plan.saved if _shown(plan, candidate) == shown), None)
        self._node, self._place = node, None if name is None else plan.position(name)
        self._shown = shown

    def register_hooks(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        """Pack the tensor now, and let backward passes unpack it: see `saved_tensors_hooks`.

        Raises
        ------
        RuntimeError
            If there are hooks already, or nothing is saved.
        """
        if self._place is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if isinstance(self._node[self._place], Packed):
            raise RuntimeError("Calling register_hooks on a saved tensor with already registered hooks is forbidden")
        packed = saved_tensors_hooks(pack_hook, unpack_hook).packed(saved_value(self._node, self._shown))
        packed.pack_into(self._node, self._place)


def _residual(node: TapeNode, plan: Plan, name: str) -> Any:
    if is_freed(node):
        raise errors.second_backward(describe(node[SLOT]))
    value: Any = node[plan.position(name)]
    if isinstance(value, Packed):
        return value.tensor()
    if name not in plan.op.operands and name != "out":
        return from_array(np.asarray(value))
    layout = plan.layout(name)
    if layout.weak:
        return value
    parent = source_of(node, name)
    check_version(value, node, output_of(parent) if isinstance(parent, list) else None)
    if isinstance(parent, Leaf):
        leaf = parent.tensor()
        if leaf is not None and leaf._data is value:
            return leaf
    result = constant(value, layout)
    result._node = parent
    return result


def check_version(data: Any, node: TapeNode, saver: str | None) -> None:
    """Raise PyTorch's error if data that an entry saved were written to since; `saver` names what computed them."""
    memory = versions.memory_of(data)
    if memory is not None and (newer := versions.since(memory, order_of(node[SLOT]))):
        version = versions.version(memory)
        raise traces.modified(node, memory, saver, version, version - newer)
