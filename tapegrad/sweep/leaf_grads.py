"""Compiled: where a sweep is to write the gradients of the leaves that it found.

`bind_grads`, `bind_inputs` and `commit_grads` are functions as `tapegrad.tape.native` says. They know leaves without
hooks whose gradient is an array of the leaf's layout that can be added to, or is not there yet, and leave all others to
Python.
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
    FALSE,
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
BASE: Final = 6  # word of an array: what owns its memory
UNKNOWN: Final = -1


def appended(items: int, value: int) -> int:
    """Append an object to a list; False if Python raised."""
    return append(items, value) & 0xFFFFFFFF == 0  # a C int


def existing(known: int, gradient: int, layout: int) -> int:
    """Return the array of a gradient that can be added to; 0 if Python has to look at it.

    Its layout is that of the leaf: what the sweep writes is as large as the leaf.
    """
    if (
        gradient == 0
        or get(gradient, TYPE) != get(known, TENSOR)
        or get(gradient, get(known, NODE_OF)) != get(known, NONE)
    ):
        return 0
    array = get(gradient, get(known, DATA_OF))
    if array == 0 or get(array, TYPE) != get(known, ARRAY_TYPE) or get(array, ARRAY_FLAGS) & USABLE != USABLE:
        return 0
    plain = plain_of(known, layout)
    if get(gradient, get(known, LAYOUT_OF)) != plain or get(plain, get(known, CONTIGUOUS_OF)) != get(known, TRUE):
        return 0
    # Somebody else who holds it, or its memory, may be a graph that saved it: then the write is noted, in Python.
    if get(array, REFERENCES) & 0xFFFFFFFF != 1 or get(array, DATA) & FLAG_BITS != 0:
        return 0
    base = get(array, BASE)
    if base != 0 and get(base, TYPE) == get(known, ARRAY_TYPE):
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
    """Return the array of a leaf's gradient with its flags; 0 if the leaf is no more, UNKNOWN, or -2 if Python raised.

    A leaf whose tensor has another node by now is UNKNOWN too: the tensor may have another shape.
    """
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
            array = existing(known, gradient, layout)
            if array != 0:
                found = array | BORROWED | WRITTEN if appended(kept, array) else -2
        elif get(layout, get(known, CONTIGUOUS_OF)) == get(known, TRUE):
            value = new_gradient(known, layout)
            found = -2
            if value != 0:
                if appended(new, tensor) and appended(new, value):
                    found = get(value, get(known, DATA_OF)) | BORROWED
                drop(value)
    elif tensor != get(known, NONE):
        found = UNKNOWN
    drop(tensor)
    return found


def bind_grads(self: int, args: int, nargs: int) -> int:
    """Set the targets of the leaves that a walk found.

    Called as ``bind_grads(words, kept, new, unknown, acquire, held)``.

    Parameters
    ----------
    words : numpy.ndarray
        Of the workspace.
    kept, new, unknown : list
        Appended to: arrays that are added to; tensors without gradient, each with the gradient that it may get;
        numbers of the leaves that Python has to look at.
    acquire : callable
        Takes the lock of the gradients, if nobody holds it; otherwise no target is set.
    held : list of bool
        Appended to: whether the lock was taken. Here no signal's handler runs between taking it and noting it.
    """
    known = get(self, DATA)
    state, kept, new, unknown = get(get(args, 0), DATA), get(args, 1), get(args, 2), get(args, 3)
    leaves, targets = get(state, LEAVES_AT), get(state, GRADS_AT)
    at_once = stack(8)
    put(at_once, 0, get(known, FALSE))
    taken = vectorcall(get(args, 4), at_once, 1, 0)
    if taken == 0:
        return 0
    fine = appended(get(args, 5), taken)
    drop(taken)
    if not fine:
        return 0
    if taken == get(known, FALSE):
        take(get(known, NONE))
        return get(known, NONE)
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


def gradient_of_input(known: int, leaf: int) -> int:
    """Return a new gradient of a leaf, UNKNOWN if that is for Python, or 0 if Python raised."""
    none = get(known, NONE)
    if get(leaf, get(known, HOOKS_OF_LEAF)) != none:
        return UNKNOWN
    tensor = vectorcall(get(leaf, get(known, TENSOR_OF_LEAF)), 0, 0, 0)
    if tensor == 0:
        return 0
    found = UNKNOWN
    if tensor != none and get(tensor, get(known, NODE_OF)) == leaf:
        layout = get(tensor, get(known, LAYOUT_OF))
        if get(layout, get(known, CONTIGUOUS_OF)) == get(known, TRUE):
            found = new_gradient(known, layout)
    drop(tensor)
    return found


def bind_inputs(self: int, args: int, nargs: int) -> int:
    """Set the targets of the leaves that a walk found, for new gradients of some of them.

    Called as ``bind_inputs(words, leaves, results)``.

    Parameters
    ----------
    words : numpy.ndarray
        Of the workspace.
    leaves : list of Leaf
        Whose gradients are wanted.
    results : list
        As long, of None; gradients take their places.

    Returns
    -------
    int
        How many of the leaves were found, UNKNOWN if one of them is for Python.
    """
    known = get(self, DATA)
    state, wanted, results = get(get(args, 0), DATA), get(args, 1), get(args, 2)
    found, targets, bound = get(state, LEAVES_AT), get(state, GRADS_AT), 0
    for number in range(get(state, N_LEAVES)):
        leaf = get(get(found, 2 * number + 1), NODE)
        value = 0
        for place in range(get(wanted, LENGTH)):
            if get(get(wanted, ITEMS), place) == leaf:
                if value == 0:
                    value = gradient_of_input(known, leaf)
                    if value == 0:
                        return 0
                    if value == UNKNOWN:
                        return new_integer(UNKNOWN)
                else:
                    take(value)
                before = get(get(results, ITEMS), place)
                put(get(results, ITEMS), place, value)
                drop(before)
                bound += 1
        target = 0
        if value != 0:
            target = get(value, get(known, DATA_OF)) | BORROWED
        put(targets, number, target)
    return new_integer(bound)


def commit_grads(self: int, args: int, nargs: int) -> int:
    """Give tensors that have none their gradients: ``commit_grads(new)``, in pairs as `bind_grads` wrote them.

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
