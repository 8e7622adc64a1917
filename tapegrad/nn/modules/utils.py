"""What the files of users' own modules import: one number for several dimensions, and prefixes of states."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single: Final = _ntuple(1, "_single")
_pair: Final = _ntuple(2, "_pair")
_triple: Final = _ntuple(3, "_triple")
_quadruple: Final = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    return tuple(value for value in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix off the names of a state, in place: of a module that was a member of another when it was saved.

    Parameters
    ----------
    state_dict : dict
    prefix : str
        E.g. ``"module."``.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.nn.modules.utils import consume_prefix_in_state_dict_if_present
    >>> state = {"module.weight": tg.ones(1), "step": tg.zeros(1)}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> sorted(state)
    ['step', 'weight']
    """
    metadata = getattr(state_dict, "_metadata", {})
    for names, own in ((state_dict, prefix), (metadata, prefix.rstrip("."))):
        for name in [name for name in names if name.startswith(own)]:
            names[name[len(own) :].lstrip("." if names is metadata else "")] = names.pop(name)
