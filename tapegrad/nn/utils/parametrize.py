"""Parametrisations: a parameter of a module is computed from others by modules, whenever it is read."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tapegrad.modes import no_grad
from tapegrad.nn.modules.container import ModuleDict
from tapegrad.nn.modules.module import Module
from tapegrad.nn.parameter import Parameter
from tapegrad.nn.utils.parametrization_list import ParametrizationList, check_result, inverted, register
from tapegrad.tensor import Tensor

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip


class _Cache:
    """What parametrised tensors were computed as, while `cached` is active."""

    depth = 0
    values: Final[dict[tuple[int, str], Tensor]] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrised tensor once in a ``with`` block, however often it is read.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.utils.parametrizations.orthogonal(tg.nn.Linear(2, 2))
    >>> with tg.nn.utils.parametrize.cached():
    ...     print(layer.weight is layer.weight)
    True
    """
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.values.clear()


# The class of a parametrised module ----------------------------------------------------------------------------------


def _getstate(self: Module) -> Any:
    raise RuntimeError("Serialization of parametrized modules is only supported through state_dict().")


def _deepcopy(self: Module, memo: dict[int, Any]) -> Module:
    kind = type(self)
    twin: Module = object.__new__(type(kind.__name__, kind.__bases__, dict(vars(kind))))
    memo[id(self)] = twin
    twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return twin


def _property(name: str) -> property:
    """Return the property that takes the place of a parameter."""

    def read(self: Any) -> Any:
        compute = self.parametrizations[name]
        if not _Cache.depth:
            return compute()
        key = id(self), name
        if key not in _Cache.values:
            _Cache.values[key] = compute()
        return _Cache.values[key]

    return property(read, lambda self, value: self.parametrizations[name].right_inverse(value))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of a module from now on by a module, from what it was.

    Parameters
    ----------
    module : Module
        Its class becomes a subclass of its own.
    tensor_name : str
    parametrization : Module
        Computes the tensor. Its method ``right_inverse``, if there is one, gets the tensor as it is, and returns what
        that would be computed from, one or several tensors.
    unsafe : bool
        Do not check that dtype and shape stay.

    Returns
    -------
    Module
        `module`.

    Raises
    ------
    ValueError
        If there is no such tensor, or its dtype or shape would change.

    Examples
    --------
    >>> import tapegrad as tg
    >>> class Positive(tg.nn.Module):
    ...     def forward(self, x):
    ...         return x.exp()
    ...
    ...     def right_inverse(self, x):
    ...         return x.abs().log()
    >>> layer = tg.nn.Linear(1, 1)
    >>> tg.nn.utils.parametrize.register_parametrization(layer, "weight", Positive())
    ParametrizedLinear(
      in_features=1, out_features=1, bias=True
      (parametrizations): ModuleDict(
        (weight): ParametrizationList(
          (0): Positive()
        )
      )
    )
    >>> layer.weight = tg.ones(1, 1)
    >>> layer.parametrizations.weight.original
    Parameter containing:
    tensor([[0.]], requires_grad=True)
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        steps: Any = getattr(module, "parametrizations")[tensor_name]  # noqa: B009  # of modules that have some
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            name = f"module.{tensor_name}"
            check_result(before, after, "the `unsafe` flag", f"{name}.{{}}", f"parametrization({name}).{{}}")
            back = inverted([parametrization], after, strict=False)
            _check_inverse(before, back, tensor_name)
        steps.append(parametrization)
        steps.unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    steps = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        kind = type(module)
        space: dict[str, Any] = {"__getstate__": _getstate}
        if not hasattr(kind, "__deepcopy__"):
            space["__deepcopy__"] = _deepcopy
        module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), space)
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _property(tensor_name))
    getattr(module, "parametrizations")[tensor_name] = steps  # noqa: B009
    return module


def _check_inverse(before: Tensor, back: Any, name: str) -> None:
    if not isinstance(back, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for what in ("dtype", "shape"):
        old, new = getattr(before, what), getattr(back, what)
        if old != new:
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, "
                f"unless the `unsafe` flag is enabled.\nmodule.{name}.{what}: {old}\nreturned {what}: {new}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of a module is parametrised, or any one if no name is given.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.utils.parametrizations.orthogonal(tg.nn.Linear(2, 2))
    >>> parametrize = tg.nn.utils.parametrize
    >>> parametrize.is_parametrized(layer, "weight"), parametrize.is_parametrized(layer, "bias")
    (True, False)
    """
    steps = getattr(module, "parametrizations", None)
    if not isinstance(steps, ModuleDict):
        return False
    return len(steps) > 0 if tensor_name is None else tensor_name in steps


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a tensor of a module a plain parameter or buffer again.

    Parameters
    ----------
    module : Module
    tensor_name : str
    leave_parametrized : bool
        It gets the value that was computed; otherwise the one it was computed from.

    Raises
    ------
    ValueError
        If it is not parametrised, or is computed from several tensors and should become what it was computed from.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.utils.parametrizations.orthogonal(tg.nn.Linear(2, 2))
    >>> layer = tg.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    >>> isinstance(layer.weight, tg.nn.Parameter)
    True
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    owner: Any = module
    steps = owner.parametrizations[tensor_name]
    if steps.is_tensor:
        original = steps.original
        if leave_parametrized:
            with no_grad():
                original.data = getattr(module, tensor_name).detach()
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del owner.parametrizations[tensor_name]
    register(module, tensor_name, original)
    if not is_parametrized(module):
        del owner.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class of a module without its parametrisations.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.utils.parametrizations.orthogonal(tg.nn.Linear(2, 2))
    >>> tg.nn.utils.parametrize.type_before_parametrizations(layer).__name__
    'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Parametrise a module as another is, with the same tensors; all, or one.

    Returns
    -------
    Module
        `to_module`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.utils.parametrizations.orthogonal(tg.nn.Linear(2, 2))
    >>> other = tg.nn.utils.parametrize.transfer_parametrizations_and_params(layer, tg.nn.Linear(2, 2))
    >>> tg.equal(other.weight, layer.weight)
    True
    """
    if not is_parametrized(from_module):
        return to_module
    all_steps: Any = getattr(from_module, "parametrizations")  # noqa: B009
    for name in [tensor_name] if tensor_name is not None else list(all_steps):
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for module in all_steps[name].steps():
            register_parametrization(to_module, name, module)
        theirs, ours = all_steps[name], getattr(to_module, "parametrizations")[name]  # noqa: B009
        for key in [*theirs._parameters, *theirs._buffers]:
            setattr(ours, key, getattr(theirs, key))
    return to_module
