"""New processes: for a number of threads, which a BLAS reads once, and for what can be measured only once in each."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from typing import Any


def thread_variables(count: int) -> dict[str, str]:
    """Return the environment that holds everybody to so many threads: read when OpenMP, a BLAS or XLA is loaded."""
    names = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")
    return {
        **{f"{name}_NUM_THREADS": str(count) for name in names},
        "VECLIB_MAXIMUM_THREADS": str(count),
        "NPROC": str(count),  # XLA's pools
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={'false' if count == 1 else 'true'}",
    }


def caches(folder: str) -> dict[str, str]:
    """Return the environment in which a folder holds what tools compile; JAX keeps all, not only what took long."""
    return {
        "TAPEGRAD_CACHE_DIR": folder,
        "JAX_COMPILATION_CACHE_DIR": folder,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def _environment(variables: dict[str, str]) -> dict[str, str]:
    environment = {**os.environ, **variables}
    if "PYTHONPYCACHEPREFIX" in variables:
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def printed_by(program: str, **variables: str) -> str:
    """Run a program in a new process, in this environment with some variables more, and return what it prints.

    With a folder for bytecode of its own (PYTHONPYCACHEPREFIX), bytecode is written whatever the environment says.
    """
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=_environment(variables), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the program ended with status {done.returncode}:\n{program}\n{done.stderr}")
    return done.stdout


def records_of(job: str, request: dict[str, Any], variables: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Run a job of `bench.worker` in a new process and yield its records as they come."""
    with _worker(job, request, variables) as process:
        assert process.stdout is not None
        try:
            yield from map(json.loads, process.stdout)
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        raise RuntimeError(f"the process that does {job} ended with status {process.returncode}")


def records_in_time(job: str, request: dict[str, Any], variables: dict[str, str], limit: float) -> Iterator[Any]:
    """Yield the records of a job; end its process, and them, when one takes longer than so many seconds.

    Behind the last one the process may write to its cache, as long.
    """
    with _worker(job, request, variables, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            while select.select([process.stdout], [], [], limit)[0]:
                line = process.stdout.readline()
                if not line:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(limit)
                    break
                yield json.loads(line)
        finally:
            process.kill()


def _worker(job: str, request: dict[str, Any], variables: dict[str, str], **streams: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.worker", job, json.dumps(request)]
    return subprocess.Popen(command, env=_environment(variables), stdout=subprocess.PIPE, text=True, **streams)
