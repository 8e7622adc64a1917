"""All functions of NumPy and ufuncs of SciPy: each is ours, or is refused with a reason; values and slopes of many."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import tapegrad as tg
from tapegrad.ops import numpy_special, protocol
from tapegrad.ops.numpy_parts import SEVERAL
from tapegrad.ops.table.public import SPECIAL, TOP, UFUNCS, find, names_in
from tapegrad.ops.table.scope import OF_SCIPY

# NumPy's functions that tensors have not: of dates, texts and files, or without any slope.
REFUSED = [
    "busday_count", "busday_offset", "datetime_as_string", "is_busday", "isnat", "printoptions", "spacing",
]  # fmt: skip
MADE = [
    *(name for name in numpy_special.SPECIAL if name != "lambertw"),
    "erfi",
    "dawsn",
    "erfcinv",
    "expi",
    "exp1",
    "spence",
    "ellipk",
    "ellipe",
]
WHOLE = ("eval_", "kn", "yn", "pdtr", "expn")  # whose first argument is an integer
COUNTS = ("bdtr", "nbdtr", "lpmv")  # whose first two arguments are integers
# Whose only derivative is the one by the last argument.
BY_LAST = (
    "kve", "jve", "yve", "hankel", "struve", "modstruve", "pbwa", "stdtrit", "eval_", "hyp", "wright_bessel",
    "log_wright", "pbdv", "pbvv",
)  # fmt: skip


def dispatched(module: Any) -> list[str]:
    """Return the names of NumPy's functions that look for tensors among their arguments."""
    names = [name for name in dir(module) if not name.startswith("_") and not isinstance(getattr(module, name), type)]
    return [name for name in names if hasattr(getattr(module, name), "_implementation")]


@pytest.mark.parametrize("module", [np, np.linalg, np.fft], ids=lambda module: module.__name__)
def test_each_function_of_numpy_is_ours(module: Any) -> None:
    ours = {*protocol._TABLE, *protocol._OURS}
    missing = [name for name in dispatched(module) if getattr(module, name) not in ours]
    assert set(missing) <= set(REFUSED)


def _is_ours(name: str) -> bool:
    known = name in SEVERAL or name in numpy_special.SPECIAL
    return known or any(find(place, name) for place in (UFUNCS, TOP, "tapegrad.linalg", SPECIAL))


def test_each_ufunc_of_numpy_is_ours() -> None:
    ufuncs = {own.__name__ for own in vars(np).values() if isinstance(own, np.ufunc)}
    assert {name for name in ufuncs if not _is_ours(name)} <= set(REFUSED)


@pytest.mark.parametrize(
    "name",
    [name for name, own in vars(scipy.special).items() if isinstance(own, np.ufunc) and not _is_ours(own.__name__)],
)
def test_other_ufuncs_of_scipy_are_refused(name: str) -> None:
    ufunc = getattr(scipy.special, name)
    with pytest.raises(TypeError, match=rf"{name} does not work on tensors: {re.escape(OF_SCIPY[name])}"):
        ufunc(*[tg.ones(2)] * ufunc.nin)


def test_reasons_are_of_functions_that_are_refused() -> None:
    refused = {name for name, own in vars(scipy.special).items() if isinstance(own, np.ufunc) and not _is_ours(name)}
    assert refused >= OF_SCIPY.keys()


@pytest.mark.parametrize("x", [1e9, 1e300, np.inf])
def test_a_hypergeometric_function_of_huge_numbers_ends(x: float) -> None:
    """SciPy's takes time in proportion to them."""
    assert scipy.special.hyp1f1(0.7, 0.45, tg.tensor(x)).item() == np.inf
    assert scipy.special.hyp1f1(0.0, 0.45, tg.tensor(x)).item() == 1.0
    leading = scipy.special.hyp1f1(-2.0, 0.45, tg.tensor(x)).item()
    assert leading == pytest.approx(x * x / (0.45 * 1.45), rel=1e-6)
    assert scipy.special.hyp0f1(1.0, tg.tensor(x)).item() == np.inf  # SciPy's divides by 0 where the order is 1


@pytest.mark.parametrize(("a", "b"), [(0.7, 0.45), (-2.0, 0.45), (-2.5, 3.0), (40.0, -30.5)])
@pytest.mark.parametrize("x", [-3e8, -1e10, -1e12])
def test_a_hypergeometric_function_far_to_the_left(a: float, b: float, x: float) -> None:
    mpmath = pytest.importorskip("mpmath")
    found = scipy.special.hyp1f1(a, b, tg.tensor(x)).item()
    assert found == pytest.approx(float(mpmath.hyp1f1(a, b, x)), rel=1e-9)


