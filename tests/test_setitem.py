"""`x[index] = value`, the first, second and third time: by Python, into the table, by compiled code."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops import setitem
from tapegrad.recording.keys import TAKES_ARRAYS
from tapegrad.recording.plan_cache import PlanCache
from tapegrad.tape import versions

try:
    import torch
except ImportError:
    torch = None

SHAPE = (6, 5)
ROWS, COLUMNS = np.array([1, 3, 2, 5]), np.array([0, 1, 4, 2])
CASES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "element": ((1, 2), ()),
    "row": (1, (5,)),
    "number for a row": (1, ()),
    "slice": (slice(1, 3), (2, 5)),
    "row for a slice": (slice(1, 3), (5,)),
    "column for a slice": ((slice(None), slice(1, 3)), (6, 1)),
    "all": (Ellipsis, (6, 5)),
    "no element": (slice(2, 2), (5,)),
    "step": ((slice(None, None, -2), 1), (3,)),
    "new dimension": ((None, 1), (1, 5)),
    "array": (ROWS, (4, 5)),
    "row for an array": (ROWS, (5,)),
    "column for an array": (ROWS, (4, 1)),
    "one for an array": (ROWS, (1,)),
    "arrays": ((ROWS, COLUMNS), (4,)),
    "one for arrays": ((ROWS, COLUMNS), (1,)),
    "table of indices": (np.array([[1, 3], [2, 5]]), (2, 1, 5)),
    "array behind a slice": ((slice(1, 5), COLUMNS), (4, 4)),
    "array before a slice": ((COLUMNS, slice(1, 3)), (4, 2)),
    "row for an array and a slice": ((slice(5, None, -2), COLUMNS), (4,)),
    "no index": (np.array([], dtype=np.int64), (5,)),
    "mask": (np.arange(6) % 2 == 0, (3, 5)),
    "whole mask": (np.arange(30).reshape(6, 5) % 4 == 1, ()),
    "too many dimensions": (1, (1, 1, 5)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True), (False, False)])
def test_values_and_gradients(case, wanted):
    """Values are NumPy's. Gradients: the cotangent, 0 where it was written; and what was read there, summed."""
    key, shape = CASES[case]
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=SHAPE), rng.normal(size=SHAPE)
    for _ in range(4):
        value = rng.normal(size=shape)
        a, v = tg.tensor(x, requires_grad=wanted[0]), tg.tensor(value, requires_grad=wanted[1])
        y = a * 1.0
        y[key] = v
        expected = x.copy()
        expected[key] = value
        np.testing.assert_array_equal(y.numpy() if not any(wanted) else y.detach().numpy(), expected)
        assert y.requires_grad == any(wanted)
        if any(wanted):
            (y * weights).sum().backward()
        if wanted[0]:
            left = weights.copy()
            left[key] = 0
            np.testing.assert_array_equal(a.grad.numpy(), left)
        if wanted[1]:
            read = weights[key]
            lengths = (*[1] * (len(shape) - read.ndim), *[1] * (read.ndim - len(shape)), *shape)[-max(read.ndim, 1) :]
            summed = tuple(i for i, n in enumerate(lengths) if read.ndim and n == 1 and read.shape[i] != 1)
            np.testing.assert_allclose(v.grad.numpy(), read.sum(summed).reshape(shape), rtol=1e-13)


@pytest.mark.parametrize("value", [2, 2.5, np.float32(1.5), np.ones(5), np.ones(5, np.float32), [1, 2, 3, 4, 5]])
def test_values_that_are_no_tensors(value):
    a = tg.ones(SHAPE, requires_grad=True)
    for _ in range(4):
        y, expected = a * 1.0, np.ones(SHAPE)
        y[1] = value
        expected[1] = value
        np.testing.assert_array_equal(y.detach().numpy(), expected)
        a.grad = None
        y.sum().backward()
        assert a.grad.sum().item() == 25


