"""What an optimizer says, its formula for one element of a parameter, and the loop over elements that it becomes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from tapegrad import vmath
from tapegrad.compiler import cache
from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.compiler.intrinsics import get
from tapegrad.kernels.rules import rule_parameters
from tapegrad.runtime.named_tuples import NamedTuple

MOST: Final = 3  # states of one kind
#: What stands before the options in the memory that a loop reads, see `loop`.
HEAD: Final = 4
#: Options that are pairs, by the names that formulas have for their parts.
PARTS: Final = {
    "beta1": ("betas", 0), "beta2": ("betas", 1), "eta_minus": ("etas", 0), "eta_plus": ("etas", 1),
    "least": ("step_sizes", 0), "largest": ("step_sizes", 1),
}  # fmt: skip


class Formula(NamedTuple):
    """The formula of an optimizer; the names of parameters say what it reads.

    Attributes
    ----------
    begin : callable
        Called once a parameter: from states that are single numbers, such as ``step``, and options, to the new
        numbers and coefficients. ``fresh`` is 1.0 in the first step of a parameter, and 0.0 later.
    element : callable
        Called for each element: from ``x``, ``grad``, states and all coefficients, to the new ``x`` and new states.
        Weight decay and `maximize` are in ``x`` and ``grad`` already.
    """

    begin: Callable[..., tuple[float, ...]]
    element: Callable[..., tuple[Any, ...]]


class Reads(NamedTuple):
    """What a formula reads, by its parameters.

    Attributes
    ----------
    numbers, states : tuple of str
        The states that are single numbers, and those of the parameter's shape.
    options : tuple of (str, int or None)
        The options, and which part of each.
    fresh : bool
        Whether it asks if the step is the first one.
    """

    numbers: tuple[str, ...]
    states: tuple[str, ...]
    options: tuple[tuple[str, int | None], ...]
    fresh: bool


def reads(formula: Formula, initial: Mapping[str, Any]) -> Reads:
    """Return what a formula reads, where `initial` has the names of all states."""
    begin, element = rule_parameters(formula.begin), rule_parameters(formula.element)
    numbers = tuple(name for name in begin if name in initial)
    return Reads(
        numbers,
        tuple(name for name in element if name in initial and name not in begin),
        tuple(PARTS.get(name, (name, None)) for name in begin[len(numbers) :] if name != "fresh"),
        "fresh" in begin,
    )


@functools.cache
def loop_address(name: str, formula: Formula, numbers: int, states: int, dtype: str, number: str) -> int:
    """Return the address of a formula's loop over the elements of one parameter; see `loop`."""
    fresh = "fresh" in rule_parameters(formula.begin)
    options = len(rule_parameters(formula.begin)) - numbers - fresh
    function = loop(formula, numbers, options, states, fresh, dtype, number)
    return cache.address_of(f"{name}-{dtype}", function, ("int64", "int64"), {"xp": vmath})


def loop(
    formula: Formula, numbers: int, options: int, states: int, fresh: bool, dtype: str, number: str
) -> Callable[[int, int], int]:
    """Return the loop of a formula.

    Parameters
    ----------
    formula : Formula
    numbers, options, states : int
        How many of each it reads.
    fresh : bool
        Whether it asks if the step is the first one.
    dtype, number : str
        Of the parameter, and of states that are single numbers.

    Returns
    -------
    callable
        Of two addresses. At the first one are the number of elements and the addresses of the parameter, its
        gradient, 3 numbers and 3 states. At the second one are a sign of the gradient, how much of the parameter is
        added to it, what the parameter is multiplied by before the step, whether the step is the first one, and the
        options.
    """
    begin, element = formula
    # What is loaded and cut off below is removed by the compiler.
    first, flags = HEAD, 1 if fresh else 0

    def kernel(places: int, values: int) -> int:
        value = as_pointer(values, "float64")
        sign, decay, shrink = load(value, 0), load(value, 1), load(value, 2)
        given = (
            load(value, first), load(value, first + 1), load(value, first + 2), load(value, first + 3),
            load(value, first + 4), load(value, first + 5), load(value, first + 6),
        )[:options]  # fmt: skip
        is_fresh = (load(value, 3),)[:flags]
        p, q, r = (
            as_pointer(get(places, 3), number),
            as_pointer(get(places, 4), number),
            as_pointer(get(places, 5), number),
        )
        before = (float(load(p, 0)), float(load(q, 0)), float(load(r, 0)))[:numbers]
        begun = begin(*before, *given, *is_fresh)
        if numbers > 0:
            store(p, 0, begun[0])
        if numbers > 1:
            store(q, 0, begun[1])
        if numbers > 2:
            store(r, 0, begun[2])
        coefficients = begun[numbers:]
        x, grad = as_pointer(get(places, 1), dtype), as_pointer(get(places, 2), dtype)
        s, t, u = (
            as_pointer(get(places, 6), dtype),
            as_pointer(get(places, 7), dtype),
            as_pointer(get(places, 8), dtype),
        )
        for i in range(get(places, 0)):
            slope = sign * load(grad, i)
            if decay != 0:
                slope += decay * load(x, i)
            after = element(shrink * load(x, i), slope, *(load(s, i), load(t, i), load(u, i))[:states], *coefficients)
            store(x, i, after[0])
            if states > 0:
                store(s, i, after[1])
            if states > 1:
                store(t, i, after[2])
            if states > 2:
                store(u, i, after[3])
        return 0

    return kernel
