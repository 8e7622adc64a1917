"""What pruning takes away: elements or slices, at random or the smallest, or what a mask says."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from tapegrad.nn.utils.pruning_methods import BasePruningMethod, along
from tapegrad.ops.fill import zeros_like
from tapegrad.ops.older import norm
from tapegrad.ops.random import rand, rand_like
from tapegrad.ops.ranks import kthvalue
from tapegrad.ops.topk import topk
from tapegrad.tensor import Tensor

# How many ------------------------------------------------------------------------------------------------------------


class _Amount(BasePruningMethod):
    """A method that prunes so many elements or slices, or such a part of them."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        self.is_count = isinstance(amount, Integral)
        if not isinstance(amount, (Real, float)):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if amount < 0 or (not self.is_count and amount > 1):
            raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
        self.amount = amount

    def count(self, size: int) -> int:
        """Return how many of so many are pruned."""
        if not self.is_count:
            return round(self.amount * size)
        if self.amount > size:
            raise ValueError(f"amount={self.amount} should be smaller than the number of parameters to prune={size}")
        return int(self.amount)


class _Slices(_Amount):
    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def kept(self, t: Tensor, count: int) -> Any:
        """Return which slices are kept when so many are pruned."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return a mask that is zero for whole slices."""
        if t.ndim <= 1:
            raise ValueError(
                f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} "
                f"with {t.ndim} dims"
            )
        if self.dim >= t.ndim:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        count = self.count(t.shape[self.dim])
        if not count:
            return default_mask
        mask = zeros_like(t)
        mask[along(t.ndim, self.dim, self.kept(t, count))] = 1
        return mask * default_mask.to(t.dtype)


# The methods ---------------------------------------------------------------------------------------------------------


class Identity(BasePruningMethod):
    """Prunes nothing: the parameter gets a mask of ones.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.Linear(2, 1)
    >>> _ = tg.nn.utils.prune.Identity.apply(layer, "weight")
    >>> layer.weight_mask
    tensor([[1., 1.]])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask that there is."""
        return default_mask


class _Elements(_Amount):
    def least(self, t: Tensor, count: int) -> Tensor:
        """Return the numbers of the elements to be pruned."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return a mask that is zero for single elements."""
        count, mask = self.count(t.numel()), default_mask.clone()
        if count:
            mask.view(-1)[self.least(t, count)] = 0
        return mask


class RandomUnstructured(_Elements):
    """Prunes elements at random.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.Linear(3, 4)
    >>> _ = tg.nn.utils.prune.RandomUnstructured.apply(layer, "weight", amount=0.25)
    >>> layer.weight_mask.sum()
    tensor(9.)
    """

    def least(self, t: Tensor, count: int) -> Tensor:
        """Return the numbers of random elements."""
        return topk(rand_like(t).view(-1), count).indices  # type: ignore[no-any-return]


class L1Unstructured(_Elements):
    """Prunes the elements of the least absolute values.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.Linear(4, 1)
    >>> _ = tg.nn.utils.prune.L1Unstructured.apply(layer, "weight", amount=3)
    >>> layer.weight_mask.sum()
    tensor(1.)
    """

    def least(self, t: Tensor, count: int) -> Tensor:
        """Return the numbers of the least elements."""
        return topk(abs(t).reshape(-1), count, largest=False).indices  # type: ignore[no-any-return]


class RandomStructured(_Slices):
    """Prunes slices along a dimension at random.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.Linear(3, 4)
    >>> _ = tg.nn.utils.prune.RandomStructured.apply(layer, "weight", amount=1, dim=1)  # a column
    >>> layer.weight_mask.sum()
    tensor(8.)
    """

    def kept(self, t: Tensor, count: int) -> Any:
        """Return truth values, of which so many are false."""
        draws = rand(t.shape[self.dim])
        return draws > kthvalue(draws, count).values


class LnStructured(_Slices):
    """Prunes the slices along a dimension that have the least norms.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.Linear(3, 4)
    >>> _ = tg.nn.utils.prune.LnStructured.apply(layer, "weight", amount=2, n=2, dim=0)  # two rows
    >>> layer.weight_mask.sum()
    tensor(6.)
    """

    def __init__(self, amount: float, n: float | str, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def kept(self, t: Tensor, count: int) -> Any:
        """Return the numbers of the slices of the largest norms."""
        rest = tuple(own for own in range(t.ndim) if own != self.dim % t.ndim)
        norms = norm(t, p=self.n, dim=rest)
        return topk(norms, t.shape[self.dim] - count).indices


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that is given.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.Linear(2, 1)
    >>> _ = tg.nn.utils.prune.CustomFromMask.apply(layer, "weight", mask=tg.tensor([[1.0, 0.0]]))
    >>> layer.weight[0, 1].item() == 0
    True
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the product of both masks."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError("default_mask and mask should have the same shape")
        return default_mask * self.mask.to(default_mask.dtype)
