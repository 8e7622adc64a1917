"""The pictures of the docs: each is made by the script of its name."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.tiers import mostly_full

SCRIPTS = sorted((Path(__file__).parent.parent / "docs" / "figures").glob("[a-z]*.py"))


@pytest.mark.parametrize("script", mostly_full(SCRIPTS, SCRIPTS[:2]), ids=lambda script: script.stem)
def test_script_draws_its_picture(script: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (known,) = (path for path in map(script.with_suffix, (".png", ".svg")) if path.exists())
    picture = tmp_path / known.name
    runpy.run_path(str(script))["main"](str(picture))
    if known.suffix == ".svg":
        assert known.read_text() == picture.read_text(), f"draw it again: see the first lines of {script.name}"
    else:
        assert known.stat().st_size == pytest.approx(picture.stat().st_size, rel=0.2)
