"""Hooks: functions that get, and may replace, the cotangent of a tensor in a backward pass."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from tapegrad import errors, modes
from tapegrad.tape import versions
from tapegrad.tape.entries import FIRST_OPERAND, SLOT, STOP, Leaf, TapeNode, write_word

if TYPE_CHECKING:
    from tapegrad.tensor import Tensor

_numbers = count()
_REPAIR = "no gradient reaches it. Make the leaf that it is computed from with requires_grad=True"
_NO_HOOK = f"cannot register a hook on a tensor that doesn't require gradient; {_REPAIR}"


class RemovableHandle:
    """Removes a hook when `remove` is called, or at the end of a ``with`` block."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._hooks = weakref.ref(hooks) if isinstance(hooks, HookTable) else hooks
        self._number = next(_numbers)
        hooks[self._number] = hook

    def remove(self) -> None:
        """Remove the hook; nothing happens if it was removed before."""
        hooks = self._hooks() if isinstance(self._hooks, weakref.ref) else self._hooks
        if hooks is not None:
            hooks.pop(self._number, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class HookTable(dict[int, Callable[..., Any]]):
    """The hooks of one tensor, by number. Unlike a plain dictionary, it can be referenced weakly."""


class Hooks:
    """The hooks of a result, and the tensor that `retain_grad` was called on."""

    def __init__(self) -> None:
        self.table = HookTable()
        self.retained: weakref.ref[Tensor] | None = None

    def run(self, ct: Tensor) -> Tensor:
        """Return a cotangent as the hooks replace it, and accumulate it where `retain_grad` was called."""
        ct = run_table(self.table, ct)
        tensor = self.retained() if self.retained is not None else None
        if tensor is not None:
            if ct.requires_grad:
                tensor._grad = ct if tensor._grad is None else tensor._grad + ct
            elif tensor._grad is None:
                tensor._grad = ct.clone() if self.table else ct
            elif tensor._grad.shape != ct.shape:
                raise errors.reshaped("a result", tensor._grad.shape, ct.shape)
            else:
                versions.note(tensor._grad._array())
                tensor._grad._array()[...] += ct._data
        return ct


def run_table(table: dict[int, Callable[..., Any]], ct: Tensor) -> Tensor:
    """Return a cotangent as hooks replace it, one after the other, in the order in which they were registered.

    Raises
    ------
    RuntimeError
        If a hook returns a tensor of another shape or dtype.
    TypeError
        If it returns something else.
    """
    shape, dtype = ct.shape, ct.dtype
    for hook in list(table.values()):
        result = hook(ct)
        if result is None:
            if ct.shape == shape:
                continue
            result = ct  # the hook has replaced its data
        if not isinstance(result, type(ct)):
            raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'; return a Tensor or None")
        name = getattr(hook, "__name__", type(hook).__name__)
        if result.shape != shape:
            raise RuntimeError(
                f"hook '{name}' has changed the size of value: it got {list(shape)}, returned {list(result.shape)}"
            )
        if result.dtype != dtype:
            raise RuntimeError(f"hook '{name}' has changed the type of value (was {dtype} got {result.dtype})")
        ct = result if modes.is_grad_enabled() else result.detach()  # only create_graph keeps the graph of a hook
    return ct


def node_hooks(node: TapeNode) -> Hooks | None:
    """Return the hooks of an entry's result."""
    # Hooks stand last, behind residuals, which are arrays and numbers.
    return node[-1] if isinstance(node[-1], Hooks) else None


def hooks_of(node: TapeNode) -> Hooks:
    """Return the hooks of an entry's result, which are made if there are none."""
    hooks = node_hooks(node)
    if hooks is None:
        hooks = Hooks()
        node.append(hooks)
        write_word(node[SLOT], STOP, 1)
    return hooks


def register_hook(tensor: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """See `Tensor.register_hook`."""
    node = tensor._node
    if node is None:
        raise RuntimeError(_NO_HOOK)
    if isinstance(node, Leaf):
        if node.hooks is None:
            node.hooks = HookTable()
        return RemovableHandle(node.hooks, hook)
    return RemovableHandle(hooks_of(node).table, hook)


def register_post_accumulate_grad_hook(tensor: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """See `Tensor.register_post_accumulate_grad_hook`."""
    node = tensor._node
    if node is None:
        raise RuntimeError(_NO_HOOK)
    if not isinstance(node, Leaf):
        raise RuntimeError(
            "post accumulate grad hooks cannot be registered on non-leaf tensors; register_hook() takes results too"
        )
    if node.post_hooks is None:
        node.post_hooks = HookTable()
    return RemovableHandle(node.post_hooks, hook)


def retain_grad(tensor: Tensor) -> None:
    """See `Tensor.retain_grad`."""
    if tensor._node is None:
        raise RuntimeError(f"can't retain_grad on Tensor that has requires_grad=False; {_REPAIR}")
    if isinstance(tensor._node, list):
        hooks_of(tensor._node).retained = weakref.ref(tensor)


def retains_grad(tensor: Tensor) -> bool:
    """See `Tensor.retains_grad`."""
    if not isinstance(tensor._node, list):
        return False
    hooks = node_hooks(tensor._node)
    return hooks is not None and hooks.retained is not None and hooks.retained() is tensor


def empty(node: TapeNode) -> None:
    """Remove operands and residuals from a node; its hooks stay."""
    last = node[-1]
    del node[FIRST_OPERAND:]
    if last.__class__ is Hooks:
        node.append(last)
