"""Composites: orthogonal polynomials, each by its recurrence of three terms (DLMF 18.9).

A degree may be a tensor of integers; then all degrees up to the largest are computed, and each element takes its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.lib import scimath

from tapegrad.dtypes import default_dtype
from tapegrad.forward.scipy import scipy_function
from tapegrad.ops.arithmetic import where
from tapegrad.ops.casts import cast
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, values_of
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import SPECIAL, Names, register
from tapegrad.tensor import Tensor

_ONLY: Final = Names(namespaces=(SPECIAL,))
# Of a point x and a degree k: the polynomial of degree 1, and that of degree k + 1 from those of k and k - 1.
First = Callable[[Any], Any]
Next = Callable[[Any, int, Any, Any], Any]


def _polynomial(
    name: str, kind: str, formulas: tuple[str, str], oracle: Callable[..., Any], first: First, following: Next
) -> None:
    """Make a family of polynomials public, and, of Chebyshev's, the shifted one: at 2x - 1."""

    def family(name: str, kind: str, u: str, point_of: Callable[[Any], Any]) -> None:
        def polynomial(input: Any, n: Any) -> Tensor:
            x, degrees = as_operand(input, name, "input", 1), np.trunc(values_of(n, name, "n", 2))
            if not x._layout.floating:
                x = cast(x, default_dtype())
            point = point_of(x)
            before, p = 0 * x + 1, first(point)
            result = where(degrees == 0, before, where(degrees == 1, p, 0 * x))
            for k in range(1, int(degrees.max(initial=0))):
                before, p = p, following(point, k, p, before)
                result = where(degrees == k + 1, p, result)
            return result

        def by_numpy(input: Any, n: Any) -> Any:
            return np.asarray(oracle(n, point_of(input)), input.dtype)

        polynomial.__name__ = polynomial.__qualname__ = name
        polynomial.__doc__ = _DOC.format(
            kind=kind, name=name, u=u, first=formulas[0], next=formulas[1], value=float(oracle(2, point_of(0.25)))
        )
        samples = tuple([Sample(((2, 3),), {"n": degree}) for degree in (0, 1, 4, np.array([2, 0, 3]))])
        made = composite(samples, by_numpy, real_only=True)(polynomial)
        register(name, made, _ONLY)

    family(name, kind, "x", lambda x: x)
    if following is _chebyshev:
        family(f"shifted_{name}", f"Shifted {kind}", "2 x - 1", lambda x: 2 * x - 1)


_DOC: Final = """{kind} at `input`.

    With :math:`u = {u}`, :math:`p_0 = 1` and :math:`p_1 = {first}`, :math:`p_{{k+1}} = {next}`.

    Parameters
    ----------
    input : Tensor, array or number
    n : int, or Tensor or array of integers
        The degree, broadcast with `input`; below 0 the result is 0. It has no gradient.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> print(f"{{tg.special.{name}(tg.tensor(0.25), 2).item():.4f}}")
    {value:.4f}
    """


def _chebyshev(x: Any, k: int, p: Any, before: Any) -> Any:
    return 2 * x * p - before


def _of_angle(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return the Chebyshev polynomial that is a quotient of a function of (n + 1/2) t and of t/2 (DLMF 18.5)."""

    def polynomial(n: Any, x: Any) -> Any:
        angle = scimath.arccos(np.asarray(x, complex))
        return (function((n + 0.5) * angle) / function(0.5 * angle)).real

    return polynomial


_KIND: Final = "Chebyshev polynomials of the {} kind"
_CHEBYSHEV: Final = "2 u p_k - p_{k-1}"
_polynomial(
    "chebyshev_polynomial_t", _KIND.format("first"), ("u", _CHEBYSHEV), scipy_function("eval_chebyt"), lambda x: x,
    _chebyshev,
)  # fmt: skip
_polynomial(
    "chebyshev_polynomial_u", _KIND.format("second"), ("2 u", _CHEBYSHEV), scipy_function("eval_chebyu"),
    lambda x: 2 * x, _chebyshev,
)  # fmt: skip
_polynomial(
    "chebyshev_polynomial_v", _KIND.format("third"), ("2 u - 1", _CHEBYSHEV), _of_angle(np.cos), lambda x: 2 * x - 1,
    _chebyshev,
)  # fmt: skip
_polynomial(
    "chebyshev_polynomial_w", _KIND.format("fourth"), ("2 u + 1", _CHEBYSHEV), _of_angle(np.sin), lambda x: 2 * x + 1,
    _chebyshev,
)  # fmt: skip
_polynomial(
    "hermite_polynomial_h", "Hermite polynomials of physicists", ("2 u", "2 u p_k - 2 k p_{k-1}"),
    scipy_function("eval_hermite"), lambda x: 2 * x,
    lambda x, k, p, before: 2 * x * p - 2 * k * before,
)  # fmt: skip
_polynomial(
    "hermite_polynomial_he", "Hermite polynomials of probabilists", ("u", "u p_k - k p_{k-1}"),
    scipy_function("eval_hermitenorm"), lambda x: x,
    lambda x, k, p, before: x * p - k * before,
)  # fmt: skip
_polynomial(
    "laguerre_polynomial_l", "Laguerre polynomials", ("1 - u", "((2 k + 1 - u) p_k - k p_{k-1})/(k + 1)"),
    scipy_function("eval_laguerre"), lambda x: 1 - x,
    lambda x, k, p, before: ((2 * k + 1 - x) * p - k * before) / (k + 1),
)  # fmt: skip
_polynomial(
    "legendre_polynomial_p", "Legendre polynomials", ("u", "((2 k + 1) u p_k - k p_{k-1})/(k + 1)"),
    scipy_function("eval_legendre"), lambda x: x,
    lambda x, k, p, before: ((2 * k + 1) * x * p - k * before) / (k + 1),
)  # fmt: skip
