"""A pass from checked roots: find, sweep, then accumulate the gradients in leaves or return them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import errors, modes
from tapegrad.autograd.roots import seed_arrays
from tapegrad.modes import set_grad_enabled
from tapegrad.ops.table.gateway import constant, raw_data
from tapegrad.ops.table.op import xp
from tapegrad.pass_modes import calls_rules
from tapegrad.runtime import pool
from tapegrad.runtime.locks import module_lock
from tapegrad.sweep.recorded import finish, run_recorded
from tapegrad.sweep.sweep import Sweep, run_pass
from tapegrad.tape import versions
from tapegrad.tape.entries import SLOT, Leaf, TapeNode, leaf_at, slot_of
from tapegrad.tape.hooks import node_hooks, run_table
from tapegrad.tensor import Tensor, from_array

# The lock of all gradients. It is held while adding to existing ones, as sweeps, and NumPy, add without the GIL.
_grads: Any = module_lock()
_acquire: Final = _grads.acquire


class Destination:
    """Where the gradients of a pass go: into the `grad` of leaves, or into its results.

    Parameters
    ----------
    inputs : sequence of Tensor, optional
        The tensors whose gradients are wanted; default: all leaves.
    create_graph : bool
        Record the computation of the gradients.
    accumulate : bool
        Accumulate the gradients of leaves in their `grad`. The gradients of other inputs are always results.

    Attributes
    ----------
    results : dict
        Gradients by slot.
    """

    __slots__ = ("accumulate", "create_graph", "inputs", "results")

    def __init__(self, inputs: Sequence[Tensor] | None, create_graph: bool, accumulate: bool) -> None:
        self.inputs, self.create_graph, self.accumulate = inputs, create_graph, accumulate
        self.results: dict[int, Tensor] = {}

    def sweep(self, sweep: Sweep) -> None:
        """Sweep over the entries that were found, in compiled code."""
        new: list[Tensor] = []  # tensors without gradient, each followed by a new gradient
        unknown: list[int] = []  # indices of leaves that compiled code does not serve
        fresh: list[tuple[Tensor, np.ndarray]] = []  # tensors of such leaves, with new arrays
        held: list[bool] = []
        try:
            try:
                if self.accumulate and self.inputs is None:
                    sweep.workspace.bind_grads(sweep.keep, new, unknown, _acquire, held)
                if unknown or not held or not held[0]:
                    self._bind_others(sweep, unknown, fresh)
            except BaseException:
                sweep.undo()
                raise
            sweep.run()
            if sweep.notes is not None:
                gaps = sweep.unwritten()
                new = [own for pair in zip(new[::2], new[1::2], strict=True) if slot_of(pair[0]._node) not in gaps
                       for own in pair]  # fmt: skip
                fresh = [pair for pair in fresh if slot_of(pair[0]._node) not in gaps]
            if new:
                committed = sweep.workspace.commit_grads(new)
                if committed < len(new):
                    for tensor, value in zip(new[committed::2], new[committed + 1 :: 2], strict=True):
                        _accumulate(tensor, value, create_graph=False)
        finally:
            if held and held[0]:
                _grads.release()
        for tensor, array in fresh:
            layout = tensor._layout.plain
            fits = layout.contiguous and layout.shape == array.shape
            self.finish_leaf(tensor, constant(array, layout) if fits else from_array(array))
        if self.inputs is not None:
            results = [t._node for t in self.inputs if isinstance(t._node, list)]
            sweep.capture_rest(results)
            self.results.update(sweep.captured)

    def _bind_others(self, sweep: Sweep, unknown: list[int], fresh: list[tuple[Tensor, np.ndarray]]) -> None:
        """Let the sweep write the gradients of unknown leaves, or of all leaves if none is unknown, to new arrays."""
        self.check(sweep)
        slots = sweep.leaf_slots()
        for index in unknown or range(len(slots)):
            tensor = self._wanted(leaf_at(slots[index]))
            array = None
            if tensor is not None:
                array = pool.empty(tensor._layout.shape, tensor._layout.dtype)
                fresh.append((tensor, array))
            sweep.set_target(index, array)

    def check(self, sweep: Sweep) -> None:
        """Check that leaves and gradients still have the sizes that they have in the graph; nothing has changed yet.

        Raises
        ------
        RuntimeError
            If `data` or `grad` was replaced by one of another shape.
        ValueError
            If a gradient cannot be added to.
        """
        for slot in sweep.leaf_slots():
            leaf = leaf_at(slot)
            tensor, shape = leaf.tensor(), getattr(leaf, "shape", None)
            if tensor is not None and shape is not None and tensor._node is not None and self._wants(tensor):
                raise errors.reshaped("a leaf", shape, tensor.shape)
            if self._wanted(leaf) is not None:
                self.check_grad(tensor)
        if sweep.has_hooks():
            for node in sweep.order():
                hooks = None if node is None else node_hooks(node)
                if hooks is not None and hooks.retained is not None:
                    check_grad(hooks.retained())

    def check_grad(self, tensor: Tensor | None) -> None:
        """Check that the gradient of a tensor can be added to, if this pass accumulates."""
        if self.accumulate:
            check_grad(tensor)

    def _wanted(self, leaf: Leaf) -> Tensor | None:
        """Return the tensor of a leaf if its gradient is wanted; else None."""
        tensor = leaf.tensor()
        if tensor is None and leaf.hooks:
            tensor = _stand_in(leaf)
        return tensor if tensor is not None and tensor._node is leaf and self._wants(tensor) else None

    def sweep_recorded(self, sweep: Sweep, seeds: list[Tensor]) -> None:
        """Sweep over the entries that were found by calling their rules; record the computation for `create_graph`."""
        with set_grad_enabled(self.create_graph):
            cts = run_recorded(sweep, seeds)
        finished = finish(sweep, cts, self.create_graph)
        for slot in sweep.leaf_slots():
            ct = finished.pop(slot, None)
            tensor = self._wanted(leaf_at(slot))
            if tensor is not None and ct is not None:
                self.finish_leaf(tensor, ct)
        self.results = finished | self.results

    def _wants(self, tensor: Tensor) -> bool:
        return self.inputs is None or any(tensor is wanted for wanted in self.inputs)

    def finish_leaf(self, tensor: Tensor, value: Tensor) -> None:
        """Run a leaf's hooks on its gradient, then accumulate the gradient or make it a result."""
        leaf = tensor._node
        assert isinstance(leaf, Leaf)
        if leaf.hooks or self.create_graph:
            with set_grad_enabled(self.create_graph):
                value = run_table(leaf.hooks or {}, value)
                # Clone it: a hook may have kept a reference to it.
                self._deliver(leaf, tensor, value if self.create_graph else value.clone())
        else:
            self._deliver(leaf, tensor, value)
        if leaf.post_hooks and self.accumulate:
            self._run_post_hooks(tensor)

    def _deliver(self, leaf: Leaf, tensor: Tensor, value: Tensor) -> None:
        if self.accumulate:
            accumulate(tensor, value, self.create_graph)
        else:
            before = self.results.get(leaf.slot)
            self.results[leaf.slot] = value if before is None else xp.add(before, value)

    def _run_post_hooks(self, tensor: Tensor) -> None:
        assert isinstance(tensor._node, Leaf)
        with set_grad_enabled(self.create_graph):
            for hook in list((tensor._node.post_hooks or {}).values()):
                result = hook(tensor)
                if isinstance(result, Tensor) and result is not tensor:
                    raise RuntimeError("Tensor post accumulate grad hooks should return None.")
                if result is not None and result is not tensor:
                    raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")


