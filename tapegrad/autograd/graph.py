"""The recorded graph, with PyTorch's names."""

from tapegrad.tape.graph import Node

__all__ = ["Node"]
