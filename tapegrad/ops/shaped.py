"""Elementwise functions of one operand, and of numbers that shape it: activations, and the forms they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tapegrad.dtypes import TORCH_NAMES
from tapegrad.ops.inplace import in_place
from tapegrad.ops.table.elementwise import elementwise
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Sample
from tapegrad.ops.table.public import FUNCTIONAL, Names, register
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def only_floats(call: str) -> Callable[[tuple[Layout, ...]], None]:
    """Return the check of an op whose operands are not all tensors of integers or bools."""

    def check(layouts: tuple[Layout, ...]) -> None:
        dtype = layouts[0].dtype
        if all(layout.weak or layout.dtype.kind in "biu" for layout in layouts) and not layouts[0].weak:
            name = TORCH_NAMES.get(dtype.name, dtype.name)
            raise NotImplementedError(f"{call} not implemented for '{name}'; it got dtype {dtype}: convert it first")

    return check


def shaped(
    name: str,
    numbers: Mapping[str, float],
    fx: Callable[..., Any],
    rule: Callable[..., Any],
    oracle: Callable[..., Any],
    *,
    special: Mapping[float, float],
    takes_integers: bool = False,
    node_name: str = "",
) -> Callable[..., Tensor]:
    """Make the op of an elementwise function of a real operand ``x`` and of numbers, and return the function.

    Parameters
    ----------
    name : str
    numbers : mapping
        Their names, and the values that they are tested with.
    fx : callable
        The formula, of ``x`` and the numbers.
    rule : callable
        For ``x``; the numbers have no gradient.
    oracle, node_name
        As in `Op`.
    special : mapping
        Derivatives at kinks and edges, with the numbers of the tests.
    takes_integers : bool
    """
    values = tuple(numbers.values())
    shapes, nothing = ((), (3,), (2, 3), (0, 3)), ((),) * len(values)
    return elementwise(
        name,
        ("x", *numbers),
        None,
        (rule, *(NOT_DIFFERENTIABLE,) * len(values)),
        fx=fx,
        real_only=True,
        oracle=oracle,
        node_name=node_name,
        check_dtypes=None if takes_integers else only_floats(name),
        samples=[Sample((shape, *nothing), values=(None, *values)) for shape in shapes],
        special={(x, *values): (slope,) for x, slope in special.items()},
    )


def applied(inplace: bool, function: Callable[..., Tensor], input: Any, *numbers: float) -> Tensor:
    """Return what a function gives, or write it to the operand and return that."""
    return in_place(function)(input, *numbers) if inplace else function(input, *numbers)


def and_inplace(function: F) -> F:
    """Make the decorated function public once more, under its name and an underscore: it writes to its operand."""
    name = function.__name__
    writes = in_place(function, name)
    if hasattr(function, "op"):
        writes.op = function.op  # type: ignore[attr-defined]
    register(f"{name}_", writes, Names(namespaces=(FUNCTIONAL,)))
    return function
