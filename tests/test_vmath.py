"""vmath: every function within 2 ulp of mpmath on its whole domain, the same bits wherever a number stands."""

from __future__ import annotations

import ctypes
import itertools
import math
import re
import timeit
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from tapegrad import vmath
from tapegrad.compiler import assembly, cache, drafts, intrinsics, jit
from tapegrad.kernels.loops import STRIDED, loop
from tapegrad.runtime.source_text import evaluated
from tapegrad.vmath import avx512, functions, trigonometric
from tests.tiers import mostly_full

BOUND = 2.0
DTYPES = ["float64", "float32"]


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x)) if x >= 0 else mp.exp(x) / (1 + mp.exp(x))


def _softplus(x: Any) -> Any:
    return max(x, mpf(0)) + mp.log1p(mp.exp(-abs(x)))


def _erfc(x: Any) -> Any:
    return mp.erfc(x) if x < 1000 else mpf(0)


def _erfcx(x: Any) -> Any:
    if x < 1000:
        return mp.exp(x * x) * mp.erfc(x) if x > -30 else mpf(2) ** 2000
    t = 1 / (2 * x * x)
    return (1 - t * (1 - 3 * t * (1 - 5 * t * (1 - 7 * t)))) / (x * mp.sqrt(mp.pi))  # DLMF 7.12.1


def _log_ndtr(x: Any) -> Any:
    if x < 0:
        return mp.log(_erfcx(-x / mp.sqrt(2)) / 2) - x * x / 2
    return mp.log1p(-_erfc(x / mp.sqrt(2)) / 2)


def _bessel(order: int, is_scaled: bool) -> Callable[[Any], Any]:
    def reference(x: Any) -> Any:
        size = abs(x)
        if size > 1000:  # DLMF 10.40.1
            total, term = mpf(0), mpf(1)
            for k in range(40):
                total += term
                term *= -(4 * order**2 - (2 * k + 1) ** 2) / ((k + 1) * 8 * size)
            scaled = total / mp.sqrt(2 * mp.pi * size)
            value = scaled if is_scaled else mpf(2) ** 2000
        else:
            value = mp.besseli(order, size) * (mp.exp(-size) if is_scaled else 1)
        return -value if order == 1 and x < 0 else value

    return reference


