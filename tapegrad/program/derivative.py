"""The derivative of a program: a call of it is one entry of the tape, whose rule is a program too."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.autograd.backward import grad
from tapegrad.autograd.function import Function
from tapegrad.autograd.roots import zeros_of
from tapegrad.modes import enable_grad, interceptor, is_grad_enabled
from tapegrad.ops.table.gateway import constant
from tapegrad.program.limits import limited
from tapegrad.program.program import Program
from tapegrad.program.replay import replay
from tapegrad.program.run import Runner
from tapegrad.program.trace import trace
from tapegrad.tape.layout import layout_of
from tapegrad.tape.views import renewed
from tapegrad.tensor import Tensor, from_array

#: From so many on zeros take the place of cotangents that are missing, so that no further program is made.
_PULLBACKS: Final = 8


class CompiledFunction(Function):
    """A call of a program; in PyTorch, its node is called `CompiledFunctionBackward`."""

    @staticmethod
    def forward(ctx: Any, program: Program, run: Runner, outputs: Sequence[Tensor], *inputs: Tensor) -> Any:
        """Keep the inputs of a program, whose outputs are known."""
        ctx.program = program
        ctx.save_for_backward(*inputs)
        ctx.set_materialize_grads(False)
        fixed = run.fixed(ctx.needs_input_grad[3:])
        if fixed:
            ctx.mark_non_differentiable(*[outputs[place] for place in fixed])
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *cts: Tensor | None) -> tuple[Any, ...]:
        """Run its derivative."""
        inputs, needs = ctx.saved_tensors, ctx.needs_input_grad
        n_others = len(needs) - len(inputs)
        return (*(None,) * n_others, *pulled(ctx.program, inputs, cts, needs[n_others:]))


def pulled(
    program: Program, inputs: Sequence[Tensor], cts: Sequence[Tensor | None], wanted: tuple[bool, ...]
) -> list[Tensor | None]:
    """Return the cotangents of inputs; None for those that are not wanted, or that no gradient reaches.

    Outputs that nothing depends on have no cotangents: zeros in place of them would meet slopes that are not finite.
    """
    known, given = program.run.pullbacks, tuple([ct is not None for ct in cts])
    found = [ct for ct in cts if ct is not None]
    pullback = known.get((wanted, given))
    if pullback is None:
        if len(known) >= _PULLBACKS and False in given:
            layouts = [program.layouts[number] for number in program.outputs]
            cts = [from_array(np.zeros(own.shape, own.dtype)) if ct is None else ct
                   for ct, own in zip(cts, layouts, strict=True)]  # fmt: skip
            return pulled(program, inputs, cts, wanted)
        pullback = known[wanted, given] = Pullback(program, wanted, given, [*inputs, *found])
    gradients = iter(pullback([*inputs, *found]))
    return [next(gradients) if is_reached else None for is_reached in pullback.reached]


def recorded(program: Program, run: Runner, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return the outputs of a program, recorded as one operation of the inputs that an output depends on."""
    needs = tuple([renewed(own).requires_grad for own in inputs])
    reached = run.reached(needs)
    if reached != needs:
        inputs = [own.detach() if is_wanted and not is_reached else own
                  for own, is_wanted, is_reached in zip(inputs, needs, reached, strict=True)]  # fmt: skip
    found = CompiledFunction.apply(program, run, outputs, *inputs)
    return [found] if isinstance(found, Tensor) else list(found)


def differentiable(program: Program, run: Runner, inputs: Sequence[Tensor]) -> tuple[Sequence[Tensor], Sequence[Any]]:
    """Return the outputs of a program, recorded as one operation if that is wanted, and the values of its guards."""
    arrays, guards = run([own._data for own in inputs])
    outputs = [constant(array, layout_of(array)) for array in map(np.asarray, arrays)]
    if not is_grad_enabled() and interceptor() is None:
        return outputs, guards
    return recorded(program, run, outputs, inputs), guards


class Pullback:
    """The cotangents of some inputs of a program, as a program too.

    Parameters
    ----------
    program : Program
    wanted : tuple of bool
        Which inputs cotangents are wanted for.
    given : tuple of bool
        Which outputs have cotangents.
    tensors : sequence of Tensor
        Examples: all inputs, and the cotangents that are given.

    Attributes
    ----------
    wanted, reached : tuple of bool
        Which inputs cotangents are wanted for, and which get one: those that gradients reach.
    vjp : Program
        From the program's inputs and the cotangents of its outputs.
    captured : list of Tensor
        The last inputs of `vjp`.
    run : Runner
        How `vjp` runs.
    """

    def __init__(
        self, program: Program, wanted: tuple[bool, ...], given: tuple[bool, ...], tensors: Sequence[Tensor]
    ) -> None:
        count = len(tensors)
        self.wanted, reached = wanted, program.reached(wanted, given)
        self.reached = reached
        self._pull = functools.partial(pull, program, reached, given=given)
        with limited(program.limit):
            self.vjp, self.captured = _traced(self._pull, [own._data for own in tensors])
        self.vjp.limit = program.limit
        self.vjp.function = lambda inputs: (self._pull(*inputs[:count]), [*inputs[:count], *self.captured])
        self.run = self.vjp.run

    def __call__(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the cotangents of the wanted inputs, from all inputs and the cotangents of outputs."""
        run = self.run
        if run.code is None:
            return self._pull(*apart(tensors))
        given = [*tensors, *self.captured]
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
    return _traced(functools.partial(pull, program, wanted, n_kept=n_kept), arrays)


def _traced(function: Callable[..., Any], arrays: Sequence[Any]) -> tuple[Program, list[Tensor]]:
    floating = [np.asarray(own).dtype.kind in "fc" for own in arrays]
    return trace(function, arrays, floating)


def pull(
    program: Program, wanted: Sequence[bool], *tensors: Tensor, n_kept: int = 0, given: Sequence[bool] | None = None
) -> Sequence[Tensor]:
    """Return the cotangents of the wanted inputs by the rules of the program's operations, and the last outputs.

    All other outputs have cotangents, or those that are `given`.
    """
    n_inputs = len(program.inputs)
    with enable_grad():
        inputs = [own if own.requires_grad or not is_wanted else own.detach().requires_grad_()
                  for own, is_wanted in zip(tensors, wanted, strict=False)]  # fmt: skip
        if program.has_functions and program.function is not None:
            outputs, inputs = map(list, program.function(inputs))
        else:
            outputs, _ = replay(program, inputs)
        kept = [outputs.pop() for _ in range(n_kept)]
        if given is not None:
            outputs = list(itertools.compress(outputs, given))
        pairs = [(own, ct) for own, ct in zip(outputs, tensors[n_inputs:], strict=True) if own.requires_grad]
        chosen = list(itertools.compress(inputs, wanted))
        if not pairs or not chosen:
            return [*[zeros_of(own) for own in chosen], *kept]
        roots, seeds = zip(*pairs, strict=True)
        found: Sequence[Tensor] = grad(
            roots, chosen, seeds, create_graph=True, allow_unused=True, materialize_grads=True
        )
    return [*found, *kept]
