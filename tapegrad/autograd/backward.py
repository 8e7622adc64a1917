"""backward and grad: run a sweep from checked roots, and put gradients into leaves or return them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tapegrad import errors
from tapegrad.autograd.roots import as_sequence, check_roots, seed_array, zeros_of
from tapegrad.hooks import run_table
from tapegrad.modes import set_grad_enabled
from tapegrad.ops.record import constant
from tapegrad.ops.row import xp
from tapegrad.recorded import run_recorded
from tapegrad.sweep import Sweep
from tapegrad.tape import SLOT, Handle, Leaf, leaves, slot_of
from tapegrad.tensor import Tensor, from_array
from tapegrad.workspace import BORROWED, WRITTEN, is_aligned


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Compute the gradients of tensors with respect to the leaves, summed, and accumulate them in their `grad`.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
        The roots.
    grad_tensors : Tensor or sequence of Tensor or None, optional
        Their cotangents, of their shapes; ones for roots of one element.
    retain_graph : bool, optional
        Keep the residuals so that the graph can be gone through again; default `create_graph`.
    create_graph : bool
        Record the computation of the gradients, so that they can be differentiated.
    inputs : Tensor or sequence of Tensor, optional
        Accumulate into these only. They may be results; the sweep stops at them.

    Raises
    ------
    RuntimeError
        If a root does not require grad, has several elements and no gradient, its gradient has another shape, or the
        graph was freed. The tape and all gradients are then as before.
    TypeError
        If a gradient is no tensor.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> tg.autograd.backward([x.sum(), (x * x).sum()])
    >>> x.grad
    tensor([3., 5.])
    """
    roots = check_roots("backward()", as_sequence(tensors), grad_tensors)
    chosen = None
    if inputs is not None:
        chosen = as_sequence(inputs)
        if not chosen:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        _check_inputs(chosen)
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
            "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break the cycle and avoid the leak.",
            UserWarning,
            stacklevel=3,
        )
    retain = create_graph if retain_graph is None else bool(retain_graph)
    found = _Run("backward()", roots, chosen, retain, create_graph, accumulate=True).results
    for tensor in chosen or ():
        if isinstance(tensor._handle, list) and tensor._handle[SLOT] in found and not tensor.retains_grad:
            accumulate(tensor, found[tensor._handle[SLOT]], create_graph)
            tensor.retain_grad()


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | Mapping[Any, Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """Compute and return the gradients of outputs with respect to inputs; no `grad` changes.

    Parameters
    ----------
    outputs : Tensor or sequence of Tensor
    inputs : Tensor, sequence of Tensor, or mapping to Tensor
        Leaves or results.
    grad_outputs : Tensor or sequence of Tensor or None, optional
        Cotangents of the outputs; ones for outputs of one element.
    retain_graph, create_graph : bool, optional
        As for `backward`.
    allow_unused : bool, optional
        Return None for an input that the outputs do not depend on; default `materialize_grads`.
    is_grads_batched : bool
        The first dimension of each of `grad_outputs`, and of the results, counts cotangents.
    materialize_grads : bool
        Return zeros for unused inputs.

    Returns
    -------
    tuple of Tensor, or dict for a mapping of inputs

    Raises
    ------
    RuntimeError
        As `backward`; also if an input does not require grad or was not used.
    ValueError
        If `allow_unused` is False with `materialize_grads`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> (slope,) = tg.autograd.grad(x**3, x, create_graph=True)
    >>> tg.autograd.grad(slope, x)
    (tensor(12.),)
    """
    if isinstance(inputs, Mapping):
        values = grad(outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph, allow_unused,
                      is_grads_batched, materialize_grads)  # fmt: skip
        return dict(zip(inputs, values, strict=True))
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    chosen = as_sequence(inputs)
    if not chosen:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    retain = create_graph if retain_graph is None else bool(retain_graph)
    if is_grads_batched:
        return _batched(as_sequence(outputs), chosen, grad_outputs, retain, create_graph, allow_unused, materialize_grads)
    roots = check_roots("grad()", as_sequence(outputs), grad_outputs)
    _check_inputs(chosen)
    unused_allowed = materialize_grads if allow_unused is None else allow_unused
    run = _Run("grad()", roots, chosen, retain, create_graph, accumulate=False, allow_unused=unused_allowed)
    results = [run.results.get(slot_of(tensor._handle)) for tensor in chosen]
    if materialize_grads:
        results = [zeros_of(t) if value is None else value for t, value in zip(chosen, results, strict=True)]
    return tuple(results)


def _check_inputs(inputs: Sequence[Any]) -> None:
    for index, tensor in enumerate(inputs):
        if not isinstance(tensor, Tensor):
            raise errors.not_a_tensor("grad", "inputs", index, tensor)
        if tensor._handle is None:
            raise RuntimeError(
                f"One of the differentiated Tensors does not require grad; input {index} was made without "
                f"requires_grad=True or is detached"
            )


def _batched(
    outputs: tuple[Tensor, ...], inputs: tuple[Tensor, ...], grad_outputs: Any, retain: bool, create_graph: bool,
    allow_unused: bool | None, materialize: bool,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    batches = as_sequence(grad_outputs if grad_outputs is not None else ())
    for index, (output, batch) in enumerate(zip(outputs, batches, strict=False)):
        if not isinstance(batch, Tensor) or batch.shape[1:] != output.shape or not batch.ndim:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                f"dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{index}] has a shape of "
                f"{list(getattr(batch, 'shape', ()))} and output[{index}] has a shape of {list(output.shape)}."
            )
    if len(batches) != len(outputs) or len({batch.shape[0] for batch in batches}) != 1 or not batches[0].shape[0]:
        raise RuntimeError(f"got {len(outputs)} tensors and {len(batches)} batches of gradients, or empty ones")
    rows = []
    count = batches[0].shape[0]
    for index in range(count):
        last = retain or index < count - 1
        rows.append(grad(outputs, inputs, [batch[index] for batch in batches], last, create_graph, allow_unused,
                         materialize_grads=materialize))  # fmt: skip
    return tuple(None if column[0] is None else xp.stack(column) for column in zip(*rows, strict=True))


# Held by whoever adds to gradients that exist: a sweep does so without the GIL, and NumPy on big arrays too.
_grads = threading.RLock()


class _Run:
    """One pass: find, sweep, and what becomes of the gradients.

    `results` maps slots to cotangents: of the inputs for `grad`, and of results among the inputs for `backward`.
    """

    def __init__(
        self,
        call: str,
        roots: list[tuple[Tensor, Tensor]],
        inputs: Sequence[Tensor] | None,
        retain: bool,
        create_graph: bool,
        accumulate: bool,
        allow_unused: bool = True,
    ) -> None:
        self.results: dict[int, Tensor] = {}
        self.accumulate = accumulate
        self.create_graph = create_graph
        self.inputs = inputs
        seeds: dict[int, Tensor] = {}
        handles: dict[int, Handle] = {}
        leaf_roots: list[tuple[Tensor, Tensor]] = []
        for tensor, seed in roots:
            handle = tensor._handle
            if isinstance(handle, list):
                slot = handle[SLOT]
                seeds[slot] = xp.add(seeds[slot], seed) if slot in seeds else seed
                handles[slot] = handle
            else:
                leaf_roots.append((tensor, seed))
        wanted = None if inputs is None else [tensor._handle for tensor in inputs if tensor._handle is not None]
        sweep = Sweep(call, list(handles.values()), [seed_array(seed) for seed in seeds.values()], wanted, retain)
        try:
            if handles:
                sweep.find()
            if inputs is not None and not allow_unused:
                self._check_used(sweep, {tensor._slot for tensor, _ in leaf_roots}, inputs)
            if handles:
                if create_graph:
                    self._recorded(sweep, list(seeds.values()))
                else:
                    self._compiled(sweep)
        finally:
            sweep.close()
        for tensor, seed in leaf_roots:
            self._finish_leaf(tensor, seed if create_graph else seed.detach().clone())

    def _check_used(self, sweep: Sweep, leaf_roots: set[int], inputs: Sequence[Tensor]) -> None:
        reached = leaf_roots | sweep.reached()
        for index, tensor in enumerate(inputs):
            if slot_of(tensor._handle) not in reached:
                sweep.undo()
                raise RuntimeError(
                    f"The differentiated Tensor at index {index} appears to not have been used in the graph. "
                    "Set allow_unused=True if this is the desired behavior."
                )

    def _compiled(self, sweep: Sweep) -> None:
        fresh: list[tuple[Tensor, np.ndarray]] = []
        post_hooks: list[Tensor] = []
        # A hook may wait for another thread, so a pass with hooks never holds the lock.
        direct = self.accumulate and not sweep.has_hooks() and _grads.acquire(blocking=False)
        try:
            ids = [self._target(slot, sweep, direct, fresh, post_hooks) for slot in sweep.leaf_slots]
            sweep.run(ids)
        finally:
            if direct:
                _grads.release()
        for tensor, array in fresh:
            layout = tensor._layout.plain
            self._finish_leaf(tensor, constant(array, layout) if layout.contiguous else from_array(array))
        for tensor in post_hooks:
            self._run_post_hooks(tensor)
        if self.inputs is not None:
            results = [t._handle for t in self.inputs if isinstance(t._handle, list)]
            sweep.capture_rest(results)
            self.results.update(sweep.captured)

    def _target(
        self, slot: int, sweep: Sweep, direct: bool, fresh: list[tuple[Tensor, np.ndarray]], post_hooks: list[Tensor]
    ) -> int:
        """Return what the sweep is to write a leaf's gradient to, as `Sweep.run` takes it."""
        tensor = leaves[slot]()
        if tensor is None or tensor._slot != slot or not (self.inputs is None or self._wants(tensor)):
            return 0
        leaf, layout, own = tensor._handle, tensor._layout, tensor._grad
        assert isinstance(leaf, Leaf)
        if direct and own is not None and leaf.hooks is None and _is_direct(own):
            sweep.keep.append(own)
            if leaf.post_hooks:
                post_hooks.append(tensor)
            return id(own._data) | BORROWED | WRITTEN
        array = np.empty(layout.shape, layout.dtype)
        fresh.append((tensor, array))
        return id(array) | BORROWED

    def _recorded(self, sweep: Sweep, seeds: list[Tensor]) -> None:
        finished = run_recorded(sweep, seeds)
        for slot in sweep.leaf_slots:
            tensor = leaves[slot]()
            if tensor is not None and tensor._slot == slot and slot in finished:
                if self.inputs is not None and not self._wants(tensor):
                    continue
                self._finish_leaf(tensor, finished[slot])
        self.results.update({slot: ct for slot, ct in finished.items() if slot not in self.results and slot not in leaves})

    def _wants(self, tensor: Tensor) -> bool:
        return any(tensor is own for own in self.inputs or ())

    def _finish_leaf(self, tensor: Tensor, value: Tensor) -> None:
        """Run a leaf's hooks on its gradient, then accumulate it or keep it as a result."""
        leaf = tensor._handle
        assert isinstance(leaf, Leaf)
        if leaf.hooks or self.create_graph:
            with set_grad_enabled(self.create_graph):
                value = run_table(leaf.hooks or {}, value)
                # A hook may have kept what it saw or returned.
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
        assert isinstance(tensor._handle, Leaf)
        with set_grad_enabled(self.create_graph):
            for hook in list((tensor._handle.post_hooks or {}).values()):
                if hook(tensor) is not None:
                    raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def _is_direct(gradient: Tensor) -> bool:
    """Whether a sweep can add to an existing gradient without Python."""
    data = gradient._data
    return (
        isinstance(data, np.ndarray)
        and gradient._layout.contiguous
        and not gradient.requires_grad
        and data.flags.writeable
        and is_aligned(data)
    )


def accumulate(tensor: Tensor, value: Tensor, create_graph: bool) -> None:
    """Add a gradient to a tensor's `grad`, in place unless that is recorded."""
    with _grads:
        _accumulate(tensor, value, create_graph)


def _accumulate(tensor: Tensor, value: Tensor, create_graph: bool) -> None:
    own = tensor._grad
    if create_graph or (own is not None and own.requires_grad):
        tensor._grad = value if own is None else xp.add(own, value)
    elif own is not None:
        array = own._array()
        array += value._data
    elif tensor._layout.contiguous:
        tensor._grad = value
    else:  # a gradient has its tensor's strides
        array = np.empty_like(tensor._data)
        array[...] = value._data
        tensor._grad = from_array(array)
