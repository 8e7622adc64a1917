"""Whole calls of SciPy's solvers: with derivatives from programs, and with finite differences; and sparse matrices."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np
import scipy.integrate
import scipy.optimize

from bench.table import Table, ratio, seconds
from bench.timing import Run, interleaved, once

Solve = Callable[[Any], object]


def rosenbrock(x: Any) -> Any:
    """Take any number of unknowns."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def peaks(x: Any, *p: Any) -> Any:
    """Add up 5 peaks, of 4 parameters each."""
    return sum(
        p[k] * np.exp(-(((x - p[k + 1]) / p[k + 2]) ** 2)) + p[k + 3] * (x / 10.0) ** (k // 4) for k in range(0, 20, 4)
    )


def _peaks_data(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.linspace(0.0, 10.0, size)
    true = np.array([[1.0 + 0.2 * k, 1.0 + 2.0 * k, 0.5 + 0.1 * k, 0.1 * k] for k in range(5)]).ravel()
    return x, peaks(x, *true) + 0.01 * np.random.default_rng(0).normal(size=size), 1.1 * true + 0.02


def van_der_pol(t: Any, y: Any, mu: float) -> Any:
    """Return slopes, of which some are 1,000 times as steep as others."""
    return [y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]]


def _solvers(quick: bool) -> list[tuple[str, Solve]]:
    size, points = (4, 40) if quick else (100, 200)
    start = np.linspace(-1.2, -0.2, size)
    x, y, p0 = _peaks_data(points)
    many = {"maxiter": 10_000}
    cases: list[tuple[str, Solve]] = [
        (f"minimize, {method}, Rosenbrock {size}", lambda lib, method=method, more=more: lib.minimize(
            rosenbrock, start, method=method, options={**many, **more}))
        for method, more in (("BFGS", {}), ("L-BFGS-B", {"maxfun": 10**7}), ("CG", {}))
    ]  # fmt: skip
    return [
        *cases,
        (f"curve_fit, 20 parameters, {points} points", lambda lib: lib.curve_fit(peaks, x, y, p0)),
        ("least_squares, the same", lambda lib: lib.least_squares(
            lambda p, x, y: peaks(x, *p) - y, p0, args=(x, y), method="lm")),
        ("solve_ivp, Radau, van der Pol", lambda lib: lib.solve_ivp(
            van_der_pol, (0.0, 200.0), [2.0, 0.0], method="Radau", args=(100.0,))),
        ("quad", lambda lib: lib.quad(lambda x, a, b: np.exp(-a * x * x) * np.cos(b * x), 0.0, 10.0, args=(1.0, 3.0))),
    ]  # fmt: skip


class _SciPy:
    """SciPy's functions of all its modules."""

    def __getattr__(self, name: str) -> Any:
        return getattr(scipy.optimize, name, None) or getattr(scipy.integrate, name)


def _of_solvers(rounds: int, quick: bool) -> Table:
    import tapegrad as tg

    table = Table(
        "solvers: medians of whole calls, SciPy's with finite differences",
        ("call", "ours, first", "ours, later", "SciPy", "SciPy / first", "SciPy / later"),
    )
    for name, solve in _solvers(quick):
        first = once(lambda solve=solve: solve(tg.scipy))  # type: ignore[misc]
        runs = {"ours": lambda solve=solve: solve(tg.scipy), "SciPy": lambda solve=solve: solve(_SciPy())}
        times = interleaved(runs, rounds, at_most=20.0, settled=True)
        ours, theirs = (float(np.median(times[tool])) for tool in ("ours", "SciPy"))
        cells = [seconds(own) for own in (first, ours, theirs)]
        table.rows.append(
            (name, *cells, ratio(theirs / first), ratio(float(np.median(times["SciPy"] / times["ours"]))))
        )
    table.notes.append("The first call traces and compiles; machine code may be on disk from a process before.")
    return table


def _band(x: Any) -> Any:
    return sum(((x[k:] * x[: len(x) - k]) ** 2).sum() for k in range(6))


def _observations(size: int) -> tuple[Callable[[Any], Any], np.ndarray]:
    """Return the errors of a bundle adjustment as a function of all unknowns, and these."""
    import tapegrad as tg
    from bench.programs.bundle import errors

    rng = np.random.default_rng(0)
    n_cameras, n_points = max(size // 400, 2), max(size // 4, 4)
    turns, centres = rng.normal(size=(n_cameras, 3)) / 3, rng.normal(size=(n_cameras, 3))
    lenses = [rng.uniform(0.8, 1.2, (n_cameras, 1)), rng.normal(size=(n_cameras, 4)) / 50]
    points = rng.normal(size=(n_points, 3)) + np.array([0.0, 0.0, 8.0])
    camera, point = rng.integers(0, n_cameras, size), rng.integers(0, n_points, size)
    seen, count = rng.normal(size=(size, 2)), 11 * n_cameras

    def of_all(x: Any) -> Any:
        return errors(tg, x[:count].reshape(-1, 11)[camera], x[count:].reshape(-1, 3)[point], seen)

    return of_all, np.concatenate([np.column_stack([turns, centres, *lenses]).ravel(), points.ravel()])


def _of_matrices(rounds: int, quick: bool) -> Table:
    import tapegrad as tg
    from bench.detail.casadi import functions

    size, count = (100, 40) if quick else (100_000, 20_000)
    x = np.random.default_rng(1).normal(size=size)
    errors, unknowns = _observations(count)
    others = functions(count) if find_spec("casadi") else {}
    columns = ["CasADi, first", "CasADi", "ours / CasADi"] if others else []
    head = ("matrix", "rows", "columns", "elements", "colours", "first", "later", *columns)
    table = Table("sparse matrices: medians", head)
    for name, matrix, point in (
        ("Hessian, band of 3", tg.func.sparse_hessian(rosenbrock), x),
        ("Hessian, band of 11", tg.func.sparse_hessian(_band), x),
        ("Jacobian, bundle adjustment", tg.func.sparse_jacobian(errors), unknowns),
    ):
        first = once(lambda matrix=matrix, point=point: matrix(point))  # type: ignore[misc]
        runs: dict[str, Run] = {"ours": lambda matrix=matrix, point=point: matrix(point)}  # type: ignore[misc]
        start = perf_counter()
        if others:
            runs["CasADi"] = others[name](point)
        built = perf_counter() - start
        times = interleaved(runs, rounds)
        found = matrix(point)
        cells = [*map(str, found.shape), str(found.nnz), str(matrix.colors(point).n_colors), seconds(first)]
        cells.append(seconds(float(np.median(times["ours"]))))
        if others:
            cells += [seconds(built), seconds(float(np.median(times["CasADi"])))]
            cells.append(ratio(float(np.median(times["ours"] / times["CasADi"]))))
        table.rows.append((name, *cells))
    table.notes.append("The first call traces, finds pattern and colours, and compiles.")
    if others:
        table.notes.append(
            "CasADi computes into given memory: SciPy's matrix is not made. Its first call builds the graph."
        )
    return table


def tables(rounds: int, quick: bool) -> list[Table]:
    """Solvers beside SciPy's, and sparse matrices."""
    return [_of_solvers(rounds, quick), _of_matrices(rounds, quick)]