REFERENCES: dict[str, Callable[[Any], Any]] = {
    "exp": mp.exp, "exp2": lambda x: mp.power(2, x),
    "expm1": mp.expm1, "log": mp.log, "log1p": mp.log1p, "sin": mp.sin, "cos": mp.cos, "tan": mp.tan,
    "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "erf": mp.erf, "sigmoid": _sigmoid, "softplus": _softplus,
    "sqrt": mp.sqrt, "erfc": _erfc, "erfinv": mp.erfinv, "erfcx": _erfcx,
    "log_ndtr": _log_ndtr, "i0": _bessel(0, False), "i0e": _bessel(0, True),
    "atan": mp.atan, "asin": mp.asin, "acos": mp.acos, "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh,
    "log2": lambda x: mp.log(x, 2), "log10": mp.log10, "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "i1": _bessel(1, False), "i1e": _bessel(1, True), "bessel_i2": _bessel(2, False), "bessel_i2e": _bessel(2, True),
}  # fmt: skip
NAN, INF = math.nan, math.inf
#: What must come out exactly at 0, inf, -inf, nan, -0, and at further points.
SPECIAL: dict[str, tuple[list[float], dict[float, float]]] = {
    "exp": ([1, INF, 0, NAN, 1], {1e4: INF, -1e4: 0.0, 1e300: INF, -1e300: 0.0}),
    "exp2": ([1, INF, 0, NAN, 1], {1e4: INF, -1e4: 0.0, 3.0: 8.0, -126.0: 2.0**-126, 127.0: 2.0**127, 1e300: INF}),
    "expm1": ([0.0, INF, -1, NAN, -0.0], {1e4: INF, -1e4: -1.0, 1e-300: 1e-300, -5e-324: -5e-324}),
    "log": ([-INF, INF, NAN, NAN, -INF], {1.0: 0.0, -1.0: NAN, -1e-40: NAN}),
    "log2": ([-INF, INF, NAN, NAN, -INF], {1.0: 0.0, 8.0: 3.0, 2.0**-126: -126.0, 2.0**127: 127.0, -1.0: NAN}),
    "log10": ([-INF, INF, NAN, NAN, -INF], {1.0: 0.0, 1000.0: 3.0, 1e7: 7.0, 1e10: 10.0, -1.0: NAN}),
    "atan": ([0.0, math.pi / 2, -math.pi / 2, NAN, -0.0], {5e-324: 5e-324, 1.0: math.pi / 4, -1e300: -math.pi / 2}),
    "asin": ([0.0, NAN, NAN, NAN, -0.0], {5e-324: 5e-324, 1.0: math.pi / 2, -1.0: -math.pi / 2, 1.5: NAN}),
    "acos": ([math.pi / 2, NAN, NAN, NAN, math.pi / 2], {1.0: 0.0, -1.0: math.pi, 1.5: NAN, -1e300: NAN}),
    "asinh": ([0.0, INF, -INF, NAN, -0.0], {5e-324: 5e-324, -5e-324: -5e-324}),
    "acosh": ([NAN, INF, NAN, NAN, NAN], {1.0: 0.0, 0.5: NAN, -3.0: NAN, -1e30: NAN, -1e300: NAN}),
    "atanh": ([0.0, NAN, NAN, NAN, -0.0], {5e-324: 5e-324, 1.0: INF, -1.0: -INF, 1.5: NAN, -1e300: NAN}),
    "cbrt": ([0.0, INF, -INF, NAN, -0.0], {8.0: 2.0, -27.0: -3.0, 1e-300: 1e-100}),
    "log1p": ([0.0, INF, NAN, NAN, -0.0], {-1.0: -INF, -1.5: NAN, 5e-324: 5e-324}),
    "sin": ([0.0, NAN, NAN, NAN, -0.0], {5e-324: 5e-324, -1e-300: -1e-300}),
    "cos": ([1, NAN, NAN, NAN, 1], {5e-324: 1.0}),
    "tan": ([0.0, NAN, NAN, NAN, -0.0], {5e-324: 5e-324}),
    "sinh": ([0.0, INF, -INF, NAN, -0.0], {1e4: INF, -1e300: -INF, 5e-324: 5e-324}),
    "cosh": ([1, INF, INF, NAN, 1], {1e4: INF, -1e4: INF}),
    "tanh": ([0.0, 1, -1, NAN, -0.0], {1e300: 1.0, -30.0: -1.0, 5e-324: 5e-324}),
    "erf": ([0.0, 1, -1, NAN, -0.0], {1e300: 1.0, -7.0: -1.0}),
    "erfc": ([1.0, 0, 2, NAN, 1.0], {1e300: 0.0, -7.0: 2.0, 30.0: 0.0}),
    "erfcx": ([1.0, 0, INF, NAN, 1.0], {-30.0: INF, -1e300: INF}),
    "log_ndtr": ([-math.log(2), 0.0, -INF, NAN, -math.log(2)], {1e300: 0.0, -1e300: -INF}),
    "i0": ([1.0, INF, INF, NAN, 1.0], {1e300: INF, -1e300: INF, 1e-300: 1.0}),
    "i0e": ([1.0, 0, 0, NAN, 1.0], {1e-300: 1.0}),
    "i1": ([0.0, INF, -INF, NAN, -0.0], {1e300: INF, -1e300: -INF, 2e-300: 1e-300}),
    "i1e": ([0.0, 0, -0.0, NAN, -0.0], {2e-300: 1e-300}),
    "bessel_i2": ([0.0, INF, INF, NAN, 0.0], {1e300: INF, -1e300: INF, 1e-300: 0.0}),
    "bessel_i2e": ([0.0, 0, 0, NAN, 0.0], {1e-300: 0.0}),
    "erfinv": ([0.0, NAN, NAN, NAN, -0.0], {1.0: INF, -1.0: -INF, 1.5: NAN}),
    "sigmoid": ([0.5, 1, 0, NAN, 0.5], {1e300: 1.0, -1e300: 0.0}),
    "softplus": ([math.log(2), INF, 0, NAN, math.log(2)], {1e300: 1e300, -1e300: 0.0}),
    "sqrt": ([0.0, INF, NAN, NAN, -0.0], {4.0: 2.0, -1.0: NAN}),
}
each = pytest.mark.parametrize("name", REFERENCES)
in_both = pytest.mark.parametrize("dtype", DTYPES)


