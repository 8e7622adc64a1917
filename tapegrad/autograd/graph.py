"""PyTorch's ``torch.autograd.graph``: the class of `Tensor.grad_fn`."""

from tapegrad.tape.graph import Node

__all__ = ["Node"]
