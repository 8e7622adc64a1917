"""The modules that compute one tensor of a module, and the tensors that they compute it from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapegrad.modes import no_grad
from tapegrad.nn.modules.container import ModuleList
from tapegrad.nn.modules.module import Module
from tapegrad.nn.parameter import Parameter
from tapegrad.tensor import Tensor

__all__ = ["ParametrizationList"]


def register(module: Module, name: str, value: Tensor) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def inverted(modules: Sequence[Module], value: Any, *, strict: bool) -> Any:
    """Return what the last module's right inverse makes of a tensor, and so on to the first.

    If not `strict`, a module without one stands for the identity.
    """
    for module in reversed(modules):
        inverse = getattr(module, "right_inverse", None)
        if inverse is None and strict:
            raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
        if inverse is not None:
            try:
                value = inverse(value)
            except NotImplementedError:
                if strict:
                    raise
    return value


def check_result(before: Tensor, after: Any, flag: str, old_name: str, new_name: str) -> None:
    """Raise ValueError if a parametrisation does not return a tensor like the one before."""
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for what in ("dtype", "shape"):
        old, new = getattr(before, what), getattr(after, what)
        if old != new:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless {flag} is "
                f"enabled.\n{old_name.format(what)}: {old}\n{new_name.format(what)}: {new}"
            )


class ParametrizationList(ModuleList):
    """The modules that compute one tensor of a module, and the tensors that they compute it from.

    These are ``original``, or, where the right inverse of the first module returns several, ``original0``,
    ``original1``, ...

    Parameters
    ----------
    modules : sequence of Module
    original : Tensor
        The parameter or buffer as it was.
    unsafe : bool
        Do not check dtype and shape of the result.

    Raises
    ------
    ValueError
        If there is no module, or a result is none that the tensor could be replaced by.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.utils.parametrizations.orthogonal(tg.nn.Linear(2, 2))
    >>> isinstance(layer.parametrizations.weight, tg.nn.utils.parametrize.ParametrizationList)
    True
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            new = inverted(modules, original, strict=False)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if isinstance(new, Tensor) else len(new)
        like = original.detach()
        if isinstance(new, Tensor):
            if new.dtype != original.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            original.data = new.detach()  # the same object: an optimizer may have it
            register(self, "original", original)
        else:
            for place, one in enumerate(new):
                if not isinstance(one, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                        f"Got element {place} of the sequence with type {type(one).__name__}."
                    )
                wanted = original.requires_grad
                own = Parameter(one, wanted) if isinstance(original, Parameter) else one.requires_grad_(wanted)
                register(self, f"original{place}", own)
        if not unsafe:
            check_result(like, self(), "`unsafe` flag", "unparametrized {}", "parametrized {}")

    def _originals(self) -> list[Tensor]:
        names = ["original"] if self.is_tensor else [f"original{place}" for place in range(self.ntensors)]
        return [getattr(self, name) for name in names]

    def right_inverse(self, value: Tensor) -> None:
        """Set the original tensors such that the result is a value, by the right inverses of the modules.

        Raises
        ------
        RuntimeError
            If a module has none.
        ValueError
            If they return something else than the first time.
        """
        with no_grad():
            found = inverted(self.steps(), value, strict=True)
        if self.is_tensor and not isinstance(found, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(found).__name__}")
        new, old = [found] if self.is_tensor else list(found), self._originals()
        if len(new) != len(old):
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                f"length {len(new)}."
            )
        for own, one in zip(old, new, strict=True):
            if one.dtype != own.dtype:
                raise ValueError(
                    f"The tensor returned by `right_inverse` has dtype {one.dtype} while `original` has dtype "
                    f"{own.dtype}"
                )
            own.data = one.detach()

    def steps(self) -> list[Module]:
        """Return the modules, in order."""
        return [self[place] for place in range(len(self))]

    def __len__(self) -> int:
        return sum(name.isdigit() for name in self._modules)

    def forward(self) -> Any:
        """Compute the tensor."""
        first, *rest = self.steps()
        value = first(*self._originals())
        for module in rest:
            value = module(value)
        return value
