"""Compiled: the tables of a walk back: scripts by what they serve, and the operations that are written."""

from __future__ import annotations

from typing import Final

from tapegrad.recording.native import C_INT, append, decref, incref, integer, new_integer, new_object
from tapegrad.recording.objects import Runtime
from tapegrad.runtime.objects import List, NDArray, Object, Tuple
from tapegrad.runtime.structs import Array, Struct, Table, embedded

MOST_NUMBERS: Final = 2  # of Python among the residuals of an entry
MOST_RESIDUALS: Final = 12
_MASK: Final = (1 << 40) - 1  # of a hash: products of two such factors fit into a word
_FACTOR: Final = 1000003


class KeyFields(Struct):
    """What a script is found by, and the script."""

    kind: int  # the identity of a plan, or of the layout of a sum's first operand
    wanted: int  # a bit for each operand
    layout: int  # the identity of that of the cotangent
    numbers: Array[int] = embedded(MOST_NUMBERS)  # the bits of floats among the residuals
    value: int  # where the script, or the `ResidualFields` of a plan, stand; negative if there is none


class ResidualFields(Struct):
    """Where residuals stand in the nodes of a plan: arrays, then Python numbers."""

    n_arrays: int
    n_numbers: int
    places: Array[int] = embedded(MOST_RESIDUALS)


class WalkFields(Struct):
    """What is known of plans and rules, the cotangents, and the list that is written."""

    runtime: Runtime
    get_item: int  # PyDict_GetItemWithError
    n_keys: int
    keys: Table[KeyFields]
    slots: Array[int]  # a hash table: 1 + the number of a key
    slots_mask: int
    residuals: Table[ResidualFields]
    # Of each script: how many constants, these; how many operations, for each its plan's number, how many operands,
    # where each stands among the values; how many results, for each where it stands and its layout.
    scripts: Array[int]
    values: Array[int]  # numbers of values: what a script is given, its constants, its results
    # By id of an entry of the tape.
    cts: Array[int]  # numbers
    layouts: Array[int]  # of cotangents
    same: Array[int]  # the first entry that computes the same
    table: Array[int]  # a hash table: 1 + the position of an entry
    table_mask: int
    # Entries that are written: the number of the plan, the result, and where the operands begin in `taken`.
    next_number: int
    n_entries: int
    n_taken: int
    plans: Array[int]
    results: Array[int]
    starts: Array[int]
    taken: Array[int]
    entry_slots: Array[int]  # a hash table: 1 + the place of an entry
    entry_mask: int
    capacity: int  # of entries
    taken_capacity: int
    room: int  # how many more entries, or operands of these, an entry of the tape may need
    is_full: int  # the walk stopped as there is no room


def mixed(hashed: int, value: int) -> int:
    """Return a hash of one more value."""
    return ((hashed & _MASK) * _FACTOR) ^ (value & _MASK) ^ (value >> 40)


def slot_of(hashed: int, mask: int) -> int:
    """Return the place in a hash table at which a search begins."""
    return (hashed ^ (hashed >> 17) ^ (hashed >> 31)) & mask


def find_slot(walk: WalkFields, kind: int, wanted: int, layout: int, first: int, second: int) -> int:
    """Return the slot of a key, or the empty one in which it would stand."""
    hashed = mixed(mixed(mixed(mixed(kind >> 4, wanted), layout >> 4), first), second)
    slot = slot_of(hashed, walk.slots_mask)
    while walk.slots[slot] != 0:
        key = walk.keys[walk.slots[slot] - 1]
        differs = (key.kind ^ kind) | (key.wanted ^ wanted) | (key.layout ^ layout)
        if (differs | (key.numbers[0] ^ first) | (key.numbers[1] ^ second)) == 0:
            break
        slot = (slot + 1) & walk.slots_mask
    return slot


def find_value(walk: WalkFields, kind: int, wanted: int, layout: int, first: int, second: int) -> int:
    """Return the value of a key; -1 if there is none."""
    found = walk.slots[find_slot(walk, kind, wanted, layout, first, second)]
    return -1 if found == 0 else walk.keys[found - 1].value


def insert_keys(self: Object, args: Array[Object], nargs: int) -> int:
    """Put keys from one on into the hash table: ``insert_keys(walk, first)``."""
    walk = WalkFields(NDArray(args[0]).data)
    for number in range(integer(args[1]), walk.n_keys):
        key = walk.keys[number]
        walk.slots[find_slot(walk, key.kind, key.wanted, key.layout, key.numbers[0], key.numbers[1])] = number + 1
    return Object(new_integer(walk.n_keys))


def is_entry(walk: WalkFields, entry: int, plan: int, operands: Array[int], count: int) -> int:
    """Return 1 if an entry that was written is this operation on these operands."""
    if walk.plans[entry] != plan:
        return 0
    taken = walk.taken.at(walk.starts[entry])
    for k in range(count):
        if taken[k] != operands[k]:
            return 0
    return 1


