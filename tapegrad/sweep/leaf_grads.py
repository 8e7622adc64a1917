"""Compiled: the targets of a sweep, which are the arrays of the leaves' gradients.

`bind_grads`, `bind_inputs` and `commit_grads` are functions as described in `tapegrad.recording.native`. They serve
leaves without hooks that have no gradient yet, or one whose array has the leaf's layout and can be added to. Python
serves all other leaves.
"""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import call, stack
from tapegrad.recording.native import C_INT, append, decref, incref, integer, new_integer, vectorcall
from tapegrad.recording.objects import LayoutObject, LeafObject, Runtime, TensorObject, new_tensor, plain_layout
from tapegrad.runtime.objects import ALIGNED, WRITEABLE, List, NDArray, Object
from tapegrad.runtime.pool import THRESHOLD
from tapegrad.runtime.structs import Array
from tapegrad.sweep.workspace import BORROWED, FLAG_BITS, WRITTEN, State

USABLE: Final = ALIGNED | WRITEABLE
# In place of a target: Python serves this leaf; Python raised.
UNKNOWN, RAISED = -1, -2


def appended(items: List, value: Object) -> int:
    """Append an object to a list; return 0 if Python raised."""
    return append(items, value) & C_INT == 0


def usable_array(runtime: Runtime, gradient: TensorObject, layout: LayoutObject) -> NDArray:
    """Return the array of a gradient if the sweep can add to it; else 0.

    The array has the layout of the leaf, as the sweep writes a gradient of the leaf's size.
    """
    if gradient == 0 or gradient.type != runtime.tensor_type or gradient.node != runtime.none:
        return NDArray(0)
    array = gradient.data
    if array == 0 or array.type != runtime.array_type or array.flags & USABLE != USABLE:
        return NDArray(0)
    plain = plain_layout(runtime, layout)
    if gradient.layout != plain or plain.contiguous != runtime.true:
        return NDArray(0)
    # If the array, or its memory, has another owner, that may be a graph that saved it: Python must note the write.
    if array.references != 1 or array.data & FLAG_BITS != 0:
        return NDArray(0)
    if array.base != 0 and array.base.type == runtime.array_type:
        return NDArray(0)
    return array


def new_gradient(runtime: Runtime, tensor: TensorObject) -> TensorObject:
    """Return a gradient over a new array of a tensor's layout; 0 if Python raised."""
    layout, data = tensor.layout, tensor.data
    args = Array[Object](stack(16))
    args[0] = layout.shape
    args[1] = layout.dtype
    if integer(layout.nbytes) >= THRESHOLD:
        array = NDArray(vectorcall(runtime.empty_large, args, 2, 0))
    elif data.type == runtime.array_type:
        incref(layout.dtype)  # the function takes this reference over
        array = NDArray(call(runtime.new_array, data.ndim, data.shape, layout.dtype, 0))
    else:  # the data is a NumPy scalar
        array = NDArray(vectorcall(runtime.empty, args, 2, 0))
    if array == 0:
        return TensorObject(0)
    plain = plain_layout(runtime, layout)
    incref(plain)
    incref(runtime.none)
    return new_tensor(runtime, array, plain, runtime.none)


def target_of_tensor(runtime: Runtime, tensor: TensorObject, kept: List, new: List) -> int:
    """Return the array of a tensor's gradient, existing or new, with its flags; or UNKNOWN or RAISED."""
    gradient, layout = TensorObject(tensor.grad), tensor.layout
    if gradient != runtime.none:
        array = usable_array(runtime, gradient, layout)
        if array == 0:
            return UNKNOWN
        return array | BORROWED | WRITTEN if appended(kept, array) else RAISED
    if layout.contiguous != runtime.true:
        return UNKNOWN
    gradient = new_gradient(runtime, tensor)
    if gradient == 0:
        return RAISED
    target = RAISED
    if appended(new, tensor) and appended(new, gradient):
        target = gradient.data | BORROWED
    decref(gradient)
    return target


def target_of(runtime: Runtime, leaf: LeafObject, kept: List, new: List) -> int:
    """Return the array of a leaf's gradient with its flags; 0 if the tensor has died; or UNKNOWN or RAISED.

    A leaf whose tensor has got another node is UNKNOWN too: the tensor may have another shape.
    """
    if leaf.hooks != runtime.none or leaf.post_hooks != runtime.none:
        return UNKNOWN
    tensor = TensorObject(vectorcall(leaf.tensor, 0, 0, 0))
    if tensor == 0:
        return RAISED
    target = 0
    if tensor != runtime.none:
        target = target_of_tensor(runtime, tensor, kept, new) if tensor.node == leaf else UNKNOWN
    decref(tensor)
    return target


