"""Checks of users' own functions: their derivatives against finite differences."""

from tapegrad.testing.gradients import gradcheck, gradgradcheck
from tapegrad.testing.report import GradcheckError

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
