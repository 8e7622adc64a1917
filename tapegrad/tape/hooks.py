"""Hooks: functions that get, and may replace, the cotangent of a tensor in a backward pass."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad import errors, modes
from tapegrad.tape import versions
from tapegrad.tape.entries import FIRST_OPERAND, SLOT, STOP, Leaf, TapeNode, write_word

if TYPE_CHECKING:
    from tapegrad.tape.layout import Layout
    from tapegrad.tensor import Tensor

_numbers = count()
_REPAIR = "no gradient reaches it. Make the leaf that it is computed from with requires_grad=True"
_NO_HOOK = f"cannot register a hook on a tensor that doesn't require gradient; {_REPAIR}"


class RemovableHandle:
    """Removes a hook when `remove` is called, or at the end of a ``with`` block; and the hooks of `others`."""

    others: Sequence[RemovableHandle] = ()

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._hooks = weakref.ref(hooks) if isinstance(hooks, HookTable) else hooks
        self._number = next(_numbers)
        hooks[self._number] = hook

    def remove(self) -> None:
        """Remove the hook; nothing happens if it was removed before."""
        hooks = self._hooks() if isinstance(self._hooks, weakref.ref) else self._hooks
        if hooks is not None:
            hooks.pop(self._number, None)
        for handle in self.others:
            handle.remove()

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class HookTable(dict[int, Callable[..., Any]]):
    """The hooks of one tensor, by number. Unlike a plain dictionary, it can be referenced weakly.

    Attributes
    ----------
    layout : Layout, optional
        Of a leaf: the hooks are called even if its tensor is no longer alive.
    tensor : Tensor, optional
        The leaf that hooks get once its gradient is accumulated. It lives as long as a graph needs its hooks.
    """

    layout: Layout | None = None
    tensor: Tensor | None = None


class Hooks:
    """What Python does at an entry: hooks of its result and of its node, `retain_grad`, and residuals that are packed.

    Attributes
    ----------
    table, pre, post : dict
        The hooks of the result; those of the node before and after its rules run.
    retained : weakref.ref, optional
        The tensor that `retain_grad` was called on.
    packed : list of Packed
    metadata : dict
        What users note of the node.
    """

    def __init__(self) -> None:
        self.table, self.pre, self.post = HookTable(), HookTable(), HookTable()
        self.retained: weakref.ref[Tensor] | None = None
        self.packed: list[Packed] = []
        self.metadata: dict[Any, Any] = {}

    def run(self, ct: Tensor) -> Tensor:
        """Return a cotangent as the hooks replace it, and accumulate it where `retain_grad` was called."""
        ct = run_table(self.table, ct)
        tensor = self.retained() if self.retained is not None else None
        if tensor is not None:
            if ct.requires_grad:
                tensor._grad = ct if tensor._grad is None else tensor._grad + ct
            elif tensor._grad is None:
                tensor._grad = ct.clone() if self.table or self.pre else ct
            elif tensor._grad.shape != ct.shape:
                raise errors.reshaped("a result", tensor._grad.shape, ct.shape)
            else:
                versions.note(tensor._grad._array())
                tensor._grad._array()[...] += ct._data
        return ct

    def run_pre(self, cts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return the cotangents of all results of an entry as the node's hooks replace them."""
        for hook in list(self.pre.values()):
            after = _replaced(hook, cts, hook(cts))
            cts = tuple([ct * 0 if new is None else new for ct, new in zip(cts, after, strict=True)])
        return cts

    def run_post(self, values: tuple[Any, ...], cts: tuple[Tensor, ...]) -> tuple[Any, ...]:
        """Return the cotangents of the operands (None where none is wanted) as the node's hooks replace them."""
        for hook in list(self.post.values()):
            values = _replaced(hook, values, hook(values, cts))
        return values

    def unpack(self, node: TapeNode) -> None:
        """Put residuals that were packed back into the node."""
        for packed in self.packed:
            node[packed.place] = packed.data()


