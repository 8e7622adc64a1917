"""PyTorch's ``torch.autograd.graph``: the class of `Tensor.grad_fn`; and what graphs look like and keep."""

from tapegrad.tape.drawing import to_dot
from tapegrad.tape.graph import Node
from tapegrad.tape.memory_use import memory

__all__ = ["Node", "memory", "to_dot"]
