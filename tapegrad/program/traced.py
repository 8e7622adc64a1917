"""`Traced`: a tensor of a function that is traced. It shows its values to operations only.

All that would let a value leave the list, and come back as a constant, raises an error, or makes a guard.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.ops.table import gateway
from tapegrad.ops.table.gateway import raw_data
from tapegrad.program.returned import Number, returns_to
from tapegrad.tape import traces
from tapegrad.tensor import Tensor

set_data: Final[Any] = vars(Tensor)["_data"].__set__


class TracingError(TypeError):
    """A function cannot be traced, because a value would leave the program and come back as a constant.

    Examples
    --------
    >>> import tapegrad as tg
    >>> issubclass(tg.program.TracingError, RuntimeError)
    False
    """


class _Withheld:
    """What stands for the memory of a traced tensor: nobody may write to it."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise error("writes in place are not traced yet; compute a new tensor, e.g. with where() or x + y")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse()

    __setitem__ = __getitem__ = __array__ = __iadd__ = __len__ = _refuse


_WITHHELD: Final = _Withheld()


class Traced(Tensor):
    """A tensor of a function that is traced."""

    __slots__ = ()
    is_traced = True

    @property
    def _data(self) -> Any:
        """The values, for code of the library that is not traced: a guard says which they were."""
        return _tracer().look(self)

    @_data.setter
    def _data(self, data: Any) -> None:
        set_data(self, data)

    def _array(self) -> Any:
        return _WITHHELD  # the data are an array already, which is what most callers want to make sure of

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Refuse: an array is no part of the program."""
        raise error("numpy() and np.asarray() take its values out of the program; use tapegrad's functions")

    def item(self) -> Any:
        """Return the only element, and guard it; what stands for it, if the function returns it at once."""
        if self.numel() != 1:
            return super().item()
        tracer = _tracer()
        if tracer.returns_to is not None and returns_to(tracer.returns_to):
            return Number((tracer.detached(self if self.ndim == 0 else self.reshape(())),))
        return tracer.look(self).item()

    def tolist(self) -> Any:
        """Return the elements as a nested list, and guard them."""
        return _tracer().look(self).tolist()

    def detach(self) -> Tensor:
        """Return a traced tensor of the same value without a graph."""
        detached: Tensor = _tracer().detached(self)
        return detached

    @property  # it has no setter
    def data(self) -> Tensor:
        """A traced tensor of the same value without a graph."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        _tracer().replaced(self, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        memo[id(self)] = copy = self.detach().clone()
        return copy

    def _is_number(self) -> bool:
        """Whether it stands in place of a number of Python: an argument, or what was computed of integers."""
        tracer: Any = modes.interceptor()
        if not getattr(tracer, "of_python", None):
            return False
        is_integer = tracer.has_integers and self.ndim == 0 and self.dtype == np.int64
        return is_integer or tracer.known(raw_data(self)) in tracer.of_python

    def __hash__(self) -> int:
        return hash(self.item()) if self._is_number() else super().__hash__()

    def __round__(self, digits: int | None = None) -> Any:
        if not self._is_number():
            raise TypeError("type Tensor doesn't define __round__ method; use x.round()")
        return round(self.item(), digits)

    def __repr__(self) -> str:
        return repr(self.item()) if self._is_number() else f"traced({self._layout})"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.ndim == 0 else super().__format__(spec)

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())


def _augmented(name: str) -> Callable[[Tensor, Any], Any]:
    """Return `x += y` and its kin: numbers of Python get another value, tensors are written to."""

    def call(self: Tensor, other: Any) -> Any:
        tracer: Any = modes.interceptor()
        is_number = bool(getattr(tracer, "of_python", None)) and tracer.is_of_python(self)
        return getattr(Tensor, f"__{name}__" if is_number else f"__i{name}__")(self, other)

    return call


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Traced, f"__i{_name}__", _augmented(_name))


class Noticed(Tensor):
    """A twin of a tensor from outside, as operations of a traced function get it: a look at its values is a guard.

    Attributes
    ----------
    origin : Tensor
    """

    __slots__ = ("origin",)

    def __init__(self, origin: Tensor) -> None:
        self.origin, self._grad = origin, None
        self.follow()
        base = getattr(origin, "_viewed", None)
        if base is not None:
            self._viewed = base

    def follow(self) -> None:
        """Have the value that the tensor has now: functions that give back their operand gave this to the user."""
        set_data(self, raw_data(self.origin))
        self._layout, self._node = self.origin._layout, self.origin._node

    @property
    def _data(self) -> Any:
        """The values, for code of the library that is not traced: a guard says which they were."""
        return self.origin._looked_at()

    @_data.setter
    def _data(self, data: Any) -> None:
        set_data(self, data)

    def _array(self) -> Any:
        array = self.origin._array()
        set_data(self, array)
        return array


def origin_of(tensor: Tensor) -> Tensor:
    """Return the tensor whose twin an operand is, or the operand."""
    if isinstance(tensor, Noticed):
        return tensor.origin
    base = getattr(tensor, "_viewed", None)  # of a plain twin: the instance of a subclass, e.g. a parameter
    return base if base is not None and raw_data(base) is raw_data(tensor) else tensor


def plain_twin(tensor: Tensor) -> Tensor:
    """Return a tensor that operations compute with."""
    result = gateway.constant(raw_data(tensor), tensor._layout)
    result._node = tensor._node
    base = getattr(tensor, "_viewed", None)
    if base is not None:
        result._viewed = base
    return result


def error(why: str) -> TracingError:
    """Return the error of a traced tensor that cannot be followed; it names the user's line."""
    return TracingError(f"a traced tensor cannot be used here: {why}. {traces.line_of_user()}")


def _tracer() -> Any:
    """Return this thread's `tapegrad.program.trace.Tracer`."""
    tracer = modes.interceptor()
    if not hasattr(tracer, "look"):
        raise TracingError("a tensor of a traced function is used after the trace")
    return tracer


gateway.OPERANDS.extend((Traced, Noticed))


def example(tensor: Tensor) -> np.ndarray:
    """Return the data of a tensor with which a function is traced."""
    if tensor.is_traced:
        tracer: Any = modes.interceptor()
        return np.asarray(tracer.value_of(tracer.number_of(tensor)))
    return np.asarray(raw_data(tensor))
