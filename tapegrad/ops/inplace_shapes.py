"""In-place operations that give a tensor another shape, over the same memory: ``t_``, ``squeeze_`` and their kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tapegrad import modes
from tapegrad.ops.broadcasting import squeeze, unsqueeze
from tapegrad.ops.history import give_node
from tapegrad.ops.permutations import swapaxes, t, transpose
from tapegrad.ops.table.public import Names, register
from tapegrad.ops.table.write_checks import check_leaf
from tapegrad.tape import views
from tapegrad.tape.entries import Leaf, reshaped
from tapegrad.tensor import Tensor


def _reshaping(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the method that lets a tensor be what a function that returns a view makes of it."""

    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        modes.tell("reshaped", name)
        if modes.is_grad_enabled():
            check_leaf(self)
        self._array()
        seen = function(views.renewed(self), *args, **kwargs)
        data, node = seen._array(), seen._node
        if isinstance(self._node, Leaf):
            node = reshaped(self._node, self, seen.shape)
        self._data = data
        give_node(self, seen._layout.tracked if node is not None else seen._layout.plain, node)
        return self

    call.__name__ = call.__qualname__ = name
    call.__wrapped__ = function  # type: ignore[attr-defined]  # whose arguments they are
    call.__doc__ = f"Give the tensor the shape of what `{name[:-1]}` returns; recorded where a gradient is wanted."
    return call


_VIEWS: Final[dict[str, Callable[..., Tensor]]] = {
    "squeeze_": squeeze, "unsqueeze_": unsqueeze, "t_": t, "transpose_": transpose, "swapaxes_": swapaxes,
    "swapdims_": transpose,
}  # fmt: skip
for _name, _function in _VIEWS.items():
    register(_name, _reshaping(_name, _function), Names(namespaces=(), method=True))
