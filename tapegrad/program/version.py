"""A program of a compiled function, and how Python calls it: with what it takes from outside, and its effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad import modes
from tapegrad.func.level import array_of
from tapegrad.func.trees import flatten, rebuild
from tapegrad.ops.table.gateway import constant
from tapegrad.program.effects import Outside, Postponed, share_memory
from tapegrad.program.entry import Variant
from tapegrad.program.program import Program
from tapegrad.program.replay import replay
from tapegrad.tape.entries import Leaf
from tapegrad.tape.layout import layout_of
from tapegrad.tensor import Tensor

if TYPE_CHECKING:
    from tapegrad.program.run import Runner


class Version:
    """The program of a function for one signature and one way through its branches.

    Attributes
    ----------
    program : Program
        Its inputs are the arguments', then those of tensors that the function takes from outside.
    outside : Outside
        Where the other inputs come from, in every call, and what a call changes.
    tree : object
        What the function returned, for its structure.
    places : list of int
        Which leaves of `tree` are outputs of the program; the others are the same in every call.
    new_leaves : list of int
        Which outputs are to want a gradient, as leaves.
    """

    def __init__(
        self, program: Program, outside: Outside, tree: Any, places: Sequence[int], new_leaves: Sequence[int] = ()
    ) -> None:
        self.new_leaves = new_leaves
        self.program, self.outside, self.tree, self.places = program, outside, tree, places
        self._layouts = [program.layouts[number] for number in program.inputs]
        self._held = [place for place, own in enumerate(outside.sources) if isinstance(own, Tensor)]
        self._wanted = [own.requires_grad for own in outside.sources if isinstance(own, Tensor)]
        self.variants: dict[tuple[Any, ...], Variant] = {}  # for the compiled entry, by the classes of arguments

    @property
    def run(self) -> Runner:
        """How the program runs."""
        return self.program.run

    def results(self, n_left: int) -> list[int]:
        """Return the numbers of the outputs, without those among so many last leaves of what the function returned."""
        end = len(flatten(self.tree)) - n_left
        outputs = zip(self.places, self.program.outputs, strict=False)
        return [number for place, number in outputs if place < end] + [*self.program.outputs[len(self.places) :]]

    def call(self, inputs: Sequence[Tensor], is_new: bool = False) -> list[Tensor] | None:
        """Return the outputs; None if Python would have taken another way, which it has not if the trace `is_new`."""
        outside = self.outside
        if not outside.holds():
            return None
        states = outside.states()  # another trace draws the same random numbers
        outputs = None
        try:
            outputs = self._outputs(inputs, is_new)
        finally:
            if outputs is None:
                for bits, state in states:
                    bits.state = state
        return outputs

    def example(self, inputs: Sequence[Tensor]) -> list[np.ndarray] | None:
        """Return the outputs, and what would be written outside; nothing changes. None if something else stands there.

        The operations run one by one.
        """
        states = self.outside.states()
        others = self.outside.tensors(self._layouts[len(inputs) :])
        for bits, state in states:
            bits.state = state
        if others is None:
            return None
        with modes.no_grad():
            return [own.detach().numpy() for own in replay(self.program, [*inputs, *others])[0]]

    def _outputs(self, inputs: Sequence[Tensor], is_new: bool) -> list[Tensor] | None:
        outside = self.outside
        others = outside.tensors(self._layouts[len(inputs) :])
        if others is None or [others[place].requires_grad for place in self._held] != self._wanted:
            return None  # since the trace a tensor from outside was frozen, or thawed
        given = [*inputs, *others]
        targets = outside.targets(inputs)
        if targets and share_memory(targets, given):
            raise Postponed  # the order of reads and writes matters
        try:
            outputs, values = self._computed(given, targets)
        except Exception:
            if self.program.guards and not is_new:  # perhaps an operation of another branch
                return None
            if is_new or outside.has_effects:  # which the function itself would leave half done
                raise
            raise Postponed from None  # the function may catch the error, or raises it itself
        if not self.program.holds(values):
            return None
        n_results = len(self.places)
        count = n_results + len(outside.puts)
        if outside.has_effects:
            outside.apply(targets, inputs, outputs[count:])
        outside.put(outputs[n_results:count])
        outside.finish()
        return outputs[:n_results]

    def _computed(self, inputs: list[Tensor], targets: Sequence[Tensor]) -> tuple[list[Tensor], Sequence[Any]]:
        """Return the outputs, and the values of guards."""
        if modes.is_grad_enabled() and not self.outside.is_step and any(own.requires_grad for own in inputs):
            if targets:  # what the derivative needs is not to be written over
                before = {id(own) for own in targets}
                inputs = [own.detach().clone() if id(own) in before else own for own in inputs]
            from tapegrad.program.derivative import differentiable  # at call time: few calls are recorded by Python

            outputs, guards = differentiable(self.program, self.run, inputs)
            return list(outputs), guards
        arrays, values = self.run([own._data for own in inputs])
        return [constant(array, layout_of(array)) for array in arrays], values

    def result(self, outputs: Sequence[Tensor], has_arrays: bool) -> Any:
        """Return outputs as the function would."""
        leaves = flatten(self.tree)
        for number in self.new_leaves:
            outputs[number].requires_grad_()
        for place, output in zip(self.places, outputs, strict=True):
            leaves[place] = array_of(output) if has_arrays else output
        return rebuild(self.tree, leaves)


def is_new_leaf(result: Tensor, arguments: Sequence[Tensor]) -> bool:
    """Whether a result wants a gradient and has no history: what the function made by `requires_grad_`."""
    if not isinstance(result._node, Leaf) or any(result is own for own in arguments):
        return False
    tracer = modes.tracer()
    return tracer is not None and bool(tracer.is_own(result))
