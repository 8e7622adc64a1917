"""In-place operations that fill a tensor with random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.dtypes import TORCH_NAMES
from tapegrad.ops.generators import Generator, drawn, numpy_generator
from tapegrad.ops.history import before_write
from tapegrad.ops.random import bernoulli
from tapegrad.ops.setitem import write_at_index
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.write_checks import check_leaf
from tapegrad.recording.writes import written
from tapegrad.tensor import Tensor

_Drawer = np.random.Generator
_method = public(namespaces=(), method=True)


def _check_continuous(distribution: str, x: Tensor) -> None:
    if x.dtype.kind != "f":
        raise RuntimeError(
            f"{distribution} distribution is a continuous probability distribution. dtype must be a floating point but "
            f"you specified {x.dtype}"
        )


def _check_kernel(self: Tensor, kernel: str) -> None:
    if self.dtype.kind not in "fc":
        raise NotImplementedError(f'"{kernel}" not implemented for {TORCH_NAMES[self.dtype.name]!r}')


def _draw(
    self: Tensor,
    generator: Generator | None,
    draw: Callable[[np.random.Generator], Any],
    fill: Callable[..., Any] | None = None,
    scale: float = 1.0,
    shift: float = 0.0,
) -> Tensor:
    """Write what is drawn to a tensor; the elements that are written over get a gradient of 0.

    The same numbers are had by a method `fill` of the generator, times `scale`, and with `shift` added.
    """
    array = written.memory(self)
    if array is not None:
        rng = numpy_generator(generator)
        if fill is None or array.dtype != np.float64 or not array.flags.c_contiguous:
            array[...] = draw(rng)
            return self
        fill(rng, out=array)
        if scale != 1.0:
            array *= scale
        if shift != 0.0:
            array += shift
        return self
    if modes.is_traced():
        write_at_index(self, Ellipsis, drawn(generator, lambda rng: np.asarray(draw(rng))), "a random number's method")
        return self
    values = draw(numpy_generator(generator))
    if modes.is_grad_enabled():
        check_leaf(self)
        if isinstance(self._node, list):
            write_at_index(self, Ellipsis, values, "a random number's method")
            return self
    before_write(self)
    self._array()[...] = values
    return self


@_method
def uniform_(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers drawn uniformly from a bound to another, in place.

    Parameters
    ----------
    from_, to : float
        The bounds; `to` is not drawn.
    generator : Generator, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.empty(100).uniform_(2.0, 3.0)
    >>> bool((x >= 2).all() and (x < 3).all())
    True
    """
    _check_kernel(self, "check_uniform_bounds")
    if not from_ <= to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_} > to={to}")
    shape = self.shape
    return _draw(self, generator, lambda rng: rng.uniform(from_, to, shape), _Drawer.random, to - from_, from_)


@_method
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with normally distributed numbers, in place.

    Parameters
    ----------
    mean, std : float
    generator : Generator, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.empty(3).normal_(mean=10.0, std=0.1).round()
    tensor([10., 10., 10.])
    """
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    shape = self.shape
    _check_kernel(self, "normal_kernel_cpu")
    return _draw(self, generator, lambda rng: rng.normal(mean, std, shape), _Drawer.standard_normal, std, mean)


@_method
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones with a probability, or with those of a tensor, and with zeros otherwise, in place.

    Parameters
    ----------
    p : float or Tensor
        The probability of a one.
    generator : Generator, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.empty(3).bernoulli_(1.0)
    tensor([1., 1., 1.])
    """
    if isinstance(p, Tensor) and p.is_traced:
        return self.copy_(bernoulli(xp.expand(p, self.shape), generator=generator))
    chance = p if p.__class__ is float else np.asarray(as_operand(p, "bernoulli_", "p", 2)._data)
    holds = 0 <= chance <= 1 if chance is p else bool(np.all((chance >= 0) & (chance <= 1)))
    if not holds:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    shape = self.shape
    return _draw(self, generator, lambda rng: rng.random(shape) < chance)


@_method
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponentially distributed numbers of the mean ``1 / lambd``, in place.

    Parameters
    ----------
    lambd : float
        The rate.
    generator : Generator, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> bool((tg.empty(100).exponential_() > 0).all())
    True
    """
    _check_continuous("Exponential", self)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    shape = self.shape
    fill = _Drawer.standard_exponential
    return _draw(self, generator, lambda rng: rng.exponential(1 / lambd, shape), fill, 1 / lambd)


@_method
def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers whose logarithms are normally distributed, in place.

    Parameters
    ----------
    mean, std : float
        Of the logarithms.
    generator : Generator, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> bool((tg.empty(100).log_normal_() > 0).all())
    True
    """
    _check_continuous("Log normal", self)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    shape = self.shape
    return _draw(self, generator, lambda rng: rng.lognormal(mean, std, shape))


@_method
def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the Cauchy distribution, in place.

    Parameters
    ----------
    median, sigma : float
        Where the middle of the distribution is, and half its width at half its height.
    generator : Generator, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.empty(3).cauchy_(median=5.0, sigma=1.0).shape
    (3,)
    """
    _check_continuous("Cauchy", self)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    shape = self.shape
    return _draw(self, generator, lambda rng: median + sigma * rng.standard_cauchy(shape))


@_method
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the numbers of trials up to the first success, which has the probability `p`, in place.

    Parameters
    ----------
    p : float
        Between 0 and 1.
    generator : Generator, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> bool((tg.empty(100).geometric_(0.5) >= 1).all())
    True
    """
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    shape = self.shape
    return _draw(self, generator, lambda rng: rng.geometric(p, shape))


@_method
def random_(self: Tensor, *bounds: int, generator: Generator | None = None) -> Tensor:
    """Fill with integers up to and without a bound, or from one to another, in place.

    Without bounds they are all that the dtype has from 0 on, or that floating numbers hold exactly.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.empty(100, dtype=tg.int64).random_(3, 6)
    >>> int(x.min()) >= 3, int(x.max()) <= 5
    (True, True)
    """
    low, high = (0, *bounds)[-2:] if bounds else (0, _most_of(self.dtype) + 1)
    if not low < high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    shape = self.shape
    return _draw(self, generator, lambda rng: rng.integers(low, high - 1, shape, endpoint=True))


def _most_of(dtype: np.dtype) -> int:
    """Return the largest integer that a dtype holds, and with it all below."""
    if dtype.kind == "b":
        return 1
    return int(np.iinfo(dtype).max) if dtype.kind in "iu" else 2 ** (np.finfo(dtype).nmant + 1)
