"""The same call on tapegrad and on PyTorch: results, what belongs to a graph, and errors agree."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad
from tests.torch_programs import torch

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")


class World:
    """One of the two libraries, with tensors made anew."""

    def __init__(self, library: Any) -> None:
        self.T = library
        self.func, self.autograd = library.func, library.autograd
        self.functional, self.forward_ad = library.autograd.functional, library.autograd.forward_ad
        self.x, self.y = self.tensor([1.0, 2.0]), self.tensor([3.0, -1.0])
        self.m = self.tensor([[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]])
        self.s, self.k = self.tensor(2.0), library.tensor([1, 2])
        self.w = self.tensor([1.0, 2.0]).requires_grad_()

    def tensor(self, values: Any) -> Any:
        return self.T.tensor(values, dtype=self.T.float64)

    def ones(self, *shape: int) -> Any:
        return self.T.ones(shape, dtype=self.T.float64)


def described(value: Any) -> Any:
    """A result in plain data: of a tensor its values, its kind of dtype, and whether it belongs to a graph."""
    if isinstance(value, (tapegrad.Tensor, *([torch.Tensor] if torch else []))):
        kind = "float" if value.is_floating_point() or value.is_complex() else "other"
        return "tensor", np.asarray(value.detach().numpy()), kind, value.requires_grad
    if isinstance(value, dict):
        return {key: described(child) for key, child in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value).__name__, *map(described, value)
    return value


def same(first: Any, second: Any) -> bool:
    if isinstance(first, np.ndarray):
        return bool(first.shape == second.shape and np.allclose(first, second, rtol=1e-10, atol=1e-12, equal_nan=True))
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


def outcome(library: Any, call: Callable[[World], Any]) -> tuple[Any, Any]:
    """What a call returns, or the error that it raises."""
    try:
        return described(call(World(library))), None
    except Exception as error:
        return None, error


def words(message: str) -> str:
    """A message without what differs on purpose: class names, structures, numbers' formats."""
    message = re.sub(r"torch\.Size\((\[.*?\])\)", r"\1", message).replace("torch.", "").replace("tapegrad.", "")
    return re.sub(r"\s+", " ", message)


def check(call: Callable[[World], Any], phrase: str | None = None) -> None:
    """Compare a call on the two; the error, if there is one, has PyTorch's words, or both have this phrase."""
    ours, error = outcome(tapegrad, call)
    theirs, their_error = outcome(torch, call)
    if their_error is None:
        if error is not None:
            raise error
        assert same(ours, theirs), (ours, theirs)
        return
    assert error is not None, f"PyTorch raises {their_error!r}"
    assert isinstance(error, type(their_error)), (error, their_error)
    if phrase is not None:
        assert phrase in words(str(error)), error
        assert phrase in words(str(their_error)), their_error
    else:
        assert words(str(error)).startswith(words(str(their_error)).rstrip(".")), (str(error), str(their_error))
