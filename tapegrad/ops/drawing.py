"""Functions that draw categories and counts, of given probabilities and rates; and the state of what draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.devices import DeviceLike
from tapegrad.dtypes import TORCH_NAMES, DTypeLike
from tapegrad.ops.creation import made
from tapegrad.ops.generators import Generator, drawn, numpy_generator
from tapegrad.ops.random import randint, with_no_slope
from tapegrad.ops.table.gateway import apply, as_operand
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, Op, op_table, xp
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor


def _counting(name: str, operands: tuple[str, ...], draw: Callable[..., Any]) -> Op:
    """Return an op that draws counts, given a seed, which is drawn itself: so a program draws anew in each call."""

    def forward(seed: Any, x: Any, *rest: Any) -> Any:
        return np.asarray(draw(np.random.Generator(np.random.PCG64(int(seed))), x, *rest)).astype(x.dtype)

    rules = (NOT_DIFFERENTIABLE,) * (1 + len(operands))
    op = Op(name=name, operands=("seed", *operands), forward=forward, vjp=rules, family="random")
    del op_table[op.name]  # it is called by the functions below
    return op


_poisson: Final = _counting("poisson_counts", ("x",), lambda rng, rate: rng.poisson(rate))
_binomial: Final = _counting("binomial_counts", ("x", "y"), lambda rng, n, p: rng.binomial(n.astype(np.int64), p))


def _drawn_counts(op: Op, generator: Generator | None, *operands: Tensor) -> Tensor:
    seed = drawn(generator, lambda rng: np.asarray(rng.integers(2**63 - 1)))
    return apply(op, Bound((seed, *operands), {}))


@public(method=True)
def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Draw indices with probabilities that are proportional to the elements of a row.

    Parameters
    ----------
    input : Tensor or array, (n,) or (rows, n)
        None negative, one of each row positive.
    num_samples : int
        How many of each row.
    replacement : bool
        Whether an index may be drawn several times.
    generator : Generator, optional
        By default the one that `manual_seed` seeds.

    Returns
    -------
    Tensor, (num_samples,) or (rows, num_samples)
        Of dtype int64.

    Raises
    ------
    RuntimeError
        If these are no probabilities, or more are to be drawn than there are.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.multinomial(tg.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
    """
    x = as_operand(input, "multinomial", "input", 1)
    if x.ndim not in (1, 2):
        raise RuntimeError(f"prob_dist must be 1 or 2 dim; multinomial() got shape {list(x.shape)}")
    if x.dtype.kind != "f":
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {TORCH_NAMES[x.dtype.name]}"
        )
    if x.shape[-1] > 2**24:
        raise RuntimeError(f"number of categories cannot exceed 2^24; multinomial() got {x.shape[-1]}")
    if num_samples <= 0:
        raise RuntimeError(f"cannot sample n_sample <= 0 samples; multinomial() got num_samples={num_samples}")
    if not replacement and num_samples > x.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement: multinomial() got "
            f"num_samples={num_samples} for {x.shape[-1]}"
        )
    if x.is_traced:
        return _multinomial_traced(x.detach(), num_samples, replacement, generator)
    weights = np.asarray(x._data, np.float64).reshape(-1, x.shape[-1])
    if not np.all(np.isfinite(weights) & (weights >= 0)):
        if not replacement or num_samples == 1:
            raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0; see multinomial()")
        what = "< 0" if np.any(weights < 0) else "= infinity or NaN"
        raise RuntimeError(f"invalid multinomial distribution (encountering probability entry {what}) in multinomial()")
    if weights.size and not np.all(weights.sum(-1) > 0):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0); see multinomial()")
    rng, shape = numpy_generator(generator), (*x.shape[:-1], num_samples)
    if not replacement:  # the largest of x / e, where e is exponentially distributed, is drawn with a probability of x
        with np.errstate(divide="ignore"):
            keys = np.log(weights) - np.log(rng.standard_exponential(weights.shape))
        return made(np.argsort(-keys, -1, kind="stable")[:, :num_samples].reshape(shape), False)
    ends = np.cumsum(weights, -1)
    at = rng.random((len(weights), num_samples)) * ends[:, -1:]
    found = [np.searchsorted(line, own, "right") for line, own in zip(ends, at, strict=True)]
    return made(np.asarray(found, np.int64).reshape(shape), False)


