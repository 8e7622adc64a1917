"""Neural networks: functions, initial values of parameters, modules. Modules are imported when one is first used."""

import sys
from typing import TYPE_CHECKING, Any

from tapegrad.nn import functional, init
from tapegrad.ops.table.public import refuse

__all__ = ["Buffer", "Parameter", "attention", "functional", "init", "modules", "parameter", "utils"]

if TYPE_CHECKING:
    from tapegrad.nn import attention, modules, parameter, utils
    from tapegrad.nn.modules import *
    from tapegrad.nn.parameter import Buffer, Parameter
else:
    _LATER = ("attention", "modules", "parameter", "utils")  # files, imported when they are first used

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name in _LATER:
            return import_module(f"{__name__}.{name}")
        if not name.startswith("__"):
            for file in ("parameter", "modules"):
                found = getattr(import_module(f"{__name__}.{file}"), name, None)
                if isinstance(found, type):
                    setattr(sys.modules[__name__], name, found)
                    return found
        return refuse(__name__, name)

    def __dir__() -> list[str]:
        from tapegrad.nn import modules

        names = (name for name, value in vars(modules).items() if isinstance(value, type))
        return sorted({*__all__, *globals(), *names})
