"""Composites: functions made of ops. They need no rule; their samples are tested as those of ops are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from tapegrad.ops.table.loading import importing
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.values import KINKS, Draw
from tapegrad.runtime.named_tuples import NamedTuple

F = TypeVar("F", bound=Callable[..., Any])


class Composite(NamedTuple):
    """A function made of ops, and its samples; the fields are those of `Op`."""

    name: str
    function: Callable[..., Any]
    oracle: Callable[..., Any]
    samples: Sequence[Sample]
    domain: tuple[float, float] = (-3.0, 3.0)
    real_only: bool = False
    call: Callable[..., Any] | None = None
    kinks: Sequence[Draw] = KINKS
    file: str = ""

    @property
    def variadic(self) -> bool:
        """Whether there may be any number of operands."""
        return False

    def called(
        self, operands: Sequence[Any], attrs: Mapping[str, Any], function: Callable[..., Any] | None = None
    ) -> Any:
        """Call the function, or another that takes the same arguments, as a sample says."""
        function = function or self.function
        return self.call(function, *operands, **attrs) if self.call else function(*operands, **attrs)

    def rule(self, operand: int) -> Callable[..., Any]:
        """Return the function itself: its ops have the derivative by each operand."""
        return self.function


composites: Final[dict[str, Composite]] = {}


def first_of_several(function: Callable[..., Any], *operands: Any, **attrs: Any) -> Any:
    """Return the first result of a function of several results, or its only one: a `call` of composites."""
    out = function(*operands, **attrs)
    return out[0] if isinstance(out, tuple) else out


def last_of_several(function: Callable[..., Any], *operands: Any, **attrs: Any) -> Any:
    """Return the last result of a function of several results: a `call` of composites."""
    return function(*operands, **attrs)[-1]


def composite(
    samples: Sequence[Sample],
    oracle: Callable[..., Any],
    *,
    domain: tuple[float, float] = (-3.0, 3.0),
    real_only: bool = False,
    call: Callable[..., Any] | None = None,
    kinks: Sequence[Draw] = KINKS,
    name: str = "",
) -> Callable[[F], F]:
    """Put the decorated function into the table of composites: tests are made from its samples.

    Parameters
    ----------
    samples : sequence of Sample
    oracle : callable
        Computes the same from arrays, by NumPy alone.
    domain, real_only, kinks
        As in `Op`.
    name : str
        In the table; default the function's. for one of two functions of a name, in two namespaces.
    call : callable, optional
        Takes the function, and the operands and attributes of a sample, and returns a tensor; default the function's
        result.
    """

    def decorate(function: F) -> F:
        chosen, file = name or function.__name__, importing()
        if not samples or (chosen in composites and composites[chosen].file != file):
            raise ValueError(f"composite {chosen}: the name is taken, or there is no sample")
        composites[chosen] = Composite(chosen, function, oracle, samples, domain, real_only, call, kinks, file)
        return function

    return decorate
