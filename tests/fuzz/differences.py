"""Gradients of whole programs, held against finite differences: which side is right where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import tapegrad as tg
from tests.fuzz import overwritten
from tests.fuzz.compare import array, near
from tests.fuzz.machines import Machine
from tests.fuzz.principles import NEAR, PLACES, STEPS


def is_right(torch: Any, lines: list[str], what: str, kinds: Sequence[type[Machine]] = (Machine, Machine)) -> bool:
    """Whether tapegrad's gradient is right in double precision wherever it differs from PyTorch's.

    The first gradient is held against finite differences of PyTorch's values, the second against those of its first
    ones, in the places that differ most. `what` is the gradient's name, e.g. ``"second gradient 0"``; `kinds` are those
    of the machines that run tapegrad and PyTorch.
    """
    order, _, number = what.split()
    found = []
    for module, kind in zip((tg, torch), kinds, strict=True):
        machine = _ran(kind(module), lines)
        gradients = machine.gradients(orders=1 + (order == "second"))
        if isinstance(gradients, Exception) or gradients.get(what) is None:
            return False
        found.append(array(gradients[what]))
    own, other = found
    differs = ~near(own, other)
    if not np.isfinite(own[differs]).all():
        return False
    leaf = _leaves(machine)[int(number)]
    distance = np.where(differs, np.nan_to_num(abs(own - other), nan=np.inf), -1.0)
    doubles = [overwritten.in_double(line) for line in lines]
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        for flat in np.argsort(-distance, axis=None)[: min(PLACES, differs.sum())]:
            place = tuple(int(k) for k in np.unravel_index(flat, own.shape))
            room = NEAR * (abs(own[place] - other[place]) if np.isfinite(other[place]) else max(abs(own[place]), 1.0))
            slopes = _differences(kinds[1], torch, doubles, leaf, own.shape, place, order == "second")
            if not any(abs(own[place] - slope) <= room for slope in slopes):
                return False
    finally:
        torch.set_default_dtype(default)
    return True


def _ran(machine: Machine, lines: list[str]) -> Machine:
    for line in lines:
        machine.run(line)
    return machine


def _leaves(machine: Machine) -> list[str]:
    """Return the names of leaves, in the order of their gradients."""
    tensors = {name: own for name, own in machine.values().items() if isinstance(own, machine.module.Tensor)}
    leaves = {id(own): name for name, own in reversed(tensors.items()) if own.requires_grad and own.is_leaf}
    return list(reversed(leaves.values()))


def _differences(
    kind: type[Machine],
    torch: Any,
    lines: list[str],
    leaf: str,
    shape: tuple[int, ...],
    place: tuple[int, ...],
    is_second: bool,
) -> Iterator[complex]:
    """Yield slopes by an element of a leaf of a shape: central differences, with several steps."""
    until = next(count for count, line in enumerate(lines, 1) if line.startswith(f"{leaf} = "))
    values = array(_ran(kind(torch), lines[:until]).space[leaf])
    if values.shape != shape:  # it was changed in place: who knows where the element stood
        return
    number = values[place]
    size = float(abs(number))
    for step in (relative * scale for relative in STEPS for scale in {size, max(size, 1.0)} if scale):
        slope = 0j
        for direction in (1.0, 1j) if np.iscomplexobj(number) else (1.0,):
            sides = []
            for sign in (1, -1):
                machine = kind(torch)
                for line in lines:
                    machine.run(line)
                    if line.startswith(f"{leaf} = "):
                        with torch.no_grad():
                            machine.space[leaf][place] += sign * step * direction
                sides.append(_summed(machine, is_second))
            slope += direction * _total(*sides) / (2 * step)
        yield slope


def _summed(machine: Machine, is_second: bool) -> list[np.ndarray]:
    """Return what is added up with weights, and has the gradient."""
    if is_second:
        gradients = machine.gradients(orders=1)
        return [array(own) for own in gradients.values() if own is not None] if isinstance(gradients, dict) else []
    tensors = [own for own in machine.values().values() if isinstance(own, machine.module.Tensor) and own.requires_grad]
    return [array(own) for own in tensors]


def _total(above: list[np.ndarray], below: list[np.ndarray]) -> float:
    """Return how a sum with weights, as `prelude.total` has it, changes; elements that are inf or nan do not count."""
    change = 0.0
    with np.errstate(all="ignore"):
        for one, other in zip(above, below, strict=False):
            weights = np.linspace(0.5, 1.5, one.size).reshape(one.shape).astype(np.float32)
            step = np.asarray((one - other) * weights)
            step = np.where(np.isfinite(one) | np.isfinite(other), step, 0.0)
            change += float(step.real.sum() + step.imag.sum() * 0.5)
    return change
