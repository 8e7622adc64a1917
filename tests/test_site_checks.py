"""The checks of the built site find what they are to find, on a small site with one fault of each kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import browser_check, link_check

HEAD = """<!doctype html><html><head><meta name='viewport' content='width=device-width'><link rel='icon' href='data:,'>
<title>t</title></head>"""
FINE = f"""{HEAD}<body><h1 id="top">Fine</h1><a href="#top">up</a> <a href="other.html#there">other</a>
<a href="folder/">folder</a> <a href="https://example.org/absent">elsewhere</a></body></html>"""
SEARCH = f"""{HEAD}<body><form action="search.html"><input name="q"></form><ul class="search"></ul><script>
const q = new URLSearchParams(location.search).get("q");
const places = PLACES, target = q === "cholesky" ? "other.html" : places[q];
if (q && q !== "power")
    document.querySelector("ul").innerHTML = `<li><a href="${{target}}">${{q}}</a></li>`;
</script></body></html>""".replace("PLACES", json.dumps(browser_check.SEARCHED))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    pages = {"index": FINE, "other": f"{HEAD}<body><p id='there'>here</p></body></html>", "search": SEARCH}
    pages["folder/index"] = f"{HEAD}<body>inside</body></html>"
    for name, text in pages.items():
        (tmp_path / f"{name}.html").write_text(text)
    return tmp_path


def test_links(site: Path) -> None:
    assert list(link_check.broken_links(site)) == []
    (site / "other.html").write_text(f"{HEAD}<body><a href='gone.html'>a</a><img src='folder/gone.png'></body></html>")
    assert list(link_check.broken_links(site)) == [
        "index.html: other.html#there leads to no place of that page",
        "other.html: gone.html leads to no file",
        "other.html: folder/gone.png leads to no file",
    ]


def test_pages_in_a_browser(site: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = browser_check.browser()
    if program is None:
        pytest.skip("no Chromium, or no playwright")
    (site / "other.html").write_text(
        f"""{HEAD}<body><img src="gone.png" loading="lazy"><div style="width: 700px">wide</div>
        <script>console.error("told"); throw new Error("raised")</script>
        <script src="https://example.org/counter.js"></script></body></html>"""
    )
    faults = browser_check.check(site, program, tmp_path)
    assert all(fault.startswith(("other.html: ", "search: ")) for fault in faults), faults
    text = "\n".join(faults)
    for part in (
        "broken image", "phone, dark: too wide: 7", "console: told", "script: raised", "no http://127.0.0.1",
        "ERR_NAME_NOT_RESOLVED",
    ):  # fmt: skip
        assert part in text
    assert "desktop" not in text
    assert [fault for fault in faults if fault.startswith("search")] == [
        f"search: {words} does not lead to {browser_check.SEARCHED[words]}" for words in ("cholesky", "power")
    ]
    assert (tmp_path / "folder_index.phone.dark.png").stat().st_size > 1000
