"""A call of a function whose derivatives are wanted: what it gets for its arguments, and gradients of its results.

A function may be called inside another one that is differentiated too. So it gets fresh tensors. An argument that
requires grad is passed as a recorded alias, so that the result belongs to the graph around; any other is passed as a
leaf that nobody else knows. What depends on leaves of this call alone leaves it without a graph. A NumPy array or a
number becomes a leaf as well, and its gradient an array.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Final, TypeVar, cast

import numpy as np

from tapegrad import modes
from tapegrad.autograd.backward import grad
from tapegrad.autograd.direct import depends_only_on, record_to_own_leaves, run_to_inputs, run_to_own_leaves
from tapegrad.autograd.roots import zeros_of
from tapegrad.func.trees import flatten, is_container, rebuild, tree_map
from tapegrad.modes import enable_grad
from tapegrad.ops.creation import as_tensor
from tapegrad.ops.table.gateway import constant
from tapegrad.tape.entries import Leaf, private_leaf
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

Argnums = int | tuple[int, ...]
F = TypeVar("F", bound=Callable[..., Any])
_NO_ARRAYS: Final = [False]  # of a call of which one tensor is differentiated: a flag for each input


def chosen_arguments(argnums: Argnums, count: int) -> tuple[int, ...]:
    """Return the positions of the arguments that are differentiated.

    Raises
    ------
    RuntimeError
        If one is no position, is named twice, or none is named.
    """
    if argnums.__class__ is int and 0 <= argnums < count:
        return (argnums,)
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for number in numbers:
        if not isinstance(number, int):
            raise RuntimeError(f"argnum must be int, got: {type(number)}")
        if not -count <= number < count:
            raise RuntimeError(f"Got argnum={number}, but only {count} positional inputs")
    positions = tuple(number % count for number in numbers)
    if len(set(positions)) < len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {positions}")
    return positions


class Level:
    """A call of a function, of which some arguments are differentiated.

    Parameters
    ----------
    args : tuple
        The arguments; each may be a tree.
    argnums : int or tuple of int, optional
        Which are differentiated; by default all.

    Attributes
    ----------
    args : list
        What the function gets.
    inputs : list of Tensor
        The leaves of the differentiated trees, as the function gets them.
    cts : list of Tensor
        Cotangents that are differentiated, to compute tangents: leaves of this call, too.
    records : bool
        Whether the graph around is recorded.
    """

    __slots__ = (
        "argnums", "args", "cts", "has_containers", "inputs", "is_connected", "of_arrays", "records", "trees",
    )  # fmt: skip

    def __init__(self, args: Sequence[Any], argnums: Argnums | None = None) -> None:
        self.argnums, self.records, self.is_connected = argnums, modes.is_grad_enabled(), False
        self.args = list(args)
        self.inputs: list[Tensor] = []
        self.cts: list[Tensor] = []
        if argnums == 0 and args and args[0].__class__ is Tensor:  # nearly every call
            self.trees, self.of_arrays = args[:1], _NO_ARRAYS
            self.args[0] = fresh = self._fresh_tensor(args[0])
            self.inputs.append(fresh)
            return
        self.trees, self.of_arrays, self.has_containers = [], [], False
        for position in range(len(args)) if argnums is None else chosen_arguments(argnums, len(args)):
            tree = args[position]
            self.trees.append(tree)
            if is_container(tree):
                leaves = [self._fresh(leaf) for leaf in flatten(tree)]
                self.args[position] = rebuild(tree, leaves)
                self.inputs += leaves
                self.has_containers = True
            else:
                self.args[position] = fresh = self._fresh(tree)
                self.inputs.append(fresh)

    @property
    def has_arrays(self) -> bool:
        """Whether users gave arrays only, and so get arrays."""
        return bool(self.inputs) and False not in self.of_arrays

    def _fresh(self, value: Any) -> Tensor:
        is_tensor = isinstance(value, Tensor)
        self.of_arrays.append(not is_tensor)
        if is_tensor:
            return self._fresh_tensor(value)
        if not isinstance(value, (np.ndarray, np.generic, int, float, complex)):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
        return private_leaf(as_tensor(value))

    def _fresh_tensor(self, value: Tensor) -> Tensor:
        if self.records and value.requires_grad:
            self.is_connected = True
            alias: Tensor = value.view_as(value)
            return alias
        layout = value._layout
        is_usual = layout.__class__ is Layout and value.__class__ is Tensor and not layout.inline
        is_usual = is_usual and not modes.mode.value & modes.INTERCEPTORS  # a trace is told of what it finds outside
        leaf = constant(value._data, layout.plain) if is_usual else value.detach()  # the same, for less
        return private_leaf(leaf)

    def call(self, function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        """Call the function, and record it."""
        return recorded(function, *self.args, **kwargs)

    def call_with_aux(self, function: Callable[..., Any], kwargs: dict[str, Any], has_aux: bool, api: str) -> Any:
        """Call the function, and return what is differentiated, and what the function returns besides."""
        output = self.call(function, kwargs)
        if not has_aux:
            return output, None
        if not isinstance(output, tuple) or len(output) != 2:
            raise RuntimeError(f"{api}: output of function f should be a tuple: (output, aux) if has_aux is True")
        return output[0], tree_map(self.result, output[1])

    # --- gradients ---------------------------------------------------------------------------------------------------

    def gradients(self, output: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return the gradients of a scalar, and the scalar, both as results of this call."""
        if not self.is_connected:
            gradients = run_to_own_leaves(output, [tensor._node for tensor in self.inputs])  # type: ignore[misc]
            if gradients is not None:
                return self.filled(gradients), without_graph(output)
        if output.is_traced and self.records and self.is_closed(output):
            return self.pull([output], [None], False), without_graph(output)
        return self.pull([output], [None], self.records), self.cut(output)

    def recorded_gradients(self, output: Tensor, ct: Tensor | None = None) -> tuple[Sequence[Tensor | None], bool]:
        """Return the gradients of an output, recorded, and whether the output is closed: see `is_closed`."""
        if not output.requires_grad:
            return [None] * len(self.inputs), True
        if not self.is_connected:  # then one pass tells both
            leaves: Any = [tensor._node for tensor in self.inputs]
            gradients = recorded(record_to_own_leaves, output, ct, leaves)
            if gradients is not None:
                return gradients, True
        gradients = recorded(grad, output, self.inputs, ct, create_graph=True, allow_unused=True)
        return gradients, self.is_closed(output)

    def pull(self, outputs: Sequence[Tensor], cts: Sequence[Tensor | None], create_graph: bool) -> list[Tensor]:
        """Return the gradients of outputs with respect to the inputs, for cotangents; the graph is kept."""
        if len(outputs) == 1 and not create_graph:  # nearly every call
            found = run_to_inputs(outputs[0], cts[0], self.inputs, True, False, True)
            if found is not None:
                return self.filled(found) if [value for value in found if value is None] else found
        pairs = [(output, ct) for output, ct in zip(outputs, cts, strict=True) if output.requires_grad]
        gradients: Sequence[Tensor | None] = [None] * len(self.inputs)
        if pairs:
            roots, seeds = pairs[0] if len(pairs) == 1 else zip(*pairs, strict=True)
            gradients = grad(roots, self.inputs, seeds, retain_graph=True, create_graph=create_graph, allow_unused=True)
        return [self.cut(tensor) for tensor in self.filled(gradients)]

    def filled(self, gradients: Sequence[Tensor | None]) -> list[Tensor]:
        """Return gradients, with zeros for inputs that have none."""
        return [zeros_of(x) if value is None else value for x, value in zip(self.inputs, gradients, strict=True)]

    # --- results -----------------------------------------------------------------------------------------------------

    def is_closed(self, tensor: Tensor) -> bool:
        """Whether a tensor depends on no leaf but those of this call, so that nobody can differentiate it later."""
        node = tensor._node
        if node is None or not self.records:
            return True
        slots = {x._node.slot for x in (*self.inputs, *self.cts) if isinstance(x._node, Leaf)}
        return node.slot in slots if isinstance(node, Leaf) else depends_only_on(node, slots)

    def cut(self, tensor: Tensor) -> Tensor:
        """Return a tensor as it leaves this call: without a graph, unless it belongs to the graph around."""
        if tensor._node is None or not self.is_closed(tensor):
            return tensor
        return without_graph(tensor)

    def result(self, value: Any) -> Any:
        """Return a leaf of a result as users get it: an array if they gave arrays only."""
        if not isinstance(value, Tensor):
            return value
        tensor = self.cut(value)
        return array_of(tensor) if self.has_arrays else tensor

    def results(self, outputs: Sequence[Tensor], are_closed: bool = False) -> tuple[list[Any], bool]:
        """Return outputs as users get them, and whether all of them are closed; it may be known that they are."""
        values, all_closed = [], True
        has_arrays = self.has_arrays
        for output in outputs:
            is_closed = are_closed or self.is_closed(output)
            tensor = without_graph(output) if is_closed else output
            values.append(array_of(tensor) if has_arrays else tensor)
            all_closed = all_closed and is_closed
        return values, all_closed

    def as_arguments(self, values: Sequence[Tensor]) -> Any:
        """Return a value for each input in the trees of the arguments: one tree, or a tuple of them."""
        if self.of_arrays is _NO_ARRAYS:
            return values[0]
        leaves: Sequence[Any] = values
        if True in self.of_arrays:
            leaves = [
                array_of(value) if is_array else value for value, is_array in zip(values, self.of_arrays, strict=True)
            ]
        if isinstance(self.argnums, int):
            return rebuild(self.trees[0], leaves) if self.has_containers else leaves[0]
        if not self.has_containers:
            return tuple(leaves)
        return rebuild(tuple(self.trees), leaves)


