"""`backward` and `grad`: check the arguments, run a pass, and accumulate the gradients in leaves or return them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tapegrad import errors
from tapegrad.autograd.direct import run_to_inputs, run_to_leaves
from tapegrad.autograd.roots import as_sequence, check_roots, zeros_of
from tapegrad.autograd.run import Destination, accumulate, run
from tapegrad.ops.table.op import xp
from tapegrad.tape import views
from tapegrad.tape.entries import SLOT, slot_of
from tapegrad.tensor import Tensor, from_array


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Compute the gradients of tensors with respect to the leaves, summed, and accumulate them in their `grad`.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
        The roots.
    grad_tensors : Tensor or sequence of Tensor or None, optional
        The cotangents of the roots, of the same shapes. By default 1 for a root with one element.
    retain_graph : bool, optional
        Keep the saved values, so that a second pass can use the graph. Default: the value of `create_graph`.
    create_graph : bool
        Record how the gradients are computed, so that they can be differentiated again.
    grad_variables : Tensor or sequence of Tensor or None, optional
        `grad_tensors`, by its older name.
    inputs : Tensor or sequence of Tensor, optional
        Accumulate only into these tensors. They may be results; the pass ends at them.

    Raises
    ------
    RuntimeError
        If a root does not require grad, if it has several elements and no gradient is given, if its gradient has
        another shape, or if the graph was freed. The tape and all gradients stay unchanged.
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
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only "
                "use `grad_tensors`."
            )
        grad_tensors = grad_variables
    retain = create_graph if retain_graph is None else bool(retain_graph)
    if (
        tensors.__class__ is Tensor
        and inputs is None
        and not create_graph
        and run_to_leaves(tensors, grad_tensors, retain)
    ):
        return
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
    gradients = run(roots, Destination(chosen, create_graph, accumulate=True), retain)
    for tensor in chosen or ():
        if isinstance(tensor._node, list) and tensor._node[SLOT] in gradients and not tensor.retains_grad:
            accumulate(tensor, gradients[tensor._node[SLOT]], create_graph)
            tensor.retain_grad()


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | Mapping[Any, Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
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
        Cotangents of the outputs. By default 1 for an output with one element.
    retain_graph, create_graph : bool, optional
        As for `backward`.
    only_inputs : bool
        Deprecated: only True has a meaning.
    allow_unused : bool, optional
        Return None for an input that no output depends on. Default: the value of `materialize_grads`.
    is_grads_batched : bool
        `grad_outputs` are batches of cotangents, and the results batches of gradients, along the first dimension.
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
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    retain = create_graph if retain_graph is None else bool(retain_graph)
    if outputs.__class__ is Tensor and not is_grads_batched and not materialize_grads:
        leaves = (inputs,) if inputs.__class__ is Tensor else inputs
        if leaves.__class__ in (tuple, list) and leaves:
            gradients = run_to_inputs(outputs, grad_outputs, leaves, retain, create_graph, allow_unused)
            if gradients is not None:
                return tuple(gradients)
    if isinstance(inputs, Mapping):
        values = grad(outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph, True,
                      allow_unused, is_grads_batched, materialize_grads)  # fmt: skip
        return dict(zip(inputs, values, strict=True))
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    chosen = as_sequence(inputs)
    if not chosen:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if is_grads_batched:
        roots_of = as_sequence(outputs)
        return _batched(roots_of, chosen, grad_outputs, retain, create_graph, allow_unused, materialize_grads)
    roots = check_roots("grad()", as_sequence(outputs), grad_outputs)
    _check_inputs(chosen)
    unused_allowed = materialize_grads if allow_unused is None else allow_unused
    by_slot = run(roots, Destination(chosen, create_graph, accumulate=False), retain, bool(unused_allowed))
    results = [by_slot.get(slot_of(tensor._node)) for tensor in chosen]
    for index, value in enumerate(() if unused_allowed else results):
        if value is None:  # a Function returned None for it
            raise errors.unused(index)
    if materialize_grads:
        results = [zeros_of(t) if value is None else value for t, value in zip(chosen, results, strict=True)]
    return tuple(results)


def _check_inputs(inputs: Sequence[Any]) -> None:
    for index, tensor in enumerate(inputs):
        if not isinstance(tensor, Tensor):
            raise errors.not_a_tensor("grad", "inputs", index, tensor)
        if views.renewed(tensor)._node is None:
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
    count = batches[0].shape[0]
    from tapegrad.autograd.rows import pull_rows  # at call time: few programs have batches of cotangents

    unused_allowed = materialize if allow_unused is None else bool(allow_unused)
    fits = all(batch.dtype == output.dtype for output, batch in zip(outputs, batches, strict=True))  # fmt: skip
    if fits and all(views.renewed(x)._node is not None for x in inputs):
        gradients = pull_rows(outputs, inputs, batches, retain, create_graph, unused_allowed)
        if gradients is not None:
            if materialize:
                gradients = [from_array(np.zeros((count, *x.shape), x.dtype)) if gradient is None else gradient
                             for x, gradient in zip(inputs, gradients, strict=True)]  # fmt: skip
            return tuple(gradients)
    rows = []
    for index in range(count):
        last = retain or index < count - 1
        rows.append(grad(outputs, inputs, [batch[index] for batch in batches], last, create_graph, True, allow_unused,
                         materialize_grads=materialize))  # fmt: skip
    return tuple(None if column[0] is None else xp.stack(column) for column in zip(*rows, strict=True))
