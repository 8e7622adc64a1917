"""Values that operations refuse: a compiled function raises the error of the ordinary one, or gives the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.program.fuse.small import LARGEST
from tests.tiers import mostly_full

RNG = np.random.default_rng(4)
EYE = np.eye(3) + 0.1
ONES = np.ones((3, 3))
RISING = np.arange(1.0, 10.0).reshape(3, 3)  # singular; rounding decides whether LAPACK notices
ROWS, INDICES = RNG.normal(size=(4, 5)), np.arange(4)
BAD = np.array([0, 1, 9, 2])


def among(bad: np.ndarray, good: np.ndarray, count: int) -> np.ndarray:
    """Return a batch of good matrices with a bad one before the last."""
    return np.stack([*[good] * (count - 2), bad, good])


def repeated(function: Callable[[Any], Any], turns: int = 24) -> Callable[[Any], Any]:
    """Return a function with a loop, which becomes a loop of machine code."""
    return lambda x: reduce(lambda state, _: function(state) + 0.1 * x, range(turns), x)


def guarded(x: Any) -> Any:
    """Return an inverse where there is one."""
    return tg.linalg.inv(x) if abs(tg.linalg.det(x)) > 1e-6 else x * 0.0


def guarded_in_many_operations(x: Any) -> Any:
    """Do the same with more operations than are computed for items that do not want them."""
    y = guarded(x)
    for turn in range(300):
        y = y + tg.sin(y * 0.01 * turn)
        y = y @ x * 0.1 + x * (0.001 * turn)
    return y


def scanned(x: Any) -> Any:
    """Return what a loop that is an operation computes, with a row of results for each turn."""

    def turn(state: Any, t: Any) -> Any:
        state = tg.linalg.inv(state) + 0.1 * x
        return state, (state * t).sum()

    return func.scan(turn, x, np.arange(30.0))[1]


def until_small(x: Any) -> Any:
    """Return what a loop computes whose number of turns depends on data."""
    return func.while_loop(
        lambda state, scale: scale > 0.1, lambda state, scale: (tg.linalg.inv(state) + x, scale * 0.5), (x, x.max())
    )[0]


MATRICES: dict[str, tuple[Callable[..., Any], np.ndarray, np.ndarray]] = {
    "inv": (lambda x: tg.linalg.inv(x * 2.0), EYE, ONES),
    "inv of 2 rows": (lambda x: tg.linalg.inv(x * 2.0), EYE[:2, :2], ONES[:2, :2]),
    "inv of 1 row": (lambda x: tg.linalg.inv(x * 2.0), EYE[:1, :1], np.zeros((1, 1))),
    "inv of the most rows": (lambda x: tg.linalg.inv(x * 2.0), np.eye(LARGEST), np.ones((LARGEST, LARGEST))),
    "inv of float32": (lambda x: tg.linalg.inv(x), EYE.astype(np.float32), ONES.astype(np.float32)),
    "inv of nan": (lambda x: tg.linalg.inv(x), EYE, np.full((3, 3), np.nan)),
    "inv, nearly": (lambda x: tg.linalg.inv(x), EYE, RISING),
    "inv of a batch": (lambda x: tg.linalg.inv(x * 2.0), among(EYE, EYE, 100), among(ONES, EYE, 100)),
    "inv in a loop": (repeated(tg.linalg.inv), EYE, ONES),
    "gradient of inv": (func.grad(lambda x: tg.linalg.inv(x).sum()), EYE, ONES),
    "solve": (lambda x: tg.linalg.solve(x, x[0]), EYE, ONES),
    "solve, nearly": (lambda x: tg.linalg.solve(x, x[0]), EYE, RISING),
    "gradient of logdet": (func.grad(lambda x: tg.logdet(x)), EYE, ONES),
    "det": (lambda x: tg.linalg.det(x), EYE, ONES),
    "power": (lambda x: tg.linalg.matrix_power(x, -2), EYE, ONES),
    "cholesky": (lambda x: tg.linalg.cholesky(x), EYE, -EYE),
    "cholesky, nearly": (lambda x: tg.linalg.cholesky(x), EYE, ONES),
    "cholesky of nan": (lambda x: tg.linalg.cholesky(x), EYE, np.full((3, 3), np.nan)),
    "upper cholesky": (lambda x: tg.linalg.cholesky(x, upper=True), EYE, np.triu(ONES) + np.eye(3)),
    "cholesky of a batch": (lambda x: tg.linalg.cholesky(x * 2.0), among(EYE, EYE, 50), among(-EYE, EYE, 50)),
    "vmap of inv": (tg.vmap(tg.linalg.inv), among(EYE, EYE, 100), among(ONES, EYE, 100)),
    "vmap of a loop": (tg.vmap(repeated(tg.linalg.inv)), among(EYE, EYE, 100), among(ONES, EYE, 100)),
    "vmap of hessian": (
        tg.vmap(func.hessian(lambda x: tg.linalg.inv(x).sum())), among(EYE, EYE, 20), among(ONES, EYE, 20)
    ),
    "vmap beside others": (
        lambda x: tg.vmap(tg.linalg.inv)(x * 2.0).sum() * 3.0, among(EYE, EYE, 20), among(ONES, EYE, 20)
    ),
    "vmap of branches": (tg.vmap(guarded), among(EYE, EYE, 20), among(ONES, EYE, 20)),
    "vmap of long branches": (tg.vmap(guarded_in_many_operations), among(EYE, EYE, 12), among(ONES, EYE, 12)),
    "branches": (guarded, EYE, ONES),
    "scan": (scanned, EYE, ONES),
    "gradient of scan": (func.grad(lambda x: scanned(x).sum()), EYE, ONES),
    "while_loop": (until_small, EYE, ONES),
    "fori_loop": (
        lambda x: func.fori_loop(0, 20, lambda turn, state: tg.linalg.solve(state, x) + 0.1 * x, x), EYE, ONES
    ),
}  # fmt: skip
INTEGERS: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "floor_divide": (lambda i, j: i // j, (INDICES, INDICES + 1), (INDICES, INDICES)),
    "remainder": (lambda i, j: (i % j) * 2, (INDICES, INDICES + 1), (INDICES, INDICES)),
    "fmod": (tg.fmod, (INDICES, INDICES + 1), (INDICES, INDICES)),
    "truncated": (lambda i, j: tg.div(i, j, rounding_mode="trunc"), (INDICES, INDICES + 1), (INDICES, INDICES)),
    "rows": (lambda x, i: x[i] * 2.0, (ROWS, INDICES), (ROWS, BAD)),
    "columns": (lambda x, i: x[:, i] * 2.0, (ROWS, INDICES), (ROWS, -BAD)),
    "gradient of rows": (func.grad(lambda x, i: (x[i] ** 2).sum()), (ROWS, INDICES), (ROWS, BAD)),
    "gather": (lambda x, i: tg.gather(x, 1, i[:, None]), (ROWS, INDICES), (ROWS, -INDICES)),
    "scatter": (lambda x, i: tg.scatter(x, 1, i[:, None], 1.0), (ROWS, INDICES), (ROWS, BAD)),
    "cross_entropy": (tg.nn.functional.cross_entropy, (ROWS, INDICES), (ROWS, BAD)),
    "one_hot": (lambda x, i: tg.nn.functional.one_hot(i, 5) * x, (ROWS, INDICES), (ROWS, BAD)),
}


def outcome(function: Callable[..., Any], arrays: Any) -> Any:
    """Return what a function gives, or what it raises."""
    try:
        return [np.asarray(own) for own in (function(*arrays),)]
    except Exception as error:
        return [(type(error), str(error))]


def check(function: Callable[..., Any], good: Any, bad: Any) -> None:
    compiled = tg.compile(function)
    for arrays in (good, bad, good):
        found = outcome(compiled, arrays)
        wanted = outcome(function, [tg.tensor(own) for own in arrays])
        for one, two in zip(found, wanted, strict=True):
            if isinstance(two, tuple):
                assert one == two
            else:
                np.testing.assert_allclose(one, two, rtol=2e-5 if two.dtype == np.float32 else 1e-9, atol=1e-12)


@pytest.mark.parametrize("name", mostly_full(MATRICES, MATRICES.keys() - {"vmap of long branches"}))
def test_matrices(name: str) -> None:
    function, good, bad = MATRICES[name]
    check(function, (good,), (bad,))


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    check(*INTEGERS[name])


def test_gradients_of_compiled_functions_raise_too() -> None:
    compiled = tg.compile(lambda x: (tg.linalg.inv(x) ** 2).sum())
    for _ in range(2):
        x = tg.tensor(EYE).requires_grad_()
        compiled(x).backward()
        np.testing.assert_allclose(x.grad, func.grad(lambda x: (tg.linalg.inv(x) ** 2).sum())(EYE))
        with pytest.raises(tg.linalg.LinAlgError, match="singular"):
            compiled(tg.tensor(ONES, requires_grad=True))


def test_regular_matrices_stay_in_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python computes only what may be refused; rows and columns of other sizes are no reason."""
    compiled = tg.compile(lambda x: tg.linalg.solve(x, x[0]))
    compiled(EYE)
    compiled(EYE)
    monkeypatch.setattr(compiled, "_call", None)
    small = EYE * np.array([1.0, 1e-9, 1e9])
    np.testing.assert_allclose(compiled(small), np.linalg.solve(small, small[0]))
    with pytest.raises(TypeError, match="not callable"):
        compiled(ONES)


def test_programs_without_python_say_so() -> None:
    """Their machine code has the flag too: it may not write where its caller has no place for it."""
    pytest.importorskip("numba")
    compiled = tg.compile(lambda x: tg.linalg.inv(x * 2.0))
    compiled(EYE)
    np.testing.assert_allclose(compiled.njit(EYE), np.linalg.inv(EYE * 2.0))
    with pytest.raises(RuntimeError, match="another branch"):
        compiled.njit(ONES)