def of_compiled(transform: F) -> F:
    """Let what a transform makes of a compiled function be compiled as a whole, derivatives included."""

    @functools.wraps(transform)
    def transformed(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        own = getattr(type(func), "transformed_by", None)  # not that of the function of a method
        return transform(func, *args, **kwargs) if own is None else own(func, transform, *args, **kwargs)

    return cast(F, transformed)


def called_with_compiled(transform: F) -> F:
    """Let a transform that calls a function at once compile the whole call, if the function is compiled."""

    @functools.wraps(transform)
    def transformed(func: Callable[..., Any], *args: Any, **options: Any) -> Any:
        own = getattr(type(func), "transformed_by", None)
        return transform(func, *args, **options) if own is None else own(func, _later, transform, **options)(*args)

    return cast(F, transformed)


def _later(func: Callable[..., Any], transform: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return lambda *args: transform(func, *args, **options)


def named_after(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Do as `functools.wraps` does, which takes 2 µs, a third of a small gradient."""

    def decorate(wrapper: Callable[..., Any]) -> Callable[..., Any]:
        if function.__class__ is not FunctionType or function.__dict__:
            return functools.update_wrapper(wrapper, function)
        wrapper.__name__, wrapper.__qualname__, wrapper.__doc__, wrapper.__module__, wrapper.__annotations__ = (
            function.__name__, function.__qualname__, function.__doc__, function.__module__, function.__annotations__
        )  # fmt: skip
        wrapper.__wrapped__ = function  # type: ignore[attr-defined]
        return wrapper

    return decorate


def recorded(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function in a mode that records."""
    if modes.is_grad_enabled():  # a context manager would take 2 µs
        return function(*args, **kwargs)
    with enable_grad():
        return function(*args, **kwargs)


def without_graph(tensor: Tensor) -> Tensor:
    """Return a tensor with the data of another one, which no graph knows."""
    return constant(tensor._data, tensor._layout.plain) if tensor.__class__ is Tensor else tensor.detach()


def array_of(tensor: Tensor) -> Any:
    """Return the data of a tensor as NumPy's functions return it: a NumPy scalar if there are no dimensions."""
    if tensor._node is not None or tensor.__class__ is not Tensor:  # of the graph around, which is recorded, or traced
        return tensor
    data = tensor._data
    return data if data.__class__ is not np.ndarray or data.ndim else data[()]


def outputs_of(output: Any, api: str) -> list[Tensor]:
    """Return the leaves of what a function returned.

    Raises
    ------
    RuntimeError
        If there is none, or one is no tensor.
    """
    if output.__class__ is Tensor:
        return [output]
    leaves = flatten(output)
    if not leaves or leaves == [None]:
        raise RuntimeError(f"{api}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{api}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}")
    return leaves


def check_floating(outputs: Sequence[Tensor]) -> None:
    """Raise an error if a function returned integers or truth values, which have no derivative."""
    for tensor in outputs:
        if not tensor._layout.floating:
            raise RuntimeError(
                f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                f"{tensor.dtype}"
            )


def vector_like(value: Any, like: Tensor) -> Tensor:
    """Return a cotangent or tangent as a tensor; arrays and numbers get the dtype that it needs."""
    return value if isinstance(value, Tensor) else as_tensor(np.asarray(value, like.dtype))