def find_entry(walk: WalkFields, plan: int, operands: Array[int], count: int) -> int:
    """Return the slot of an operation, or the empty one in which it would stand. A plan has one number of operands."""
    hashed = plan
    for k in range(count):
        hashed = mixed(hashed, operands[k])
    slot = slot_of(hashed, walk.entry_mask)
    while walk.entry_slots[slot] != 0:
        if is_entry(walk, walk.entry_slots[slot] - 1, plan, operands, count) != 0:
            break
        slot = (slot + 1) & walk.entry_mask
    return slot


def insert_entries(self: Object, args: Array[Object], nargs: int) -> int:
    """Put all entries into a new hash table: ``insert_entries(walk)``."""
    walk = WalkFields(NDArray(args[0]).data)
    for entry in range(walk.n_entries):
        end = walk.n_taken if entry + 1 == walk.n_entries else walk.starts[entry + 1]
        operands = walk.taken.at(walk.starts[entry])
        walk.entry_slots[find_entry(walk, walk.plans[entry], operands, end - walk.starts[entry])] = entry + 1
    return Object(new_integer(walk.n_entries))


def write_entry(walk: WalkFields, plan: int, count: int) -> int:
    """Return the number of an operation's result; its operands stand behind those of the last entry."""
    slot = find_entry(walk, plan, walk.taken.at(walk.n_taken), count)
    if walk.entry_slots[slot] != 0:
        return walk.results[walk.entry_slots[slot] - 1]
    entry = walk.n_entries
    walk.plans[entry], walk.results[entry], walk.starts[entry] = plan, walk.next_number, walk.n_taken
    walk.n_entries += 1
    walk.n_taken += count
    walk.next_number += 1
    walk.entry_slots[slot] = entry + 1
    return walk.results[entry]


def share_entry(self: Object, args: Array[Object], nargs: int) -> int:
    """Return the number of an operation's result; a given one, which is noted, if it stands nowhere yet.

    ``share_entry(walk, plan, operands, number)``, with a negative number if nothing shall be noted.
    """
    walk, operands = WalkFields(NDArray(args[0]).data), Tuple(args[2])
    for k in range(operands.length):
        walk.taken[walk.n_taken + k] = integer(operands.items[k])
    plan, number = integer(args[1]), integer(args[3])
    if number < 0:
        found = walk.entry_slots[find_entry(walk, plan, walk.taken.at(walk.n_taken), operands.length)]
        return Object(new_integer(-1 if found == 0 else walk.results[found - 1]))
    walk.next_number = number
    return Object(new_integer(write_entry(walk, plan, operands.length)))


def new_numbers(walk: WalkFields, numbers: Array[int], count: int) -> Tuple:
    """Return integers as a tuple; 0 if Python raised."""
    made = Tuple(new_object(walk.runtime.tuple_type, count))
    if made == 0:
        return made
    for k in range(count):
        number = Object(new_integer(numbers[k]))
        if number == 0:
            decref(made)
            return Tuple(0)
        made.items[k] = number
    return made


def make_entries(self: Object, args: Array[Object], nargs: int) -> int:
    """Append operations from one on to a list of Python's: ``make_entries(walk, first, operations, entries, kind)``.

    Parameters
    ----------
    walk : numpy.ndarray
    first : int
    operations : list
        By number of a plan: the operation and its attributes.
    entries : list of Entry
    kind : type
        `tapegrad.program.program.Entry`.
    """
    walk, operations = WalkFields(NDArray(args[0]).data), List(args[2])
    none, runtime = Tuple(new_object(walk.runtime.tuple_type, 0)), walk.runtime
    if none == 0:
        return Object(0)
    fails = 0
    for entry in range(integer(args[1]), walk.n_entries):
        end = walk.n_taken if entry + 1 == walk.n_entries else walk.starts[entry + 1]
        operands = new_numbers(walk, walk.taken.at(walk.starts[entry]), end - walk.starts[entry])
        results = new_numbers(walk, walk.results.at(entry), 1)
        made = Tuple(new_object(args[4], 6))
        if operands == 0 or results == 0 or made == 0:
            fails = 1
            break
        operation = Tuple(operations.items[walk.plans[entry]])
        incref(operation.items[0])
        incref(operation.items[1])
        incref(none)
        incref(runtime.false)
        made.items[0], made.items[1], made.items[2] = operation.items[0], operands, operation.items[1]
        made.items[3], made.items[4], made.items[5] = none, results, runtime.false
        fails = append(args[3], made) & C_INT
        decref(made)
        if fails != 0:
            break
    decref(none)
    return Object(0) if fails != 0 else Object(new_integer(walk.n_entries))
