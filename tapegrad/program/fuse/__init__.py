"""The fusing compiler: a program's operations as scalar nodes, and these as loops of machine code."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

import numpy as np

from tapegrad.compiler.cache import address_of_ir
from tapegrad.program.apart import begun, name_of, parts_of
from tapegrad.program.fuse.accesses import Memory
from tapegrad.program.fuse.blocks import BlockEmitter, is_worth_blocks
from tapegrad.program.fuse.choices import either_way
from tapegrad.program.fuse.emit import Emitter
from tapegrad.program.fuse.estimates import (
    fewest_scalars,
    loaded_scalars,
    products_of_convolutions,
    unrolled_calls,
    unrolled_scalars,
)
from tapegrad.program.fuse.flat import Flat, batches_alone, flat, note_too_long, sliced
from tapegrad.program.fuse.graph import Graph
from tapegrad.program.fuse.kept import keep
from tapegrad.program.fuse.lowering import Lowered, lower, moves
from tapegrad.program.fuse.module import Module, module_of
from tapegrad.program.fuse.nest_emit import NestEmitter, lay_out
from tapegrad.program.fuse.nest_plan import LANES, SIZE, NestPlan
from tapegrad.program.fuse.nests import chunk_of, fewer_lanes, plan_nests
from tapegrad.program.fuse.roles import Roles, roles_of
from tapegrad.program.fuse.rolled import Store, is_long, rolled
from tapegrad.program.fuse.schedule import Phase, arrange, cone, plan
from tapegrad.program.fuse.source import of_nests, of_phases
from tapegrad.program.fuse.space import steps_of
from tapegrad.program.fuse.text import constant_array
from tapegrad.program.fuse.twins import has_twins
from tapegrad.program.fuse.vectors import on_vectors
from tapegrad.program.machine_code import SYMBOL, MachineCode, Refused, TooLongError
from tapegrad.program.program import Entry, Program

__all__ = ["LIMIT", "Fused", "Refused", "fuse"]

#: Dimensions longer than this are axes; so are others, until there are no more scalars. If a movement does not fit to
#: one choice, because a slice of an axis is short, say, it may fit to another.
_ROLES: Final = ((64, 300), (64, 1500), (256, 1500), (16, 1500), (8, 1500))
_ROLES_OF_BATCHES: Final = (*_ROLES, (64, 6000))  # else items are computed one by one
_NODES: Final = 100_000  # scalars while lowering
LIMIT: Final = 20_000  # in code
_CALLS: Final = 700  # of functions in straight code, each of which takes LLVM a millisecond or two
_THICK: Final = 1200  # operations in a turn of a loop: of 2,500 LLVM takes 10 s
_FEW: Final = 96  # in code, up to which it is compiled in no time
_SHARED: Final = 4096  # elements along an axis from which on threads may share them: nests have no blocks
_CACHE: Final = 1 << 20  # bytes between nests of a batch, from which on items are computed one by one
_NESTS: Final = 200  # of a program: LLVM takes a millisecond for each, and more than that for more


class Fused(MachineCode):
    """A program as machine code: ``void f(char **inputs, char **outputs, char *scratch)``.

    Attributes
    ----------
    ir : str
        LLVM's text.
    scratch_bytes : int
        Of memory that a call needs, aligned to 64 bytes.
    stages : tuple of int
        Of a long program that threads share; see `tapegrad.program.variants.Variant`.
    may_fail : bool
        Whether the function has the parameters, and returns what, `tapegrad.program.variants.Variant` says of stops.
    stops : sequence of array
        The words of its stops.
    imports : mapping
        Addresses of functions that the text declares, by their names.
    """

    may_fail: bool = False
    stops: Sequence[np.ndarray] = ()

    def __init__(
        self, module: Module, scratch_bytes: int, source: Callable[[], str], notes: list[str],
        stages: Sequence[int] = (), imports: Mapping[str, int] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        self.module, self.ir = module, str(module)
        self.scratch_bytes, self._source, self._notes = scratch_bytes, source, notes
        self.stages, self.imports = tuple(stages), imports

    @property
    def key(self) -> str:
        """What decides the machine code."""
        return self.ir

    def address(self) -> int:
        """Return the address of the function, valid for the life of the process."""
        name, is_cut = name_of(self), len(self.module.pieces) > 1
        parts = parts_of((name_of(begun(self)),)) if is_cut else {}
        text = partial(self.module.calling, name) if parts else lambda: self.ir
        return address_of_ir("program", self.ir, text, SYMBOL, imports=self.imports, parts=parts)

    def source(self) -> str:
        """Return what the code computes, as loops to read."""
        return self._source()

    def explain(self) -> list[str]:
        """Return what was done with the program, a line for each decision."""
        return list(self._notes)


def fuse(
    program: Program,
    *,
    width: int | None = None,
    checked: bool = False,
    in_threads: bool = False,
    in_brief: bool = False,
    scalars: int = LIMIT,
) -> Fused:
    """Return a program as machine code.

    Parameters
    ----------
    program : Program
    width : int, optional
        Of vectors in loops along one axis; default what suits the program. It changes no result.
    checked : bool
        Changes nothing: accesses at known positions are proved to be within their memory when they are emitted, and
        positions that are computed are always kept within it.
    in_threads : bool
        Let threads share long loops: the machine code then has stages.
    in_brief : bool
        Choose the axes that give the shortest code, not the fastest, unless all code is short.
    scalars : int
        The most that straight code may have.

    Raises
    ------
    Refused
        If it cannot be fused; the message says which operation, and why.
    """
    program = on_vectors(program)
    along_grid = sliced(program)
    if along_grid is not None:
        with contextlib.suppress(Refused):
            return _chosen(along_grid, width, in_threads, True, scalars)
    try:
        return _chosen(flat(program), width, in_threads, in_brief, scalars)
    except TooLongError:
        if len(program.entries) == 1:
            note_too_long(program)
        for batch in batches_alone(program):  # to know of each whether it is too long for other programs, too
            with contextlib.suppress(Refused):
                fuse(batch, in_brief=in_brief)
        raise


def _chosen(flattened: Flat, width: int | None, in_threads: bool, in_brief: bool, scalars: int) -> Fused:
    """Return a program as machine code, along those axes that serve it first."""
    lengths = {length for layout in flattened.program.layouts for length in layout.shape}
    reasons: dict[object, Refused] = {}
    if (count := products_of_convolutions(flattened.program, _ROLES[0][0])) > LIMIT:
        raise Refused(f"a convolution adds up {count} products")
    choices: Sequence[tuple[int, int]] = _ROLES_OF_BATCHES if flattened.sizes else _ROLES
    long = _ROLES[0][0]
    is_long = unrolled_scalars(flattened.program, long) > (_FEW if in_brief else LIMIT)
    if is_long or unrolled_calls(flattened.program, long) > _CALLS:
        choices = sorted(choices, key=lambda choice: unrolled_scalars(flattened.program, choice[0]))
    positions = moves(flattened)
    for long, enough in choices:
        longer = frozenset(length for length in lengths if length > long)
        choice: object = longer, enough if longer or flattened.sizes else 0
        if choice in reasons:
            continue
        try:
            roles = roles_of(flattened, long, enough, positions) if longer or flattened.sizes else None
            if (roles is None or roles.single) and not flattened.sizes:
                choice = longer
                if choice in reasons:
                    continue
                _refuse_long(flattened.program, long, positions, scalars)
            return _along_axes(flattened, long, roles, width, in_threads, scalars)
        except TooLongError:
            raise
        except Refused as error:
            reasons[choice] = error
    raise next(iter(reasons.values()))


def _refuse_long(program: Program, long: int, positions: Callable[[Entry], np.ndarray | None], most: int) -> None:
    """Refuse straight code that would be too long, before it is made."""
    if loaded_scalars(program, long) > _NODES:
        raise Refused(f"the program has more than {_NODES} scalars")
    if (fewest := fewest_scalars(program, long, positions)) > most:
        raise Refused(f"straight code would have {fewest} scalars")


def _along_axes(
    flattened: Flat, long: int, roles: Roles | None, width: int | None, in_threads: bool, most: int
) -> Fused:  # fmt: skip
    """Return a program as machine code; along one axis, if that will do, where loops over several do not fit."""
    try:
        return _fused(flattened, long, roles, width, in_threads, most)
    except TooLongError:
        raise
    except Refused:
        if roles is None or roles.single or not roles.else_single or flattened.sizes:
            raise
        return _fused(flattened, long, None, width, in_threads, most)


def _fused(flattened: Flat, long: int, roles: Roles | None, width: int | None, in_threads: bool, most: int) -> Fused:
    """Return a program as machine code, in which dimensions longer than this are axes."""
    if roles is None or roles.single:
        lowered = lower(flattened, long, _NODES, roles if flattened.sizes and roles and roles.alone else None)
        found = _rolled(flattened, lowered, in_threads)
        if found is not None:
            return found
        memory, constants = _memory(flattened, lowered)
        phases = plan(lowered.graph, [(array, ("out", k)) for k, array in enumerate(lowered.outputs)])
        keep(lowered.graph, phases)
        arrange(lowered.graph, phases)
        for segment in (own for phase in phases for own in phase.segments):
            segment.ways = either_way(lowered.graph, segment)
        count = sum(len(phase.uniform) + len(phase.stores) for phase in phases)
        if count > most:
            raise Refused(f"straight code would have {count} scalars")
        _refuse_thick(lowered.graph, phases)
        if in_threads and is_worth_blocks(lowered.graph, phases):
            blocks = BlockEmitter(lowered.graph, memory, width)
            module, source = blocks.module(phases, constants), lambda: of_phases(lowered.graph, phases)
            return Fused(module, blocks.scratch, source, _notes_of_phases(phases), blocks.counts)
        emitter = Emitter(lowered.graph, memory, width)
        module = module_of(emitter, lambda: emitter.phases(phases), (), constants)
        return Fused(module, 0, lambda: of_phases(lowered.graph, phases), _notes_of_phases(phases))
    lowered = lower(flattened, long, _NODES, roles)
    return _nested(flattened, lowered, _stores(lowered), roles.lengths, bool(flattened.sizes))


def _refuse_thick(graph: Graph, phases: Sequence[Phase]) -> None:
    """Refuse loops of so many operations in a turn that LLVM would take seconds to find registers for them."""
    for segment in (own for phase in phases for own in phase.segments):
        count = sum(bool(node.axes) for node in cone(graph, [node for _, node in segment.roots]))
        if count > _THICK:
            raise Refused(f"a turn of a loop would have {count} operations")


def _rolled(flattened: Flat, lowered: Lowered, in_threads: bool) -> Fused | None:
    """Return long code of one axis as nests of loops, if that is shorter."""
    found = {length for array in lowered.outputs for length, axis in zip(array.shape, array.axes, strict=True)
             if axis is not None}  # fmt: skip
    stores = _stores(lowered)
    if len(found) != 1 or (in_threads and max(found) > _SHARED) or not is_long(lowered.graph, stores):
        return None
    lengths = {LANES: found.pop()}
    fewer = rolled(lowered.graph, stores, lengths)
    if fewer is None:
        return None
    try:
        return _nested(flattened, lowered, fewer, lengths)
    except Refused:
        return None


def _nested(
    flattened: Flat, lowered: Lowered, stores: Sequence[Store], lengths: dict[int, int], is_batch: bool = False
) -> Fused:
    """Return a program of several axes as machine code."""
    if not is_batch and has_twins(lowered.graph, [node for node, *_ in stores], lengths):
        raise TooLongError("sums would be computed again along other axes")
    memory, constants = _memory(flattened, lowered)
    chunk = chunk_of(lengths[LANES])
    nests = plan_nests(lowered.graph, stores, lengths, chunk)
    if nests.count > _NESTS:
        raise TooLongError(f"there would be {nests.count} nests of loops")
    fewer = fewer_lanes(chunk, nests.nbytes)
    if is_batch and fewer < chunk:
        chunk, nests = fewer, plan_nests(lowered.graph, stores, lengths, fewer)
    if is_batch and nests.nbytes > _CACHE:
        raise TooLongError(f"{nests.nbytes} bytes would stand between its nests of loops")
    size, head = lay_out(nests, memory)
    nested = NestEmitter(lowered.graph, memory, nests, chunk)
    module = module_of(nested, nested.stages, head, constants)
    return Fused(module, size, lambda: of_nests(lowered.graph, nests), _notes_of_nests(nests, size))


def _notes_of_phases(phases: Sequence[Phase]) -> list[str]:
    """Return what became of a program of one axis."""
    notes = []
    for phase in phases:
        if phase.uniform:
            notes.append(f"straight code of {len(phase.uniform)} scalars")
        sums = sum(root.red is not None for root in phase.roots)
        notes += [
            f"a pass over elements {segment.low} to {segment.high}, {phase.lanes} at once: "
            f"{sums} reductions, {len(segment.roots) - sums} stores"
            for segment in phase.segments
        ]
    return notes


def _notes_of_nests(nests: NestPlan, size: int) -> list[str]:
    """Return what became of a program of several axes."""
    notes, met = [], set()
    for stage in nests.stages:
        for nest in (*stage.before, *stage.chunked):
            axes = (*nest.outer, *([LANES] if nest.lanes else []))
            loops = " x ".join(str(nests.lengths[axis]) for axis in axes)
            inner = "" if nest.inner is None else f", reducing {nests.lengths[nest.inner]} inside"
            notes.append(f"a nest of {loops or 1}{inner}: {len(nest.targets)} results")
            met |= {*axes, *([] if nest.inner is None else [nest.inner])}
    lengths = {axis: nests.lengths[axis] for axis in sorted(met)}
    return [f"axes of lengths {lengths}; axis {LANES} in vectors of {SIZE}; {size} bytes of scratch memory", *notes]


def _stores(lowered: Lowered) -> list[Store]:
    """Return the elements of outputs, and where they are stored."""
    stores = []
    for k, array in enumerate(lowered.outputs):
        steps = steps_of(array.shape)
        strides = {axis: step for axis, step in zip(array.axes, steps, strict=True) if axis is not None}
        for place, node in zip(np.ndindex(array.nodes.shape), array.nodes.reshape(-1), strict=True):
            offset = sum(at * step for at, step in zip(place, steps, strict=True))
            stores.append((lowered.graph.cast(node, array.dtype.char), ("out", k), offset, strides))
    return stores


def _memory(flattened: Flat, lowered: Lowered) -> tuple[Memory, list[str]]:
    """Return where inputs, outputs and constants stand, and the definitions of constants."""
    memory = Memory()
    program = flattened.program
    for k, number in enumerate(program.inputs[: len(program.inputs) - len(flattened.slices)]):
        memory.pointers["in", k], memory.sizes["in", k] = f"%in{k}", math.prod(program.layouts[number].shape)
    for k, array in enumerate(lowered.outputs):
        memory.pointers["out", k], memory.sizes["out", k] = f"%out{k}", array.size
    constants = []
    for k, data in enumerate(lowered.constants):
        memory.pointers["const", k], memory.sizes["const", k] = f"@const{k}", data.size
        constants.append(_data(f"@const{k}", data))
    return memory, constants


def _data(name: str, data: np.ndarray) -> str:
    """Return the definition of a constant array."""
    if data.nbytes > 1 << 20:
        raise Refused(f"a constant has {data.nbytes} bytes")
    return constant_array(name, data)
