"""How a tensor is printed: `format_tensor` returns the text that torch prints for the same values.

The rules are those of torch 2.13; ``tests/test_printing.py`` compares the outputs. `format_tensor` picks the values to
show (`_on_show`), chooses one style for them (`_column`), lays them out (`_lay_out`), and appends the suffixes
(`_append`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["format_tensor", "set_printoptions"]

_HEAD = "tensor("
_HIDDEN = " ..."  # its leading space, after ", ", is what gives torch's double space before the dots


class _Options(NamedTuple):
    precision: int = 4
    threshold: float = 1000  # a float, because the "full" profile is infinite
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None  # None: decided from the values


_PROFILES = {
    "default": _Options(),
    "short": _Options(precision=2, edgeitems=2),
    "full": _Options(threshold=math.inf),
}
_LOWEST = {"precision": 0, "threshold": 0, "edgeitems": 0, "linewidth": 1}
_options = _PROFILES["default"]
_FLOAT64: np.dtype = np.dtype(np.float64)


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: Literal["default", "short", "full"] | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Choose how tensors are printed, for the whole process.

    An option that is None keeps its value, except `sci_mode`: as in torch, every call sets it, and None restores the
    automatic choice.

    Parameters
    ----------
    precision : int, optional
        Digits after the point of floats that are not whole (4 at first).
    threshold : float, optional
        Arrays of more elements than this are summarised (1000 at first); ``math.inf`` never summarises.
    edgeitems : int, optional
        Items shown at each end of a summarised axis (3 at first). With 0, ``size=`` is printed in place of values.
    linewidth : int, optional
        Columns after which a line breaks (80 at first).
    profile : {"default", "short", "full"}, optional
        A set of values that replaces the current ones before the other arguments are applied.
    sci_mode : bool, optional
        True: always ``1.0000e+00``; False: never; None: when the values on show need it.

    Raises
    ------
    ValueError
        If the profile is unknown or an option is out of range. Nothing is changed then.

    Examples
    --------
    >>> import numpy as np
    >>> set_printoptions(precision=2)
    >>> format_tensor(np.array([1 / 3]))
    'tensor([0.33])'
    >>> set_printoptions(profile="default")
    """
    global _options
    if profile is not None and profile not in _PROFILES:
        raise ValueError(f"set_printoptions: profile={profile!r} is unknown; choose from {list(_PROFILES)}")
    base = _options if profile is None else _PROFILES[profile]
    chosen = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    for name, value in changes.items():
        if not value >= _LOWEST[name]:
            raise ValueError(f"set_printoptions: {name}={value!r} is too small; the least is {_LOWEST[name]}")
    _options = base._replace(sci_mode=sci_mode, **changes)


def format_tensor(
    data: np.ndarray | np.generic,
    *,
    default_dtype: np.dtype = _FLOAT64,
    suffixes: Sequence[str] = (),
) -> str:
    """Return the text that torch prints for a tensor of these values.

    Parameters
    ----------
    data : ndarray or NumPy scalar
        Values of any shape and of a boolean, integer, floating or complex dtype.
    default_dtype : dtype, default float64
        The floating dtype that is not printed; the complex dtype of its precision is not printed either.
    suffixes : sequence of str, optional
        Further words, such as ``requires_grad=True`` or ``grad_fn=<MulBackward0>``, which come after ``size=`` and
        ``dtype=`` and are wrapped like these.

    Returns
    -------
    str
        One or more lines, without a newline at the end.

    Examples
    --------
    >>> import numpy as np
    >>> format_tensor(np.array([1.0, -2.5]), suffixes=["requires_grad=True"])
    'tensor([ 1.0000, -2.5000], requires_grad=True)'
    >>> format_tensor(np.zeros((0, 3), np.float32))
    'tensor([], size=(0, 3), dtype=float32)'
    """
    options = _options
    array = np.asarray(data)
    summarise = array.size > options.threshold
    # the brackets of an empty tensor show one axis only; with edgeitems=0 torch prints every shape
    tell_shape = array.ndim != 1 if array.size == 0 else options.edgeitems == 0
    words = [f"size={array.shape}"] if tell_shape else []
    if array.size == 0:
        body = "[]"
    elif summarise and options.edgeitems == 0 and array.ndim:
        body = "[...]"
    else:
        shown = _on_show(array, options.edgeitems) if summarise else array
        cut = tuple(small != whole for small, whole in zip(shown.shape, array.shape, strict=True))
        body = _lay_out(shown, _column(shown, options), len(_HEAD), options, cut)
    if _needs_dtype(array.dtype, array.size == 0, np.dtype(default_dtype)):
        words.append(f"dtype={array.dtype.name}")
    return _append(_HEAD + body, [*words, *suffixes], options.linewidth) + ")"


