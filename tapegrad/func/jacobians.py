"""`jacrev`, `jacfwd`, `hessian`: whole Jacobians, by rows or by columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.seeds import block, pull_units
from tapegrad.func.level import Argnums, Level, check_floating, named_after, of_compiled, outputs_of
from tapegrad.func.products import Linear
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
        output, aux = level.call_with_aux(func, kwargs, has_aux, "vjp(f, *primals)")
        outputs = outputs_of(output, "vjp(f, *primals)")
        check_floating(outputs)
        _refuse_complex("jacrev", outputs, "outputs")
        blocks = []
        for root in outputs:
            records = level.records and not level.is_closed(root)
            if not root.ndim and chunk_size is None:  # the gradient, as of a Hessian
                blocks.append(level.pull([root], [None], records))
                continue
            rows = pull_units(root, level.inputs, create_graph=records, chunk=chunk_size)
            blocks.append([block(root, x, own) for x, own in zip(level.inputs, rows, strict=True)])
        jacobian = _assembled(level, output, blocks)
        return (jacobian, aux) if has_aux else jacobian

    return wrapper


@of_compiled
def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """Return the function that computes the Jacobian of a function by columns, in forward mode.

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
    compiled sweep runs once for each column.

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
        output, aux = level.call_with_aux(func, kwargs, has_aux, "jvp(f, primals, tangents)")
        linear = Linear(level, output, "jvp(f, primals, tangents)")
        _refuse_complex("jacfwd", linear.outputs, "outputs")
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
        jacobian = _assembled(level, linear.output, blocks)
        return (jacobian, aux) if has_aux else jacobian

    return wrapper


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
    return jacrev(jacrev(func, argnums), argnums)
