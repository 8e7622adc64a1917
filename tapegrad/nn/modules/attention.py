"""Attention of several heads, with its projections."""

from __future__ import annotations

from typing import Any

from tapegrad.nn import functional, init
from tapegrad.nn.modules.linear import Linear, parameter
from tapegrad.nn.modules.module import Module

__all__ = ["MultiheadAttention", "NonDynamicallyQuantizableLinear"]


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear`, under the name that PyTorch shows.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.NonDynamicallyQuantizableLinear(3, 2)(tg.ones(4, 3)).shape
    (4, 2)
    """


class MultiheadAttention(Module):
    """`multi_head_attention_forward`: attention of several heads to projected keys and values.

    Parameters
    ----------
    embed_dim, num_heads : int
        The length of vectors, and into how many parts they are divided.
    dropout : float
        The probability with which a weight becomes zero in training.
    bias : bool
    add_bias_kv : bool
        Whether there are a further key and value, which are learnt.
    add_zero_attn : bool
        Whether there are a further key and value of zeros.
    kdim, vdim : int, optional
        The lengths of keys and values; default `embed_dim`.
    batch_first : bool
        Whether operands are (items, length, features), not (length, items, features).

    Raises
    ------
    ValueError, AssertionError
        If lengths are not positive, or `embed_dim` cannot be divided so.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.ones(5, 2, 4)
    >>> output, weights = tg.nn.MultiheadAttention(4, 2)(x, x, x)
    >>> output.shape, weights.shape
    ((5, 2, 4), (2, 5, 5))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim, self.kdim, self.vdim = embed_dim, kdim or embed_dim, vdim or embed_dim
        self.num_heads, self.dropout, self.batch_first = num_heads, dropout, batch_first
        self.head_dim, self.add_zero_attn = embed_dim // num_heads, add_zero_attn
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        projections = {
            "in_proj_weight": (3 * embed_dim, embed_dim), "q_proj_weight": (embed_dim, embed_dim),
            "k_proj_weight": (embed_dim, self.kdim), "v_proj_weight": (embed_dim, self.vdim),
        }  # fmt: skip
        for name in sorted(projections, key=lambda name: (name == "in_proj_weight") != self._qkv_same_embed_dim):
            wanted = (name == "in_proj_weight") == self._qkv_same_embed_dim
            made = parameter(*projections[name], device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, made)
        made = parameter(3 * embed_dim, device=device, dtype=dtype) if bias else None
        self.register_parameter("in_proj_bias", made)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        self.bias_k = parameter(1, 1, embed_dim, device=device, dtype=dtype) if add_bias_kv else None
        self.bias_v = parameter(1, 1, embed_dim, device=device, dtype=dtype) if add_bias_kv else None
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name, param in self.named_parameters(recurse=False):
            if name in ("bias_k", "bias_v"):
                init.xavier_normal_(param)
            elif name == "in_proj_bias":
                init.zeros_(param)
            else:
                init.xavier_uniform_(param)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        swapped = self.batch_first and query.ndim == 3
        q, k, v = (own.transpose(0, 1) if swapped else own for own in (query, key, value))
        own = self.__dict__
        result, weights = functional.multi_head_attention_forward(
            q, k, v, self.embed_dim, self.num_heads, own["in_proj_weight"], own["in_proj_bias"], self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=own["q_proj_weight"],
            k_proj_weight=own["k_proj_weight"], v_proj_weight=own["v_proj_weight"],
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return (result.transpose(0, 1) if swapped else result), weights