def rule_of(name: str) -> Callable[..., Any]:
    two = name in ("pow", "atan2", "hypot")
    return evaluated(f"lambda x, y: xp.{name}(x, y)" if two else f"lambda x: xp.{name}(x)", {"xp": vmath})


def run(address: int, arrays: list[np.ndarray], dtype: str) -> np.ndarray:
    out = np.empty(len(arrays[0]), dtype)
    steps = [own.strides[0] if len(own) else own.itemsize for own in (*arrays, out)]
    table = np.array([*(own.ctypes.data for own in arrays), out.ctypes.data], np.int64)
    dims = np.array([0, len(out), *steps], np.int64)
    ctypes.CFUNCTYPE(*[ctypes.c_int64] * 4)(address)(table.ctypes.data, dims.ctypes.data, 0)
    return out


def compute(name: str, *arrays: np.ndarray, strided: bool = False) -> np.ndarray:
    """Run the kernel of a function."""
    dtype = arrays[0].dtype.name
    count = len(arrays)
    steps = (STRIDED if strided else arrays[0].itemsize,) * (count + 1)
    function = loop(rule_of(name), (dtype,) * (count + 1), (dtype,) * count, steps)
    return run(cache.address_of(f"test-{name}-{dtype}", function, bind={"xp": vmath}), list(arrays), dtype)


def points(name: str, dtype: str) -> np.ndarray:
    """Return numbers of all sizes, and those at which something happens."""
    rng = np.random.default_rng(sum(map(ord, name + dtype)))
    info = np.finfo(dtype)
    exponents = np.arange(info.minexp - info.nmant, info.maxexp)
    scales = np.repeat(exponents, 1 if dtype == "float64" else 4)
    sizes = np.ldexp(rng.uniform(1, 2, scales.size), scales)
    found = [sizes, -sizes, rng.uniform(-1, 1, 700), rng.uniform(-10, 10, 700), rng.uniform(-40, 40, 300)]
    found += [np.exp(rng.uniform(-0.5, 0.5, 300)), -1 + np.ldexp(1.0, -rng.integers(1, info.nmant, 50))]
    edges = [
        math.log(2) / 2,
        math.log(2),
        math.sqrt(2),
        math.sqrt(0.5),
        math.sqrt(2) - 1,
        1.0,
        5.95,
        4.0,
        1.5,
        10.0,
        700.0,
    ]
    edges += [math.log(info.max), math.log(info.tiny), math.log(info.smallest_subnormal), info.max, info.tiny, 710.5]
    for edge in edges:
        for sign in (1, -1):
            at = np.array(sign * edge).astype(dtype)
            with np.errstate(over="ignore"):
                found.append(
                    np.array([np.nextafter(at, at.dtype.type(-INF)), at, np.nextafter(at, at.dtype.type(INF))])
                )
    if name in ("sin", "cos", "tan"):
        quarters = np.concatenate(
            [np.arange(-50, 50), rng.integers(-(2**26), 2**26, 700), [2**26, 2**27, 2**13, 2**14]]
        )
        near = (quarters * (math.pi / 2)).astype(dtype)
        found += [
            near,
            np.nextafter(near, near.dtype.type(INF)),
            rng.uniform(1.4, 1.7, 500),
            rng.uniform(-0.1, 0.1, 500),
            rng.uniform(-2e4, 2e4, 300),
            rng.uniform(-2e8, 2e8, 300),
        ]
        # Of all float64, the one nearest to a multiple of pi/2 (Muller, Elementary Functions, section 11.3.2).
        found.append(np.array([6381956970095103.0 * 2.0**797 if dtype == "float64" else 16367173.0 * 2.0**72]))
    if name == "tanh":
        found.append(rng.uniform(0.3, 0.75, 700))  # where its error is largest
    if name in ("log_ndtr", "erfcx"):
        found.append(rng.uniform(-3, 3, 700))
    if name.startswith(("i", "bessel")):
        found.append(rng.uniform(0, 720, 300))
    if name == "erfinv":
        found.append(1 - np.ldexp(1.0, -rng.integers(1, info.nmant + 2, 100)))
    if name in ("exp", "exp2", "expm1", "sinh", "cosh", "sigmoid", "softplus"):
        found.append(rng.uniform(math.log(info.smallest_subnormal) - 1, math.log(info.max) + 1, 700))
    with np.errstate(all="ignore"):
        x = np.concatenate([own.astype(dtype) for own in found])
    x = x[np.isfinite(x) & (x != 0)]
    if name in ("log", "log2", "log10", "sqrt", "acosh"):
        x = np.abs(x)
    if name == "acosh":
        return np.concatenate([x[x >= 1], (1 + np.geomspace(info.eps, 1, 700)).astype(dtype)])
    if name in ("erfinv", "asin", "acos", "atanh"):
        return x[np.abs(x) < 1]
    return x[x > -1] if name == "log1p" else x


