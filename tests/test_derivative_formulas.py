"""The formulas in docstrings of derivatives that are not elementwise give what the rules compute."""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.linalg

import tapegrad as tg
from tests import latex_arrays

rng = np.random.default_rng(5)
X = np.array([0.7, -1.3, 0.4, 2.1])
W = np.array([0.5, -2.0, 1.5])
PLACES = np.array([2, 0, 2, 1])
A, B = rng.standard_normal((3, 3)) + 3 * np.eye(3), rng.standard_normal((3, 3))
DEFINITE, TALL = A @ A.T, rng.standard_normal((4, 3))


class Stated(NamedTuple):
    """A function whose docstring has formulas: its operands by letter, its call, the letters of its results."""

    name: str
    operands: dict[str, Any]
    call: Callable[..., Any] | None = None
    results: tuple[str, ...] = ("y",)
    more: dict[str, Any] = {}  # noqa: RUF012 (a default of a tuple's field, which nobody changes)


F = "nn.functional."


def _mean(x: np.ndarray) -> dict[str, Any]:
    return {"m": x.mean(), "c": 1}


def _of_signals(f: Any, x: Any, w: Any, b: Any) -> Any:
    return f(x[None], w[None, None], b, stride=2, padding=1, dilation=2)[0]


def _of_images(f: Any, x: Any, w: Any, b: Any) -> Any:
    return f(x[None, None], w[None, None, None], b, (1, 2), (0, 1), (1, 2))[0, 0]


def _inverse_gaps(a: np.ndarray) -> np.ndarray:
    values = np.linalg.eigvalsh(a)
    return 1 / (values - values[:, None] + np.diag(np.full(len(values), np.inf)))


def _gaps_of_squares(a: np.ndarray) -> np.ndarray:
    squares: np.ndarray = np.linalg.svd(a)[1] ** 2
    return squares - squares[:, None]


def _of_interpolation(n: int, m: int) -> np.ndarray:
    """Return the matrix that interpolates linearly from n elements to m."""
    places = np.clip((np.arange(m) + 0.5) * n / m - 0.5, 0, n - 1)
    weights: np.ndarray = np.maximum(0, 1 - abs(places[:, None] - np.arange(n)))
    return weights


def _of_pool(n: int, m: int, s: int, p: int) -> np.ndarray:
    """Return the matrix that takes means of m elements, with a stride and a padding."""
    first = np.arange(0, n + 2 * p - m + 1, s)[:, None] - p
    means: np.ndarray = ((first <= np.arange(n)) & (np.arange(n) < first + m)) / m
    return means


