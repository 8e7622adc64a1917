"""Elementwise functions of one operand, and of numbers that shape it: activations, and the forms they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, wraps
from typing import Any, Final, TypeVar

import numpy as np

from tapegrad.dtypes import TORCH_NAMES
from tapegrad.forward.written import writer
from tapegrad.ops.inplace import in_place
from tapegrad.ops.table.elementwise import elementwise
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Sample
from tapegrad.ops.table.public import FUNCTIONAL, Names, register
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])
# The shapes of samples: of one operand, and of several.
_SHAPES: Final = (((),), ((3,),), ((2, 3),), ((0, 3),))
_BROADCAST: Final = (((3,), (3,), (3,)), ((2, 3), (3,), (2, 1)), ((), (), ()))


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
    rules: Callable[..., Any] | tuple[Callable[..., Any], ...],
    oracle: Callable[..., Any],
    *,
    special: Mapping[Any, Any],
    values: tuple[Any, ...] = (),
    takes_integers: bool = False,
    **fields: Any,
) -> Callable[..., Tensor]:
    """Make the op of an elementwise function of real operands ``x``, ``y`` and ``z``, and of numbers.

    Parameters
    ----------
    name : str
    numbers : mapping
        Their names, and the values that they are tested with.
    fx : callable
        The formula, of the operands and the numbers.
    rules : callable or tuple of callable
        For each operand; the numbers have no gradient.
    oracle
        As in `Op`.
    special : mapping
        Derivatives at kinks and edges, with the numbers of the tests.
    values : tuple, optional
        Of the operands of a sample; default any numbers.
    takes_integers : bool
    **fields
        Of `elementwise`.
    """
    rules = rules if isinstance(rules, tuple) else (rules,)
    given, constants = tuple(numbers.values()), ((),) * len(numbers)
    shapes = _SHAPES if len(rules) == 1 else _BROADCAST
    samples = [Sample((*own[: len(rules)], *constants), values=(*(None,) * len(rules), *given)) for own in shapes]
    if values:
        samples.append(Sample((*(np.shape(own) for own in values), *constants), values=(*values, *given)))
    return elementwise(
        name,
        (*"xyz"[: len(rules)], *numbers),
        None,
        (*rules, *(NOT_DIFFERENTIABLE,) * len(given)),
        fx=fx,
        oracle=oracle,
        samples=samples,
        special={
            (*(at if isinstance(at, tuple) else (at,)), *given): slope if isinstance(slope, tuple) else (slope,)
            for at, slope in special.items()
        },
        **{"real_only": True, "check_dtypes": None if takes_integers else only_floats(name), **fields},
    )


@cache
def _writing(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    """Return the function that writes a result over its first argument, as a method of tensors does."""
    return writer(function, in_place(function, name))


def applied(inplace: bool, function: Callable[..., Tensor], input: Any, *numbers: float) -> Tensor:
    """Return what a function gives, or write it to the operand and return that."""
    return _writing(function, function.__name__)(input, *numbers) if inplace else function(input, *numbers)


def and_inplace(function: F) -> F:
    """Make the decorated function public once more, under its name and an underscore: it writes to its operand."""
    name = function.__name__

    @wraps(in_place(function, name))
    def writes(*args: Any, **kwargs: Any) -> Tensor:
        return _writing(function, name)(*args, **kwargs)

    if hasattr(function, "op"):
        writes.op = function.op  # type: ignore[attr-defined]
    register(f"{name}_", writes, Names(namespaces=(FUNCTIONAL,)))
    return function