class Packed:
    """A residual as `saved_tensors_hooks` packed it.

    Attributes
    ----------
    value : Any
        What the pack hook returned.
    unpack : callable
        The unpack hook.
    layout : Layout
        Of the residual.
    place : int
        Where it belongs in the node.
    """

    __slots__ = ("layout", "place", "unpack", "value")

    def __init__(self, value: Any, unpack: Callable[[Any], Any], layout: Layout, place: int = 0) -> None:
        self.value, self.unpack, self.layout, self.place = value, unpack, layout, place

    def pack_into(self, node: TapeNode, place: int) -> None:
        """Put this into the place of the residual."""
        self.place = place
        hooks_of(node).packed.append(self)
        node[place] = self

    def tensor(self) -> Tensor:
        """Return what the unpack hook makes of it."""
        result = self.unpack(self.value)
        if not hasattr(result, "_layout"):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(result).__name__}"
            )
        return result  # type: ignore[no-any-return]

    def data(self) -> Any:
        """Return the residual with its layout, on which kernels rely."""
        tensor = self.tensor()
        if tensor._layout.plain is self.layout:
            return tensor._data
        if tensor.shape != self.layout.shape:
            raise RuntimeError(
                f"the unpack hook returned a tensor of shape {list(tensor.shape)}; the saved one had shape "
                f"{list(self.layout.shape)}"
            )
        array = _empty(self.layout)
        array[...] = tensor._data
        return array[()] if self.layout.inline else array


def _empty(layout: Layout) -> np.ndarray:
    """Return a new array of any strides."""
    ends = [step * (length - 1) for step, length in zip(layout.strides, layout.shape, strict=True) if length]
    first = -sum(end for end in ends if end < 0)
    memory = np.empty(first + sum(end for end in ends if end > 0) + layout.dtype.itemsize, np.uint8)
    return np.ndarray(layout.shape, layout.dtype, memory, first, layout.strides)


def _replaced(hook: Callable[..., Any], values: tuple[Any, ...], result: Any) -> tuple[Any, ...]:
    """Return what the hook of a node has returned in place of values, after PyTorch's checks."""
    if result is None:
        return values
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
    if len(result) != len(values):
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(result)}, but expected "
            f"{len(values)})"
        )
    for old, new in zip(values, result, strict=True):
        if new is not None:
            _check(hook, new if old is None else old, new)
    return result


def _name(hook: Callable[..., Any]) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def _check(hook: Callable[..., Any], value: Any, result: Any) -> None:
    """Raise an error if the result of a hook cannot replace a cotangent, or one of its layout."""
    if not hasattr(result, "_layout"):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'; return a Tensor or None")
    if result.shape != value.shape:
        raise RuntimeError(
            f"hook '{_name(hook)}' has changed the size of value: it got {list(value.shape)}, returned "
            f"{list(result.shape)}"
        )
    if result.dtype != value.dtype:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the type of value (was {value.dtype} got {result.dtype})")


def run_table(table: dict[int, Callable[..., Any]], ct: Tensor) -> Tensor:
    """Return a cotangent as hooks replace it, one after the other, in the order in which they were registered.

    Raises
    ------
    RuntimeError
        If a hook returns a tensor of another shape or dtype.
    TypeError
        If it returns something else.
    """
    layout = ct._layout
    for hook in list(table.values()):
        result = hook(ct)
        if result is None:
            if ct.shape == layout.shape:
                continue
            result = ct  # the hook has replaced its data
        _check(hook, layout, result)
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
        node.hooks.layout = tensor._layout.plain
        return RemovableHandle(node.hooks, hook)
    modes.tell("hooked", tensor)
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
    node.post_hooks.tensor = tensor
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


def is_freed(node: TapeNode) -> bool:
    """Whether a backward pass has emptied a node."""
    return len(node) <= FIRST_OPERAND or node[FIRST_OPERAND].__class__ is Hooks


def empty(node: TapeNode) -> None:
    """Remove operands and residuals from a node; its hooks stay."""
    last = node[-1]
    del node[FIRST_OPERAND:]
    if last.__class__ is Hooks:
        last.packed = []
        node.append(last)
