"""Each operation has a formula; those of operations that move, choose and combine elements give what is computed."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapegrad as tg
from tests.latex_arrays import IndexReader, _tokens

pytest.importorskip("matplotlib")
from docs.extensions import public_names
from docs.extensions.op_notes import _formulas

rng = np.random.default_rng(3)
X, Y = np.array([0.7, -1.3, 0.4, 2.1]), np.array([1.5, -0.5, 3.0])
C = np.array([1.0 + 2.0j, -0.5, 0.25j])
A, B = rng.standard_normal((2, 3)), rng.standard_normal((2, 2))
P = np.array([2, 0, 3])
PAIR = {"x": np.array([0.0, 1.0, 2.0]), "y": np.array([0.0, 0.0, 3.0])}
INTEGERS = {"x": np.array([6, 9]), "y": np.array([4, 1])}
SPECIAL = {"x": np.array([0.0, np.nan, np.inf, -np.inf, -0.0])}
F = "nn.functional."


class Stated(NamedTuple):
    """A function whose docstring has formulas: its operands by letter, its call, and further letters."""

    name: str
    operands: dict[str, Any]
    call: Callable[..., Any] | None = None
    more: dict[str, Any] = {}  # noqa: RUF012 (a default of a tuple's field, which nobody changes)


def _plus(x: Any, s: Any, **more: Any) -> dict[str, Any]:
    return {"p": P, "n": len(x), "terms": len(P), **more}


MOVES = [
    Stated("reshape", {"x": X}, lambda f, x: f(x, (2, 2)).ravel()),
    Stated("permute", {"X": rng.random((2, 3, 4))}, lambda f, x: f(x, (1, 2, 0))),
    Stated("transpose", {"X": A}, lambda f, x: f(x, 0, 1)),
    Stated("adjoint", {"X": A + 1j * A[::-1]}),
    Stated("expand", {"x": X}, lambda f, x: f(x, (3, 4))),
    Stated("sum_to_size", {"X": A}, lambda f, x: f(x, (3,))),
    Stated("clone", {"x": X}),
    Stated("flip", {"x": X}, lambda f, x: f(x, 0)),
    Stated("diagonal", {"X": A}, lambda f, x: f(x, 1), {"k": 1}),
    Stated("tril", {"X": A}, lambda f, x: f(x, -1), {"k": -1}),
    Stated("triu", {"X": A}, lambda f, x: f(x, 1), {"k": 1}),
    Stated("diag_embed", {"x": X}, lambda f, x: f(x, 1), {"k": 1}),
    Stated("as_strided", {"x": X}, lambda f, x: f(x, (2, 2), (1, 1), 1), {"o": 1, "s": 1, "t": 1}),
    Stated("Tensor.unfold", {"x": X}, lambda f, x: f(x, 0, 2, 1), {"s": 1}),
    Stated("cat", {"x": X, "y": Y}, lambda f, *xs: f(xs), {"m": 4}),
    Stated("stack", {"x": X, "y": X**2}, lambda f, *xs: f(xs)),
    Stated("block_diag", {"X": A, "Y": B}, more={"p": 2, "q": 3}),
    Stated("narrow", {"x": X}, lambda f, x: f(x, 0, 1, 2), {"s": 1}),
    Stated("select", {"X": A}, lambda f, x: f(x, 0, 1), {"k": 1}),
    Stated("Tensor.repeat", {"x": Y}, lambda f, x: f(x, 2), {"m": 3, "terms": 6}),
    Stated("repeat_interleave", {"x": Y}, lambda f, x: f(x, 2), {"r": 2, "terms": 6}),
    Stated("roll", {"x": X}, lambda f, x: f(x, 1), {"s": 1}),
    Stated("rot90", {"X": A}, more={"q": 3}),
    Stated("constant_pad_nd", {"x": Y}, lambda f, x: f(x, (1, 2), 9.0), {"p": 1, "m": 3, "c": 9.0}),
    Stated("channel_shuffle", {"x": np.arange(6.0)}, lambda f, x: f(x[None, :, None], 2)[0, :, 0], {"g": 2, "k": 3}),
    Stated(F + "pixel_shuffle", {"x": X}, lambda f, x: f(x[:, None, None], 2)[0], {"r": 2}),
    Stated(F + "pixel_unshuffle", {"X": B}, lambda f, x: f(x[None], 2)[:, 0, 0], {"r": 2}),
    Stated("fft.fftshift", {"x": np.arange(5.0)}),
    Stated("fft.ifftshift", {"x": np.arange(5.0)}),
]
CHOICES = [
    Stated("scatter", {"x": X, "s": Y}, lambda f, x, s: f(x, 0, P, s), _plus(X, Y)),
    Stated("index_select", {"x": X}, lambda f, x: f(x, 0, np.array([2, 0, 2])), _plus(X, Y, p=np.array([2, 0, 2]))),
    Stated("index_add", {"x": X, "s": Y}, lambda f, x, s: f(x, 0, P, s, alpha=2.0), _plus(X, Y, a=2.0)),
    Stated("index_fill", {"x": X}, lambda f, x: f(x, 0, P, 9.0), _plus(X, Y, c=9.0)),
    Stated(
        "segment_reduce",
        {"x": X},
        lambda f, x: f(x, "sum", lengths=np.array([1, 3])),
        {"s": np.array([0, 1, 1, 1])},
    ),
    Stated("masked_fill", {"x": X}, lambda f, x: f(x, X > 0, 9.0), {"m": 1.0 * (X > 0), "c": 9.0}),
    Stated("fill", {"x": X, "c": np.array(9.0)}),
    Stated("Tensor.fill_diagonal_", {"X": A}, lambda f, x: f(x.clone(), 9.0), {"c": 9.0}),
    Stated("select_scatter", {"X": A, "s": Y}, lambda f, x, s: f(x, s, 0, 1), {"k": 1}),
    Stated(F + "embedding", {"W": A.T}, lambda f, w: f(np.array([2, 0, 2]), w), {"p": np.array([2, 0, 2])}),
    Stated(
        F + "embedding_bag",
        {"W": A.T},
        lambda f, w: f(np.array([2, 0, 2]), w, np.array([0, 2]), mode="sum"),
        {"p": np.array([2, 0, 2]), "g": np.array([0, 0, 1]), "terms": 3},
    ),
    Stated(F + "one_hot", {}, lambda f: f(P), {"x": P}),
]
SUMS = [
    Stated("nansum", {"x": np.array([0.7, np.nan, 2.0])}),
    Stated("diff", {"x": X}),
    Stated("trapezoid", {"y": X}, lambda f, y: f(y, dx=0.5), {"h": 0.5}),
    Stated("searchsorted", {}, lambda f: f(np.sort(X), Y), {"s": np.sort(X), "v": Y, "n": 4}),
    Stated("count_nonzero", {}, lambda f: f(np.array([0.0, 2.0, 3.0])), {"x": np.array([0.0, 2.0, 3.0])}),
    Stated("bincount", {"w": X[:3]}, lambda f, w: f(P, w), {"x": P, "n": 3}),
    Stated("isin", {}, lambda f: f(P, np.array([0, 3, 5])), {"x": P, "t": np.array([0, 3, 5])}),
    Stated("histc", {}, lambda f: f(X, 2, -2.0, 3.0), {"x": X, "e": np.array([-2.0, 0.5, 3.0]), "n": 4}),
    Stated("any", {}, lambda f: f(X), {"x": X}),
    Stated("all", {}, lambda f: f(np.array([1.0, 0.0])), {"x": np.array([1.0, 0.0])}),
    Stated("kron", {}, lambda f: f(A, B), {"X": A, "Y": B, "p": 2, "q": 2}),
    Stated("cov", {}, lambda f: f(A), {"X": A, "m": A.mean(1), "n": 3}),
    Stated("dist", {"x": X, "z": X[::-1].copy()}, lambda f, x, z: f(x, z, 3), {"p": 3}),
    Stated(
        F + "bilinear",
        {"x": Y, "z": X[:2], "W": rng.random((2, 3, 2))},
        lambda f, x, z, w: f(x[None], z[None], w, np.zeros(2))[0],
        {"b": np.zeros(2), "terms": 3},
    ),
    Stated("vander", {}, lambda f: f(Y), {"x": Y, "N": 3}),
    Stated("linalg.vander", {}, lambda f: f(Y), {"x": Y}),
    Stated("bartlett_window", {}, lambda f: f(5, periodic=False), {"n": 5}),
    Stated("fft.fftfreq", {}, lambda f: f(5, 0.5), {"n": 5, "d": 0.5}),
    Stated("fft.rfftfreq", {}, lambda f: f(5, 0.5), {"n": 5, "d": 0.5}),
    Stated("linalg.matrix_rank", {}, lambda f: f(B), {"s": np.linalg.svd(B)[1], "t": 1e-9, "n": 2}),
]
NUMBERS = [
    Stated("conj", {"x": C}),
    Stated("real", {"x": C}),
    Stated("imag", {"x": C}),
    Stated("complex", {"x": X, "y": X**2}),
    Stated("polar", {"r": Y, r"\phi": Y**2}),
    Stated("view_as_real", {"x": C}),
    Stated("view_as_complex", {"X": A.T.copy()}),
    Stated("rsub", {"x": X, "y": X**2}, lambda f, x, y: f(x, y, alpha=3.0), {"a": 3.0}),
    Stated("ldexp", {"x": X, "y": X**2}),
    Stated("deg2rad", {"x": X}),
    Stated("rad2deg", {"x": X}),
    Stated("positive", {"x": X}),
    Stated("nan_to_num", {"x": X}),
    Stated("round", {"x": X}, lambda f, x: f(x, decimals=0), {"d": 0}),
    Stated("bitwise_not", {}, lambda f: f(P), {"x": P}),
    Stated("isclose", {}, lambda f: f(X, X + 1e-3, 1e-3, 1e-4), {"x": X, "z": X + 1e-3, "a": 1e-4, "r": 1e-3}),
    *(
        Stated(name, {}, lambda f: f(*PAIR.values()), PAIR)
        for name in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor")
    ),
    *(
        Stated(name, {}, lambda f: f(SPECIAL["x"]), SPECIAL)
        for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "isreal", "signbit", "logical_not")
    ),
    *(
        Stated(name, {}, lambda f: f(*INTEGERS.values()), INTEGERS)
        for name in ("bitwise_left_shift", "bitwise_right_shift")
    ),
]


def formulas_of(function: Any) -> list[tuple[str, list[str], str]]:
    """Return what is defined in a docstring, its indices, and the formula."""
    found = []
    for text in re.findall(r":math:`([^`]*)`", re.sub(r"\s+", " ", function.__doc__)):
        match = re.fullmatch(r"((?:\\bar )?(?:\w|\\\w+))(?:_(?:(\w)|\{(\w+)\}))? = (.*)", text)
        if match:
            found.append((match[1], [*(match[2] or match[3] or "")], match[4]))
    return found


def values(text: str, indices: list[str], known: dict[str, Any], shape: tuple[int, ...]) -> Any:
    """Return what a formula gives, for each element of an array if there are indices."""

    def read(known: dict[str, Any]) -> Any:
        reader = IndexReader(_tokens(text), known)
        value = reader.sum()
        assert reader.next is None, f"{text}: {reader.tokens} are left"
        return value

    if not indices:
        return read(known)
    elements = [read(known | dict(zip(indices, place, strict=True))) for place in np.ndindex(shape)]
    return np.array(elements).reshape(shape)


def known_of(stated: Stated, function: Any) -> dict[str, Any]:
    leaves = [tg.tensor(value, requires_grad=True) for value in stated.operands.values()]
    result = (stated.call or (lambda f, *operands: f(*operands)))(function, *leaves)
    letter = next((one for one, *_ in formulas_of(function) if not one.startswith(r"\bar")), "y")
    known = {"n": max([len(X), *map(np.size, stated.operands.values())]), **stated.operands, **stated.more}
    known[letter] = np.asarray(result.detach()) if isinstance(result, tg.Tensor) else result
    if leaves:
        ct = tg.tensor(rng.standard_normal(result.shape)).to(result.dtype)
        known[rf"\bar{{{letter}}}"] = ct.numpy()
        grads = tg.autograd.grad(result, leaves, ct, allow_unused=True, materialize_grads=True)
        known |= {rf"\bar{{{name}}}": grad.numpy() for name, grad in zip(stated.operands, grads, strict=True)}
    return known


@pytest.mark.parametrize("stated", [*MOVES, *CHOICES, *SUMS, *NUMBERS], ids=lambda stated: stated.name)
def test_formula(stated: Stated) -> None:
    function = attrgetter(stated.name)(tg)
    function = function.fget if isinstance(function, property) else function
    known = known_of(stated, function)
    checked = 0
    for name, indices, text in formulas_of(function):
        expected = np.asarray(known[name.replace(r"\bar ", r"\bar{") + "}" * name.startswith(r"\bar ")])
        found = values(text, indices, known, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=f"{stated.name}: {name} = {text}")
        checked += 1
    assert checked >= max(1, len(stated.operands))


@pytest.mark.parametrize("name", [name for name in dir(tg.special) if "_polynomial_" in name])
def test_recurrence_of_polynomials(name: str) -> None:
    function = getattr(tg.special, name)
    formulas = {name: text for name, _, text in formulas_of(function)}
    (following,) = re.findall(r"`p_\{k\+1\} = (.*?)`", function.__doc__)
    u = values(formulas["u"], [], {"x": 0.3, "n": 1}, ())
    (first,) = re.findall("`p_1 = (.*?)`", function.__doc__)
    terms = [1.0, values(first, [], {"u": u, "n": 1}, ())]
    for k in range(1, 5):
        terms.append(values(following, [], {"u": u, "p": terms, "k": k, "n": 1}, ()))
    np.testing.assert_allclose([function(0.3, n).item() for n in range(6)], terms, rtol=1e-12)


def test_a_wrong_formula_is_noticed() -> None:
    known = known_of(MOVES[0]._replace(name="flip", call=lambda f, x: f(x, 0)), tg.flip)
    assert np.allclose(values("x_{n-1-i}", ["i"], known, X.shape), known["y"])
    assert not np.allclose(values("x_{n-i}", ["i"], known, X.shape), known["y"])
    with pytest.raises(AssertionError, match="are left"):
        values("x_i ]", ["i"], known, X.shape)


# What has no formula: facts about tensors, dtypes and shapes, lists of places or of different elements.
FACTS = {
    "is_complex", "is_floating_point", "numel", "broadcast_shapes", "result_type", "can_cast", "promote_types",
    "unravel_index", "nonzero", "argwhere", "nonzero_static", "unique", "unique_consecutive", "kernel_op",
}  # fmt: skip
# Pages of tensors that are made, drawn at random, asked for what they are, or converted.
OTHER_PAGES = {"creation", "random", "tensor", "dtypes"}


def test_each_operation_has_a_formula() -> None:
    """Its own, or it names the function whose it is."""
    without: dict[str, str] = {}
    done: set[str] = set()
    for page, sections in public_names.pages().items():
        for one in [one for section in sections for one in section.names if one.entry is not None]:
            doc = inspect.cleandoc(one.value.__doc__ or "")
            if page in OTHER_PAGES or _formulas(one) or ":math:" in doc:
                done |= {path.rpartition(".")[2] for path in (one.path, *one.aliases)}
            else:
                without[one.short] = doc.partition("\n\n")[0] + _derivative(doc)
    while True:
        led = {name for name, doc in without.items() if done & set(re.findall(r"`[\w.]*?(\w+)`", doc))}
        if not led:
            break
        done |= {name.rpartition(".")[2] for name in led}
        without = {name: doc for name, doc in without.items() if name not in led}
    assert set(without) == FACTS


def _derivative(doc: str) -> str:
    match = re.search(r"^(Derivatives?|Formula):(.|\n)*?(?=\n\n|\Z)", doc, re.MULTILINE)
    return match[0] if match else ""
