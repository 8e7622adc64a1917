"""`jacrev`, `jacfwd`, `hessian`: whole Jacobians, by rows or by columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.function_tangents import calls_of_jvp
from tapegrad.autograd.seeds import block, pull_units
from tapegrad.func.level import Argnums, Level, check_floating, named_after, of_compiled, outputs_of, recorded
from tapegrad.func.products import JVP, VJP, Linear
from tapegrad.func.trees import rebuild
from tapegrad.ops.table import functions as ops
from tapegrad.tensor import Tensor, from_array


def _refuse_complex(name: str, tensors: Sequence[Tensor], kind: str) -> None:
    for index, tensor in enumerate(tensors):
        if tensor.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {kind} to be real but received complex tensor at flattened input idx: {index}"
            )


def _assembled(level: Level, output: Any, blocks: Sequence[Sequence[Tensor]]) -> Any:
    """Return blocks, of each output a list with one for each input, in the structure of outputs and of arguments."""
    of_outputs = [level.as_arguments([level.cut(block) for block in row]) for row in blocks]
    return rebuild(output, of_outputs)


@of_compiled
def jacrev(
    func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """Return the function that computes the Jacobian of a function by rows, in reverse mode.

    Parameters
    ----------
    func : callable
        A function that returns a tensor, or a dict, list, tuple or named tuple of tensors.
    argnums : int or tuple of int
        The arguments to differentiate, as for `grad`.
    has_aux : bool
        Whether the function returns a pair ``(output, aux)``, of which `aux` is returned but not differentiated.
    chunk_size : int, optional
        How many rows to compute at once; by default all.

    Returns
    -------
    callable
        Returns the Jacobian of each output with respect to each argument: a tensor of the output's shape followed by
        the argument's, in the structure of the outputs and, inside that, of the arguments. With `has_aux` it returns a
        pair: the Jacobian and `aux`.

    Raises
    ------
    ValueError
        If `chunk_size` is not positive.
    RuntimeError
        From the function that is returned: if an argument is complex, or `func` returns what is no floating tensor.

    Notes
    -----
    The function is called once, and the tape is searched once for each output. Then the compiled sweep runs once for
    each row. A Jacobian that can be differentiated again, as inside another transform, is recorded: rules are called
    once for all rows where they take these along a leading dimension, else for each row.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.func.jacrev(lambda x: x * x)(tg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @named_after(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        level = Level(args, argnums)
        _refuse_complex("jacrev", level.inputs, "inputs")
        output, aux = level.call_with_aux(func, kwargs, has_aux, VJP)
        blocks = []
        for root in _real_outputs(output):
            records = level.records and not level.is_closed(root)
            blocks.append(_rows_of(level, root, records, chunk_size))
        jacobian = _assembled(level, output, blocks)
        return (jacobian, aux) if has_aux else jacobian

    return wrapper


def _real_outputs(output: Any) -> list[Tensor]:
    """Return the leaves of what a function has returned; raise an error unless they are floating and real."""
    outputs = outputs_of(output, VJP)
    check_floating(outputs)
    _refuse_complex("jacrev", outputs, "outputs")
    return outputs


def _rows_of(level: Level, root: Tensor, records: bool, chunk: int | None = None) -> list[Tensor]:
    """Return the Jacobian of an output for each input."""
    if not root.ndim and chunk is None:
        return level.pull([root], [None], records)
    rows = pull_units(root, level.inputs, create_graph=records, chunk=chunk)
    return [block(root, x, own) for x, own in zip(level.inputs, rows, strict=True)]


@of_compiled
def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """Return the function that computes the Jacobian of a function by columns, as forward mode does.

    Parameters
    ----------
    func, argnums, has_aux
        As for `jacrev`.
    randomness : str
        Has no effect: the function is called once, and so are its random numbers.

    Returns
    -------
    callable
        As for `jacrev`.

    Raises
    ------
    RuntimeError
        From the function that is returned: if a tensor is complex, or `func` returns what is no tensor.

    Notes
    -----
    For functions of few arguments and many results. The function is linearised once (see `linearize`), and then the
    compiled sweep runs once for each column. If there are no more rows than columns, and no `jvp` of a `Function` is to
    be called, it computes rows, as `jacrev` does: each takes half the time.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.func.jacfwd(lambda t: tg.stack([t, t * t]))(tg.tensor(3.0))
    tensor([1., 6.])
    """

    @named_after(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        level = Level(args, argnums)
        _refuse_complex("jacfwd", level.inputs, "inputs")
        before = calls_of_jvp()
        output, aux = level.call_with_aux(func, kwargs, has_aux, JVP)
        outputs = outputs_of(output, JVP)
        _refuse_complex("jacfwd", outputs, "outputs")
        if _count(outputs) > _count(level.inputs) or calls_of_jvp() > before:
            blocks = _columns_of(level, Linear(level, output, JVP))
        else:
            blocks = [_rows_of(level, root, level.records and not level.is_closed(root)) for root in outputs]
        jacobian = _assembled(level, output, blocks)
        return (jacobian, aux) if has_aux else jacobian

    return wrapper


def _count(tensors: Sequence[Tensor]) -> int:
    return sum([tensor._layout.size for tensor in tensors])


def _columns_of(level: Level, linear: Linear) -> list[list[Tensor]]:
    """Return the Jacobian of each output for each input, computed by columns."""
    records = level.records and not linear.is_closed
    columns = [  # by input, then by output that depends on any
        [None] * len(linear.cts) if gradient is None else pull_units(gradient, linear.cts, create_graph=records)
        for gradient in linear.gradients
    ]
    places = {id(tensor): place for place, tensor in enumerate(linear.wanted)}
    blocks = []
    for tensor in linear.outputs:
        place = places.get(id(tensor))
        own = [None if place is None else of_input[place] for of_input in columns]
        blocks.append([_turned(tensor, x, found) for x, found in zip(level.inputs, own, strict=True)])
    return blocks


def _turned(output: Tensor, x: Tensor, columns: Tensor | None) -> Tensor:
    """Return the Jacobian of one output with respect to one input; the first dimension of `columns` is the input's."""
    if columns is None:
        return block(output, x, None)
    if columns._node is None and not columns.is_traced:
        return block(output, x, from_array(np.ascontiguousarray(np.moveaxis(columns._array(), 0, -1))))
    return block(output, x, ops.movedim(columns, 0, -1))


@of_compiled
def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return the function that computes the Hessian of a function.

    Parameters
    ----------
    func, argnums
        As for `jacrev`.

    Returns
    -------
    callable
        Returns the second derivatives: for a scalar function of one tensor a tensor of its shape twice; in general the
        Jacobian of the Jacobian.

    Notes
    -----
    The gradient is recorded, and differentiated by rows: a Hessian is symmetric, so that these are its columns too.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.func.hessian(lambda x: (x**3).sum())(tg.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """

    @named_after(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        level = Level(args, argnums)
        _refuse_complex("jacrev", level.inputs, "inputs")
        output = level.call(func, kwargs)
        first, blocks = [], []
        for root in _real_outputs(output):
            gradients, records = _recorded_rows(level, root)
            first.append(level.as_arguments(gradients))
            blocks += [_rows_of(level, gradient, records) for gradient in gradients]
        return _assembled(level, rebuild(output, first), blocks)

    return wrapper


def _recorded_rows(level: Level, root: Tensor) -> tuple[list[Tensor], bool]:
    """Return the Jacobian of an output for each input, recorded, and whether somebody can differentiate it later."""
    if root.ndim:
        rows, is_closed = recorded(_rows_of, level, root, True), level.is_closed(root)
    else:
        gradients, is_closed = level.recorded_gradients(root)
        rows = level.filled(gradients)
    return rows, level.records and not is_closed
