"""Run the tests on every version of Python that pyproject.toml names, and on the lowest versions of its dependencies.

``nox`` runs the core tests, but on its own version, on which ``pytest`` runs all; ``nox -s suite`` runs all, and
``nox -s package`` the core tests from the built wheel. Interpreters are looked for among those of pyenv and on the
PATH; a session without one is skipped, and the summary says so. Arguments after ``--`` go to pytest, as in
``nox -s "suite(3.13)" -- -k inplace``.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import nox

FILE = tomllib.loads(Path("pyproject.toml").read_text())
PROJECT = FILE["project"]
VERSIONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
OTHERS = [version for version in VERSIONS if version != "{}.{}".format(*sys.version_info)]
CORE = FILE["tool"]["tapegrad"]["core"]

nox.options.default_venv_backend = "venv"
nox.options.sessions = ["core", "lowest"]


def interpreter_of(version: str) -> str | None:
    """Return an interpreter of a version of Python that runs: a shim of pyenv may not."""
    installed = sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
    for candidate in (*reversed(installed), shutil.which(f"python{version}")):
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True).returncode == 0:
            return candidate
    return None


def run(session: nox.Session, version: str, tests: list[str], *requirements: str) -> None:
    """Make an environment of a version of Python in the session's folder, and run tests in it."""
    interpreter = interpreter_of(version)
    if interpreter is None:
        session.skip(f"no Python {version} on this machine: its tests did NOT run")
    folder = Path(session.create_tmp()) / "venv"
    python = str(folder / "bin" / "python")
    session.run(interpreter, "-m", "venv", "--clear", str(folder), external=True)
    session.run(python, "-m", "pip", "install", "-q", "-e", ".[test]", *requirements, external=True)
    session.run(python, "-m", "pytest", "-q", "-r", "fE", *tests, *session.posargs, external=True)


@nox.session(venv_backend="none")
@nox.parametrize("version", OTHERS, ids=OTHERS)
def core(session: nox.Session, version: str) -> None:
    """Run the core tests with the newest NumPy and Numba."""
    run(session, version, CORE)


@nox.session(venv_backend="none")
def lowest(session: nox.Session) -> None:
    """Run the core tests on the lowest versions of Python and of all dependencies."""
    bounds = dict(requirement.split(">=") for requirement in PROJECT["dependencies"])
    run(session, VERSIONS[0], CORE, *(f"{name}=={bound}.*" for name, bound in bounds.items()))


@nox.session(venv_backend="none")
@nox.parametrize("version", VERSIONS, ids=VERSIONS)
def suite(session: nox.Session, version: str) -> None:
    """Run all tests."""
    run(session, version, ["-m", "full or not full"])


@nox.session
def package(session: nox.Session) -> None:
    """Build the sdist and the wheel, and run the demo and the core tests from the wheel."""
    session.install("build", "twine")
    session.run("python", "-m", "tools.package_check", "--install", *session.posargs)
