"""`Tensor`: an array, its gradient, and the node of the entry that computed it. `ops.bind` gives it its operations."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad import errors, modes
from tapegrad.dtypes import TORCH_NAMES, DTypeLike, default_dtype
from tapegrad.printing import format_tensor
from tapegrad.tape import hooks, versions, views
from tapegrad.tape.entries import Leaf, TapeNode, reshaped
from tapegrad.tape.graph import Node, node_of
from tapegrad.tape.layout import Layout, check_flag, layout_of
from tapegrad.tape.listing import Tape
from tapegrad.tape.shared_memory import copied

if TYPE_CHECKING:
    from tapegrad.methods import TensorMethods  # a stub: `tapegrad.ops.bind` gives Tensor its operations
    from tapegrad.tape.hooks import RemovableHandle
else:
    TensorMethods = object

_new = object.__new__  # takes half the time of Tensor.__new__, which goes through a wrapper


class Tensor(TensorMethods):
    """A NumPy array whose operations are recorded, so that gradients can be computed.

    Functions such as `tensor` and `from_numpy` make tensors, and so do operations. Numbers, arrays and tensors may
    stand on either side of an operator. NumPy's functions work on tensors and are recorded too.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    # _data    the array; a result without dimensions has a NumPy scalar, with which NumPy computes 7 times faster
    # _layout  the layout of the data; the tracked one if the tensor requires grad
    # _node    the node of the entry that computed the tensor, or a Leaf, or None if it does not require grad
    # _viewed, _part_of  of a view only: see `tapegrad.tape.views`
    __slots__ = ("__weakref__", "_data", "_grad", "_layout", "_node", "_part_of", "_viewed")

    _data: Any
    _layout: Layout
    _node: TapeNode | Leaf | None
    _grad: Tensor | None
    _viewed: Tensor
    _part_of: tuple[Any, ...]

    __array_priority__ = 1000
    is_traced = False  # whether it belongs to a function that is being traced: see `tapegrad.program.trace`

    # --- the array ---------------------------------------------------------------------------------------------------

    def _array(self) -> np.ndarray:
        """Return the data as an array, whose writes change the tensor: it takes the place of a NumPy scalar."""
        if not isinstance(self._data, np.ndarray):
            array = versions.in_place_of(self._data)
            if modes.mode.value:
                modes.tell("alias", self._data, array)
            layout = layout_of(array)
            self._data, self._layout = array, layout.tracked if self._layout.requires_grad else layout
        return self._data

    def _looked_at(self) -> Any:
        if modes.mode.value:
            modes.tell("looked", self)  # a tracer notes what Python looks at
        return self._data

    @property
    def dtype(self) -> np.dtype:
        """The data's dtype."""
        return self._layout.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the dimensions."""
        return self._layout.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._layout.ndim

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the length of one dimension."""
        if dim is not None and not -self.ndim <= dim < self.ndim:
            raise errors.dim_out_of_range("size", self.ndim, dim)
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self.ndim

    def numel(self) -> int:
        """Return the number of elements."""
        return self._layout.size

    def is_floating_point(self) -> bool:
        """Whether the dtype is float32 or float64."""
        return self.dtype.kind == "f"

    def is_complex(self) -> bool:
        """Whether the dtype is complex64 or complex128."""
        return self.dtype.kind == "c"

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return the data as an array. It shares memory with the tensor, but has its own shape and strides.

        Raises
        ------
        RuntimeError
            If the tensor requires grad, because a write to the array would not be noticed. ``force=True`` allows it.
        """
        if self.requires_grad and not force:
            raise RuntimeError(errors.NUMPY_OF_GRAD)
        self._looked_at()
        return self._array()[...]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def item(self) -> Any:
        """Return the only element as a Python number; raise RuntimeError if there is no element, or more than one."""
        if self._layout.size != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar; use tolist()")
        return self._looked_at().item()

    def tolist(self) -> Any:
        """Return the elements as a nested list of Python numbers."""
        return self._looked_at().tolist()

    def __float__(self) -> float:
        is_one = self._layout.size == 1
        if is_one and views.renewed(self)._node is not None:
            warnings.warn(errors.NUMBER_OF_GRAD, UserWarning, stacklevel=2)
        return float(self.item() if is_one and self.dtype.kind != "c" else errors.real_number(self, "double"))

    def __int__(self) -> int:
        return int(errors.real_number(self, "int64_t"))

    def __complex__(self) -> complex:
        return complex(errors.one_number(self))

    def __index__(self) -> int:
        if self.dtype.kind not in "biu" or self.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __bool__(self) -> bool:
        size = self._layout.size
        if size > 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous; use any() or all()")
        if size == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous; use numel() > 0")
        return bool(self._looked_at().item())

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind())

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        of_leaf = ["requires_grad=True"] if self.requires_grad else []
        suffixes = of_leaf if self.grad_fn is None else [f"grad_fn=<{type(self.grad_fn).__name__}>"]
        tangent = getattr(modes.interceptor(), "tangent_of", lambda _: None)(self)  # of a dual tensor
        suffixes += [] if tangent is None else [f"tangent={tangent}"]
        return format_tensor(self._data, default_dtype=default_dtype(), suffixes=suffixes)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.ndim == 0 and type(self) is Tensor else super().__format__(spec)

    # --- copies ------------------------------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment. Use clone(), which is recorded, or detach() first."
            )
        twin = memo[id(self)] = _rebuilt(copied(self._array(), memo), self.requires_grad, type(self))
        twin._grad = copy.deepcopy(self._grad, memo)
        getattr(twin, "__dict__", {}).update(copy.deepcopy(getattr(self, "__dict__", {}), memo))  # of a subclass
        return twin

    def __reduce__(self) -> tuple[Any, ...]:  # pickle and copy.copy make leaves, as in PyTorch
        return _rebuilt, (self._array(), self.requires_grad, type(self)), getattr(self, "__dict__", None) or None

    # --- gradients ---------------------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient is wanted. Users set it for leaves; a result has it if one of its operands has it."""
        return self._node is not None or views.renewed(self)._node is not None

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self._require(wanted, f"o{errors.ONLY_FLOATING[1:]}")

    def _require(self, wanted: bool, who: str = errors.ONLY_FLOATING) -> None:
        if wanted and not self._layout.floating:
            raise RuntimeError(f"{who} can require gradients; convert this one of {self.dtype}, e.g. with .double()")
        if not wanted and not self.is_leaf:
            raise RuntimeError(errors.RESULT_FLAG)
        if wanted and views.renewed(self)._node is None:
            check_flag(self._layout)
            self._array()
            self._layout = self._layout.tracked
            self._node = Leaf(self)
        elif not wanted:
            self._layout, self._node = self._layout.plain, None

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor is no result of a recorded operation."""
        return not isinstance(views.renewed(self)._node, list)

    @property
    def grad_fn(self) -> Node | None:
        """The operation that computed the tensor, None for a leaf."""
        return node_of(node) if isinstance(node := views.renewed(self)._node, list) else None

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward passes have accumulated, None before the first pass."""
        if self._grad is None and isinstance(self._node, list) and not self.retains_grad:
            warnings.warn(errors.GRAD_OF_RESULT, UserWarning, stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            kind = type(value).__name__
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {kind}")
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if value is not None and (value.shape != self.shape or value.dtype != self.dtype):
            names = [TORCH_NAMES.get(own.dtype.name, own.dtype.name) for own in (value, self)]
            raise errors.assigned_grad(value.shape, names[0], self.shape, names[1])
        modes.tell("grad_replaced", self)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad` was called on this result."""
        return hooks.retains_grad(self)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call a function with this tensor's gradient in every backward pass. If it returns a tensor, that replaces it.

        Raises
        ------
        RuntimeError
            If the tensor does not require grad.
        """
        return hooks.register_hook(views.renewed(self), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call a function with this leaf after a backward pass has accumulated its `grad`.

        Raises
        ------
        RuntimeError
            If the tensor does not require grad or is not a leaf.
        """
        return hooks.register_post_accumulate_grad_hook(self, hook)

    def retain_grad(self) -> None:
        """Let backward passes accumulate the gradient of this result in its `grad`, as they do for leaves.

        Raises
        ------
        RuntimeError
            If the tensor does not require grad.
        """
        hooks.retain_grad(views.renewed(self))

    def tape(self) -> Tape:
        """Return the recorded operations that this tensor was computed by; ``print`` lists them."""
        return Tape(views.renewed(self)._node)

    def detach(self) -> Tensor:
        """Return a tensor that shares memory with this one and does not require grad."""
        tracer = modes.tracer() if modes.mode.value & modes.INTERCEPTORS else None
        return from_array(self._array()) if tracer is None else tracer.detached(self)

    @property
    def data(self) -> Tensor:
        """A tensor over the same memory. Writes to it are neither recorded nor noticed; `detach` notices them."""
        if modes.mode.value & modes.INTERCEPTORS and modes.is_traced():
            return self.detach()
        # An array over a memoryview counts as another storage, which has its own version.
        return from_array(np.asarray(self._array().data))

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if value.dtype != self.dtype:
            raise RuntimeError(
                f"attempted to set the data of a tensor of dtype {self.dtype} to one of dtype {value.dtype}; "
                f"convert it first, e.g. with .to({str(self.dtype)!r})"
            )
        if modes.mode.value & modes.INTERCEPTORS and modes.is_traced():
            return modes.tell("replaced", self, value)
        array, node = value._array(), self._node
        layout = layout_of(array)
        if node is not None:
            if layout.shape != self._layout.shape:
                node = reshaped(node, self, layout.shape)
            layout = layout.tracked
        self._data, self._layout, self._node = array, layout, node


def from_array(array: np.ndarray) -> Tensor:
    """Return a constant tensor that shares the memory of an array."""
    result = _new(Tensor)
    result._data, result._layout, result._node, result._grad = array, layout_of(array), None, None
    return result


def _rebuilt(array: np.ndarray, requires_grad: bool, kind: type[Tensor] = Tensor) -> Tensor:
    if not array.dtype.isnative or not array.flags.aligned:  # the pickle comes from a machine of other byte order
        array = array.astype(array.dtype.newbyteorder("="))
    result = kind.__new__(kind)
    result._data, result._layout, result._node, result._grad = array, layout_of(array), None, None
    result._require(requires_grad)
    return result
