"""Derivatives that differ from PyTorch's: each is explained in docs/understand/kinks.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzz import differences, overwritten
from tests.fuzz.compare import Mismatch
from tests.fuzz.known_values import known_zeros
from tests.fuzz.principles import is_principled, is_right
from tests.fuzz.trace import Culprit, culprits, is_on_cut, is_singular, steps, turning, value


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
    (operand,) = culprit.operands.values()
    elements = operand.size // max(value(culprit).size, 1)
    correction = re.search(r"correction=([\d.]+)", culprit.line)
    return elements <= (float(correction[1]) if correction else 1)


def _beside_origin(culprit: Culprit) -> bool:
    """Whether the square of a point's distance from the origin underflows, or nearly."""
    points = [x for x in culprit.operands.values() if x.dtype.kind in "fciu"]
    with np.errstate(all="ignore"):
        sizes = np.hypot(*points) if len(points) == 2 else abs(points[0])
    return bool((sizes < (1e-18 if any(x.dtype in ("f4", "c8") for x in points) else 1e-153)).any())


def _overflows(culprit: Culprit) -> bool:
    """Whether the product of the elements of an operand that are larger than 1 overflows."""
    large = [
        abs(values[np.isfinite(values)]).clip(1) for values in culprit.operands.values() if values.dtype.kind in "fc"
    ]
    return any(bool(np.log(values.astype(float)).sum() > np.log(np.finfo(values.dtype).max) - 1) for values in large)


def _at_pole(culprit: Culprit) -> bool:
    """Whether an operand is a pole of the gamma function, 0 or a negative integer; near one, in single precision."""
    return _any(
        lambda x: (x == -np.inf) | (x < 0.5) & (abs(x - np.round(x)) <= (2e-3 if x.dtype == np.float32 else 0))
    )(culprit)


def _of_no_density(culprit: Culprit) -> bool:
    """Whether the gamma function is negative at the first operand of a line, or it is below -3, where ours is nan."""
    a = culprit.operands[overwritten.operands(culprit.line.split(" = ")[-1])[0]]
    return bool(((a < -3) | ((a < 0) & (np.floor(a) % 2 == 1))).any())


def _at_no_limit(culprit: Culprit) -> bool:
    """Whether an incomplete gamma function is of the parameter 1 and the limit 0."""
    return _zero(culprit) and _any(lambda x: x == 1)(culprit)


def _at_limit_of_many(culprit: Culprit) -> bool:
    """Whether the limit 0 stands for several parameters."""
    return _zero(culprit) and len({values.size for values in culprit.operands.values()}) > 1


def _keeps_left_out(culprit: Culprit) -> bool:
    """Whether what `scatter_reduce` left out of the result is as large as what it kept, somewhere."""
    left_out = culprit.operands[overwritten.operands(culprit.line.split(" = ")[-1])[0]]
    return bool((left_out == value(culprit)).any())


def _wraps_around(culprit: Culprit) -> bool:
    """Whether 2 to the power of an integer operand is not an integer of its dtype."""
    whole = [values for values in culprit.operands.values() if values.dtype.kind in "iu"]
    return any(bool(((x < 0) | (x >= 8 * x.dtype.itemsize - (x.dtype.kind == "i"))).any()) for x in whole)


def _beside_nothing(culprit: Culprit) -> bool:
    """Whether a number that is 0, inf or nan stands beside an operand without elements."""
    unusual = _any(lambda x: ~np.isfinite(x) | (x == 0))
    return unusual(culprit) and any(not values.size for values in culprit.operands.values())


def _is_large(culprit: Culprit) -> bool:
    """Whether a power is so large that its second derivative may overflow, and the cotangent 0."""
    sizes = abs(value(culprit))
    return culprit.of_zero and bool((np.isfinite(sizes) & (sizes > np.finfo(sizes.dtype).max / 1e3)).any())


def _at_lower_bound(culprit: Culprit) -> bool:
    """Whether `expm1` is -1 but for rounding somewhere, and the cotangent infinite."""
    return culprit.of_infinite and _any(lambda x: x.real < (-15 if x.dtype.itemsize <= 4 else -34))(culprit)


def _is_one_of_several(culprit: Culprit) -> bool:
    """Whether an infinite number is chosen that an operand has several times; finite ones differ."""
    chosen = value(culprit)
    return any(_any(lambda x, one=one: (x == one).sum() > 1)(culprit) for one in set(chosen[np.isinf(chosen)].tolist()))


def _always(culprit: Culprit) -> bool:
    return True


def _never(culprit: Culprit) -> bool:
    return False


_nan = _any(np.isnan)


