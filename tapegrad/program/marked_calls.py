"""Calls of a compiled function whose results inference mode marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapegrad.func.trees import flatten, tree_map
from tapegrad.modes import interceptor, uninterrupted
from tapegrad.program.entry import make_entry
from tapegrad.recording.marking import Marking, mark


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
