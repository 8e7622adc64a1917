"""How parameters are pruned: by masks, which are multiplied before each forward.

A pruned parameter `name` is the parameter ``name_orig`` and the buffer ``name_mask``; `name` itself is their product, a
plain attribute. Pruned again, a mask is made of what the mask before has left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

from tapegrad.nn.modules.hooks import FORWARD_PRE
from tapegrad.nn.modules.module import Module
from tapegrad.ops.fill import ones_like, zeros_like
from tapegrad.ops.older import norm
from tapegrad.ops.random import rand, rand_like
from tapegrad.ops.ranks import kthvalue
from tapegrad.ops.topk import topk
from tapegrad.tensor import Tensor


class BasePruningMethod(ABC):
    """A way to prune a parameter, and the hook that does it: a subclass says which mask a tensor gets.

    ``PRUNING_TYPE`` says what a further mask looks at: "unstructured" (the elements that are left), "structured" (the
    slices that are left, along `dim`) or "global" (all).
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        """Compute the pruned values before a forward."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask of a tensor that has a mask already."""

    def apply_mask(self, module: Module) -> Tensor:
        """Return the product of the parameter and its mask."""
        original, mask = (getattr(module, self._tensor_name + suffix) for suffix in ("_orig", "_mask"))
        product: Tensor = mask.to(original.dtype) * original
        return product

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter of a module, and do so before each of its forwards.

        Parameters
        ----------
        module : Module
        name : str
        *args, **kwargs
            Of the method.
        importance_scores : Tensor, optional
            Of the parameter's shape: the method looks at them in its place.
        """
        before = hook_of(module, name)
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        original = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}; got "
                f"{list(importance_scores.shape)}"
            )
        scores = original if importance_scores is None else importance_scores
        default = ones_like(original) if before is None else getattr(module, f"{name}_mask")
        if before is not None:
            container = before if isinstance(before, PruningContainer) else PruningContainer(before)
            container.add_pruning_method(method)
            method = container
        mask = method.compute_mask(scores.detach(), default_mask=default.detach().clone())
        if before is None:
            delattr(module, name)
            module.register_parameter(f"{name}_orig", original)
        else:
            forget(module, before)
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """Return a tensor pruned by this method, of which nothing is kept."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        return t * self.compute_mask(scores, ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruned values those of the parameter."""
        name = self._tensor_name
        pruned, original = self.apply_mask(module).detach(), getattr(module, f"{name}_orig")
        for suffix in ("", "_orig", "_mask"):
            delattr(module, name + suffix)
        original.data = pruned
        module.register_parameter(name, original)


def hook_of(module: Module, name: str) -> BasePruningMethod | None:
    """Return what prunes a parameter, None if it is not pruned."""
    hooks = (entry.hook for entry in module._entries(FORWARD_PRE))
    return next((own for own in hooks if isinstance(own, BasePruningMethod) and own._tensor_name == name), None)


def forget(module: Module, hook: BasePruningMethod) -> None:
    """Let a module no longer call a hook."""
    table = module._hooks[FORWARD_PRE]
    for key in [key for key, entry in table.items() if entry.hook is hook]:
        del table[key]


class PruningContainer(BasePruningMethod):
    """Several methods that prune one parameter, one after the other."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method, of the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask of the last method, of what the mask before has left."""
        method, left = self[-1], default_mask == 1
        if method.PRUNING_TYPE == "structured":
            dim = method.dim % t.ndim  # type: ignore[attr-defined]
            rest = tuple(own for own in range(t.ndim) if own != dim)
            left = _along(t.ndim, dim, default_mask.sum(rest) != 0)
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.ndim
        elif method.PRUNING_TYPE != "unstructured":
            raise AttributeError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.to(t.dtype, copy=True)
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(t.dtype)
        return mask


def _along(ndim: int, dim: int, index: Any) -> tuple[Any, ...]:
    return tuple([index if own == dim % ndim else slice(None) for own in range(ndim)])


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
        mask[_along(t.ndim, self.dim, self.kept(t, count))] = 1
        return mask * default_mask.to(t.dtype)


# The methods ---------------------------------------------------------------------------------------------------------


class Identity(BasePruningMethod):
    """Prunes nothing: the parameter gets a mask of ones."""

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
    """Prunes elements at random."""

    def least(self, t: Tensor, count: int) -> Tensor:
        """Return the numbers of random elements."""
        return topk(rand_like(t).view(-1), count).indices  # type: ignore[no-any-return]


class L1Unstructured(_Elements):
    """Prunes the elements of the least absolute values."""

    def least(self, t: Tensor, count: int) -> Tensor:
        """Return the numbers of the least elements."""
        return topk(abs(t).reshape(-1), count, largest=False).indices  # type: ignore[no-any-return]


class RandomStructured(_Slices):
    """Prunes slices along a dimension at random."""

    def kept(self, t: Tensor, count: int) -> Any:
        """Return truth values, of which so many are false."""
        draws = rand(t.shape[self.dim])
        return draws > kthvalue(draws, count).values


class LnStructured(_Slices):
    """Prunes the slices along a dimension that have the least norms."""

    def __init__(self, amount: float, n: float | str, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def kept(self, t: Tensor, count: int) -> Any:
        """Return the numbers of the slices of the largest norms."""
        rest = tuple(own for own in range(t.ndim) if own != self.dim % t.ndim)
        norms = norm(t, p=self.n, dim=rest)
        return topk(norms, t.shape[self.dim] - count).indices


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that is given."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the product of both masks."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError("default_mask and mask should have the same shape")
        return default_mask * self.mask.to(default_mask.dtype)
