"""Checks of users' own functions: their derivatives against finite differences, and strategies for hypothesis."""

from typing import TYPE_CHECKING, Any

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

    def __getattr__(name: str) -> Any:
        if name in ("tensors", "samples", "OpSample"):  # the checks do not need hypothesis
            from tapegrad.testing import strategies

            return getattr(strategies, name)
        if name == "check_op":
            from tapegrad.testing import ops

            return ops.check_op
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
