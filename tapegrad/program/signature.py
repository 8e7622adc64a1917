"""Signatures: the containers of a function's arguments and results, and where a program's inputs stand in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.func.trees import flatten, rebuild
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor

__all__ = ["Signature", "Slot", "signature_of"]


class Slot:
    """A leaf that stands for an input or an output of a program."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slot) and other.number == self.number

    def __hash__(self) -> int:
        return hash((Slot, self.number))

    def __repr__(self) -> str:
        return f"<{self.number}>"


class Signature(NamedTuple):
    """How the function of a program is called.

    Attributes
    ----------
    name : str
        Of the function.
    arguments : tuple
        Positional arguments, and a dict of those with names; a `Slot` for each input, all other leaves are the same in
        every call.
    result : object
        What it returns, with a `Slot` for each output.
    wanted : tuple of bool
        Which inputs require grad.
    captured : tuple of Tensor
        Tensors from outside, which are the last inputs.
    """

    name: str
    arguments: Any
    result: Any
    wanted: tuple[bool, ...]
    captured: tuple[Tensor, ...]


def signature_of(
    function: Callable[..., Any],
    arguments: tuple[Any, Sequence[int]],
    result: tuple[Any, Sequence[int]],
    wanted: Sequence[bool],
    captured: Sequence[Tensor],
) -> Signature:
    """Return the signature of a traced function, from trees and the places of those leaves that are values."""
    name = getattr(function, "__name__", "program")
    return Signature(name, _with_slots(*arguments), _with_slots(*result), tuple(wanted), tuple(captured))


def _with_slots(tree: Any, places: Sequence[int]) -> Any:
    leaves = flatten(tree)
    for number, place in enumerate(places):
        leaves[place] = Slot(number)
    return rebuild(tree, leaves)
