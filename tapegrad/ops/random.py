"""Creation: random tensors, drawn by NumPy's generators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.devices import DeviceLike
from tapegrad.dtypes import TORCH_NAMES, DTypeLike
from tapegrad.ops.creation import dtype_or_default, shape_of
from tapegrad.ops.generators import Generator
from tapegrad.ops.generators import drawn as drawn_by
from tapegrad.ops.table import docs
from tapegrad.ops.table.callers import into
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import integer
from tapegrad.tensor import Tensor, from_array


def with_no_slope(numbers: Tensor, *of: Any) -> Tensor:
    """Return random numbers as results of what they were drawn with, which gets a gradient of 0, as in PyTorch."""
    for value in of:
        if isinstance(value, Tensor) and value.requires_grad:
            numbers = xp.where(np.array(True), numbers, value)
    return numbers


def _uniform(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return (_uniform(rng, shape, part) + 1j * _uniform(rng, shape, part)).astype(dtype)
    return np.asarray(rng.random(shape, dtype=dtype))


def _gaussian(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "c":  # of variance 1 in all, as in PyTorch
        part = np.dtype(f"f{dtype.itemsize // 2}")
        pair = _gaussian(rng, shape, part) + 1j * _gaussian(rng, shape, part)
        return np.asarray(pair * np.sqrt(0.5), dtype)
    return np.asarray(rng.standard_normal(shape, dtype=dtype))


Draw = Callable[["np.random.Generator", tuple[int, ...], np.dtype], np.ndarray]  # quoted: see Generator


_SHAPE: Final = """\
*shape : int
    The shape, as integers or as one sequence.
size : sequence of int, optional
    The same by name."""


def _family(name: str, draw: Draw, what: str) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """Return the function that draws a shape, and the one that draws the shape of another tensor."""

    def drawn(
        call: str,
        shape: tuple[int, ...],
        generator: Generator | None,
        dtype: np.dtype,
        requires_grad: bool,
        device: DeviceLike,
    ) -> Tensor:
        if dtype.kind not in "fc":
            raise RuntimeError(f"{call}() draws floating numbers, not {dtype}; for integers use randint()")
        return drawn_by(generator, lambda rng: draw(rng, shape, dtype), requires_grad, device)

    def sized(
        *shape: Any,
        size: Any = None,
        generator: Generator | None = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike = None,
        requires_grad: bool = False,
        out: Tensor | None = None,
    ) -> Tensor:
        if out is not None:
            return into(  # type: ignore[no-any-return]
                out, name, lambda kind: sized(*shape, size=size, generator=generator, dtype=kind), (dtype,), 0
            )
        return drawn(name, shape_of(name, shape, size), generator, dtype_or_default(dtype), requires_grad, device)

    def like(
        input: Any,
        *,
        generator: Generator | None = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike = None,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        kind = input.dtype if dtype is None else np.dtype(dtype)
        return drawn(f"{name}_like", input.shape, generator, kind, requires_grad, device)

    for function, call, of, parameter, example in (
        (sized, name, "of a shape", _SHAPE, "(2, 3)"),
        (
            like,
            f"{name}_like",
            "of the shape and dtype of another tensor",
            "input : Tensor or array",
            "(tg.zeros(2, 3))",
        ),
    ):
        function.__name__ = function.__qualname__ = call
        summary = f"Return independent random numbers, {what}, {of}."
        common = (docs.DRAWN if call == name else docs.RANDOM)._replace(parameters=parameter)
        function.__doc__ = docs.docstring(summary, common, example=f">>> tg.{call}{example}.shape\n(2, 3)")
    return public()(sized), public()(like)


rand, rand_like = _family("rand", _uniform, "uniform on [0, 1)")
randn, randn_like = _family("randn", _gaussian, "normal with mean 0 and variance 1")


@public()
def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike = np.int64,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return integers drawn uniformly from `low` up to and without `high`.

    Parameters
    ----------
    low : int, optional
        Default 0: ``randint(high, size)`` and ``randint(low, high, size)`` both work.
    high : int
    size : tuple of int
    generator : Generator, optional
        By default the one that `manual_seed` seeds.
    dtype : dtype, default int64
    device : device, optional
        Only the CPU.
    requires_grad : bool

    Raises
    ------
    RuntimeError
        If the range is empty.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.randint(10, (2, 3)).shape
    (2, 3)
    """
    if size is None:
        low, high, size = 0, low, high
    if high is None:
        low, high = 0, low
    for name, bound in (("low", low), ("high", high)):
        integer("randint", name, bound)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    shape = shape_of("randint", (size,))

    def draw(rng: np.random.Generator) -> np.ndarray:
        return np.asarray(rng.integers(low, high, shape)).astype(dtype, copy=False)

    return drawn_by(generator, draw, requires_grad, device)


