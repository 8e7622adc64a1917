"""Writes in place to views, and versions: the same programs on PyTorch and on tapegrad, their values and errors."""

from __future__ import annotations

import re
import sys
import warnings

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")


def leaf(m, *shape, wanted=True):
    return m.tensor(np.arange(float(np.prod(shape))).reshape(shape) + 1, requires_grad=wanted)


def outcome(program, m):
    """Return what a program returns, or its error: the type, and the first words of the message."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return program(m)
        except RuntimeError as error:
            return type(error).__name__, " ".join(re.split(r"\W+", str(error))[:12])


PARTS = {
    "unbind": lambda m, x: x.unbind(0),
    "split": lambda m, x: x.split(2),
    "split with sizes": lambda m, x: m.split(x, [1, 3]),
    "chunk": lambda m, x: x.chunk(2),
    "iteration": lambda m, x: list(x),
    "tensor_split": lambda m, x: m.tensor_split(x, 2),
    "hsplit": lambda m, x: m.hsplit(x, 3),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("grad", ["of a result", "of a constant", "switched off", "of the value"])
def test_parts(name, place, grad):
    def program(m):
        x = leaf(m, 4, 3) * 1 if grad in ("of a result", "switched off") else leaf(m, 4, 3, wanted=False)
        parts = PARTS[name](m, x)
        with m.set_grad_enabled(grad != "switched off"):
            parts[place].mul_(leaf(m, 1) if "value" in grad else 2)
        if x.requires_grad:
            x.sum().backward()
        return x.tolist()

    ours, theirs = outcome(program, tg), outcome(program, torch)
    if grad == "of the value" and ours[0] == "RuntimeError":  # PyTorch's says that the view was made under no_grad
        assert theirs[0] == "RuntimeError"
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", PARTS)
def test_views_of_parts(name):
    for write in (lambda part: part[0].mul_(2), lambda part: part.__setitem__(0, 5.0)):

        def program(m, write=write):
            x = leaf(m, 4, 3) * 1
            write(PARTS[name](m, x)[0])
            return x.tolist()

        ours, theirs = outcome(program, tg), outcome(program, torch)
        if ours[0] == "RuntimeError":  # PyTorch names the view of the part
            assert ours[1].split()[4:] == theirs[1].split()[4:]
        else:
            assert ours == theirs


def without_recording(m, x):
    with m.no_grad():
        return x[0:2]


def write(m, view, value=2):
    view.mul_(value)
    return view.tolist()


def write_without_recording(m, x):
    with m.no_grad():
        x[0:2].mul_(2)
    return x.tolist()


def write_in_inner_view(m):
    x = leaf(m, 2, 3) * 1
    x.view(6)[0] = 9.0
    x.T[1, 1] = 7.0
    x.diagonal().mul_(3)
    (x * x).sum().backward()
    return x.tolist()


def versions_after_writes(m):
    x = leaf(m, 3)
    y = x.detach()
    y[0] = 3
    view = y[1:]
    view += 1
    with m.no_grad():
        x.add_(1)
    x.data.mul_(2)
    bases = view._base is y, view[:1]._base is y, y._base, x._base
    return x._version, y._version, view._version, view._is_view(), y._is_view(), bases


PROGRAMS = {
    "view of a result, made without recording": lambda m: write(m, without_recording(m, leaf(m, 3) * 1)),
    "view of a leaf, made without recording": lambda m: write(m, without_recording(m, leaf(m, 3))),
    "view of that view": lambda m: write(m, without_recording(m, leaf(m, 3))[:1]),
    "an index of it": lambda m: without_recording(m, leaf(m, 3) * 1).__setitem__(0, 1.0),
    "all of it": lambda m: without_recording(m, leaf(m, 3) * 1).copy_(leaf(m, 2)),
    "view of a constant, made without recording": lambda m: write(m, without_recording(m, leaf(m, 3, wanted=False))),
    "all without recording": lambda m: write_without_recording(m, leaf(m, 3)),
    "views of views": write_in_inner_view,
    "versions": versions_after_writes,
    "stretched": lambda m: write(m, (leaf(m, 3) * 1).expand(2, 3)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    ours, theirs = outcome(PROGRAMS[name], tg), outcome(PROGRAMS[name], torch)
    if "no_grad" in str(ours):  # PyTorch names a view of such a view
        assert theirs[0] == "RuntimeError"
        assert "view which was" in theirs[1] or theirs == ours
    else:
        assert ours == theirs


def test_a_refused_write_changes_nothing():
    x = leaf(tg, 4, 3) * 1
    part = x.unbind(0)[0]
    view = without_recording(tg, x)
    for target in (part, view):
        for change in (
            lambda t: t.mul_(2),
            lambda t: t.__setitem__(0, 5.0),
            lambda t: t.zero_(),
        ):
            with pytest.raises(RuntimeError, match="view"):
                change(target)
    assert x._version == 0
    assert x.tolist() == leaf(tg, 4, 3).tolist()


FILLS = {
    "rows": lambda m, y: y.index_fill_(0, m.tensor([-1, 0]), 2),
    "columns of a transposed matrix": lambda m, y: y.T.index_fill_(-1, m.tensor([1, 1]), 2.5),
    "no rows": lambda m, y: y.index_fill_(0, m.tensor([], dtype=m.int64), 2.0),
    "a part": lambda m, y: y[1:].fill_diagonal_(2.0),
    "a leaf": lambda m, y: y.requires_grad_().index_fill_(0, m.tensor([0]), 2.0),
    "the diagonal of a leaf": lambda m, y: y.requires_grad_().fill_diagonal_(2.0),
}


@pytest.mark.parametrize("name", FILLS)
def test_fills_without_a_record(name):
    def program(m):
        y = leaf(m, 3, 4, wanted=False)
        FILLS[name](m, y)
        return y.tolist(), y._version

    assert outcome(program, tg) == outcome(program, torch)


def test_a_fill_that_is_refused_writes_nothing():
    y = tg.zeros(3)
    with pytest.raises(IndexError):
        y.index_fill_(0, tg.tensor([0, 9]), 2.0)
    assert (y.tolist(), y._version) == ([0.0] * 3, 0)


@pytest.mark.parametrize("fill", [lambda y, i: y.index_fill_(0, i, 1.0), lambda y, i: y.fill_diagonal_(1.0)])
def test_fills_without_a_record_take_few_calls(fill):
    y, index, calls = tg.zeros(9, 9), tg.tensor([1, 2]), []
    fill(y, index)
    sys.setprofile(lambda frame, event, value: calls.append(frame) if event == "call" else None)
    try:
        fill(y, index)
    finally:
        sys.setprofile(None)
    assert len(calls) < 25