def _with_v(usv: Any) -> Any:
    return usv[0], usv[1], usv[2].mH


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
    Stated("topk", {"x": X}, lambda f, x: f(x, 2)[0], more={"p": np.argsort(-X)[:2]}),
    Stated("kthvalue", {"x": X}, lambda f, x: f(x, 2)[0], more={"p": np.argsort(X)[1]}),
    Stated("mode", {"x": X}, lambda f, x: f(x)[0], more={"p": np.argmin(X)}),
    Stated("median", {"x": np.array([1.0, 2.0, 2.0, 3.0])}),
    Stated("cummax", {"x": X}, lambda f, x: f(x, 0)[0], more={"p": [0, 0, 0, 3]}),
    Stated("quantile", {"x": X, "q": np.array(0.3)}, more={"m": 4, "w": 0.9, "j": 1, "k": 2}),
    Stated(
        "nanquantile",
        {"x": np.array([0.7, np.nan, 0.4, 2.1]), "q": np.array(0.25)},
        more={"m": 3, "w": 0.5, "j": 2, "k": 0},
    ),
    Stated(F + "rrelu", {"x": X}, more={"a": np.full(4, 11 / 48)}),
    Stated("scatter_add", {"x": X, "s": X + 1}, lambda f, x, s: f(x, 0, PLACES, s), more={"p": PLACES}),
]
# With strides, gaps and padding.
OF_WINDOWS = [
    Stated(F + "conv1d", {"x": X, "w": W, "b": np.array([0.5])}, _of_signals, more={"s": 2, "d": 2, "p": 1}),
    Stated(
        F + "conv_transpose1d",
        {"x": X[:2], "w": W, "b": np.array([0.5])},
        lambda f, x, w, b: f(x[None], w[None, None], b, 2, 1)[0],
        more={"s": 2, "d": 1, "p": 1},
    ),
    Stated(F + "conv2d", {"x": X, "w": W, "b": np.array([0.5])}, _of_images, more={"s": 2, "d": 2, "p": 1}),
    Stated(F + "avg_pool1d", {"x": X}, lambda f, x: f(x[None], 3, 2, 1)[0], more={"m": 3, "s": 2, "p": 1}),
    Stated(
        F + "adaptive_avg_pool1d",
        {"x": X},
        lambda f, x: f(x[None], 3)[0],
        more={"a": [0, 1, 2, 8], "b": [[2, 3, 4, 9]]},
    ),
    Stated(F + "unfold", {"x": X[:3]}, lambda f, x: f(x[None, None], (1, 2)).flatten(), more={"p": [0, 1, 1, 2]}),
    Stated(
        F + "fold",
        {"x": X},
        lambda f, x: f(x.reshape(2, 2), (1, 3), (1, 2)).flatten(),
        more={"p": [0, 1, 1, 2]},
    ),
    Stated(F + "max_pool1d", {"x": X}, lambda f, x: f(x[None], 2, 1)[0], more={"p": [0, 2, 3]}),
]
S = float(np.sqrt(X.var() + 1e-5))
NORMALISED = {"s": S, "z": (X - X.mean()) / S}
OF_NORMS = [
    Stated(
        F + "layer_norm", {"x": X, "w": X[::-1].copy()}, lambda f, x, w: f(x, 4, w, X), more=NORMALISED | {"b": [X]}
    ),
    Stated(
        F + "batch_norm",
        {"x": X, "w": np.array(1.5)},
        lambda f, x, w: f(x[:, None], None, None, w.reshape(1), np.array([0.5]), training=True)[:, 0],
        more=NORMALISED | {"b": [0.5]},
    ),
    Stated(F + "normalize", {"x": X}, lambda f, x: f(x, dim=0), more={"r": float(np.linalg.norm(X))}),
]
C = X + 1j * X[::-1]
HALF = np.array([1.5, 0.5 - 1j, -0.75])
OF_TRANSFORMS = [
    Stated("fft.fft", {"x": C}),
    Stated("fft.ifft", {"x": C}),
    Stated("fft.rfft", {"x": X}),
    Stated("fft.ihfft", {"x": X}),
    Stated("fft.irfft", {"x": HALF}, more={"c": [1, 2, 1]}),
    Stated("fft.hfft", {"x": HALF}, more={"c": [1, 2, 1]}),
]
OF_LOSSES = [
    Stated(F + "mse_loss", {"x": X, "t": X[::-1] ** 2}),
    Stated(F + "nll_loss", {"x": X}, lambda f, x: f(x, 2), more={"t": 2}),
    Stated(F + "cross_entropy", {"x": X}, lambda f, x: f(x, 2), more={"t": 2}),
    Stated(F + "softmin", {"x": X}, lambda f, x: f(x, 0)),
]
OF_MATRICES = [
    Stated("matmul", {"X": A, "Y": B}, results=("Z",)),
    Stated("einsum", {"X": A, "Y": B}, lambda f, x, y: f("ij,jk->ik", x, y), results=("Z",)),
    Stated(F + "linear", {"X": A, "W": B}, results=("Y",)),
    Stated(
        "addmm",
        {"M": A, "X": A, "Y": B},
        lambda f, m, x, y: f(m, x, y, beta=2.0, alpha=3.0),
        ("Z",),
        {r"\alpha": 3.0, r"\beta": 2.0},
    ),
    Stated("linalg.inv", {"A": A}, results=("C",)),
    Stated("linalg.solve", {"A": A, "B": B}, results=("X",)),
    Stated("linalg.det", {"A": A}),
    Stated("linalg.slogdet", {"A": A}, lambda f, x: f(x)[1]),
    Stated("linalg.qr", {"A": A}, results=("Q", "R")),
    Stated("linalg.cholesky", {"A": DEFINITE}, results=("L",)),
    Stated("linalg.eigh", {"A": DEFINITE}, results=(r"\Lambda", "V"), more={"F": _inverse_gaps(DEFINITE)}),
    Stated("linalg.svd", {"A": A}, lambda f, x: _with_v(f(x)), ("U", r"\Sigma", "V"), {"E": _gaps_of_squares(A)}),
    Stated("linalg.lu_factor_ex", {"A": A}, lambda _, x: tg.linalg.lu(x)[1:], ("L", "U"), {"P": scipy.linalg.lu(A)[0]}),
    Stated("logdet", {"A": DEFINITE}),
    Stated("trace", {"X": A}, more={"I": np.eye(3)}),
    Stated("linalg.eigvalsh", {"A": DEFINITE}, results=(r"\Lambda",), more={"V": np.linalg.eigh(DEFINITE)[1]}),
    Stated(
        "linalg.svdvals",
        {"A": A},
        results=(r"\Sigma",),
        more={"U": np.linalg.svd(A)[0], "V": np.linalg.svd(A)[2].T},
    ),
    Stated("dot", {"x": X, "y": X**2}, results=("z",)),
    Stated("vdot", {"x": C, "y": C**2}, results=("z",)),
    Stated("dot", {"x": C, "y": C**2}, results=("z",)),
    Stated("outer", {"x": C, "y": W + 1j}, results=("Z",)),
    Stated("addcmul", {"x": C, "u": C**2, "v": C[::-1].copy()}, lambda f, *xuv: f(*xuv, value=3.0), more={"c": 3.0}),
    Stated("addcdiv", {"x": C, "u": C**2, "v": C[::-1].copy()}, lambda f, *xuv: f(*xuv, value=3.0), more={"c": 3.0}),
    Stated(
        F + "interpolate",
        {"X": TALL},
        lambda f, x: f(x[None, None], (3, 5), mode="bilinear")[0, 0],
        ("Y",),
        {"A": _of_interpolation(4, 3), "B": _of_interpolation(3, 5)},
    ),
    Stated(
        F + "avg_pool2d",
        {"X": TALL},
        lambda f, x: f(x[None, None], (3, 2), (1, 2), (1, 0))[0, 0],
        ("Y",),
        {"A": _of_pool(4, 3, 1, 1), "B": _of_pool(3, 2, 2, 0)},
    ),
    Stated(
        F + "avg_pool3d",
        {"X": TALL},
        lambda f, x: f(x[None, None, None], (1, 3, 2), (1, 1, 2), (0, 1, 0))[0, 0, 0],
        ("Y",),
        {"A": _of_pool(4, 3, 1, 1), "B": _of_pool(3, 2, 2, 0)},
    ),
    Stated("linalg.pinv", {"A": TALL}, results=("P",)),
]


