"""Files of `tapegrad.ops` are imported when a name that stands in them is first used: all take as long as the rest.

`tapegrad.ops.table.places`, which `tools/stubs.py` writes, says where each name stands.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import FrameType, SimpleNamespace
from typing import Any, Final

from tapegrad.ops.table.places import PLACES
from tapegrad.runtime.locks import hold_while_forking, module_lock

OPS: Final = "tapegrad.ops."
RULES: Final = "rules"  # the list of what rules call
# The file of each name, by the lists.
files: Final = {
    place: {name: file for file, names in found.items() for name in names.split()} for place, found in PLACES.items()
}
built_in: Final[dict[str, Any]] = {}  # the ops of these files, also such as the table does not list
complete: Final[set[str]] = set()  # files that were imported to their end
_lock = module_lock()
hold_while_forking(_lock)  # a child that is forked within an import would never get to its end


def load(place: str, name: str) -> bool:
    """Import the file in which a name stands that a list has; return whether there is one."""
    file = files.get(place, {}).get(name)
    if file is not None:
        with _lock:
            import_module(OPS + file)
            complete.add(file)
    return file is not None


def load_all() -> None:
    """Import all files that have public functions."""
    with _lock:
        for file in sorted({file for files in PLACES.values() for file in files}):
            import_module(OPS + file)


def importing() -> str:
    """Return the file of `tapegrad.ops` that is being imported, without suffix; "" outside of all.

    What it makes belongs to it: if its import was interrupted, the next one makes all anew.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "<module>" and name.startswith(OPS):
            return str(name.removeprefix(OPS))
        frame = frame.f_back
    return ""


class Functions(SimpleNamespace):
    """Functions that rules call, by name. The file in which one stands is imported when it is first called."""

    def __init__(self) -> None:
        super().__init__()
        vars(self)["_files"] = {}

    def __setattr__(self, name: str, value: object) -> None:
        vars(self)["_files"][name] = importing()
        vars(self)[name] = value

    def __getattr__(self, name: str) -> Any:
        if not load(RULES, name):
            raise AttributeError(f"there is no function {name} for rules", name=name, obj=self)
        return vars(self)[name]


class Table(dict[str, Any]):
    """Ops by name. The file in which one stands is imported when it is first asked for."""

    def __setitem__(self, name: str, op: Any) -> None:
        super().__setitem__(name, op)
        if op.file:
            built_in[name] = op

    def __missing__(self, name: str) -> Any:
        if load(RULES, name) and name in self:
            return self[name]
        raise KeyError(name)


class Later:
    """An attribute of a class that is made when it is first used, and stands there from then on."""

    __slots__ = ("_make", "_name", "_owner")

    def __init__(self, owner: type, name: str, make: Callable[[], Any]) -> None:
        self._owner, self._name, self._make = owner, name, make

    def __get__(self, instance: Any, owner: type) -> Any:
        setattr(self._owner, self._name, self._make())
        return getattr(owner if instance is None else instance, self._name)

    def __set__(self, instance: Any, value: Any) -> None:
        setattr(self._owner, self._name, self._make())
        setattr(instance, self._name, value)
