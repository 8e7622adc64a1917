"""Check that the links of the built site lead somewhere within it: ``python -m tools.link_check [FOLDER]``.

Pages, files, images and places on pages (``page.html#place``) are looked for on disk. Other sites are not asked, as
their answers would depend on the network: ``sphinx-build -b linkcheck docs build/links`` asks them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

DOCS = Path(__file__).resolve().parents[1] / "build" / "docs"


class Page(HTMLParser):
    """The links of a page, and the places that links can lead to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: dict[str, None] = {}
        self.places = {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the attributes that name places, and those that lead to them."""
        for name, value in attrs:
            if value and (name == "id" or (tag == "a" and name == "name")):
                self.places.add(value)
            elif value and name in ("href", "src"):
                self.links[value] = None


def pages_in(folder: Path) -> Iterator[Path]:
    """Yield the pages that people read, in order."""
    yield from (path for path in sorted(folder.rglob("*.html")) if path.relative_to(folder).parts[0][0] != "_")


def broken_links(folder: Path) -> Iterator[str]:
    """Yield what is wrong, with the page on which it stands."""
    pages = {path: Page(path) for path in pages_in(folder)}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                yield f"{path.relative_to(folder)}: {link} leads to no file"
            elif target in pages and unquote(parts.fragment) not in pages[target].places:
                yield f"{path.relative_to(folder)}: {link} leads to no place of that page"


def main() -> None:
    """Check a folder of pages."""
    parser = argparse.ArgumentParser(prog="python -m tools.link_check", description=__doc__.split(":")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=DOCS, help="default build/docs")
    folder = parser.parse_args().folder.resolve()
    faults = list(broken_links(folder))
    print(*faults, f"{len(faults)} broken links on {len([*pages_in(folder)])} pages", sep="\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
