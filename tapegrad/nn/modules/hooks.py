"""Hooks of a module: functions that are called before and after its forward, and in backward passes through it."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple, cast

from tapegrad import modes
from tapegrad.ops.concat import cat
from tapegrad.ops.fill import zeros_like
from tapegrad.runtime.locks import module_lock
from tapegrad.tape.hooks import RemovableHandle
from tapegrad.tensor import Tensor

FORWARD_PRE: Final = "forward_pre"
FORWARD: Final = "forward"
BACKWARD_PRE: Final = "backward_pre"
BACKWARD: Final = "backward"
OPTIONS: Final = "options"  # by the numbers of hooks
COMPILED: Final = "compiled"  # by 0: what `Module.compile` has made, which is called in place of all
SAVE_PRE, SAVE, LOAD_PRE, LOAD = "save_pre", "save", "load_pre", "load"

Hook = Callable[..., Any]
Grads = list[Tensor | None]


_noticing = [0]  # how many blocks there are, of all threads
_lock = module_lock()


class Entry(NamedTuple):
    """A hook and the options that it was registered with."""

    hook: Hook
    with_kwargs: bool = False
    always_call: bool = False


def _shown(kind: str) -> property:
    def get(self: Hooked) -> OrderedDict[int, Any]:
        return self._table(kind)

    def put(self: Hooked, hooks: Mapping[int, Any]) -> None:
        table = self._table(kind)
        table.clear()
        table.update(hooks)

    return property(get, put)


class Hooked:
    """The base of `Module` that has hooks. One without any has the class attribute, which calls look at."""

    _hooks: dict[str, OrderedDict[int, Any]] = {}  # noqa: RUF012  hooks of all modules; one with hooks gets its own
    forward: Callable[..., Any]

    def _table(self, kind: str) -> OrderedDict[int, Any]:
        if "_hooks" not in self.__dict__:
            self.__dict__["_hooks"] = {}
        return self._hooks.setdefault(kind, OrderedDict())

    def _add_hook(self, kind: str, entry: Entry, prepend: bool = False) -> RemovableHandle:
        table = self._table(kind)
        handle = RemovableHandle(table, entry.hook)
        number = next(reversed(table))
        if entry.with_kwargs or entry.always_call:
            self._table(OPTIONS)[number] = entry[1:]
        if prepend:
            table.move_to_end(number, last=False)
        return handle

    def _entries(self, kind: str) -> list[Entry]:
        of_all, own = Hooked._hooks, self._hooks
        entries = []
        for tables in (of_all,) if own is of_all else (of_all, own):
            options: Mapping[int, Any] = tables.get(OPTIONS, {})
            entries += [Entry(hook, *options.get(number, ())) for number, hook in tables.get(kind, {}).items()]
        return entries

    # The hooks by their numbers: programs look at them, and change them.
    _forward_hooks, _forward_pre_hooks = _shown(FORWARD), _shown(FORWARD_PRE)
    _backward_hooks, _backward_pre_hooks = _shown(BACKWARD), _shown(BACKWARD_PRE)
    _state_dict_hooks, _state_dict_pre_hooks = _shown(SAVE), _shown(SAVE_PRE)
    _load_state_dict_post_hooks, _load_state_dict_pre_hooks = _shown(LOAD), _shown(LOAD_PRE)

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before each forward; what it returns takes the place of the arguments.

        Parameters
        ----------
        hook : callable
        prepend : bool
            Call it before the others.
        with_kwargs : bool
            Call ``hook(module, args, kwargs)``, which returns both or None.

        Returns
        -------
        RemovableHandle
        """
        return self._add_hook(FORWARD_PRE, Entry(hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after each forward; what it returns takes the place of the output.

        Parameters
        ----------
        hook : callable
        prepend : bool
            Call it before the others.
        with_kwargs : bool
            Call ``hook(module, args, kwargs, output)``.
        always_call : bool
            Call it with None also when the forward raises.

        Returns
        -------
        RemovableHandle
        """
        return self._add_hook(FORWARD, Entry(hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the backward of this module; it may return other gradients.

        Returns
        -------
        RemovableHandle
        """
        return self._add_hook(BACKWARD_PRE, Entry(hook), prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` once the gradients of the inputs are there.

        It may return other gradients of the inputs. Both arguments are tuples, with None where there is no gradient.

        Returns
        -------
        RemovableHandle
        """
        return self._add_hook(BACKWARD, Entry(hook), prepend)

    register_backward_hook = register_full_backward_hook

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before `state_dict` collects."""
        return self._add_hook(SAVE_PRE, Entry(hook))

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after `state_dict` has collected."""
        return self._add_hook(SAVE, Entry(hook))

    _register_state_dict_hook = register_state_dict_post_hook  # PyTorch's older name, which programs use

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call a function before `load_state_dict` reads.

        It gets the module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys and error_msgs.
        """
        return self._add_hook(LOAD_PRE, Entry(hook))

    def _register_load_state_dict_pre_hook(self, hook: Hook, with_module: bool = False) -> RemovableHandle:
        """Call a function as `register_load_state_dict_pre_hook` does: PyTorch's older form, without the module."""
        return self.register_load_state_dict_pre_hook(hook if with_module else lambda _, *args: hook(*args))

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after `load_state_dict`; it may change the lists of keys."""
        return self._add_hook(LOAD, Entry(hook))


@contextmanager
def noticing() -> Generator[None]:
    """Tell interceptors which attributes of modules are read, in a ``with`` block."""
    with _lock:
        _noticing[0] += 1
        Hooked.__getattribute__ = _read  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        with _lock:
            _noticing[0] -= 1
            if not _noticing[0]:
                del Hooked.__getattribute__


def _read(self: Hooked, name: str) -> Any:
    modes.tell("read_attribute", object.__getattribute__(self, "__dict__"), name)
    return object.__getattribute__(self, name)


# A call with hooks ---------------------------------------------------------------------------------------------------


def call(module: Hooked, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the forward of a module that has hooks."""
    if COMPILED in module._hooks:
        return module._hooks[COMPILED][0](*args, **kwargs)
    return call_hooked(module, args, kwargs)


def call_hooked(module: Hooked, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the hooks of a module, and its forward."""
    late = [entry for entry in module._entries(FORWARD) if entry.always_call]
    try:
        return _call(module, args, kwargs, late)
    except Exception:
        for hook, with_kwargs, _ in late:
            try:
                _after(module, hook, with_kwargs, args, kwargs, None)
            except Exception as error:
                warnings.warn(
                    f"module forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {error}",
                    stacklevel=2,
                )
        raise


def _call(module: Hooked, args: tuple[Any, ...], kwargs: dict[str, Any], late: list[Entry]) -> Any:
    for hook, with_kwargs, _ in module._entries(FORWARD_PRE):
        if with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                )
            args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    backward = None
    if module._entries(BACKWARD) or module._entries(BACKWARD_PRE):
        backward = _Backward(module)
        args = backward.watch_inputs(args)
    result = module.forward(*args, **kwargs)
    for entry in module._entries(FORWARD):
        if entry in late:
            late.remove(entry)  # it is not called a second time if a later one raises
        changed = _after(module, entry.hook, entry.with_kwargs, args, kwargs, result)
        result = result if changed is None else changed
    return result if backward is None else backward.watch_outputs(result)


def _after(module: Hooked, hook: Hook, with_kwargs: bool, args: Any, kwargs: Any, result: Any) -> Any:
    return hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)


class _Backward:
    """The backward hooks of one call: they get the gradients of all outputs, and those of all inputs."""

    def __init__(self, module: Hooked) -> None:
        self.module = module
        self.outputs: Grads = []
        self.inputs: Grads = []
        self.places: list[int] = []  # of the inputs that have a gradient

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments, with tensors in their place that tell of their gradients."""
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        self.inputs = [None] * len(tensors)
        self.places = [place for place, own in enumerate(tensors) if own.requires_grad]
        for place, own in zip(self.places, _watched([tensors[at] for at in self.places], self.of_inputs), strict=True):
            tensors[place] = own
        found = iter(tensors)
        return tuple(next(found) if isinstance(arg, Tensor) else arg for arg in args)

    def watch_outputs(self, result: Any) -> Any:
        """Return the result, with tensors in its place that tell of their gradients."""
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                f"For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}",
                UserWarning,
                stacklevel=4,
            )
            return result
        results = list(result) if isinstance(result, tuple) else [result]
        places = [place for place, own in enumerate(results) if isinstance(own, Tensor) and own.requires_grad]

        def of_outputs(grads: Grads) -> Grads:
            self.outputs = [None] * len(results)
            for place, grad in zip(places, grads, strict=True):
                self.outputs[place] = grad
            for entry in self.module._entries(BACKWARD_PRE):
                self.outputs = _replaced(self.outputs, entry.hook(self.module, tuple(self.outputs)), "output")
            if not self.places:
                self.of_inputs([])
            return [self.outputs[place] for place in places]

        for place, own in zip(places, _watched([results[at] for at in places], of_outputs), strict=True):
            results[place] = own
        return type(result)(results) if isinstance(result, tuple) else results[0]

    def of_inputs(self, grads: Grads) -> Grads:
        """Run the hooks, and return the gradients as they replace them."""
        inputs: Grads = [None] * len(self.inputs)
        for place, grad in zip(self.places, grads, strict=True):
            inputs[place] = grad
        for entry in self.module._entries(BACKWARD):
            inputs = _replaced(inputs, entry.hook(self.module, tuple(inputs), tuple(self.outputs)), "input")
        return [inputs[place] for place in self.places]


def _replaced(grads: Grads, result: Any, which: str) -> Grads:
    if result is None:
        return grads
    several = list(result) if isinstance(result, tuple) else [result]
    if len(several) != len(grads):
        raise RuntimeError(
            f"Backward hook returned an invalid number of grad_{which}, got {len(several)}, but expected {len(grads)}"
        )
    return several


def _watched(tensors: list[Tensor], hook: Callable[[Grads], Grads]) -> list[Tensor]:
    """Return tensors of the same values; a function gets, once in a pass, the gradients of all that have one."""
    if len(tensors) <= 1:
        views = [own.view_as(own) for own in tensors]
        for view in views:
            view.register_hook(lambda grad: hook([grad])[0])
        return views
    # All pass through one entry, behind which the gradients of all of them are there.
    whole: Tensor = cat([own.reshape(-1) for own in tensors])
    pieces = whole.split([own.numel() for own in tensors])
    parts = [part.view(own.shape).to(own.dtype) for part, own in zip(pieces, tensors, strict=True)]
    grads: Grads = [None] * len(tensors)

    def of_whole(_: Tensor) -> Tensor:
        found = hook(list(grads))
        grads[:] = [None] * len(grads)
        known = [zeros_like(own) if grad is None else grad for own, grad in zip(parts, found, strict=True)]
        return cast(Tensor, cat([grad.reshape(-1) for grad in known]))

    for place, part in enumerate(parts):
        part.register_hook(partial(grads.__setitem__, place))
    whole.register_hook(of_whole)
    return parts
