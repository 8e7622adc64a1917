"""Comparing Jacobians: where two of them differ most, and by how much."""

from __future__ import annotations

import numpy as np

from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["GradcheckError", "Limits", "Part", "compare"]


class GradcheckError(RuntimeError):
    """The error of `gradcheck`, `gradgradcheck` and `jvpcheck`: derivatives differ from finite differences.

    Examples
    --------
    >>> import tapegrad as tg
    >>> issubclass(tg.testing.GradcheckError, RuntimeError)
    True
    """


class Limits(NamedTuple):
    """How a check moves the inputs, and when numbers agree: if they differ by at most `atol + rtol * |numerical|`."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float = 0.0


class Part(NamedTuple):
    """What a part of a Jacobian is of: a row for each element of the input, a column for each element of the output.

    Without words for an input it has one row: the slopes along tangents of all inputs.
    """

    mismatch: str
    output: str
    output_shape: tuple[int, ...]
    input: str = ""
    input_shape: tuple[int, ...] = ()
    mode: str = "backward"
    reference: str = "finite differences"


def compare(actual: np.ndarray, expected: np.ndarray, error: np.ndarray, limits: Limits, part: Part) -> None:
    """Raise a GradcheckError if a part of a Jacobian differs from the expected one, whose error is estimated."""
    allowed = np.asarray(limits.atol + limits.rtol * np.abs(expected))
    with np.errstate(all="ignore"):
        difference = np.abs(actual - expected)
        close = (difference <= allowed) | (actual == expected)
    if close.all():
        return
    excess = np.where(close, -1.0, np.where(np.isnan(difference), np.inf, difference))
    worst = np.unravel_index(int(excess.argmax()), excess.shape)
    place = _element(part.output, part.output_shape, int(worst[1]))
    if part.input:
        place += f", differentiated by {_element(part.input, part.input_shape, int(worst[0]))}"
    ratio = f" (ratio {np.round(actual[worst] / expected[worst], 6)})" if expected[worst] else ""
    lines = [
        part.mismatch + ("," if part.reference == "finite differences" else "."),
        f"numerical:{expected}\nanalytical:{actual}" if part.reference == "finite differences" else "",
        f"{int((~close).sum())} of {close.size} numbers differ, the largest difference is that of {place}:",
        f"{part.reference} give {expected[worst]:.10g}, {part.mode} gives {actual[worst]:.10g}{ratio};",
        f"they differ by {difference[worst]:.3g}, {allowed[worst]:.3g} is allowed.",
    ]
    if not error[worst] <= allowed[worst]:
        lines.append(
            f"The finite differences are uncertain there, by {error[worst]:.3g}: the function may jump or have a kink "
            "near this point, or computes in low precision. Move the point, change eps, or use float64."
        )
    raise GradcheckError("\n".join(line for line in lines if line))


def _element(words: str, shape: tuple[int, ...], flat: int) -> str:
    index = [int(k) for k in np.unravel_index(flat, shape)] if shape else []
    return f"element {index} of {words}" if index else words
