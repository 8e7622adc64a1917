"""Attention, and bilinear forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.ops.along import softmax
from tapegrad.ops.arithmetic import add, mul, where
from tapegrad.ops.broadcasting import expand, unsqueeze
from tapegrad.ops.dropout import dropout
from tapegrad.ops.einsum import einsum
from tapegrad.ops.linalg import matmul
from tapegrad.ops.movement import reshape
from tapegrad.ops.permutations import transpose
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import FUNCTIONAL, TOP, public
from tapegrad.ops.table.values import KINKS, repeated
from tapegrad.tensor import Tensor, from_array


def _attention_by_numpy(
    query: Any, key: Any, value: Any, attn_mask: Any = None, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:  # fmt: skip
    if enable_gqa:
        key, value = (np.repeat(own, query.shape[-3] // own.shape[-3], -3) for own in (key, value))
    scores = np.einsum("...le,...se->...ls", query, key) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:])) > 0, scores, -np.inf)
    if attn_mask is not None:
        scores = np.where(attn_mask, scores, -np.inf) if attn_mask.dtype == bool else scores + attn_mask
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (np.einsum("...ls,...sv->...lv", powers / powers.sum(-1, keepdims=True), value)).astype(query.dtype)


def _repeated_heads(x: Tensor, heads: int) -> Tensor:
    """Return keys or values of groups of heads for each of them: (..., groups, s, e) to (..., heads, s, e)."""
    *batch, groups, s, e = x.shape
    wider = expand(unsqueeze(x, -3), (*batch, groups, heads // groups, s, e))
    return reshape(wider, (*batch, heads, s, e))


def _masked(scores: Tensor, mask: Tensor) -> tuple[Tensor, np.ndarray | None]:
    """Return the scores with a mask, and which queries take part in anything; None if all do."""
    data = np.asarray(mask._data)
    blocked = ~data if data.dtype == np.bool_ else data == -np.inf
    alive = np.asarray(~blocked.all(-1, keepdims=True))
    if alive.all():
        return (where(mask, scores, -np.inf) if data.dtype == np.bool_ else add(scores, mask)), None
    if data.dtype == np.bool_:
        return where(from_array(data | ~alive), scores, -np.inf), alive
    return add(scores, where(from_array(np.broadcast_to(alive, data.shape).copy()), mask, 0.0)), alive


@public(namespaces=(FUNCTIONAL,))
@composite(
    (
        Sample(((2, 3, 4), (2, 5, 4), (2, 5, 2))),
        Sample(((3, 4), (3, 4), (3, 4)), {"is_causal": True, "scale": 0.5}),
        Sample(((3, 4), (5, 4), (5, 4)), {"attn_mask": np.eye(3, 5) + np.eye(3, 5, 2) > 0}),
        Sample(((2, 4, 3, 2), (2, 2, 3, 2), (2, 2, 3, 2)), {"enable_gqa": True}),
    ),
    _attention_by_numpy, real_only=True, kinks=(repeated(0.0), repeated(0.5, 0.25, -0.5, 0.125), *KINKS[4:]),
)  # fmt: skip
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    r"""Means of values, with weights :math:`\operatorname{softmax}(q k^T/\sqrt{e})`.

    Parameters
    ----------
    query : Tensor or array, (..., l, e)
    key : Tensor or array, (..., s, e)
    value : Tensor or array, (..., s, v)
    attn_mask : Tensor or array, broadcast to (..., l, s), optional
        Of bools: what takes part; of numbers: what is added to the scores. A query for which nothing takes part gives
        0.
    dropout_p : float
        The probability with which a weight is set to 0.
    is_causal : bool
        The query i takes part in the keys up to i.
    scale : float, optional
        Of the scores; default :math:`1/\sqrt{e}`.
    enable_gqa : bool
        Keys and values are those of groups of heads, which are the third dimension from the end.

    Returns
    -------
    Tensor, (..., l, v)

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or there are a mask and `is_causal`.

    Notes
    -----
    A. Vaswani et al., "Attention is all you need" (2017).

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([[0.0, 0.0], [0.0, 0.0]])
    >>> tg.nn.functional.scaled_dot_product_attention(x, x, tg.tensor([[1.0], [3.0]]), is_causal=True)
    tensor([[1.],
            [2.]])
    """
    call = "scaled_dot_product_attention"
    q, k, v = (
        as_operand(own, call, name, place)
        for place, (name, own) in enumerate((("query", query), ("key", key), ("value", value)), 1)
    )
    if attn_mask is not None and is_causal:
        raise RuntimeError(f"Explicit attn_mask should not be set when is_causal=True in {call}(): put it in the mask")
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise RuntimeError(
            f"{call}: Expected query, key, and value to all be  at least 2 dimensional, but got query dim: {q.ndim}, "
            f"key dim: {k.ndim} and value dim: {v.ndim} instead."
        )
    if enable_gqa:
        k, v = (_repeated_heads(own, q.shape[-3]) for own in (k, v))
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores, alive = matmul(mul(q, factor), transpose(k, -1, -2)), None
    if is_causal:
        scores = where(from_array(np.tri(scores.shape[-2], scores.shape[-1], dtype=bool)), scores, -np.inf)
    elif attn_mask is not None:
        scores, alive = _masked(scores, as_operand(attn_mask, call, "attn_mask", 4))
    weights = softmax(scores, -1)
    if alive is not None:
        weights = where(from_array(alive), weights, 0.0)
    return matmul(dropout(weights, dropout_p), v)


@public(namespaces=(TOP, FUNCTIONAL))
@composite(
    (Sample(((2, 3), (2, 4), (5, 3, 4))), Sample(((3,), (4,), (2, 3, 4), (2,)))),
    lambda input1, input2, weight, bias=0: (
        np.einsum("...i,oij,...j->...o", input1, weight, input2) + bias
    ).astype(input1.dtype),
)  # fmt: skip
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    r"""Bilinear forms of pairs of vectors.

    Derivative: with :math:`y_k = \sum_i \sum_j x_i W_{kij} z_j + b_k`,
    :math:`\bar x_i = \sum_k \sum_j W_{kij} z_j \bar y_k`, :math:`\bar z_j = \sum_k \sum_i W_{kij} x_i \bar y_k` and
    :math:`\bar W_{kij} = \bar y_k x_i z_j`.

    Parameters
    ----------
    input1 : Tensor or array, (..., n)
    input2 : Tensor or array, (..., m)
    weight : Tensor or array, (k, n, m)
    bias : Tensor or array, (k,), optional

    Returns
    -------
    Tensor, (..., k)

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.bilinear(tg.tensor([1.0, 2.0]), tg.tensor([3.0]), tg.tensor([[[1.0], [2.0]]]))
    tensor([15.])
    """
    out = einsum("...i,oij,...j->...o", input1, weight, input2)
    return out if bias is None else add(out, bias)
