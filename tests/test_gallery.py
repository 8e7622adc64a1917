"""The gallery: scripts as long as a page, each of which checks its result and says what its derivatives take."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GALLERY = ROOT / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.glob("plot_*.py"))


def was_built(script: Path) -> bool:
    """Return whether the docs were built with this script, after the library last changed."""
    stamp = ROOT / "docs" / "generated" / "gallery" / f"{script.name}.md5"
    if not stamp.exists() or stamp.read_text() != hashlib.md5(script.read_bytes()).hexdigest():
        return False
    return stamp.stat().st_mtime > max(path.stat().st_mtime for path in (ROOT / "tapegrad").rglob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_script_fits_on_a_page_and_ends_with_times(script: Path) -> None:
    text = script.read_text()
    tree = ast.parse(text)
    assert len(text.splitlines()) <= 60
    assert any(isinstance(node, ast.Assert) for node in tree.body)
    last = tree.body[-1]
    assert isinstance(last, ast.Expr)
    assert ast.unparse(last).startswith("timing.")


def test_order_names_all_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from gallery_conf import ORDER

    assert sorted(ORDER) == [script.stem.removeprefix("plot_") for script in SCRIPTS]


@pytest.mark.full
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_script_runs(script: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    if was_built(script):
        return  # .ci/run builds the docs before
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": os.pathsep.join([str(ROOT), str(GALLERY)])}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "eager" in done.stdout
    assert "compiled" in done.stdout


def test_torch_runs_the_functions_of_a_script(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(GALLERY))
    import timing

    monkeypatch.setattr(timing, "SECONDS", 1e-3)
    names: dict[str, object] = {}
    exec(
        "import numpy as np, tapegrad as tg\n"
        "data = np.arange(3.0)\n"
        "def inner(x): return tg.exp(x) * data\n"
        "def loss(x): kinds.add(tg); return inner(x).sum()\n"
        "def wrong(x): return loss(x) * (2.0 if tg.__name__ == 'torch' else 1.0)\n"
        "kinds = set()\n",
        names,
    )
    import numpy as np

    port = timing.in_torch(names["loss"])
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    port(x).backward()
    assert names["kinds"] == {torch}
    np.testing.assert_allclose(x.grad, np.e * np.arange(3.0))
    timing.gradient(names["loss"], np.ones(3))
    assert re.findall(r"^\w+", capsys.readouterr().out, re.M) == ["value", "eager", "compiled", "PyTorch"]
    with pytest.raises(AssertionError, match="PyTorch"):
        timing.gradient(names["wrong"], np.ones(3))
