"""Compiled: a call of a rule, with residuals as tensors in their old place in the graph.

`tapegrad.ops.table.rules` describes, once for a plan, which arguments a rule takes. `call` is a function as described
in `tapegrad.recording.native`.
"""

from __future__ import annotations

from typing import Any, Final

from tapegrad.compiler.intrinsics import stack
from tapegrad.recording.native import Lazy, decref, incref, load, vectorcall
from tapegrad.recording.objects import LayoutObject, Runtime, new_tensor, plain_layout, runtime
from tapegrad.runtime.objects import List, NDArray, Object
from tapegrad.runtime.structs import Array, Struct, Table, embedded

#: The most arguments of a rule.
MOST_ARGUMENTS: Final = 32
# Kinds of arguments: the cotangent; a residual as a tensor; a residual as it is; the tuple that says which operands'
# cotangents are wanted; a constant; the result of a Python function of the node and of `attached`. Such an argument may
# have a layout too: then it is a residual as a tensor, and the function makes the one that is attached to the graph.
COTANGENT, TENSOR, RESIDUAL, WANTED, VALUE, MADE = range(6)
THE_NODE: Final = -1  # in place of an index: the residual is the entry's own result, so its node is the entry's


class RuleArgument(Struct):
    """An argument of a rule: how to get it from the node."""

    kind: int
    place: int  # of a residual: its index in the node
    parent: int  # of a residual that becomes a tensor: the index of the tensor's own node
    layout: LayoutObject  # of a residual that becomes a tensor; otherwise 0
    value: Object  # the constant, or the Python function


class RuleCall(Struct):
    """A rule and its arguments."""

    rule: Object
    layout: LayoutObject  # plain: what the operand's cotangent must have
    count: int  # number of arguments
    arguments: Table[RuleArgument] = embedded()


def residual(runtime: Runtime, argument: RuleArgument, node: List, attached: int) -> Object:
    """Return a residual as a tensor, which gets its old node if it is attached to the graph; 0 if Python raised."""
    layout, parent = argument.layout, runtime.none
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
    """Return an argument of a rule, with a reference; 0 if Python raised."""
    kind, is_attached = argument.kind, 1 if attached == runtime.true else 0
    if kind == TENSOR or (kind == MADE and is_attached == 0 and argument.layout != 0):
        return residual(runtime, argument, node, is_attached)
    if kind == MADE:
        args = Array[Object](stack(16))
        args[0] = node
        args[1] = attached
        return Object(vectorcall(argument.value, args, 2, 0))
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
    """Call a rule and return its result; 0 if Python raised."""
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
    """Call a rule so that the call is recorded: ``call(rule, node, ct, wanted)``.

    Parameters
    ----------
    rule : numpy.ndarray
        The words of a `RuleCall`.
    node : list
        The entry's node.
    ct : Tensor, or tuple of Tensor
    wanted : tuple of bool, or None
        For a rule that serves all operands: whose cotangents are wanted.
    """
    runtime = Runtime(self.data)
    return call_rule(runtime, RuleCall(NDArray(args[0]).data), List(args[1]), args[2], args[3], runtime.true)


lazy: Final = Lazy[Any](call=lambda: load(call, runtime()))
