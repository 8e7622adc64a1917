"""Calls that PyTorch warns of: the same category and first words here, at the line of the program."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


def _frozen() -> np.ndarray:
    array = np.ones(3)
    array.flags.writeable = False
    return array


CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "tensor of a tensor": (lambda T: T.tensor(T.ones(2)), "To copy construct from a tensor, it is recommended to use"),
    "new_tensor of a tensor": (lambda T: T.ones(1).new_tensor(T.ones(2)), "To copy construct from a tensor, it is"),
    "T of three dimensions": (lambda T: T.ones(2, 3, 4).T, "The use of `x.T` on tensors of dimension other than 2"),
    "cross without dim": (lambda T: T.cross(T.ones(3), T.ones(3)), "Using {}.cross without specifying the dim arg"),
    "meshgrid without indexing": (lambda T: T.meshgrid(T.ones(2), T.ones(3)), "{}.meshgrid: in an upcoming release"),
    "a list for a tuple": (lambda T: T.ones(2, 2)[[[0, 1], [1, 0]]], "Using a non-tuple sequence for "),
    "a list for a tuple, written to": (lambda T: T.ones(2).__setitem__([None, 0], 1.0), "Using a non-tuple sequence "),
    "an array that is read-only": (lambda T: T.from_numpy(_frozen()), "The given NumPy array is not writable, "),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_warnings(T: Any, name: str) -> None:
    call, words = CALLS[name]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call(T)
    if T.__name__ == "tapegrad":
        assert [one.filename for one in seen] == [__file__]
    for one in seen:  # PyTorch warns once a process
        assert one.category is UserWarning
        assert str(one.message).startswith(words.format(T.__name__))


@pytest.mark.parametrize(
    "call",
    [
        lambda T: T.tensor(np.ones(2)), lambda T: T.ones(2, 3).T, lambda T: T.cross(T.ones(3), T.ones(3), dim=0),
        lambda T: T.meshgrid(T.ones(2), T.ones(3), indexing="ij"), lambda T: T.tensor(_frozen()),
        lambda T: T.from_numpy(np.ones(2)), lambda T: T.ones(2, 2)[[0, 1]], lambda T: T.ones(2, 2)[[[0, 1]],],
        lambda T: T.cartesian_prod(T.ones(2), T.ones(2)),
    ],
)  # fmt: skip
def test_calls_without_warning(T: Any, call: Callable[[Any], Any]) -> None:
    for _ in range(3):  # by Python and by compiled code
        call(T)
