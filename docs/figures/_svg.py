"""Pictures of text as SVG, for the scripts beside this file: on white paper, as pages may be dark."""

from __future__ import annotations

import html
from pathlib import Path

# Blue and orange are those of Okabe and Ito.
INK, FAINT, BLUE, ORANGE, GREEN = (
    "#1f2933",
    "#7b8794",
    "#0072B2",
    "#D55E00",
    "#007A5A",
)
PALE = {BLUE: "#e3edf7", ORANGE: "#fbe6d9", GREEN: "#dcefe8", FAINT: "#eef0f2"}


class Picture:
    """What is drawn, in pixels of a page as wide as a phone shows without scaling."""

    def __init__(self, width: int, title: str) -> None:
        self.width, self.title, self.bottom = width, title, 0.0
        self.parts: list[str] = []

    def text(self, x: float, y: float, words: str, color: str = INK, *, bold: bool = False, size: int = 12) -> None:
        """Write words in letters of one width, from a place on."""
        shown = html.escape(words).replace("  ", "\u00a0\u00a0")  # several spaces would be shown as one
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x}" y="{y}" fill="{color}" font-size="{size}"{weight}>{shown}</text>')
        self.bottom = max(self.bottom, y)

    def box(self, x: float, y: float, width: float, height: float, color: str) -> None:
        """Draw a pale box of one of the colours."""
        fill = f'fill="{PALE[color]}" stroke="{color}" stroke-width="0.6"'
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" {fill}/>')
        self.bottom = max(self.bottom, y + height)

    def frame(self, number: int, count: int, seconds: float) -> None:
        """Begin one of several frames, each of which is shown for so long; the last one where nothing moves."""
        if number:
            self.parts.append("</g>")
        begin, end = number / count, (number + 1) / count
        times = f'keyTimes="0;{begin:.4f};{end:.4f};1"' if number else f'keyTimes="0;{end:.4f};{end:.4f};1"'
        values = "hidden;visible;hidden;hidden" if number else "visible;hidden;hidden;hidden"
        self.parts.append(
            f'<g visibility="{"visible" if number == count - 1 else "hidden"}"><animate attributeName="visibility" '
            f'calcMode="discrete" dur="{count * seconds}s" repeatCount="indefinite" values="{values}" {times}/>'
        )

    def write(self, path: str, *, frames: bool = False) -> None:
        """Write the picture into a file."""
        height = self.bottom + 16
        size = f'width="{self.width}" height="{height}" viewBox="0 0 {self.width} {height}"'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="DejaVu Sans Mono, Menlo, monospace">',
            f"<title>{html.escape(self.title)}</title>",
            f'<rect width="{self.width}" height="{height}" rx="8" fill="#ffffff"/>',
            *self.parts,
            *(["</g>"] if frames else []),
            "</svg>",
        ]
        Path(path).write_text("\n".join(lines) + "\n")
