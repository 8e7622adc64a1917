"""Coefficients of minimax polynomials for `tapegrad.vmath`, by the algorithm of Remez in 60 digits.

``python tools/minimax.py [NAME ...]`` prints the coefficients of `PROBLEMS`, and log2 of the largest weighted error of
each before its coefficients are rounded. E. Remez, C. R. Acad. Sci. 199 (1934); J.-M. Muller, Elementary Functions, 3.
"""

from __future__ import annotations

import itertools
import struct
import sys
from collections.abc import Callable
from typing import Any

from mpmath import mp, mpf

Function = Callable[[Any], Any]
mp.dps = 60


def remez(f: Function, weight: Function, a: Any, b: Any, degree: int) -> tuple[list[Any], Any]:
    """Return the polynomial of least ``max |weight (f - p)|`` on an interval, and that maximum."""
    count = degree + 2

    def chebyshev(number: int) -> list[Any]:
        return [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * (k + mpf(1) / 2) / number) for k in range(number)]

    points, values = chebyshev(count), [(x, f(x), weight(x)) for x in chebyshev(24 * count)]
    found: list[Any] = []
    worst = mpf(0)
    for _ in range(12):
        system, right = mp.matrix(count, count), mp.matrix(count, 1)
        for row, x in enumerate(points):
            for k in range(degree + 1):
                system[row, k] = x**k
            system[row, degree + 1] = (-1) ** row / weight(x)
            right[row] = f(x)
        solved = mp.lu_solve(system, right)
        found = list(solved)[: degree + 1]
        # The largest error between two changes of its sign.
        runs: list[tuple[Any, Any]] = []
        for x, y, w in values:
            error = w * (y - mp.polyval(found[::-1], x))
            if not runs or (runs[-1][1] > 0) != (error > 0):
                runs.append((x, error))
            elif abs(error) > abs(runs[-1][1]):
                runs[-1] = (x, error)
        while len(runs) > count:
            runs.pop(0 if abs(runs[0][1]) < abs(runs[-1][1]) else -1)
        worst = max(abs(error) for _, error in runs)
        if len(runs) < count or worst < abs(solved[degree + 1]) * mpf("1.001"):
            break
        points = [x for x, _ in runs]
    return found, worst


def precisely(f: Function) -> Function:
    """Return f where it cancels near 0: with more digits, and not nearer than they reach."""

    def value(t: Any) -> Any:
        with mp.workdps(120):
            return +f(max(abs(t), mpf(10) ** -16) * (1 if t >= 0 else -1))

    return value


def odd(f: Function) -> Function:
    """Return (f(r) - r) / r**3 as a function of r**2."""
    return precisely(lambda t: (f(mp.sqrt(t)) - mp.sqrt(t)) / (t * mp.sqrt(t)))


EXP = precisely(lambda r: (mp.exp(r) - 1 - r) / r**2)
LOG = precisely(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3)
ERF = precisely(lambda t: mp.erf(mp.sqrt(t)) / mp.sqrt(t) - 1)
ARTANH = precisely(lambda t: (2 * mp.atanh(mp.sqrt(t)) - 2 * mp.sqrt(t) - 2 * t * mp.sqrt(t) / 3) / t ** mpf("2.5"))
SMALL = mpf("1e-9")  # a weight must not vanish
BEGIN = mpf("0.05")
EDGE = mpf("1.0001")
# The coefficients of float32 near those found with which all numbers up to pi have the least error, by trial.
GIVEN = (-0.16666656732559204, 0.008332990109920502)
LN2 = mp.log(2) / 2 * mpf("1.0001")
HALF, HALF_SINGLE = (mp.pi / 2 * mpf("1.0001")) ** 2, (mp.pi / 2 * mpf("1.0002")) ** 2
QUARTER, QUARTER_SINGLE = (mp.pi / 4 * mpf("1.0001")) ** 2, (mp.pi / 4 * mpf("1.02")) ** 2
ROOT = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) * mpf("1.001")) ** 2


def exp_weight(r: Any) -> Any:
    return (r * r + mpf("1e-3")) / mp.exp(r)


def expm1_weight(r: Any) -> Any:
    return abs(r) + mpf("0.01")


def first(t: Any) -> Any:
    return t + mpf("1e-6")


