"""Transformers: layers of attention and of two linear layers, for each place of a sequence."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tapegrad.nn import functional, init
from tapegrad.nn.modules.attention import MultiheadAttention
from tapegrad.nn.modules.container import ModuleList
from tapegrad.nn.modules.dropout import Dropout
from tapegrad.nn.modules.linear import Linear
from tapegrad.nn.modules.module import Module
from tapegrad.nn.modules.normalization import LayerNorm
from tapegrad.ops.fill import full

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]  # fmt: skip

Activation = str | Callable[[Any], Any]


class _TransformerLayer(Module):
    """Blocks, each added to its input; a norm before each, or after."""

    _attentions: tuple[str, ...] = ("self_attn",)
    self_attn: Any
    multihead_attn: Any

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made))
        self.linear1 = Linear(d_model, dim_feedforward, bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **made)
        self.norm_first = norm_first
        places = range(1, 2 + len(self._attentions))
        for place in places:
            setattr(self, f"norm{place}", LayerNorm(d_model, layer_norm_eps, bias=bias, **made))
        for place in places:
            setattr(self, f"dropout{place}", Dropout(dropout))
        if isinstance(activation, str):
            if activation not in ("relu", "gelu"):
                raise RuntimeError(f"activation should be relu/gelu, not {activation}")
            activation = getattr(functional, activation)
        self.activation: Any = activation

    def _feed_forward(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _through(self, x: Any, *blocks: Callable[[Any], Any]) -> Any:
        """Return what comes out of the blocks: :math:`x + f(norm(x))`, or :math:`norm(x + f(x))`."""
        for place, block in enumerate(blocks, 1):
            norm, dropout = getattr(self, f"norm{place}"), getattr(self, f"dropout{place}")
            x = x + dropout(block(norm(x))) if self.norm_first else norm(x + dropout(block(x)))
        return x


def _attention(layer: Any, memory: Any, mask: Any, padding: Any, is_causal: bool) -> Callable[[Any], Any]:
    """Return the block of attention to a memory, by default to its input."""

    def block(x: Any) -> Any:
        keys = x if memory is None else memory
        return layer(
            x, keys, keys, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal
        )[0]  # fmt: skip

    return block


class TransformerEncoderLayer(_TransformerLayer):
    """Attention of a sequence to itself, and two linear layers (Vaswani et al., arXiv:1706.03762).

    Parameters
    ----------
    d_model, nhead, dim_feedforward : int
        The length of vectors, the number of heads, the length between the linear layers.
    dropout : float
    activation : {"relu", "gelu"} or callable
    layer_norm_eps : float
    batch_first : bool
    norm_first : bool
        Whether norms stand before the blocks, not behind them.
    bias : bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer(tg.ones(2, 5, 8)).shape
    (2, 5, 8)
    """

    def forward(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Any:
        attention = _attention(self.self_attn, None, src_mask, src_key_padding_mask, is_causal)
        return self._through(src, attention, self._feed_forward)


class TransformerDecoderLayer(_TransformerLayer):
    """Attention of a sequence to itself and to a memory, and two linear layers.

    Parameters
    ----------
    d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias
        As in `TransformerEncoderLayer`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> layer(tg.ones(2, 5, 8), tg.ones(2, 7, 8)).shape
    (2, 5, 8)
    """

    _attentions = "self_attn", "multihead_attn"

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        to_self = _attention(self.self_attn, None, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        to_memory = _attention(self.multihead_attn, memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        return self._through(tgt, to_self, to_memory, self._feed_forward)


class _Stack(Module):
    """Copies of a layer, one after the other, and a norm."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _through(self, x: Any, *args: Any, **masks: Any) -> Any:
        for layer in self.layers:
            x = layer(x, *args, **masks)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """Copies of an encoder layer, one after the other.

    Parameters
    ----------
    encoder_layer : Module
    num_layers : int
    norm : Module, optional
        For the result.
    enable_nested_tensor, mask_check : bool
        Accepted, and without meaning.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> tg.nn.TransformerEncoder(layer, 2)(tg.ones(2, 5, 8)).shape
    (2, 5, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool | None = None
    ) -> Any:
        return self._through(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))


class TransformerDecoder(_Stack):
    """Copies of a decoder layer, one after the other.

    Parameters
    ----------
    decoder_layer : Module
    num_layers : int
    norm : Module, optional
        For the result.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> decoder = tg.nn.TransformerDecoder(layer, num_layers=2)
    >>> decoder(tg.randn(3, 5, 8), tg.randn(3, 4, 8)).shape
    (3, 5, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        return self._through(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=bool(tgt_is_causal),
            memory_is_causal=memory_is_causal,
        )  # fmt: skip


class Transformer(Module):
    """An encoder of one sequence, and a decoder of another that attends to it (Vaswani et al., arXiv:1706.03762).

    Parameters
    ----------
    d_model, nhead, num_encoder_layers, num_decoder_layers : int
    custom_encoder, custom_decoder : Module, optional
        In place of those that are made.
    dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias
        As in `TransformerEncoderLayer`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> model = tg.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> model(tg.ones(2, 7, 8), tg.ones(2, 5, 8)).shape
    (2, 5, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = functional.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device,
            dtype,
        )  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*options), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*options), num_decoder_layers, norm()
        )
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        for param in self.parameters():
            if param.ndim > 1:
                init.xavier_uniform_(param)

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        dim = int(not self.batch_first)
        if src.ndim == 3 and src.shape[dim] != tgt.shape[dim]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """Return a mask that lets each place attend to itself and to those before: -inf above the diagonal."""
        return full((sz, sz), float("-inf"), dtype=dtype).triu(1)
