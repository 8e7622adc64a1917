"""Compiled: where a sweep is to write the gradients of the leaves that it found.

`aim` and `settle` are functions as `tapegrad.tape.native` says. `aim` knows leaves without hooks whose gradient is an
array that can be added to, or is not there yet. It leaves all others to Python.
"""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import get, put, stack
from tapegrad.runtime.pool import THRESHOLD
from tapegrad.sweep.workspace import BORROWED, FLAG_BITS, GRADS_AT, LEAVES_AT, N_LEAVES, WRITTEN
from tapegrad.tape.entries import NODE
from tapegrad.tape.native import (
    ALIGNED,
    ARRAY_FLAGS,
    ARRAY_TYPE,
    CONTIGUOUS_OF,
    DATA,
    DATA_OF,
    DTYPE_OF,
    EMPTY,
    EMPTY_LARGE,
    GRAD_OF,
    HOOKS_OF_LEAF,
    ITEMS,
    LAYOUT_OF,
    LENGTH,
    NBYTES_OF,
    NODE_OF,
    NONE,
    POST_HOOKS_OF_LEAF,
    REFERENCES,
    SHAPE_OF,
    TENSOR,
    TENSOR_OF_LEAF,
    TRUE,
    TYPE,
    WRITEABLE,
    append,
    drop,
    integer,
    new_integer,
    new_object,
    plain_of,
    take,
    vectorcall,
)

USABLE: Final = ALIGNED | WRITEABLE
UNKNOWN: Final = -1


def appended(items: int, value: int) -> int:
    """Append an object to a list; False if Python raised."""
    return append(items, value) & 0xFFFFFFFF == 0  # a C int


def existing(known: int, gradient: int) -> int:
    """Return the array that can be added to; 0 if Python has to look at the gradient."""
    if get(gradient, TYPE) != get(known, TENSOR) or get(gradient, get(known, NODE_OF)) != get(known, NONE):
        return 0
    array = get(gradient, get(known, DATA_OF))
    if get(array, TYPE) != get(known, ARRAY_TYPE) or get(array, ARRAY_FLAGS) & USABLE != USABLE:
        return 0
    if get(get(gradient, get(known, LAYOUT_OF)), get(known, CONTIGUOUS_OF)) != get(known, TRUE):
        return 0
    # Somebody else who holds it may be a graph that saved it: then the write is noted, in Python.
    if get(array, REFERENCES) & 0xFFFFFFFF != 1 or get(array, DATA) & FLAG_BITS != 0:
        return 0
    return array


def new_gradient(known: int, layout: int) -> int:
    """Return a tensor over a new array of this layout; 0 if Python raised."""
    arguments = stack(16)
    put(arguments, 0, get(layout, get(known, SHAPE_OF)))
    put(arguments, 1, get(layout, get(known, DTYPE_OF)))
    large = integer(get(layout, get(known, NBYTES_OF))) >= THRESHOLD
    array = vectorcall(get(known, EMPTY_LARGE if large else EMPTY), arguments, 2, 0)
    if array == 0:
        return 0
    value = new_object(get(known, TENSOR), 0)
    if value == 0:
        drop(array)
        return 0
    plain, none = plain_of(known, layout), get(known, NONE)
    take(plain)
    take(none)
    take(none)
    put(value, get(known, DATA_OF), array)
    put(value, get(known, LAYOUT_OF), plain)
    put(value, get(known, NODE_OF), none)
    put(value, get(known, GRAD_OF), none)
    return value


def target_of(known: int, leaf: int, kept: int, new: int) -> int:
    """Return the array of a leaf's gradient with its flags; 0 if nothing is wanted, UNKNOWN, or -2 if Python raised."""
    if get(leaf, get(known, HOOKS_OF_LEAF)) != get(known, NONE):
        return UNKNOWN
    if get(leaf, get(known, POST_HOOKS_OF_LEAF)) != get(known, NONE):
        return UNKNOWN
    tensor = vectorcall(get(leaf, get(known, TENSOR_OF_LEAF)), 0, 0, 0)
    if tensor == 0:
        return -2
    found = 0
    if tensor != get(known, NONE) and get(tensor, get(known, NODE_OF)) == leaf:
        gradient, layout = get(tensor, get(known, GRAD_OF)), get(tensor, get(known, LAYOUT_OF))
        found = UNKNOWN
        if gradient != get(known, NONE):
            array = existing(known, gradient)
            if array != 0:
                found = array | BORROWED | WRITTEN if appended(kept, gradient) else -2
        elif get(layout, get(known, CONTIGUOUS_OF)) == get(known, TRUE):
            value = new_gradient(known, layout)
            found = -2
            if value != 0:
                if appended(new, tensor) and appended(new, value):
                    found = get(value, get(known, DATA_OF)) | BORROWED
                drop(value)
    drop(tensor)
    return found


def aim(self: int, args: int, nargs: int) -> int:
    """Set the targets of the leaves that a walk found: ``aim(words, kept, new, unknown)``.

    Parameters
    ----------
    words : numpy.ndarray
        Of the workspace.
    kept, new, unknown : list
        Appended to: gradients that are added to; tensors without gradient, each with the gradient that it may get;
        numbers of the leaves that Python has to look at.
    """
    known = get(self, DATA)
    state, kept, new, unknown = get(get(args, 0), DATA), get(args, 1), get(args, 2), get(args, 3)
    leaves, targets = get(state, LEAVES_AT), get(state, GRADS_AT)
    for number in range(get(state, N_LEAVES)):
        target = target_of(known, get(get(leaves, 2 * number + 1), NODE), kept, new)
        if target == UNKNOWN:
            place = new_integer(number)
            if place == 0:
                return 0
            fine = appended(unknown, place)
            drop(place)
            if not fine:
                return 0
        elif target < 0:
            return 0
        else:
            put(targets, number, target)
    take(get(known, NONE))
    return get(known, NONE)


def settle(self: int, args: int, nargs: int) -> int:
    """Give tensors that have none their gradients: ``settle(new)``, in pairs as `aim` wrote them.

    Returns how many got one. The first that has a gradient by now, and those after it, are left to Python.
    """
    known, new = get(self, DATA), get(args, 0)
    at, none = get(known, GRAD_OF), get(known, NONE)
    place = 0
    while place < get(new, LENGTH):
        tensor, value = get(get(new, ITEMS), place), get(get(new, ITEMS), place + 1)
        if get(tensor, at) != none:
            break
        take(value)
        put(tensor, at, value)
        drop(none)
        place += 2
    return new_integer(place)