def ulps(found: np.ndarray, exact: list[Any]) -> np.ndarray:
    """Return the distances of numbers from exact ones in units in the last place of these."""
    info = np.finfo(found.dtype)
    errors = []
    for value, want in zip(found.tolist(), exact, strict=True):
        if math.isnan(value):
            errors.append(INF)
            continue
        exponent = max(mpmath.mag(want) - 1 if want else info.minexp, int(info.minexp))
        unit = mp.ldexp(1, exponent - info.nmant)
        if math.isinf(value):  # as if the exponents went on
            value = math.copysign(float(info.max), value)
            value = mpf(value) + math.copysign(1, value) * mp.ldexp(1, int(info.maxexp) - 1 - info.nmant)
            if abs(want) > abs(value):
                value = want
        errors.append(float(abs(mpf(value) - want) / unit))
    return np.array(errors)


def check(name: str, dtype: str, bound: float = BOUND) -> None:
    x = points(name, dtype)
    with mp.workprec(150):
        exact = [REFERENCES[name](mpf(value)) for value in x.tolist()]
        errors = ulps(compute(name, x), exact)
    worst = int(np.argmax(errors))
    assert errors[worst] <= bound, f"{name}({x[worst]!r}) in {dtype}: {errors[worst]} ulp"


# ---- precision


# The largest errors that were found, in float64 and float32, and a little more: steps that are lost may cost less than
# what BOUND leaves.
LARGEST = {
    "exp": (1.0, 1.0), "exp2": (1.0, 1.0), "expm1": (1.25, 1.1), "log": (0.8, 0.8), "log1p": (0.8, 0.85),
    "sin": (1.5, 1.5), "cos": (1.6, 1.6), "tan": (0.6, 1.55), "sinh": (1.3, 1.35), "cosh": (1.3, 1.35),
    "tanh": (1.75, 1.65), "erf": (1.15, 0.87), "sigmoid": (1.15, 1.5), "softplus": (1.2, 1.4), "sqrt": (0.5, 0.5),
    "atan": (1.05, 0.51), "asin": (1.05, 0.51), "acos": (1.1, 0.51), "asinh": (1.65, 0.51), "acosh": (1.05, 0.51),
    "atanh": (0.8, 0.51), "log2": (0.8, 0.51), "log10": (0.8, 0.51), "cbrt": (0.51, 0.51), "erfc": (1.8, 0.51),
    "erfinv": (2.0, 0.51), "erfcx": (1.7, 0.51), "log_ndtr": (2.4, 0.51), "i0": (2.0, 0.51), "i0e": (2.7, 0.51),
    "i1": (2.1, 0.51), "i1e": (2.5, 0.51), "bessel_i2": (2.0, 0.51), "bessel_i2e": (2.7, 0.51),
}  # fmt: skip


@pytest.mark.parametrize("name", mostly_full(REFERENCES, 6))
@in_both
def test_precision(name: str, dtype: str) -> None:
    check(name, dtype, LARGEST[name][dtype == "float32"])


