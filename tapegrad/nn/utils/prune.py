"""Pruning: elements of parameters, or slices of them, are set to zero and stay so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tapegrad.nn.modules.hooks import FORWARD_PRE
from tapegrad.nn.modules.module import Module
from tapegrad.nn.utils.convert_parameters import parameters_to_vector
from tapegrad.nn.utils.pruning_kinds import (
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    RandomStructured,
    RandomUnstructured,
)
from tapegrad.nn.utils.pruning_methods import BasePruningMethod, PruningContainer, forget, hook_of
from tapegrad.ops.fill import ones_like
from tapegrad.tensor import Tensor

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip


def identity(module: Module, name: str) -> Module:
    """Give a parameter a mask of ones; see `custom_from_mask`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.utils.prune.identity(tg.nn.Linear(2, 1), "weight").weight_mask
    tensor([[1., 1.]])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune elements at random; see `l1_unstructured`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.utils.prune.random_unstructured(tg.nn.Linear(3, 4), "weight", amount=3)
    >>> layer.weight_mask.sum()
    tensor(9.)
    """
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prune the elements of a parameter that have the least absolute values.

    Parameters
    ----------
    module : Module
    name : str
        Of the parameter, e.g. "weight".
    amount : int or float
        How many elements, or which part of all.
    importance_scores : Tensor, optional
        Of the parameter's shape: those with the least scores are pruned.

    Returns
    -------
    Module
        The same.

    Raises
    ------
    TypeError, ValueError
        If `amount` is no number, or out of range.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.utils.prune.l1_unstructured(tg.nn.Linear(4, 1), "weight", amount=3)
    >>> layer.weight_mask.sum().item(), sorted(name for name, _ in layer.named_parameters())
    (1.0, ['bias', 'weight_orig'])
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune slices along a dimension at random; see `ln_structured`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.utils.prune.random_structured(tg.nn.Linear(3, 4), "weight", amount=1, dim=1)
    >>> layer.weight_mask.sum()
    tensor(8.)
    """
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: float,
    n: float | str,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prune the slices along dimension `dim` that have the least norms of order `n`; see `l1_unstructured`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.utils.prune.ln_structured(tg.nn.Linear(3, 4), "weight", amount=2, n=2, dim=0)
    >>> layer.weight_mask.sum()
    tensor(6.)
    """
    LnStructured.apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter where a mask is 0; see `l1_unstructured`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.utils.prune.custom_from_mask(tg.nn.Linear(2, 1), "weight", tg.tensor([[1.0, 0.0]]))
    >>> layer.weight[0, 1].item() == 0
    True
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: Callable[..., BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one.

    Parameters
    ----------
    parameters : iterable of (Module, str)
    pruning_method : subclass of BasePruningMethod
        One that is "unstructured".
    importance_scores : dict, optional
        Scores of some of the parameters.
    **kwargs
        Of the method, e.g. ``amount``.

    Raises
    ------
    TypeError
        If `parameters` or `importance_scores` are of another type, or the method is of another kind.

    Examples
    --------
    >>> import tapegrad as tg
    >>> first, last = tg.nn.Linear(2, 3), tg.nn.Linear(3, 1)
    >>> prune = tg.nn.utils.prune
    >>> prune.global_unstructured([(first, "weight"), (last, "weight")], prune.L1Unstructured, amount=5)
    >>> int(first.weight_mask.sum() + last.weight_mask.sum())
    4
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    if not isinstance(importance_scores, (dict, type(None))):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    own = [(module, name, getattr(module, name)) for module, name in parameters]
    scores = importance_scores or {}
    values = parameters_to_vector([scores.get((module, name), value).detach() for module, name, value in own])
    before = parameters_to_vector([getattr(module, f"{name}_mask", ones_like(value)) for module, name, value in own])
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of '
            f"type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "all"
    mask, start = PruningContainer(method).compute_mask(values, before.detach()), 0
    for module, name, value in own:
        custom_from_mask(module, name, mask[start : start + value.numel()].view_as(value))
        start += value.numel()


def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter a parameter again, with zeros where it was pruned.

    Raises
    ------
    ValueError
        If it is not pruned.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.utils.prune.l1_unstructured(tg.nn.Linear(4, 1), "weight", amount=3)
    >>> layer = tg.nn.utils.prune.remove(layer, "weight")  # the zeros stay
    >>> [name for name, _ in layer.named_parameters()], int((layer.weight != 0).sum())
    (['bias', 'weight'], 1)
    """
    hook = hook_of(module, name)
    if hook is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    hook.remove(module)
    forget(module, hook)
    return module


def is_pruned(module: Module) -> bool:
    """Whether a parameter of a module, or of one inside of it, is pruned.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.Linear(2, 1)
    >>> tg.nn.utils.prune.is_pruned(layer), tg.nn.utils.prune.is_pruned(tg.nn.utils.prune.identity(layer, "weight"))
    (False, True)
    """
    hooks = (entry.hook for own in module.modules() for entry in own._entries(FORWARD_PRE))
    return any(isinstance(hook, BasePruningMethod) for hook in hooks)
