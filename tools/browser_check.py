"""Look at every page of the built site in a real browser: ``python -m tools.browser_check [FOLDER] [--pictures TO]``.

Each page is shown at the width of a desktop, light, and of a phone, dark; for pictures each width in both. A console
error, a broken image, a request to another site, a page that is wider than a phone, and a search that does not find an
operation make the check fail. Needs ``pip install playwright`` and a Chromium; without one it says so, and looks at
nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import itertools
import os
import queue
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tools.link_check import DOCS, pages_in

WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
SCHEMES = ("light", "dark")
# What people type, and the place to which a result must lead.
SEARCHED = {
    "logsumexp": "reference/reductions.html#tapegrad.logsumexp",
    "cholesky": "reference/linalg.html#tapegrad.linalg.cholesky",
    "np.power": "reference/elementwise.html#tapegrad.pow",
    "power": "reference/elementwise.html#tapegrad.pow",
    "scipy.special.gammaln": "reference/special.html#tapegrad.lgamma",
}
HOST = "127.0.0.1"
SHOWN = 5  # results that people look at
BROKEN = """async () => {
    for (const own of document.images) own.loading = "eager";
    await Promise.allSettled([...document.images].map(own => own.decode()));
    return [...document.images].filter(own => !own.naturalWidth).map(own => own.src);
}"""
# What sticks out of a page to the right, where the page can be scrolled there.
TOO_WIDE = """() => {
    const page = document.documentElement, room = page.clientWidth;
    if (page.scrollWidth <= room + 1) return [];
    const wide = [...document.body.querySelectorAll("*")].filter(own => own.getBoundingClientRect().right > room + 1);
    const text = own => `<${own.tagName} class="${own.className}"> ${own.textContent.trim().slice(0, 40)}`;
    return [`${page.scrollWidth} pixels in ${room}`, ...wide.slice(0, 3).map(text)];
}"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Write nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder, and yield its address: a browser does not let a page on disk read other files, as search does."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer((HOST, 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{HOST}:{server.server_port}/"
        finally:
            server.shutdown()


@contextmanager
def opened(program: str) -> Iterator[tuple[Any, list[str]]]:
    """Yield a page of the browser, and the list to which its errors go."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Requests that are routed would be kept in no cache: each page would load all scripts anew.
        other_sites = f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {HOST}"
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", other_sites])
        page, errors = browser.new_page(), []
        page.on("console", lambda message: message.type != "error" or errors.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: errors.append(f"script: {error}"))
        page.on("response", lambda response: response.status < 400 or errors.append(f"no {response.url}"))
        yield page, errors
        browser.close()


def show(page: Any, width: str, scheme: str) -> None:
    """Set the width of the window, and the scheme of colours that the system prefers."""
    across, down = WIDTHS[width]
    page.set_viewport_size({"width": across, "height": down})
    page.emulate_media(color_scheme=scheme)


def look_at(page: Any, address: str, name: str, pictures: Path | None) -> Iterator[str]:
    """Show a page in all ways, and yield what is wrong with it."""
    page.goto(address + name)
    yield from (f"broken image {source}" for source in page.evaluate(BROKEN))
    for width, scheme in itertools.product(WIDTHS, SCHEMES) if pictures else zip(WIDTHS, SCHEMES, strict=True):
        show(page, width, scheme)
        yield from (f"{width}, {scheme}: too wide: {own}" for own in page.evaluate(TOO_WIDE))
        if pictures:
            path = pictures / f"{name.replace('/', '_').removesuffix('.html')}.{width}.{scheme}.png"
            page.screenshot(path=path, animations="disabled")


def search(page: Any, address: str, words: str) -> list[str]:
    """Type into the field on the page of searches, and return where the first results lead."""
    show(page, "desktop", "light")
    page.goto(address + "search.html")
    field = page.locator("input[name=q]:visible").first
    field.fill(words)
    field.press("Enter")
    page.wait_for_url(f"**q={words}**")
    try:
        page.wait_for_selector("ul.search li a", timeout=5_000)
    except Exception:  # playwright's own class of a time-out
        return []
    page.wait_for_timeout(300)  # results come one after the other
    links = page.locator("ul.search li > a").all()[:SHOWN]
    return [str(link.get_attribute("href")).removeprefix(address) for link in links]


def check(folder: Path, program: str, pictures: Path | None = None) -> list[str]:
    """Return all that is wrong. Each core of the machine has a browser, which takes the next page."""
    names = [path.relative_to(folder).as_posix() for path in pages_in(folder)]
    left: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        left.put(name)

    def look(address: str) -> dict[str, list[str]]:
        faults = {}
        with opened(program) as (page, errors), contextlib.suppress(queue.Empty):
            while True:
                name = left.get_nowait()
                faults[name] = [f"{name}: {fault}" for fault in (*look_at(page, address, name, pictures), *errors)]
                errors.clear()
        return faults

    count = min(os.cpu_count() or 1, 4)
    with served(folder) as address:
        with ThreadPoolExecutor(count) as pool:
            found = {name: faults for part in pool.map(look, [address] * count) for name, faults in part.items()}
        faults = [fault for name in names for fault in found[name]]
        with opened(program) as (page, _):
            for words, target in SEARCHED.items():
                if target not in search(page, address, words):
                    faults.append(f"search: {words} does not lead to {target}")
    return faults


def browser() -> str | None:
    """Return the browser's program, None where it or playwright is not installed."""
    programs = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    return next(filter(None, programs), None) if find_spec("playwright") else None


def main() -> None:
    """Check a folder of pages."""
    parser = argparse.ArgumentParser(prog="python -m tools.browser_check", description=__doc__.split(":")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=DOCS, help="default build/docs")
    parser.add_argument("--pictures", type=Path, help="where to put a picture of each page in each way")
    options = parser.parse_args()
    program = browser()
    if program is None:
        print("no Chromium, or no playwright: the pages were NOT looked at in a browser")
        return
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    faults = check(options.folder.resolve(), program, options.pictures)
    print(*faults, f"{len(faults)} faults, found in {time.perf_counter() - begin:.0f} s", sep="\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
