"""Variants: machine code for arguments of certain classes, shapes and dtypes, as words that compiled code reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.program.templates import (
    MEMORY_ON_STACK,
    WORDS_ON_STACK,
    Arguments,
    Changes,
    GradOf,
    Output,
    Pieces,
    build,
    change_words,
    guard_words,
    output,
    room,
)
from tapegrad.recording.objects import LayoutObject, PlanObject, Runtime
from tapegrad.recording.plan import Plan
from tapegrad.runtime.objects import List, NDArray, Object, Tuple, Type
from tapegrad.runtime.structs import WORD, Array, Struct, Table, sizeof, slot
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

__all__ = ["Dispatch", "Variant"]

# Flags of a variant.
RELEASES_GIL: Final = 1  # other threads may have the GIL while its code runs
MAY_FAIL: Final = 2  # its code returns what `tapegrad.program.stopping` says
_ALIGNMENT: Final = 64
_ALL: Final = object()  # outputs, as the result: None is one of its own


class CheckFields(Struct):
    """What a value must be. Values are the arguments, then tensors from outside, then the items of containers."""

    value: int
    kind: int  # see `tapegrad.program.templates`
    object: Object  # the constant, or the class of the container
    count: int  # of items, which are appended to the values
    keys: Tuple  # of a dict or a record


class InputFields(Struct):
    """A value that is an input."""

    value: int
    type: Type  # its class: Tensor, arrays, or a number's
    is_tensor: int
    is_integer: int  # a Python integer or truth value
    scalar: Type  # the class of a number that may stand in place of an array, its own or a tensor's; 0: none
    layout: LayoutObject  # of a tensor over an array
    inline: LayoutObject  # of a tensor over a scalar; the same again if there is none
    dtype: Object
    ndim: int
    shape: Array[int]


class OutputFields(Struct):
    """One output of machine code."""

    dtype: Object
    ndim: int  # 0: a number, which becomes a scalar
    shape: Array[int]
    large: Array[Object]  # the arguments of `tapegrad.runtime.pool.empty`; 0 if the array is small
    kept: List  # the last arrays of this output, if they are small: what nobody else has is given out again; 0: none
    offset: int  # of a number in the memory of a call
    layout: LayoutObject  # 0 if it does not become a tensor
    plan: PlanObject  # of the entry of this result, which is the call's, or one among several; 0: none


class BuildFields(Struct):
    """How the result is built from outputs: each instruction takes objects from a stack, and puts one there."""

    kind: int  # see `tapegrad.program.templates`
    count: int  # of objects to take; the number of an output
    object: Object  # a constant, the class of a container, or a function of a tuple
    keys: Tuple  # of a dict


class Room(Struct):
    """Memory for a call for which the stack has no room."""

    idle: List  # what calls have used; 0 if the pool keeps it
    arguments: Array[Object]  # of `tapegrad.runtime.pool.empty`; 0 if the stack has room


class WriteFields(Struct):
    """An output that is copied to an input."""

    input: int
    output: int


class GradFields(Struct):
    """A tensor that gets an output as its gradient."""

    value: int
    output: int  # negative: the tensor has no gradient then


class ConditionFields(Struct):
    """A tensor that has to have a gradient before, or must have none."""

    value: int
    has_grad: int


class ChangeFields(Struct):
    """What a call changes, and what is asked before."""

    before: Object  # called before inputs are read; 0: nothing
    undo: Object  # called if the variant does not serve after all
    after: Object  # called in the end
    sizes: Array[int]  # of inputs, in bytes
    n_writes: int
    writes: Table[WriteFields]
    n_grads: int
    grads: Table[GradFields]
    n_conditions: int
    conditions: Table[ConditionFields]


class VariantFields(Struct):
    """A variant. Its lists stand behind it in the same memory."""

    code: int
    flags: int
    stages: Tuple  # the number of blocks of each; 0: the code has no stages
    stops: Array[int]  # the addresses of `tapegrad.program.stopping.StopFields`
    n_arguments: int  # without keywords
    keywords: Tuple  # the names of those that follow; 0: none
    n_captured: int
    captured: Array[Object]
    n_values: int  # 0 if all inputs are arguments
    n_checks: int
    checks: Table[CheckFields]
    n_inputs: int
    inputs: Table[InputFields]
    n_outputs: int
    outputs: Table[OutputFields]
    n_builds: int
    builds: Table[BuildFields]
    n_guards: int
    guards: Array[int]  # the offset of each guard's value in the memory of a call
    guard_words: int  # of all guards; their values stand at the beginning of the memory of a call
    outcomes: Array[int]  # `guard_words`
    scratch: int  # the offset of scratch memory in the memory of a call
    changes: ChangeFields  # 0: none
    plan: PlanObject  # of the entry that a call is recorded by; 0: none
    n_operands: int  # of that entry: the first inputs
    words: Room  # for addresses and references during a call
    memory: Room  # for what machine code writes besides arrays


class DispatchFields(Struct):
    """What `run` needs besides a `Dispatch`."""

    runtime: Runtime
    str_type: Type
    dict_type: Type
    # Addresses of functions of NumPy and CPython.
    new_scalar: int  # PyArray_Scalar
    next_item: int  # PyDict_Next
    are_equal: int  # PyObject_RichCompareBool
    new_dict: int  # PyDict_New
    set_item: int  # PyDict_SetItem
    dict_size: int  # PyDict_Size
    run_stages: Object
    exception: Type  # Exception


class Variant:
    """Machine code, and the arguments that it serves.

    Parameters
    ----------
    code : int
        The address of ``void f(char **inputs, char **outputs, char *scratch)``. The outputs are followed by the
        guards.
    arguments : sequence
        The arguments, with an `Input` in place of each input, inside of tuples, named tuples, lists, dicts and records
        too.
        All other leaves must be the same object again, or an equal integer or string.
    outputs : sequence of Layout
        Outputs without dimensions become scalars of NumPy.
    result : object
        What is returned, with an `Output` in place of each output; default the tuple of all. Other leaves are
        returned as they are.
    keywords : mapping
        Arguments with names, in their order.
    captured : sequence of (Tensor or GradOf, Layout)
        Further inputs: tensors, as they are when the function is called, if they have these layouts.
    guards : sequence of array
        The outcome of each guard. If a value has other bits, the results are dropped and the variant does not serve.
    scratch : int
        Bytes of memory, aligned to 64, that the code may use during a call.
    as_tensors : bool
        Whether outputs become tensors.
    changes : Changes, optional
        What a call changes. Outputs that become gradients are tensors.
    plan : Plan, optional
        Of the entry by which a call is recorded. Its operands are the first inputs, and what it keeps is their data.
    parts : mapping of int to Plan
        By the numbers of outputs that want a gradient: that plan, if there is one such output, else the plan of an
        entry of its own.
    is_long : bool
        Whether other threads of Python may run meanwhile. To let them takes 30 ns.
    stages : sequence of int
        Where the library's threads share the work, the number of blocks of each stage. The code is then
        ``void f(char **inputs, char **outputs, char *scratch, int64_t stage, int64_t first, int64_t end)``. It is
        called for every range of blocks of stage 0, for some of them at the same time; then for stage 1, and so on.
        Starting them takes 5 µs, and 30 more for other threads.
    stops : sequence of array, optional
        The words of `tapegrad.program.stopping.StopFields` for operations that the code does not compute itself. The
        code is then ``int64_t f(char **inputs, char **outputs, char *scratch, CallFields *call, char **stops)``, and
        what it returns says whether it failed.

    Raises
    ------
    TypeError
        If a container is of another kind.
    """

    __slots__ = ("data", "held")
    data: np.ndarray  # `VariantFields`
    held: tuple[Any, ...]

    def __init__(
        self,
        code: int,
        arguments: Sequence[Any],
        outputs: Sequence[Layout],
        *,
        result: Any = _ALL,
        keywords: Mapping[str, Any] | None = None,
        captured: Sequence[tuple[Tensor | GradOf, Layout]] = (),
        guards: Sequence[np.ndarray] = (),
        scratch: int = 0,
        as_tensors: bool = False,
        changes: Changes | None = None,
        plan: Plan | None = None,
        parts: Mapping[int, Plan] = {},  # nobody writes to it
        is_long: bool = False,
        stages: Sequence[int] = (),
        stops: Sequence[np.ndarray] | None = None,
    ) -> None:
        keywords = keywords or {}
        result = tuple(map(Output, range(len(outputs)))) if result is _ALL else result
        pieces = Pieces(sizeof(VariantFields) // WORD)
        read = Arguments(pieces, arguments, keywords, captured)
        builds = build(pieces, result)
        offsets, outcomes = guard_words(guards)
        offset, rows = WORD * len(outcomes), []
        gradients = {number for _, number in changes.grads} if changes is not None else ()
        for number, layout in enumerate(outputs):
            row = output(pieces, layout, offset, as_tensors or number in gradients)
            rows.append([*row, pieces.hold(parts[number]) if number in parts else 0])
            offset += 0 if layout.ndim else max(-(-layout.nbytes // WORD) * WORD, WORD)
        start = -(-offset // _ALIGNMENT) * _ALIGNMENT
        n_writes = len(changes.writes) if changes is not None else 0
        operands = 2 * len(plan.layouts) + n_writes if plan is not None else 0
        n_words = operands + read.n_values + 3 * len(read.inputs) + 2 * len(outputs) + len(guards) + len(builds)
        fields = {
            "code": code,
            "flags": RELEASES_GIL * is_long | MAY_FAIL * (stops is not None),
            "stages": pieces.hold(tuple(stages)) if stages else 0,
            "stops": pieces.add([own.ctypes.data for own in stops or ()]),
            "n_arguments": len(arguments),
            "keywords": pieces.hold(tuple(keywords)) if keywords else 0,
            "n_captured": len(captured),
            "captured": pieces.add(
                [pieces.hold(own.tensor if isinstance(own, GradOf) else own) for own, _ in captured]
            ),
            "n_values": read.n_values,
            "n_checks": len(read.checks),
            "checks": pieces.table(read.checks),
            "n_inputs": len(read.inputs),
            "inputs": pieces.table(read.inputs),
            "n_outputs": len(outputs),
            "outputs": pieces.table(rows),
            "n_builds": len(builds),
            "builds": pieces.table(builds),
            "n_guards": len(guards),
            "guards": pieces.add(offsets),
            "guard_words": len(outcomes),
            "outcomes": pieces.add(outcomes),
            "scratch": start,
            "changes": 0 if changes is None else change_words(pieces, changes),
            "plan": 0 if plan is None else pieces.hold(plan),
            "n_operands": 0 if plan is None else len(plan.layouts),
            "words": room(pieces, WORD * n_words, WORDS_ON_STACK),
            # Memory of the heap can be kept where a stop's operand is.
            "memory": room(pieces, start + scratch, MEMORY_ON_STACK if not stops else -1),
        }
        for name, word in fields.items():
            pieces.words[VariantFields.word(name)] = word
        self.data, self.held = pieces.placed(), (*pieces.held, stops)


class Dispatch:
    """The ``self`` of an entry: its variants, and what is called if none serves.

    Attributes
    ----------
    variants : tuple of Variant
        Those that are tried, in this order. Replace the tuple to change them: calls under way keep the old one.
    fallback : callable
        Called with all arguments of a call that no variant serves.
    """

    __slots__ = ("__weakref__", "data", "fallback", "variants")

    def __init__(self, fallback: Callable[..., Any], data: np.ndarray) -> None:
        self.fallback, self.data = fallback, data  # the memory of `DispatchFields`
        self.variants: tuple[Variant, ...] = ()


class VariantObject(Object, of=Variant):
    """A variant."""

    data: NDArray = slot("data")


class DispatchObject(Object, of=Dispatch):
    """The ``self`` of an entry."""

    fallback: Object = slot("fallback")
    data: NDArray = slot("data")
    variants: Tuple = slot("variants")