def after(f: Function, *given: float) -> Function:
    """Return the function that is left of f when the first coefficients are given, as they are rounded.

    Where a polynomial is as large as what it is added to, the rounding of its first coefficient would be seen.
    """

    def rest(t: Any) -> Any:
        value = f(t)
        for c in given:
            value = (value - mpf(c)) / t
        return value

    return rest


def sine_weight(given: int) -> Function:
    """Return the weight of an error behind given coefficients, relative to the sine."""
    return lambda t: t ** (given + 1) * mp.sqrt(t) / mp.sin(mp.sqrt(t))


def erf_weight(t: Any) -> Any:
    return 1 / (1 + ERF(t))


def scaled_tail(t: Any) -> Any:
    return mp.exp((1 + t) ** 2) * mp.erfc(1 + t)


def tail_weight(t: Any) -> Any:
    return mp.exp(-((1 + t) ** 2))


def complement(t: Any) -> Any:
    x = mpf("3.5") * (1 + t) / max(1 - t, mpf(10) ** -30)
    if x > 100:  # DLMF 7.12.1
        terms = ((-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(25))
        return (1 + 2 * x) * sum(terms) / (x * mp.sqrt(mp.pi))
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def bessel_near(order: int) -> Function:
    return precisely(lambda a: (mp.hyp0f1(order + 1, a) - 1) / a)


def bessel_near_weight(order: int) -> Function:
    return lambda a: a / mp.hyp0f1(order + 1, a) + SMALL


def bessel_far(order: int) -> Function:
    def function(t: Any) -> Any:
        x = 1 / max(t, mpf("1e-8"))
        return mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x)

    return function


def inverse(w: Any) -> Any:
    """Return erfinv(x) / x, where w = -log(1 - x**2)."""
    with mp.workdps(90):
        x = mp.sqrt(-mp.expm1(-max(w, mpf(10) ** -40)))
        return +(mp.erfinv(x) / x)


def inverse_far(middle: str) -> Function:
    return lambda t: inverse((t + mpf(middle)) ** 2)


def log_gamma(a: Any) -> Any:
    """Return log(gamma(1 + a)) / (a (a - 1)), which has no zeros."""
    with mp.workdps(90):
        a = max(a, mpf(10) ** -25) + (mpf(10) ** -25 if a == 1 else 0)
        return +(mp.loggamma(1 + a) / (a * (a - 1)))


ROOT_OF_DIGAMMA = mp.findroot(mp.digamma, 1.46)


def digamma(t: Any) -> Any:
    """Return digamma(x) / (x - its root), where x = 3/2 + t."""
    with mp.workdps(90):
        x = mpf(3) / 2 + t
        return +(mp.digamma(x) / (x - ROOT_OF_DIGAMMA))


