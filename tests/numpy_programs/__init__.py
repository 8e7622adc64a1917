"""Programs on plain NumPy, which knows nothing of tensors: its protocols carry them."""

from tests.numpy_programs import inference, likelihoods, networks, physics
from tests.numpy_programs.registry import PROGRAMS, Program

__all__ = ["PROGRAMS", "Program", "inference", "likelihoods", "networks", "physics"]
