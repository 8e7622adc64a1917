"""Build the sdist and the wheel, and look at what is in them: ``python -m tools.package_check [--install] [FOLDER]``.

The sdist has every file that git tracks, tests, docs and bench too, so that it can be tested and its docs be built. The
wheel has the package and nothing else. With ``--install`` the wheel goes into an empty environment. There it computes a
gradient with the stated dependencies alone, runs the demo, and passes the core tests, which stand in the sdist without
its sources. FOLDER keeps what was built. Needs ``pip install build twine``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LARGEST = 2 << 20  # bytes of a wheel
FIRST_GRADIENT = """
import tapegrad as tg

x = tg.tensor([1.0, 2.0], requires_grad=True)
(x * x.sin()).sum().backward()
print(tg.__version__, x.grad)
"""


def run(*command: str | os.PathLike[str], where: Path = ROOT) -> str:
    """Run a command that must succeed, without this tree on Python's path, and return what it writes."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=where, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}\n{' '.join(map(str, command))}: status {done.returncode}")
    return done.stdout


def build(folder: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    return sdist, wheel


def contents(sdist: Path, wheel: Path) -> None:
    """Hold the files of both against those that git tracks."""
    tracked = set(run("git", "ls-files", "--cached", "--others", "--exclude-standard").split("\n")) - {""}
    with tarfile.open(sdist) as file:
        packed = {name.partition("/")[2] for name in file.getnames()}
    compare(sdist, packed, {"PKG-INFO"} | {name for name in tracked if (ROOT / name).exists()})
    with zipfile.ZipFile(wheel) as zipped:
        installed = set(zipped.namelist())
    about = wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info/"
    names = {about + name for name in ("METADATA", "RECORD", "WHEEL", "licenses/LICENSE")}
    compare(wheel, installed, names | {name for name in packed if name.startswith("tapegrad/")})
    if wheel.stat().st_size > LARGEST:
        sys.exit(f"{wheel.name} has {wheel.stat().st_size} bytes, more than {LARGEST}")


def compare(archive: Path, found: set[str], expected: set[str]) -> None:
    """Report an archive, or stop at a file that is missing or does not belong there."""
    if found != expected:
        sys.exit(f"{archive.name}: missing {sorted(expected - found)}, stray {sorted(found - expected)}")
    print(f"{archive.name}: {len(found)} files, {archive.stat().st_size / 2**20:.2f} MB")


def install(sdist: Path, wheel: Path, folder: Path) -> None:
    """Try the wheel in an empty environment, where the sources are not."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    with tarfile.open(sdist) as file:
        file.extractall(folder, filter="data")
    tree = folder / sdist.name.removesuffix(".tar.gz")
    core = tomllib.loads((tree / "pyproject.toml").read_text())["tool"]["tapegrad"]["core"]
    shutil.rmtree(tree / "tapegrad")
    pip = python, "-m", "pip"
    run(*pip, "install", "-q", wheel, where=tree)
    run(*pip, "check", where=tree)
    print(run(python, "-W", "error", "-c", FIRST_GRADIENT, where=tree), end="")
    run(*pip, "install", "-q", f"{wheel}[demo]", where=tree)
    print(run(python, "-m", "tapegrad", where=tree).splitlines()[-1])
    run(*pip, "install", "-q", f"{wheel}[test]", where=tree)
    place = run(python, "-c", "import tapegrad; print(tapegrad.__file__)", where=tree)
    if "site-packages" not in place:
        sys.exit(f"the tests would use {place}")
    print(run(python, "-m", "pytest", "-q", *core, where=tree).splitlines()[-1])


def main() -> None:
    """Build, look, and install if asked to."""
    parser = argparse.ArgumentParser(prog="python -m tools.package_check", description=__doc__.split(":")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="where the sdist and the wheel are kept")
    parser.add_argument("--install", action="store_true", help="try the wheel in an empty environment")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        made = build(options.folder or Path(scratch) / "dist")
        contents(*made)
        if options.install:
            install(*made, Path(scratch))


if __name__ == "__main__":
    main()
