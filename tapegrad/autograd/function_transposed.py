"""The transpose of a `Function`'s derivative: a linear `Function` whose own derivative is the user's `jvp`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.autograd.function import BackwardCFunction, Function
from tapegrad.autograd.function_tangents import tangents_by
from tapegrad.recording.plan import Plan
from tapegrad.tensor import from_array


class Transposed(Function):
    """From cotangents of a call's outputs to those of its tensors; its own derivative is the user's `jvp`."""

    @staticmethod
    def forward(ctx: Any, call: BackwardCFunction, plan: Plan, *cts: Any) -> Any:
        """Return zeros: only the derivative is used."""
        ctx.call, ctx.places, ctx.count = call, plan.attrs["places"], len(cts)
        return tuple([from_array(np.zeros(layout.shape, layout.dtype)) for layout in plan.layouts])

    @staticmethod
    def backward(ctx: Any, *tangents: Any) -> Any:
        """Return the tangents of the outputs, for those of the tensors among the arguments."""
        given = list(tangents)
        if ctx.places is not None:
            given = [None] * len(ctx.call.needs_input_grad)
            for place, tangent in zip(ctx.places, tangents, strict=True):
                given[place] = tangent
        return None, None, *tangents_by(ctx.call._forward_cls.jvp, ctx.call, given, given, ctx.count)
