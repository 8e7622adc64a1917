"""The equations of `einsum`: which label each dimension of each operand has, and which the result has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tapegrad.runtime.named_tuples import NamedTuple

Shape = tuple[int, ...]
Label = str | int  # a letter, or a dimension that an ellipsis stands for, counted from the last one, which is 0
Labels = tuple[Label, ...]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # labels of an implicit result stand in this order
_ELLIPSIS = "..."


class Subscripts(NamedTuple):
    """Labels of the operands' dimensions and of the result's, and the length that each label stands for."""

    operands: tuple[Labels, ...]
    result: Labels
    lengths: dict[Label, int]


def read(equation: str, shapes: Sequence[Shape]) -> Subscripts:
    """Return what an equation says of operands of some shapes.

    Raises
    ------
    RuntimeError
        If it is no equation, or does not fit the shapes.

    Examples
    --------
    >>> read("...ij,jk", [(5, 2, 3), (3, 4)])
    Subscripts(operands=((0, 'i', 'j'), ('j', 'k')), result=(0, 'i', 'k'), lengths={0: 5, 'i': 2, 'j': 3, 'k': 4})
    """
    left, arrow, right = equation.partition("->")
    places = _places(equation, left)
    terms = [_term(equation, start, text, f"for operand {number}") for number, (start, text) in enumerate(places)]
    if len(terms) != len(shapes):
        raise _error(
            f"{'fewer' if len(shapes) < len(terms) else 'more'} operands were provided than specified in the equation",
            equation, shapes,
        )  # fmt: skip
    operands = tuple(_labels(equation, number, term, shapes) for number, term in enumerate(terms))
    lengths = _lengths(equation, operands, shapes)
    dots = tuple(sorted((label for label in lengths if isinstance(label, int)), reverse=True))
    if arrow:
        result = _result(equation, len(left) + 2, right, lengths, dots, shapes)
    else:
        counts = Counter(letter for term in terms for letter in term if letter != _ELLIPSIS)
        result = (*dots, *sorted(letter for letter, count in counts.items() if count == 1))
    return Subscripts(operands, result, lengths)


def from_lists(arguments: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return an equation and operands from operands that are each followed by a list of numbers of labels.

    Raises
    ------
    ValueError
        If a list is missing, or has a number that is no label's.

    Examples
    --------
    >>> from_lists(["x", [0, 1], "y", [1, ...], [..., 0]])
    ('AB,B...->...A', ['x', 'y'])
    """
    pairs, rest = len(arguments) // 2, arguments[len(arguments) // 2 * 2 :]
    terms = [_spelled(labels) for labels in arguments[1 : 2 * pairs : 2]]
    equation = ",".join(terms) + "".join("->" + _spelled(labels) for labels in rest)
    return equation, list(arguments[: 2 * pairs : 2])


def _spelled(labels: Any) -> str:
    if not isinstance(labels, (list, tuple)):
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            f"subscripts list; got {type(labels).__name__} in place of a list"
        )
    for label in labels:
        if label is not Ellipsis and not 0 <= label < len(LETTERS):
            raise ValueError(f"einsum(): subscript {label} in subscript list is not within the valid range [0, 52)")
    return "".join(_ELLIPSIS if label is Ellipsis else LETTERS[label] for label in labels)


def _error(message: str, equation: str, shapes: Sequence[Shape] | None = None) -> RuntimeError:
    got = "" if shapes is None else f" and shapes {', '.join(str(list(shape)) for shape in shapes)}"
    return RuntimeError(f"einsum(): {message}; got equation {equation!r}{got}")


def _places(equation: str, left: str) -> list[tuple[int, str]]:
    """Return the operands' parts of an equation, each with its place."""
    found, start = [], 0
    for text in left.split(","):
        found.append((start, text))
        start += len(text) + 1
    return found


def _term(equation: str, start: int, text: str, owner: str) -> list[str]:
    """Return the letters of a part of the equation, and its ellipsis."""
    found: list[str] = []
    place = 0
    while place < len(text):
        letter = text[place]
        if letter == ".":
            if _ELLIPSIS in found:
                raise _error(f"found '.' {owner} for which an ellipsis was already found", equation)
            if not text.startswith(_ELLIPSIS, place):
                raise _error(f"found '.' {owner} that is not part of any ellipsis", equation)
            found.append(_ELLIPSIS)
            place += 2
        elif letter in LETTERS:
            found.append(letter)
        elif letter != " ":
            raise _error(
                f"invalid subscript given at index {start + place} in the equation string, subscripts must be in "
                "[a-zA-Z]", equation,
            )  # fmt: skip
        place += 1
    return found


def _labels(equation: str, number: int, term: Sequence[str], shapes: Sequence[Shape]) -> Labels:
    """Return the labels of an operand's dimensions."""
    ndim, letters = len(shapes[number]), len(term) - (_ELLIPSIS in term)
    if letters > ndim or (letters < ndim and _ELLIPSIS not in term):
        relation, end = ("is more than", "") if _ELLIPSIS in term else ("does not match", " and no ellipsis was given")
        raise _error(
            f"the number of subscripts in the equation ({letters}) {relation} the number of dimensions ({ndim}) for "
            f"operand {number}{end}", equation, shapes,
        )  # fmt: skip
    found: list[Label] = []
    for letter in term:
        found += reversed(range(ndim - letters)) if letter == _ELLIPSIS else [letter]
    return tuple(found)


def _lengths(equation: str, operands: Sequence[Labels], shapes: Sequence[Shape]) -> dict[Label, int]:
    """Return the length of each label; one of 1 is stretched, but not along a diagonal."""
    lengths: dict[Label, int] = {}
    for number, (labels, shape) in enumerate(zip(operands, shapes, strict=True)):
        own: dict[Label, int] = {}
        for label, length in zip(labels, shape, strict=True):
            if own.setdefault(label, length) != length:
                raise _error(
                    f"subscript {label} is repeated for operand {number} but the sizes don't match, {length} != "
                    f"{own[label]}", equation, shapes,
                )  # fmt: skip
        for label, length in own.items():
            seen = lengths.get(label, 1)
            if 1 not in (seen, length) and seen != length:
                if isinstance(label, int):
                    message = (
                        f"dimension {label - max(x for x in own if isinstance(x, int))} covered by ellipsis in operand "
                        f"{number} has size {length} which does not broadcast with previously seen ellipsis with size "
                        f"{seen} for the respective dimension"
                    )
                else:
                    message = (
                        f"subscript {label} has size {length} for operand {number} which does not broadcast with "
                        f"previously seen size {seen}"
                    )
                raise _error(message, equation, shapes)
            lengths[label] = length if seen == 1 else seen
    return lengths


def _result(
    equation: str, start: int, text: str, lengths: dict[Label, int], dots: Labels, shapes: Sequence[Shape]
) -> Labels:
    """Return the labels of a result that the equation names. An ellipsis that it does not name is summed over."""
    found: list[Label] = []
    for letter in _term(equation, start, text, "for output"):
        if letter == _ELLIPSIS:
            found += dots
        elif letter in found:
            raise _error(f"output subscript {letter} appears more than once in the output", equation, shapes)
        elif letter not in lengths:
            raise _error(
                f"output subscript {letter} does not appear in the equation for any input operand", equation, shapes
            )
        else:
            found.append(letter)
    return tuple(found)