def test_a_hypergeometric_function_to_the_left_ends() -> None:
    """SciPy's does not, of some operands that are huge or nearly equal."""
    x = tg.tensor([-9e17, -1e300, -np.inf])
    assert scipy.special.hyp1f1(-0.5, -0.5, x).tolist() == [0.0, 0.0, 0.0]
    assert scipy.special.hyp1f1(1.5, 0.5, x)[2].item() == 0.0
    assert scipy.special.hyp1f1(-3.0, 0.5, x)[1:].tolist() == [np.inf, np.inf]
    assert np.isnan(scipy.special.hyp1f1(3636.0, 7.0, x)).all()


@pytest.mark.parametrize("a", [-1e10, 1e19, -1e300, np.inf])
def test_parameters_that_end_scipys_process_give_nan(a: float) -> None:
    x, b = tg.tensor([-0.5, 2.0, -1e300, np.nan], dtype=tg.float64), 2 * a
    assert np.isnan(scipy.special.hyp1f1(a, b, x)).all()
    if abs(a) > 2**53:
        assert np.isnan(scipy.special.hyp2f1(a, 0.5, a, x)).all()
        assert np.isnan(scipy.special.hyp2f1(0.5, a, b, x)).all()


@pytest.mark.parametrize("name", ["pbdv", "pbvv"])
@pytest.mark.parametrize("order", [1e8, -1e300, np.inf])
def test_a_parabolic_cylinder_function_of_a_huge_order_ends(name: str, order: float) -> None:
    """SciPy's takes time and memory in proportion to it."""
    assert all(np.isnan(one.item()) for one in getattr(scipy.special, name)(order, tg.tensor(0.5)))


def _arguments(name: str) -> list[np.ndarray]:
    ufunc = getattr(scipy.special, name)
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.15, 0.85, 4) for _ in range(ufunc.nin)]
    if name.startswith((*WHOLE, *COUNTS)):
        arrays[0] = np.arange(4)
    if name.startswith(COUNTS):
        arrays[1] = np.arange(5, 9)
    return [-own for own in arrays] if name == "ndtri_exp" else arrays


def _total(function: Callable[..., Any], arguments: list[Any]) -> Any:
    found = function(*arguments)
    parts = found if isinstance(found, tuple) else (found,)
    return sum(part.real.sum() + 2 * part.imag.sum() if "complex" in str(part.dtype) else part.sum() for part in parts)