@in_both
def test_pow_precision(dtype: str) -> None:
    rng = np.random.default_rng(5)
    info = np.finfo(dtype)
    n = 2500
    base = np.exp(rng.normal(size=n) * rng.choice([1e-6, 0.01, 1, 30], n))
    limit = math.log(info.max) * rng.choice([1e-3, 1, 1.02], n)
    exponent = rng.uniform(-1, 1, n) * limit / np.maximum(np.abs(np.log(base)), 1e-9)
    x = np.concatenate([base, rng.uniform(-9, 9, n), [info.tiny, info.smallest_subnormal, info.max, -info.max]])
    y = np.concatenate([exponent, rng.integers(-40, 40, n), [0.5, 0.25, 0.99, 3.0]])
    with np.errstate(all="ignore"):
        x, y = x.astype(dtype), y.astype(dtype)
    keep = (x != 0) & np.isfinite(x)
    x, y = x[keep], y[keep]
    with mp.workprec(200):
        exact = [mpf(a) ** mpf(b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        errors = ulps(compute("pow", x, y), exact)
    worst = int(np.argmax(errors))
    assert errors[worst] <= BOUND, f"{x[worst]!r} ** {y[worst]!r}: {errors[worst]} ulp"


@pytest.mark.parametrize("name", ["atan2", "hypot"])
@in_both
def test_precision_of_planes(name: str, dtype: str) -> None:
    """Of points of all sizes, and of those of which one coordinate is nothing beside the other."""
    rng = np.random.default_rng(6)
    info = np.finfo(dtype)
    n = 2500
    sizes = np.exp2(np.concatenate([rng.uniform(info.minexp - info.nmant, info.maxexp, n), np.zeros(n)]))
    with np.errstate(all="ignore"):
        y = sizes * rng.uniform(-1, 1, 2 * n)
        x = y * rng.normal(size=2 * n) * np.exp2(rng.choice([-30, -1, 0, 1, 30], 2 * n))
        x, y = x.astype(dtype), y.astype(dtype)
    keep = np.isfinite(x) & np.isfinite(y) & (x != 0) & (y != 0)
    x, y = x[keep], y[keep]
    with mp.workprec(150):
        exact = [getattr(mp, name)(mpf(a), mpf(b)) for a, b in zip(y.tolist(), x.tolist(), strict=True)]
        errors = ulps(compute(name, y, x), exact)
    worst = int(np.argmax(errors))
    assert errors[worst] <= (1.3 if dtype == "float64" else 0.51), f"{y[worst]!r}, {x[worst]!r}: {errors[worst]} ulp"


@pytest.mark.parametrize("name", ["atan2", "hypot"])
@in_both
def test_planes_special(name: str, dtype: str) -> None:
    """As in NumPy, zeros with their signs."""
    info = np.finfo(dtype)
    edges = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, float(info.max), -float(info.smallest_subnormal)]
    y, x = (np.array(own, dtype) for own in zip(*itertools.product(edges, edges), strict=True))
    with np.errstate(all="ignore"):
        expected = {"atan2": np.arctan2, "hypot": np.hypot}[name](y, x)
    found = compute(name, y, x)
    np.testing.assert_array_max_ulp(found, expected, 1)
    known = ~np.isnan(found)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))


def test_wrong_coefficient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = trigonometric.SIN
    monkeypatch.setattr(trigonometric, "SIN", (first * (1 + 1e-14), *others))
    with pytest.raises(AssertionError, match="ulp"):
        check("sin", "float64")


def test_errors_are_measured() -> None:
    one = np.array([1.0, 1.0, math.inf, math.inf, 5e-324, math.nan, 0.0])
    with mp.workprec(100):
        top = mp.ldexp(1, 1024)
        exact = [mpf(1) + mpf(2) ** -52, mpf(1) - mpf(2) ** -52, top, 4 * top, mpf(0), mpf(1), mpf(0)]
        assert ulps(one, exact).tolist() == [1, 2, 0, 0, 1, INF, 0]
        assert ulps(np.array([INF]), [mpf(1)])[0] > 1e9


# ---- values that are special


@each
@in_both
def test_special(name: str, dtype: str) -> None:
    at, more = SPECIAL[name]
    with np.errstate(all="ignore"):
        x = np.array([0.0, INF, -INF, NAN, -0.0, *more], dtype)
        want = np.array([*at, *more.values()], dtype)
    for length in (1, 9, 64):  # a lane's fate does not depend on its neighbours
        for value, expected in zip(x, want, strict=True):
            found = compute(name, np.full(length, value))
            np.testing.assert_array_equal(found, np.full(length, expected))
            assert (np.isnan(found) | (np.signbit(found) == np.signbit(expected))).all()
    mixed = compute(name, np.resize(x, 50))
    np.testing.assert_array_equal(mixed, np.resize(want, 50))


