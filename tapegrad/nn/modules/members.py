"""What belongs to a module: parameters, buffers and child modules, kept as plain attributes and found by name.

An instance has its members in ``__dict__``, so that access costs no more than that of any attribute, and their kinds in
``_kinds``, in the order in which they were registered.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, MutableMapping
from typing import Any, Final

from tapegrad import modes
from tapegrad.dtypes import TORCH_NAMES
from tapegrad.nn.parameter import Buffer, Parameter
from tapegrad.tape.hooks import HookTable
from tapegrad.tensor import Tensor

PARAMETER: Final = "parameter"
MODULE: Final = "module"
BUFFER: Final = "buffer"
_RANKS: Final = {PARAMETER: 0, MODULE: 1, BUFFER: 2, None: 3}  # the order in which PyTorch looks at them
_PLURAL: Final = {PARAMETER: "parameters", MODULE: "module", BUFFER: "buffer"}  # as its message says
_EXPECTED: Final = {
    PARAMETER: "parameter '{}' (torch.nn.Parameter or None {})",
    MODULE: "child module '{}' (torch.nn.Module or None {})",
    BUFFER: "buffer '{}' (torch.nn.Buffer, torch.Tensor or None {})",
}


def typename(value: Any) -> str:
    """Return the type of a value as PyTorch's messages have it.

    >>> typename(1.5)
    'float'
    """
    if type(value) is Tensor:
        return f"torch.{TORCH_NAMES[value.dtype.name]}Tensor"
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


class Registered(MutableMapping[str, Any]):
    """The members of one kind: a mapping over the attributes of a module."""

    __slots__ = ("_kind", "_owner")

    def __init__(self, owner: Members, kind: str) -> None:
        self._owner, self._kind = owner, kind

    def __getitem__(self, name: str) -> Any:
        if self._owner._kinds.get(name) != self._kind:
            raise KeyError(name)
        return self._owner.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._owner._register(name, value, self._kind)

    def __delitem__(self, name: str) -> None:
        self[name]
        delattr(self._owner, name)

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, kind in self._owner._kinds.items() if kind == self._kind])

    def __len__(self) -> int:
        return list(self._owner._kinds.values()).count(self._kind)

    def keys(self) -> KeysView[str]:
        """Return the names, as those of the dictionary that PyTorch has here."""
        return dict(self.items()).keys()

    def items(self) -> ItemsView[str, Any]:
        """Return the names and members, as those of that dictionary."""
        return {name: self[name] for name in self}.items()

    def __repr__(self) -> str:
        return repr(dict(self.items()))


REGISTRATION_HOOKS: Final = {kind: HookTable() for kind in (PARAMETER, BUFFER, MODULE)}  # of all modules


class Members:
    """The base of `Module` that registers members and finds them."""

    _kinds: dict[str, str]
    _non_persistent_buffers_set: set[str]

    def __init__(self) -> None:
        self.__dict__.update(_kinds={}, _non_persistent_buffers_set=set())

    @property
    def _parameters(self) -> Registered:
        return Registered(self, PARAMETER)

    @property
    def _buffers(self) -> Registered:
        return Registered(self, BUFFER)

    @property
    def _modules(self) -> Registered:
        return Registered(self, MODULE)

    # --- registering -------------------------------------------------------------------------------------------------

    def _register(self, name: str, value: Any, kind: str) -> None:
        for hook in REGISTRATION_HOOKS[kind].values():
            changed = hook(self, name, value)
            value = value if changed is None else changed
        if self._kinds.get(name, kind) != kind:
            del self._kinds[name]
        self._kinds[name] = kind
        self.__dict__[name] = value
        self._non_persistent_buffers_set.discard(name)

    def __setattr__(self, name: str, value: Any) -> None:
        kind = (
            PARAMETER if isinstance(value, Parameter) else
            MODULE if isinstance(value, Members) else
            BUFFER if isinstance(value, Buffer) else None
        )  # fmt: skip
        own = object.__getattribute__(self, "__dict__")  # no read that an interceptor is told of
        modes.tell("write_attribute", own, name)
        kinds = own.get("_kinds")
        if kinds is None:
            if kind is not None:
                raise AttributeError(f"cannot assign {_PLURAL[kind]} before Module.__init__() call")
            object.__setattr__(self, name, value)
            return
        registered = kinds.get(name)
        if registered is not None and _RANKS[kind] > _RANKS[registered]:
            if value is not None and not (registered == BUFFER and isinstance(value, Tensor)):
                expected = _EXPECTED[registered].format(name, "expected")
                raise TypeError(f"cannot assign '{typename(value)}' as {expected}")
            self.__dict__[name] = value
        elif kind is None:
            object.__setattr__(self, name, value)
        else:
            if registered is None:
                self.__dict__.pop(name, None)
                if kind != MODULE:  # for which PyTorch does not look whether the class has the name
                    self._check_name(name, kind)
            self._register(name, value, kind)
            if isinstance(value, Buffer) and not value.persistent:
                self._non_persistent_buffers_set.add(name)

    def __getattr__(self, name: str) -> Any:  # of what is missing; subclasses call it
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def __copy__(self) -> Any:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.__dict__["_kinds"] = dict(self._kinds)
        twin.__dict__["_non_persistent_buffers_set"] = set(self._non_persistent_buffers_set)
        return twin

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        self._kinds.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _check_name(self, name: Any, kind: str) -> None:
        if "_kinds" not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if hasattr(self, name) and self._kinds.get(name) != kind:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == MODULE else ""))
        if not name:
            raise KeyError(f'{kind} name can\'t be empty string ""')

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under a name; None keeps the name for one.

        Raises
        ------
        KeyError
            If the name is taken, empty, or has a dot.
        TypeError
            If it is no `Parameter`.
        """
        self._check_name(name, PARAMETER)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to {_EXPECTED[PARAMETER].format(name, 'required')}"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._register(name, param, PARAMETER)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer: a tensor that is moved and saved with the module, and not trained.

        Parameters
        ----------
        name : str
        tensor : Tensor or None
        persistent : bool
            Whether it is a part of `state_dict`.

        Raises
        ------
        KeyError
            If the name is taken, empty, or has a dot.
        TypeError
            If it is no tensor.
        """
        self._check_name(name, BUFFER)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._register(name, tensor, BUFFER)
        if not persistent:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Any) -> None:
        """Add a child module under a name.

        Raises
        ------
        KeyError
            If the name is taken, empty, or has a dot.
        TypeError
            If it is no `Module`.
        """
        if not isinstance(module, Members) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name(name, MODULE)
        self._register(name, module, MODULE)

    register_module = add_module

    # --- finding -----------------------------------------------------------------------------------------------------

    def _members(self, kind: str) -> Iterator[tuple[str, Any]]:
        space = self.__dict__
        return ((name, space[name]) for name, own in list(self._kinds.items()) if own == kind)

    def _named(self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(None, prefix, remove_duplicate) if recurse else ((prefix, self),)
        for path, module in modules:
            start = f"{path}." if path else ""
            for name, value in module._members(kind):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield start + name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield parameters with their paths, each once."""
        return self._named(PARAMETER, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield parameters, each once."""
        return (value for _, value in self._named(PARAMETER, "", recurse, True))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield buffers with their paths, each once."""
        return self._named(BUFFER, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield buffers, each once."""
        return (value for _, value in self._named(BUFFER, "", recurse, True))

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Yield child modules with their names, each once."""
        return self._named(MODULE, "", False, True)

    def children(self) -> Iterator[Any]:
        """Yield child modules, each once."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield this module and all below it with their paths, each once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._members(MODULE):
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """Yield this module and all below it, each once unless `remove_duplicate` is False."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))
