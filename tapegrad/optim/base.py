"""The base class of optimizers: groups of parameters, their state, and the loop over them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.tape import versions
from tapegrad.tensor import Tensor, from_array

Group = dict[str, Any]
Params = Iterable[Tensor] | Iterable[Group]


class Optimizer:
    """Base class: groups of parameters with options, and a state for each parameter.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        A dict is a group: ``{"params": [...], "lr": 0.1}``, whose options take the place of the defaults.
    defaults : dict
        Options and their values.

    Attributes
    ----------
    param_groups : list of dict
    state : dict
        From each parameter to its state, such as running means.
    """

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got Tensor; "
                "give it a list"
            )
        self.defaults = defaults
        self.state: dict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        # Memory for intermediate results, by shape and dtype: steps allocate nothing.
        self._scratch: dict[Any, np.ndarray] = {}
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: Group) -> None:
        """Add a group of parameters.

        Parameters
        ----------
        param_group : dict
            ``params``, and options that are to differ from the defaults.

        Raises
        ------
        TypeError
            If a parameter is no tensor.
        ValueError
            If a parameter is the result of an operation, or in another group already.
        """
        group = {**self.defaults, **param_group}
        params = param_group["params"]
        group["params"] = [params] if isinstance(params, Tensor) else list(params)
        known = {id(param) for other in self.param_groups for param in other["params"]}
        for param in group["params"]:
            if not isinstance(param, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__}")
            if not param.is_leaf:
                raise ValueError(
                    "can't optimize a non-leaf Tensor: it is computed anew from others; give the optimizer those, or "
                    "its detach().requires_grad_()"
                )
            if id(param) in known:
                raise ValueError("some parameters appear in more than one parameter group")
            known.add(id(param))
        self._check(group)
        self.param_groups.append(group)

    def _check(self, group: Group) -> None:
        """Raise ValueError if an option is out of range."""
        for name, shown in (("lr", "learning rate"), ("weight_decay", "weight_decay value"), ("eps", "epsilon value")):
            if name in group and not group[name] >= 0.0:
                raise ValueError(f"Invalid {shown}: {group[name]}")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters.

        Parameters
        ----------
        set_to_none : bool
            Set them to None; otherwise to zeros, in the same memory.
        """
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param._grad = None
                elif param._grad is not None:
                    if param._grad._node is not None:
                        param._grad = param._grad.detach()
                    param._grad.zero_()

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
        loss = None
        if closure is not None:
            with modes.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for param in group["params"]:
                grad = param._grad
                if grad is None:
                    continue
                data, slope = param._data, grad._data
                if data.__class__ is not np.ndarray or slope.__class__ is not np.ndarray:
                    data, slope = param._array(), np.asarray(slope)
                if data.dtype.kind == "c":  # as pairs of real numbers, as in PyTorch
                    part = np.dtype(f"f{data.itemsize // 2}")
                    data, slope = data[..., None].view(part), slope[..., None].view(part)
                key = data.shape, data.dtype
                scratch = self._scratch.get(key)
                if scratch is None:
                    scratch = self._scratch[key] = np.empty(data.shape, data.dtype)
                self._update(param, data, slope, scratch, group)
                versions.note(data)
        return loss

    def _update(self, param: Tensor, data: np.ndarray, grad: np.ndarray, scratch: np.ndarray, group: Group) -> None:
        """Update one parameter."""
        raise NotImplementedError(f"{type(self).__name__} must define _update()")

    # --- state ------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the state and the options as plain dictionaries, with parameters numbered.

        It shares its arrays with the optimizer: copy them to keep them.
        """
        number: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            numbers = [number.setdefault(id(param), len(number)) for param in group["params"]]
            groups.append({**group, "params": numbers})
        state = {
            number[id(param)]: {
                name: from_array(value) if isinstance(value, np.ndarray) else value for name, value in own.items()
            }
            for param, own in self.state.items()
        }
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict` of an optimizer that has as many parameters.

        Raises
        ------
        ValueError
            If the numbers of groups or parameters differ.
        """
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        params: dict[int, Tensor] = {}
        for own, group in zip(self.param_groups, groups, strict=True):
            if len(own["params"]) != len(group["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
                )
            params.update(zip(group["params"], own["params"], strict=True))
        for own, group in zip(self.param_groups, groups, strict=True):
            own.update({name: value for name, value in group.items() if name != "params"})
        self.state.clear()
        for number, own_state in state_dict["state"].items():
            param = params[number]
            self.state[param] = {
                name: np.array(value._data) if isinstance(value, Tensor) else value for name, value in own_state.items()
            }

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for place, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {place}")
            lines += [f"    {name}: {value}" for name, value in sorted(group.items()) if name != "params"]
        return "\n".join([*lines, ")"])