def _stand_in(leaf: Leaf) -> Tensor | None:
    """Return a tensor in place of a leaf's that has died: hooks get the gradient, which goes nowhere else."""
    layout = getattr(leaf.hooks, "layout", None)
    if layout is None:
        return None
    tensor = from_array(np.broadcast_to(np.zeros((), layout.dtype), layout.shape))
    tensor._layout, tensor._node = tensor._layout.tracked, leaf
    return tensor


def run(
    roots: list[tuple[Tensor, Tensor]], destination: Destination, retain: bool, allow_unused: bool = True
) -> dict[int, Tensor]:
    """Run a pass from roots with their cotangents, and return its results.

    Raises
    ------
    RuntimeError
        If the graph was freed, a residual was changed, or an input was not used though `allow_unused` is False.
    """
    create_graph, inputs = destination.create_graph, destination.inputs
    by_rules = create_graph or calls_rules()
    seeds: list[Tensor] = []
    nodes: list[TapeNode] = []
    indices: dict[int, int] = {}
    leaf_roots: list[tuple[Tensor, Tensor]] = []
    for tensor, seed in roots:
        node = tensor._node
        if not isinstance(node, list):
            destination.check_grad(tensor)
            leaf_roots.append((tensor, seed))
            continue
        index = indices.setdefault(node[SLOT], len(nodes))
        if index < len(nodes):
            seeds[index] = xp.add(seeds[index], seed)
        else:
            nodes.append(node)
            seeds.append(seed)
    for tensor in inputs or ():
        destination.check_grad(tensor)
    wanted = None if inputs is None else [tensor._node for tensor in inputs if tensor._node is not None]

    def work(sweep: Sweep) -> None:
        if by_rules or not allow_unused:
            try:
                if nodes:
                    destination.check(sweep)
                if inputs is not None and not allow_unused:
                    _check_used(sweep, {slot_of(tensor._node) for tensor, _ in leaf_roots}, inputs)
            except BaseException:
                sweep.undo()
                raise
        if nodes and by_rules:
            destination.sweep_recorded(sweep, seeds)
        elif nodes:
            destination.sweep(sweep)

    run_pass(nodes, seed_arrays(seeds), wanted, retain, work, by_rules)
    for tensor, seed in leaf_roots:
        destination.finish_leaf(tensor, seed if create_graph else seed.detach().clone())
    return destination.results


