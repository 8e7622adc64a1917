"""Composite: attention of several heads, with the weights of their projections."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.ops.along import softmax
from tapegrad.ops.arithmetic import add, mul
from tapegrad.ops.attention import scaled_dot_product_attention
from tapegrad.ops.broadcasting import expand, unsqueeze
from tapegrad.ops.casts import cast
from tapegrad.ops.composite import linear
from tapegrad.ops.concat import cat
from tapegrad.ops.dropout import dropout
from tapegrad.ops.fill import zeros
from tapegrad.ops.linalg import matmul
from tapegrad.ops.movement import reshape
from tapegrad.ops.padding import constant_pad_nd
from tapegrad.ops.permutations import permute, transpose
from tapegrad.ops.reductions import mean
from tapegrad.ops.splitting import chunk
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.tensor import Tensor, from_array

_CALL = "multi_head_attention_forward"


def _needs(holds: bool, words: str) -> None:
    """Raise PyTorch's exception for arguments that do not fit."""
    if not holds:
        raise AssertionError(f"{words} in {_CALL}()")


# Masks -------------------------------------------------------------------------------------------------------------


def _added(mask: Any, name: str, dtype: np.dtype) -> Tensor | None:
    """Return a mask as numbers that are added to scores: of bools, true stands for what takes no part."""
    if mask is None:
        return None
    own = as_operand(mask, _CALL, name, 1)
    _needs(own.dtype.kind in "bf", f"only bool and floating types of {name} are supported")
    return from_array(np.where(own._data, -np.inf, 0.0).astype(dtype)) if own.dtype.kind == "b" else cast(own, dtype)


