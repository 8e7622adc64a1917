"""Values that differ from PyTorch's, up to the signs of zeros: each is explained in docs/understand/semantics.md."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence

import numpy as np

from tests.fuzz.compare import near


def _turned(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return which complex numbers differ in the signs of their parts alone."""
    if ours.dtype.kind != "c":
        return np.zeros(ours.shape, bool)
    parts = near(abs(ours.real), abs(theirs.real)) & near(abs(ours.imag), abs(theirs.imag))
    return np.asarray(parts)


def _turned_around(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return which complex numbers differ by a multiple of 2 pi i."""
    return near(ours.real, theirs.real) & near(np.exp(1j * ours.imag), np.exp(1j * theirs.imag))


#: Calls whose values differ, by the text of the line, with the elements that are seen and the reason. A line is left
#: out if all other elements are equal.
VALUES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    # Norms do not overflow; PyTorch's are inf where powers of their elements are, and the difference of two is nan.
    r"\b(c?dist|pairwise_distance|(vector_|matrix_)?norm)\(": lambda ours, theirs: (
        np.isposinf(theirs) & np.isfinite(ours) & (np.abs(ours) > float(np.finfo(ours.dtype).max) ** 0.25)
    ),
    r"triplet_margin(_with_distance)?_loss": lambda ours, theirs: np.isnan(theirs) & np.isfinite(ours),
    # The sign of nan is nan, as in NumPy; PyTorch has 0.
    r"\b(sgn|sign)_?\(": lambda ours, theirs: np.isnan(ours),
    # So is its step.
    r"\bheaviside_?\(": lambda ours, theirs: np.isnan(ours) & (theirs == 0),
    # On a branch cut the sign of a zero decides, and products with complex numbers lose it.
    r"\b(a(rc)?(sin|cos|tan)h?|r?sqrt|log(2|10|1p|it|sumexp)?)_?\(|pow|\*\*": _turned,
    # PyTorch's logarithm of 1 plus a complex number is nan for subnormal ones, and those with an infinite part.
    r"\blog1p_?\(": lambda ours, theirs: (
        np.isnan(theirs) & ((np.abs(ours) < np.finfo(ours.dtype).tiny) | np.isposinf(ours.real))
    ),
    # nan equals nothing; of several sorted last.
    r"\bmode\(": lambda ours, theirs: np.isnan(ours) | np.isnan(theirs),
    # nan stays nan, where PyTorch compares it with a bound.
    r"\b(igammac?_?|gammaincc?|multi(label)?_margin_loss)\(": lambda ours, theirs: np.isnan(ours),
    # Which of several nans is the largest is left to chance; nan times a weight of 0 is nan.
    r"max_unpool|interpolate": lambda ours, theirs: np.isnan(ours) | np.isnan(theirs),
    # PyTorch adds the ends, and takes them away.
    r"trapz|trapezoid": lambda ours, theirs: np.isnan(theirs),
    # Between two numbers of which one is infinite PyTorch's lerp has two formulas.
    r"quantile\(": lambda ours, theirs: ~np.isfinite(ours) & ~np.isfinite(theirs),
    # The mean of inf is inf; PyTorch takes differences. A complex one is a quotient, in PyTorch that of each part.
    r"(var|std)_mean\(": lambda ours, theirs: (
        np.isinf(ours) & np.isnan(theirs) | (~np.isfinite(ours) & ~np.isfinite(theirs) & (ours.dtype.kind == "c"))
    ),
    # At infinity polygamma is 0, or inf; PyTorch's is nan, and at poles a large number.
    r"\bpolygamma_?\(": lambda ours, theirs: (
        ((ours == 0) | np.isinf(ours)) & np.isnan(theirs) | np.isposinf(ours) & (theirs > 1e13)
    ),
    # At infinity they are infinite; PyTorch has nan. Nor do they overflow as early as the exponential, of PyTorch's.
    r"\b(modified_bessel_)?i[01]_?\(": lambda ours, theirs: (
        np.isinf(ours) & np.isnan(theirs)
        | (np.abs(ours) > np.finfo(ours.dtype).max / 1e3) & (theirs == np.sign(ours) * np.inf)
    ),
    # Keys that come later count nothing; PyTorch multiplies their values by 0, which of nan is nan.
    r"scaled_dot_product_attention\(.*is_causal=True": lambda ours, theirs: np.isnan(theirs),
    # Of a variance that overflows deviations are nothing; PyTorch's variance is nan.
    r"(layer|group|instance|batch)_norm\(": lambda ours, theirs: (ours == 0) & np.isnan(theirs),
    # The square of a large deviation overflows in single precision; PyTorch's is in double.
    r"\bstd(_mean)?\(": lambda ours, theirs: (ours.real == np.inf) & (theirs.real > 1e15) & (ours.dtype.kind == "f"),
    # A variance of as few numbers as its correction is 0/0, but for rounding.
    r"\bvar\(": lambda ours, theirs: np.isnan(ours) & np.isposinf(theirs) | np.isposinf(ours) & np.isnan(theirs),
    # Without classes PyTorch divides by their number.
    r"cross_entropy.*label_smoothing": lambda ours, theirs: (ours == 0) & np.isnan(theirs),
    # A complex nan to the power 0 is 1, as in NumPy; PyTorch has nan.
    r"pow|\*\* ": lambda ours, theirs: (ours == 1) & np.isnan(theirs),
    # -inf without dimensions to the power 0.5 is inf, as in C; PyTorch takes the square root, which is nan.
    r"pow_*\(.*\b0\.5\)$|\*\* 0\.5$": lambda ours, theirs: np.isposinf(ours.real) & np.isnan(theirs),
    # The imaginary part of a logarithm is within pi; PyTorch's, where one operand is much larger, is that operand's, or
    # nan if its exponential overflows.
    r"\blogaddexp\(": lambda ours, theirs: (
        _turned_around(ours, theirs) | np.isnan(theirs) & np.isfinite(ours) & (ours.dtype.kind == "c")
    ),
    # The argument of a complex zero is that of its signs, which PyTorch's negation loses.
    r"\blog(2|10)?_?\(": lambda ours, theirs: np.isneginf(ours.real) & np.isneginf(theirs.real),
}


#: Calls of which a complex result is NumPy's where an operand is infinite. PyTorch's sums multiply by alpha, for one: a
#: complex 1 times inf has nan where its 0 meets inf.
ARITHMETIC = (
    r"(^| = )[mv]\d*\.(add|sub|rsub|subtract|mul|multiply|div|divide|true_divide|pow|float_power|__i\w+__)_?\(|"
    r" = \S+ ([-+*/]|\*\*) \S+$"
)

#: Calls that add up products, of which the same holds; running products, which begin with a 1 in PyTorch; differences.
PRODUCTS = r"\b(linear|matmul|mm|bmm|mv|dot|outer|einsum|addmm|conv2d|addcmul|addcdiv|cumprod|diff)_?\(| @ | = sum\("

#: Calls whose result has a shape that depends on values.
COUNTS = re.compile(r"\b(nonzero|argwhere|unique|unique_consecutive|masked_select|bincount)\(|\[v\d+ [!=<>]=? ")

#: Calls that copy where strides ask for it. Here `clone` and linear algebra give C-contiguous results.
DEPENDS_ON_STRIDES = r"\b(contiguous|reshape|reshape_as|flatten|ravel)\("


def known_shape(line: str, theirs: np.ndarray) -> bool:
    """Whether a convolution has no channels: PyTorch's has none where its input has none, whatever the weights say."""
    dims = re.search(r"conv(\d)d\(", line)
    return dims is not None and theirs.shape[-1 - int(dims[1])] == 0


def known_dtype(line: str, ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether the sum of a sum of products is of another dtype: of one integer, PyTorch leaves the dtype as it is."""
    return bool(re.search(r"einsum\(", line)) and ours.dtype == np.int64 and theirs.dtype.kind in "iu"


def known_value(line: str, ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether a value is one of which a difference is known."""
    return bool(_known_elements(line, ours, theirs).all())


def _known_elements(line: str, ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    explained = near(ours, theirs)
    with np.errstate(all="ignore"):
        for pattern, sees in VALUES.items():
            if re.search(pattern, line):
                explained = explained | sees(ours, theirs)
    return explained


#: Stands for a line whose results have other signs, but are no zeros on both sides.
ROUNDING = "numbers near 0"
#: Calls whose zeros have another sign than PyTorch's, with the reason.
ZEROS = {
    ROUNDING: "a product or a quotient of them may be a zero",
    r"(cross_entropy|nll_loss)\(": "the negative of a zero in PyTorch",
    r"remainder_?\(|%|__imod__": "that of the divisor, as in NumPy",
    r"\b(maximum|minimum|max|min|fmax|fmin|amax|amin|clamp|clamp_min|clamp_max|clip|relu)_?\(": "of two that are equal",
    r"\b(linear|matmul|mm|bmm|mv|dot|einsum|addmm|conv2d|cumsum)\(| @ ": "sums begin with a 0, or do not",
    r"\bindex_(add|put)_?\(": "sums begin with a 0, or do not",
    r"pow_*\(.*\b0\.5\)$|\*\* 0\.5$": "without dimensions that of C's power",
    r"m\.linalg\.|\b(cholesky_\w+|inverse|pinverse|\w+_solve|lu\w*|or[gm]qr|qr)\(": "of numbers that LAPACK computes",
    r"\b(add\w*m[mv]|baddbmm|addr|ger|inner|kron|tensordot|v(ec)?dot)\(": "sums begin with a 0, or do not",
    r"\bbatch_norm\(": "of a product with a negative weight; PyTorch adds two products",
    r"m\.fft\.": "of parts that are 0, as by conjugates",
    r"logsigmoid\(": "below 0, as all its values are",
    r"softshrink\(": "that of the element, in PyTorch only of the last ones of an array",
    r"copysign_?\(": "that of a nan is left to chance",
    r"\bneg(ative)?_?\(| = -v": "that of the parts of several complex zeros is lost in PyTorch",
    r"\b(add|sub|subtract|rsub)_?\(.*alpha=0(?![.\d])": "of a product with alpha, or its negative",
}


def known_zeros(lines: Sequence[str]) -> bool:
    """Whether these lines are all known to give zeros of other signs than PyTorch's."""
    return bool(lines) and all(any(re.search(call, line) for call in ZEROS) for line in lines)


def known_of_operands(line: str, operands: Sequence[np.ndarray], ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether values differ only where operands are such that a difference is known, or are known themselves."""
    theirs = np.where(_known_elements(line, ours, theirs), ours, theirs)
    known = (
        _of_nan_order, _of_infinite, _of_infinite_signals, _of_nan_sign, _of_overflow, _of_padding, _of_small_divisor,
        _of_large_products, _of_wrapped_sums, _of_poles,
    )  # fmt: skip
    return any(is_one(line, operands, ours, theirs) for is_one in known)


def _of_small_divisor(line: str, operands: Sequence[np.ndarray], ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether a remainder is of a quotient that overflows: PyTorch's is nan, and of `fmod` another number."""
    number = re.search(r"(?:fmod|remainder)_?\((?:v\d+, )?([\d.e-]+)\)|(?:%|__imod__\() ?([\d.e-]+)", line)
    if number:
        operands = [*operands, np.asarray(float(number[1] or number[2]))]
    if not re.search(r"\b(remainder|fmod)_?\(| % |__imod__", line) or len(operands) != 2:
        return False
    with np.errstate(all="ignore"):
        overflows = np.isinf(operands[0] / operands[1]) & np.isfinite(operands[0]) & (operands[1] != 0)
    return bool((near(ours, theirs) | (overflows & (np.isnan(theirs) | ("fmod" in line)))).all())


def _of_padding(line: str, operands: Sequence[np.ndarray], ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether an image's padding met weights that are inf or nan."""
    infinite = any(bool((~np.isfinite(operand)).any()) for operand in operands[1:])
    return bool(re.search(r"conv2d\(.*padding", line) and infinite and (near(ours, theirs) | np.isnan(ours)).all())


def _of_overflow(line: str, operands: Sequence[np.ndarray], ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether a product has a factor 0, and overflows without it: then it is 0 or nan. A complex one is inf or nan."""
    if not re.search(r"\bprod\(", line) or operands[0].dtype.kind not in "fc" or not np.isfinite(operands[0]).all():
        return False
    sizes = np.abs(operands[0][operands[0] != 0]).astype(np.float64)
    if ours.dtype.kind == "c":
        either = ~np.isfinite(ours) & ~np.isfinite(theirs)
        return bool((near(ours, theirs) | either).all())
    overflows = sizes.size < operands[0].size and np.log(sizes).clip(0).sum() > np.log(np.finfo(ours.dtype).max)
    either = (np.isnan(ours) & (theirs == 0)) | (np.isnan(theirs) & (ours == 0))
    return bool(overflows and (near(ours, theirs) | either).all())


def _of_poles(line: str, operands: Sequence[np.ndarray], ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether digamma is of numbers near poles, where PyTorch loses digits, and ours -1 divided by the distance."""
    if not re.search(r"\b(digamma|psi)_?\(", line) or len(operands) != 1:
        return False
    with np.errstate(all="ignore"):
        distance = operands[0] - np.round(operands[0])
        is_near = (operands[0] < -0.5) & (abs(distance) < (2e-3 if distance.dtype == np.float32 else 1e-8))
        explained = is_near & (abs(ours * distance + 1) < 0.02)
    return bool((near(ours, theirs) | explained).all())


def _of_wrapped_sums(line: str, operands: Sequence[np.ndarray], ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether trapezoids are of integers, whose sums or differences wrap around in PyTorch."""
    if not re.search(r"trapz|trapezoid", line) or not any(own.dtype.kind in "iu" for own in operands):
        return False
    whole = [own.astype(float) for own in operands if own.dtype.kind == "u" or own.dtype.itemsize < 4]
    falls = [(np.diff(own, axis=axis) < 0).any() for own in whole for axis in range(own.ndim)]
    return any(falls) or any(bool((abs(own) > 63).any()) for own in whole)


def _of_nan_order(line: str, operands: Sequence[np.ndarray], ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether places are looked for among nan, or for nan, which is larger than all numbers, as in NumPy."""
    return bool(re.search(r"searchsorted|bucketize", line)) and any(np.isnan(own).any() for own in operands)


def _of_large_products(line: str, operands: Sequence[np.ndarray], ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether products of finite numbers overflow before they are added up: the order decides between inf and nan."""
    if not re.search(PRODUCTS, line) or ours.dtype.kind != "f":
        return False
    largest = [np.abs(own[np.isfinite(own)]).max(initial=0).astype(np.float64) for own in operands if own.size]
    overflows = np.log(np.maximum(largest, 1)).sum() > np.log(np.finfo(ours.dtype).max)
    return bool(overflows and (near(ours, theirs) | (~np.isfinite(ours) & ~np.isfinite(theirs))).all())


def _of_infinite_signals(line: str, operands: Sequence[np.ndarray], ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether a Fourier transform is of inf or nan: which results are inf, and which nan, depends on the order.

    If results are real, PyTorch may leave out imaginary parts that would be 0.
    """
    infinite = any(bool((~np.isfinite(operand)).any()) for operand in operands)
    either = ~np.isfinite(ours) & (~np.isfinite(theirs) | bool(re.search(r"\.(irfft|hfft)", line)))
    return bool("m.fft." in line and infinite and (near(ours, theirs) | either).all())


def _of_nan_sign(line: str, operands: Sequence[np.ndarray], ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether the sign of a nan was copied: which it has is left to chance."""
    if not re.search(r"\b(copysign_?|signbit)\(", line) or not operands:
        return False
    if ours.dtype.kind == "b":
        return bool(((ours == theirs) | np.isnan(operands[0])).all())
    signs = operands[-1]
    explained = np.isnan(signs) & near(np.abs(ours), np.abs(theirs)) if signs.dtype.kind == "f" else False
    return bool((near(ours, theirs) | explained).all())


def _of_infinite(line: str, operands: Sequence[np.ndarray], ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether complex values differ only where an operand of arithmetic is infinite."""
    if ours.dtype.kind != "c":
        return False
    infinite = [np.isinf(operand) for operand in operands if operand.dtype.kind in "fc"]
    if re.search(PRODUCTS, line):
        infinite = [one.any() for one in infinite]
    elif not re.search(ARITHMETIC, line):
        return False
    explained = functools.reduce(np.logical_or, infinite, np.zeros(ours.shape, bool))
    return bool((near(ours, theirs) | (explained & (~np.isfinite(ours) | (ours == 0)))).all())
