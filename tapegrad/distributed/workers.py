"""What runs on workers: programs, which come as data and are compiled once, and sums of what they return."""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np
from distributed import WorkerPlugin

from tapegrad.func.trees import flatten, rebuild, tree_map
from tapegrad.program.program import Program

# Programs of this process by their digests. A worker's threads ask for one at the same time.
_programs: Final[dict[str, Program]] = {}
_lock: Final = threading.Lock()


class Programs(WorkerPlugin):  # type: ignore[misc]  # Dask has no types
    """Brings a program to each worker, those that come later or again too, and compiles it there.

    Parameters
    ----------
    digest : str
        The name under which tasks ask for it.
    text : str
        The program, as `Program.text` writes it.
    """

    def __init__(self, digest: str, text: str) -> None:
        self.name = f"tapegrad-{digest}"
        self.digest = digest
        self.text = text

    def setup(self, worker: Any) -> None:
        """Compile the program; Dask calls this in each worker."""
        del worker
        with _lock:
            if self.digest not in _programs:
                program = Program.parse(self.text)
                program.run  # noqa: B018  # compiles it
                _programs[self.digest] = program


def run(digest: str, arguments: list[Any], weight: int | None) -> Any:
    """Return what a program returns for a chunk, times a weight."""
    found = _programs[digest](*arguments)
    return tree_map(np.asarray if weight is None else lambda leaf: np.asarray(leaf) * weight, found)


def add(one: Any, other: Any) -> Any:
    """Return the sums of two chunks' results."""
    return rebuild(one, [a + b for a, b in zip(flatten(one), flatten(other), strict=True)])


def hold(value: Any) -> Any:
    """Return a value: as a task, which a worker that takes over can repeat."""
    return value