def new_none(runtime: Runtime) -> Object:
    """Return None, with a reference."""
    incref(runtime.none)
    return runtime.none


def bind_grads(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Set the targets of the leaves that `find` reached.

    Called as ``bind_grads(kept, new, unknown, acquire, held)``; ``self`` is the array of the workspace's words.

    Parameters
    ----------
    kept : list of numpy.ndarray
        Gets the arrays of existing gradients.
    new : list of Tensor
        Gets the tensors without gradient, each followed by a new gradient.
    unknown : list of int
        Gets the indices of the leaves that Python has to serve.
    acquire : callable
        Takes the lock of the gradients unless somebody holds it; no target is set then. No target is set either if
        there are hooks: a hook may wait for another thread, so a pass with hooks never holds the lock.
    held : list of bool
        Gets whether the lock was taken. In compiled code no signal handler runs between taking and noting.
    """
    state = State(self.data)
    runtime, acquire, held = state.runtime, args[3], List(args[4])
    kept, new, unknown = List(args[0]), List(args[1]), List(args[2])
    if not appended(held, runtime.false):  # before the lock is taken, so that noting needs no memory afterwards
        return 0
    if state.has_hooks:
        return new_none(runtime)
    blocking = Array[Object](stack(8))
    blocking[0] = runtime.false
    is_taken = Object(vectorcall(acquire, blocking, 1, 0))
    if is_taken == 0:
        return 0
    held.items[0] = is_taken
    decref(runtime.false)
    if is_taken == runtime.false:
        return new_none(runtime)
    for index in range(state.n_leaves):
        target = target_of(runtime, LeafObject(state.leaves[index].slot.node), kept, new)
        if target == UNKNOWN:
            number = Object(new_integer(index))
            if number == 0:
                return 0
            is_noted = appended(unknown, number)
            decref(number)
            if not is_noted:
                return 0
        elif target == RAISED:
            return 0
        else:
            state.grads[index] = target
    return new_none(runtime)


def gradient_of_input(runtime: Runtime, leaf: LeafObject) -> TensorObject:
    """Return a new gradient of a leaf; UNKNOWN if Python serves the leaf; 0 if Python raised."""
    if leaf.hooks != runtime.none:
        return TensorObject(UNKNOWN)
    tensor = TensorObject(vectorcall(leaf.tensor, 0, 0, 0))
    if tensor == 0:
        return tensor
    gradient = TensorObject(UNKNOWN)
    if tensor != runtime.none and tensor.node == leaf and tensor.layout.contiguous == runtime.true:
        gradient = new_gradient(runtime, tensor)
    decref(tensor)
    return gradient


def bind_inputs(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Set the targets of the leaves that `find` reached to new gradients, if they are among the inputs.

    Called as ``bind_inputs(leaves, results)``; ``self`` is the array of the workspace's words.

    Parameters
    ----------
    leaves : list of Leaf
        The inputs.
    results : list of None
        As long as `leaves`; the gradients replace its items.

    Returns
    -------
    int
        How many of the inputs were found; UNKNOWN if Python has to serve one of them, or if there are hooks.
    """
    state = State(self.data)
    runtime, inputs, results, n_bound = state.runtime, List(args[0]), List(args[1]), 0
    if state.has_hooks:
        return new_integer(UNKNOWN)
    for leaf_index in range(state.n_leaves):
        leaf = state.leaves[leaf_index].slot.node
        gradient = TensorObject(0)
        for index in range(inputs.length):
            if inputs.items[index] == leaf:
                if gradient == 0:
                    gradient = gradient_of_input(runtime, LeafObject(leaf))
                    if gradient == 0:
                        return 0
                    if gradient == UNKNOWN:
                        return new_integer(UNKNOWN)
                else:
                    incref(gradient)
                before = results.items[index]
                results.items[index] = gradient
                decref(before)
                n_bound += 1
        state.grads[leaf_index] = gradient.data | BORROWED if gradient != 0 else 0
    return new_integer(n_bound)


def commit_grads(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Give gradients to tensors that have none: ``commit_grads(new)``, in pairs as `bind_grads` appended them.

    ``self`` is the array of the workspace's words. Return how many items were used. The first tensor that has got a
    gradient meanwhile, and those after it, are left to Python.
    """
    runtime, new = State(self.data).runtime, List(args[0])
    index = 0
    while index < new.length:
        tensor, gradient = TensorObject(new.items[index]), new.items[index + 1]
        if tensor.grad != runtime.none:
            break
        incref(gradient)
        tensor.grad = gradient
        decref(runtime.none)
        index += 2
    return new_integer(index)
