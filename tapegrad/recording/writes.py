"""Compiled: writes in place that are not recorded. Whether a call is one, and when it was."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from tapegrad.compiler.intrinsics import external, memset, stack
from tapegrad.modes import DISABLED, INTERCEPTORS
from tapegrad.recording.native import Lazy, clear_error, decref, incref, integer, load, new_integer, vectorcall
from tapegrad.recording.objects import Runtime, TensorObject, is_tensor, with_runtime
from tapegrad.recording.operands import is_stale
from tapegrad.runtime.objects import WRITEABLE, NDArray, Object
from tapegrad.runtime.structs import Array, Struct, slot
from tapegrad.tape.entries import HEAD_ENTRIES
from tapegrad.tape.structs import ENTRIES, ENTRY_BYTES, PAGE_BYTES, TIMES, Entry, PageHead, WriteTimes
from tapegrad.tape.versions import Storage

_look_up: Final = external("PyDict_GetItem", 2)  # a borrowed reference, or 0


class StorageObject(Object, of=Storage):
    """What is known of writes to an array's memory."""

    address: Object = slot("address")


class Writes(Struct):
    """The words of functions that write."""

    runtime: Runtime


def place_of(entry: Entry) -> int:
    """Return the place of an entry in the order of recording, as `tapegrad.tape.versions.now` does."""
    page = entry & -PAGE_BYTES
    return PageHead(page).sequence * ENTRIES + (entry - page) // ENTRY_BYTES - HEAD_ENTRIES


def find_by_identity(table: Object, thing: Object) -> Object:
    """Return what a dict has by the identity of an object: a borrowed reference; 0 if it has nothing."""
    identity = Object(new_integer(thing))
    if identity == 0:
        clear_error()
        return identity
    found = Object(_look_up(table, identity))
    decref(identity)
    return found


def owner_of(runtime: Runtime, array: NDArray) -> NDArray:
    """Return the array that owns the memory of a view; 0 if Python has to look for it."""
    while array != 0 and array.base != 0:
        array = NDArray(array.base) if array.base.type == runtime.array_type else NDArray(0)
    return array


def note(runtime: Runtime, array: NDArray) -> int:
    """Note that an array is written to now (`tapegrad.tape.versions.note`); return 0 if Python raised."""
    owner, storage, args = owner_of(runtime, array), StorageObject(0), Array[Object](stack(8))
    if owner != 0:
        storage = StorageObject(find_by_identity(runtime.storages, owner))
        if storage == 0 and runtime.mode.bits & INTERCEPTORS == 0:
            args[0] = owner
            storage = StorageObject(vectorcall(runtime.new_storage, args, 1, 0))
            if storage == 0:
                return 0
            decref(storage)  # the table holds it
    free = runtime.recorder.page.free
    if storage != 0 and free.length != 0:
        times = WriteTimes(integer(storage.address))
        place, version = place_of(Entry(integer(free.items[free.length - 1]))), times.version + 1
        times.version = version
        times.times[version % TIMES] = place
        runtime.clock[0] = place
        return 1
    args[0] = array
    done = Object(vectorcall(runtime.note_write, args, 1, 0))
    if done == 0:
        return 0
    decref(done)
    return 1


def may_write(runtime: Runtime, args: Array[Object], count: int) -> int:
    """Whether the first argument of a call is a tensor that is written to without a record, and without a look."""
    target = TensorObject(args[0])
    if is_tensor(runtime, target.type) == 0 or target.data == 0 or target.layout == 0 or target.node == 0:
        return 0
    mode, node, base, enabled = runtime.mode.bits, target.node, target.base, 1
    if mode & INTERCEPTORS or target.layout.type == runtime.inference_layout_type:
        return 0
    if target.data.type != runtime.array_type or target.data.flags & WRITEABLE == 0:
        return 0
    if mode & DISABLED:  # in some thread
        answer = Object(vectorcall(runtime.is_enabled_here, 0, 0, 0))
        if answer == 0:
            clear_error()
            return 0
        enabled = 1 if answer == runtime.true else 0
        decref(answer)
    if target.layout.contiguous != runtime.true:  # elements may stand for several, as those that `expand` has stretched
        for dim in range(target.data.ndim):
            if target.data.strides[dim] == 0 and target.data.shape[dim] > 1:
                return 0
    # What a result of a recorded operation shows may be saved.
    if node.type == runtime.list_type or (base != 0 and (base.node == 0 or base.node.type == runtime.list_type)):
        return 0
    if enabled == 0:
        return 1
    if node != runtime.none or (base != 0 and (base == runtime.unrecorded or base.node != runtime.none)):
        return 0
    for number in range(1, count):
        value = TensorObject(args[number])
        if is_tensor(runtime, value.type) and (value.node != runtime.none or is_stale(runtime, value)):
            return 0
    return 1


def memory(self: NDArray, args: Array[Object], nargs: int) -> Any:
    """Return the array of a tensor that is about to be written to without a record, and note that; None if it is not.

    Further arguments are what is written.
    """
    runtime = Writes(self.data).runtime
    if nargs == 0 or may_write(runtime, args, nargs) == 0:
        incref(runtime.none)
        return runtime.none
    array = TensorObject(args[0]).data
    if note(runtime, array) == 0:
        return 0
    incref(array)
    return array


def zero(self: NDArray, args: Array[Object], nargs: int) -> Any:
    """Fill a contiguous tensor with zeros if that is not recorded, and return it; else None. 0 if Python raised."""
    runtime, target = Writes(self.data).runtime, TensorObject(args[0])
    if nargs != 1 or may_write(runtime, args, 1) == 0 or target.layout.contiguous != runtime.true:
        incref(runtime.none)
        return runtime.none
    if note(runtime, target.data) == 0:
        return 0
    memset(target.data.data, integer(target.layout.nbytes))
    incref(target)
    return target


def note_write(self: NDArray, args: Array[Object], nargs: int) -> Any:
    """Note that an array is written to now, and return None; 0 if Python raised."""
    runtime = Writes(self.data).runtime
    if runtime.mode.bits & INTERCEPTORS:
        return vectorcall(runtime.note_write, args, nargs, 0)
    if note(runtime, NDArray(args[0])) == 0:
        return 0
    incref(runtime.none)
    return runtime.none


#: ``written.memory(tensor, *others)`` returns the array of a tensor that may be written to at once, and notes the
#: write; None if there is more to it. ``written.zero(tensor)`` writes zeros itself, and returns the tensor or None.
#: ``written.note(array)`` is `tapegrad.tape.versions.note`.
written: Final = Lazy[Any](
    **{name: partial(lambda code: load(code, with_runtime("writes")), code) for name, code in
       (("memory", memory), ("zero", zero), ("note", note_write))}
)  # fmt: skip
