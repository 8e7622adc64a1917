"""Draw the map of the package: its folders in the order of architecture.md, and who imports whom, read from the code.

Run it with the name of the picture: ``python docs/figures/house.py docs/figures/house.png``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tapegrad"
UP, DOWN = "#D55E00", "#0072B2"  # of Okabe and Ito
NESTED = {"ops/table"}  # a station, although it stands in another folder; others are counted with the folder around
SMALL = {"data", "demo"}


def folders() -> list[str]:
    """Return the folders in the order in which they stand in the page, which is that of imports."""
    page = (ROOT / "docs" / "develop" / "architecture.md").read_text()
    first_cells = (line.split("|")[1] for line in page.splitlines() if line.startswith("| "))
    names = [name for cell in first_cells for name in re.findall(r"\*\*`([\w/]+)/`\*\*", cell)]
    return list(dict.fromkeys(name for name in names if name in NESTED or not ("/" in name or name in SMALL)))


def meaning(folder: str, longest: int = 50) -> str:
    """Return the beginning of what a folder says of itself in its first line, as far as it fits."""
    said = ast.get_docstring(ast.parse((PACKAGE / folder / "__init__.py").read_text())) or ""
    title, _, rest = said.splitlines()[0].replace("`", "").partition(": ")
    said = rest if rest and len(title) < 20 else title
    first, *parts = said.partition(";")[0].partition(". ")[0].rstrip(".").split(", ")
    for part in parts:
        if len(first) + len(part) + 2 > longest:
            break
        first += f", {part}"
    return first[0].upper() + first[1:]


def folder_of(path: str, names: list[str]) -> str | None:
    """Return the innermost of the folders that a file or a module is in."""
    inside = [name for name in names if path == name or path.startswith(f"{name}/")]
    return max(inside, key=len, default=None)


def imports(names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the folders of files that import, and of what they import, at their top."""
    for path in PACKAGE.rglob("*.py"):
        importer = folder_of(path.relative_to(PACKAGE).as_posix(), names)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tapegrad."):
                imported = folder_of(node.module.removeprefix("tapegrad.").replace(".", "/"), names)
                if importer and imported and importer != imported:
                    yield importer, imported


def lines(names: list[str]) -> Counter[str]:
    """Count the lines of each folder."""
    count: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        if name := folder_of(path.relative_to(PACKAGE).as_posix(), names):
            count[name] += len(path.read_text().splitlines())
    return count


def draw(axes: Axes) -> None:
    """Draw a bar for each folder, and an arc for each pair of which one imports the other."""
    names = folders()
    sizes, edges = lines(names), Counter(imports(names))
    height = {name: -place for place, name in enumerate(names)}
    longest = max(sizes.values())
    for name, y in height.items():
        axes.barh(y - 0.17, 6.2 * sizes[name] / longest, left=0, height=0.42, color="#d4e0ec")
        axes.text(0, y + 0.25, f"{name}/", va="center", fontsize=11.5, family="monospace")
        axes.text(0.1, y - 0.17, meaning(name), va="center", fontsize=10.5)
        axes.text(6.2, y + 0.25, f"{sizes[name]:,}", ha="right", va="center", fontsize=10, color="#555555")
    for (importer, imported), count in edges.items():
        span = height[importer] - height[imported]
        width = 0.3 + 0.28 * count**0.5
        middle = (height[importer] + height[imported]) / 2
        color = DOWN if span < 0 else UP
        axes.add_patch(Arc((6.5, middle), 0.3 * abs(span), abs(span), theta1=-90, theta2=90, color=color, lw=width))
    axes.text(6.2, 0.95, "lines of code", ha="right", fontsize=10, color="#555555")
    axes.text(6.5, 0.95, "who imports whom:\nfrom below", fontsize=10, color=DOWN)
    if any(height[importer] > height[imported] for importer, imported in edges):
        axes.text(6.5, -len(names) + 0.1, "the exceptions,\nwhich the page names", fontsize=10, color=UP)
    axes.set(xlim=(-0.1, 9.4), ylim=(-len(names) + 0.2, 1.6))
    axes.axis("off")


def main(path: str) -> None:
    """Draw the map into a file."""
    figure = Figure(figsize=(6, 9.6), dpi=120, layout="constrained")
    draw(figure.subplots())
    figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1])