@functools.lru_cache(maxsize=256)  # asking dtypes for their names takes 20 µs
def _needs_dtype(dtype: np.dtype, is_empty: bool, default: np.dtype) -> bool:
    """Whether ``dtype=`` is printed, as the values do not show the dtype. Names are compared: byte order is ignored."""
    told = {default.name}
    if not is_empty:  # no value shows whether an empty tensor is of bool, int64 or complex
        told |= {"bool", "int64", np.result_type(default, np.complex64).name}
    return dtype.name not in told


class _Column(NamedTuple):
    """The style of all elements of a tensor: the width in characters, and the function that writes an element."""

    width: int
    write: Callable[[Any], str]


def _column(shown: np.ndarray, options: _Options) -> _Column:
    if shown.dtype.kind == "c":
        return _complex_column(shown, options)
    if shown.dtype.kind == "f":
        return _float_column(shown, options)
    width = max(len(str(value)) for value in shown.ravel().tolist())
    return _Column(width, lambda value: str(value).rjust(width))


def _float_column(shown: np.ndarray, options: _Options) -> _Column:
    """Return the style of floats: whole, fixed or scientific. Values that are 0, infinite or nan do not decide it."""
    # A longdouble beyond float64 prints as inf. Few numbers: lists are faster than arrays.
    values = [value for value in map(float, shown.ravel().tolist()) if math.isfinite(value) and value]
    whole = all(value.is_integer() for value in values)
    low, high = (min(map(abs, values)), max(map(abs, values))) if values else (1.0, 1.0)
    scientific = high / low > 1000 or high > 1e8 or low < 1e-4
    if options.sci_mode is not None and values:  # without other values, 0 is "0." in every mode
        scientific = options.sci_mode

    if scientific:
        spec, point = f".{options.precision}e", ""
    elif whole:
        spec, point = ".0f", "."
    else:
        spec, point = f".{options.precision}f", ""

    def digits(value: float) -> str:
        return format(value, spec) + (point if math.isfinite(value) else "")

    # as in torch, 0, inf and nan do not widen the column: they may overrun a line or stand unaligned
    width = max((len(digits(value)) for value in values), default=1)
    return _Column(width, lambda value: digits(float(value)).rjust(width))


def _complex_column(shown: np.ndarray, options: _Options) -> _Column:
    """Return the style of complex numbers: two styles of floats. Only the real part is aligned, as in torch."""
    real, imag = _float_column(shown.real, options), _float_column(shown.imag, options)

    def write(value: complex) -> str:
        tail = imag.write(value.imag).lstrip() + "j"
        return real.write(value.real) + (tail if tail.startswith("-") else "+" + tail)

    return _Column(real.width + imag.width + 1, write)  # 1: the "j"


def _on_show(array: np.ndarray, edge: int) -> np.ndarray:
    """Return the values to show: of each axis that is too long, its two ends. Hidden values do not affect the style."""
    for axis, length in enumerate(array.shape):
        if length > 2 * edge:
            array = array.take([*range(edge), *range(length - edge, length)], axis=axis)
    return array


def _lay_out(shown: np.ndarray, column: _Column, indent: int, options: _Options, cut: Sequence[bool]) -> str:
    """Return the text of the values, which begins at column `indent`, with dots in each axis that was `cut`."""
    if shown.ndim == 0:
        return column.write(shown.item())
    margin = " " * (indent + 1)
    if shown.ndim == 1:
        words = [column.write(value) for value in shown.tolist()]
        if cut[0]:
            words.insert(options.edgeitems, _HIDDEN)
        per_line = max(1, (options.linewidth - indent) // (column.width + len(", ")))
        lines = [", ".join(words[start : start + per_line]) for start in range(0, len(words), per_line)]
        return "[" + (",\n" + margin).join(lines) + "]"
    blocks = [_lay_out(block, column, indent + 1, options, cut[1:]) for block in shown]
    if cut[0]:
        blocks.insert(options.edgeitems, _HIDDEN.lstrip())
    # one line break between rows, a blank line between matrices, one more for each further axis
    return "[" + ("," + "\n" * (shown.ndim - 1) + margin).join(blocks) + "]"


def _append(text: str, words: Sequence[str], linewidth: int) -> str:
    """Append each word after a comma, on a new line if it would pass `linewidth`."""
    # torch keeps two columns free on a line that begins with values (for ")" and a spare one), none on a line that
    # begins with a word
    used = len(text) - (text.rfind("\n") + 1) + 2
    for word in words:
        # torch writes "dtype=torch.float32": count the same length, so that lines break at the same word
        length = len(word) + (len("torch.") if word.startswith("dtype=") else 0)
        if used + len(", ") + length > linewidth:
            text += ",\n" + " " * len(_HEAD) + word
            used = len(_HEAD) + length
        else:
            text += ", " + word
            used += len(", ") + length
    return text
