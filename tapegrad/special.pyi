"""Special functions, with PyTorch's and SciPy's names.

Written by `python -m tools.stubs`, from the public functions.
"""

from typing import Any

from numpy.typing import DTypeLike

from tapegrad.tensor import Tensor

__all__ = ["airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "beta", "betainc", "betaln", "cbrt", "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "dawsn", "digamma", "ellipe", "ellipk", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfi", "erfinv", "exp1", "exp2", "expi", "expit", "expm1", "gamma", "gammainc", "gammaincc", "gammaincinv", "gammaln", "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e", "i1", "i1e", "iv", "ive", "j0", "j1", "jv", "k0", "k0e", "k1", "k1e", "kv", "laguerre_polynomial_l", "legendre_polynomial_p", "lgamma", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "multigammaln", "mvlgamma", "ndtr", "ndtri", "polygamma", "psi", "round", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "sinc", "softmax", "spence", "spherical_bessel_j0", "xlog1py", "xlogy", "y0", "y1", "yv", "zeta"]  # fmt: skip

def airy_ai(input: Any, *, out: Any = ...) -> Tensor:
    """Airy function :math:`\\mathrm{Ai}(x)`."""

def bessel_j0(input: Any, *, out: Any = ...) -> Tensor:
    """Bessel function of the first kind of order 0."""

def bessel_j1(input: Any, *, out: Any = ...) -> Tensor:
    """Bessel function of the first kind of order 1."""

def bessel_y0(input: Any, *, out: Any = ...) -> Tensor:
    """Bessel function of the second kind of order 0."""

def bessel_y1(input: Any, *, out: Any = ...) -> Tensor:
    """Bessel function of the second kind of order 1."""

def beta(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Beta function :math:`\\Gamma(x) \\Gamma(y)/\\Gamma(x + y)` (DLMF 5.12.1)."""

def betainc(a: Any, b: Any, x: Any, *, out: Any = ...) -> Tensor:
    """Regularised incomplete beta function :math:`I_x(a, b)` (DLMF 8.17.2)."""

def betaln(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Logarithm of the absolute value of the beta function."""

def cbrt(input: Any, *, out: Any = ...) -> Tensor:
    """Real cube root."""

def chebyshev_polynomial_t(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """Chebyshev polynomials of the first kind at `input`."""

def chebyshev_polynomial_u(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """Chebyshev polynomials of the second kind at `input`."""

def chebyshev_polynomial_v(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """Chebyshev polynomials of the third kind at `input`."""

def chebyshev_polynomial_w(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """Chebyshev polynomials of the fourth kind at `input`."""

def dawsn(input: Any, *, out: Any = ...) -> Tensor:
    """Dawson's integral (DLMF 7.2.5)."""

def digamma(input: Any, *, out: Any = ...) -> Tensor:
    """Digamma function :math:`\\psi`: the derivative of `lgamma`."""

def ellipe(input: Any, *, out: Any = ...) -> Tensor:
    """Complete elliptic integral of the second kind, of the parameter m (DLMF 19.2.8)."""

def ellipk(input: Any, *, out: Any = ...) -> Tensor:
    """Complete elliptic integral of the first kind, of the parameter m (DLMF 19.2.8)."""

def entr(input: Any, *, out: Any = ...) -> Tensor:
    """Entropy :math:`-x \\log x`; 0 at 0, minus infinity below."""

def erf(input: Any, *, out: Any = ...) -> Tensor:
    """Error function."""

def erfc(input: Any, *, out: Any = ...) -> Tensor:
    """Complementary error function :math:`1 - \\mathrm{erf}\\,x`, precise where that is small."""

def erfcinv(input: Any, *, out: Any = ...) -> Tensor:
    """Inverse of `erfc`."""

def erfcx(input: Any, *, out: Any = ...) -> Tensor:
    """Scaled complementary error function :math:`e^{x^2} \\mathrm{erfc}\\,x`."""

def erfi(input: Any, *, out: Any = ...) -> Tensor:
    """Imaginary error function."""

def erfinv(input: Any, *, out: Any = ...) -> Tensor:
    """Inverse of the error function."""

def exp1(input: Any, *, out: Any = ...) -> Tensor:
    """Exponential integral :math:`E_1(x)` (DLMF 6.2.1)."""

def exp2(input: Any, *, out: Any = ...) -> Tensor:
    """Power of 2."""

def expi(input: Any, *, out: Any = ...) -> Tensor:
    """Exponential integral :math:`\\mathrm{Ei}(x)` (DLMF 6.2.5)."""

def expit(input: Any, *, out: Any = ...) -> Tensor:
    """Logistic function :math:`1/(1 + e^{-x})`."""

def expm1(input: Any, *, out: Any = ...) -> Tensor:
    """Exponential less 1, precise near 0."""

def gamma(input: Any, *, out: Any = ...) -> Tensor:
    """Gamma function."""

def gammainc(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Regularised lower incomplete gamma function :math:`P(a, x)`, of the parameter `input` and the limit `other`."""

def gammaincc(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Regularised upper incomplete gamma function :math:`Q(a, x)`, of the parameter `input` and the limit `other`."""

def gammaincinv(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Inverse of `gammainc` by its limit: the quantile of a gamma distribution of shape `input` at the probability `other`."""

def gammaln(input: Any, *, out: Any = ...) -> Tensor:
    """Logarithm of the absolute value of the gamma function."""

def hermite_polynomial_h(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """Hermite polynomials of physicists at `input`."""

def hermite_polynomial_he(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """Hermite polynomials of probabilists at `input`."""

def i0(input: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the first kind of order 0."""

def i0e(input: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the first kind of order 0, scaled by :math:`e^{-|x|}`."""

def i1(input: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the first kind of order 1."""

def i1e(input: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the first kind of order 1, scaled by :math:`e^{-|x|}`."""

def iv(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the first kind, :math:`I_v(x)`, of the order `input`."""

def ive(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function `iv`, scaled by :math:`e^{-|x|}`."""

def j0(input: Any, *, out: Any = ...) -> Tensor:
    """Bessel function of the first kind of order 0."""

def j1(input: Any, *, out: Any = ...) -> Tensor:
    """Bessel function of the first kind of order 1."""

def jv(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Bessel function of the first kind, :math:`J_v(x)`, of the order `input`."""

def k0(input: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the second kind of order 0."""

def k0e(input: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the second kind of order 0, scaled by :math:`e^x`."""

def k1(input: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the second kind of order 1."""

def k1e(input: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the second kind of order 1, scaled by :math:`e^x`."""

def kv(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the second kind, :math:`K_v(x)`, of the order `input`."""

def laguerre_polynomial_l(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """Laguerre polynomials at `input`."""

def legendre_polynomial_p(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """Legendre polynomials at `input`."""

def lgamma(input: Any, *, out: Any = ...) -> Tensor:
    """Logarithm of the absolute value of the gamma function."""

def log1p(input: Any, *, out: Any = ...) -> Tensor:
    """Natural logarithm of 1 + x, precise near 0."""

def log_ndtr(input: Any, *, out: Any = ...) -> Tensor:
    """Logarithm of `ndtr`, precise where that is small."""

def log_softmax(
    input: Any, dim: int = ..., dtype: DTypeLike | None = None, *, axis: int = ..., out: Any = ...
) -> Tensor:
    """Logarithm of `softmax`, computed so that nothing overflows or cancels."""

def logit(input: Any, eps: float | None = None, *, out: Any = ...) -> Tensor:
    """Inverse of `sigmoid`: the logarithm of :math:`x/(1 - x)`."""

def logsumexp(
    input: Any,
    dim: int | tuple[int, ...] = ...,
    keepdim: bool = False,
    *,
    axis: int | tuple[int, ...] = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Logarithm of the sum of exponentials, computed so that nothing overflows."""

def modified_bessel_i0(input: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the first kind of order 0."""

def modified_bessel_i1(input: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the first kind of order 1."""

def modified_bessel_k0(input: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the second kind of order 0."""

def modified_bessel_k1(input: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the second kind of order 1."""

def multigammaln(input: Any, p: int, *, out: Any = ...) -> Tensor:
    """Logarithm of the multivariate gamma function."""

def mvlgamma(input: Any, p: int, *, out: Any = ...) -> Tensor:
    """Logarithm of the multivariate gamma function."""

def ndtr(input: Any, *, out: Any = ...) -> Tensor:
    """Distribution function of the standard normal distribution."""

def ndtri(input: Any, *, out: Any = ...) -> Tensor:
    """Quantile of the standard normal distribution: the inverse of `ndtr`."""

def polygamma(n: int, input: Any, *, out: Any = ...) -> Tensor:
    """Differentiate the digamma function `n` times: :math:`\\psi^{(n)}(x)`."""

def psi(input: Any, *, out: Any = ...) -> Tensor:
    """Digamma function :math:`\\psi`: the derivative of `lgamma`."""

def round(input: Any, decimals: int | None = None, *, out: Any = ...) -> Tensor:
    """Round to the nearest integer, halves to the even one; integers stay as they are."""

def scaled_modified_bessel_k0(input: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the second kind of order 0, scaled by :math:`e^x`."""

def scaled_modified_bessel_k1(input: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the second kind of order 1, scaled by :math:`e^x`."""

def shifted_chebyshev_polynomial_t(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """Shifted Chebyshev polynomials of the first kind at `input`."""

def shifted_chebyshev_polynomial_u(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """Shifted Chebyshev polynomials of the second kind at `input`."""

def shifted_chebyshev_polynomial_v(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """Shifted Chebyshev polynomials of the third kind at `input`."""

def shifted_chebyshev_polynomial_w(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """Shifted Chebyshev polynomials of the fourth kind at `input`."""

def sinc(input: Any, *, out: Any = ...) -> Tensor:
    """Normalised sine :math:`\\sin(\\pi x)/(\\pi x)`, 1 at 0."""

def softmax(input: Any, dim: int = ..., dtype: DTypeLike | None = None, *, axis: int = ..., out: Any = ...) -> Tensor:
    """Exponentials along a dimension, divided by their sum, so that results sum to 1."""

def spence(input: Any, *, out: Any = ...) -> Tensor:
    """Dilogarithm :math:`\\mathrm{Li}_2(1 - x)` (DLMF 25.12.1)."""

def spherical_bessel_j0(input: Any, *, out: Any = ...) -> Tensor:
    """Spherical Bessel function of order 0, :math:`\\sin(x)/x` (DLMF 10.49.3)."""

def xlog1py(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Product :math:`x \\log(1 + y)`, which is 0 where `input` is 0 (unless `other` is nan)."""

def xlogy(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Product :math:`x \\log y`, which is 0 where `input` is 0 (unless `other` is nan)."""

def y0(input: Any, *, out: Any = ...) -> Tensor:
    """Bessel function of the second kind of order 0."""

def y1(input: Any, *, out: Any = ...) -> Tensor:
    """Bessel function of the second kind of order 1."""

def yv(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Bessel function of the second kind, :math:`Y_v(x)`, of the order `input`."""

def zeta(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Hurwitz's zeta function :math:`\\sum_k (k + y)^{-x}`."""
