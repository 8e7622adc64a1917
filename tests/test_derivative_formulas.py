"""The formulas in docstrings of derivatives that are not elementwise give what the rules compute."""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapegrad as tg
from tests import latex_arrays

rng = np.random.default_rng(5)
X = np.array([0.7, -1.3, 0.4, 2.1])
PLACES = np.array([2, 0, 2, 1])
A, B = rng.standard_normal((3, 3)) + 3 * np.eye(3), rng.standard_normal((3, 3))


class Stated(NamedTuple):
    """A function whose docstring has formulas: its operands by letter, its call, the letters of its results."""

    name: str
    operands: dict[str, Any]
    call: Callable[..., Any] | None = None
    results: tuple[str, ...] = ("y",)
    more: dict[str, Any] = {}  # noqa: RUF012 (a default of a tuple's field, which nobody changes)


def _mean(x: np.ndarray) -> dict[str, Any]:
    return {"m": x.mean(), "c": 1}


ALONG = {"softmax", "log_softmax", "logsumexp", "cumsum", "cumprod", "logcumsumexp"}
OF_VECTORS = [
    *(Stated(name, {"x": X}) for name in ("sum", "mean", "prod", "amax", "amin")),
    *(Stated(name, {"x": X}, lambda f, x: f(x, 0)) for name in sorted(ALONG)),
    Stated("amax", {"x": np.array([1.0, 3.0, 3.0, 2.0])}),
    Stated("prod", {"x": np.array([1.0, 0.0, 3.0, 2.0])}),
    Stated("cumprod", {"x": np.array([1.0, 0.0, 3.0, 2.0])}, lambda f, x: f(x, 0)),
    *(Stated(name, {"x": X}, more=_mean(X)) for name in ("var", "std")),
    Stated("linalg.vector_norm", {"x": X}, lambda f, x: f(x, 3), more={"p": 3}),
    Stated("sort", {"x": X}, lambda f, x: f(x)[0], more={"p": np.argsort(X)}),
    Stated("gather", {"x": X}, lambda f, x: f(x, 0, PLACES), more={"p": PLACES}),
    Stated("scatter_add", {"x": X, "s": X + 1}, lambda f, x, s: f(x, 0, PLACES, s), more={"p": PLACES}),
]
OF_MATRICES = [
    Stated("matmul", {"X": A, "Y": B}, results=("Z",)),
    Stated("linalg.inv", {"A": A}, results=("C",)),
    Stated("linalg.solve", {"A": A, "B": B}, results=("X",)),
    Stated("linalg.det", {"A": A}),
    Stated("linalg.slogdet", {"A": A}, lambda f, x: f(x)[1]),
    Stated("linalg.qr", {"A": A}, results=("Q", "R")),
]


def formulas_of(function: Any) -> dict[str, tuple[str, str]]:
    """Return by letter of an operand the index of its cotangent and the formula."""
    found = {}
    for text in re.findall(r":math:`([^`]*)`", re.sub(r"\s+", " ", function.__doc__)):
        for part in text.split(r",\quad "):
            match = re.fullmatch(r"\\bar (\w)(?:_(\w))? = (.*)", part)
            if match:
                found[match[1]] = match[2] or "", match[3]
    return found


def compared(stated: Stated) -> list[tuple[str, str, str, np.ndarray, dict[str, Any]]]:
    function = attrgetter(stated.name)(tg)
    leaves = [tg.tensor(value, requires_grad=True) for value in stated.operands.values()]
    call = stated.call or (lambda f, *operands: f(*operands))
    results = call(function, *leaves)
    results = results if isinstance(results, tuple) else (results,)
    cts = [tg.tensor(rng.standard_normal(result.shape)) for result in results]
    grads = tg.autograd.grad(results, leaves, cts)
    known = {**stated.operands, **stated.more, "n": len(X)}
    for letter, result, ct in zip(stated.results, results, cts, strict=True):
        known |= {letter: result.detach().numpy(), rf"\bar{{{letter}}}": ct.numpy()}
    known |= {rf"\bar{{{letter}}}": grad.numpy() for letter, grad in zip(stated.operands, grads, strict=True)}
    formulas = formulas_of(function)
    return [
        (letter, *formulas[letter], grad.numpy(), known) for letter, grad in zip(stated.operands, grads, strict=True)
    ]


@pytest.mark.parametrize("stated", OF_VECTORS, ids=lambda stated: stated.name)
def test_of_vectors(stated: Stated) -> None:
    for _, index, text, grad, known in compared(stated):
        found = latex_arrays.elements(text, index, known)
        np.testing.assert_allclose(found, grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("stated", OF_MATRICES, ids=lambda stated: stated.name)
def test_of_matrices(stated: Stated) -> None:
    for _, _, text, grad, known in compared(stated):
        np.testing.assert_allclose(latex_arrays.matrix(text, known), grad, rtol=1e-8, atol=1e-10)


def test_a_wrong_formula_is_noticed() -> None:
    (_, index, text, grad, known), *_ = compared(Stated("cumsum", {"x": X}, lambda f, x: f(x, 0)))
    wrong = latex_arrays.elements(text.replace(r"\ge", ">"), index, known)
    assert not np.allclose(wrong, grad)
    (_, _, text, grad, known), *_ = compared(OF_MATRICES[0])
    assert not np.allclose(latex_arrays.matrix(text.replace("^H", ""), known), grad)
