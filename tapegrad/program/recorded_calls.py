"""Calls of a compiled function with several results that want a gradient, or with results that inference mode marks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.func.trees import flatten, tree_map
from tapegrad.modes import interceptor, uninterrupted
from tapegrad.ops.creation import as_tensor
from tapegrad.program.derivative import recorded
from tapegrad.program.entry import Dispatch, Variant, make_entry
from tapegrad.program.version import Version
from tapegrad.recording.marking import Marking, mark


class RecordedCall:
    """A version for one kind of arguments: compiled code computes the outputs, one entry of the tape keeps the inputs.

    Attributes
    ----------
    version : Version
    variant : Variant
        It returns a tuple of all outputs, as tensors.
    places : sequence of int
        Which leaves of the arguments are inputs.
    has_arrays : bool
        Whether no argument is a tensor.
    """

    def __init__(self, version: Version, variant: Variant, places: Sequence[int], has_arrays: bool) -> None:
        self.version, self.places, self.has_arrays = version, places, has_arrays
        self._captured = list(version.outside.sources)  # as the variant has them: others may stand there later
        self._entry: Callable[..., Any]
        self.dispatch: Dispatch
        self._entry, self.dispatch = make_entry(_not_served, (variant,))

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
        """Return the result in a tuple; None if the variant does not serve the arguments."""
        outputs = self._entry(*args, **kwargs)
        if outputs is NotImplemented:
            return None
        version, leaves = self.version, flatten((args, kwargs))
        inputs: list[Any] = [as_tensor(leaves[place]) for place in self.places]
        inputs += self._captured
        return (version.result(recorded(version.program, version.run, outputs, inputs), self.has_arrays),)


class MarkedCall:
    """Compiled code that serves calls in inference mode.

    Attributes
    ----------
    dispatch : Dispatch
        It holds the variants that serve other calls too.
    """

    def __init__(self) -> None:
        self._entry, self.dispatch = make_entry(_not_served)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
        """Return the result in a tuple; None if no variant serves the arguments."""
        with uninterrupted():
            result = self._entry(*args, **kwargs)
        return None if result is NotImplemented else (marked(result, flatten((args, kwargs))),)


def _not_served(*args: Any, **kwargs: Any) -> Any:
    return NotImplemented


def is_marking() -> bool:
    """Whether inference mode marks what this thread computes, and nothing else looks at it."""
    own = interceptor()
    return isinstance(own, Marking) and own.outer is None


def marked(tree: Any, operands: Sequence[Any]) -> Any:
    """Mark the tensors in what a call returned, and return it."""
    return tree_map(lambda leaf: mark(leaf, *operands), tree)
