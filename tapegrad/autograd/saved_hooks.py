"""Hooks of saved tensors: what operations save is packed when it is saved, and unpacked when a backward pass needs it.

A packed residual stands at its place in the node, and the entry gets a stop, at which the sweep unpacks it. Kernels
then find an array, as always.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.autograd.observing import observing
from tapegrad.ops.table.gateway import constant
from tapegrad.ops.table.op import Bound, Op
from tapegrad.tape import versions
from tapegrad.tape.entries import PLAN_OBJECT, TapeNode
from tapegrad.tape.hooks import Packed
from tapegrad.tape.layout import Layout, layout_of
from tapegrad.tensor import Tensor

__all__ = ["allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]

_MODIFIED: Final = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
    "modified by in-place operations as this can lead to unexpected side-effects; clone it first."
)


class _Local(threading.local):
    def __init__(self) -> None:
        self.active: list[saved_tensors_hooks] = []
        self.refusal: str | None = None


_local: Final = _Local()


def active() -> saved_tensors_hooks | None:
    """Return the innermost hooks of this thread, None if there are none."""
    return _local.active[-1] if modes.mode.value & modes.INTERCEPTORS and _local.active else None


class saved_tensors_hooks:
    """Pack what operations save for backward passes, in a ``with`` block.

    Parameters
    ----------
    pack_hook : callable
        Called with each tensor when it is saved; returns anything.
    unpack_hook : callable
        Called with that in a backward pass; returns a tensor of the same values.

    Raises
    ------
    RuntimeError
        Where `disable_saved_tensors_hooks` forbids hooks.

    Notes
    -----
    Operations in the block run through Python, and are slower. The innermost of several blocks applies. Indices, masks
    and what a write in place saves are not packed.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([2.0, 3.0], requires_grad=True)
    >>> with tg.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda values: tg.tensor(values)):
    ...     y = x * x
    >>> y.sum().backward()
    >>> x.grad
    tensor([4., 6.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        self._before: list[modes.Interceptor | None] = []

    def __enter__(self) -> None:
        if _local.refusal is not None:
            raise RuntimeError(_local.refusal)
        before, outer = modes.interceptor(), list(_local.active)
        try:
            self._before.append(before)
            _local.active.append(self)
            modes.set_interceptor(observing([before], self._pack_residuals))
        except BaseException:  # a signal handler raised: `__exit__` will not be called
            _local.active = outer
            modes.set_interceptor(before)
            raise

    def __exit__(self, *_: object) -> None:
        before, outer = self._before[-1], _local.active[:-1]
        try:
            modes.set_interceptor(before)
        except BaseException:
            modes.set_interceptor(before)
            raise
        finally:
            _local.active = outer
            del self._before[-1]

    def packed(self, tensor: Tensor, layout: Layout | None = None) -> Packed:
        """Return a saved tensor as the pack hook packs it; kernels rely on the layout, by default the tensor's."""
        data, layout = tensor._data, layout or tensor._layout.plain  # now: a hook may let a number become an array
        version = versions.version(data) if isinstance(data, np.ndarray) else 0
        with modes.no_grad():
            value = self.pack_hook(tensor)
        if isinstance(data, np.ndarray) and versions.version(data) != version:
            raise RuntimeError(_MODIFIED)
        return Packed(value, self.unpack_hook, layout)

    def _pack_residuals(self, op: Op, bound: Bound, node: TapeNode) -> None:
        if not _local.active or _local.active[-1] is not self:
            return
        plan = node[PLAN_OBJECT]
        for name in plan.saved:
            if name.startswith("index_array"):
                continue
            place = plan.position(name)
            if name in plan.op.operands:
                tensor = bound.operands[plan.op.operands.index(name)]
            else:
                tensor = constant(node[place], layout_of(node[place]))
            if tensor._layout.weak:
                continue
            self.packed(tensor, layout_of(node[place])).pack_into(node, place)


class save_on_cpu(saved_tensors_hooks):
    """Keep what is saved on the CPU, in a ``with`` block: copies of it, as everything is on the CPU already.

    Parameters
    ----------
    pin_memory : bool
    device_type : str
        Without meaning here.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.ones(2, requires_grad=True)
    >>> with tg.autograd.graph.save_on_cpu():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda tensor: tensor.detach().clone(), lambda tensor: tensor)


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Let programs write to what operations have saved, in a ``with`` block: operations save copies.

    Raises
    ------
    RuntimeError
        If one such block stands in another.
    AssertionError
        If a backward pass over what was recorded in the block begins after its end.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> with tg.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x * 1.0
    ...     z = y * y
    ...     _ = y.zero_()
    ...     z.sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self) -> None:
        super().__init__(lambda tensor: tensor.detach().clone(), self._unpacked)

    def _unpacked(self, value: Tensor) -> Tensor:
        if not self._before:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        return value

    def __enter__(self) -> None:
        if any(isinstance(active, allow_mutation_on_saved_tensors) for active in _local.active):
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        super().__enter__()


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Refuse hooks of saved tensors, with this message, in a ``with`` block or in a function that this decorates.

    Raises
    ------
    RuntimeError
        If there are hooks already.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.ones(2, requires_grad=True)
    >>> with tg.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 2.])
    """
    if _local.active:
        raise RuntimeError(error_message)
    before, _local.refusal = _local.refusal, error_message
    try:
        yield
    finally:
        _local.refusal = before
