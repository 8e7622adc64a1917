"""The base class of optimizers: groups of parameters, their state, hooks, and what is saved and loaded."""

from __future__ import annotations

import copy
import itertools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final

from tapegrad import modes
from tapegrad.autograd.run import clear_grads
from tapegrad.optim.hooks import (
    Hooked,
    followed,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    with_hooks,
)
from tapegrad.tensor import Tensor

__all__ = [
    "Group",
    "Optimizer",
    "Params",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

Group = dict[str, Any]
Params = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[Group]

_NO_SCHEDULE: Final = object()


class _Required:
    """Stands for the value of an option that each group of parameters must have."""

    def __repr__(self) -> str:
        return "<required parameter>"


required: Final = _Required()


class Optimizer(Hooked):
    """Base class: groups of parameters with options, and a state for each parameter.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        A dict is a group: ``{"params": [...], "lr": 0.1}``, whose options take the place of the defaults.
    defaults : dict
        Options and their values.

    Attributes
    ----------
    param_groups : list of dict
    state : dict
        From each parameter to its state, such as running means.

    Examples
    --------
    >>> import tapegrad as tg
    >>> class SignDescent(tg.optim.Optimizer):
    ...     def __init__(self, params, lr=0.1):
    ...         super().__init__(params, {"lr": lr})
    ...
    ...     @tg.no_grad()
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for param in group["params"]:
    ...                 param -= group["lr"] * param.grad.sign()
    >>> x = tg.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = SignDescent([x])
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 2.9000, -1.9000])
    """

    def __init_subclass__(cls, traces_steps: bool = False) -> None:
        super().__init_subclass__()
        if "step" in vars(cls):
            step = cls.step if traces_steps else followed(cls.step)
            cls.step = with_hooks(step)  # type: ignore[method-assign]

    def _looked_at(self) -> list[Any]:
        """Return Python's state that every step looks at: a compiled function compares it in each call."""
        return [self.state, *self.param_groups, *self._hooks_of_steps()]

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got Tensor; "
                "give it a list"
            )
        self.defaults = defaults
        self.state: dict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self._restore()
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def _restore(self) -> None:
        """Make what is not saved with the optimizer."""
        super()._restore()
        self._scheduled_step: Any = _NO_SCHEDULE

    def add_param_group(self, param_group: Group) -> None:
        """Add a group of parameters.

        Parameters
        ----------
        param_group : dict
            ``params``, and options that are to differ from the defaults. It becomes the group: missing options are
            added to it.

        Raises
        ------
        TypeError
            If a parameter is no tensor, or the parameters have no order.
        ValueError
            If a parameter is the result of an operation, or in another group already, or only some have names.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in "
                "sets will change between runs. Please use a list instead."
            )
        params = [params] if isinstance(params, Tensor) else list(params)
        names = [param[0] for param in params if isinstance(param, tuple)]
        if names:
            if len(names) != len(params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["param_names"] = names
            params = [param for _, param in params]
        param_group["params"] = params
        for param in params:
            self._check_param(param)
        for name, default in self.defaults.items():
            if param_group.setdefault(name, default) is required:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
        if len({id(param) for param in params}) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                stacklevel=3,
            )
        for other in self.param_groups:
            if ("param_names" in other) != ("param_names" in param_group):
                how = "with names" if "param_names" in param_group else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {how} to the optimizer"
                )
        before = {id(param) for other in self.param_groups for param in other["params"]}
        if not before.isdisjoint(map(id, params)):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _check_param(self, param: Any) -> None:
        if not isinstance(param, Tensor):
            raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__}")
        if not (param.is_leaf or param.retains_grad):
            raise ValueError(
                "can't optimize a non-leaf Tensor: it is computed anew from others; give the optimizer those, or "
                "its detach().requires_grad_()"
            )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters.

        Parameters
        ----------
        set_to_none : bool
            Set them to None; otherwise to zeros, in the same memory.
        """
        for group in self.param_groups:
            clear_grads(group["params"], set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss and its gradients before the update.

        Returns
        -------
        The result of `closure`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define step()")

    @staticmethod
    def _loss_of(closure: Callable[[], Any]) -> Any:
        with modes.enable_grad():
            return closure()

    # --- schedules --------------------------------------------------------------------------------------------------

    def _begin_schedule(self) -> None:
        """Watch from now on whether `step` is called before the first schedule's."""
        if self._scheduled_step is _NO_SCHEDULE:
            self._was_stepped, self._scheduled_step = False, vars(self).get("step")

    def _check_order(self) -> None:
        """Warn if `step` was not called, or could not be watched."""
        if vars(self).get("step") is not self._scheduled_step:
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`.",
                UserWarning,
                stacklevel=4,
            )
        elif not self._was_stepped:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: call them in the opposite order, "
                "or the first value of the schedule is skipped.",
                UserWarning,
                stacklevel=4,
            )

    # --- state ------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the state and the options as plain dictionaries, with parameters numbered.

        It shares its tensors with the optimizer: copy them to keep them.

        Returns
        -------
        dict
            ``state``, from the number of a parameter to its state; ``param_groups``, with numbers for parameters.
        """
        for hook in list(self._hooks["state_dict_pre"].values()):
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            own = [numbers.setdefault(id(param), len(numbers)) for param in group["params"]]
            groups.append({**{name: value for name, value in group.items() if name != "params"}, "params": own})
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        return self._run_hooks("state_dict_post", {"state": state, "param_groups": groups})

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict` of an optimizer that has as many parameters.

        Parameters
        ----------
        state_dict : dict
            States are copied, and converted to the dtype of their parameters; ``step`` keeps its own.

        Raises
        ------
        ValueError
            If the numbers of groups or parameters differ.
        """
        state_dict = self._run_hooks("load_state_dict_pre", dict(state_dict))
        groups = copy.deepcopy(state_dict["param_groups"])
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(own["params"]) != len(new["params"]) for own, new in zip(self.param_groups, groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        own_params = itertools.chain.from_iterable(own["params"] for own in self.param_groups)
        params = dict(zip(itertools.chain.from_iterable(new["params"] for new in groups), own_params, strict=True))
        state: dict[Any, dict[str, Any]] = defaultdict(dict)
        for number, value in state_dict["state"].items():
            if number in params:
                state[params[number]] = _as_param(value, params[number])
            else:
                state[number] = value
        for own, new in zip(self.param_groups, groups, strict=True):
            new["params"] = own["params"]
            if "param_names" in own:
                new.setdefault("param_names", own["param_names"])
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in list(self._hooks["load_state_dict_post"].values()):
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if "_hooks" not in vars(self):
            self._restore()

    def __repr__(self) -> str:
        groups = [
            "".join(f"    {name}: {value}\n" for name, value in sorted(group.items()) if name != "params")
            for group in self.param_groups
        ]
        shown = (f"\nParameter Group {place}\n{lines}" for place, lines in enumerate(groups))
        return f"{type(self).__name__} ({''.join(shown)})"


def _as_param(value: Any, param: Tensor, name: str = "") -> Any:
    """Return a state that was loaded, with the dtype of its parameter."""
    if isinstance(value, Tensor):
        copied = value.detach().clone()
        return copied.to(param.dtype) if name != "step" and param.dtype.kind == "f" else copied
    if isinstance(value, dict):
        return {key: _as_param(item, param, key) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_as_param(item, param) for item in value)
    return value
