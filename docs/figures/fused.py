"""Draw how a program becomes loops: the function, its list with the gradient, and the one loop that is left of it.

Run it with the name of the picture: ``python -m docs.figures.fused docs/figures/fused.svg``.
"""

from __future__ import annotations

import inspect
import sys

import numpy as np

import tapegrad as tg
from docs.figures._svg import BLUE, FAINT, INK, ORANGE, Picture

LINE = 17


def loss(w: tg.Tensor, x: tg.Tensor) -> tg.Tensor:
    """Return a sum of squares."""
    return ((tg.tanh(x * w) - 0.5) ** 2).sum()


def lines_of(text: str) -> list[str]:
    """Return the lines, short enough for a phone, without what depends on the CPU."""
    lines = [
        line.partition("  # ")[0].replace(", dim=(0,), keepdim=False, dtype=None", "") for line in text.splitlines()
    ]
    return [line for line in lines if line.strip()]


def stack(picture: Picture, y: float, title: str, lines: list[str], colors: list[str]) -> float:
    """Draw lines below a title, those of one colour in one box, and return where they end."""
    picture.text(12, y, title, bold=True)
    y += 8
    for number, (line, color) in enumerate(zip(lines, colors, strict=True)):
        if color != INK:
            picture.box(8, y + number * LINE, 424, LINE, color)
        picture.text(14, y + number * LINE + 13, line, INK, size=11)
    return y + len(lines) * LINE + 30


def main(path: str) -> None:
    """Draw the three stations of value and gradient into a file."""
    both = tg.compile(tg.func.value_and_grad(loss))
    both(np.float64(0.5), np.linspace(0.0, 1.0, 1000))
    picture = Picture(440, "From a function to one loop")
    function = [line for line in inspect.getsource(loss).splitlines() if '"""' not in line]
    y = stack(picture, 26, "1. the function", [function[0].replace("tg.Tensor", "Tensor"), *function[1:]], [INK] * 2)
    listed = lines_of(str(both.programs[0]))
    of_arrays = [BLUE if "[1000] =" in line else ORANGE if "= sum(" in line else INK for line in listed]
    y = stack(picture, y, "2. traced, with its gradient: arrays and sums", listed, of_arrays)
    source = lines_of(both.source())
    of_loop = [ORANGE if "+=" in line else BLUE if line.startswith(("for", " ")) else INK for line in source]
    y = stack(picture, y, "3. fused: one loop, in vector registers", source, of_loop)
    picture.text(12, y - 10, "blue: on 1000 elements; orange: sums", FAINT, size=11)
    picture.write(path)


if __name__ == "__main__":
    main(sys.argv[1])
