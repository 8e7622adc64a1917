"""Special functions, with PyTorch's and SciPy's names.

Written by `python -m tools.stubs`, from the public functions.
"""

from typing import Any

from numpy.typing import DTypeLike

from tapegrad.tensor import Tensor

__all__ = ["round", "exp2", "expm1", "cbrt", "log1p", "expit", "logit", "erf", "softmax", "log_softmax", "logsumexp", "jv", "j1", "j0", "yv", "y1", "y0", "iv", "ive", "i1", "i0", "i1e", "i0e", "kv", "k1", "k0", "k1e", "k0e", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "entr", "xlogy", "xlog1py", "sinc", "spherical_bessel_j0", "erfc", "erfcx", "erfinv", "ndtr", "log_ndtr", "ndtri", "lgamma", "gammaln", "digamma", "psi", "polygamma", "gamma", "betaln", "beta", "zeta", "mvlgamma", "multigammaln", "gammainc", "gammaincc", "betainc"]  # fmt: skip

def round(input: Any, *, decimals: int | None = None) -> Tensor:
    """Round to the nearest integer, halves to the even one; integers stay as they are."""

def exp2(input: Any) -> Tensor:
    """Power of 2."""

def expm1(input: Any) -> Tensor:
    """Exponential less 1, precise near 0."""

def cbrt(input: Any) -> Tensor:
    """Real cube root."""

def log1p(input: Any) -> Tensor:
    """Natural logarithm of 1 + x, precise near 0."""

def expit(input: Any) -> Tensor:
    """Logistic function :math:`1/(1 + e^{-x})`."""

def logit(input: Any, eps: float | None = None) -> Tensor:
    """Inverse of `sigmoid`: the logarithm of :math:`x/(1 - x)`."""

def erf(input: Any) -> Tensor:
    """Error function."""

