"""Hooks of a module: functions that are called before and after its forward, and in backward passes through it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple

from tapegrad import errors, modes
from tapegrad.nn.modules.backward_hooks import BackwardHooks
from tapegrad.runtime.locks import module_lock
from tapegrad.tape.hooks import RemovableHandle

FORWARD_PRE: Final = "forward_pre"
FORWARD: Final = "forward"
BACKWARD_PRE: Final = "backward_pre"
BACKWARD: Final = "backward"
OPTIONS: Final = "options"  # by the numbers of hooks
COMPILED: Final = "compiled"  # by 0: what `Module.compile` has made, which is called in place of all
SAVE_PRE, SAVE, LOAD_PRE, LOAD = "save_pre", "save", "load_pre", "load"

Hook = Callable[..., Any]

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


def added(tables: dict[str, OrderedDict[int, Any]], kind: str, entry: Entry, prepend: bool = False) -> RemovableHandle:
    """Add a hook to the tables of a module, or of all; return what removes it."""
    table = tables.setdefault(kind, OrderedDict())
    handle = RemovableHandle(table, entry.hook)
    number = next(reversed(table))
    if entry.with_kwargs or entry.always_call:
        tables.setdefault(OPTIONS, OrderedDict())[number] = entry[1:]
    if prepend:
        table.move_to_end(number, last=False)
    return handle


class Hooked:
    """The base of `Module` that has hooks. One without any has the class attribute, which calls look at."""

    _hooks: dict[str, OrderedDict[int, Any]] = {}  # noqa: RUF012  hooks of all modules; one with hooks gets its own
    forward: Callable[..., Any]

    def _table(self, kind: str) -> OrderedDict[int, Any]:
        if "_hooks" not in self.__dict__:
            self.__dict__["_hooks"] = {}
        return self._hooks.setdefault(kind, OrderedDict())

    def _add_hook(self, kind: str, entry: Entry, prepend: bool = False) -> RemovableHandle:
        self._table(kind)  # the instance has tables of its own from now on
        return added(self._hooks, kind, entry, prepend)

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
                errors.warn(
                    f"module forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {error}"
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
        backward = BackwardHooks(module, partial(module._entries, BACKWARD_PRE), partial(module._entries, BACKWARD))
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
