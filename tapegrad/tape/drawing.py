"""Drawings of a graph: as SVG, which notebooks show, and as DOT text, which graphviz lays out and people can read."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape import views
from tapegrad.tape.entries import PLAN_OBJECT, SLOT, Leaf, TapeNode, is_consumed, slot_of
from tapegrad.tape.layout import Layout
from tapegrad.tape.listing import Tape

if TYPE_CHECKING:
    from tapegrad.tensor import Tensor

MOST_DRAWN = 400  # entries; a drawing of more serves nobody
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 150, 50, 20, 36
_FILL = {"leaf": "#cfe8cf", "root": "#ffe0b0", "entry": "#dde6f5", "consumed": "#eeeeee"}


class Vertex(NamedTuple):
    """A box of a drawing: its id, its lines of text, its kind (a key of `_FILL`), and the ids that arrows come from."""

    name: str
    lines: tuple[str, ...]
    kind: str
    operands: tuple[str, ...]


def span_of(value: Any) -> tuple[int, int]:
    """Return the address and the bytes of an array's memory; (0, 0) for a number."""
    return (value.__array_interface__["data"][0], value.nbytes) if isinstance(value, np.ndarray) else (0, 0)


def residual_spans(node: TapeNode) -> set[tuple[int, int]]:
    """Return the memory of the arrays that an entry has saved, each once; nothing if it was freed."""
    plan = node[PLAN_OBJECT]
    return set() if is_consumed(node) else {span_of(node[plan.position(name)]) for name in plan.saved}


def in_words(count: int) -> str:
    """Return a number of bytes as people read it.

    >>> in_words(48), in_words(2_500_000)
    ('48 B', '2.5 MB')
    """
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def _short(layout: Layout) -> str:
    return f"{layout.dtype}{list(layout.shape)}"


def vertices(tape: Tape, names: Mapping[int, str]) -> list[Vertex]:
    """Return the boxes of a drawing, operands before results.

    Parameters
    ----------
    tape : Tape
    names : mapping of int to str
        Names of leaves, by slot.
    """
    entries = tape.entries()
    ids = {node[SLOT]: f"%{number}" for number, (node, _) in enumerate(entries)}
    boxes: list[Vertex] = []
    for number, (node, operands) in enumerate(entries):
        plan, consumed = node[PLAN_OBJECT], is_consumed(node)
        for operand in operands:
            if isinstance(operand, Leaf) and operand.slot not in ids:
                ids[operand.slot] = name = f"leaf{sum(box.kind == 'leaf' for box in boxes)}"
                boxes.append(_leaf_box(name, operand, names.get(operand.slot)))
        saved = sum(size for _, size in residual_spans(node))
        state = "freed" if consumed else f"saves {in_words(saved)}" if saved else "saves nothing"
        kind = "consumed" if consumed else "root" if number == len(entries) - 1 else "entry"
        arrows, name = tuple(ids[slot_of(operand)] for operand in operands), ids[node[SLOT]]
        boxes.append(Vertex(name, (f"{name} {plan.name}", _short(plan.result), state), kind, arrows))
    return boxes


def _leaf_box(name: str, leaf: Leaf, given: str | None) -> Vertex:
    tensor = leaf.tensor()
    return Vertex(name, (given or name, "died" if tensor is None else _short(tensor._layout), "leaf"), "leaf", ())


def names_of(params: Any) -> dict[int, str]:
    """Return names by slot, of a mapping from names to tensors, or of a module."""
    if params is None:
        return {}
    named = params.items() if isinstance(params, Mapping) else params.named_parameters()
    return {tensor._node.slot: name for name, tensor in named if isinstance(tensor._node, Leaf)}


def to_dot(tensor: Tensor, params: Any = None) -> str:
    r"""Return the graph of a tensor as DOT text, which graphviz draws: ``graphviz.Source(to_dot(loss))``.

    Parameters
    ----------
    tensor : Tensor
        A result.
    params : mapping of str to Tensor, or Module, optional
        Names for leaves.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> print(tg.autograd.graph.to_dot((x * x).sum(), {"x": x}))
    digraph tape {
      node [shape=box, style=filled, fontname=monospace];
      leaf0 [label="x\nfloat64[2]\nleaf", fillcolor="#cfe8cf"];
      "%0" [label="%0 mul\nfloat64[2]\nsaves 16 B", fillcolor="#dde6f5"];
      leaf0 -> "%0";
      leaf0 -> "%0";
      "%1" [label="%1 sum\nfloat64[]\nsaves nothing", fillcolor="#ffe0b0"];
      "%0" -> "%1";
    }
    """
    lines = ["digraph tape {", "  node [shape=box, style=filled, fontname=monospace];"]
    for box in vertices(Tape(views.renewed(tensor)._node), names_of(params)):
        label = "\\n".join(line.replace('"', '\\"') for line in box.lines)
        lines.append(f'  {_quoted(box.name)} [label="{label}", fillcolor="{_FILL[box.kind]}"];')
        lines += [f"  {_quoted(operand)} -> {_quoted(box.name)};" for operand in box.operands]
    return "\n".join([*lines, "}"])


