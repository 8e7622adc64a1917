"""Composites: rows of a table that indices choose, and both extrema at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.dtypes import TORCH_NAMES
from tapegrad.ops.arithmetic import add, mul, where
from tapegrad.ops.broadcasting import unsqueeze
from tapegrad.ops.extrema import amax, amin
from tapegrad.ops.gather import indices_of
from tapegrad.ops.index_arrays import embedded
from tapegrad.ops.setitem import write_at_index
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.index_values import are_within
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.ops.table.structural import one_dim
from tapegrad.return_types import return_type
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor, from_array

_ROWS = np.array([[0, 2, 0], [3, 1, 2]])


@public(namespaces=(FUNCTIONAL,))
@composite(
    (Sample(((4, 3),), {"input": _ROWS}), Sample(((4, 3),), {"input": _ROWS[0]})),
    lambda weight, input: weight[input],
    call=lambda function, weight, input, **rest: function(input, weight, **rest),
)
def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    r"""Rows of a table that indices choose.

    Derivative: with :math:`Y_{ij} = W_{p_i,j}` and the indices p, :math:`\bar W_{kj} = \sum_i [p_i = k] \bar Y_{ij}`.

    Parameters
    ----------
    input : Tensor or array of int
    weight : Tensor or array, (n, m)
    padding_idx : int, optional
        The row that gets no gradient.
    max_norm : float, optional
        Rows that are chosen and whose norm is larger are scaled to it, in place.
    norm_type : float
        The order of that norm.
    scale_grad_by_freq : bool
        Divide the gradient of each row by how often it is chosen.
    sparse : bool
        Accepted for PyTorch's sake; gradients are dense.

    Returns
    -------
    Tensor
        Of the shape of the indices, and a last dimension of m.

    Raises
    ------
    IndexError
        If an index is out of range.
    RuntimeError
        If `weight` is no matrix, or the indices are no integers.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.embedding(tg.tensor([1, 0]), tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    table = as_operand(weight, "embedding", "weight", 2)
    try:
        chosen = indices_of("embedding", input, "input", 1)
    except RuntimeError as error:
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{TORCH_NAMES[input.dtype.name]}Tensor instead; {error}"
        ) from None
    if table.ndim != 2:
        raise RuntimeError(f"'weight' must be 2-D; embedding() got one of shape {list(table.shape)}")
    rows = table.shape[0]
    if not are_within(chosen, 0, rows):
        raise IndexError(f"index out of range in self: embedding() has {rows} rows")
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise AssertionError(f"Padding_idx must be within num_embeddings, {rows}; it is {padding_idx}")
    if max_norm is not None:
        _renormed(table if table is weight else weight, np.unique(chosen._data), max_norm, norm_type)
    out: Tensor = embedded(table, 0, chosen)
    if padding_idx is not None:
        out = where(unsqueeze(chosen == padding_idx % rows, -1), out.detach(), out)
    if scale_grad_by_freq:
        indices = np.asarray(chosen._data)
        scale = (1.0 / np.bincount(indices.ravel(), minlength=rows)[indices])[..., None].astype(table.dtype)
        scaled = add(mul(out, from_array(scale)), mul(out.detach(), from_array(1 - scale)))
        out = where(scale == 1, out, scaled)  # 0 times inf is nan
    return out


def _renormed(weight: Any, indices: np.ndarray, max_norm: float, norm_type: float) -> None:
    """Scale rows whose norm is too large."""
    table = np.asarray(weight._data if isinstance(weight, Tensor) else weight)
    norms = np.linalg.norm(table[indices], ord=norm_type, axis=1)
    large = norms > max_norm
    scaled = table[indices[large]] * (max_norm / (norms[large] + 1e-7))[:, None].astype(table.dtype)
    with modes.no_grad():
        if isinstance(weight, Tensor):
            write_at_index(weight, (indices[large],), scaled, "embedding()")
        else:
            weight[indices[large]] = scaled


class MinMax(NamedTuple):
    """The smallest and the largest elements."""

    min: Tensor
    max: Tensor


_aminmax = return_type(MinMax, "aminmax")


@public(method=True)
@composite(
    (Sample(((2, 3),)), Sample(((2, 3),), {"dim": 1, "keepdim": True}), Sample(((),), {"dim": 0})),
    lambda input, dim=None, keepdim=False: (
        (2 * np.min(input, axis=dim, keepdims=keepdim) + np.max(input, axis=dim, keepdims=keepdim))
        if np.ndim(input) else 3 * input
    ),
    real_only=True,
    call=lambda function, input, **rest: 2 * function(input, **rest)[0] + function(input, **rest)[1],
)  # fmt: skip
def aminmax(input: Any, *, dim: int | None = None, keepdim: bool = False) -> MinMax:
    """Return the smallest and the largest elements: what `amin` and `amax` return.

    Parameters
    ----------
    input : Tensor or array
    dim : int, optional
        Default all.
    keepdim : bool
        Keep the dimension, with length 1.

    Returns
    -------
    named tuple of Tensor
        ``min`` and ``max``.

    Raises
    ------
    IndexError
        If `input` does not have the dimension, or there is nothing to choose from.

    Notes
    -----
    Derivative: 1 for the extremum; elements that tie share it evenly.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.aminmax(tg.tensor([3.0, 1.0, 2.0]))
    tapegrad.return_types.aminmax(
    min=tensor(1.),
    max=tensor(3.))
    """
    x = as_operand(input, "aminmax", "input", 1)
    if not x._layout.size and dim is None:
        raise RuntimeError(
            f"aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity; its input "
            f"has shape {list(x.shape)}"
        )
    if x.ndim and dim is not None and x.shape[place := one_dim("aminmax", x.ndim, dim)] == 0:
        raise IndexError(f"aminmax: Expected reduction dim {place} to have non-zero size; got shape {list(x.shape)}")
    return _aminmax(amin(x, dim, keepdim), amax(x, dim, keepdim))
