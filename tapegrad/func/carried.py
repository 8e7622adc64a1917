"""What loops take: nested containers of values, whose structure, shapes and dtypes are the same in all turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.func.trees import flatten, flatten_like, is_like, leaf_names, rebuild, structure
from tapegrad.ops.creation import as_tensor
from tapegrad.ops.table import functions as ops
from tapegrad.tensor import Tensor, from_array

_NUMBERS: Final = (bool, int, float, complex)
_KINDS: Final = "biufc"  # of dtypes: each has the numbers of those before


class Values:
    """Nested containers of tensors, arrays and numbers, which are tensors from now on; None is no value.

    Parameters
    ----------
    tree : nested containers
    api, name : str
        The function and its argument, for messages.

    Attributes
    ----------
    tree : nested containers
    leaves : list of Tensor
    has_tensors : bool
        Whether the user gave a tensor.
    """

    def __init__(self, tree: Any, api: str, name: str) -> None:
        self.api, self.name = api, name
        found, names = flatten(tree), leaf_names(tree, name)
        self.places = [place for place, leaf in enumerate(found) if leaf is not None]
        self.names = [names[place] for place in self.places]
        self.numbers = [found[place].__class__ in _NUMBERS for place in self.places]
        self.has_tensors = any(isinstance(leaf, Tensor) for leaf in found)
        self.leaves = [_tensor(found[place], f"{api}: {names[place]}") for place in self.places]
        self._count, self._template = len(found), tree
        self.tree = self.with_leaves(self.leaves)

    def with_leaves(self, leaves: Sequence[Any]) -> Any:
        """Return the containers with other leaves."""
        whole: list[Any] = [None] * self._count
        for place, leaf in zip(self.places, leaves, strict=True):
            whole[place] = leaf
        return rebuild(self._template, whole)


def _tensor(value: Any, what: str) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, (np.ndarray, np.generic, *_NUMBERS)):
        raise TypeError(f"{what} must be a tensor, an array or a number, got {type(value).__name__}")
    found = as_tensor(value)
    if not modes.is_traced():
        return found
    data = np.asarray(found._data).view()
    data.flags.writeable = False  # a constant of the program
    return from_array(data)


class Carried(Values):
    """A value that is carried from turn to turn."""

    def next(self, turn: Callable[..., Any], value: Any, row: Any) -> tuple[Any, Any]:
        """Return the next value, and what a turn returns besides.

        A Python number that the loop begins with has no dtype of its own: it takes that which the first turn returns.
        """
        result, more = turn(value, row)
        if result.__class__ is Tensor and self._count == 1 and value.__class__ is Tensor:
            new, old = result._layout, value._layout
            if new.shape == old.shape and new.dtype == old.dtype:
                return result, more
        leaves = self.leaves_of(result)
        if value is self.tree and self.promote(leaves):
            result, more = turn(self.tree, row)
            leaves = self.leaves_of(result)
        self.check(leaves)
        return self.with_leaves(leaves), more

    def leaves_of(self, result: Any) -> list[Tensor]:
        """Return the leaves of what a turn returned, as tensors.

        Raises
        ------
        TypeError
            If it has another structure.
        """
        if not is_like(result, self._template):
            raise TypeError(
                f"{self.api}: the next carried value must have the structure of {self.name}, "
                f"{structure(self._template)}, got {structure(result)}"
            )
        found = flatten_like(result, self._template)
        if self._count > len(self.places):
            names = leaf_names(self._template, self.name)
            for place, leaf in enumerate(found):
                if (leaf is None) == (place in self.places):
                    raise TypeError(
                        f"{self.api}: {names[place]} is {'a value' if leaf is None else 'None'}, and the next carried "
                        f"value has {'None' if leaf is None else 'a value'} there"
                    )
        leaves = []
        for place, name, own in zip(self.places, self.names, self.leaves, strict=True):
            leaf = found[place]
            if leaf.__class__ in _NUMBERS and own.dtype.kind != "b" and not own.ndim:
                leaf = as_tensor(leaf, own.dtype) if _fits(type(leaf), own.dtype) else as_tensor(leaf)
            leaves.append(_tensor(leaf, f"{self.api}: the next {name}"))
        return leaves

    def promote(self, leaves: Sequence[Tensor]) -> bool:
        """Let Python numbers take the dtypes of a turn's results if they can; return whether one has changed."""
        changed = False
        for place, (leaf, own) in enumerate(zip(leaves, self.leaves, strict=True)):
            is_wider = _KINDS.index(leaf.dtype.kind) >= _KINDS.index(own.dtype.kind)
            if self.numbers[place] and leaf.dtype != own.dtype and is_wider:
                self.leaves[place], self.numbers[place], changed = as_tensor(own, leaf.dtype), False, True
        if changed:
            self.tree = self.with_leaves(self.leaves)
        return changed

    def check(self, leaves: Sequence[Tensor]) -> None:
        """Raise an error if a turn's result has other shapes or dtypes."""
        for name, leaf, own in zip(self.names, leaves, self.leaves, strict=True):
            new, old = leaf._layout, own._layout
            if new.shape != old.shape or new.dtype != old.dtype:
                what = "shapes" if new.shape != old.shape else "dtypes"
                repair = (
                    "begin with zeros of the shape that it gets"
                    if what == "shapes"
                    else f"begin with a value of dtype {new.dtype}, or convert it by .to({str(old.dtype)!r})"
                )
                raise TypeError(
                    f"{self.api}: {name} is {_shown(own)}, and the next value is {_shown(leaf)}: their {what} differ; "
                    f"{repair}"
                )


def _shown(tensor: Tensor) -> str:
    return f"{tensor.dtype}{list(tensor.shape)}"


def _fits(kind: type, dtype: Any) -> bool:
    """Whether a Python number becomes one of a dtype, as in arithmetic."""
    return dtype.kind in {bool: "b", int: "iufc", float: "fc", complex: "c"}[kind]


def length_of(rows: Values, length: int | None) -> int:
    """Return how many turns a scan has.

    Raises
    ------
    ValueError
        If arrays have different lengths, or no length is known.
    """
    for name, own in zip(rows.names, rows.leaves, strict=True):
        if not own.ndim:
            raise ValueError(f"scan: {name} is a number, and has no rows; let f take it from outside")
    lengths: dict[str, int] = {name: int(own.shape[0]) for name, own in zip(rows.names, rows.leaves, strict=True)}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} has {own}" for name, own in lengths.items())
        raise ValueError(f"scan: all xs must have the same number of rows: {shown}")
    if length is not None:
        if isinstance(length, bool) or not isinstance(length, (int, np.integer)):
            raise TypeError(f"scan: length must be an integer, got {type(length).__name__}")
        if length < 0:
            raise ValueError(f"scan: length must not be negative, got {length}")
        for name, count in lengths.items():
            if count != length:
                raise ValueError(f"scan: length is {length}, and {name} has {count} rows")
        return int(length)
    if not lengths:
        raise ValueError("scan: there is neither an array in xs nor a length; give the number of turns as length=")
    return next(iter(lengths.values()))


def rows_of(rows: Values) -> list[Sequence[Tensor]]:
    """Return the rows of each array."""
    return [ops.unbind(own, 0) for own in rows.leaves]