@pytest.mark.parametrize("name", MADE)
def test_values_and_slopes(name: str) -> None:
    ufunc, arrays = getattr(scipy.special, name), _arguments(name)
    wanted = [own.dtype.kind == "f" for own in arrays]
    if name == "zetac":
        wanted = [False]
    if name == "besselpoly":
        wanted = [True, False, False]
    if name.startswith(BY_LAST):
        wanted[:-1] = [False] * (len(arrays) - 1)
    tensors = [tg.tensor(own, requires_grad=True) if one else own for own, one in zip(arrays, wanted, strict=True)]
    tensors[-1] = tg.tensor(arrays[-1], requires_grad=wanted[-1])
    found, expected = ufunc(*tensors), ufunc(*arrays)
    for own, other in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, expected)), strict=True):
        np.testing.assert_allclose(own.detach().numpy(), other, rtol=1e-11)
    leaves = [own for own in tensors if isinstance(own, tg.Tensor) and own.requires_grad]
    slopes = tg.autograd.grad(_total(ufunc, tensors), leaves) if leaves else ()
    step = 1e-6
    for slope, place in zip(slopes, np.flatnonzero(wanted), strict=True):
        for k in range(4):
            ends = []
            for sign in (1, -1):
                moved = [own.copy() for own in arrays]
                moved[place][k] += sign * step
                ends.append(_total(ufunc, moved))
            np.testing.assert_allclose(slope[k].item(), (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-7)
    assert name in numpy_special.SPECIAL or name in names_in(SPECIAL)


@pytest.mark.parametrize("other", [0.5, 1, np.array([0.5, 0.25])], ids=["float", "int", "array"])
@pytest.mark.parametrize(
    "name", ["chdtr", "chdtrc", "chdtri", "gdtr", "gdtrc", "gdtria", "gdtrix", "pdtr", "pdtrc", "pdtri"]
)
def test_numbers_beside_a_tensor(name: str, other: Any) -> None:
    """Distributions of incomplete gamma functions take them in any place, as SciPy's do."""
    ufunc = getattr(scipy.special, name)
    first = int(name.startswith("p"))
    for dtype in ("float32", "float64"):
        for place in range(first, ufunc.nin):
            values: list[Any] = [2] * first + [other] * (ufunc.nin - first)
            x = values[place] = np.array([0.3, 0.7], dtype)
            expected = ufunc(*values)
            values[place] = tg.tensor(x)
            found = ufunc(*values)
            assert found.dtype == (dtype if np.ndim(other) == 0 or first else "float64")
            np.testing.assert_allclose(found.numpy(), expected, rtol=2e-5 if dtype == "float32" else 1e-11)


@pytest.mark.parametrize("lmbda", [0.0, 1e-12])
@pytest.mark.parametrize("name", ["boxcox", "boxcox1p", "inv_boxcox", "inv_boxcox1p"])
def test_transformations_at_their_limit(name: str, lmbda: float) -> None:
    """Their slopes by the exponent are those of the series."""
    function = getattr(scipy.special, name)
    x, power = tg.tensor([0.4, 1.7], requires_grad=True), tg.tensor(lmbda, requires_grad=True)
    out = function(x, power)
    np.testing.assert_allclose(out.detach().numpy(), function(x.detach().numpy(), lmbda), rtol=1e-9)
    if lmbda == 0:
        by_x, by_power = tg.autograd.grad(out.sum(), (x, power))
        values, step = x.detach().numpy(), 1e-4
        slope = (function(values, step) - function(values, -step)).sum() / (2 * step)
        np.testing.assert_allclose(by_power.item(), slope, rtol=1e-6)
        around = (function(values + 1e-6, 0.0) - function(values - 1e-6, 0.0)) / 2e-6
        np.testing.assert_allclose(by_x.numpy(), around, rtol=1e-6)


def test_a_degree_with_a_fraction_is_refused() -> None:
    with pytest.raises(TypeError, match="polynomials of tensors have whole degrees"):
        scipy.special.eval_legendre(1.5, tg.ones(2))
    with pytest.raises(TypeError, match="kn and yn whole orders; kv and yv take others"):
        scipy.special.kn(tg.tensor(1.5), tg.ones(2))


@pytest.mark.filterwarnings("ignore:.*(truncated to an integer|non-integer arg)")
@pytest.mark.parametrize("name", ["bdtr", "bdtrc", "bdtri", "nbdtr", "nbdtrc", "nbdtri"])
def test_counts_of_any_kind(name: str) -> None:
    """Counts with fractions, negative ones and ends of the distribution are SciPy's; slopes are of the whole counts."""
    function = getattr(scipy.special, name)
    grid = np.array([*itertools.product((-2, -1, -0.5, 0, 0.5, 3, 4, 4.5, 5), (-1, 0, 4, 4.5), (0.0, 0.3, 1.0))]).T
    k, n, p = (tg.tensor(own, requires_grad=number == 2) for number, own in enumerate(grid))
    out = function(k, n, p)
    np.testing.assert_array_equal(out.detach().numpy(), function(*grid))
    inside = (grid[2] == 0.3) & np.isfinite(out.detach().numpy())
    change = function(*grid[:2], grid[2] + 1e-7) - function(*grid[:2], grid[2] - 1e-7)
    (slopes,) = tg.autograd.grad(out.sum(), p)
    np.testing.assert_allclose(slopes.numpy()[inside], change[inside] / 2e-7, rtol=1e-6, atol=1e-8)
    with pytest.raises(NotImplementedError, match="by a parameter"):
        function(tg.tensor(3.0, requires_grad=True), 4.0, tg.tensor(0.5)).backward()


# Values of other branches, of real and of complex numbers.
@pytest.mark.parametrize("k", [0, -1, 1, np.array([0, -1, 3])], ids=str)
@pytest.mark.parametrize(
    "z", [np.array([0.5, -0.2, 3.0]), np.array([0.5, -3.0, 7.0], np.float32), np.array([1 + 2j, -0.3 - 0.1j, 5j])],
    ids=lambda z: z.dtype.name,
)  # fmt: skip
def test_lambertw(z: np.ndarray, k: Any) -> None:
    function = scipy.special.lambertw
    x = tg.tensor(z, requires_grad=True)
    out = function(x, k)
    assert out.dtype == np.result_type(z, np.complex64)
    wide = z.astype(np.result_type(z, np.float64))
    rtol = 1e-12 if z.dtype != np.float32 else 1e-6
    np.testing.assert_allclose(out.detach().numpy(), function(wide, k), rtol=rtol)
    weights = np.array([1 + 2j, -1.0, 0.5j]).astype(out.dtype)
    first = tg.autograd.grad((out * tg.tensor(weights)).real.sum(), x, create_graph=True)[0]
    assert first.dtype == z.dtype
    step = 1e-5
    slopes = (function(wide + step, k) - function(wide - step, k)) / (2 * step)
    expected = (slopes * weights).conj() if z.dtype.kind == "c" else (slopes * weights).real
    np.testing.assert_allclose(first.detach().numpy(), expected, rtol=1e-7 if z.dtype != np.float32 else 2e-5)
    if z.dtype != np.float32:
        assert tg.autograd.gradgradcheck(lambda x: function(x, k), x)
        tangent = tg.func.jvp(lambda x: function(x, k), (x.detach(),), (tg.ones_like(x),))[1]
        np.testing.assert_allclose(tangent.numpy(), slopes, rtol=1e-7)


def test_lambertw_at_zero_and_of_integers() -> None:
    x = tg.tensor([0.0, 0.0], requires_grad=True)
    assert tg.autograd.grad(scipy.special.lambertw(x).real.sum(), x)[0].tolist() == [1.0, 1.0]
    ones = scipy.special.lambertw(tg.tensor([1, 2]), k=tg.tensor([0, 1]), tol=1e-9)
    np.testing.assert_allclose(ones.numpy(), scipy.special.lambertw([1, 2], [0, 1], 1e-9), rtol=1e-12)


def test_besselpoly_at_zero() -> None:
    nu = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
    a = tg.zeros(5, dtype="float64", requires_grad=True)
    (first,) = tg.autograd.grad(scipy.special.besselpoly(a, 0.5, nu).sum(), a, create_graph=True)
    assert first.tolist() == [0.0, np.inf, 1 / 2.5, 0.0, 0.0]
    (second,) = tg.autograd.grad(first.sum(), a)
    np.testing.assert_allclose(second.numpy()[[0, 2, 3, 4]], [-2 / 3.5, 0.0, np.inf, 1 / 3.5])


@pytest.mark.parametrize("name", ["modfresnelm", "modfresnelp"])
def test_fresnel_integrals_of_negative_numbers(name: str) -> None:
    """They are those of positive numbers, taken from the whole line; SciPy's are not."""
    function, sign = getattr(scipy.special, name), -1 if name.endswith("m") else 1
    x = np.array([0.0, 0.3, 2.0, 7.0, 400.0])
    left, right = function(tg.tensor(-x)), function(x)
    whole = np.sqrt(np.pi / 2) * (1 + 1j * sign)
    np.testing.assert_allclose(left[0].numpy(), whole - right[0], rtol=1e-11)
    factor = np.exp(-1j * sign * (x * x + np.pi / 4)) / np.sqrt(np.pi)
    np.testing.assert_allclose(left[1].numpy(), factor * (whole - right[0]), rtol=1e-11)


def test_tukeys_distribution_at_its_ends_and_at_lambda_zero() -> None:
    function = scipy.special.tklmbda
    x, lmbda = tg.tensor([-2.5, -0.4, 0.0, 1.3, 30.0], requires_grad=True), tg.tensor(0.0, requires_grad=True)
    out = function(x, lmbda)
    by_x, by_lmbda = tg.autograd.grad(out.sum(), (x, lmbda), create_graph=True)
    values = x.detach().numpy().astype(np.float64)
    logistic = scipy.special.expit(values)
    np.testing.assert_allclose(by_x.detach().numpy(), logistic * scipy.special.expit(-values), rtol=1e-5, atol=1e-12)
    step = 1e-3  # SciPy's is the logistic function up to 1e-4
    slope = (function(values, step) - function(values, -step)).sum() / (2 * step)
    np.testing.assert_allclose(by_lmbda.item(), slope, rtol=1e-5)
    curvature = (function(values, step) - 2 * logistic + function(values, -step)).sum() / step**2
    np.testing.assert_allclose(tg.autograd.grad(by_lmbda, lmbda)[0].item(), curvature, rtol=1e-3)
    outside = tg.tensor([-0.6, 0.5, 0.7], requires_grad=True)
    assert tg.autograd.grad(function(outside, 2.0).sum(), outside)[0].tolist() == [0.0, 0.0, 0.0]
    # Where lambda is below 0 there is no end.
    points = [-9.0, 2.1, 4.0], [-0.9, -2.0, -0.5]
    heavy = tuple(tg.tensor(own, dtype=tg.float64, requires_grad=True) for own in points)
    assert tg.testing.gradcheck(function, heavy)
    assert tg.testing.gradgradcheck(function, heavy)


@pytest.mark.parametrize(("name", "count"), [("tklmbda", 1), ("besselpoly", 2)])
def test_a_bool_as_a_parameter(name: str, count: int) -> None:
    function, x = getattr(scipy.special, name), tg.tensor([0.2, 0.6], requires_grad=True)
    slopes = [tg.autograd.grad(function(x, *[own] * count).sum(), x)[0] for own in (tg.tensor(True), tg.tensor(1.0))]
    assert slopes[0].tolist() == slopes[1].tolist()


def _derivatives(name: str, *operands: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient and the matrix of second derivatives."""
    function, point = getattr(scipy.special, name), tg.tensor(np.array(operands))
    first, second = tg.func.grad(lambda x: function(*x)), tg.func.hessian(lambda x: function(*x))
    return first(point).numpy(), second(point).numpy()


@pytest.mark.parametrize("beside", [0.0, 1e-9])
@pytest.mark.parametrize(
    ("name", "power", "slopes", "diagonal", "other"),
    [
        # Of equal operands R is a power of them. By an operand of weight b, of the sum c, it has b / c of the slope
        # and of the second derivative b (b + 1) / (c (c + 1)), by two of them b b' / (c (c + 1)) (DLMF 19.18).
        ("elliprf", -0.5, (1 / 3, 1 / 3), (3 / 4) / (15 / 4), (1 / 4) / (15 / 4)),
        ("elliprg", 0.5, (1 / 3, 1 / 3), (3 / 4) / (15 / 4), (1 / 4) / (15 / 4)),
        ("elliprd", -1.5, (1 / 5, 3 / 5), (3 / 4) / (35 / 4), (3 / 4) / (35 / 4)),
        ("elliprj", -1.5, (1 / 5, 2 / 5), (3 / 4) / (35 / 4), (2 / 4) / (35 / 4)),
        ("elliprc", -0.5, (1 / 3, 2 / 3), (3 / 4) / (15 / 4), (2 / 4) / (15 / 4)),
    ],
)
def test_carlsons_integrals_of_equal_operands(
    name: str, power: float, slopes: tuple[float, float], diagonal: float, other: float, beside: float
) -> None:
    x = 0.7
    count = getattr(scipy.special, name).nin
    first, second = _derivatives(name, *(x + beside * np.arange(count)))
    expected = power * x ** (power - 1) * np.array(slopes)
    np.testing.assert_allclose(first[[0, -1]], expected, rtol=1e-13 if not beside else 1e-8)
    expected = power * (power - 1) * x ** (power - 2) * np.array([diagonal, other])
    np.testing.assert_allclose(second[0, [0, -1]], expected, rtol=1e-13 if not beside else 1e-8)


def test_carlsons_integrals_at_their_ends() -> None:
    """Beside a zero they are complete integrals; by it there is no slope. Of a negative y one is a principal value."""
    first, _ = _derivatives("elliprf", 0.0, 0.3, 1.0)
    m = 0.7
    by_m = (scipy.special.ellipe(m) / (1 - m) - scipy.special.ellipk(m)) / (2 * m)
    assert first[0] == -np.inf
    np.testing.assert_allclose(first[1], -by_m, rtol=1e-13)
    gradient = _derivatives("elliprg", 0.0, 0.3, 1.0)[0]
    np.testing.assert_allclose(gradient[1], -(scipy.special.ellipe(m) - scipy.special.ellipk(m)) / (4 * m), rtol=1e-13)
    for y in (-0.4, -3.0):
        slopes, second = _derivatives("elliprc", 0.7, y)
        step = 1e-5
        change = [(scipy.special.elliprc(0.7 + a, y + b) - scipy.special.elliprc(0.7 - a, y - b)) / (2 * step)
                  for a, b in ((step, 0), (0, step))]  # fmt: skip
        np.testing.assert_allclose(slopes, change, rtol=1e-8)
        moved = (_derivatives("elliprc", 0.7, y + step)[0] - _derivatives("elliprc", 0.7, y - step)[0]) / (2 * step)
        np.testing.assert_allclose(second[1], moved, rtol=1e-7)
    far = _derivatives("elliprj", 1e-200, 1.0, 1e150, 3.0)
    assert np.isfinite(far[0]).all()


P = np.array([0.0, 2.0, -3.0, 1.0, 4.0, 0.0])
POINTS = np.linspace(0.0, 1.0, 7)
VALUES = np.sin(3 * POINTS)
BOTH = np.stack([VALUES, 2 * VALUES**2], 1)
POLYNOMIALS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "roots": (lambda p: abs(np.roots(p)) ** 2, (P[:-1],)),
    "no roots": (np.roots, (np.zeros(3),)),
    "polydiv": (lambda u, v: np.concatenate(np.polydiv(u, v)), (P[1:], np.array([1.0, 2.0, 0.5]))),
    "polydiv of less": (lambda u, v: np.concatenate(np.polydiv(u, v)), (P[1:3], P[1:])),
    "polydiv without rest": (lambda u, v: np.polydiv(u, v)[0], (np.array([1.0, 3.0, 2.0]), np.array([1.0, 1.0]))),
    "polyfit": (lambda x, y: np.polyfit(x, y, 3), (POINTS, VALUES)),
    "polyfit of two": (lambda x, y: np.polyfit(x, y, 2), (POINTS, BOTH)),
    "polyfit with weights": (lambda x, y, w: np.polyfit(x, y, 2, w=w), (POINTS, VALUES, VALUES + 1)),
    "union1d": (np.union1d, (P[:3], P[2:] + 0.5)),
    "intersect1d": (np.intersect1d, (P, P[1:3])),
    "setdiff1d": (np.setdiff1d, (P, P[1:3])),
    "setdiff1d of unique ones": (lambda x, y: np.setdiff1d(x, y, assume_unique=True), (P[1:], P[1:3])),
    "setxor1d": (np.setxor1d, (P, P[:3] + 1)),
    "setxor1d of unique ones": (lambda x, y: np.setxor1d(x, y, True), (P[1:], P[1:4] + 1)),
    "unique_values": (np.unique_values, (BOTH,)),
}


@pytest.mark.filterwarnings("ignore:.*rank")
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_and_sets(name: str) -> None:
    function, arrays = POLYNOMIALS[name]
    tensors = [tg.tensor(own, requires_grad=True) for own in arrays]
    found, expected = function(*tensors), function(*arrays)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-9)
    if not found.requires_grad:
        return
    slopes = tg.autograd.grad(found.real.sum(), tensors, allow_unused=True)
    for k, slope in enumerate(slopes):
        for place in range(arrays[k].size):
            moved = [own.copy() for own in arrays]
            if moved[k].flat[place] == 0 and ("roots" in name or "1d" in name):
                continue  # a leading zero
            moved[k].flat[place] += 1e-6
            change = (
                (function(*moved).real.sum() - expected.real.sum()) / 1e-6
                if "1d" not in name and "unique" not in name
                else None
            )
            if change is not None and slope is not None:
                np.testing.assert_allclose(slope.numpy().flat[place], change, rtol=2e-3, atol=2e-4)


def test_what_is_unique() -> None:
    x = np.array([[3, 1, 3], [2, 1, 7]])
    for function in (np.unique_all, np.unique_counts, np.unique_inverse):
        for name, own in function(tg.tensor(x))._asdict().items():
            np.testing.assert_array_equal(own.numpy(), getattr(function(x), name))
    both = np.intersect1d(tg.tensor(x), [7, 3], return_indices=True)
    for own, other in zip(both, np.intersect1d(x, [7, 3], return_indices=True), strict=True):
        np.testing.assert_array_equal(own.numpy(), other)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: np.polyfit(x, x, 2, full=True), "with full="),
        (lambda x: np.polyfit(x, x, 2, cov=True), "with cov="),
        (lambda x: np.polyfit(x, x[1:], 2), "expected x and y to have same length"),
    ],
)
def test_refused_options(call: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call(tg.tensor(POINTS))
