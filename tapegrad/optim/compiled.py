"""Optimizers that are a formula: checks of their options, and a step that is one compiled pass a group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from tapegrad import modes
from tapegrad.optim.formula import Formula
from tapegrad.optim.optimizer import Group, Optimizer, Params
from tapegrad.optim.update import Update
from tapegrad.tensor import Tensor

#: PyTorch's names of options that must not be negative, in messages.
_NOT_NEGATIVE: Final = {
    "lr": "learning rate", "eps": "epsilon value", "momentum": "momentum value", "weight_decay": "weight_decay value",
    "momentum_decay": "momentum_decay value", "lr_decay": "lr_decay value",
    "initial_accumulator_value": "initial_accumulator_value value",
}  # fmt: skip


def options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options among the arguments of an ``__init__``, its ``locals()``."""
    return {name: value for name, value in arguments.items() if name not in ("self", "params", "__class__")}


def check_options(defaults: Mapping[str, Any]) -> None:
    """Raise ValueError if an option is out of range, with PyTorch's words."""
    lr = defaults["lr"]
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    for name, shown in _NOT_NEGATIVE.items():
        if name in defaults and not defaults[name] >= 0.0:
            raise ValueError(f"Invalid {shown}: {defaults[name]}")
    for place, beta in enumerate(defaults.get("betas", ())):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {place}: {beta}")


def _head(group: Group) -> tuple[float, float, float]:
    """Return the first values of a step; see `tapegrad.optim.update.Update`."""
    decay = group.get("weight_decay", 0.0)
    decoupled = decay and group.get("decoupled_weight_decay")
    return (
        -1.0 if group["maximize"] else 1.0,
        0.0 if decoupled else decay,
        1.0 - group["lr"] * decay if decoupled else 1.0,
    )


class FormulaOptimizer(Optimizer, traces_steps=True):
    """An optimizer that updates each element by a formula, compiled once for all parameters.

    A subclass says its states and its formula; see `tapegrad.optim.formula.Formula`.
    """

    #: The names of all states, and their initial values: a number, or the name of an option.
    _initial: ClassVar[dict[str, float | str]] = {}
    _formula: ClassVar[Formula]

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self._check(defaults)
        super().__init__(params, defaults)
        if defaults.get("fused"):
            for name in ("differentiable", "foreach"):
                if defaults[name]:
                    raise RuntimeError(
                        "`fused` does not support `differentiable`" if name == "differentiable" else
                        "`fused` and `foreach` cannot be `True` together."
                    )  # fmt: skip
        if defaults.get("differentiable"):
            raise NotImplementedError(
                f"{type(self).__name__} with differentiable=True: steps are compiled, and are not recorded. To "
                "differentiate through updates, write them as operations on tensors."
            )

    def _check(self, defaults: dict[str, Any]) -> None:
        check_options(defaults)

    def _choose(self, group: Group) -> Formula:
        """Return the formula that the options of a group ask for; always the same object for the same options."""
        return self._formula

    def _restore(self) -> None:
        super()._restore()
        self._updates: dict[int, Update] = {}  # by the number of the group

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
        loss = None if closure is None else self._loss_of(closure)
        tracer = modes.tracer()
        for number, group in enumerate(self.param_groups):
            update = self._update(number, group)
            if tracer is None:
                update(group, self.state, _head(group))
            else:
                from tapegrad.optim.traced import trace_step  # when a function is traced

                tracer.watch(self._looked_at, f"step() of {type(self).__name__}")
                trace_step(tracer, update, group, self.state, _head, self._choose)
        return loss

    def _update(self, number: int, group: Group) -> Update:
        """Return the pass of a group."""
        formula, count = self._choose(group), len(group["params"])
        update = self._updates.get(number)
        if update is not None and update.formula is formula and update.count == count:
            return update
        if group.get("capturable"):
            raise AssertionError(
                "If capturable=True, params and state_steps must be on supported devices: graphs of a GPU are captured "
                "there, and tensors are on the CPU. Leave it out."
            )
        update = self._updates[number] = Update(type(self).__name__, formula, self._initial, count)
        return update
