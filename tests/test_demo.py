"""The demo: what it prints and draws, what it refuses, and that a warm run starts without numba."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.__main__ import main
from tapegrad.data import load_digits
from tapegrad.demo import check, network

ROOT = Path(tg.__file__).parents[1]
COMPILING = "compiling kernels for the first time"
# Variables that change what the demo prints, or what it compiles.
STEERING = ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "NUMBA_DISABLE_JIT", "TERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in STEERING:
        monkeypatch.delenv(name, raising=False)


def run(*arguments, python=(), **variables):
    """Return the finished process of a demo whose output goes into a pipe."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"} | variables
    command = [sys.executable, "-W", "error", *python, "-m", "tapegrad", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", timeout=300)


def epochs_of(output):
    """Return the rows (epoch, loss, test accuracy) of the table that the demo prints."""
    rows = re.findall(r"^ *(\d+)  (\d+\.\d{4}) +(\d\.\d{4})$", output, re.MULTILINE)
    return [(int(epoch), float(loss), float(accuracy)) for epoch, loss, accuracy in rows]


def imported(log):
    """Return the packages in the log of ``python -X importtime``."""
    return {line.rsplit("|", 1)[1].strip().split(".")[0] for line in log.splitlines() if "|" in line}


# ---- what it shows


def test_default_run():
    done = run()
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert not re.search(r"[^\x20-\x7e\n]", done.stdout)  # no control characters
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if COMPILING not in line)
    rows = epochs_of(done.stdout)
    assert [epoch for epoch, _, _ in rows] == list(range(1, 31))
    assert rows[-1][1] < 0.05 * rows[0][1]
    assert rows[-1][2] >= 0.97
    assert f"test accuracy      {rows[-1][2]:.4f}\n" in done.stdout
    speed = re.search(r"steps per second +([\d,]+)", done.stdout)
    assert speed
    assert int(speed[1].replace(",", "")) > 10
    assert "passed: all relative errors are below 1e-06" in done.stdout
    # 2/3 of the sums of (x - y) * x and of x - y, with x = 1, 2, 3 and y = 1, 3, 5
    assert done.stdout.endswith("tensor(-5.3333) tensor(-2.)\n")
    assert re.search(r"^%4 +mean +%3 +float64\[\]", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("seed", range(10))
def test_accuracy_of_seeds(seed):
    training = network.Training(*network.split_digits(), seed)
    for _ in range(30):
        training.epoch(lambda: None)
    assert training.accuracies[-1] >= 0.97


def test_seed_decides_all(capsys):
    tables = []
    for seed in ("3", "3", "4"):
        assert main(["--epochs", "1", "--seed", seed]) == 0
        tables.append(epochs_of(capsys.readouterr().out))
    assert len(tables[0]) == 1
    assert tables[0] == tables[1] != tables[2]


@pytest.mark.full
def test_cold_then_warm(tmp_path):
    folder = tmp_path / "kernels"
    cold = run("--epochs", 1, TAPEGRAD_CACHE_DIR=str(folder))
    assert cold.returncode == 0, cold.stderr
    assert cold.stdout.count(f"{COMPILING} (kept in {folder})\n") == 1
    warm = run("--epochs", 1, python=("-X", "importtime"), TAPEGRAD_CACHE_DIR=str(folder))
    assert warm.returncode == 0, warm.stderr
    assert COMPILING not in warm.stdout
    assert epochs_of(warm.stdout) == epochs_of(cold.stdout)
    assert {"tapegrad", "numpy", "rich"} <= imported(warm.stderr)
    assert not {"numba", "matplotlib"} & imported(warm.stderr)


def test_progress_bar_on_a_terminal():
    shown = run("--epochs", 2, FORCE_COLOR="1").stdout
    assert re.search(r"training .*46/46", shown)
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")  # the cursor is back


def test_plot(tmp_path):
    path = tmp_path / "curve.png"
    done = run("--epochs", 2, "--plot", path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"The learning curve is in {path}\n")
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", head[16:24]) == (840, 720)


def test_axes_say_what_they_show(tmp_path, monkeypatch):
    figure = pytest.importorskip("matplotlib.figure").Figure
    shown = []
    monkeypatch.setattr(figure, "savefig", lambda own, path, **options: shown.append(own))
    from tapegrad.demo.curve import draw_curve

    draw_curve(str(tmp_path / "curve.png"), [0.5, 0.25, 0.2], [0.7, 0.8, 0.9])
    (above, below) = shown[0].axes
    assert "90.0%" in above.get_title()
    assert ("loss" in above.get_ylabel(), "accuracy" in below.get_ylabel(), below.get_xlabel()) == (True, True, "epoch")
    assert [list(axes.lines[0].get_ydata()) for axes in (above, below)] == [[0.5, 0.25, 0.2], [0.7, 0.8, 0.9]]
    assert list(below.lines[0].get_xdata()) == [1, 2, 3]
    assert below.get_xlim() == (0.5, 3.5)
    assert above.get_yscale() == "log"


def test_help():
    done = run("--help")
    assert done.returncode == 0
    assert all(option in done.stdout for option in ("--epochs", "--seed", "--plot", "--help"))


# ---- what goes wrong


def test_bad_option_gives_usage():
    done = run("--epochs", "many")
    assert done.returncode == 2
    assert done.stderr.startswith("usage: python -m tapegrad ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--epochs", "0"], "'0' is not a whole number from 1 up"),
        (["--epochs", "-1"], "'-1' is not a whole number from 1 up"),
        (["--epochs", "1.5"], "'1.5' is not a whole number"),
        (["--epochs", "9" * 5000], "--epochs"),  # more digits than Python reads
        (["--epochs"], "expected one argument"),
        (["--seed", "-1"], "'-1' is not a whole number from 0 up"),
        (["--seed", "x"], "'x' is not a whole number"),
        (["--plot", "curve.jpg"], "'curve.jpg' does not end in .png"),
        (["--plot", ""], "does not end in .png"),
        (["--plot", "no/such/folder/curve.png"], "there is no folder"),
        (["--plot", "folder.png"], "'folder.png' is a folder"),
        (["--fast"], "unrecognized arguments: --fast"),
        (["digits"], "unrecognized arguments: digits"),
    ],
)
def test_bad_options(arguments, complaint, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("usage: python -m tapegrad ")
    assert complaint in err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder(capsys, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(SystemExit):
        main(["--plot", str(tmp_path / "curve.png")])
    assert "cannot be written" in capsys.readouterr().err


def test_plot_that_fails_at_the_end(capsys, tmp_path):
    path = tmp_path / "curve.png"
    path.symlink_to(tmp_path / "absent" / "curve.png")  # its own folder is there
    assert main(["--epochs", "1", "--plot", str(path)]) == 1
    assert "the learning curve cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(("package", "module"), [("rich", "rich.console"), ("matplotlib", "matplotlib.figure")])
def test_missing_package(package, module, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SystemExit) as stopped:
        main(["--plot", "curve.png"])
    assert stopped.value.code == 2
    assert f"the demo needs {package}: pip install 'tapegrad[demo]'" in capsys.readouterr().err


def test_interrupt(capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(network.Training, "epoch", interrupted)
    assert main([]) == 130
    assert capsys.readouterr().err == "\ninterrupted\n"


# ---- the gradient check


def test_check_finds_a_wrong_gradient(capsys, monkeypatch):
    true_loss = network.loss_of

    def loss_of(params, digits):
        loss = true_loss(params, digits)
        return 0.999 * loss + 0.001 * loss.detach()

    monkeypatch.setattr(network, "loss_of", loss_of)
    assert main(["--epochs", "1"]) == 1
    out = capsys.readouterr().out
    assert out.count("WRONG") == 5
    assert "FAILED: a relative error is above 1e-06" in out


@pytest.mark.parametrize(
    ("slope", "right"),
    [
        ((1.0, 1.0 + 1e-7), True),
        ((0.0, 0.0), True),
        ((1.0, 1.0 + 1e-5), False),
        ((np.nan, 1.0), False),
        ((1.0, np.nan), False),
    ],
)
def test_error_of_a_slope(slope, right):
    assert (check.Slope(*slope).error <= check.LIMIT) == right


def test_slopes_of_a_known_function():
    point = [tg.tensor([1.0, -2.0], requires_grad=True), tg.tensor(0.5, requires_grad=True)]
    found = list(check.slopes(lambda p: (p[0] ** 2).sum() * p[1], point, np.random.default_rng(0), 3))
    rng = np.random.default_rng(0)
    for slope in found:
        along = np.concatenate([rng.standard_normal(2), rng.standard_normal(())[None]])
        expected = np.dot([1.0, -2.0, 5.0], along / np.linalg.norm(along))
        assert slope.gradient == pytest.approx(expected, rel=1e-12)
        assert slope.difference == pytest.approx(expected, rel=1e-10)


# ---- the data


def test_digits():
    images, labels = load_digits()
    assert (images.shape, images.dtype, labels.dtype) == ((1797, 64), np.float64, np.int64)
    assert (images.min(), images.max()) == (0.0, 1.0)
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]  # as UCI says
    notice = (Path(network.__file__).parents[1] / "data" / "README.md").read_text()
    assert all(word in notice for word in ("UCI", "Alpaydin", "Kaynak", "CC BY 4.0"))


def test_split():
    train, test = network.split_digits()
    assert (len(train), len(test)) == (1437, 360)
    assert sorted(map(bytes, [*train.images, *test.images])) == sorted(map(bytes, load_digits()[0]))
