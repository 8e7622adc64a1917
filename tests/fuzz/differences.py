"""Known differences from PyTorch, in one place: each is explained in docs/semantics.md or docs/kinks.md."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tapegrad as tg
from tests.fuzz.compare import Mismatch, near
from tests.fuzz.trace import Culprit, culprits, is_on_cut, is_singular, steps, turning


@dataclass(frozen=True)
class Error:
    """An error that one side raises: the calls that it is raised by, its words, and the reason."""

    call: str
    words: str
    reason: str
    of_nothing: bool = False  # only if the other side's result has no elements

    def is_one(self, lines: Sequence[str], message: str, size: int) -> bool:
        """Whether it is the error of the last of these lines, or of the gradients of the lines before.

        `size` is that of the other side's result.
        """
        if self.of_nothing and size:
            return False
        where = lines[:-1] if lines[-1] == "gradients" else lines[-1:]
        return bool(re.search(self.words, message)) and any(re.search(self.call, line) for line in where)


#: Errors that only tapegrad raises. A program ends there.
REFUSED = (
    Error(
        r"softmax|clamp|clip|amax|amin", r"not implemented for", "PyTorch looks at the dtype only if there are elements"
    ),
    Error(r"pow|\*\*", r"Integers to negative integer powers", "NumPy shows through; PyTorch gives 0"),
    Error(r"\bview", r"view size is not compatible", "strides are NumPy's"),
    Error(r"einsum", r"expected m1 and m2 to have the same dtype", "PyTorch multiplies where it sums one product"),
    Error(r"where", r"boolean tensor, but got a tensor with dtype uint8", "PyTorch takes it for bools, with a warning"),
    Error(r"\broll\(", r"Dimension out of range", "PyTorch rolls nothing along any dimension", of_nothing=True),
    Error(r"max_pool", r"not implemented for '\w+'", "PyTorch has loops for integers"),
    Error(r"cat|stack", r"Dimension out of range", "PyTorch joins tensors of shape (0,) along any dimension"),
    Error(
        r"fill_|zero_|setitem|nan_to_num_|index_put_",
        r"more than one element of the written-to",
        "PyTorch writes one number several times, and integers that are none of them nan not at all",
    ),
    Error(r"_\(|__i\w+__|setitem", r"read-only", "a part of what was stretched, with distinct elements"),
    Error(r"addcmul", r"alpha must not be a floating point number", "PyTorch cuts the fraction off"),
)

#: Errors that only PyTorch raises.
ACCEPTED = (
    Error(
        r"pow|\*\*|hypot|logaddexp|conv2d|ldexp|addcmul|round|multi_margin_loss|softsign",
        r"not implemented for '\w+'",
        "PyTorch has no loop for the dtype",
    ),
    Error(
        r"pow|\*\*|hypot|logaddexp|atan2|div|/|igammac?|gaussian_nll_loss",
        r"the `-` operator, (with|on) a bool tensor",
        "raised by derivatives of PyTorch's",
    ),
    Error(r"cumulative_trapezoid", r"received a bool input", "taken if there is none", of_nothing=True),
    Error(r"binary_cross_entropy\(", r"elements of input should be between 0 and 1", "nan stays nan"),
    Error(r"gradient\(", r"does not support uint8 input", "differences of integers are taken in double precision"),
    Error(r"soft_margin_loss", r"the `-` operator, on a bool tensor", "bools are numbers"),
    Error(r"bilinear", r"_trilinear does not support automatic", "as of real numbers"),
    Error(r"embedding_bag", r"to have one of the following scalar types", "PyTorch has no loop for the dtype"),
    Error(r"repeat_interleave", r"Dimension out of range", "one number is repeated along its last dimension"),
    Error(r"pow|\*\*", r"Integers to negative integer powers", "NumPy raises if there are elements", of_nothing=True),
    Error(r"clamp|clip", r"output with shape .* doesn't match the broadcast", "of PyTorch's derivative of clamp"),
    Error(r"softplus", r"not implemented for '(Bool|Byte|Char|Short|Int|Long)'", "PyTorch has no loop for the dtype"),
    Error(r"linear|mm|mv|dot|matmul|einsum|@", r"not implemented for 'Bool'", "PyTorch has no loop for the dtype"),
    Error(r"(v\d+)\.copy_\(\1\)", r"more than one element of the written-to", "copying onto itself is no write"),
    Error(r" = \S+ % |remainder", r"derivative for aten::remainder is not implemented", "of a number by a tensor"),
    Error(r"a(sin|cos|tan)h_", r"derivative for 'inplace version of a\w+h' is not", "as out of place"),
    Error(r"heaviside", r"not yet implemented for tensors with different dtypes", "promoted, as of other functions"),
    Error(r"nan_to_num|silu", r"not support automatic differentiation for outputs with complex", "as of real numbers"),
    Error(
        r"hardsigmoid|multi_margin_loss|multilabel_margin_loss|embedding_bag|igammac?|gammaincc?",
        r"derivative for .* is not implemented",
        "PyTorch lacks the derivative",
    ),
    Error(r"mse_loss", r"not implemented for 'Complex", "PyTorch has no loop for the dtype"),
    Error(
        r"logaddexp|where|ldexp|lerp|setitem|fill_|copy_", r"isFloatingType\(grad", "derivatives of real beside complex"
    ),
    Error(r"addcdiv", r"can't be cast to the desired output type", "of PyTorch's derivative by bools or integers"),
    Error(r"eigh\(", r"specified up to multiplication by e\^\{i phi\}", "no phase is checked, nor what is nan"),
    Error(r"allclose", r"did not match", "tensors of two dtypes are compared"),
    Error(r"_\(", r"some elements of the input tensor and the written-to", "what is written over is copied first"),
    Error(r"setitem", r"Index put requires the source and destination dtypes match", "what is written is converted"),
    Error(r"\bview", r"view size is not compatible", "strides are NumPy's"),
    Error(
        r"floor_divide|//|floordiv|heaviside",
        r"derivative for aten::(floor_divide|heaviside)_? is not",
        "they are flat",
    ),
    Error(r"setitem|fill_|copy_", r"isDifferentiableType\(grad", "integers never require grad, here"),
    Error(r"nll_loss|cross_entropy", r"grad_input must be contiguous", "of PyTorch's second derivative"),
)

#: Of a view that was taken before its base wanted a gradient, PyTorch says this until its `grad_fn` is read.
LEAF = "a leaf Variable that requires grad"


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
    # The sign of nan is nan, as in NumPy; PyTorch has 0.
    r"\b(sgn|sign)_?\(": lambda ours, theirs: np.isnan(ours),
    # So is its step.
    r"\bheaviside_?\(": lambda ours, theirs: np.isnan(ours) & (theirs == 0),
    # On a branch cut the sign of a zero decides, and products with complex numbers lose it.
    r"\b(a(sin|cos|tan)h?|r?sqrt|log(2|10|1p|it|sumexp)?)_?\(|pow|\*\*": _turned,
    # PyTorch's logarithm of 1 plus a complex number is nan for subnormal ones.
    r"\blog1p_?\(": lambda ours, theirs: np.isnan(theirs) & (np.abs(ours) < np.finfo(ours.dtype).tiny),
    # SciPy's, as of all infinite numbers; C's is inf.
    r"\b(lgamma|gammaln|mvlgamma)_?\(": lambda ours, theirs: np.isneginf(ours) & np.isposinf(theirs),
    # nan equals nothing; of several sorted last.
    r"\bmode\(": lambda ours, theirs: np.isnan(ours) | np.isnan(theirs),
    # nan stays nan, where PyTorch compares it with a bound.
    r"\b(igammac?_?|gammaincc?|multi(label)?_margin_loss)\(": lambda ours, theirs: np.isnan(ours),
    # Which of several nans is the largest is left to chance; nan times a weight of 0 is nan.
    r"max_unpool|interpolate": lambda ours, theirs: np.isnan(ours) | np.isnan(theirs),
    # PyTorch adds the ends, and takes them away.
    r"trapz|trapezoid": lambda ours, theirs: np.isnan(theirs),
    # A variance of as few numbers as its correction is 0/0, but for rounding.
    r"\bvar\(": lambda ours, theirs: np.isnan(ours) & np.isposinf(theirs) | np.isposinf(ours) & np.isnan(theirs),
    # Without classes PyTorch divides by their number.
    r"cross_entropy.*label_smoothing": lambda ours, theirs: (ours == 0) & np.isnan(theirs),
    # A complex nan to the power 0 is 1, as in NumPy; PyTorch has nan.
    r"pow|\*\* ": lambda ours, theirs: (ours == 1) & np.isnan(theirs),
    # -inf without dimensions to the power 0.5 is inf, as in C; PyTorch takes the square root, which is nan.
    r"pow_*\(.*\b0\.5\)$|\*\* 0\.5$": lambda ours, theirs: np.isposinf(ours.real) & np.isnan(theirs),
    # One to a complex power is computed as other numbers are: to an infinite one it is nan; PyTorch looks for the one.
    r" = -?1(\.0)? \*\* ": lambda ours, theirs: np.isnan(ours) & (np.abs(theirs) == 1),
    # The imaginary part of a logarithm is within pi; PyTorch's, where one operand is much larger, is that operand's.
    r"\blogaddexp\(": _turned_around,
    # The argument of a complex zero is that of its signs, which PyTorch's negation loses.
    r"\blog(2|10)?_?\(": lambda ours, theirs: np.isneginf(ours.real) & np.isneginf(theirs.real),
}


#: Calls of which a complex result is NumPy's where an operand is infinite. PyTorch's sums multiply by alpha, for one: a
#: complex 1 times inf has nan where its 0 meets inf.
ARITHMETIC = (
    r"(^| = )[mv]\d*\.(add|sub|rsub|subtract|mul|multiply|div|divide|true_divide|pow|float_power|__i\w+__)_?\(|"
    r" = \S+ ([-+*/]|\*\*) \S+$"
)

#: Calls that add up products, of which the same holds.
PRODUCTS = r"\b(linear|matmul|mm|bmm|mv|dot|outer|einsum|addmm|conv2d|addcmul|addcdiv)_?\(| @ "

#: Calls that copy where strides ask for it. Here `clone` and linear algebra give C-contiguous results.
DEPENDS_ON_STRIDES = r"\b(contiguous|reshape|reshape_as|flatten|ravel)\("


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


#: Calls whose zeros have another sign than PyTorch's, with the reason.
ZEROS = {
    r"(cross_entropy|nll_loss)\(": "the negative of a zero in PyTorch",
    r"remainder_?\(|%|__imod__": "that of the divisor, as in NumPy",
    r"\b(maximum|minimum|max|min|fmax|fmin|amax|amin|clamp|clamp_min|clamp_max|clip)_?\(": "of two that are equal",
    r"\b(linear|matmul|mm|bmm|mv|dot|einsum|addmm|conv2d|cumsum)\(| @ ": "sums begin with a 0, or do not",
    r"pow_*\(.*\b0\.5\)$|\*\* 0\.5$": "without dimensions that of C's power",
    r"copysign_?\(": "that of a nan is left to chance",
    r"\bneg(ative)?_?\(| = -v": "that of the parts of several complex zeros is lost in PyTorch",
    r"\b(add|sub|subtract|rsub)_?\(.*alpha=0(?![.\d])": "of a product with alpha, or its negative",
}


def known_zeros(lines: Sequence[str]) -> bool:
    """Whether these lines are all known to give zeros of other signs than PyTorch's."""
    return bool(lines) and all(any(re.search(call, line) for call in ZEROS) for line in lines)


