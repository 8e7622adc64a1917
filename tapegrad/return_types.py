"""The classes of named results: named tuples that print as PyTorch's do."""

from __future__ import annotations

import functools
from typing import Any, TypeVar, cast

T = TypeVar("T", bound=tuple[Any, ...])


def return_type(fields: type[T], name: str) -> type[T]:
    """Return the class of a function's results, `tapegrad.return_types.NAME`.

    Parameters
    ----------
    fields : type
        A named tuple with the fields.
    name : str
        The function's, with ``linalg_`` before it if it is in `linalg`, as PyTorch names these classes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.max(tg.tensor([1.0, 3.0]), 0)
    tapegrad.return_types.max(
    values=tensor(3.),
    indices=tensor(1))
    """
    made: type[T] = cast(Any, type(fields))(
        name, (fields,), {"__module__": __name__, "__repr__": _shown, "fields": fields}
    )
    globals()[name] = made
    return made


def _shown(self: Any) -> str:
    """Return the text that PyTorch shows: a line for each result."""
    values = [f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True)]
    return f"tapegrad.return_types.{type(self).__name__}(\n" + ",\n".join(values) + ")"


def __getattr__(name: str) -> Any:
    """Return a class whose function was not called yet: to name the function loads the file that makes the class."""
    import tapegrad

    if not name.startswith("_"):
        functools.reduce(getattr, name.replace("linalg_", "linalg.").split("."), tapegrad)
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
