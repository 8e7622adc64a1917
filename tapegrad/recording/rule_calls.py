"""Compiled: one call of a rule, that is its arguments as tensors in their old place in the graph, and the call itself.

What a rule asks for is described once for a plan, by `tapegrad.ops.table.rules`. `call` is a function as
`tapegrad.recording.native` says.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from tapegrad.compiler.intrinsics import stack
from tapegrad.recording.native import decref, incref, load, vectorcall
from tapegrad.recording.objects import LayoutObject, Runtime, new_tensor, plain_layout, runtime
from tapegrad.runtime.objects import List, NDArray, Object
from tapegrad.runtime.structs import Array, Struct, Table, embedded

#: The most arguments of a rule.
MOST_ARGUMENTS: Final = 32
# Kinds of arguments: the cotangent; a residual as a tensor, or as it is; which operands' cotangents are wanted; a value
# that never changes; what a Python function makes of the node, and of whether residuals are attached to the graph.
COTANGENT, TENSOR, RESIDUAL, WANTED, VALUE, MADE = range(6)
THE_NODE: Final = -1  # in place of an operand's node: that of the entry, for its result


class RuleArgument(Struct):
    """Where an argument of a rule is found."""

    kind: int
    place: int  # of a residual: in the node
    parent: int  # of a residual that is a tensor: where the node has the tensor's node
    value: Object  # a value, what makes one, or the layout of a tensor


class RuleCall(Struct):
    """A rule, what it is called with, and the plain layout that its operand's cotangent is to have."""

    rule: Object
    layout: LayoutObject
    count: int
    arguments: Table[RuleArgument] = embedded()


def residual(runtime: Runtime, argument: RuleArgument, node: List, attached: int) -> Object:
    """Return a residual as a tensor, in its old place in the graph if it is attached; 0 if Python raised."""
    layout, parent = LayoutObject(argument.value), runtime.none
    if attached == 0:
        layout = plain_layout(runtime, layout)
    elif argument.parent == THE_NODE:
        parent = node
    else:
        parent = node.items[argument.parent]
    data = NDArray(node.items[argument.place])
    incref(data)
    incref(layout)
    incref(parent)
    return new_tensor(runtime, data, layout, parent)


def argument_of(
    runtime: Runtime, argument: RuleArgument, node: List, ct: Object, wanted: Object, attached: Object
) -> Object:
    """Return an argument of a rule, with its reference; 0 if Python raised."""
    kind = argument.kind
    if kind == TENSOR:
        return residual(runtime, argument, node, 1 if attached == runtime.true else 0)
    if kind == MADE:
        given = Array[Object](stack(16))
        given[0] = node
        given[1] = attached
        return Object(vectorcall(argument.value, given, 2, 0))
    value = ct
    if kind == RESIDUAL:
        value = node.items[argument.place]
    elif kind == WANTED:
        value = wanted
    elif kind == VALUE:
        value = argument.value
    incref(value)
    return value


def call_rule(runtime: Runtime, rule: RuleCall, node: List, ct: Object, wanted: Object, attached: Object) -> Object:
    """Call a rule, and return what it returns; 0 if Python raised."""
    values = Array[Object](stack(256))
    count = 0
    while count < rule.count:
        value = argument_of(runtime, rule.arguments[count], node, ct, wanted, attached)
        if value == 0:
            break
        values[count] = value
        count += 1
    result = Object(0)
    if count == rule.count:
        result = Object(vectorcall(rule.rule, values, count, 0))
    for number in range(count):
        decref(values[number])
    return result


def call(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Return what a rule returns: ``call(rule, node, ct, wanted, attached)``.

    Parameters
    ----------
    rule : numpy.ndarray
        The words of a `RuleCall`.
    node : list
        Of the entry.
    ct : Tensor, or tuple of Tensor
    wanted : tuple of bool, or None
        For which operands a rule that serves all of them is to return cotangents.
    attached : bool
        Whether residuals stand in the graph.
    """
    return call_rule(Runtime(self.data), RuleCall(NDArray(args[0]).data), List(args[1]), args[2], args[3], args[4])


class _Late:
    """`call`, loaded when it is first needed."""

    @functools.cached_property
    def call(self) -> Callable[..., Any]:
        return load(call, runtime())


late: Final = _Late()
