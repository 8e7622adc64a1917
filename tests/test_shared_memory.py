"""Tensors that share memory share it again in what is loaded, and in deep copies: as in PyTorch."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

Pieces = Callable[[Any, Any], Any]


def through_file(T: Any, value: Any) -> Any:
    file = io.BytesIO()
    T.save(value, file)
    file.seek(0)
    return T.load(file)


VIEWS: dict[str, Pieces] = {
    "a part and the whole": lambda T, x: [x[1:3], x],
    "the whole and a part": lambda T, x: [x, x[1:3]],
    "parts that overlap": lambda T, x: [x[1:5], x[2:]],
    "parts that do not": lambda T, x: [x[:2], x[4:]],
    "other shapes": lambda T, x: [x.view(2, 3), x.view(3, 2).t(), x.view(2, 3)[:, 1]],
    "every other": lambda T, x: [x[::2], x[1::2], x],
    "stretched": lambda T, x: [x[0].expand(3), x],
    "detached": lambda T, x: [x, x.detach()],
    "turned memory": lambda T, x: [x.view(2, 3).t(), x],
}


@pytest.mark.parametrize("kept", [through_file, lambda T, value: copy.deepcopy(value)], ids=["file", "deepcopy"])
@pytest.mark.parametrize("name", VIEWS)
def test_views(T: Any, kept: Callable[[Any, Any], Any], name: str) -> None:
    x = T.arange(6.0)
    pieces = VIEWS[name](T, x)
    found = kept(T, pieces)
    assert [one.tolist() for one in found] == [one.tolist() for one in pieces]
    assert [tuple(one.stride()) for one in found] == [tuple(one.stride()) for one in pieces]
    for own in (found, pieces):
        own[-1][0].fill_(50.0)
    if T is tg:  # loaded tensors of PyTorch have a version each
        assert len({one._version for one in found}) == 1
    assert [one.tolist() for one in found] == [one.tolist() for one in pieces]


def test_one_tensor_twice(T: Any) -> None:
    x, p = T.ones(2, requires_grad=True), T.nn.Parameter(T.zeros(2))
    found = through_file(T, {"a": x, "b": [x, p], "c": (p,)})
    assert found["a"] is found["b"][0]
    assert found["b"][1] is found["c"][0]
    assert (found["a"].requires_grad, type(found["c"][0])) == (True, T.nn.Parameter)


def test_tied_weights(T: Any) -> None:
    class Tied(T.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = T.nn.Linear(2, 2), T.nn.Linear(2, 2)
            self.b.weight = self.a.weight

    state = through_file(T, Tied().state_dict())
    state["a.weight"].fill_(3)
    assert state["b.weight"].tolist() == [[3, 3], [3, 3]]


def test_memory_of_other_kinds() -> None:
    z = tg.tensor([1 + 2j, 3.0])  # PyTorch refuses to save views of other dtypes
    found = through_file(tg, [z, z.real, np.arange(4)[::-1], tg.from_numpy(np.arange(6.0)[::-2])])
    assert [np.asarray(one).tolist() for one in found] == [[1 + 2j, 3], [1, 3], [3, 2, 1, 0], [5, 3, 1]]
    frozen = np.broadcast_to(np.arange(3.0), (2, 3))
    assert through_file(tg, [frozen, frozen[0]])[0].tolist() == frozen.tolist()
    empty = tg.zeros(3)[:0]
    assert [one.shape for one in through_file(tg, [empty, tg.zeros(0), empty])] == [(0,)] * 3


def test_files_without_parts_are_of_the_first_format() -> None:
    for value, expected in (([tg.ones(2), tg.ones(2)], "tapegrad 1"), ([tg.ones(4)[:2].t()] * 2, "tapegrad 2")):
        file = io.BytesIO()
        tg.save(value, file)
        assert json.loads(zipfile.ZipFile(file).read("structure.json"))["format"] == expected


@pytest.mark.parametrize(
    "part",
    [
        [0, [7], [1]], [6, [1], [1]], [-1, [1], [1]], [0, [2], [6]], [0, [2], [-1]], [0, [-1], [1]], [0, [1], []],
        [0, [10**30], [0]], [0, [2, 2], [1]], ["0", [1], [1]], [0, "1", [1]], [0, [1]], 3, None, [0.5, [1], [1]],
    ],
    ids=repr,
)  # fmt: skip
def test_hostile_parts(part: Any) -> None:
    file = io.BytesIO()
    tg.save(tg.arange(6.0), file)
    value = {"format": "tapegrad 2", "value": {"Tensor": 0, "requires_grad": False, "part": part}}
    other = io.BytesIO()
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(other, "w") as changed:
        changed.writestr("0.npy", archive.read("0.npy"))
        changed.writestr("structure.json", json.dumps(value))
    other.seek(0)
    with pytest.raises(RuntimeError, match="is damaged"):
        tg.load(other)


def test_a_tensor_again_that_is_not_there() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("structure.json", json.dumps({"format": "tapegrad 2", "value": {"again": 0}}))
    file.seek(0)
    with pytest.raises(RuntimeError, match="is damaged"):
        tg.load(file)
