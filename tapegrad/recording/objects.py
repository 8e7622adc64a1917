"""The library's objects as structs, and the `Runtime`: the objects that all compiled functions need."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from typing import Final

import numpy as np

from tapegrad import modes
from tapegrad.recording.marking import Marking, mark
from tapegrad.recording.native import decref, incref, keep_forever, new_object
from tapegrad.recording.plan import Plan
from tapegrad.recording.serving import Serving
from tapegrad.runtime import pool
from tapegrad.runtime.memory import watch, watch_forever
from tapegrad.runtime.objects import List, NDArray, Object, Tuple, Type, new_array_function
from tapegrad.runtime.structs import WORD, Array, Struct, sizeof, slot
from tapegrad.tape import versions
from tapegrad.tape.entries import Leaf, Page, Recorder, recorder
from tapegrad.tape.layout import FLOAT, INTEGER, InferenceLayout, Layout, layout_of
from tapegrad.tape.views import UNRECORDED, renewed
from tapegrad.tensor import Tensor, from_array


class TensorObject(Object, of=Tensor):
    """A tensor."""

    data: NDArray = slot("_data")  # an array, or a scalar object
    layout: LayoutObject = slot("_layout")
    node: Object = slot("_node")  # None, the list of an entry, or a `Leaf`
    grad: Object = slot("_grad")
    base: TensorObject = slot("_viewed")  # 0 if the tensor is no view
    part_of: Object = slot("_part_of")  # 0 if it is no view of a part


class LayoutObject(Object, of=Layout):
    """A layout."""

    plain: LayoutObject = slot("_plain")  # None if the layout itself is plain
    tracked: Object = slot("_tracked")  # None, or a weak reference to the tracked form
    inference: LayoutObject = slot("_inference")  # 0 until a result in inference mode has it
    shape: Object = slot("shape")
    dtype: Object = slot("dtype")
    contiguous: Object = slot("contiguous")
    floating: Object = slot("floating")
    nbytes: Object = slot("nbytes")
    inline: Object = slot("inline")
    weak: Object = slot("weak")


class MarkingObject(Object, of=Marking):
    """The interceptor of inference mode."""

    outer: Object = slot("outer")


class ServingObject(Object, of=Serving):
    """An interceptor that may serve calls."""

    call_traced: Object = slot("call_traced")  # None, or a function


class LeafObject(Object, of=Leaf):
    """The node of a leaf."""

    number: Object = slot("slot")  # the slot, as a Python integer
    page: PageObject = slot("page")
    tensor: Object = slot("tensor")  # a weak reference
    hooks: Object = slot("hooks")
    post_hooks: Object = slot("post_hooks")


class PlanObject(Object, of=Plan):
    """A plan; its words stand elsewhere (`tapegrad.tape.structs.PlanFields`)."""

    address: Object = slot("address")  # of its words
    op: Object = slot("op")
    name: Object = slot("name")
    layouts: Tuple = slot("layouts")
    attrs: Object = slot("attrs")
    rule_calls: Tuple = slot("rule_calls")  # empty until a rule is called


class PageObject(Object, of=Page):
    """A page of the tape."""

    free: List = slot("free")


class RecorderObject(Object, of=Recorder):
    """The end of the tape."""

    page: PageObject = slot("page")


class Mode(Struct):
    """The mode word: see `tapegrad.modes`."""

    bits: int


class Runtime(Struct):
    """The objects that all compiled functions need; they live forever."""

    mode: Mode
    # Classes.
    tensor_type: Type
    array_type: Type
    float_type: Type
    int_type: Type
    float64_type: Type
    list_type: Type
    tuple_type: Type
    slice_type: Type
    index_error: Type
    marking_type: Type
    serving_type: Type
    inference_layout_type: Type
    # Constants.
    none: Object
    true: Object
    false: Object
    unrecorded: TensorObject  # see `tapegrad.tape.views`
    # Layouts of numbers.
    float_layout: LayoutObject
    int_layout: LayoutObject
    float64_layout: LayoutObject
    # The end of the tape, and functions of Python and NumPy.
    recorder: RecorderObject
    next_page: Object
    is_enabled_here: Object
    interceptor_here: Object
    mark: Object
    renew_view: Object
    layout_of_array: Object
    copy_array: Object
    empty: Object
    empty_large: Object
    new_array: int  # the address of PyArray_Empty
    # Writes in place: `tapegrad.tape.versions`.
    clock: Array[int]
    storages: Object
    new_storage: Object
    numbers: Object
    note_write: Object
    exception: Object


UNRECORDED.append(from_array(np.zeros(0)))

_OBJECTS: Final[Mapping[str, object]] = {
    "tensor_type": Tensor,
    "array_type": np.ndarray,
    "float_type": float,
    "int_type": int,
    "float64_type": np.float64,
    "list_type": list,
    "tuple_type": tuple,
    "slice_type": slice,
    "index_error": IndexError,
    "marking_type": Marking,
    "serving_type": Serving,
    "inference_layout_type": InferenceLayout,
    "none": None,
    "true": True,
    "false": False,
    "unrecorded": UNRECORDED[0],
    "float_layout": FLOAT,
    "int_layout": INTEGER,
    "float64_layout": layout_of(np.float64(0)),
    "recorder": recorder,
    "next_page": recorder.turn,
    "is_enabled_here": modes.is_enabled_here,
    "interceptor_here": modes.interceptor_here,
    "mark": mark,
    "renew_view": renewed,
    "layout_of_array": layout_of,
    "copy_array": np.ndarray.copy,
    "empty": np.empty,
    "empty_large": pool.empty,
    "storages": versions.storages,
    "new_storage": versions.new_storage,
    "numbers": versions.numbers,
    "note_write": versions.note,
    "exception": Exception,
}


@functools.cache
def runtime() -> np.ndarray:
    """Return the memory of the `Runtime`."""
    words = watch(np.zeros(sizeof(Runtime) // WORD, dtype=np.int64), "the objects that all functions need")
    words[Runtime.word("mode")] = ctypes.addressof(modes.mode)
    words[Runtime.word("new_array")] = new_array_function()
    words[Runtime.word("clock")] = versions.clock.buffer_info()[0]
    for name, value in _OBJECTS.items():
        words[Runtime.word(name)] = id(value)
    watch_forever(ctypes.addressof(modes.mode), ctypes.sizeof(modes.mode), "the mode")
    keep_forever(words)
    return words


def with_runtime(title: str, *fields: object) -> np.ndarray:
    """Return the memory of a struct whose first field is the `Runtime`.

    Parameters
    ----------
    title : str
        For messages of `tapegrad.runtime.memory`.
    *fields : int or object
        The other fields. An object's address is written, and the object lives forever.
    """
    keep_forever(fields)
    words = [runtime().ctypes.data, *(field if isinstance(field, int) else id(field) for field in fields)]
    return watch(np.array(words, dtype=np.int64), title)


def is_tensor(runtime: Runtime, kind: Type) -> int:
    """Whether a class is Tensor, or derived from it."""
    return 1 if kind == runtime.tensor_type or kind.base == runtime.tensor_type else 0


def plain_layout(runtime: Runtime, layout: LayoutObject) -> LayoutObject:
    """Return the plain form of a layout (`Layout.plain`)."""
    return layout if layout.plain == runtime.none else layout.plain


def new_tensor(runtime: Runtime, data: NDArray, layout: LayoutObject, node: Object) -> TensorObject:
    """Return a tensor without gradient; 0 if Python raised. It takes over a reference to each argument."""
    tensor = TensorObject(new_object(runtime.tensor_type, 0))
    if tensor == 0:
        decref(data)
        decref(layout)
        decref(node)
        return tensor
    incref(runtime.none)
    tensor.data = data
    tensor.layout = layout
    tensor.node = node
    tensor.grad = runtime.none
    return tensor