@pytest.mark.parametrize("shape", [(1,), (1, 3)])
def test_a_mask_of_no_elements_does_not_fit_one(shape):
    x, mask = tg.zeros(*shape), tg.zeros(0, dtype=tg.bool)
    with pytest.raises(IndexError, match=r"shape of the mask \[0\] at index 0 does not match the shape of the indexed"):
        x[mask] = 1.0
    with pytest.raises(IndexError, match=r"shape of the mask \[0\] at index 0 does not match the shape of the indexed"):
        x[mask]
    assert tg.zeros(0, 3)[mask].shape == (0, 3)


def assert_no_index(x, index, message):
    with pytest.raises(IndexError, match=message):
        x[index] = 1.0
    with pytest.raises(IndexError, match=message):
        x[index]


@pytest.mark.parametrize(
    "index", [np.s_[..., tg.zeros(2, dtype=tg.bool)], np.s_[..., tg.zeros(0, dtype=tg.bool), :], np.s_[:, [False]]]
)
def test_masks_that_are_false_everywhere_have_the_shape_of_what_they_choose_from(index):
    x = tg.zeros(2, 3)
    assert_no_index(x, index, r"shape of the mask \[\d\] at index 0 does not match the shape of")
    assert x[..., tg.zeros(3, dtype=tg.bool)].shape == (2, 0)


@pytest.mark.parametrize("index", [([], 3), (-3, []), (tg.zeros(2, dtype=tg.bool), 5), (..., [], 3)])
def test_integers_beside_arrays_of_no_indices_are_in_range(index):
    x = tg.zeros(2, 3)
    assert_no_index(x, index, r"index -?\d is out of bounds for dimension \d with size \d")
    assert x[[], -3].shape == x[1, []].shape == (0,)


def test_a_mask_is_kept_as_it_was():
    mask = np.array([True, False, True])
    a = tg.ones(3, requires_grad=True)
    for _ in range(4):
        y = a * 1.0
        y[mask] = 0.0
        mask[:] = ~mask
        a.grad = None
        y.sum().backward()
        np.testing.assert_array_equal(a.grad.numpy(), mask)


def test_a_write_costs_what_it_writes():
    """The cotangent goes through writes in place: no buffer as large as the tensor is needed for each."""
    a = tg.ones((1000, 100), requires_grad=True)
    rows = [tg.ones(100, requires_grad=True) for _ in range(3)]
    y = a * 1.0
    for number in range(50):
        y[number] = rows[number % 3]
    weights = np.arange(100000.0).reshape(1000, 100)
    loss = (y * weights).sum()
    before = tg.memory_reserved()
    loss.backward()
    assert tg.memory_reserved() - before < 4 * a.numel() * 8
    weights[:50] = 0
    np.testing.assert_array_equal(a.grad.numpy(), weights)


def test_what_is_not_recorded():
    """With recording off, the tensor keeps its history; integers have none; a leaf may be written to."""
    a, v = tg.ones(SHAPE, requires_grad=True), tg.ones(5, requires_grad=True)
    for _ in range(4):
        y, whole, leaf = a * 1.0, tg.zeros(SHAPE, dtype="int64"), tg.ones(3, requires_grad=True)
        node = y._node
        with tg.no_grad():
            y[1] = v * 2
            leaf[0] = 5.0
        assert y._node is node
        assert leaf.tolist() == [5.0, 1.0, 1.0]
        assert leaf.is_leaf
        whole[2] = v
        assert not whole.requires_grad
        assert whole.sum().item() == 5


def test_errors_are_the_same_each_time():
    for _ in range(4):
        y = tg.ones(SHAPE, requires_grad=True) * 1.0
        y[2] = 1.0
        y[ROWS] = 1.0
        with pytest.raises(RuntimeError, match=r"leaf"):
            tg.ones(SHAPE, requires_grad=True)[2] = 1.0
        with pytest.raises(IndexError, match="out of bounds"):
            y[np.array([1, 3, 2, 6])] = 1.0
        with pytest.raises(IndexError, match="out of bounds"):
            y[6] = 1.0
        with pytest.raises(RuntimeError, match=r"expanded size of the tensor \(5\)"):
            y[2] = tg.ones(4)
        with pytest.raises(RuntimeError, match="shape mismatch"):
            y[ROWS] = tg.ones(4)