@in_both
def test_lgamma(dtype: str) -> None:
    rng = np.random.default_rng(0)
    tiny, most = (-300, 299) if dtype == "float64" else (-37, 36)
    parts = [rng.uniform(0, 3.2, 900), rng.uniform(3, 30, 300), 1 + rng.normal(size=100) / 99, -rng.uniform(0, 20, 300)]
    parts += [2 + rng.normal(size=100) / 99, 10.0 ** rng.uniform(tiny, 1, 100), 10.0 ** rng.uniform(1, most, 200)]
    x = np.concatenate(parts).astype(dtype)
    with mp.workprec(200):
        exact = [mp.log(abs(mp.gamma(mpf(v)))) if v < 100 else mp.loggamma(mpf(v)) for v in x.tolist()]
        errors = ulps(compute("lgamma", x), exact)
    assert errors[x > 0].max() < (3.3 if dtype == "float64" else 0.51)
    edges = np.array([0.0, -0.0, -1, -2, INF, NAN, 1, 2, np.finfo(dtype).max], dtype)
    expected = np.array([INF, INF, INF, INF, INF, NAN, 0, 0, INF], dtype)
    np.testing.assert_array_equal(compute("lgamma", edges), expected)
    np.testing.assert_array_equal(compute("lgamma", np.resize(edges, 50)), np.resize(expected, 50))


@in_both
def test_digamma(dtype: str) -> None:
    rng = np.random.default_rng(0)
    tiny, most = (-150, 300) if dtype == "float64" else (-18, 37)
    parts = [rng.uniform(0, 3.2, 900), rng.uniform(3, 30, 300), 1.461632 + 10.0 ** rng.uniform(-9, -2, 200)]
    parts += [10.0 ** rng.uniform(tiny, 1, 100), 10.0 ** rng.uniform(1, most, 200), -rng.uniform(0, 20, 300)]
    x = np.concatenate(parts).astype(dtype)
    found = compute("digamma", x)
    with mp.workprec(200):
        exact = [mpmath.digamma(mpf(float(value))) for value in x]
        errors = ulps(found, exact)
    assert errors[x > 0].max() < (4 if dtype == "float64" else 0.51)
    # Near its roots below 0 what is left has fewer digits.
    sizes = np.array([float(abs(value)) for value in exact])
    assert (
        np.abs(found.astype(float) - [float(value) for value in exact]) <= np.finfo(dtype).eps * (4 + 4 * sizes)
    ).all()
    edges = np.array([0.0, -0.0, -1, -2, -INF, INF, NAN, -(2.0**100)], dtype)
    expected = np.array([-INF, INF, NAN, NAN, NAN, INF, NAN, NAN], dtype)
    np.testing.assert_array_equal(compute("digamma", edges), expected)
    np.testing.assert_array_equal(compute("digamma", np.resize(edges, 50)), np.resize(expected, 50))


@in_both
def test_trigamma(dtype: str) -> None:
    rng = np.random.default_rng(0)
    tiny, most = (-150, 300) if dtype == "float64" else (-18, 37)
    parts = [rng.uniform(0, 3, 500), rng.uniform(3, 30, 200), 10.0 ** rng.uniform(tiny, 1, 100)]
    parts += [10.0 ** rng.uniform(1, most, 200), -rng.uniform(0, 20, 300)]
    x = np.concatenate(parts).astype(dtype)
    with mp.workprec(200):
        errors = ulps(compute("trigamma", x), [mpmath.psi(1, mpf(float(value))) for value in x])
    assert errors[x > 0].max() < (2.4 if dtype == "float64" else 0.51)
    assert errors.max() < 4
    edges = np.array([0.0, -0.0, -1, -2, -INF, INF, NAN, -(2.0**100), 2.0**100], dtype)
    expected = np.array([INF, INF, INF, INF, INF, 0, NAN, INF, 2.0**-100], dtype)
    np.testing.assert_array_equal(compute("trigamma", edges), expected)
    np.testing.assert_array_equal(compute("trigamma", np.resize(edges, 50)), np.resize(expected, 50))


@in_both
def test_powers_of_two_are_exact(dtype: str) -> None:
    info = np.finfo(dtype)
    n = np.arange(info.minexp - info.nmant, info.maxexp)
    np.testing.assert_array_equal(compute("exp2", n.astype(dtype)), np.ldexp(info.dtype.type(1), n))


@in_both
def test_pow_special(dtype: str) -> None:
    values = np.array([0.0, -0.0, INF, -INF, NAN, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 1e-45, -1e-45, 1e38, -1e38], dtype)
    x, y = (np.ascontiguousarray(own.ravel()) for own in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    found = compute("pow", x, y)
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps)
    assert (np.isnan(found) | (np.signbit(found) == np.signbit(expected))).all()


