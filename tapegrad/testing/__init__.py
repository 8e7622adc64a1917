"""Checks of users' own functions: their derivatives against finite differences."""

from tapegrad.testing.gradients import gradcheck, gradgradcheck
from tapegrad.testing.report import GradcheckError
from tapegrad.testing.tangents import jvpcheck

__all__ = ["gradcheck", "gradgradcheck", "jvpcheck", "GradcheckError"]
