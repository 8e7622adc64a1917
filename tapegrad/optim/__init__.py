"""Optimizers, with PyTorch's names, arguments and results: they write to parameters in place, with few passes."""

from tapegrad.optim.adam import Adam, AdamW
from tapegrad.optim.base import Optimizer
from tapegrad.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