def _checked(mask: Tensor | None, heads: int, n: int, length: int, source: int) -> Tensor | None:
    """Return a mask of pairs as (1 or n * heads, length, source)."""
    if mask is None:
        return None
    right = (length, source) if mask.ndim == 2 else (n * heads, length, source)
    if mask.shape != right:
        raise RuntimeError(f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {right}.")
    return unsqueeze(mask, 0) if mask.ndim == 2 else mask


def _merged(mask: Tensor | None, padding: Tensor | None, heads: int, n: int, source: int) -> Tensor | None:
    """Return the sum of the mask of pairs and that of keys, (n, source)."""
    if padding is None:
        return mask
    _needs(padding.shape == (n, source), f"Expected key_padded_mask.shape to be {(n, source)}, but got {padding.shape}")
    each = reshape(expand(reshape(padding, (n, 1, 1, source)), (n, heads, 1, source)), (n * heads, 1, source))
    return each if mask is None else add(mask, each)


# Attention ---------------------------------------------------------------------------------------------------------


def _by_numpy(
    query: Any, key: Any, value: Any, weight: Any, bias: Any, out_weight: Any, out_bias: Any,
    bias_k: Any = None, bias_v: Any = None, attn_mask: Any = None, key_padding_mask: Any = None,
    add_zero_attn: bool = False, **rest: Any,
) -> Any:  # fmt: skip
    e = query.shape[-1]
    q, k, v = (own @ weight[i * e : i * e + e].T + bias[i * e : i * e + e] for i, own in enumerate((query, key, value)))
    mask = np.zeros((*q.shape[1:-1], q.shape[0], k.shape[0]), q.dtype)
    mask = mask if attn_mask is None else np.where(attn_mask, -np.inf, mask) if attn_mask.dtype == bool else (
        mask + attn_mask)  # fmt: skip
    mask = mask if key_padding_mask is None else np.where(key_padding_mask[..., None, :], -np.inf, mask)
    more = [] if bias_k is None else [(bias_k, bias_v)]
    for own_k, own_v in more + [(0.0, 0.0)] * add_zero_attn:
        k, v = (np.concatenate([own, np.zeros_like(own[:1]) + end]) for own, end in ((k, own_k), (v, own_v)))
        mask = np.concatenate([mask, np.zeros_like(mask[..., :1])], -1)
    heads = []
    for i in range(0, e, e // 2):
        scores = np.einsum("l...e,s...e->...ls", q[..., i : i + e // 2], k[..., i : i + e // 2]) / math.sqrt(e // 2)
        powers = np.exp(scores + mask)
        heads.append(np.einsum("...ls,s...e->l...e", powers / powers.sum(-1, keepdims=True), v[..., i : i + e // 2]))
    return (np.concatenate(heads, -1) @ out_weight.T + out_bias).astype(query.dtype)


def _of_samples(
    function: Any, query: Any, key: Any, value: Any, weight: Any, bias: Any, out_weight: Any, out_bias: Any,
    bias_k: Any = None, bias_v: Any = None, add_zero_attn: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Return the result, without the weights, of two heads."""
    return function(
        query, key, value, query.shape[-1], 2, weight, bias, bias_k, bias_v, add_zero_attn, 0.0, out_weight, out_bias,
        **options,
    )[0]  # fmt: skip


_SHAPES = ((12, 4), (12,), (4, 4), (4,))


@public(namespaces=(FUNCTIONAL,))
@composite(
    (
        Sample(((2, 2, 4), (3, 2, 4), (3, 2, 4), *_SHAPES), {"key_padding_mask": np.eye(2, 3, 1) > 0}),
        Sample(((2, 4), (3, 4), (3, 4), *_SHAPES), {"attn_mask": np.eye(2, 3) / 2}),
        Sample(((2, 1, 4), (3, 1, 4), (3, 1, 4), *_SHAPES, (1, 1, 4), (1, 1, 4)), {
            "add_zero_attn": True, "attn_mask": np.eye(2, 3) > 0, "need_weights": False,
        }),
    ),
    _by_numpy, real_only=True, call=_of_samples, domain=(-1.0, 1.0), kinks=(),
)  # fmt: skip
def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of several heads: `scaled_dot_product_attention` of parts of projected queries, keys and values.

    Parameters
    ----------
    query : Tensor or array, (l, n, e) or (l, e)
    key, value : Tensor or array, (s, n, e) or (s, e)
    embed_dim_to_check : int
        e; a multiple of the number of heads.
    num_heads : int
    in_proj_weight, in_proj_bias : Tensor or array, (3 e, e) and (3 e,)
        Of the projections of queries, keys and values, in this order; the bias may be None.
    bias_k, bias_v : Tensor or array, (1, 1, e), or None
        A further key and value.
    add_zero_attn : bool
        A further key and value of zeros.
    dropout_p : float
        The probability with which a weight is set to 0 if `training`.
    out_proj_weight, out_proj_bias : Tensor or array, (e, e) and (e,)
        Of the projection of the result.
    training : bool
    key_padding_mask : Tensor or array, (n, s) or (s,), optional
        Of bools: the keys that take no part; of numbers: what is added to the scores.
    need_weights : bool
        Whether to return the weights of the values.
    attn_mask : Tensor or array, (l, s) or (n * heads, l, s), optional
        The same for pairs of a query and a key.
    use_separate_proj_weight : bool
        Take the weights of the projections from the next three, and `in_proj_bias`.
    q_proj_weight, k_proj_weight, v_proj_weight : Tensor or array, optional
    static_k, static_v : Tensor or array, (n * heads, s, e / heads), optional
        What is taken in place of projected keys and values.
    average_attn_weights : bool
        Return the mean of the weights over heads.
    is_causal : bool
        That `attn_mask` lets the query i take part in the keys up to i.

    Returns
    -------
    attn_output : Tensor
        Of the shape of `query`.
    attn_output_weights : Tensor or None
        (n, l, s), or (n, heads, l, s); without n as the operands.

    Raises
    ------
    AssertionError, RuntimeError
        If shapes, or the arguments that are given, do not fit.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x, w = tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.eye(2)
    >>> out, weights = tg.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 2, 1, tg.cat([tg.zeros(4, 2), w]), None, None, None, False, 0.0, w, None
    ... )
    >>> out
    tensor([[2., 3.],
            [2., 3.]])
    >>> weights
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    q, k, v = (
        as_operand(own, _CALL, name, place)
        for place, (name, own) in enumerate((("query", query), ("key", key), ("value", value)), 1)
    )
    _needs(q.ndim in (2, 3), f"query should be unbatched 2D or batched 3D tensor but received {q.ndim}-D query tensor")
    batched = q.ndim == 3
    what = "batched (3-D)" if batched else "unbatched (2-D)"
    _needs(
        k.ndim == v.ndim == q.ndim,
        f"For {what} `query`, expected `key` and `value` to be {q.ndim}-D but found {k.ndim}-D and {v.ndim}-D tensors "
        "respectively",
    )
    padding, mask = _added(key_padding_mask, "key_padding_mask", q.dtype), _added(attn_mask, "attn_mask", q.dtype)
    for name, own, dims in (("key_padding_mask", padding, (q.ndim - 1,)), ("attn_mask", mask, (2, 3))):
        _needs(
            own is None or own.ndim in dims,
            f"For {what} `query`, expected `{name}` to be `None` or {' or '.join(f'{n}-D' for n in dims)} but found "
            f"{own.ndim if own is not None else 0}-D tensor instead",
        )
    if is_causal and attn_mask is None:
        raise RuntimeError(f"Need attn_mask if specifying the is_causal hint of {_CALL}().")
    if not batched:
        q, k, v = (unsqueeze(own, 1) for own in (q, k, v))
        padding = None if padding is None else unsqueeze(padding, 0)
    length, n, e = q.shape
    size = e // num_heads
    _needs(e == embed_dim_to_check, f"was expecting embedding dimension of {embed_dim_to_check}, but got {e}")
    _needs(size * num_heads == e, f"embed_dim {e} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        _needs(k.shape[:2] == v.shape[:2], f"key's sequence and batch dims {k.shape[:2]} do not match value's "
               f"{v.shape[:2]}")  # fmt: skip
        weights: Any = (q_proj_weight, k_proj_weight, v_proj_weight)
        for name, own in zip("qkv", weights, strict=True):
            _needs(own is not None, f"use_separate_proj_weight is True but {name}_proj_weight is None")
    else:
        _needs(k.shape == v.shape, f"key shape {k.shape} does not match value shape {v.shape}")
        _needs(in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
        weights = chunk(in_proj_weight, 3)
    biases: Any = (None,) * 3 if in_proj_bias is None else chunk(in_proj_bias, 3)
    q, k, v = (linear(own, w, b) for own, w, b in zip((q, k, v), weights, biases, strict=True))
    mask = _checked(mask, num_heads, n, length, k.shape[0])
    more = 0
    if bias_k is not None or bias_v is not None:
        _needs(bias_v is not None, "bias_k is set but bias_v is None")
        _needs(bias_k is not None, "bias_v is set but bias_k is None")
        _needs(static_k is None, "bias cannot be added to static key.")
        _needs(static_v is None, "bias cannot be added to static value.")
        k, v = (cat([own, expand(bias, (1, n, e))]) for own, bias in ((k, bias_k), (v, bias_v)))
        more = 1

    def of_heads(x: Tensor) -> Tensor:
        # (length, n, e) -> (n * heads, length, size)
        return transpose(reshape(x, (x.shape[0], n * num_heads, size)), 0, 1)

    q = of_heads(q)
    k, v = (
        of_heads(own) if static is None else _static(static, name, n * num_heads, size)
        for own, static, name in ((k, static_k, "static_k"), (v, static_v, "static_v"))
    )
    if add_zero_attn:
        zero = zeros(n * num_heads, 1, size, dtype=q.dtype)
        k, v, more = cat([k, zero], 1), cat([v, zero], 1), more + 1
    if more:
        mask, padding = (None if own is None else constant_pad_nd(own, (0, more)) for own in (mask, padding))
    source = k.shape[1]
    mask = _merged(mask, padding, num_heads, n, source)
    p = dropout_p if training else 0.0
    of_weights = None
    if need_weights:
        scores = matmul(mul(q, math.sqrt(1 / size)), transpose(k, -1, -2))
        of_weights = softmax(scores if mask is None else add(mask, scores), -1)
        of_weights = dropout(of_weights, p) if p > 0 else of_weights
        out = matmul(of_weights, v)
        of_weights = reshape(of_weights, (n, num_heads, length, source))
        of_weights = mean(of_weights, 1) if average_attn_weights else of_weights
        of_weights = of_weights if batched else of_weights[0]
    else:
        out = scaled_dot_product_attention(q, k, v, mask, p)
    # (n * heads, length, size) -> (length, n, e)
    out = reshape(permute(out, (1, 0, 2)), (length, n, e))
    out = linear(out if batched else out[:, 0], out_proj_weight, out_proj_bias)
    return out, of_weights


def _static(x: Any, name: str, count: int, size: int) -> Tensor:
    own = as_operand(x, _CALL, name, 1)
    _needs(own.shape[0] == count, f"expecting {name}.size(0) of {count}, but got {own.shape[0]}")
    _needs(own.shape[2] == size, f"expecting {name}.size(2) of {size}, but got {own.shape[2]}")
    return own
