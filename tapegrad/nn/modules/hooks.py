"""Hooks of a module: functions that are called before and after its forward, and in backward passes through it."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, cast

from tapegrad.tape.hooks import RemovableHandle
from tapegrad.tensor import Tensor

FORWARD_PRE: Final = "forward_pre"
FORWARD: Final = "forward"
BACKWARD_PRE: Final = "backward_pre"
BACKWARD: Final = "backward"
SAVE_PRE, SAVE, LOAD_PRE, LOAD = "save_pre", "save", "load_pre", "load"

Hook = Callable[..., Any]


class Entry(NamedTuple):
    """A hook and the options that it was registered with."""

    hook: Hook
    with_kwargs: bool = False
    always_call: bool = False


class Hooked:
    """The base of `Module` that has hooks. One without any has an empty class attribute, which calls look at."""

    _hooks: dict[str, OrderedDict[int, Entry]] = {}  # noqa: RUF012  an instance with hooks gets its own
    forward: Callable[..., Any]

    def _add_hook(self, kind: str, entry: Entry, prepend: bool = False) -> RemovableHandle:
        if "_hooks" not in self.__dict__:
            self.__dict__["_hooks"] = {}
        table: OrderedDict[int, Any] = self._hooks.setdefault(kind, OrderedDict())
        handle = RemovableHandle(table, entry)  # type: ignore[arg-type]
        if prepend:
            table.move_to_end(next(reversed(table)), last=False)
        return handle

    def _entries(self, kind: str) -> list[Entry]:
        return list(self._hooks.get(kind, {}).values())

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

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before `state_dict` collects."""
        return self._add_hook(SAVE_PRE, Entry(hook))

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after `state_dict` has collected."""
        return self._add_hook(SAVE, Entry(hook))

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call a function before `load_state_dict` reads.

        It gets the module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys and error_msgs.
        """
        return self._add_hook(LOAD_PRE, Entry(hook))

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after `load_state_dict`; it may change the lists of keys."""
        return self._add_hook(LOAD, Entry(hook))


# A call with hooks ---------------------------------------------------------------------------------------------------


def call(module: Hooked, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the forward of a module that has hooks."""
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
    if module._hooks.get(BACKWARD) or module._hooks.get(BACKWARD_PRE):
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
    """The backward hooks of one call: they wait until the gradients of all outputs, and of all inputs, are there."""

    def __init__(self, module: Hooked) -> None:
        self.module = module
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.waiting: set[int] = set()

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments, with views of the tensors whose gradients are wanted in their place."""
        self.inputs = [None for arg in args if isinstance(arg, Tensor)]
        places = iter(range(len(args)))

        def watched(arg: Any) -> Any:
            if not isinstance(arg, Tensor):
                return arg
            place = next(places)
            if not arg.requires_grad:
                return arg
            self.waiting.add(place)
            return _watched(arg, lambda grad: self.arrived(place, grad))

        return tuple(watched(arg) for arg in args)

    def watch_outputs(self, result: Any) -> Any:
        """Return the result, with views of its tensors."""
        if isinstance(result, Tensor):
            results: tuple[Any, ...] = (result,)
        elif isinstance(result, tuple):
            results = result
        else:
            warnings.warn(
                f"For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}",
                stacklevel=4,
            )
            return result
        self.outputs = [None] * len(results)
        watched = [self._watched_output(place, own) for place, own in enumerate(results)]
        return watched[0] if isinstance(result, Tensor) else type(result)(watched)

    def _watched_output(self, place: int, own: Any) -> Any:
        if not isinstance(own, Tensor) or not own.requires_grad:
            return own

        def of_output(grad: Tensor) -> Tensor:
            self.outputs[place] = grad
            for changed in self._changed(BACKWARD_PRE, tuple(self.outputs)):
                self.outputs = list(changed)
            if not self.waiting:
                self._run()
            return cast(Tensor, self.outputs[place])

        return _watched(own, of_output)

    def arrived(self, place: int, grad: Tensor) -> Any:
        """Note the gradient of an input; run the hooks if it is the last."""
        self.inputs[place] = grad
        self.waiting.discard(place)
        return self._run()[place] if not self.waiting else None

    def _run(self) -> list[Any]:
        for changed in self._changed(BACKWARD, self.inputs):
            if len(changed) != len(self.inputs):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(changed)}, but expected "
                    f"{len(self.inputs)}"
                )
            self.inputs = list(changed)
        return self.inputs

    def _changed(self, kind: str, grads: Any) -> Iterator[tuple[Any, ...]]:
        for entry in self.module._entries(kind):
            both = (tuple(self.inputs), tuple(self.outputs)) if kind == BACKWARD else (tuple(self.outputs),)
            changed = entry.hook(self.module, *both)
            if changed is not None:
                yield changed if isinstance(changed, tuple) else (changed,)


def _watched(tensor: Tensor, hook: Callable[[Tensor], Any]) -> Tensor:
    view: Tensor = tensor.view_as(tensor)
    view.register_hook(hook)
    return view
