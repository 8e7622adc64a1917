"""The derivative of a program: a call of it is one entry of the tape, whose rule is a program too."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.backward import grad
from tapegrad.autograd.function import Function
from tapegrad.autograd.function_entry import recorded as entry_recorded
from tapegrad.autograd.roots import zeros_of
from tapegrad.modes import INTERCEPTORS, WRITES_NOTED, enable_grad, interceptor, is_grad_enabled, mode
from tapegrad.ops.table.gateway import constant
from tapegrad.program.limits import limited
from tapegrad.program.program import Program
from tapegrad.program.replay import replay
from tapegrad.program.run import Runner
from tapegrad.program.trace import trace
from tapegrad.tape.layout import layout_of
from tapegrad.tape.views import renewed
from tapegrad.tensor import Tensor


class CompiledFunction(Function):
    """A call of a program; in PyTorch, its node is called `CompiledFunctionBackward`."""

    @staticmethod
    def forward(ctx: Any, program: Program, run: Runner, outputs: Sequence[Tensor], *inputs: Tensor) -> Any:
        """Keep the inputs of a program, whose outputs are known."""
        ctx.program = program
        ctx.save_for_backward(*inputs)
        fixed = run.fixed(ctx.needs_input_grad[3:])
        if fixed:
            ctx.mark_non_differentiable(*[outputs[place] for place in fixed])
        return outputs[0] if len(outputs) == 1 else tuple(outputs)  # one is recorded in half of the time

    @staticmethod
    def backward(ctx: Any, *cts: Tensor) -> tuple[Any, ...]:
        """Run its derivative."""
        inputs, needs = ctx.saved_tensors, ctx.needs_input_grad
        n_others = len(needs) - len(inputs)
        wanted = needs[n_others:]
        tensors = [*inputs, *cts]
        known = ctx.program.run.pullbacks
        pullback = known.get(wanted) or known.setdefault(wanted, Pullback(ctx.program, wanted, tensors))
        gradients = iter(pullback(tensors))
        return (*(None,) * n_others, *[next(gradients) if is_wanted else None for is_wanted in wanted])


def recorded(program: Program, run: Runner, outputs: Sequence[Tensor], inputs: list[Tensor]) -> Sequence[Tensor]:
    """Return the outputs of a program, recorded as one operation."""
    if len(outputs) == 1 and not mode.value & INTERCEPTORS:  # nearly all: what `apply` does then, in less time
        for own in inputs if mode.value & WRITES_NOTED else ():
            renewed(own)
        needs = tuple([own._layout.requires_grad for own in inputs])
        if True in needs and not run.fixed(needs):
            attributes = {"program": program, "needs_input_grad": needs, "_saved": tuple(inputs)}
            function = CompiledFunction
            return [entry_recorded(function._op, attributes, inputs, None, outputs[0], function._backward_cls)]
    found = CompiledFunction.apply(program, run, outputs, *inputs)
    return [found] if isinstance(found, Tensor) else list(found)


def differentiable(program: Program, run: Runner, inputs: Sequence[Tensor]) -> tuple[Sequence[Tensor], Sequence[Any]]:
    """Return the outputs of a program, recorded as one operation if that is wanted, and the values of its guards."""
    arrays, guards = run([own._data for own in inputs])
    outputs = [constant(array, layout_of(array)) for array in map(np.asarray, arrays)]
    if not is_grad_enabled() and interceptor() is None:
        return outputs, guards
    return recorded(program, run, outputs, list(inputs)), guards


class Pullback:
    """The cotangents of some inputs of a program, as a program too.

    Attributes
    ----------
    vjp : Program
        From the program's inputs and the cotangents of its outputs.
    captured : list of Tensor
        The last inputs of `vjp`.
    """

    def __init__(self, program: Program, wanted: tuple[bool, ...], tensors: Sequence[Tensor]) -> None:
        count = len(tensors)
        with limited(program.limit):
            self.vjp, self.captured = vjp_of(program, wanted, [own._data for own in tensors])
        self.vjp.limit = program.limit
        self.vjp.function = lambda inputs: (
            pull(program, wanted, *inputs[:count]),
            [*inputs[:count], *self.captured],
        )
        self._run = self.vjp.run
        self._pull = functools.partial(pull, program, wanted)

    def __call__(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the cotangents of the wanted inputs, from all inputs and the cotangents of outputs."""
        run = self._run
        if run.code is None:
            return self._pull(*apart(tensors))
        given = [*tensors, *self.captured]
        if not is_grad_enabled():
            found = run.of_tensors(given)
            if found is not None:
                return found
        try:
            outputs, values = differentiable(self.vjp, run, given)
        except Exception:
            if self.vjp.guards:  # perhaps an operation of another branch
                return self._pull(*apart(tensors))
            raise
        return outputs if self.vjp.holds(values) else self._pull(*apart(tensors))


def apart(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors with nodes of their own: gradients of one do not go on to another one that it depends on."""
    return [own.view_as(own) if own.requires_grad else own for own in tensors]


def vjp_of(
    program: Program, wanted: tuple[bool, ...], arrays: Sequence[Any], n_kept: int = 0
) -> tuple[Program, list[Tensor]]:
    """Return the program of the cotangents of wanted inputs, and tensors that are its last inputs.

    Its first inputs are the program's, then cotangents of its outputs, of which `arrays` are examples. The last
    `n_kept` outputs have no cotangents: they are outputs again.
    """
    floating = [np.asarray(own).dtype.kind in "fc" for own in arrays]
    return trace(functools.partial(pull, program, wanted, n_kept=n_kept), arrays, floating)


def pull(program: Program, wanted: tuple[bool, ...], *tensors: Tensor, n_kept: int = 0) -> Sequence[Tensor]:
    """Return the cotangents of the wanted inputs by the rules of the program's operations, and the last outputs."""
    n_inputs = len(program.inputs)
    with enable_grad():
        inputs = [own if own.requires_grad or not is_wanted else own.detach().requires_grad_()
                  for own, is_wanted in zip(tensors, wanted, strict=False)]  # fmt: skip
        if program.has_functions and program.function is not None:
            outputs, inputs = map(list, program.function(inputs))
        else:
            outputs, _ = replay(program, inputs)
        kept = [outputs.pop() for _ in range(n_kept)]
        pairs = [(own, ct) for own, ct in zip(outputs, tensors[n_inputs:], strict=True) if own.requires_grad]
        chosen = [own for own, is_wanted in zip(inputs, wanted, strict=True) if is_wanted]
        if not pairs:
            return [*[zeros_of(own) for own in chosen], *kept]
        roots, seeds = zip(*pairs, strict=True)
        found: Sequence[Tensor] = grad(
            roots, chosen, seeds, create_graph=True, allow_unused=True, materialize_grads=True
        )
    return [*found, *kept]
