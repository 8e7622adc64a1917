"""Dual tensors, with PyTorch's names (``torch.autograd.forward_ad``): tensors that carry a tangent through operations.

Inside a dual level each operation computes the tangent of its result from those of its operands, whether gradients are
recorded or not. Tangents are computed by recorded operations, so that they can be differentiated. A write to a dual
tensor writes to its tangent. Tangents do not follow detached tensors and backward passes inside the level.
`tapegrad.func.jvp` is faster, and nests.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from tapegrad import errors, modes
from tapegrad.autograd.forward_mode import Duals
from tapegrad.modes import uninterrupted
from tapegrad.tensor import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

F = TypeVar("F", bound=Callable[..., Any])
_local = threading.local()


class UnpackedDualTensor(NamedTuple):
    """A tensor, and its tangent; None if it has none.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(tg.tensor(2.0), tg.tensor(1.0))
    ...     print(forward_ad.unpack_dual(x**2).tangent)
    tensor(4.)
    """

    primal: Tensor
    tangent: Tensor | None


def _level() -> tuple[Duals, modes.intercept] | None:
    return getattr(_local, "level", None)


def enter_dual_level() -> int:
    """Enter the dual level of this thread, and return its number, 0.

    Raises
    ------
    RuntimeError
        If the thread is inside it: dual levels do not nest.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.autograd import forward_ad
    >>> level = forward_ad.enter_dual_level()
    >>> x = forward_ad.make_dual(tg.tensor(2.0), tg.tensor(1.0))
    >>> forward_ad.unpack_dual(x**2).tangent
    tensor(4.)
    >>> forward_ad.exit_dual_level()
    """
    if _level() is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment; tapegrad.func.jvp nests")
    duals = Duals()
    interception = modes.intercept(duals)
    interception.__enter__()
    _local.level = duals, interception
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the dual level; dual tensors lose their tangents.

    Raises
    ------
    RuntimeError
        If the thread is not inside a level, or another one is named.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.autograd import forward_ad
    >>> level = forward_ad.enter_dual_level()
    >>> forward_ad.exit_dual_level()
    """
    current = _level()
    if current is None:
        raise RuntimeError("Dual level must be a positive number: there is no level to exit")
    if level not in (None, 0):
        raise RuntimeError(
            f"Trying to exit a forward AD level that was not the last one that was created: got {level}, expected 0"
        )
    _local.level = None
    current[1].__exit__()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a tensor with the values of one, and another one as its tangent.

    Parameters
    ----------
    tensor, tangent : Tensor
        Floating or complex, of the same shape.
    level : int, optional
        0 or None, as there is one level.

    Raises
    ------
    RuntimeError
        If there is no dual level, the shapes differ, or the tensor has a tangent already.
    ValueError
        If one of the two is neither floating nor complex.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(tg.tensor([1.0, 2.0]), tg.ones(2))
    ...     forward_ad.unpack_dual(x * x).tangent
    tensor([2., 4.])
    """
    current = _level()
    if current is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    if tangent.shape != tensor.shape:
        raise errors.tangent_shape(tensor.shape, tangent.shape)
    duals, _ = current
    if duals.tangent_of(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported."
        )
    dual = _alias(tensor)
    duals.note(dual, tangent)
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return a tensor without its tangent, and the tangent: None outside a dual level, and where there is none.

    Parameters
    ----------
    tensor : Tensor
    level : int, optional
        0 or None, as there is one level.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.autograd.forward_ad.unpack_dual(tg.ones(2))
    UnpackedDualTensor(primal=tensor([1., 1.]), tangent=None)
    """
    current = _level()
    tangent = None if current is None else current[0].tangent_of(tensor)
    if current is None or tangent is None:
        return UnpackedDualTensor(tensor, tangent)
    primal = _alias(tensor)
    current[0].note(primal, None)
    return UnpackedDualTensor(primal, tangent)


def _alias(tensor: Tensor) -> Tensor:
    """Return another tensor with the memory and the history of one; it has no tangent."""
    with uninterrupted():
        return tensor.view_as(tensor) if tensor.requires_grad else tensor.detach()


class dual_level:  # noqa: N801  # PyTorch's name
    """A context in which tensors may have tangents: see `make_dual`. Tangents are lost at its end.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(tg.tensor(3.0), tg.tensor(1.0))
    ...     forward_ad.unpack_dual(x**2)
    UnpackedDualTensor(primal=tensor(9.), tangent=tensor(6.))
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        exit_dual_level()

    def __call__(self, function: F) -> F:
        """Return a function that is called inside a dual level of its own."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with dual_level():
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]
