"""`Parameter` and `Buffer`: tensors that a module registers when they are assigned to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from tapegrad.ops.fill import empty
from tapegrad.tensor import Tensor


def _share(own: Tensor, data: Any) -> None:
    """Let a new tensor have the memory of another, without history."""
    detached = (empty(0) if data is None else data).detach()
    own._data, own._layout, own._node, own._grad = detached._data, detached._layout, None, None


class Parameter(Tensor):
    """A leaf that requires grad, and that a `Module` lists among its parameters.

    Parameters
    ----------
    data : Tensor, optional
        Its memory is shared.
    requires_grad : bool

    Raises
    ------
    AttributeError
        If `data` is no tensor.
    RuntimeError
        If `requires_grad` is set and the dtype is neither floating nor complex.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Parameter(tg.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        _share(self, data)
        self._require(requires_grad)

    def _replace(self, convert: Callable[[Tensor], Tensor]) -> None:
        """Replace the data and the gradient by what a function makes of them; the dtype may change."""
        data, grad = convert(self.detach()), self._grad
        if data.dtype == self.dtype:
            self.data = data
        else:  # another leaf for graphs: they have the old dtype
            leaf, wanted = cast(Any, self._node), self.requires_grad
            self._data, self._layout, self._node = data._array(), data._layout, None
            self._require(wanted)
            if wanted:
                new = cast(Any, self._node)
                new.hooks, new.post_hooks = leaf.hooks, leaf.post_hooks
        if grad is not None:
            self._grad = convert(grad.detach())

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:  # as in PyTorch without the gradient
        twin = memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return twin

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Tensor):
    """A tensor that a `Module` lists among its buffers: a state that is not trained.

    Parameters
    ----------
    data : Tensor, optional
        Its memory is shared.
    persistent : bool
        Whether it is a part of the module's `state_dict`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> module = tg.nn.Module()
    >>> module.count = tg.nn.Buffer(tg.zeros(1))
    >>> module.state_dict()
    OrderedDict([('count', tensor([0.]))])
    """

    def __init__(self, data: Any = None, *, persistent: bool = True) -> None:
        _share(self, data)
        self.persistent = persistent
