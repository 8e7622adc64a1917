"""What compiled code reads indices from: contiguous int64 in range, whatever a caller gives."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.kernels.indexed import ARRAY
from tapegrad.ops.index_keys import plain_items
from tapegrad.ops.table.op import xp
from tests.both import needs_torch
from tests.torch_programs import torch

X = np.arange(12.0).reshape(4, 3) + 1
WIDE = np.array([3, 9, -1, 9, 0, 9, 3, 9])
ARRAYS = {
    "int32": np.array([3, -1, 0, 3], np.int32),
    "uint8": np.array([3, 3, 0, 3], np.uint8),
    "strided": WIDE[::2],
    "reversed": np.array([3, 0, -1, 3])[::-1],
    "broadcast": np.broadcast_to(np.int64(3), 4),
    "empty": np.array([], np.int64),
    "matrix": np.array([[3, -1], [0, 3]], np.int32).T,
}
WRONG = {"beyond": [4], "below": [-5], "far": [2**62], "fractions": [0.5]}


def _gather(x: Any, index: np.ndarray) -> Any:
    return xp.index_gather(x, (index,), (ARRAY,))


def _gather_twice(x: Any, index: np.ndarray) -> Any:
    return xp.index_gather(x, (index, np.int32(2) * (index == 0)), (ARRAY, ARRAY))


def _scatter(x: Any, index: np.ndarray) -> Any:
    return xp.index_scatter_add(xp.expand(x[0], (*index.shape, 3)), (index,), (ARRAY,), (4, 3))


def _replace(x: Any, index: np.ndarray) -> Any:
    return xp.index_replace(x, x[1] * 2.0, (index,), (ARRAY,))


# Each primitive, and what NumPy does with an array, of the same numbers.
PRIMITIVES: dict[Callable[..., Any], Callable[..., Any]] = {
    _gather: lambda x, index: x[index],
    _gather_twice: lambda x, index: x[index, 2 * (index == 0)],
    _scatter: lambda x, index: _added(np.zeros((4, 3)), index, x[0]),
    _replace: lambda x, index: _put(x, index, 2.0 * x[1]),
}


def _added(out: np.ndarray, index: np.ndarray, value: Any) -> np.ndarray:
    np.add.at(out, index, value)
    return out


def _put(x: np.ndarray, index: np.ndarray, value: Any) -> np.ndarray:
    out = x.copy()
    out[index] = value
    return out


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("primitive", PRIMITIVES, ids=lambda own: own.__name__)
def test_any_layout(primitive: Callable[..., Any], name: str) -> None:
    """Values, and gradients against those of the same indices in an array of the layout that kernels read."""
    index = ARRAYS[name]
    plain, wide = np.array(index, np.int64), np.ascontiguousarray(index).astype(np.int64)
    found = []
    for given in (index, wide):
        x = tg.tensor(X, requires_grad=True)
        y = primitive(x, given)
        np.testing.assert_array_equal(y.detach().numpy(), PRIMITIVES[primitive](X, plain))
        (first,) = tg.autograd.grad((y * y).sum(), x, create_graph=True)
        (second,) = tg.autograd.grad((first * first).sum(), x)
        found.append((first.detach().numpy(), second.numpy()))
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("primitive", PRIMITIVES, ids=lambda own: own.__name__)
def test_refused(primitive: Callable[..., Any], name: str) -> None:
    x = tg.tensor(X, requires_grad=True)
    with pytest.raises(IndexError):
        primitive(x, np.array(WRONG[name]))


def test_as_many_arrays_as_the_key_has_places() -> None:
    x, index = tg.tensor(X, requires_grad=True), np.array([0])
    for arrays, key in (((index,), (ARRAY, ARRAY)), ((index, index), (ARRAY,)), ((), (ARRAY,))):
        for call in (
            lambda arrays=arrays, key=key: xp.index_gather(x, arrays, key),
            lambda arrays=arrays, key=key: xp.index_scatter_add(x, arrays, key, (4, 3)),
            lambda arrays=arrays, key=key: xp.index_replace(x, 0.0, arrays, key),
        ):
            with pytest.raises(IndexError, match="places for index arrays"):
                call()
    with pytest.raises(IndexError, match="index_gather"):
        xp.index_gather(x, (np.array([0, 1]), np.array([0, 1, 2])), (ARRAY, ARRAY))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, index: tg.index_select(x, 0, index),
        lambda x, index: tg.nn.functional.embedding(index, x),
        lambda x, index: tg.take(x, index),
        lambda x, index: tg.gather(x, 0, tg.tensor(np.stack([index] * 3, 1))),
        lambda x, index: tg.take_along_dim(x, tg.tensor(index[:, None]), 0),
        lambda x, index: tg.scatter_add(tg.zeros(4, 3), 0, tg.tensor(np.stack([index] * 3, 1)), x),
        lambda x, index: tg.index_add(tg.zeros(4, 3), 0, index, x),
        lambda x, index: tg.index_copy(tg.zeros(4, 3), 0, index, x),
        lambda x, index: tg.nn.functional.cross_entropy(x[:, :3], index % 3),
        lambda x, index: x[index],
    ],
)
def test_later_changes_of_indices_do_not_matter(function: Callable[..., Any]) -> None:
    """Neither do those of int32, strided; the array is written to between forward and backward."""
    gradients = []
    for spoilt in (False, True):
        memory = np.array([3, 9, 1, 9, 0, 9, 2, 9], np.int32)
        x = tg.tensor(X, requires_grad=True)
        y = function(x, memory[::2])
        if spoilt:
            memory[:] = 2**30
        y.sum().backward()
        gradients.append(x.grad.numpy())
    np.testing.assert_array_equal(*gradients)


@pytest.mark.parametrize("order", ["sort", "topk", "kthvalue", "max"])
def test_indices_that_users_get(order: str) -> None:
    """They are arrays that a program can write to: what is out of range is passed over."""
    x = tg.tensor(X, requires_grad=True)
    calls = {"topk": lambda: tg.topk(x, 2, 0), "kthvalue": lambda: tg.kthvalue(x, 2, 0)}
    values, indices = calls.get(order, lambda: getattr(tg, order)(x, 0))()
    np.asarray(indices._data)[...] = 2**40
    values.sum().backward()
    assert x.grad.shape == (4, 3)


# Ways to write an index -----------------------------------------------------------------------------------------------

ROWS, COLUMNS = np.array([0, 2]), np.array([1, 0, 2])
WAYS = {
    "a list": ([0, 2],),
    "int32": (np.array([0, 2], np.int32),),
    "a column": (np.array([[0, 1], [2, 1]])[:, 0],),
    "lists": ([0, 2], [1, 0]),
    "broadcast": (ROWS[:, None], COLUMNS),
    "an int and an array": (1, COLUMNS),
    "a number of NumPy and a list": (np.int64(1), [1, 0, 2]),
    "an array and an int": (ROWS, -1),
    "a mask": (np.array([True, False, True, False]),),
    "a mask of two dimensions": (X % 2 == 0,),
    "a mask and an int": (np.array([True, False, True, False]), 1),
    "a number of NumPy": (np.int64(-2),),
    "a number of NumPy in a slice": (slice(np.int64(1), np.int32(3)), slice(None, None, np.int8(2))),
    "a tensor of one number": (tg.tensor(1),),
    "a flag and an array": (True, ROWS),
}


LISTS: tuple[list[Any], ...] = (
    [[0, 1], [1, 0]], [[0, 2]], [slice(1, 3), 0], [None, 0], [..., 1], [ROWS, ROWS[[1, 0]]], [(0, 1), [1, 1]],
    [range(2)], [1, [0, 2]], [[True, False, True, False]],
)  # fmt: skip


@needs_torch
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@pytest.mark.parametrize("key", LISTS, ids=str)
def test_lists_that_stand_for_tuples(key: list[Any]) -> None:
    found = []
    for lib in (tg, torch):
        for _ in range(3):
            x = lib.tensor(X, requires_grad=True)
            written = x * 1
            written[key] = 7.0
            chosen = x[key]
            (written.sum() + (chosen * chosen).sum()).backward()
        found.append([own.detach().numpy() for own in (chosen, written, x.grad)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_write_an_index_is_found_in_the_form_of_its_plan(way: str) -> None:
    key = WAYS[way] if len(WAYS[way]) > 1 else WAYS[way][0]
    plain = plain_items(tg.tensor(X), WAYS[way])
    again = plain_items(tg.tensor(X), plain)
    assert len(again) == len(plain)
    assert all(map(operator.is_, again, plain))  # else a call would not end
    numbers = tuple(item.numpy() if isinstance(item, tg.Tensor) else item for item in WAYS[way])
    for _ in range(3):  # a plan is made, found by Python, found by compiled code
        x = tg.tensor(X, requires_grad=True)
        chosen = x[key]
        np.testing.assert_array_equal(chosen.detach(), X[numbers])
        (chosen * chosen).sum().backward()
        expected = np.zeros_like(X)
        np.add.at(expected, numbers, 2 * X[numbers])
        np.testing.assert_array_equal(x.grad, expected)


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("offsets", [None, [0, 3, 3, 7]])
def test_bags_are_rows_added_to_rows(mode: str, padding: int | None, offsets: list[int] | None) -> None:
    rng = np.random.default_rng(0)
    table = tg.tensor(rng.standard_normal((5, 3)), requires_grad=True)
    chosen = rng.integers(0, 5, (4, 3) if offsets is None else 12)
    places = None if offsets is None else tg.tensor(offsets)
    out = tg.nn.functional.embedding_bag(tg.tensor(chosen), table, places, mode=mode, padding_idx=padding)
    assert "rows_added" in str(out.tape())
    bags = list(chosen) if offsets is None else np.split(chosen, offsets[1:])
    weights = np.zeros((4, 5))
    for row, bag in zip(weights, bags, strict=True):
        counted = bag[bag != padding]
        np.add.at(row, counted, 1 / max(1, len(counted)) if mode == "mean" else 1)
    np.testing.assert_allclose(out.detach(), weights @ table.detach().numpy(), atol=1e-15)
    (out * out).sum().backward()
    np.testing.assert_allclose(table.grad, 2 * weights.T @ out.detach().numpy(), atol=1e-14)


def test_rows_that_there_are_not() -> None:
    x = tg.ones(2, 2)
    for source, target in ((2, 0), (0, 1), (-3, 0)):
        with pytest.raises(IndexError, match="out of bounds"):
            xp.rows_added(x, (np.array([source]), np.array([target])), 1)
    pairs = np.array([[0, 9], [1, 9]])[:, 0]  # whose elements do not stand together
    np.testing.assert_array_equal(xp.rows_added(x, (pairs, pairs * 0), 1), [[2, 2]])