@public()
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike = np.int64,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the integers from 0 to ``n - 1`` in random order.

    Parameters
    ----------
    n : int
    generator : Generator, optional
        By default the one that `manual_seed` seeds.
    dtype : dtype, default int64
    device : device, optional
        Only the CPU.
    requires_grad : bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> sorted(tg.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    n = integer("randperm", "n", n)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    return drawn_by(generator, lambda rng: rng.permutation(n).astype(dtype, copy=False), requires_grad, device)


@public(common=docs.RANDOM)
def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return normally distributed numbers.

    Parameters
    ----------
    mean, std : Tensor, array or float
        Broadcast together. Their gradient is 0: for another one write ``mean + std * randn_like(mean)`` for that.
    size : tuple of int, optional
        By default the broadcast shape of `mean` and `std`.

    Raises
    ------
    RuntimeError
        If a standard deviation is negative.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.normal(5.0, 0.0, (2,))
    tensor([5., 5.])
    """
    if mean.__class__ is float and std.__class__ is float and std >= 0 and size is not None and dtype is None:
        own, default = shape_of("normal", (size,)), dtype_or_default(None)
        if default == np.float64:
            return drawn_by(generator, lambda rng: mean + std * _gaussian(rng, own, default), requires_grad, device)
    if any(isinstance(value, Tensor) and value.is_traced for value in (mean, std)):
        return _normal_of_tensors(mean, std, size, generator, dtype)
    arrays = [np.asarray(value._looked_at() if isinstance(value, Tensor) else value) for value in (mean, std)]
    if np.any(arrays[1] < 0):
        raise RuntimeError(f"normal expects std >= 0.0, but found std {arrays[1].min()}")
    is_converted = size is not None or dtype is not None
    shape = np.broadcast_shapes(*(a.shape for a in arrays)) if size is None else shape_of("normal", (size,))
    if dtype is None and any(isinstance(value, (Tensor, np.ndarray)) for value in (mean, std)):
        dtype = np.result_type(*(v.dtype for v in (mean, std) if isinstance(v, (Tensor, np.ndarray))))
    kind = dtype_or_default(dtype)
    numbers = drawn_by(
        generator, lambda rng: (arrays[0] + arrays[1] * _gaussian(rng, shape, kind)).astype(kind), requires_grad, device
    )
    return numbers if is_converted else with_no_slope(numbers, mean, std)


def _normal_of_tensors(mean: Any, std: Any, size: Any, generator: Generator | None, dtype: DTypeLike | None) -> Tensor:
    """Return normally distributed numbers in a trace, where `mean` or `std` depends on its inputs."""
    with modes.no_grad():
        if bool(xp.where(as_operand(std, "normal", "std", 2) < 0, True, False).any()):
            raise RuntimeError("normal expects all elements of std >= 0.0")
        both = [as_operand(own, "normal", "mean", 1) for own in (mean, std)]
        shape = np.broadcast_shapes(*(own.shape for own in both)) if size is None else shape_of("normal", (size,))
        kind = (
            np.result_type(*(own.dtype for own in both if not own._layout.weak)) if dtype is None else np.dtype(dtype)
        )
        noise = drawn_by(generator, lambda rng: _gaussian(rng, shape, kind))
        return xp.cast(both[0] + both[1] * noise, kind)  # type: ignore[no-any-return]


@public(method=True)
def bernoulli(input: Any, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """Return ones with the given probabilities, zeros otherwise.

    Parameters
    ----------
    input : Tensor or array
        Probabilities.
    p : float, optional
        The probability of all elements; then `input` has their shape and dtype.
    generator : Generator, optional
        By default the one that `manual_seed` seeds.

    Raises
    ------
    RuntimeError
        If a probability is not between 0 and 1.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.bernoulli(tg.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    if p is not None:
        x = as_operand(input, "bernoulli", "input", 1)
        return bernoulli(from_array(np.full(x.shape, p, x.dtype)), generator=generator)
    if isinstance(input, Tensor) and input.is_traced:
        with modes.no_grad():
            if not bool(((input >= 0) & (input <= 1)).all()):
                raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true; bernoulli() takes probabilities")
            shape = input.shape
            return xp.cast(drawn_by(generator, lambda rng: rng.random(shape)) < input, input.dtype)  # type: ignore[no-any-return]
    chance = np.asarray(input._looked_at() if isinstance(input, Tensor) else input)
    if chance.dtype.kind not in "f":
        name = TORCH_NAMES.get(chance.dtype.name, chance.dtype.name)
        raise NotImplementedError(f'"bernoulli_tensor_cpu_p_" not implemented for {name!r}')
    if not np.all((chance >= 0) & (chance <= 1)):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true; bernoulli() takes probabilities")
    numbers = drawn_by(generator, lambda rng: (rng.random(chance.shape) < chance).astype(chance.dtype))
    return with_no_slope(numbers, input)