def is_half_written(line: str, message: str) -> bool:
    """Whether PyTorch may have written to a tensor before it raised; tapegrad writes nothing then."""
    return " = " not in line and "ZeroDivisionError" in message


def known_of_operands(line: str, operands: Sequence[np.ndarray], ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether values differ only where operands are such that a difference is known, or are known themselves."""
    theirs = np.where(_known_elements(line, ours, theirs), ours, theirs)
    known = (
        _of_nan_order, _of_infinite, _of_nan_sign, _of_overflow, _of_padding, _of_small_divisor, _of_large_products,
    )  # fmt: skip
    return any(is_one(line, operands, ours, theirs) for is_one in known)


def _of_small_divisor(line: str, operands: Sequence[np.ndarray], ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether a remainder is of a quotient that overflows: PyTorch's is nan."""
    if not re.search(r"\bremainder_?\(| % |__imod__", line) or len(operands) != 2:
        return False
    with np.errstate(all="ignore"):
        overflows = np.isinf(operands[0] / operands[1]) & np.isfinite(operands[0]) & (operands[1] != 0)
    return bool((near(ours, theirs) | (overflows & np.isnan(theirs))).all())


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


def _any(holds: Callable[[np.ndarray], np.ndarray]) -> Callable[[Culprit], bool]:
    def sees(culprit: Culprit) -> bool:
        with np.errstate(all="ignore"):
            return any(bool(np.any(holds(values))) for values in culprit.operands.values())

    return sees


def _zero(culprit: Culprit) -> bool:
    """Whether an operand, or a number in the line, is zero somewhere."""
    numbers = re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?", culprit.line.split(" = ")[-1])
    return _any(lambda x: x == 0)(culprit) or any(float(number) == 0 for number in numbers)


def _equal_bounds(culprit: Culprit) -> bool:
    """Whether two tensors as bounds are equal somewhere."""
    _, *bounds = re.findall(r"\bv\d+\b", culprit.line.split(" = ")[-1])
    return len(bounds) == 2 and bool(np.any(np.equal(*(culprit.operands[bound] for bound in bounds))))


def _at_threshold(culprit: Culprit) -> bool:
    """Whether an operand of `softplus` is where it becomes linear."""
    options = {name: float(number) for name, number in re.findall(r"(beta|threshold)=([\d.]+)", culprit.line)}
    return _any(lambda x: x * options.get("beta", 1) == options.get("threshold", 20))(culprit)


def _unsigned(culprit: Culprit) -> bool:
    return any(values.dtype.kind == "u" for values in culprit.operands.values())


def _too_few(culprit: Culprit) -> bool:
    """Whether a variance is of no more elements than its correction."""
    space = {"m": tg} | {name: tg.tensor(values) for name, values in culprit.operands.items()}
    exec(culprit.line, space)
    (operand,) = culprit.operands.values()
    elements = operand.size // max(space[culprit.line.split(" = ")[0]].numel(), 1)
    correction = re.search(r"correction=([\d.]+)", culprit.line)
    return elements <= (float(correction[1]) if correction else 1)


def _overflows(culprit: Culprit) -> bool:
    """Whether the product of the elements of an operand that are larger than 1 overflows."""
    large = [
        abs(values[np.isfinite(values)]).clip(1) for values in culprit.operands.values() if values.dtype.kind in "fc"
    ]
    return any(bool(np.log(values.astype(float)).sum() > np.log(np.finfo(values.dtype).max) - 1) for values in large)


def _wraps_around(culprit: Culprit) -> bool:
    """Whether 2 to the power of an integer operand is not an integer of its dtype."""
    whole = [values for values in culprit.operands.values() if values.dtype.kind in "iu"]
    return any(bool(((x < 0) | (x >= 8 * x.dtype.itemsize - (x.dtype.kind == "i"))).any()) for x in whole)


def _beside_nothing(culprit: Culprit) -> bool:
    """Whether a number that is 0, inf or nan stands beside an operand without elements."""
    unusual = _any(lambda x: ~np.isfinite(x) | (x == 0))
    return unusual(culprit) and any(not values.size for values in culprit.operands.values())


def _always(culprit: Culprit) -> bool:
    return True


def _never(culprit: Culprit) -> bool:
    return False


_nan = _any(np.isnan)


@dataclass(frozen=True)
class Slope:
    """A call whose derivatives differ, by the text of the line, where its operands are as said; see docs/kinks.md."""

    call: str
    sees: Callable[[Culprit], bool]
    reason: str
    infinite: bool = False  # if a cotangent is inf or nan, too


GRADIENTS = (
    Slope(r"pow|\*\*", _zero, "second derivatives at base 0, where PyTorch's masks hide values but not slopes"),
    Slope(r"acosh", _any(lambda x: (x <= -1) | (x == np.inf)), "below 1, where the function is nan, it has numbers"),
    Slope(
        r"\b(sinh|cosh)_?\(",
        _any(lambda x: (abs(x.real) > 709.78) & (abs(x.real) < 710.48)),
        "PyTorch's overflow early",
    ),
    Slope(
        r"\ba(cos|sin)h?\(",
        _any(lambda x: np.iscomplexobj(x) & ((x.real == 0) | (x.imag == 0))),
        "on a branch cut: PyTorch's derivative loses the sign of the zero",
    ),
    Slope(
        r"logit",
        _any(lambda x: ~((x > 0) & (x < 1))),
        "second derivatives, clamped or outside of 0 to 1, are nan",
        infinite=True,
    ),
    Slope(r"\babs", _nan, "of nan; PyTorch has 0"),
    Slope(r"\bsgn\(", _any(lambda x: (x == 0) & np.iscomplexobj(x)), "second derivatives at 0; PyTorch has nan"),
    Slope(r"\bprod\(", _any(lambda x: ~np.isfinite(x)), "PyTorch divides the product by an element", infinite=True),
    Slope(r"\bprod\(", _overflows, "of a product that overflows; PyTorch divides inf by an element"),
    Slope(r"normalize\(", _zero, "second derivatives at 0; PyTorch has nan"),
    Slope(
        r"(scatter|index)_reduce|max_pool", _nan, "of nan: among several the first, and PyTorch's amax makes all nan"
    ),
    Slope(r"(hard|soft)shrink", _nan, "of nan; PyTorch has 0"),
    Slope(
        r"\b(elu|celu|selu|glu|silu|mish|gelu|tanhshrink|logsigmoid|softsign|hardswish|logcumsumexp|cumprod|interpolate|"
        r"erfinv|digamma)_?\(",
        _any(lambda x: ~np.isfinite(x)),
        "of inf or nan, or with such cotangents: 0 times inf, or inf less inf, in other places",
        infinite=True,
    ),
    Slope(r"cumprod", _zero, "second derivatives where two elements are 0"),
    Slope(r"\bsinc_?\(", _zero, "second derivatives at 0; PyTorch has nan"),
    Slope(r"embedding\(.*scale_grad_by_freq", _always, "PyTorch's second derivative is not scaled"),
    Slope(r"trapz|trapezoid", _never, "PyTorch adds and takes away what does not count", infinite=True),
    Slope(r"atan2", _zero, "second derivatives at the origin"),
    Slope(r"atan2", _unsigned, "PyTorch's derivative negates unsigned numbers"),
    Slope(r"clamp|clip", _equal_bounds, "outside of bounds that are equal, to which PyTorch gives nothing"),
    Slope(r"softplus", _at_threshold, "at the threshold PyTorch's second derivative is 0", infinite=True),
    Slope(r"var\(", _too_few, "of few elements PyTorch divides by 0 without a sign, or by a negative number"),
    Slope(r"addcdiv", _unsigned, "PyTorch's derivative negates unsigned numbers"),
    Slope(
        r"addcdiv|addcmul|ldexp|igamma",
        _beside_nothing,
        "what stands beside nothing has the cotangent 0, and 0 times nan is nan",
    ),
    Slope(r"addcdiv", _any(lambda x: np.isinf(x) | (x == 0)), "second derivatives by 0 or inf; PyTorch has nan"),
    Slope(r"eigh\(", _never, "PyTorch multiplies what does not depend on the matrix by 0", infinite=True),
    Slope(r"ldexp", _wraps_around, "PyTorch's derivative raises 2 to integers as integers"),
    Slope(
        r"ldexp", _any(lambda x: x > 127), "2 to a power that overflows: it multiplies a sum, in PyTorch what is summed"
    ),
    Slope(r"logsumexp", _any(np.isneginf), "of -inf alone; PyTorch has nan"),
    Slope(r"var\(", _any(lambda x: abs(x) > 1e8), "second derivatives of large numbers cancel but for rounding"),
    Slope(r"mse_loss", _never, "second derivatives with infinite cotangents: inf less inf", infinite=True),
    Slope(r"nan_to_num", _never, "PyTorch multiplies by 0 what was replaced", infinite=True),
    Slope(r"conv2d\(.*padding", _never, "PyTorch leaves the padding out, where 0 times inf is nan", infinite=True),
    Slope(r"sigmoid", _never, "second derivatives with infinite cotangents: differences of two are nan", infinite=True),
    Slope(r"addmm.*(beta|alpha)=0(?![.\d])", _never, "the factor 0 makes 0, in PyTorch 0 times inf", infinite=True),
    Slope(
        r"\b(amax|amin|aminmax|max|min)\(",
        _nan,
        "of nan; PyTorch gives nan to all elements, as it does if the cotangent is none",
        infinite=True,
    ),
)


def known_gradient(torch: Any, lines: list[str], mismatch: Mismatch) -> bool:
    """Whether gradients differ because of lines alone whose own derivatives are known to differ.

    If no line's derivative differs, rounding has moved an operand away from a singularity, or to it. (With infinite
    cotangents those of complex functions do: inf times a complex number is nan in part.)
    """
    if mismatch.is_infinite and any(map(is_singular, steps(torch, lines))):
        return True
    if any(map(is_on_cut, steps(torch, lines))) and known_zeros(turning(torch, lines)):
        return True
    found = culprits(torch, lines)
    return all(_is_known(culprit, mismatch) for culprit in found) if found else mismatch.is_infinite


def _is_known(culprit: Culprit, mismatch: Mismatch) -> bool:
    if culprit.of_infinite and mismatch.is_infinite and any(map(np.iscomplexobj, culprit.operands.values())):
        return True
    return any(
        re.search(slope.call, culprit.line) and (slope.sees(culprit) or (slope.infinite and culprit.of_infinite))
        for slope in GRADIENTS
    )


def known_error(lines: Sequence[str], message: str, errors: Sequence[Error], size: int) -> bool:
    """Whether an error of the last line, which may stand for the gradients, is one of those that are known."""
    return any(error.is_one(lines, message, size) for error in errors)