def softmax(input: Any, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Exponentials along a dimension, divided by their sum, so that results sum to 1."""

def log_softmax(input: Any, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Logarithm of `softmax`, computed so that nothing overflows or cancels."""

def logsumexp(input: Any, dim: int | tuple[int, ...], keepdim: bool = False) -> Tensor:
    """Logarithm of the sum of exponentials, computed so that nothing overflows."""

def jv(input: Any, other: Any) -> Tensor:
    """Bessel function of the first kind, :math:`J_v(x)`, of the order `input`."""

def j1(input: Any) -> Tensor:
    """Bessel function of the first kind of order 1."""

def j0(input: Any) -> Tensor:
    """Bessel function of the first kind of order 0."""

def yv(input: Any, other: Any) -> Tensor:
    """Bessel function of the second kind, :math:`Y_v(x)`, of the order `input`."""

def y1(input: Any) -> Tensor:
    """Bessel function of the second kind of order 1."""

def y0(input: Any) -> Tensor:
    """Bessel function of the second kind of order 0."""

def iv(input: Any, other: Any) -> Tensor:
    """Modified Bessel function of the first kind, :math:`I_v(x)`, of the order `input`."""

def ive(input: Any, other: Any) -> Tensor:
    """Modified Bessel function `iv`, scaled by :math:`e^{-|x|}`."""

def i1(input: Any) -> Tensor:
    """Modified Bessel function of the first kind of order 1."""

def i0(input: Any) -> Tensor:
    """Modified Bessel function of the first kind of order 0."""

def i1e(input: Any) -> Tensor:
    """Modified Bessel function of the first kind of order 1, scaled by :math:`e^{-|x|}`."""

def i0e(input: Any) -> Tensor:
    """Modified Bessel function of the first kind of order 0, scaled by :math:`e^{-|x|}`."""

def kv(input: Any, other: Any) -> Tensor:
    """Modified Bessel function of the second kind, :math:`K_v(x)`, of the order `input`."""

def k1(input: Any) -> Tensor:
    """Modified Bessel function of the second kind of order 1."""

def k0(input: Any) -> Tensor:
    """Modified Bessel function of the second kind of order 0."""

def k1e(input: Any) -> Tensor:
    """Modified Bessel function of the second kind of order 1, scaled by :math:`e^x`."""

def k0e(input: Any) -> Tensor:
    """Modified Bessel function of the second kind of order 0, scaled by :math:`e^x`."""

def bessel_j0(input: Any) -> Tensor:
    """Bessel function of the first kind of order 0."""

def bessel_j1(input: Any) -> Tensor:
    """Bessel function of the first kind of order 1."""

def bessel_y0(input: Any) -> Tensor:
    """Bessel function of the second kind of order 0."""

def bessel_y1(input: Any) -> Tensor:
    """Bessel function of the second kind of order 1."""

def modified_bessel_i0(input: Any) -> Tensor:
    """Modified Bessel function of the first kind of order 0."""

def modified_bessel_i1(input: Any) -> Tensor:
    """Modified Bessel function of the first kind of order 1."""

def modified_bessel_k0(input: Any) -> Tensor:
    """Modified Bessel function of the second kind of order 0."""

def modified_bessel_k1(input: Any) -> Tensor:
    """Modified Bessel function of the second kind of order 1."""

def scaled_modified_bessel_k0(input: Any) -> Tensor:
    """Modified Bessel function of the second kind of order 0, scaled by :math:`e^x`."""

def scaled_modified_bessel_k1(input: Any) -> Tensor:
    """Modified Bessel function of the second kind of order 1, scaled by :math:`e^x`."""

def entr(input: Any) -> Tensor:
    """Entropy :math:`-x \\log x`; 0 at 0, minus infinity below."""

def xlogy(input: Any, other: Any) -> Tensor:
    """Product :math:`x \\log y`, which is 0 where `input` is 0 (unless `other` is nan)."""

def xlog1py(input: Any, other: Any) -> Tensor:
    """Product :math:`x \\log(1 + y)`, which is 0 where `input` is 0 (unless `other` is nan)."""

def sinc(input: Any) -> Tensor:
    """Normalised sine :math:`\\sin(\\pi x)/(\\pi x)`, 1 at 0."""

def spherical_bessel_j0(input: Any) -> Tensor:
    """Spherical Bessel function of order 0, :math:`\\sin(x)/x` (DLMF 10.49.3)."""

def erfc(input: Any) -> Tensor:
    """Complementary error function :math:`1 - \\mathrm{erf}\\,x`, precise where that is small."""

def erfcx(input: Any) -> Tensor:
    """Scaled complementary error function :math:`e^{x^2} \\mathrm{erfc}\\,x`."""

def erfinv(input: Any) -> Tensor:
    """Inverse of the error function."""

def ndtr(input: Any) -> Tensor:
    """Distribution function of the standard normal distribution."""

def log_ndtr(input: Any) -> Tensor:
    """Logarithm of `ndtr`, precise where that is small."""

def ndtri(input: Any) -> Tensor:
    """Quantile of the standard normal distribution: the inverse of `ndtr`."""

def lgamma(input: Any) -> Tensor:
    """Logarithm of the absolute value of the gamma function."""

def gammaln(input: Any) -> Tensor:
    """Logarithm of the absolute value of the gamma function."""

def digamma(input: Any) -> Tensor:
    """Digamma function :math:`\\psi`: the derivative of `lgamma`."""

def psi(input: Any) -> Tensor:
    """Digamma function :math:`\\psi`: the derivative of `lgamma`."""

def polygamma(n: int, input: Any) -> Tensor:
    """Differentiate the digamma function `n` times: :math:`\\psi^{(n)}(x)`."""

def gamma(input: Any) -> Tensor:
    """Gamma function."""

def betaln(input: Any, other: Any) -> Tensor:
    """Logarithm of the absolute value of the beta function."""

def beta(input: Any, other: Any) -> Tensor:
    """Beta function :math:`\\Gamma(x) \\Gamma(y)/\\Gamma(x + y)` (DLMF 5.12.1)."""

def zeta(input: Any, other: Any) -> Tensor:
    """Hurwitz's zeta function :math:`\\sum_k (k + y)^{-x}`."""

def mvlgamma(input: Any, p: int) -> Tensor:
    """Logarithm of the multivariate gamma function."""

def multigammaln(input: Any, p: int) -> Tensor:
    """Logarithm of the multivariate gamma function."""

def gammainc(input: Any, other: Any) -> Tensor:
    """Regularised lower incomplete gamma function :math:`P(a, x)`, of the parameter `input` and the limit `other`."""

def gammaincc(input: Any, other: Any) -> Tensor:
    """Regularised upper incomplete gamma function :math:`Q(a, x)`, of the parameter `input` and the limit `other`."""

def betainc(a: Any, b: Any, x: Any) -> Tensor:
    """Regularised incomplete beta function :math:`I_x(a, b)` (DLMF 8.17.2)."""
