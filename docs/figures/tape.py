"""Draw the tape of a small program as notebooks show it: the library's own drawing.

Run it with the name of the picture: ``python -m docs.figures.tape docs/figures/tape.svg``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tapegrad as tg


def main(path: str) -> None:
    """Draw the tape of the negative log likelihood of a line with Gaussian errors into a file."""
    w, spread = tg.tensor([0.5, 1.0], requires_grad=True), tg.tensor(0.3, requires_grad=True)
    x, y = tg.linspace(0.0, 1.0, 8), tg.linspace(0.4, 1.7, 8)
    distance = (w[0] + w[1] * x - y) / spread.exp()
    loss = (0.5 * distance**2 + spread).sum()
    Path(path).write_text(f"{loss.tape()._repr_svg_()}\n")


if __name__ == "__main__":
    main(sys.argv[1])
