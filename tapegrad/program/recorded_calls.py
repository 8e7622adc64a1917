"""Calls of a compiled function whose results want a gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.func.trees import flatten
from tapegrad.ops.creation import as_tensor
from tapegrad.program.derivative import recorded
from tapegrad.program.entry import Dispatch, Variant, make_entry
from tapegrad.program.version import Version


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
        self._entry: Callable[..., Any]
        self.dispatch: Dispatch
        self._entry, self.dispatch = make_entry(_not_served, (variant,))

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
        """Return the result in a tuple; None if the variant does not serve the arguments."""
        outputs = self._entry(*args, **kwargs)
        if outputs is None:
            return None
        version, leaves = self.version, flatten((args, kwargs))
        inputs: list[Any] = [as_tensor(leaves[place]) for place in self.places]
        inputs += version.outside.sources
        return (version.result(recorded(version.program, version.run, outputs, inputs), self.has_arrays),)


def _not_served(*args: Any, **kwargs: Any) -> None: ...
