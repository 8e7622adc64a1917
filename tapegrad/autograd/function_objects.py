"""What the compiled call of a `Function` and its compiled rule share: names, functions of CPython, the grad mode."""

from __future__ import annotations

import functools
import sys
from typing import Final

import numpy as np

from tapegrad.compiler.intrinsics import external, stack
from tapegrad.modes import WRITES_NOTED, thread
from tapegrad.ops.table.results import NO_DATA
from tapegrad.recording.native import C_INT, decref, vectorcall
from tapegrad.recording.objects import Runtime, with_runtime
from tapegrad.runtime.objects import Object, Type
from tapegrad.runtime.structs import Array, Struct
from tapegrad.tape.entries import Leaf
from tapegrad.tape.layout import Layout

is_subclass: Final = external("PyType_IsSubtype", 2)
get_attribute: Final = external("PyObject_GetAttr", 2)
set_attribute: Final = external("PyObject_SetAttr", 3)
attributes_of: Final = external("PyObject_GenericGetDict", 2)
set_attributes: Final = external("PyObject_GenericSetDict", 3)
look_up: Final = external("PyDict_GetItem", 2)  # a borrowed reference
store: Final = external("PyDict_SetItem", 3)
remove: Final = external("PyDict_DelItem", 2)
fetch_error: Final = external("PyErr_Fetch", 3)
restore_error: Final = external("PyErr_Restore", 3)


class Names(Struct):
    """What all Functions have in common: names of attributes, and objects that they are looked up in."""

    runtime: Runtime
    forward: Object
    backward: Object
    setup_context: Object
    jvp: Object
    forward_class: Object
    node: Object
    node_class: Object
    outputs: Object
    needs_input_grad: Object
    saved: Object
    written: Object
    enabled: Object
    dirty: Object
    constant: Object
    saved_for_forward: Object
    leaves: Object
    materialize: Object
    parts: Object
    layouts: Object
    thread: Object  # `tapegrad.modes.thread`
    new_instance: Object
    layout_type: Type
    leaf_type: Type
    no_data: Object


@functools.cache
def names() -> np.ndarray:
    """Return the memory of the `Names`."""
    texts = (
        "forward", "backward", "setup_context", "jvp", "_forward_cls", "_node", "node_class", "outputs",
        "needs_input_grad", "_saved", "_written", "enabled", "_dirty", "_constant", "_saved_for_forward", "_leaves",
        "_materialize", "parts", "layouts",
    )  # fmt: skip
    objects = *map(sys.intern, texts), thread, object.__new__, Layout, Leaf, NO_DATA
    return with_runtime("names of a Function", *objects)  # fields of `Names`


def is_ordinary(runtime: Runtime) -> int:
    """Whether no mode is on that Python has to serve."""
    mode = runtime.mode.bits
    return mode == 0 or mode == WRITES_NOTED


def new_instance(names: Names, kind: Object) -> Object:
    """Return an instance of a class, which is not initialised; 0 if Python raised."""
    args = Array[Object](stack(8))
    args[0] = kind
    return Object(vectorcall(names.new_instance, args, 1, 0))


def pause(names: Names) -> int:
    """Stop recording in this thread, which records; return 0 if Python raised."""
    if set_attribute(names.thread, names.enabled, names.runtime.false) & C_INT != 0:
        return 0
    names.runtime.mode.bits += 1
    return 1


def resume(names: Names) -> None:
    """Let this thread record again, unless the user's code has done so."""
    runtime, error = names.runtime, Array[Object](stack(24))
    fetch_error(error, error.at(1), error.at(2))
    enabled = Object(get_attribute(names.thread, names.enabled))
    if enabled == runtime.false:
        set_attribute(names.thread, names.enabled, runtime.true)
        runtime.mode.bits -= 1
    if enabled != 0:
        decref(enabled)
    restore_error(error[0], error[1], error[2])
