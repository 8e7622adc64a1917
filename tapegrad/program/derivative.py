"""The derivative of a program: a call of it is one entry of the tape, whose rule is a program too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from tapegrad.autograd.backward import grad
from tapegrad.autograd.function import Function
from tapegrad.modes import enable_grad
from tapegrad.ops.table.gateway import constant
from tapegrad.program.program import Program
from tapegrad.program.replay import replay
from tapegrad.program.run import Runner
from tapegrad.program.trace import trace
from tapegrad.tape.layout import layout_of
from tapegrad.tensor import Tensor

_vjps: Final[WeakKeyDictionary[Program, dict[Any, tuple[Program, Runner]]]] = WeakKeyDictionary()


class _Call(Function):
    """A call of a program."""

    @staticmethod
    def forward(ctx: Any, program: Program, run: Runner, guards: list[Any], *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.program = program
        ctx.save_for_backward(*inputs)
        arrays, values = run([own._data for own in inputs])
        guards[:] = values
        outputs = tuple([constant(array, layout_of(array)) for array in map(np.asarray, arrays)])
        ctx.mark_non_differentiable(*[own for own in outputs if not own._layout.floating])
        return outputs

    @staticmethod
    def backward(ctx: Any, *cts: Tensor) -> tuple[Any, ...]:
        inputs, program = ctx.saved_tensors, ctx.program
        wanted = tuple(ctx.needs_input_grad[3:])
        floating = [number for number, own in enumerate(program.outputs) if program.layouts[own].floating]
        vjp, run = _vjp(program, wanted)
        gradients = iter(differentiable(vjp, run, [*inputs, *[cts[number] for number in floating]])[0])
        return (None, None, None, *[next(gradients) if is_wanted else None for is_wanted in wanted])


def differentiable(program: Program, run: Runner, inputs: Sequence[Tensor]) -> tuple[list[Tensor], list[Any]]:
    """Return the outputs of a program, recorded as one operation, and the values of its guards."""
    guards: list[Any] = []
    outputs = _Call.apply(program, run, guards, *inputs)
    return list(outputs), guards


def _vjp(program: Program, wanted: tuple[bool, ...]) -> tuple[Program, Runner]:
    """Return the program of the wanted inputs' cotangents, from the inputs and the cotangents of floating outputs."""
    known = _vjps.setdefault(program, {})
    if wanted not in known:
        vjp = _traced_vjp(program, wanted)
        known[wanted] = vjp, Runner(vjp)
    return known[wanted]


def _traced_vjp(program: Program, wanted: tuple[bool, ...]) -> Program:
    n_inputs = len(program.inputs)

    def pull(*tensors: Tensor) -> list[Tensor]:
        fresh = [own.detach().requires_grad_() if is_wanted else own
                 for own, is_wanted in zip(tensors, wanted, strict=False)]  # fmt: skip
        with enable_grad():
            outputs, _ = replay(program, fresh)
        pairs = [(own, ct) for own, ct in zip([own for own in outputs if own._layout.floating], tensors[n_inputs:],
                                              strict=True) if own.requires_grad]  # fmt: skip
        chosen = [own for own, is_wanted in zip(fresh, wanted, strict=True) if is_wanted]
        roots, seeds = zip(*pairs, strict=True)
        return list(grad(roots, chosen, seeds, allow_unused=True, materialize_grads=True))

    floating = [number for number in program.outputs if program.layouts[number].floating]
    examples = [np.ones(program.layouts[own].shape, program.layouts[own].dtype) for own in (*program.inputs, *floating)]
    return trace(pull, examples)[0]
