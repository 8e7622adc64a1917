"""Drawings of graphs, as SVG and as DOT text, and the memory that graphs keep."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd import graph
from tapegrad.tape.drawing import MOST_DRAWN

SVG = "{http://www.w3.org/2000/svg}"


def network() -> tuple[tg.Tensor, dict[str, tg.Tensor]]:
    leaves = {name: tg.ones(shape, requires_grad=True) for name, shape in (("x", (4, 3)), ("w", (3, 5)), ("b", (5,)))}
    hidden = tg.tanh(leaves["x"] @ leaves["w"] + leaves["b"])
    return (hidden * hidden + leaves["b"]).sum(), leaves


def drawn(tape: object) -> tuple[list[str], list[ET.Element], list[ET.Element]]:
    root = ET.fromstring(tape._repr_svg_())  # type: ignore[attr-defined]
    return (
        [own.text or "" for own in root.iter(f"{SVG}text")],
        list(root.iter(f"{SVG}rect")),
        [own for own in root.iter(f"{SVG}path") if own.get("stroke")],
    )


def test_svg() -> None:
    loss, _ = network()
    tape = loss.tape()
    texts, boxes, lines = drawn(tape)
    assert len(boxes) == len(tape) + 3
    assert sum(line.get("marker-end") is not None for line in lines) == 2 + 2 + 1 + 1 + 2 + 1
    for text in ("%0 matmul", "float64[4, 5]", "saves 216 B", "saves nothing", "leaf2", "float64[3, 5]", "%5 sum"):
        assert text in texts
    corners = {(box.get("x"), box.get("y")) for box in boxes}
    assert len(corners) == len(boxes), "boxes lie over each other"
    heights = {text: float(own.get("y")) for text, own in zip(texts[::3], boxes, strict=True)}
    assert heights["leaf0"] < heights["%0 matmul"] < heights["%2 tanh"] < heights["%5 sum"]
    assert heights["leaf2"] == heights["%0 matmul"]  # right above what uses it first


def test_what_was_freed_is_drawn_with_dashes() -> None:
    loss, _ = network()
    tape = loss.tape()
    (loss * 2).backward()
    texts, boxes, lines = drawn(tape)
    assert texts.count("freed") == len(tape)
    assert sum(box.get("stroke-dasharray") is not None for box in boxes) == len(tape)
    assert sum(line.get("marker-end") is not None for line in lines) == 9  # as the tape was read before


def residual(x: tg.Tensor) -> tg.Tensor:
    h = x
    for factor in range(1, 5):
        h = h * h + (x * factor).sin()
    return h.sum()


@pytest.mark.parametrize("make", [lambda: network()[0], lambda: residual(tg.ones(3, requires_grad=True))])
def test_no_line_runs_behind_a_box(make: Callable[[], tg.Tensor]) -> None:
    _, boxes, lines = drawn(make().tape())
    sides = [tuple(float(box.get(name, "")) for name in ("x", "y", "width", "height")) for box in boxes]
    for line in lines:
        points = np.array([own.strip("ML").split(",") for own in line.get("d", "").split()], float)
        for start, end in itertools.pairwise(points):
            for part in np.linspace(0.01, 0.99, 50):
                x, y = start + part * (end - start)
                assert not any(left < x < left + width and top < y < top + height for left, top, width, height in sides)


def test_a_leaf_that_died() -> None:
    y = tg.exp(tg.ones(2, requires_grad=True))
    assert "died" in drawn(y.tape())[0]


def test_what_is_not_drawn() -> None:
    x = tg.ones(2, requires_grad=True)
    assert x.tape()._repr_svg_() is None
    for _ in range(MOST_DRAWN + 1):
        x = x + 1
    assert x.tape()._repr_svg_() is None
    assert len(graph.to_dot(x).splitlines()) > MOST_DRAWN


def test_dot() -> None:
    loss, leaves = network()
    text = graph.to_dot(loss, {"weight": leaves["w"], "bias": leaves["b"]})
    assert 'leaf1 [label="weight\\nfloat64[3, 5]\\nleaf"' in text
    assert 'leaf0 [label="leaf0\\n' in text
    assert text.count("->") == 10
    assert '  leaf2 -> "%4";' in text

    class Module:
        def named_parameters(self) -> object:
            return leaves.items()

    assert set(re.findall(r'label="([a-z])\\n', graph.to_dot(loss, Module()))) == set("xwb")
    graphviz = pytest.importorskip("graphviz")
    assert graphviz.Source(text).source.rstrip() == text.rstrip()  # newer versions end it with a new line


def test_memory() -> None:
    loss, _ = network()
    found = graph.memory(loss)
    assert dict(found) == {"tanh": 160, "matmul": 0, "add": 0, "mul": 0, "sum": 0}
    assert next(iter(found)) == "tanh"
    assert (found.total, found.leaves, len(found)) == (160, 12 * 8 + 15 * 8, 5)
    assert re.search(r"add +2 +0 B\n", repr(found))
    assert "data of leaves, not counted: 216 B" in repr(found)
    loss.backward(retain_graph=True)
    assert graph.memory(loss).total == 160
    loss.backward()
    assert graph.memory(loss).total == 0


def test_memory_counts_what_is_kept() -> None:
    x = tg.tensor(np.linspace(0.0, 1.0, 1000), requires_grad=True)
    assert graph.memory(x.sin().exp().log().sum()).total == 8000  # exp's result is log's operand
    assert graph.memory((x + 1).sum()).total == 0
