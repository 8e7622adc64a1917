"""How parameters are pruned: by masks, which are multiplied before each forward.

A pruned parameter `name` is the parameter ``name_orig`` and the buffer ``name_mask``; `name` itself is their product, a
plain attribute. Pruned again, a mask is made of what the mask before has left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from tapegrad.nn.modules.hooks import FORWARD_PRE
from tapegrad.nn.modules.module import Module
from tapegrad.ops.fill import ones_like
from tapegrad.tensor import Tensor


class BasePruningMethod(ABC):
    """A way to prune a parameter, and the hook that does it: a subclass says which mask a tensor gets.

    ``PRUNING_TYPE`` says what a further mask looks at: "unstructured" (the elements that are left), "structured" (the
    slices that are left, along `dim`) or "global" (all).

    Examples
    --------
    >>> import tapegrad as tg
    >>> class Negative(tg.nn.utils.prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...
    ...     def compute_mask(self, t, default_mask):
    ...         return default_mask * (t >= 0)
    >>> layer = tg.nn.Linear(3, 2)
    >>> _ = Negative.apply(layer, "weight")
    >>> bool((layer.weight >= 0).all())
    True
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


def along(ndim: int, dim: int, index: Any) -> tuple[Any, ...]:
    """Return an index of one dimension, which takes all of the others."""
    return tuple([index if own == dim % ndim else slice(None) for own in range(ndim)])


def hook_of(module: Module, name: str) -> BasePruningMethod | None:
    """Return what prunes a parameter, None if it is not pruned."""
    hooks = (entry.hook for entry in module._entries(FORWARD_PRE))
    return next((own for own in hooks if isinstance(own, BasePruningMethod) and own._tensor_name == name), None)


def forget(module: Module, hook: BasePruningMethod) -> None:
    """Let a module no longer call a hook."""
    table = module._hooks[FORWARD_PRE]
    for key in [key for key, own in table.items() if own is hook]:
        del table[key]


class PruningContainer(BasePruningMethod):
    """Several methods that prune one parameter, one after the other.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.Linear(4, 1)
    >>> _ = tg.nn.utils.prune.l1_unstructured(layer, "weight", amount=1)
    >>> _ = tg.nn.utils.prune.l1_unstructured(layer, "weight", amount=1)
    >>> layer.weight_mask.sum()  # both times, by a container of the two
    tensor(2.)
    """

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
            left = along(t.ndim, dim, default_mask.sum(rest) != 0)
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.ndim
        elif method.PRUNING_TYPE != "unstructured":
            raise AttributeError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.to(t.dtype, copy=True)
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(t.dtype)
        return mask
