"""Optimizers and schedules of learning rates, with PyTorch's names, arguments and results."""

from functools import partial
from typing import TYPE_CHECKING

from tapegrad.ops.table.public import refuse
from tapegrad.runtime.later import later

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
    __getattr__ = later(
        __name__,
        {
            ".adafactor": "Adafactor", ".adam": "Adam AdamW", ".adam_like": "Adamax NAdam RAdam",
            ".adaptive": "Adadelta Adagrad RMSprop Rprop", ".lbfgs": "LBFGS", ".muon": "Muon",
            ".optimizer": "Optimizer", ".sgd": "ASGD SGD",
        },
        "lr_scheduler optimizer swa_utils",
        partial(refuse, __name__),
    )  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
