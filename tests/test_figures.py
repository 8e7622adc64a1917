"""The pictures of the docs: each is made by the script of its name."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parent.parent / "docs" / "figures").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_script_draws_its_picture(script: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.png"
    runpy.run_path(str(script))["main"](str(picture))
    assert script.with_suffix(".png").stat().st_size == pytest.approx(picture.stat().st_size, rel=0.2)