@dataclass(frozen=True)
class Slope:
    """A call of other slopes, by the text of the line, where its operands are as said; see docs/understand/kinks.md."""

    call: str
    sees: Callable[[Culprit], bool]
    reason: str
    infinite: bool = False  # if a cotangent is inf or nan, too
    zero: bool = False  # if a cotangent is 0, too
    is_derivative: bool = True  # else finite differences judge no line of the program


GRADIENTS = (
    Slope(r"pow|\*\*", _zero, "second derivatives at base 0, where PyTorch's masks hide values but not slopes"),
    Slope(
        r"a(rc)?cosh", _any(lambda x: (x <= -1) | (x == np.inf)), "below 1, where the function is nan, it has numbers"
    ),
    Slope(
        r"\b(sinh|cosh)_?\(",
        _any(lambda x: (abs(x.real) > 709.78) & (abs(x.real) < 710.48)),
        "PyTorch's overflow early",
    ),
    Slope(
        r"\ba(rc)?(cos|sin)h?\(",
        _any(lambda x: np.iscomplexobj(x) & ((x.real == 0) | (x.imag == 0))),
        "on a branch cut: PyTorch's derivative loses the sign of the zero",
    ),
    Slope(
        r"logit",
        _any(lambda x: ~((x > 0) & (x < 1))),
        "second derivatives, clamped or outside of 0 to 1, are nan",
        infinite=True,
    ),
    Slope(r"\babs|\bl1_loss", _nan, "of nan; PyTorch has 0"),
    Slope(r"\bsgn_?\(", _any(lambda x: (x == 0) & np.iscomplexobj(x)), "second derivatives at 0; PyTorch has nan"),
    Slope(r"\bprod\(", _any(lambda x: ~np.isfinite(x)), "PyTorch divides the product by an element", infinite=True),
    Slope(
        r"\bprod\(",
        _any(lambda x: (x != 0) & ((x * x == 0) | (abs(x) < 1e-9))),
        "PyTorch divides by the square of an element, and loses digits",
    ),
    Slope(r"\bprod\(", _overflows, "of a product that overflows; PyTorch divides inf by an element"),
    Slope(
        r"normalize\(|cosine_similarity|cosine_embedding_loss",
        _zero,
        "second derivatives at 0; PyTorch has nan",
        infinite=True,
    ),
    Slope(
        r"cosine_similarity\(.*\* 0\.5 \+ 1",
        _any(lambda x: x == -2),
        "second derivatives at 0, as above",
        infinite=True,
    ),
    Slope(r"segment_reduce\(.*prod", _nan, "of nan; PyTorch multiplies the other elements of the segment"),
    Slope(r"segment_reduce\(.*prod", _zero, "PyTorch multiplies by the product, and divides by 0", infinite=True),
    Slope(
        r"(scatter|index)_reduce|max_pool", _nan, "of nan: among several the first, and PyTorch's amax makes all nan"
    ),
    Slope(
        r"(hard|soft)shrink|hardtanh|relu6|rnn_relu", _nan, "of nan; PyTorch has 0, or 1 for the last ones of an array"
    ),
    Slope(r"(scatter|index)_reduce.*am(ax|in)", _never, "PyTorch multiplies the others by 0", infinite=True),
    Slope(r"\bmish\(", _any(lambda x: x > 88), "second derivatives of large numbers; PyTorch has nan"),
    Slope(
        r"\brenorm_?\(",
        _any(lambda x: ~np.isfinite(x) | (x == 0)),
        "second derivatives at 0, inf, nan; PyTorch has nan",
    ),
    Slope(
        r"\b(norm|vector_norm|dist)\(.*(inf|, 1\b)",
        _any(lambda x: ~np.isfinite(x)),
        "of nan among the elements, or inf less inf; PyTorch has 0",
    ),
    Slope(
        r"\b(norm|vector_norm|dist)\(",
        lambda culprit: bool((abs(value(culprit)) < 1e-8).any()),
        "second derivatives at 0, or near it; PyTorch has nan, as 0 times inf is",
        infinite=True,
    ),
    Slope(r"(layer|rms|group|instance|batch)_norm", _never, "sums with inf, in another order", infinite=True),
    Slope(
        r"nan(sum|mean)",
        lambda culprit: bool(np.isnan(value(culprit)).any()),
        "PyTorch multiplies what is left out by 0, or by inf if that is all",
        infinite=True,
    ),
    Slope(r"quantile", _never, "weights of 0 times inf, of two neighbours that may be one", infinite=True),
    Slope(r"igamma|gammainc", _any(np.isneginf), "of the parameter -inf, where lgamma is -inf"),
    Slope(r"igammac?|gammaincc?", _zero, "second derivatives at the limit 0: sums with inf", infinite=True),
    Slope(
        r"\b(igammac?|gammaincc?)_?\(",
        _of_no_density,
        "of a parameter at which the function is nan, and the gamma function negative; PyTorch takes its size",
    ),
    Slope(r"kthvalue|topk|median|sort", _nan, "of several nans PyTorch chooses any"),
    Slope(r"\bmode\(", _nan, "of equal numbers beside nan PyTorch chooses another"),
    Slope(r"kthvalue|topk|median", _is_one_of_several, "of several equal infinite numbers PyTorch chooses any"),
    Slope(r"cumprod|vander", _any(lambda x: abs(x) < 1e-6), "of numbers near 0, by which PyTorch divides"),
    Slope(r"hypot", _any(lambda x: abs(x) < 1e-8), "second derivatives near the origin cancel but for rounding"),
    Slope(r"polar\(", _any(lambda x: abs(x) < 1e-8), "of sizes near 0, where PyTorch's slopes lose digits"),
    Slope(r"polar\(", _never, "products with complex numbers, inf or nan in part", infinite=True),
    Slope(
        r"(lgamma|gammaln|digamma|psi|polygamma)_?\(",
        _at_pole,
        "inf at poles; PyTorch loses digits near them",
    ),
    Slope(r"igammac?|gammaincc?", _at_limit_of_many, "second derivatives at the limit 0: sums with inf"),
    Slope(r"igammac?|gammaincc?", _at_no_limit, "0 times the logarithm of 0; PyTorch has nan"),
    Slope(r"\bi[01]_?\(", _any(lambda x: ~(abs(x) < 85)), "second derivatives that overflow, or of nan"),
    Slope(
        r"\bi1e?_?\(",
        _any(lambda x: ~(abs(x) > np.finfo(x.dtype).eps)),
        "second derivatives near 0, slopes of nan: PyTorch has constants",
    ),
    Slope(r"prelu\(", _zero, "second derivatives at 0, of the slope that the first is; PyTorch has that above 0"),
    Slope(r"scatter_reduce.*False", _keeps_left_out, "PyTorch counts what is left out among the largest or smallest"),
    Slope(
        r"\bdet\(",
        lambda culprit: bool((value(culprit) == 0).any()),
        "second derivatives of singular matrices; PyTorch has nan",
    ),
    Slope(
        r"\b(elu|celu|selu|glu|silu|mish|gelu|tanhshrink|logsigmoid|softsign|hardswish|cumprod|interpolate|"
        r"erfinv|digamma|prelu)_?\(",
        _any(lambda x: ~np.isfinite(x)),
        "of inf or nan, or with such cotangents: 0 times inf, or inf less inf, in other places",
        infinite=True,
    ),
    Slope(
        r"logcumsumexp",
        _any(lambda x: ~np.isfinite(x)),
        "PyTorch takes the logarithm of a cotangent",
        infinite=True,
        zero=True,
    ),
    Slope(r"cumprod", _zero, "second derivatives where two elements are 0"),
    Slope(r"lp_pool", _any(lambda x: abs(x) < 1e-6), "second derivatives of powers of numbers near 0 overflow"),
    Slope(r"\bsinc_?\(", _any(lambda x: abs(x) < 0.02), "second derivatives near 0; PyTorch loses digits"),
    Slope(
        r"embedding\(.*scale_grad_by_freq", _always, "PyTorch's second derivative is not scaled", is_derivative=False
    ),
    Slope(r"trapz|trapezoid", _never, "PyTorch adds and takes away what does not count", infinite=True),
    Slope(
        r"a(rc)?tan2",
        _any(lambda x: abs(x) > (1e18 if x.dtype == np.float32 else 1e153)),
        "of numbers whose squares overflow, which PyTorch divides by",
    ),
    Slope(r"a(rc)?tan2", _beside_origin, "near the origin, where the square that PyTorch divides by underflows"),
    Slope(r"a(rc)?tan2", _unsigned, "PyTorch's derivative negates unsigned numbers"),
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
    Slope(
        r"m\.linalg\.|m\.fft\.|\b([cp]dist|cholesky_\w+|p?inverse|\w+_solve|lu\w*|or[gm]qr|qr|matrix_\w+|(slog|log)?det)\(",
        _never,
        "products with inf are added up in another order",
        infinite=True,
    ),
    Slope(r"eigh\(", _never, "PyTorch multiplies what does not depend on the matrix by 0", infinite=True),
    Slope(r"ldexp", _wraps_around, "PyTorch's derivative raises 2 to integers as integers"),
    Slope(
        r"ldexp", _any(lambda x: x > 127), "2 to a power that overflows: it multiplies a sum, in PyTorch what is summed"
    ),
    Slope(r"\b(modified_bessel_)?i[01]_?\(", _any(np.isinf), "infinite; PyTorch has nan"),
    Slope(r"logsumexp", _any(np.isneginf), "of -inf alone; PyTorch has nan"),
    Slope(r"var\(", _any(lambda x: abs(x) > 1e8), "second derivatives of large numbers cancel but for rounding"),
    Slope(r"multi(label)?_margin_loss", _nan, "of nan that of the sum, as of relu; PyTorch has 0", infinite=True),
    Slope(
        r"gaussian_nll_loss|multilabel_soft_margin_loss|mvlgamma|multigammaln|bilinear",
        _never,
        "sums with inf, in another order",
        infinite=True,
    ),
    Slope(
        r"(nll_loss|cross_entropy)\(.*m\.tensor\(\[0(, 0)*\],.*ignore_index=0, reduction='mean'",
        _always,
        "second derivatives of a mean of no items; PyTorch has nan, though the first is 0",
    ),
    Slope(r"pow|\*\*", _is_large, "second derivatives that overflow, times the cotangent 0; PyTorch has nan"),
    Slope(r"\bexpm1_?\(", _at_lower_bound, "inf times the value plus 1, which is 0 or a rounding error"),
    Slope(r"log_ndtr", _any(lambda x: x < -1e4), "far below 0, where PyTorch's quotient is of what overflows: nan"),
    Slope(r"\bangle\(", _beside_origin, "second derivatives at 0, and all near it; PyTorch has nan"),
    Slope(r"mse_loss", _never, "second derivatives with infinite cotangents: inf less inf", infinite=True),
    Slope(r"nan_to_num", _never, "PyTorch multiplies by 0 what was replaced", infinite=True),
    Slope(r"conv[123]d\(.*padding", _never, "PyTorch leaves the padding out, where 0 times inf is nan", infinite=True),
    Slope(r"sigmoid", _never, "second derivatives with infinite cotangents: differences of two are nan", infinite=True),
    Slope(
        r"add\w*(mm|mv|r)_?\(.*(beta|alpha)=0(?![.\d])",
        _never,
        "the factor 0 makes 0, in PyTorch 0 times inf",
        infinite=True,
    ),
    Slope(
        r"\b(amax|amin|aminmax|max|min)\(",
        _nan,
        "of nan; PyTorch gives nan to all elements, as it does if the cotangent is none",
        infinite=True,
    ),
)


