"""Optimizers and schedules of learning rates, with PyTorch's names, arguments and results."""

import importlib
from typing import TYPE_CHECKING, Any

from tapegrad.ops.table.public import missing

if TYPE_CHECKING:
    from tapegrad.optim import lr_scheduler, swa_utils
    from tapegrad.optim.adafactor import Adafactor
    from tapegrad.optim.adam import Adam, AdamW
    from tapegrad.optim.adam_like import Adamax, NAdam, RAdam
    from tapegrad.optim.adaptive import Adadelta, Adagrad, RMSprop, Rprop
    from tapegrad.optim.lbfgs import LBFGS
    from tapegrad.optim.muon import Muon
    from tapegrad.optim.optimizer import Optimizer
    from tapegrad.optim.sgd import ASGD, SGD

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "lr_scheduler", "swa_utils",
]  # fmt: skip

if not TYPE_CHECKING:
    #: The file of each class; imported when one of its classes is first used.
    _FILES = {
        name: file
        for file, names in {
            "adafactor": "Adafactor",
            "adam": "Adam AdamW", "adam_like": "Adamax NAdam RAdam", "adaptive": "Adadelta Adagrad RMSprop Rprop",
            "lbfgs": "LBFGS", "muon": "Muon", "optimizer": "Optimizer", "sgd": "ASGD SGD",
        }.items()
        for name in names.split()
    }  # fmt: skip

    def __getattr__(name: str) -> Any:
        if name in _FILES:
            return getattr(importlib.import_module(f"tapegrad.optim.{_FILES[name]}"), name)
        if name in ("lr_scheduler", "optimizer", "swa_utils"):
            return importlib.import_module(f"tapegrad.optim.{name}")
        raise missing(__name__, __name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
