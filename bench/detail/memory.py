"""Memory: what a forward pass holds for the backward pass, as bytes of data and as growth of the process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.problems import PROBLEMS, Data, Problem
from bench.processes import printed_by
from bench.table import Table, ratio, size
from bench.tools import installed

Storages = dict[int, int]  # bytes by identity or address


def _owner(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _numpy_storages(values: list[Any]) -> Storages:
    """Return the storages of arrays and numbers; a number is one, as in torch."""
    return {id(_owner(v) if isinstance(v, np.ndarray) else v): _nbytes(v) for v in values}


def _nbytes(value: Any) -> int:
    return _owner(value).nbytes if isinstance(value, np.ndarray) else np.asarray(value).nbytes


def _handles(root: Any) -> Iterator[Any]:
    """Yield the handles of all entries that a tensor was computed by."""
    from tapegrad.tape.entries import operand_nodes

    seen, pending = set(), [root]
    while pending:
        handle = pending.pop()
        if isinstance(handle, list) and id(handle) not in seen:
            seen.add(id(handle))
            yield handle
            pending.extend(operand_nodes(handle))


def tapegrad_storages(problem: Problem, data: Data) -> tuple[Storages, Storages]:
    """Return what tapegrad's tape holds after a forward pass, and what its user holds anyway."""
    from bench.tools import tapegrad as tool
    from tapegrad.tape.entries import FIRST_OPERAND, PLAN_OBJECT

    inputs, constants = tool.arguments(data)
    value = problem.program(tool.FUNCTIONS, *inputs, *constants)
    residuals = [
        residual
        for handle in _handles(value._node)
        for residual in handle[FIRST_OPERAND + handle[PLAN_OBJECT].arity :]
        # Not Python numbers, which the program wrote down (factors, exponents). Torch has them in its nodes, out of
        # sight of the hooks that count here.
        if isinstance(residual, (np.ndarray, np.generic))
    ]
    own = [tensor._array() for tensor in (*inputs, *constants, value) if hasattr(tensor, "_array")]
    return _numpy_storages(residuals), _numpy_storages(own)


def torch_storages(problem: Problem, data: Data) -> tuple[Storages, Storages]:
    """Return what torch's graph holds after a forward pass, and what its user holds anyway."""
    import torch

    from bench.tools import torch as tool

    saved: list[Any] = []

    def pack(tensor: Any) -> Any:
        saved.append(tensor)
        return tensor

    inputs, constants = tool.arguments(data)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        value = problem.program(tool.FUNCTIONS, *inputs, *constants)
    own = [tensor for tensor in (*inputs, *constants, value) if isinstance(tensor, torch.Tensor)]
    return _torch_storages(saved), _torch_storages(own)


def _torch_storages(tensors: list[Any]) -> Storages:
    storages = [tensor.untyped_storage() for tensor in tensors]
    return {storage.data_ptr(): storage.nbytes() for storage in storages}


# One process: the growth of the resident set, in bytes an entry, while a chain is recorded.
_PROGRAM = """
import os, resource
import {package} as tool

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

def chain(length):
    y = x
    for _ in range(length):
        y = y * x
    return y

x = tool.ones({shape}, dtype=tool.float64).requires_grad_()
chain(100)
before = resident()
y = chain({length})
print((resident() - before) / {length}, flush=True)
os._exit(0)  # without freeing the chain
"""


def _growth(package: str, shape: tuple[int, ...], length: int) -> float:
    return float(printed_by(_PROGRAM.format(package=package, shape=shape, length=length)))


def tables(rounds: int, quick: bool) -> list[Table]:
    """Bytes held after a forward pass, and growth of the process for an entry of a chain."""
    tools = ["tapegrad", "torch"] if installed("torch") else ["tapegrad"]
    count = {"tapegrad": tapegrad_storages, "torch": torch_storages}
    held = Table(
        "memory: bytes of data that the graph holds after a forward pass, each storage once",
        ("problem", "tool", "held", "of these the user's own", "for the graph alone", "alone / tapegrad"),
    )
    for problem in PROBLEMS.values():
        data = problem.data(problem.quick_size if quick else None)
        reference = 0
        for tool in tools:
            residuals, own = count[tool](problem, data)
            alone = sum(nbytes for key, nbytes in residuals.items() if key not in own)
            total = sum(residuals.values())
            reference = alone if tool == "tapegrad" else reference
            times = ratio(alone / reference) if reference else "-"
            held.rows.append((problem.name, tool, size(total), size(total - alone), size(alone), times))
    held.notes.append(
        "The user's own: inputs, constants, the loss. Headers do not count, nor do Python numbers such as exponents, "
        "which each tool keeps beside (8 B of data)."
    )
    measured = tools[:1] if quick else tools  # importing torch anew takes seconds
    grown = Table(
        "memory: growth of the process for one entry of y = y * x, headers and graph included",
        ("chain", *measured),
    )
    if os.path.exists("/proc/self/statm"):
        length = 2_000 if quick else 100_000
        for name, shape in {"0-d": (), "100 elements": (100,)}.items():
            growths = (size(_growth(tool, shape, length)) for tool in measured)
            grown.rows.append((f"{length} entries, {name}", *growths))
    else:
        grown.notes.append("Not known on this system: there is no /proc/self/statm.")
    return [held, grown]
