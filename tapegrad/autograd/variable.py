"""`Variable`: what tensors with a gradient were called once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tapegrad.dtypes import default_dtype
from tapegrad.tensor import Tensor, from_array


class _AnyTensor(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_AnyTensor):
    """Return a tensor over the memory of another, without its history: older programs call it.

    Parameters
    ----------
    data : Tensor, optional
        Default one without elements.
    requires_grad : bool
    volatile : bool, optional
        It has no effect.

    Raises
    ------
    TypeError
        If `data` is no tensor.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.autograd.Variable(tg.ones(2), requires_grad=True)
    >>> isinstance(x, tg.autograd.Variable), x
    (True, tensor([1., 1.], requires_grad=True))
    """

    def __new__(  # type: ignore[misc]
        cls, data: Tensor | None = None, requires_grad: bool = False, volatile: bool | None = None
    ) -> Tensor:
        """Return the tensor."""
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", stacklevel=2
            )
        if data is not None and not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        leaf = from_array(np.empty(0, default_dtype())) if data is None else data.detach()
        return leaf.requires_grad_(requires_grad) if requires_grad else leaf