def test_versions_and_residuals():
    """Each write counts once, and a sweep refuses what was saved before it, not what was saved after it."""
    for _ in range(4):
        a = tg.ones(SHAPE, requires_grad=True)
        y = a * 1.0
        square = y * y
        before = versions.version(y.detach().numpy())
        y[1] = 3.0
        assert versions.version(y.detach().numpy()) == before + 1
        after = y * y
        after.sum().backward(retain_graph=True)
        assert a.grad.sum().item() == 50
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            square.sum().backward()


def test_views_and_quotients():
    """Views of what is written to get a new history; a value may be a view of the tensor; quotients keep a copy."""
    for _ in range(4):
        a, v = tg.ones(SHAPE, requires_grad=True), tg.ones(5, requires_grad=True)
        y = a * 1.0
        row = y[1]
        y[1] = v * 3.0
        (row * row).sum().backward()
        assert v.grad.tolist() == [18.0] * 5
        z = a * 2.0
        z[0] = z[1]
        z[2] += v
        z.sum().backward()
        assert v.grad.tolist() == [19.0] * 5
        b = tg.full(SHAPE, 2.0, requires_grad=True)
        quotient = 1.0 / b
        quotient[0] = 7.0
        quotient.sum().backward()
        assert b.grad.tolist() == [[0.0] * 5] + [[-0.25] * 5] * 5


def test_retained_gradients_move_to_the_result():
    for _ in range(4):
        y = tg.ones(SHAPE, requires_grad=True) * 1.0
        y.retain_grad()
        y[1] = 0.0
        assert y.retains_grad
        (y * 2).sum().backward()
        assert y.grad.tolist() == [[2.0] * 5] * 6


def test_methods_write_before_anything_is_written_at_an_index(monkeypatch):
    plans = PlanCache()
    plans.connect("setitem", 2, setitem._set_new, 1, TAKES_ARRAYS)
    monkeypatch.setattr(setitem, "_plans", plans)
    for _ in range(3):
        x = tg.ones(3, requires_grad=True)
        y = x * 2
        y.zero_()
        (y + x).sum().backward()
        assert (y.tolist(), x.grad.tolist()) == ([0, 0, 0], [1, 1, 1])
    y[0] = 5
    assert y.tolist() == [5, 0, 0]


@pytest.mark.parametrize(
    "key", [(True, [0]), ([1], None, False), (True, slice(1), [[0], [2]]), (slice(1, 3), True, [0, 1])]
)
def test_single_bools_beside_arrays(key):
    """They are arrays, too, as in NumPy, and meet no dimension: none is new for them where slices are taken first."""
    values = np.arange(30.0).reshape(SHAPE)
    x = tg.tensor(values, requires_grad=True)
    chosen = x[key]
    assert chosen.tolist() == values[key].tolist()
    (slopes,) = tg.autograd.grad((chosen * chosen).sum(), x)
    expected = np.zeros(SHAPE)
    np.add.at(expected, key, 2 * values[key])
    assert slopes.tolist() == expected.tolist()
    written = x.detach().clone()
    written[key] = 7.0
    values[key] = 7.0
    assert written.tolist() == values.tolist()


@pytest.mark.parametrize(("key", "expected"), [(True, [5.0, 5.0]), (False, [1.0, 2.0]), ((..., True), [5.0, 5.0])])
def test_a_truth_value_as_index_chooses_all_or_nothing(key, expected):
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    y[key] = 5.0
    assert y.tolist() == expected
    y.sum().backward()
    assert x.grad.tolist() == [float(value != 5.0) for value in expected]


