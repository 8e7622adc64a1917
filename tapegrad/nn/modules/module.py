"""`Module`: the base of layers and of networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self, cast

import numpy as np

from tapegrad import modes
from tapegrad.autograd.run import clear_grads
from tapegrad.dtypes import DTypeLike
from tapegrad.nn.modules import hooks
from tapegrad.nn.modules.global_hooks import (
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from tapegrad.nn.modules.members import BUFFER, MODULE, PARAMETER
from tapegrad.nn.modules.state import Stateful
from tapegrad.nn.parameter import Parameter
from tapegrad.ops.fill import empty
from tapegrad.tensor import Tensor

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


class Module(Stateful):
    """The base of layers and networks: parameters, buffers and child modules, found by name, and a forward.

    A subclass calls ``super().__init__()`` first, assigns parameters and child modules to attributes, and defines
    ``forward``, which is called with the arguments of a call.

    Attributes
    ----------
    training : bool
        Whether the module is in training mode. Dropout and batch normalisation depend on it.

    Examples
    --------
    >>> import tapegrad as tg
    >>> class Line(tg.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.slope = tg.nn.Parameter(tg.tensor(2.0))
    ...
    ...     def forward(self, x):
    ...         return self.slope * x
    >>> line = Line()
    >>> line(tg.tensor(3.0)).backward()
    >>> line.slope.grad
    tensor(3.)
    """

    training: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args:
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
            )
        if kwargs:
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
            )
        self.__dict__["training"] = True
        super().__init__()

    def _forward_unimplemented(self, *input: Any) -> Any:
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    forward: Callable[..., Any] = _forward_unimplemented

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooks:
            return hooks.call(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return hooks.call_hooked(self, args, kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the calls of this module, hooks included, with the arguments of `tapegrad.compile`.

        Unlike ``tapegrad.compile(module)`` it returns nothing, and names in `state_dict` stay. Copies are not compiled.

        Examples
        --------
        >>> import tapegrad as tg
        >>> line = tg.nn.Linear(2, 1)
        >>> line.compile()
        >>> line(tg.ones(3, 2)).shape
        (3, 1)
        """
        from tapegrad.program import decorator  # at call time: programs are loaded when one is made

        self._table(hooks.COMPILED)[0] = decorator.compile(self._call_impl, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:  # of which deep copies and pickles are made
        return self._without_compiled(dict(self.__dict__))

    def __copy__(self) -> Any:
        twin = super().__copy__()
        self._without_compiled(twin.__dict__)
        return twin

    @staticmethod
    def _without_compiled(space: dict[str, Any]) -> dict[str, Any]:
        if hooks.COMPILED in space.get("_hooks", ()):
            space["_hooks"] = {kind: table for kind, table in space["_hooks"].items() if kind != hooks.COMPILED}
        return space

    # --- paths -------------------------------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Module:
        """Return the module at a path, such as ``"net.0"``.

        Raises
        ------
        AttributeError
            If there is none.
        """
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def _get(self, target: str, kind: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        if module._kinds.get(name) != kind:
            raise AttributeError(f"`{name}` is not {what}")
        return getattr(module, name)

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a path, in the place of another or as a new one.

        Parameters
        ----------
        target : str
        module : Module
        strict : bool
            Raise an error if there is none yet.

        Raises
        ------
        ValueError
            If the path is empty, or it is no module.
        AttributeError
            If there is no module on the way, or something else at its end.
        """
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if not isinstance(getattr(parent, name, module), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a path, such as ``"net.0.weight"``.

        Raises
        ------
        AttributeError
            If there is none.
        """
        found: Parameter = self._get(target, PARAMETER, "an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a path.

        Raises
        ------
        AttributeError
            If there is none.
        """
        found: Tensor = self._get(target, BUFFER, "a buffer")
        return found

    # --- all of them -------------------------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call a function with each module below this one, then with this one, and return it."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Switch this module and those below it to training mode, or to evaluation.

        Raises
        ------
        ValueError
            If `mode` is no bool.
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        modes.tell("switch_mode", self.__dict__)
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Switch this module and those below it to evaluation."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Switch on or off whether gradients of the parameters are wanted."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of the parameters.

        Parameters
        ----------
        set_to_none : bool
            Set them to None; otherwise to zeros, in the same memory.
        """
        clear_grads(self.parameters(), set_to_none)

    # --- conversions -------------------------------------------------------------------------------------------------

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of parameters and gradients, and the buffers, by what a function makes of them."""
        for module in self.children() if recurse else ():
            module._apply(fn)
        for _, param in self._members(PARAMETER):
            if param is not None:
                param._replace(fn)
        for name, buffer in self._members(BUFFER):
            if buffer is not None:
                self.__dict__[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert parameters and buffers that are floating or complex, in place, and return the module.

        The arguments are those of `Tensor.to`.

        Raises
        ------
        TypeError
            If the dtype is neither floating nor complex.
        """
        wanted = empty(0).to(*args, **kwargs).dtype
        if wanted.kind not in "fc":
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=torch.{wanted}"
            )
        return self._apply(lambda tensor: tensor.to(*args, **kwargs) if tensor.dtype.kind in "fc" else tensor)

    def type(self, dst_type: DTypeLike) -> Self:
        """Convert all parameters and buffers to a dtype, in place, and return the module."""
        return self._apply(lambda tensor: tensor.to(np.dtype(dst_type)))

    def float(self) -> Self:
        """Convert floating parameters and buffers to float32, in place, and return the module."""
        return self._apply(lambda tensor: tensor.float() if tensor.is_floating_point() else tensor)

    def double(self) -> Self:
        """Convert floating parameters and buffers to float64, in place, and return the module."""
        return self._apply(lambda tensor: tensor.double() if tensor.is_floating_point() else tensor)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Give parameters and buffers new memory, whose values may be any."""
        return self._apply(lambda tensor: empty(tensor.shape, dtype=tensor.dtype, device=device), recurse)

    def cpu(self) -> Self:
        """Return the module: it is on the CPU."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Raise, as tensors do, if there are any: tapegrad computes on the CPU."""
        return self._apply(lambda tensor: cast(Any, tensor).cuda(device))

    def share_memory(self) -> Self:
        """Return the module: threads share memory."""
        return self

    # --- shown -------------------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return what `repr` shows of the module itself; for subclasses to define."""
        return ""

    def _lines_of_children(self) -> Iterator[str]:
        for name, module in self._members(MODULE):
            yield f"({name}): {indented(repr(module))}"

    def __repr__(self) -> str:
        extra, children = self.extra_repr(), list(self._lines_of_children())
        lines = extra.split("\n") if extra else []
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({extra})"
        inside = "\n  ".join([*lines, *children])
        return f"{self._get_name()}(\n  {inside}\n)" if inside else f"{self._get_name()}()"


def indented(text: str) -> str:
    """Return a text whose lines but the first are two columns further to the right."""
    return text.replace("\n", "\n  ")
