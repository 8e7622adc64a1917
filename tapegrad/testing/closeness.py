"""`assert_close`: whether two results agree, element by element, and where they do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.tensor import Tensor

#: PyTorch's tolerances, relative and absolute; other dtypes must be equal.
_TOLERANCES: Final = {
    "float32": (1.3e-6, 1e-5), "complex64": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7), "complex128": (1e-7, 1e-7),
}  # fmt: skip
_NUMBERS: Final = (bool, int, float, complex)
Message = str | Callable[[str], str] | None


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
    check_stride: bool = False, msg: Message = None,
) -> None:  # fmt: skip
    """Raise unless two results agree up to rounding: ``abs(actual - expected) <= atol + rtol * abs(expected)``.

    Parameters
    ----------
    actual, expected : Tensor, array or number, or a sequence or mapping of such
    allow_subclasses : bool
        Whether they may be of different types of which one is derived from the other.
    rtol, atol : float, optional
        Both or none; the default depends on the dtype: 1.3e-6 and 1e-5 for float32, 1e-7 each for float64, and 0 for
        integers.
    equal_nan : bool
        Whether nan agrees with nan.
    check_device, check_layout : bool
        Of no effect: there is one of each.
    check_dtype, check_stride : bool
        Whether these must be the same, too.
    msg : str or callable, optional
        The message of the error; a function gets the message, and returns another.

    Raises
    ------
    AssertionError
        If they do not agree.
    ValueError
        If only one of `rtol` and `atol` is given.
    TypeError
        If there is nothing to compare numbers in.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.testing.assert_close(tg.ones(2) + 1e-9, tg.ones(2))
    >>> tg.testing.assert_close(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 3.0]))
    Traceback (most recent call last):
        ...
    AssertionError: Tensor-likes are not close!
    <BLANKLINE>
    Mismatched elements: 1 / 2 (50.0%)
    Greatest absolute difference: 1.0 at index (1,) (up to 1e-07 allowed)
    Greatest relative difference: 0.3333333333333333 at index (1,) (up to 1e-07 allowed)
    """
    if (rtol is None) is not (atol is None):
        raise ValueError(f"rtol and atol must both be specified or both be unspecified, but got {rtol=} and {atol=}")
    found = _difference(actual, expected, (rtol, atol), equal_nan, check_dtype, check_stride)
    if found:
        raise AssertionError(msg(found) if callable(msg) else msg or found)


def _difference(actual: Any, expected: Any, *how: Any, at: str = "") -> str:
    """Return what is different, or nothing."""
    where = f"\n\nThe failure occurred for item {at}" if at else ""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            lacks, has = (
                [key for key in one if key not in two] for one, two in ((expected, actual), (actual, expected))
            )
            words = (f"Missing keys in the actual mapping: {lacks}", f"Additional keys in the actual mapping: {has}")
            said = [line for line, keys in zip(words, (lacks, has), strict=True) if keys]
            return "\n".join(["The keys of the mappings do not match:", *said]) + where
        pairs: Any = ((f"[{key!r}]", actual[key], expected[key]) for key in expected)
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}" + where
        pairs = ((f"[{number}]", *pair) for number, pair in enumerate(zip(actual, expected, strict=True)))
    else:
        found = _of_arrays(actual, expected, *how)
        return found and found + where
    return next(filter(None, (_difference(*pair, *how, at=at + own) for own, *pair in pairs)), "")


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _array(value: Any) -> np.ndarray:
    if isinstance(value, (Tensor, np.ndarray, np.generic, *_NUMBERS)):
        return np.asarray(value.detach().numpy() if isinstance(value, Tensor) else value)
    raise TypeError(f"No comparison pair was able to handle inputs of type {type(value)} and {type(value)}.")


def _of_arrays(
    actual: Any, expected: Any, tolerances: tuple[Any, Any], equal_nan: bool, check_dtype: bool, check_stride: bool
) -> str:
    if actual is None and expected is None:
        return ""
    a, b = _array(actual), _array(expected)
    are_numbers = isinstance(actual, _NUMBERS) and isinstance(expected, _NUMBERS)
    checks = (("shape", True), ("dtype", check_dtype and not are_numbers), ("strides", check_stride))
    for name, is_checked in checks:
        if is_checked and getattr(a, name) != getattr(b, name):
            return f"The values for attribute {name!r} do not match: {getattr(a, name)} != {getattr(b, name)}."
    kinds = [_TOLERANCES.get(array.dtype.name, (0.0, 0.0)) for array in (a, b)]
    rtol, atol = tolerances if tolerances[0] is not None else map(max, zip(*kinds, strict=True))
    wide = np.result_type(a, b, np.int64) if "c" not in (a.dtype.kind, b.dtype.kind) else np.complex128
    a, b = a.astype(wide), b.astype(wide)
    close = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    return "" if close.all() else _report(a, b, close, rtol, atol)


def _report(a: np.ndarray, b: np.ndarray, close: np.ndarray, rtol: float, atol: float) -> str:
    """Return PyTorch's message."""
    with np.errstate(all="ignore"):
        absolute = np.where(close, 0, np.abs(a - b))
        relative = np.where(close, 0, absolute / np.abs(b))
    equal = not (rtol or atol)
    differences = (("absolute", absolute, atol), ("relative", relative, rtol))
    if not a.ndim:
        what = f"Scalars are not {'equal' if equal else 'close'}!"
        parts = [f"Expected {b} but got {a}."]
        parts += [
            f"{kind.capitalize()} difference: {found}" + (f" (up to {most} allowed)" if not equal else "")
            for kind, found, most in differences
        ]
        return "\n".join([what, "", *parts])
    what = f"Tensor-likes are not {'equal' if equal else 'close'}!"
    wrong = int(np.count_nonzero(~close))
    parts = [f"Mismatched elements: {wrong} / {a.size} ({wrong / a.size:.1%})"]
    for kind, found, most in differences:
        place = tuple(map(int, np.unravel_index(int(found.argmax()), found.shape)))
        allowed = f" (up to {most} allowed)" if not equal else ""
        parts.append(f"Greatest {kind} difference: {found[place]} at index {place}{allowed}")
    return "\n".join([what, "", *parts])
