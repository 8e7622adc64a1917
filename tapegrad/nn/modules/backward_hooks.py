"""Backward hooks of one call of a module: tensors in place of its inputs and outputs tell of their gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

from tapegrad import errors
from tapegrad.ops.concat import cat
from tapegrad.ops.fill import zeros, zeros_like
from tapegrad.tensor import Tensor

Grads = list[Tensor | None]
Entries = Callable[[], list[Any]]

_NO_INPUT: Final = (
    "Backward hook for Modules where no input requires gradient should always return None or None for all gradients."
)
_FIRING: Final = (
    "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
    "gradients."
)


class BackwardHooks:
    """The backward hooks of one call: they get the gradients of all outputs, and those of all inputs.

    Parameters
    ----------
    module : Module
    before, after : callable
        Return the hooks that run before and after the module's backward, as named tuples with a field `hook`.
    """

    def __init__(self, module: Any, before: Entries, after: Entries) -> None:
        self.module, self.before, self.after = module, before, after
        self.outputs: Grads | None = None  # while a pass is between the outputs and the inputs
        self.constants: list[tuple[Any, Any] | None] = []  # for each argument: of a tensor, its shape and dtype
        self.places: list[int] = []  # of the arguments that have a gradient

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments, with tensors in their place that tell of their gradients."""
        given = list(args)
        self.places = [place for place, own in enumerate(args) if isinstance(own, Tensor) and own.requires_grad]
        for place, own in zip(self.places, _watched([given[at] for at in self.places], self.of_inputs), strict=True):
            given[place] = own
        are_zeros = bool(self.places)  # as in PyTorch, where all tensors pass through one operation
        self.constants = [(own.shape, own.dtype) if are_zeros and isinstance(own, Tensor) else None for own in args]
        return tuple(given)

    def watch_outputs(self, result: Any) -> Any:
        """Return the result, with tensors in its place that tell of their gradients."""
        if not isinstance(result, (Tensor, tuple)):
            errors.warn(
                f"For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}"
            )
            return result
        results = list(result) if isinstance(result, tuple) else [result]
        places = [place for place, own in enumerate(results) if isinstance(own, Tensor) and own.requires_grad]

        def of_outputs(grads: Grads) -> Grads:
            outputs: Grads = [None] * len(results)
            for place, grad in zip(places, grads, strict=True):
                outputs[place] = grad
            for entry in self.before():
                outputs = _replaced(outputs, entry.hook(self.module, tuple(outputs)), "pre hook", "output")
            self.outputs = outputs
            if not self.places:
                if self.after():
                    errors.warn(_FIRING)
                self.of_inputs([])
            return [outputs[place] for place in places]

        for place, own in zip(places, _watched([results[at] for at in places], of_outputs), strict=True):
            results[place] = own
        if not isinstance(result, tuple):
            return results[0]
        return tuple(results) if type(result) is tuple else type(result)(*results)

    def of_inputs(self, grads: Grads) -> Grads:
        """Run the hooks, and return the gradients as they replace them."""
        if self.outputs is None:  # the pass did not come through the outputs: it is one of second derivatives
            return grads
        outputs, self.outputs = tuple(self.outputs), None
        inputs: Grads = [None if own is None else zeros(own[0], dtype=own[1]) for own in self.constants]
        for place, grad in zip(self.places, grads, strict=True):
            inputs[place] = grad
        for entry in self.after():
            result = entry.hook(self.module, tuple(inputs), outputs)
            if not self.places and result is not None and (not isinstance(result, tuple) or {*result} != {None}):
                raise RuntimeError(_NO_INPUT)
            inputs = _replaced(inputs, result, "hook", "input")
        return [inputs[place] for place in self.places]


def _replaced(grads: Grads, result: Any, kind: str, which: str) -> Grads:
    if result is None:
        return grads
    several = list(result) if isinstance(result, tuple) else [result]
    if len(several) != len(grads):
        raise RuntimeError(
            f"Backward {kind} returned an invalid number of grad_{which}, got {len(several)}, but expected {len(grads)}"
        )
    return several


def _watched(tensors: list[Tensor], hook: Callable[[Grads], Grads]) -> list[Tensor]:
    """Return tensors of the same values; a function gets, once in a pass, the gradients of all that have one."""
    if len(tensors) <= 1:
        views = [own.view_as(own) for own in tensors]
        for view in views:
            view.register_hook(lambda grad: hook([grad])[0])
        return views
    # All pass through one entry, behind which the gradients of all of them are there.
    whole: Tensor = cat([own.reshape(-1) for own in tensors])
    pieces = whole.split([own.numel() for own in tensors])
    parts = [part.view(own.shape).to(own.dtype) for part, own in zip(pieces, tensors, strict=True)]
    grads: Grads = [None] * len(tensors)

    def of_whole(_: Tensor) -> Tensor:
        given = list(grads)
        grads[:] = [None] * len(grads)  # first: the hook may raise
        found = hook(given)
        known = [zeros_like(own) if grad is None else grad for own, grad in zip(parts, found, strict=True)]
        return cast(Tensor, cat([grad.reshape(-1) for grad in known]))

    for place, part in enumerate(parts):
        part.register_hook(partial(grads.__setitem__, place))
    whole.register_hook(of_whole)
    return parts
