"""Compiled: the rule of an entry as machine code, which computes the cotangents of all operands at once."""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import call, call_void, stack
from tapegrad.recording.steps import CT
from tapegrad.runtime.objects import NDArray, Object, Scalar
from tapegrad.runtime.structs import Array
from tapegrad.sweep.kernel_calls import allocate, give_back
from tapegrad.sweep.workspace import FLAG_BITS, UNWANTED, WRITTEN, FreeBuffer, State
from tapegrad.tape.structs import PlanFields, ProgramFields

ALIGNMENT: Final = 64  # of scratch memory


def find_inputs(program: ProgramFields, ct: int, items: Array[Object], addresses: Array[int]) -> None:
    """Write the addresses of inputs."""
    for number in range(program.n_inputs):
        wanted = program.inputs[number]
        place = wanted.source >> 2
        address = ct + place
        if wanted.source & 3 != CT:
            value = items[place]
            address = Scalar(value).value if value.type == wanted.scalar else NDArray(value).data
        addresses[number] = address


def is_wanted(edge: Array[int], cts: Array[int], operand: int) -> int:
    """Whether the cotangent of an operand is wanted."""
    return 0 if edge[operand] < 0 or cts[edge[operand]] == UNWANTED else 1


def take_back(
    state: State, program: ProgramFields, count: int, copies: Array[int], edge: Array[int], cts: Array[int]
) -> None:
    """Undo what was prepared for so many outputs."""
    for number in range(count):
        output = program.outputs[number]
        if copies[number] != 0:
            give_back(state, output.size_class, FreeBuffer(copies[number]))
        else:
            cts[edge[output.operand]] = cts[edge[output.operand]] & ~WRITTEN


def find_outputs(
    state: State, program: ProgramFields, addresses: Array[int], copies: Array[int], edge: Array[int], cts: Array[int]
) -> int:
    """Write the addresses of outputs: those of cotangents, or, where there is one already or none is wanted, of copies.

    Return 0 if memory is needed first.
    """
    for number in range(program.n_outputs):
        output, address = program.outputs[number], 0
        operand_id = edge[output.operand]
        is_new = is_wanted(edge, cts, output.operand) and cts[operand_id] & WRITTEN == 0
        if is_new:
            address = cts[operand_id] & ~FLAG_BITS
        if address == 0:
            address = allocate(state, output.size_class)
            if address == 0:
                take_back(state, program, number, copies, edge, cts)
                return 0
        copies[number] = 0 if is_new else address
        if is_new:
            cts[operand_id] = cts[operand_id] | address | WRITTEN
        addresses[number] = address
    return 1


def add_copies(state: State, program: ProgramFields, copies: Array[int], edge: Array[int], cts: Array[int]) -> None:
    """Add what stands in copies to cotangents that are wanted."""
    args = Array[int](stack(16))
    for number in range(program.n_outputs):
        output, copy = program.outputs[number], copies[number]
        if copy != 0:
            if is_wanted(edge, cts, output.operand):
                args[0] = copy
                args[1] = cts[edge[output.operand]] & ~FLAG_BITS
                call(output.add_kernel, args, output.add_geometry, 1)
            give_back(state, output.size_class, FreeBuffer(copy))


def given_results(state: State, position: int, entry_id: int, n_results: int, offsets: Array[int]) -> int:
    """Return a bit for each result of the entry at a position that has a cotangent.

    Each result has an entry of its own, which was visited before: the cotangent of all does not tell zeros from none.
    """
    order, starts, edges, slots, cts = state.order, state.starts, state.edges, state.slots, state.cts
    given, left = 0, state.uses[entry_id]
    while left > 0 and position > 0:
        position -= 1
        other = order[position]
        if other >= 0 and slots[other].plan.arity == 1 and edges[starts[position]] == entry_id:
            left -= 1
            for number in range(n_results):
                if offsets[number] == slots[other].plan.calls[0].offset and cts[other] & WRITTEN:
                    given |= 1 << number
    return given


def program_of(state: State, plan: PlanFields, position: int, entry_id: int) -> ProgramFields:
    """Return the program of the entry at a position; 0 if there is none, or it needs memory of new sizes."""
    program = plan.program
    if program != 0 and program.n_results != 0:
        given = given_results(state, position, entry_id, program.n_results, program.results)
        while program != 0 and program.given != given:
            program = program.next
    if program != 0 and program.last_class >= state.n_classes:
        program = ProgramFields(0)
    return program


def run_program(
    state: State, items: Array[Object], program: ProgramFields, ct: int, cts: Array[int], edge: Array[int]
) -> int:
    """Add to the cotangents of all operands; return 0 if memory is needed first."""
    memory = allocate(state, program.size_class)
    if memory == 0:
        return 0
    inputs = Array[int](memory + ALIGNMENT - 1 & -ALIGNMENT)
    outputs = inputs.at(program.n_inputs)
    copies = outputs.at(program.n_outputs)
    found = find_outputs(state, program, outputs, copies, edge, cts)
    if found:
        find_inputs(program, ct, items, inputs)
        call_void(program.code, inputs, outputs, inputs + program.scratch)
        add_copies(state, program, copies, edge, cts)
    give_back(state, program.size_class, FreeBuffer(memory))
    return found
