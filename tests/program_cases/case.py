"""What a case is: a function as a user writes it, and what tracing it must give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

Kind = Literal["program", "guard", "error"]
PROGRAM: Kind = "program"
GUARD: Kind = "guard"
ERROR: Kind = "error"


class Case(NamedTuple):
    """A function of tensors that returns a tensor or several, the arrays it is traced with, and others."""

    name: str
    kind: Kind
    function: Callable[..., Any]
    inputs: tuple[np.ndarray, ...]
    others: tuple[tuple[np.ndarray, ...], ...]
    message: str


CASES: list[Case] = []

X = np.array([0.6, -0.3, 1.2])
Y = np.array([-0.6, 0.4, -2.0])
Z = np.array([0.1, 2.0, -0.2])
VECTORS = ((X,), (Y,), (Z,))
PAIRS = ((X, Y), (Y, Z), (Z, X))
A = np.array([[2.0, 0.3, -0.1], [0.4, 1.5, 0.2], [-0.2, 0.1, 1.1]])
MATRICES = ((A,), (A.T + 0.1,), (A @ A,))
BOTH = ((A, X), (A.T + 0.1, Y), (A @ A, Z))
INDEXED = tuple((own, np.array(index)) for own, index in ((X, [0, 2, 2]), (Y, [1, 0, 1]), (Z, [2, 1, 0])))


def case(
    kind: Kind, inputs: tuple[tuple[np.ndarray, ...], ...] = VECTORS, message: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function to the cases; of the sets of inputs, it is traced with the first."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append(Case(function.__name__, kind, function, inputs[0], inputs[1:], message))
        return function

    return add
