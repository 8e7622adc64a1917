"""Containers that compiled functions and transforms take and return: dataclasses, and what functions change in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.func.trees import tree_map

X = np.array([1.0, 2.0])


@dataclass
class Line:
    """Parameters, and something that is computed from them."""

    slope: Any
    height: Any = 1.0
    shift: Any = field(init=False)

    def __post_init__(self) -> None:
        self.shift = np.full(2, 0.5)

    def at(self, x: Any) -> Any:
        return self.slope * x + self.height + self.shift

    @tg.compile
    def compiled(self, x: Any) -> Any:
        return self.at(x)


@dataclass(frozen=True, slots=True)
class Options:
    rate: float
    power: int
    kind: str = "plain"


def test_dataclasses_are_containers():
    line = Line(np.array([3.0, 4.0]), 2.0)

    def loss(own, x):
        return (own.at(x) ** 2).sum()

    for gradient in (tg.func.grad(loss), tg.compile(tg.func.grad(loss))):
        for _ in range(2):
            found = gradient(line, X)
            assert type(found) is Line
            np.testing.assert_allclose(found.slope, 2.0 * line.at(X) * X)
            np.testing.assert_allclose(found.height, 2.0 * line.at(X).sum())
            np.testing.assert_allclose(found.shift, 2.0 * line.at(X))
    np.testing.assert_array_equal(line.compiled(X), line.at(X))
    line.slope = np.array([0.0, 1.0])
    np.testing.assert_array_equal(line.compiled(X), line.at(X))
    np.testing.assert_array_equal(tg.vmap(lambda own, x: own.at(x), in_dims=(None, 0))(line, np.ones((3, 2)))[1],
                                  line.at(np.ones(2)))  # fmt: skip
    carry, heights = tg.compile(lambda own: tg.func.scan(lambda one, x: (Line(one.slope * x, one.height), one.height),
                                                         own, np.ones((3, 2))))(line)  # fmt: skip
    assert type(carry) is Line
    assert heights.shape == (3,)
    best = tg.scipy.minimize(lambda own: ((own.slope - 1) ** 2).sum() + (own.height - own.shift).square().sum(), line)
    np.testing.assert_allclose(best.x.slope, 1.0, atol=1e-4)


def test_dataclasses_with_options_and_as_results():
    function = tg.compile(lambda own, x: Line(x * own.rate**own.power if own.kind == "plain" else -x))
    for options in (Options(2.0, 3), Options(1.5, 3), Options(1.5, 2), Options(1.5, 2, "other")):
        found = function(options, X)
        assert isinstance(found.slope, np.ndarray)
        np.testing.assert_allclose(found.slope, X * options.rate**options.power if options.kind == "plain" else -X)
    assert function(options, tg.tensor(X)).slope.tolist() == [-1.0, -2.0]


def put(d):
    d["new"], d["x"] = d["x"] * 2, d["x"] + 1
    return d["x"].sum()


def take(d):
    d["pair"] = [d["x"], d.pop("y") * 2]
    return d["x"] + 1


def append(d):
    d["list"].append(d["x"] * 3)
    d["list"][0], d["list"][1] = d["list"][1], d["list"][0]
    return d["list"][0] * 2


def assign(d):
    d["line"].height = d["line"].height + d["x"].sum()
    return d["line"].at(d["x"])


@pytest.mark.parametrize("function", [put, take, append, assign])
@pytest.mark.parametrize("as_tensors", [False, True], ids=["arrays", "tensors"])
@pytest.mark.filterwarnings("ignore:.*is not compiled")
def test_what_a_function_changes_in_its_arguments(function, as_tensors):
    def arguments() -> Any:
        own = {"x": X.copy(), "y": X * 3, "list": [np.ones(1), np.zeros(3)], "line": Line(X * 2, np.array(1.0))}
        return tree_map(tg.tensor, own) if as_tensors else own

    compiled = tg.compile(function)
    for _ in range(5):
        one, two = arguments(), arguments()
        assert str((compiled(one), one)) == str((function(two), two))


@pytest.mark.parametrize("kind", ["misaligned", ">f8"])
def test_arrays_that_no_tensor_can_show_are_written_to(kind):
    def function(x, scale):
        x[0] = 5.0
        return x * scale

    compiled = tg.compile(function)
    for _ in range(3):
        x = np.zeros(17, np.uint8)[1:].view(np.float64) if kind == "misaligned" else np.zeros(2, kind)
        x[1] = 7.0
        np.testing.assert_array_equal(compiled(x, np.array([2, 3], ">i4")), [10.0, 21.0])
        assert x.tolist() == [5.0, 7.0]
