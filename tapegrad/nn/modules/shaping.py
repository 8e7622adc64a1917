"""Layers that arrange elements anew, resize images, or compare vectors."""

from __future__ import annotations

from typing import Any

from tapegrad.nn.modules.layer import Layer

__all__ = [
    "ChannelShuffle", "CosineSimilarity", "Flatten", "Fold", "LocalResponseNorm", "PairwiseDistance", "PixelShuffle",
    "PixelUnshuffle", "Unflatten", "Unfold", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d",
]  # fmt: skip


class Flatten(Layer):
    """`flatten` of all dimensions but the first.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Flatten()(tg.ones(2, 3, 4)).shape
    (2, 12)
    """

    start_dim: int = 1
    end_dim: int = -1

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Layer):
    """`unflatten`: one dimension becomes several.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Unflatten(1, (3, 4))(tg.ones(2, 12)).shape
    (2, 3, 4)
    """

    dim: int
    unflattened_size: Any

    def _setup(self) -> None:
        for place, length in enumerate(self.unflattened_size):
            if not isinstance(length, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(length).__name__} at pos "
                    f"{place}"
                )

    def forward(self, input: Any) -> Any:
        return input.unflatten(self.dim, self.unflattened_size)


class PixelShuffle(Layer, function="pixel_shuffle"):
    """`pixel_shuffle`: channels become pixels.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.PixelShuffle(2)(tg.ones(1, 4, 3, 3)).shape
    (1, 1, 6, 6)
    """

    upscale_factor: int


class PixelUnshuffle(Layer, function="pixel_unshuffle"):
    """`pixel_unshuffle`: pixels become channels.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.PixelUnshuffle(2)(tg.ones(1, 1, 4, 6)).shape
    (1, 4, 2, 3)
    """

    downscale_factor: int


class ChannelShuffle(Layer, function="channel_shuffle"):
    """`channel_shuffle`: channels in another order.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ChannelShuffle(2)(tg.arange(4.0).reshape(1, 4, 1, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    groups: int


class Fold(Layer, function="fold"):
    """`fold`: images to which columns are added where `unfold` took them.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Fold((2, 3), kernel_size=2)(tg.ones(1, 4, 2))
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])
    """

    output_size: Any
    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1


class Unfold(Layer, function="unfold"):
    """`unfold`: patches of images as columns.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Unfold(kernel_size=2)(tg.ones(1, 1, 3, 3)).shape
    (1, 4, 4)
    """

    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1


class Upsample(Layer, function="interpolate"):
    """`interpolate` to another size.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Upsample(scale_factor=2)(tg.tensor([[[1.0, 3.0]]]))
    tensor([[[1., 1., 3., 3.]]])
    """

    size: Any = None
    scale_factor: Any = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None

    def _setup(self) -> None:
        factor = self.scale_factor
        if factor is not None:
            self.scale_factor = tuple(map(float, factor)) if isinstance(factor, tuple) else float(factor)

    def extra_repr(self) -> str:
        name = "size" if self.scale_factor is None else "scale_factor"
        return f"{name}={self.__dict__[name]!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`interpolate` images, by the nearest pixel.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.UpsamplingNearest2d(scale_factor=2)(tg.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1., 1., 2., 2.],
              [1., 1., 2., 2.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """`interpolate` images, bilinearly, so that corners stay.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.UpsamplingBilinear2d(size=(2, 3))(tg.tensor([[[[0.0, 1.0], [2.0, 3.0]]]]))
    tensor([[[[0.0000, 0.5000, 1.0000],
              [2.0000, 2.5000, 3.0000]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class CosineSimilarity(Layer, function="cosine_similarity", show=""):
    """`cosine_similarity` of vectors along a dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.CosineSimilarity(dim=0)(tg.tensor([1.0, 0.0]), tg.tensor([3.0, 4.0]))
    tensor(0.6000)
    """

    dim: int = 1
    eps: float = 1e-8


class PairwiseDistance(Layer, function="pairwise_distance", show=""):
    """`pairwise_distance` of vectors.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.PairwiseDistance()(tg.zeros(1, 2), tg.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """

    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False


class LocalResponseNorm(Layer, function="local_response_norm"):
    """`local_response_norm` over neighbouring channels.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LocalResponseNorm(2)(tg.ones(1, 3, 4)).shape
    (1, 3, 4)
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
