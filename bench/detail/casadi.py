"""CasADi's sparse matrices, beside ours: Hessians of a graph of scalars, and the Jacobian of mapped observations."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.programs.bundle import errors
from bench.timing import Run


def functions(count: int) -> dict[str, Callable[[np.ndarray], Run]]:
    """Return CasADi's functions of the same matrices, by names: from a point to a call over given memory.

    Its Hessians are of a graph of scalars, coloured by itself. For the Jacobian it gets each observation's camera and
    point, as a function that is mapped over them: the elements alone, without their places.
    """
    import casadi as ca  # at call time: it may be missing

    def hessian(f: Callable[[Any, int], Any]) -> Callable[[np.ndarray], Run]:
        def of(x: np.ndarray) -> Run:
            unknowns = ca.SX.sym("x", len(x))
            matrix, _ = ca.hessian(f(unknowns, len(x)), unknowns)
            return _over_memory(ca.Function("hessian", [unknowns], [matrix]), [x])

        return of

    def jacobian(x: np.ndarray) -> Run:
        parts = [ca.SX.sym(name, size) for name, size in (("camera", 11), ("point", 3), ("seen", 2))]
        lib = SimpleNamespace(sqrt=ca.sqrt, sin=ca.sin, cos=ca.cos, stack=lambda rows, dim: ca.vertcat(*rows))
        residuals = errors(lib, *map(_Last, parts))
        blocks = ca.horzcat(ca.jacobian(residuals, parts[0]), ca.jacobian(residuals, parts[1]))
        rng = np.random.default_rng(0)
        rows = [np.ascontiguousarray(rng.normal(size=(count, part.numel()))) for part in parts]
        return _over_memory(ca.Function("blocks", parts, [blocks]).map(count), rows)

    return {
        "Hessian, band of 3": hessian(lambda x, n: ca.sum1(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)),
        "Hessian, band of 11": hessian(lambda x, n: sum(ca.sum1((x[k:] * x[: n - k]) ** 2) for k in range(6))),
        "Jacobian, bundle adjustment": jacobian,
    }


class _Last:
    """A vector whose elements `own[..., k]` are."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getitem__(self, key: tuple[Any, int]) -> Any:
        return self._own[key[1]]


def _over_memory(function: Any, arrays: list[np.ndarray]) -> Run:
    """Return a call of CasADi's function without conversions of its arguments and results."""
    buffer, call = function.buffer()
    arrays, result = [np.array(own) for own in arrays], np.zeros(function.nnz_out(0))
    for place, own in enumerate(arrays):
        buffer.set_arg(place, memoryview(own))
    buffer.set_res(0, memoryview(result))
    kept = function, buffer, arrays, result
    return lambda: (call(), kept)[0]