def formulas_of(function: Any) -> dict[str, tuple[str, str]]:
    """Return by cotangent of an operand, and by what is defined for that, the index and the formula."""
    found = {}
    for text in re.findall(r":math:`([^`]*)`", re.sub(r"\s+", " ", function.__doc__)):
        for part in text.split(r",\quad "):
            match = re.fullmatch(r"(\\bar )?(\w)(?:_(\w))? = (.*)", part)
            if match:
                found[f"{match[1] or ''}{match[2]}"] = match[3] or "", match[4]
    return found


def compared(stated: Stated) -> list[tuple[str, str, str, np.ndarray, dict[str, Any]]]:
    function = attrgetter(stated.name)(tg)
    leaves = [tg.tensor(value, requires_grad=True) for value in stated.operands.values()]
    call = stated.call or (lambda f, *operands: f(*operands))
    results = call(function, *leaves)
    results = results if isinstance(results, tuple) else (results,)
    cts = [tg.tensor(rng.standard_normal(result.shape)).to(result.dtype) for result in results]
    grads = tg.autograd.grad(results, leaves, cts)
    known = {**stated.operands, **stated.more, "n": len(X)}
    for letter, result, ct in zip(stated.results, results, cts, strict=True):
        is_diagonal = letter.startswith("\\")
        value, slope = result.detach().numpy(), ct.numpy()
        known |= (
            {letter: np.diag(value), rf"\bar{{{letter}}}": np.diag(slope)}
            if is_diagonal
            else {
                letter: value,
                rf"\bar{{{letter}}}": slope,
            }
        )
    known |= {rf"\bar{{{letter}}}": grad.numpy() for letter, grad in zip(stated.operands, grads, strict=True)}
    formulas = formulas_of(function)
    known |= {name: latex_arrays.matrix(text, known) for name, (_, text) in formulas.items() if name == "S"}
    known |= {letter: known[letter][0] for letter in known if letter == "b"}  # one bias
    given = [(rf"\bar {letter}", grad) for letter, grad in zip(stated.operands, grads, strict=True)]
    given += [(letter, known[letter]) for letter in stated.results if formulas.get(letter, ("",))[0]]
    return [(name, *formulas[name], np.asarray(value), known) for name, value in given if name != r"\bar b"]


@pytest.mark.parametrize(
    "stated", [*OF_VECTORS, *OF_WINDOWS, *OF_TRANSFORMS, *OF_LOSSES, *OF_NORMS], ids=lambda stated: stated.name
)
def test_of_vectors(stated: Stated) -> None:
    for _, index, text, value, known in compared(stated):
        found = latex_arrays.elements(text, index, known)[: len(np.atleast_1d(value))]
        np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-12)


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