@pytest.mark.parametrize("dtype", ["float64", "int64", "int8", "uint8", "bool"])
@pytest.mark.parametrize("value", [0, 2.5, 300, True, "row", "rows", "wrong"])
def test_masks_of_rows(dtype: str, value: Any) -> None:
    """Without history they are written at once, as NumPy does, and noted; with history, and by errors, as before."""
    mask = tg.tensor([True, False, True, False])
    x = tg.tensor(np.arange(12).reshape(4, 3) % 2).to(dtype)
    rows = {"row": (3,), "rows": (2, 3), "wrong": (3, 3)}
    given: Any = tg.ones(rows[value], dtype=dtype) if isinstance(value, str) else value
    expected, version = x.numpy().copy(), x._version
    if value == "wrong":
        with pytest.raises(RuntimeError, match="shape mismatch"):
            x[mask] = given
        assert x._version == version
        return
    if value == 300 and dtype in ("int8", "uint8"):
        with pytest.raises(RuntimeError, match="overflow"):
            x[mask] = given
        return
    x[mask] = given
    expected[mask.numpy()] = np.asarray(given).astype(dtype)
    np.testing.assert_array_equal(x.numpy(), expected)
    assert x._version == version + 1
    z = tg.ones((4, 3), requires_grad=True)
    y = z * 2
    y[mask] = 0.0
    y.sum().backward()
    assert z.grad.tolist() == [[0.0] * 3, [2.0] * 3] * 2


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
@pytest.mark.parametrize("value", [1, True, "tensor"])
def test_writes_without_history_at_mixed_indices(dtype: str, value: Any) -> None:
    """Masks, lists and integers beside arrays, written to a view: its base shows them; others stay recorded."""
    rows, columns = tg.tensor([True, False, True, False]), tg.tensor([False, True, True])
    places = tg.tensor([0, 3])
    keys = [
        (rows, 0), (slice(None), columns), (places, 1), ([0, 2], [1, 1]), (slice(None), [0, 2]), (rows, columns.any()),
        (places, slice(1, None)), (Ellipsis, columns), (None, rows), 2, (slice(1, 3), -1),
    ]  # fmt: skip
    for key in keys:
        whole = tg.tensor(np.arange(15).reshape(5, 3) % 2).to(dtype)
        expected, version, view = whole.numpy().copy(), whole._version, whole[1:]
        index = (
            tuple(own.numpy() if isinstance(own, tg.Tensor) else own for own in key) if isinstance(key, tuple) else key
        )
        given = tg.ones((), dtype=dtype) if value == "tensor" else value
        view[key] = given
        expected[1:][index] = 1
        np.testing.assert_array_equal(whole.numpy(), expected)
        assert whole._version == version + 1
    base = tg.ones((5, 3), requires_grad=True)
    y = base * 2
    part = y[1:]
    part[rows, 0] = 0.0
    y.sum().backward()
    assert base.grad[:, 0].tolist() == [2.0, 0.0, 2.0, 0.0, 2.0]
    with tg.no_grad():
        part = base[1:]
        part[rows, 0] = 5.0
    assert base[:, 0].tolist() == [1.0, 5.0, 1.0, 5.0, 1.0]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        part[rows, 0] = 6.0


KEYS = {
    "a mask": lambda m, x: x > 0, "indices and a number": lambda m, x: (m.tensor([1, 0]), 0),
    "a number and indices": lambda m, x: (0, m.tensor([1, 2])), "a mask of rows": lambda m, x: m.tensor([True, False]),
    "a mask of rows, and a slice": lambda m, x: (m.tensor([True, False]), slice(1, None)),
    "nothing": lambda m, x: x > 9, "a list and indices": lambda m, x: ([0, 1], m.tensor([1, 1])),
}  # fmt: skip


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("name", KEYS)
def test_elements_without_history_need_no_plan(name):
    results, calls = [], []
    for m in (tg, torch):
        x = m.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, 6.0]])
        key = KEYS[name](m, x)
        for _ in range(3):
            part = x[key]
            x[key] *= 2.0
        results.append((part.tolist(), x.tolist()))
        if m is tg:
            assert x._version == 3
            sys.setprofile(lambda frame, event, value: calls.append(frame) if event == "call" else None)
            x[key] *= 1.0
            sys.setprofile(None)
    assert results[0] == results[1]
    assert len(calls) < 60
