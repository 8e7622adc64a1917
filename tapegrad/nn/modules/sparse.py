"""Tables of vectors, of which indices choose rows."""

from __future__ import annotations

from typing import Any

from tapegrad.nn import functional, init
from tapegrad.nn.modules.linear import parameter
from tapegrad.nn.modules.module import Module
from tapegrad.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """What `Embedding` and `EmbeddingBag` share."""

    weight: Parameter

    def _make(self, rows: int, width: int, padding_idx: int | None, weight: Any, device: Any, dtype: Any) -> None:
        if padding_idx is not None:
            if not -rows <= padding_idx < rows:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= rows
        self.num_embeddings, self.embedding_dim, self.padding_idx = rows, width, padding_idx
        if weight is None:
            self.weight = parameter(rows, width, device=device, dtype=dtype)
            self.reset_parameters()
        else:
            if weight.shape != (rows, width):
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(weight)

    def reset_parameters(self) -> None:
        """Draw the table from the standard normal distribution; the row of the padding is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.data[self.padding_idx].fill_(0)

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **options: Any) -> Any:
        """Return a layer with a table that is there already; `freeze` says that it is not trained."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        layer: Any = cls(*embeddings.shape, _weight=embeddings, **options)
        layer.weight.requires_grad_(not freeze)
        return layer

    def _shown(self, *names: str) -> str:
        """Return the sizes, and those options that are not as by default."""
        own = self.__dict__
        more = [
            f"{name}={own[name]!r}"
            for name in names
            if own[name] is not None and own[name] is not False and (name != "norm_type" or own[name] != 2)
        ]
        return ", ".join([str(self.num_embeddings), str(self.embedding_dim), *more])


class Embedding(_Table):
    """`embedding`: rows of a table that indices choose.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        The number of rows and their length.
    padding_idx : int, optional
        The row that is zero at first and gets no gradient.
    max_norm : float, optional
        Longer rows are made so short when they are chosen.
    norm_type : float
    scale_grad_by_freq : bool
        Divide the gradient of a row by how often it was chosen.
    sparse : bool
        Accepted; gradients are dense.

    Examples
    --------
    >>> import tapegrad as tg
    >>> table = tg.nn.Embedding(10, 3)
    >>> table(tg.tensor([[1, 2], [4, 4]])).shape
    (2, 2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.sparse = sparse
        self._make(num_embeddings, embedding_dim, padding_idx, _weight, device, dtype)
        self.weight.requires_grad_(not _freeze)

    def forward(self, input: Any) -> Any:
        return functional.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq
        )

    def extra_repr(self) -> str:
        return self._shown("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")


class EmbeddingBag(_Table):
    """`embedding_bag`: sums, means or largest elements of rows of a table that bags of indices choose.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
    max_norm, norm_type, scale_grad_by_freq, sparse, padding_idx
        As in `Embedding`; a row of padding is left out.
    mode : {"mean", "sum", "max"}
    include_last_offset : bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> bags = tg.nn.EmbeddingBag(10, 3, mode="sum")
    >>> bags(tg.tensor([[1, 2], [4, 4]])).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset
        self._make(num_embeddings, embedding_dim, padding_idx, _weight, device, dtype)

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        return functional.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, False,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return self._shown("max_norm", "norm_type", "scale_grad_by_freq", "mode", "padding_idx")