@pytest.mark.parametrize("name", ["exp", "exp2", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt"])
@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_complex(name: str, dtype: str) -> None:
    rng = np.random.default_rng(7)
    parts = rng.uniform(-3, 3, (2, 200))
    x = np.concatenate([parts[0] + 1j * parts[1], [1, -1, 1j, -1j, complex(-4, -0.0)]]).astype(dtype)
    found = compute(name, x)
    np.testing.assert_allclose(found, getattr(np, name)(x), rtol=30 * np.finfo(dtype).eps)


# ---- lanes


@each
@in_both
def test_same_bits_anywhere(name: str, dtype: str) -> None:
    """Vectors and the single numbers after them compute alike."""
    x = points(name, dtype)[::7]
    x = np.concatenate([x[:150], x[-150:]])
    whole = compute(name, x)
    for first in (0, 1, 5):
        for length in (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 100):
            part = compute(name, x[first : first + length])
            np.testing.assert_array_equal(part, whole[first : first + length])
    for step in (1, 2, 3, -1):
        np.testing.assert_array_equal(compute(name, x[::step], strided=True), whole[::step])


def compiled(name: str, dtype: str) -> tuple[int, str]:
    """Compile a kernel anew; return its address and the optimised LLVM code."""
    size = np.dtype(dtype).itemsize
    function = loop(rule_of(name), (dtype, dtype), (dtype,), (size, size))
    drafts.finish()  # whose thread would be seen, too
    texts, emitted = [], assembly.emitted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            assembly, "emitted", lambda module, machine: texts.append(str(module)) or emitted(module, machine)
        )
        code = jit.compile_function(function, ("int64",) * 3, {"xp": vmath})
    address = cache.link(code, [jit.SYMBOL])[jit.SYMBOL]
    assert address is not None
    return address, texts[0]


@each
@in_both
def test_loops_are_vectorised(name: str, dtype: str) -> None:
    width = functions.register_bits() // (8 * np.dtype(dtype).itemsize)
    kind = "double" if dtype == "float64" else "float"
    _, text = compiled(name, dtype)
    if name == "sqrt":
        assert re.search(rf"call (?:\w+ )*<\d+ x {kind}> @llvm\.sqrt", text)
        return
    called = re.search(rf"call (?:\w+ )*<{width} x {kind}> @{intrinsics.VECTORISABLE}{name}_{kind}{width}\(", text)
    assert called, "the loop takes one number at a time"
    at = text.index(called[0])
    assert called[0] not in text[at + 1 : text.index("br ", at)], "vectors wait on the stack for each other"


@pytest.mark.parametrize("name", ["exp", "cosh", "softplus"])
@in_both
def test_same_bits_without_scaling(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no instruction multiplies by powers of 2, two products do."""
    x = points(name, dtype)
    expected = compute(name, x)
    monkeypatch.setattr(avx512, "can_scale", lambda x: False)
    address, text = compiled(name, dtype)
    assert "scalef" not in text
    np.testing.assert_array_equal(run(address, [x], dtype), expected)


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("name", ["erf", "exp", "sin", "log1p"])
@in_both
def test_same_bits_in_any_width(name: str, dtype: str, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = points(name, dtype)
    expected = compute(name, x)
    monkeypatch.setattr(functions, "register_bits", lambda: bits)
    address, _ = compiled(name, dtype)
    np.testing.assert_array_equal(run(address, [x], dtype), expected)


def test_erf_by_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPUs without AVX-512 load what this one chooses from registers."""
    x = points("erf", "float64")
    expected = compute("erf", x)
    monkeypatch.setattr(avx512, "has_avx512", lambda: False)
    address, text = compiled("erf", "float64")
    assert "vperm" not in text
    np.testing.assert_array_equal(run(address, [x], "float64"), expected)


@pytest.mark.parametrize("name", ["exp", "sigmoid", "softplus"])
@in_both
def test_what_rounds_to_zero_takes_no_longer(name: str, dtype: str) -> None:
    """CPUs take 50 times as long for it: masked scores are minus infinity."""
    address, _ = compiled(name, dtype)
    plain, masked = (np.linspace(-3, 3, 50_000).astype(dtype) for _ in range(2))
    masked[::2], masked[1::4] = -np.inf, -1e4
    took = [min(timeit.repeat(lambda x=x: run(address, [x], dtype), number=1, repeat=20)) for x in (plain, masked)]
    assert took[1] < 4 * took[0]
    assert not run(address, [masked], dtype)[::2].any()
