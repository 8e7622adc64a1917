"""What a new process does: one job, whose records go to its standard output, a line of JSON each."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from bench import memory, speed
from bench.programs import measure

JOBS: dict[str, Callable[..., Iterator[Any]]] = {
    "speed": speed.records,
    "memory": memory.records,
    "programs": measure.records,
    "first_calls": measure.first_calls,
}


def main(job: str, request: str) -> None:
    """Do a job. What tools print goes to the standard error, so that it is in no record's way."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as records:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        for record in JOBS[job](**json.loads(request)):
            records.write(json.dumps(record) + "\n")
            records.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
