"""Compiled: what the entry of a `Function` keeps: saved values, and the leaves among the arguments."""

from __future__ import annotations

from tapegrad.autograd.function_objects import Names, look_up, remove, store
from tapegrad.autograd.function_outputs import is_argument
from tapegrad.compiler.intrinsics import stack
from tapegrad.recording.native import C_INT, decref, incref, new_integer, new_object, vectorcall
from tapegrad.recording.objects import TensorObject, is_tensor, plain_layout
from tapegrad.runtime.objects import Object, Tuple
from tapegrad.runtime.structs import Array


def is_simple(names: Names, value: Object) -> int:
    """Whether a value is a tensor, and none of inference mode."""
    return is_tensor(names.runtime, value.type) and TensorObject(value).layout.type == names.layout_type


def is_plain(names: Names, attributes: Object) -> int:
    """Whether the context keeps all saved values as they are, but for outputs, and says of no input that it changed."""
    if look_up(attributes, names.dirty) != 0 or look_up(attributes, names.saved_for_forward) != 0:
        return 0
    runtime, saved = names.runtime, Tuple(look_up(attributes, names.saved))
    if saved == 0:
        return 1
    if saved.type != runtime.tuple_type:
        return 0
    for number in range(saved.length):
        if saved.items[number] != runtime.none and is_simple(names, saved.items[number]) == 0:
            return 0
    return 1


def _kept_of(names: Names, kind: Object, out: TensorObject, number: int) -> Object:
    """Return what is kept of an output that was saved, as a tensor would refer to the entry; 0 if Python raised."""
    values, place = Array[Object](stack(24)), Object(new_integer(number))
    if place == 0:
        return place
    values[0] = place
    values[1] = Object(out.data)
    values[2] = Object(plain_layout(names.runtime, out.layout))
    kept = Object(vectorcall(kind, values, 3, 0))
    decref(place)
    return kept


def keep_output(names: Names, kind: Object, attributes: Object, out: TensorObject, place: int) -> int:
    """Replace an output among the saved values by an instance of a class; return 0 if Python raised."""
    saved, is_saved = Tuple(look_up(attributes, names.saved)), 0
    for number in range(saved.length if saved != 0 else 0):
        if saved.items[number] == out:
            is_saved = 1
    if is_saved == 0:
        return 1
    kept = Tuple(new_object(names.runtime.tuple_type, saved.length))
    if kept == 0:
        return 0
    done = 1
    for number in range(saved.length):
        value = saved.items[number]
        if value == out and done:
            value = _kept_of(names, kind, out, place)
            if value == 0:
                done = 0
        else:
            incref(value)
        if value != 0:
            kept.items[number] = value
    if done and store(attributes, names.saved, kept) & C_INT != 0:
        done = 0
    decref(kept)
    return done


def keep_leaves(names: Names, attributes: Object, args: Array[Object], nargs: int) -> int:
    """Let the entry keep the leaves among the arguments alive, as `recorded` says; return 0 if Python raised."""
    runtime, count = names.runtime, 0
    for number in range(nargs):
        if is_tensor(runtime, args[number].type) and TensorObject(args[number]).node.type == names.leaf_type:
            count += 1
    if count == 0:
        return 1
    leaves = Tuple(new_object(runtime.tuple_type, count))
    if leaves == 0:
        return 0
    for number in range(nargs):
        if is_tensor(runtime, args[number].type) and TensorObject(args[number]).node.type == names.leaf_type:
            count -= 1
            incref(args[number])
            leaves.items[count] = args[number]
    failed = store(attributes, names.leaves, leaves) & C_INT
    decref(leaves)
    return 0 if failed != 0 else 1


def keep(
    names: Names,
    kind: Object,
    attributes: Object,
    args: Array[Object],
    nargs: int,
    outputs: Array[Object],
    n_outputs: int,
) -> int:
    """Let the attributes of the context be what the entry keeps, of outputs a `kind`; return 0 if Python raised."""
    for number in range(n_outputs):
        out = TensorObject(outputs[number])
        # An argument that is returned stays an argument.
        is_own = out.type == names.runtime.tensor_type and is_argument(out, args, nargs) == 0
        if is_own and keep_output(names, kind, attributes, out, number) == 0:
            return 0
    if keep_leaves(names, attributes, args, nargs) == 0:
        return 0
    if look_up(attributes, names.constant) != 0 and remove(attributes, names.constant) & C_INT != 0:
        return 0
    written = Object(new_integer(names.runtime.clock[0]))
    if written == 0:
        return 0
    failed = store(attributes, names.written, written) & C_INT
    decref(written)
    return 1 if failed == 0 else 0
