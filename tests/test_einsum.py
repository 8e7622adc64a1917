"""einsum and diagonal: values and derivatives of any order are NumPy's and torch's, and so are the messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tapegrad as tg
from tests import checks

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")

EQUATIONS: list[tuple[str, list[tuple[int, ...]]]] = [
    # one operand
    ("", [()]),
    ("i->", [(4,)]),
    ("ij", [(2, 3)]),
    ("ba", [(2, 3)]),
    ("ij->ji", [(2, 3)]),
    ("ij->j", [(2, 3)]),
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("jii->ij", [(2, 3, 3)]),
    ("iji->ij", [(3, 2, 3)]),
    ("iii->i", [(3, 3, 3)]),
    ("ijij->", [(2, 3, 2, 3)]),
    ("...", [(2, 3)]),
    ("...ii->...i", [(2, 3, 3)]),
    ("i...->...", [(4, 2, 3)]),
    ("i...i->...i", [(3, 2, 3)]),
    # two
    (",", [(), ()]),
    ("i,", [(3,), ()]),
    ("i,i", [(3,), (3,)]),
    ("i,i->i", [(3,), (3,)]),
    ("i,j", [(2,), (3,)]),
    ("i,j->ji", [(2,), (3,)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ij,kj", [(2, 3), (4, 3)]),
    ("ji,jk->ki", [(3, 2), (3, 4)]),
    (" ij , jk -> i k", [(2, 3), (3, 4)]),
    ("aB,Bc", [(2, 3), (3, 4)]),
    ("ij,ij", [(2, 3), (2, 3)]),
    ("ij,ji->", [(2, 3), (3, 2)]),
    ("ij,kl->", [(2, 3), (4, 2)]),
    ("bij,bjk->bik", [(4, 2, 3), (4, 3, 2)]),
    ("ijb,bjk->bik", [(2, 3, 4), (4, 3, 2)]),
    ("ijb,kjb->kib", [(2, 3, 4), (5, 3, 4)]),
    ("bcij,oc->boij", [(2, 3, 4, 2), (5, 3)]),
    ("bij,bij->b", [(4, 2, 3), (4, 2, 3)]),
    ("iij,jk->ik", [(2, 2, 3), (3, 4)]),
    ("ii,jj->ij", [(2, 2), (3, 3)]),
    ("...ij,...jk", [(5, 2, 3), (1, 3, 4)]),
    ("...ij,...jk->...ki", [(2, 3), (5, 4, 3, 2)]),
    ("i...,...i->...", [(3, 2), (4, 1, 3)]),
    ("...,...", [(2, 3), (3,)]),
    ("i,i->i", [(1,), (3,)]),
    ("ij,jk", [(2, 1), (3, 4)]),
    ("ij,jk", [(2, 0), (0, 3)]),
    ("ij,jk", [(0, 2), (2, 3)]),
    # more
    ("i,i,i->i", [(3,), (3,), (3,)]),
    ("i,j,k->", [(2,), (3,), (4,)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
    ("ij,jk,ki", [(2, 3), (3, 4), (4, 2)]),
    ("iij,jk,kii->", [(2, 2, 3), (3, 4), (4, 2, 2)]),
    ("ab,bc,cd,de->ea", [(2, 3), (3, 2), (2, 3), (3, 2)]),
    ("b...i,i,...->b...", [(2, 3, 4), (4,), (3,)]),
]


def operands(shapes: list[tuple[int, ...]]) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return tuple(np.asarray(rng.standard_normal(shape)) for shape in shapes)


def problem(equation: str, shapes: list[tuple[int, ...]]) -> checks.Problem:
    arrays = operands(shapes)
    return checks.Problem(lambda *tensors: tg.einsum(equation, *tensors), arrays, tuple(range(len(arrays))))


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_values(equation: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = operands(shapes)
    expected = np.einsum(equation, *arrays)
    found = tg.einsum(equation, *arrays)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)
    assert found.shape == expected.shape
    moved = [np.asfortranarray(np.repeat(array, 2, axis=-1))[..., ::2] if array.ndim else array for array in arrays]
    np.testing.assert_allclose(tg.einsum(equation, moved).numpy(), expected, rtol=1e-12, atol=1e-12)
    recorded: Any = np.einsum(equation, *map(tg.tensor, arrays), optimize=True)
    np.testing.assert_allclose(recorded.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_derivatives(equation: str, shapes: list[tuple[int, ...]]) -> None:
    own = problem(equation, shapes)
    checks.check_gradient(own)
    checks.check_rule(own)
    checks.check_second(own)


@needs_torch
@pytest.mark.parametrize(
    ("equation", "shapes"), [*EQUATIONS, ("...i->i", [(3, 4, 2)]), ("...j,...i->ij", [(3, 2), (2,)])]
)
def test_torch(equation: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = operands(shapes)
    ours = [tg.tensor(array, requires_grad=True) for array in arrays]
    theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
    y, z = tg.einsum(equation, *ours), torch.einsum(equation, *theirs)
    assert y.shape == tuple(z.shape)
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-12, atol=1e-12)
    (y * y).sum().backward()
    (z * z).sum().backward()
    for own, other in zip(ours, theirs, strict=True):
        assert own.grad is not None
        np.testing.assert_allclose(own.grad.numpy(), other.grad.numpy(), rtol=1e-11, atol=1e-11)


@given(st.data())
def test_any_equation(data: st.DataObject) -> None:
    lengths = {letter: data.draw(st.integers(1, 3), letter) for letter in "abcd"}
    terms = data.draw(st.lists(st.text("abcd", max_size=4), min_size=1, max_size=4))
    result = "".join(data.draw(st.permutations(sorted({*"".join(terms)}))))
    result = result[: data.draw(st.integers(0, len(result)))]
    equation = f"{','.join(terms)}->{result}"
    arrays = operands([tuple(lengths[letter] for letter in term) for term in terms])
    expected = np.einsum(equation, *arrays)
    np.testing.assert_allclose(tg.einsum(equation, *arrays).numpy(), expected, rtol=1e-11, atol=1e-11)


def test_lists_of_labels() -> None:
    x, y = operands([(2, 3), (3, 4)])
    assert tg.einsum(x, [0, 1], y, [1, 2]).tolist() == tg.einsum("ab,bc", x, y).tolist()
    assert tg.einsum(x, [30, 0]).tolist() == x.T.tolist()
    assert tg.einsum(x, [..., 5], [5, ...]).tolist() == x.T.tolist()


def test_dtypes() -> None:
    x, y = operands([(2, 3), (3, 4)])
    assert tg.einsum("ij,jk", x.astype("f4"), y.astype("f4")).dtype == np.float32
    assert tg.einsum("ij->i", x.astype("i8")).dtype == np.int64
    with pytest.raises(RuntimeError, match="expected m1 and m2 to have the same dtype"):
        tg.einsum("ij,jk", x.astype("f4"), y)
    z = tg.tensor(x + 1j * y[:3, :1].T, requires_grad=True)
    tg.real(tg.einsum("ij,ij->", z, z.conj())).backward()
    assert z.grad is not None
    np.testing.assert_allclose(z.grad.numpy(), 2 * z.detach().numpy(), rtol=1e-12)


def test_a_view_that_blas_cannot_take_is_copied() -> None:
    x, y = operands([(2, 3, 4), (4, 3, 5)])
    # As a batch over its last dimension, x has no dimension of stride 1 left.
    assert "clone" in str(tg.einsum("ijb,bjk->bik", tg.tensor(x, requires_grad=True), y).tape())
    assert "clone" not in str(tg.einsum("bji,bjk->bik", tg.tensor(y, requires_grad=True), y).tape())


ERRORS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("i1", [(2,)]), ("i.j", [(2, 2)]), ("...i...", [(2,)]), ("ij,jk", [(2, 2)]), ("ij", [(2, 2), (2, 2)]),
    ("ij", [(2,)]), ("i", [(2, 2)]), ("i...j", [(2,)]), ("ij,jk", [(2, 3), (4, 5)]), ("ii", [(2, 3)]), ("ii", [(1, 3)]),
    ("ij->ii", [(2, 3)]), ("ij->k", [(2, 3)]), ("ij->j1", [(2, 3)]), ("...,...", [(2,), (3,)]), ("->", [(2,)]),
    ("i-j", [(2,)]), ("ij->ij->", [(2, 2)]),
]  # fmt: skip


@needs_torch
@pytest.mark.parametrize(("equation", "shapes"), ERRORS)
def test_errors(equation: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = operands(shapes)
    with pytest.raises(RuntimeError) as theirs:
        torch.einsum(equation, *map(torch.tensor, arrays))
    with pytest.raises(RuntimeError) as ours:
        tg.einsum(equation, *arrays)
    # torch lacks a space in one of them.
    assert str(ours.value).replace(" ", "").startswith(str(theirs.value).replace(" ", ""))
    assert repr(equation) in str(ours.value)


def test_more_errors() -> None:
    with pytest.raises(ValueError, match="must specify the equation string and at least one operand"):
        tg.einsum("ij")
    with pytest.raises(ValueError, match="must specify the equation string and at least one operand"):
        tg.einsum(np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match=r"subscript 52 in subscript list is not within the valid range \[0, 52\)"):
        tg.einsum(np.ones(2), [52])
    with pytest.raises(RuntimeError, match=r"size 4 .* previously seen size 3; got .* and shapes \[2, 3\], \[4, 5\]"):
        tg.einsum("ij,jk", np.ones((2, 3)), np.ones((4, 5)))
    with pytest.raises(RuntimeError, match=r"found '\.' for output for which an ellipsis was already found"):
        tg.einsum("i->...i...", np.ones(2))
    with pytest.raises(TypeError, match="einsum"):
        tg.einsum("i", "text")
    with pytest.raises(RuntimeError, match=r"functions with out=\.\.\. arguments don't support"):
        np.einsum("i->", tg.ones(2, requires_grad=True), out=np.ones(()))
    assert np.einsum("i->", tg.ones(2), out=(out := np.ones(()))) is out
    assert out == 2.0


DIAGONALS = [
    ((3, 3), {}), ((2, 4), {}), ((4, 2), {}), ((3, 4), {"offset": 1}), ((3, 4), {"offset": -2}),
    ((3, 4), {"offset": 9}), ((3, 4), {"offset": -9}), ((2, 3, 4), {"dim1": 2, "dim2": 0}),
    ((2, 3, 4), {"offset": 1, "dim1": -1, "dim2": -2}), ((0, 3), {}), ((3, 0, 3), {"dim1": 0, "dim2": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "options"), DIAGONALS)
def test_diagonal(shape: tuple[int, ...], options: dict[str, int]) -> None:
    (x,) = operands([shape])
    axes = {"dim1": "axis1", "dim2": "axis2"}
    expected = np.diagonal(x, **{axes.get(name, name): value for name, value in options.items()})
    found = tg.tensor(x).diagonal(**options)
    assert found.shape == expected.shape
    assert found.tolist() == expected.tolist()
    own = checks.Problem(lambda tensor: tg.diagonal(tensor, **options), (x,), (0,))
    checks.check_gradient(own)


def test_diagonal_is_a_view_and_refuses() -> None:
    x = tg.tensor(np.zeros((3, 3)))
    assert np.shares_memory(x.diagonal().numpy(), x.numpy())
    assert np.diagonal(x, 1).tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="diagonal dimensions cannot be identical 0, -2"):
        x.diagonal(0, 0, -2)
    with pytest.raises(IndexError, match="Dimension out of range"):
        tg.diagonal(tg.zeros(2))
