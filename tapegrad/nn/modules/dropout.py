"""Dropout: elements, or whole channels, become zero at random in training."""

from __future__ import annotations

from typing import Any

from tapegrad.nn.modules.layer import Layer

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Dropout(Layer, show="p inplace"):
    p: float = 0.5
    inplace: bool = False

    def _setup(self) -> None:
        if not 0 <= self.p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {self.p}")

    def _options(self) -> dict[str, Any]:
        return {"p": self.p, "training": self.training, "inplace": self.inplace}


class Dropout(_Dropout, function="dropout"):
    """`dropout` of elements.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.Dropout(0.5).eval()
    >>> layer(tg.ones(3))
    tensor([1., 1., 1.])
    """


class Dropout1d(_Dropout, function="dropout1d"):
    """`dropout` of whole channels of signals.

    Examples
    --------
    >>> import tapegrad as tg
    >>> bool((tg.nn.Dropout1d(1.0)(tg.ones(2, 3, 4)) == 0).all())
    True
    """


class Dropout2d(_Dropout, function="dropout2d"):
    """`dropout` of whole channels of images.

    Examples
    --------
    >>> import tapegrad as tg
    >>> bool((tg.nn.Dropout2d(1.0)(tg.ones(2, 3, 4, 4)) == 0).all())
    True
    """


class Dropout3d(_Dropout, function="dropout3d"):
    """`dropout` of whole channels of volumes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> bool((tg.nn.Dropout3d(1.0)(tg.ones(2, 3, 4, 4, 4)) == 0).all())
    True
    """


class AlphaDropout(_Dropout, function="alpha_dropout"):
    """`alpha_dropout`, for `SELU`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.AlphaDropout(0.2).eval()(tg.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """


class FeatureAlphaDropout(_Dropout, function="feature_alpha_dropout"):
    """`alpha_dropout` of whole channels.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.FeatureAlphaDropout(0.2).eval()(tg.tensor([[1.0, 2.0]]))
    tensor([[1., 2.]])
    """
