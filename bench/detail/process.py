"""New processes, for what can be measured only once in each."""

from __future__ import annotations

import os
import subprocess
import sys


def printed_by(program: str, **variables: str) -> str:
    """Run a program in a new process, in this environment with some variables more, and return what it prints.

    With a folder for bytecode of its own (PYTHONPYCACHEPREFIX), bytecode is written whatever the environment says.
    """
    environment = {**os.environ, **variables}
    if "PYTHONPYCACHEPREFIX" in variables:
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the program ended with status {done.returncode}:\n{program}\n{done.stderr}")
    return done.stdout