#: How often a difference was known from the table alone, by call and reason.
USED: Counter[str] = Counter()


def known_gradient(torch: Any, lines: list[str], mismatch: Mismatch) -> bool:
    """Whether gradients differ because of lines alone whose own derivatives are known to differ.

    If no line's derivative differs, rounding has moved an operand away from a singularity, or to it. (With infinite
    cotangents those of complex functions do: inf times a complex number is nan in part.)
    """
    if mismatch.is_infinite and any(map(is_singular, steps(torch, lines))):
        return True
    if any(map(is_on_cut, steps(torch, lines))) and known_zeros(turning(torch, lines)):
        return True
    if any(map(_is_collinear, steps(torch, lines))):
        return True
    found = culprits(torch, lines)
    if not found:
        return mismatch.is_infinite
    unprincipled = [culprit for culprit in found if not _is_principled(torch, culprit, mismatch)]
    listed = [_listed(culprit) for culprit in unprincipled]
    if not all(listed) and all(slope is None or slope.is_derivative for slope in listed):
        return False
    if listed and not differences.is_right(torch, lines, mismatch.text.split(":")[0]):
        USED.update(f"{slope.call}: {slope.reason}" for slope in listed if slope)
    return True


def _is_collinear(step: Culprit) -> bool:
    """Whether rows of `corrcoef` are collinear: rounding decides whether their coefficient is cut off at 1."""
    if "corrcoef" not in step.line:
        return False
    sizes = abs(np.atleast_2d(value(step)))
    return bool((sizes[~np.eye(len(sizes), dtype=bool)] > 1 - 1e-5).any())


def _is_principled(torch: Any, culprit: Culprit, mismatch: Mismatch) -> bool:
    if culprit.of_infinite and mismatch.is_infinite and any(map(np.iscomplexobj, culprit.operands.values())):
        return True
    return (mismatch.is_infinite and is_principled(torch, culprit)) or is_right(torch, culprit)


def _listed(culprit: Culprit) -> Slope | None:
    for slope in GRADIENTS:
        if re.search(slope.call, culprit.line) and (
            slope.sees(culprit) or (slope.infinite and culprit.of_infinite) or (slope.zero and culprit.of_zero)
        ):
            return slope
    return None