def _multinomial_traced(x: Tensor, num_samples: int, replacement: bool, generator: Generator | None) -> Tensor:
    """Draw as above, by operations, of the same random numbers."""
    rows = xp.reshape(x, (-1, x.shape[-1]))
    if replacement:
        ends = xp.cumsum(rows, -1)
        at = drawn(generator, lambda rng: rng.random((rows.shape[0], num_samples))) * ends[:, -1:]
        found = xp.sum(xp.unsqueeze(ends, 1) <= xp.unsqueeze(at, -1), -1)  # how many ends are not above
    else:
        keys = xp.log(rows) - xp.log(drawn(generator, lambda rng: rng.standard_exponential(rows.shape)))
        found = (-keys).argsort(dim=-1, stable=True)[:, :num_samples]
    result: Tensor = xp.reshape(found, (*x.shape[:-1], num_samples))
    return result


@public()
def poisson(input: Any, generator: Generator | None = None) -> Tensor:
    """Draw numbers of the Poisson distribution.

    Parameters
    ----------
    input : Tensor or array
        The rates.
    generator : Generator, optional
        By default the one that `manual_seed` seeds.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    RuntimeError
        If a rate is negative, or the dtype is not floating.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.poisson(tg.zeros(2))
    tensor([0., 0.])
    """
    x = as_operand(input, "poisson", "input", 1)
    if x.dtype.kind != "f":
        raise NotImplementedError(f'"poisson" not implemented for {TORCH_NAMES[x.dtype.name]!r}; convert it first')
    rates = np.asarray(x._data)
    if not np.all(rates >= 0):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative; see poisson()")
    return with_no_slope(_drawn_counts(_poisson, generator, x), x)


@public()
def binomial(count: Any, prob: Any, generator: Generator | None = None) -> Tensor:
    """Draw how many of so many trials succeed.

    Parameters
    ----------
    count, prob : Tensor or array
        The numbers of trials, and the probabilities of a success; broadcast together.
    generator : Generator, optional
        By default the one that `manual_seed` seeds.

    Returns
    -------
    Tensor
        Of the dtype of `count`.

    Raises
    ------
    RuntimeError
        If these are no probabilities, or a number is negative.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.binomial(tg.tensor([4.0, 7.0]), tg.tensor([0.0, 1.0]))
    tensor([0., 7.])
    """
    trials, chance = as_operand(count, "binomial", "count", 1), as_operand(prob, "binomial", "prob", 2)
    n, p = np.asarray(trials._data), np.asarray(chance._data)
    if not (np.all(n >= 0) and np.all((p >= 0) & (p <= 1))):
        raise RuntimeError("binomial() expects count >= 0 and 0 <= prob <= 1")
    return _drawn_counts(_binomial, generator, trials, chance)


@public()
def randint_like(
    input: Any,
    low: int,
    high: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return integers, as `randint` draws them, of the shape and dtype of another tensor.

    Parameters
    ----------
    input : Tensor
        Only its shape and its dtype count.
    low, high : int
        The least, and the one after the largest; one number alone is `high`.
    dtype : dtype, optional
    device : device, optional
        Only the CPU.
    requires_grad : bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.randint_like(tg.ones(2), 3, 4)
    tensor([3., 3.])
    """
    x = as_operand(input, "randint_like", "input", 1)
    return randint(low, high, x.shape, dtype=dtype or x.dtype, device=device, requires_grad=requires_grad)