def _quoted(name: str) -> str:
    return name if name.isalnum() else f'"{name}"'


# SVG ----------------------------------------------------------------------------------------------------------------


class Spot(NamedTuple):
    """A place in a layer: a box, or the line of one whose result is used further below.

    Without these, a line would run behind the boxes of the layers between, as if it came from them.
    """

    name: str
    layer: int
    is_line: bool = False


def _layers(boxes: list[Vertex]) -> list[list[Spot]]:
    """Return the layers from above: each box stands right above the first that uses it, and its line as far as used."""
    depth = dict.fromkeys((box.name for box in boxes), 0)
    for box in reversed(boxes):
        for name in box.operands:
            depth[name] = max(depth[name], depth[box.name] + 1)
    last = max(depth.values(), default=0)
    ends = {name: last - depth[name] for name in depth}
    rows: list[list[Spot]] = [[] for _ in range(last + 1)]
    for box in boxes:
        rows[last - depth[box.name]].append(Spot(box.name, last - depth[box.name]))
        for name in box.operands:
            ends[name] = max(ends[name], last - depth[box.name])
    for box in boxes:
        for layer in range(last - depth[box.name] + 1, ends[box.name]):
            rows[layer].append(Spot(box.name, layer, True))
    return rows


def _places(boxes: list[Vertex], rows: list[list[Spot]]) -> dict[tuple[str, int], tuple[float, float]]:
    """Return the middle of each spot: in a layer they stand in the order of the middles of what leads to them."""
    operands = {box.name: box.operands for box in boxes}
    widest = max(map(_width, rows))
    places: dict[tuple[str, int], tuple[float, float]] = {}
    for layer, row in enumerate(rows):

        def wish(spot: Spot) -> float:
            names = (spot.name,) if spot.is_line else operands[spot.name]
            above = [places[name, spot.layer - 1][0] for name in names]
            return sum(above) / len(above) if above else widest

        x = (widest - _width(row)) / 2
        for spot in sorted(row, key=wish):
            width = _width([spot])
            places[spot.name, layer] = x + width / 2, layer * (_HEIGHT + _GAP_Y) + _HEIGHT / 2 + _GAP_Y / 2
            x += width
    return places


def _width(row: Iterable[Spot]) -> float:
    return sum(_GAP_X + (0 if spot.is_line else _WIDTH) for spot in row)


def svg(tape: Tape) -> str | None:
    """Return a drawing of a tape as SVG; None if it is empty, or too long to be looked at."""
    if not 0 < len(tape) <= MOST_DRAWN:
        return None
    boxes = vertices(tape, {})
    rows = _layers(boxes)
    places = _places(boxes, rows)
    width, height = max(map(_width, rows)), len(rows) * (_HEIGHT + _GAP_Y)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    font = 'font-family="monospace" font-size="11" text-anchor="middle"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>', _TIP]
    parts += [_line(places[name, layer - 1], places[name, layer], True)
              for row in rows for name, layer, is_line in row if is_line]  # fmt: skip
    drawn = {spot.name: spot for row in rows for spot in row if not spot.is_line}
    for box in boxes:
        layer = drawn[box.name].layer
        parts += [_line(places[name, layer - 1], places[box.name, layer]) for name in dict.fromkeys(box.operands)]
        parts += _box(box, *places[box.name, layer])
    return "\n".join([*parts, "</svg>"])


_TIP = (
    '<marker id="tapegrad-tip" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
    '<path d="M0,0 L6,3 L0,6 z" fill="#888888"/></marker>'
)


def _line(above: tuple[float, float], below: tuple[float, float], goes_on: bool = False) -> str:
    """Return the line between two spots; one that goes on passes its layer."""
    (x1, y1), (x2, y2) = above, below
    path = f"M{x1},{y1 + _HEIGHT / 2} L{x2},{y2 - _HEIGHT / 2}"
    end = f" L{x2},{y2 + _HEIGHT / 2}" if goes_on else ""
    tip = "" if goes_on else ' marker-end="url(#tapegrad-tip)"'
    return f'<path d="{path}{end}" fill="none" stroke="#888888"{tip}/>'


def _box(box: Vertex, x: float, y: float) -> Iterable[str]:
    dashes = ' stroke-dasharray="4"' if box.kind == "consumed" else ""
    yield (
        f'<rect x="{x - _WIDTH / 2}" y="{y - _HEIGHT / 2}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" '
        f'fill="{_FILL[box.kind]}" stroke="#666666"{dashes}/>'
    )
    for number, line in enumerate(box.lines):
        yield f'<text x="{x}" y="{y - 11 + 15 * number}">{html.escape(line)}</text>'
