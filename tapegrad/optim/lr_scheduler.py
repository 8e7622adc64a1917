"""Schedules of learning rates, with PyTorch's names, arguments and results."""

from tapegrad.optim.combined import ChainedScheduler, SequentialLR
from tapegrad.optim.cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from tapegrad.optim.decays import CosineAnnealingLR, ExponentialLR, PolynomialLR
from tapegrad.optim.plateau import ReduceLROnPlateau
from tapegrad.optim.schedule import LRScheduler
from tapegrad.optim.schedules import (
    ConstantLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    StepLR,
)

_LRScheduler = LRScheduler  # its name in older programs

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
