"""PyTorch's ``torch.autograd.graph``: the class of `Tensor.grad_fn`, and drawings of graphs."""

from typing import TYPE_CHECKING, Any

from tapegrad.tape.graph import Node

if TYPE_CHECKING:
    from tapegrad.tape.drawing import to_dot
    from tapegrad.tape.memory_use import memory

__all__ = ["Node", "memory", "to_dot"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "to_dot":  # programs that do not look at graphs are not to wait for these files
            from tapegrad.tape.drawing import to_dot

            return to_dot
        if name == "memory":
            from tapegrad.tape.memory_use import memory

            return memory
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
