"""CasADi, its functions as C code, which the system's compiler makes."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi

from bench.problems import Data
from bench.programs.measure import FIRST_CALL
from bench.programs.peers.casadi import array
from bench.programs.peers.casadi import function as of_casadi
from bench.programs.workload import Workload

__all__ = ["array", "function"]


def function(workload: Workload, data: Data) -> Callable[..., Any]:
    return of_casadi(workload, data, _compiled)


def _compiled(own: Any) -> Any:
    """Return a function by its C code; the library is loaded when this returns, and needs no file any more."""
    with tempfile.TemporaryDirectory() as folder:
        code = casadi.CodeGenerator("code.c")
        code.add(own)
        code.generate(f"{folder}/")
        library = str(Path(folder, "code.so"))
        # What -O3 makes is no faster, and takes up to three times as long.
        options = ["-O1", "-march=native", "-shared", "-fPIC"]
        at_most = ["timeout", str(FIRST_CALL)]  # else the compiler goes on when this process is given up
        subprocess.run([*at_most, "cc", *options, f"{folder}/code.c", "-o", library], check=True)
        return casadi.external(own.name(), library)
