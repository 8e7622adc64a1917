"""Neural networks: functions, and initial values of parameters."""

from tapegrad.nn import functional, init

__all__ = ["functional", "init"]