def _check_used(sweep: Sweep, leaf_roots: set[int], inputs: Sequence[Tensor]) -> None:
    reached = leaf_roots | sweep.reached()
    for index, tensor in enumerate(inputs):
        if slot_of(tensor._node) not in reached:
            raise errors.unused(index)


def check_grad(tensor: Tensor | None) -> None:
    """Check that a tensor's gradient, if it has one, can be added to; raises as `Destination.check` does."""
    gradient = None if tensor is None else tensor._grad
    if tensor is None or gradient is None:
        return
    if gradient.shape != tensor.shape:
        raise errors.reshaped("a tensor", gradient.shape, tensor.shape)
    data = raw_data(gradient)
    if (
        not gradient.is_traced
        and not gradient.requires_grad
        and isinstance(data, np.ndarray)
        and not data.flags.writeable
    ):
        raise ValueError(
            "output array is read-only: the gradient of a tensor is to be added to; set its `grad` to None"
        )


def clear_grads(params: Iterable[Tensor], set_to_none: bool) -> None:
    """Let tensors have no gradient, or zeros in the same memory."""
    is_traced = modes.is_traced()
    for param in params:
        if is_traced:
            modes.tell("grad_replaced" if set_to_none else "accumulated", param)
        if set_to_none:
            param._grad = None
        elif param._grad is not None:
            if param._grad._node is not None:
                param._grad = param._grad.detach()
            param._grad.zero_()


def accumulate(tensor: Tensor, value: Tensor, create_graph: bool) -> None:
    """Add a gradient to a tensor's `grad`, in place unless that is recorded."""
    tracer = modes.tracer()
    if tracer is not None:
        tracer.accumulated(tensor)
        if not create_graph:
            tracer.accumulate(tensor, value)
            return
    with _grads:
        _accumulate(tensor, value, create_graph)


def _accumulate(tensor: Tensor, value: Tensor, create_graph: bool) -> None:
    gradient = tensor._grad
    shape = tensor.shape if gradient is None else gradient.shape
    if value.shape != shape:  # a hook, or another thread, has replaced `data` or `grad` since `check`
        raise errors.reshaped("a tensor", shape, value.shape)
    if create_graph or (gradient is not None and (gradient.requires_grad or gradient.__class__ is not Tensor)):
        # A rule may have returned its cotangent, which is another leaf's gradient too, or a view of one element.
        tensor._grad = value.clone() if gradient is None else xp.add(gradient, value)
    elif gradient is not None:
        array = gradient._array()
        versions.note(array)  # a graph may have saved it
        array += value._data
    elif tensor._layout.contiguous:
        tensor._grad = value
    else:  # a gradient has the strides of its tensor
        array = np.empty_like(tensor._data)
        array[...] = value._data
        tensor._grad = from_array(array)