#: name: (function, weight, interval, degree, format)
PROBLEMS: dict[str, tuple[Function, Function, Any, Any, int, str]] = {
    "EXP": (EXP, exp_weight, -LN2, LN2, 9, "d"),
    "EXP_SINGLE": (EXP, exp_weight, -LN2, LN2, 4, "f"),
    "EXPM1": (EXP, expm1_weight, -LN2, LN2, 9, "d"),
    "EXPM1_SINGLE": (EXP, expm1_weight, -LN2, LN2, 4, "f"),
    "TANH": (odd(mp.tanh), first, mpf(0), LN2 * LN2, 7, "d"),
    "TANH_SINGLE": (odd(mp.tanh), first, mpf(0), LN2 * LN2, 3, "f"),
    "LOG": (lambda t: 2 * odd(mp.atanh)(t), lambda t: t / 2 + SMALL, mpf(0), ROOT, 6, "d"),
    "LOG_SINGLE": (LOG, lambda f: f * f + mpf("1e-3"), mpf("-0.293893"), mpf("0.415214"), 7, "f"),
    "SIN": (after(odd(mp.sin), -1 / 6), sine_weight(1), BEGIN, HALF, 6, "d"),
    "SIN_SINGLE": (after(odd(mp.sin), *GIVEN), sine_weight(2), BEGIN, HALF_SINGLE, 1, "f"),
    "TAN": (odd(mp.tan), first, mpf(0), QUARTER / 4, 8, "d"),
    "TAN_SINGLE": (odd(mp.tan), first, mpf(0), QUARTER_SINGLE, 6, "f"),
    "ATAN": (odd(mp.atan), first, mpf(0), EDGE, 19, "d"),
    "ASIN": (odd(mp.asin), first, mpf(0), EDGE / 4, 12, "d"),
    "CBRT": (mp.cbrt, lambda t: 1 / mp.cbrt(t), mpf("0.35"), mpf("2.84"), 7, "d"),
    "SMALL": (ERF, erf_weight, mpf(0), mpf("1.001"), 11, "d"),
    "SMALL_SINGLE": (ERF, erf_weight, mpf(0), mpf("1.001"), 6, "f"),
    "LARGE_SINGLE": (scaled_tail, tail_weight, mpf(0), mpf(3), 8, "f"),
    "COMPLEMENT": (complement, lambda t: 1 / complement(t), mpf(-1), mpf(1), 25, "d"),
    **{f"NEAR_{n}": (bessel_near(n), bessel_near_weight(n), mpf(0), 25 * EDGE, 15, "d") for n in range(3)},
    **{f"FAR_{n}": (bessel_far(n), lambda t: mpf("2.5"), mpf(0), EDGE / 10, 20, "d") for n in range(3)},
    "CENTRE": (lambda t: inverse(t + 1), lambda t: 1, mpf(-1), mpf(4), 22, "d"),
    "TAILS_1": (inverse_far("2.7"), lambda t: mpf("0.4"), mpf("-0.5"), mpf("0.5"), 17, "d"),
    "TAILS_2": (inverse_far("3.85"), lambda t: mpf("0.3"), mpf("-0.65"), mpf("0.65"), 16, "d"),
    "TAILS_3": (inverse_far("5.26"), lambda t: mpf("0.2"), mpf("-0.76"), mpf("0.76"), 15, "d"),
    "LOG_GAMMA": (log_gamma, lambda a: 1 / log_gamma(a), mpf(0), EDGE, 20, "d"),
    "DIGAMMA": (digamma, lambda t: 1 / digamma(t), -EDGE / 2, EDGE / 2, 21, "d"),
    "TAIL": (ARTANH, lambda t: t * t / 2 + SMALL, mpf(0), ROOT, 6, "d"),
}


def erf_rows() -> tuple[list[tuple[float, ...]], Any]:
    """Return the table of `tapegrad.vmath.error_table`, and the largest relative error of erf by it.

    A row is for |x| where ``x (4 - 0.236 x)`` has one nearest integer. It has a centre c at which erf is a float64
    but for 2**-60, erf(c), and the coefficients of (erf(c + t) - erf(c)) / t. The first centre is 0; with it the
    coefficients are those of erf(t) / t - 1.
    """
    ends = [(4 - mp.sqrt(16 - mpf("0.944") * (k + mpf("0.5")))) / mpf("0.472") for k in range(15)] + [mpf("5.95")]
    found, worst = remez(ERF, erf_weight, mpf(0), ends[0] ** 2, 5)
    rows = [(0.0, 0.0, *[float(c) for k in found for c in (k, 0)][:11])]
    for low, high in itertools.pairwise(ends):
        places = [(low + high) / 2 + (high - low) * k / 50000 for k in range(-200, 200)]
        centre = min((mpf(float(own)) for own in places), key=lambda c: abs(mp.erf(c) / mpf(float(mp.erf(c))) - 1))
        radius = max(high - centre, centre - low) * EDGE
        slope = precisely(lambda t, c=centre: (mp.erf(c + t) - mp.erf(c)) / t)
        found, error = remez(slope, lambda t, c=centre: (abs(t) + SMALL) / mp.erf(c + t), -radius, radius, 10)
        rows.append((float(centre), float(mp.erf(centre)), *map(float, found)))
        worst = max(worst, error)
    return rows, worst


def main(names: list[str]) -> None:
    if names == ["ERF_ROWS"]:
        rows, worst = erf_rows()
        print(f"2**{float(mp.log(worst, 2)):.1f}", *rows, sep="\n")
        return
    for name in names or PROBLEMS:
        f, weight, a, b, degree, form = PROBLEMS[name]
        found, worst = remez(f, weight, a, b, degree)
        rounded = tuple(struct.unpack(form, struct.pack(form, float(c)))[0] for c in found)
        print(f"{name}: 2**{float(mp.log(worst, 2)):.1f}\n{rounded}")


if __name__ == "__main__":
    main(sys.argv[1:])
