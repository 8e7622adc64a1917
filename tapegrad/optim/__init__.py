"""Optimizers and schedules of learning rates, with PyTorch's names, arguments and results."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tapegrad.optim import lr_scheduler
    from tapegrad.optim.adam import Adam, AdamW
    from tapegrad.optim.adam_like import Adamax, NAdam, RAdam
    from tapegrad.optim.adaptive import Adadelta, Adagrad, RMSprop, Rprop
    from tapegrad.optim.lbfgs import LBFGS
    from tapegrad.optim.optimizer import Optimizer
    from tapegrad.optim.sgd import ASGD, SGD

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop",
    "Rprop", "lr_scheduler",
]  # fmt: skip

if not TYPE_CHECKING:
    #: The file of each class; imported when one of its classes is first used.
    _FILES = {
        name: file
        for file, names in {
            "adam": "Adam AdamW", "adam_like": "Adamax NAdam RAdam", "adaptive": "Adadelta Adagrad RMSprop Rprop",
            "lbfgs": "LBFGS", "optimizer": "Optimizer", "sgd": "ASGD SGD",
        }.items()
        for name in names.split()
    }  # fmt: skip

    def __getattr__(name: str) -> Any:
        if name in _FILES:
            return getattr(importlib.import_module(f"tapegrad.optim.{_FILES[name]}"), name)
        if name in ("lr_scheduler", "optimizer"):
            return importlib.import_module(f"tapegrad.optim.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
