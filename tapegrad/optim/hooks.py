"""Hooks of optimizers: before and after a step, before and after a state is read or loaded."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from tapegrad import modes
from tapegrad.tape.hooks import HookTable, RemovableHandle

#: Hooks of all optimizers, before and after a step.
_pre_hooks: Final = HookTable()
_post_hooks: Final = HookTable()
#: The kinds of hooks of one optimizer, and what each is called with beside the optimizer.
_KINDS: Final = (
    "step_pre",
    "step_post",
    "state_dict_pre",
    "state_dict_post",
    "load_state_dict_pre",
    "load_state_dict_post",
)


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of any optimizer."""
    return RemovableHandle(_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., None]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of any optimizer."""
    return RemovableHandle(_post_hooks, hook)


def with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a class's `step` with the hooks before and after it."""

    @functools.wraps(step)
    def call(self: Hooked, *args: Any, **kwargs: Any) -> Any:
        self._was_stepped = True
        hooks = self._hooks
        if not (hooks["step_pre"] or hooks["step_post"] or _pre_hooks or _post_hooks):
            return step(self, *args, **kwargs)
        given: tuple[Any, ...] = (self, *args)
        for hook in [*_pre_hooks.values(), *hooks["step_pre"].values()]:
            result = hook(self, given, kwargs)
            if result is None:
                continue
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {result}.")
            given, kwargs = result
        loss = step(*given, **kwargs)
        for hook in [*hooks["step_post"].values(), *_post_hooks.values()]:
            hook(self, given, kwargs)
        return loss

    return call


def followed(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `step` that is traced as a user wrote it: a compiled function compares its options and states."""

    @functools.wraps(step)
    def call(self: Hooked, *args: Any, **kwargs: Any) -> Any:
        tracer = modes.tracer()
        if tracer is None:
            return step(self, *args, **kwargs)
        from tapegrad.optim.traced import follow_step  # when a function is traced

        return follow_step(tracer, self, functools.partial(step, self, *args, **kwargs))

    return call


class Hooked:
    """What has hooks by kind."""

    def _restore(self) -> None:
        """Make what is not saved with the optimizer."""
        self._hooks = {kind: HookTable() for kind in _KINDS}
        self._was_stepped = False

    def _hooks_of_steps(self) -> list[Any]:
        hooks: list[Any] = []
        for table in (_pre_hooks, self._hooks["step_pre"], self._hooks["step_post"], _post_hooks):
            if table:
                hooks += table.values()
            hooks.append(table)
        return hooks

    def _register(self, kind: str, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        table = self._hooks[kind]
        before = dict(table) if prepend else {}
        for number in before:
            del table[number]
        handle = RemovableHandle(table, hook)
        table.update(before)
        return handle

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return other arguments, as a pair."""
        return self._register("step_pre", hook)

    def register_step_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return self._register("step_post", hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., None], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before `state_dict` reads the state."""
        return self._register("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` on the result of `state_dict`; it may return another one."""
        return self._register("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before `load_state_dict`; it may return another one."""
        return self._register("load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after `load_state_dict`."""
        return self._register("load_state_dict_post", hook, prepend)

    def _run_hooks(self, kind: str, state_dict: dict[str, Any]) -> dict[str, Any]:
        """Return a state dict as hooks replace it, one after the other."""
        for hook in list(self._hooks[kind].values()):
            result = hook(self, state_dict)
            state_dict = state_dict if result is None else result
        return state_dict
