"""Settings that programs written for PyTorch make: they are kept, and change nothing, as the results say already."""

from __future__ import annotations

import warnings
from typing import Final

from tapegrad.ops.table.public import public

_PRECISIONS: Final = ("highest", "high", "medium")
_settings: Final[dict[str, object]] = {"deterministic": False, "precision": "highest"}


@public()
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for results that are the same in each run: they are so in any case.

    Parameters
    ----------
    mode : bool
    warn_only : bool
        Without effect.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.use_deterministic_algorithms(False)
    """
    _settings["deterministic"] = bool(mode)


@public()
def are_deterministic_algorithms_enabled() -> bool:
    """Return what `use_deterministic_algorithms` was told last; False at first.

    Returns
    -------
    bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.are_deterministic_algorithms_enabled()
    False
    """
    return bool(_settings["deterministic"])


@public()
def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of matrices in single precision to lose digits: they never do.

    Parameters
    ----------
    precision : {"highest", "high", "medium"}

    Warns
    -----
    UserWarning
        If it is another word.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.set_float32_matmul_precision("highest")
    """
    if precision in _PRECISIONS:
        _settings["precision"] = precision
    else:
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; set_float32_matmul_precision() has no effect",
            stacklevel=2,
        )


@public()
def get_float32_matmul_precision() -> str:
    """Return what `set_float32_matmul_precision` was told last; "highest" at first.

    Returns
    -------
    str

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.get_float32_matmul_precision()
    'highest'
    """
    return str(_settings["precision"])
