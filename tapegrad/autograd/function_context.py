"""`FunctionCtx`: what the methods of a `Function` say to each other and to the library."""

from __future__ import annotations

from typing import Any

from tapegrad.tensor import Tensor


class FunctionCtx:
    """What `forward`, `setup_context` and `backward` of a `Function` share: its attributes are kept for `backward`."""

    _saved: tuple[Any, ...]
    _saved_for_forward: tuple[Any, ...]
    needs_input_grad: tuple[bool, ...]

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `backward`, which finds them in `saved_tensors`; a write to one of them is noticed.

        Raises
        ------
        TypeError
            If an argument is neither a tensor nor None; raised when `forward` has ended.
        """
        self._saved = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `jvp`, which finds them in `saved_tensors` too."""
        self._saved_for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` has written to; each must be returned."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient. Outputs of integers and bools have none anyway."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Let `backward` get None, and not zeros, for outputs that nothing depended on: ``value=False``."""
        self._materialize = bool(value)
