"""Checks of users' own functions: their derivatives against finite differences, and strategies for hypothesis."""

from typing import TYPE_CHECKING

from tapegrad.runtime.later import later
from tapegrad.testing.closeness import assert_close
from tapegrad.testing.gradients import gradcheck, gradgradcheck
from tapegrad.testing.report import GradcheckError
from tapegrad.testing.tangents import jvpcheck

if TYPE_CHECKING:
    from tapegrad.testing.ops import check_op
    from tapegrad.testing.strategies import OpSample, samples, tensors

__all__ = [
    "assert_close",
    "check_op",
    "gradcheck",
    "gradgradcheck",
    "jvpcheck",
    "GradcheckError",
    "tensors",
    "samples",
    "OpSample",
]

if not TYPE_CHECKING:
    # The checks do not need hypothesis.
    __getattr__ = later(__name__, {".strategies": "OpSample samples tensors", ".ops": "check_op"})
