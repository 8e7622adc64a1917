"""Generators of random numbers: their seeds and states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.devices import CPU, DeviceLike, check_device
from tapegrad.ops.creation import made
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor

_FIRST_SEED: Final = 67280421310721  # of a generator that nobody has seeded, as in PyTorch


@public()
class Generator:
    """A source of random numbers with a state of its own, over `numpy.random.Generator`.

    Parameters
    ----------
    device : device
        Only the CPU.

    Examples
    --------
    >>> import tapegrad as tg
    >>> a = tg.rand(2, generator=tg.Generator().manual_seed(0))
    >>> b = tg.rand(2, generator=tg.Generator().manual_seed(0))
    >>> bool((a == b).all())
    True
    """

    def __init__(self, device: DeviceLike = "cpu") -> None:
        check_device(device)
        self._seed: int | None = _FIRST_SEED
        self._numpy: np.random.Generator | None = None  # made when needed: numpy.random is slow to import

    @property
    def device(self) -> Any:
        """Where it draws: the CPU."""
        return CPU

    @property
    def numpy(self) -> np.random.Generator:
        """The `numpy.random.Generator` that draws the numbers."""
        if self._numpy is None:
            self.manual_seed(self.seed() if self._seed is None else self._seed)
        assert self._numpy is not None
        return self._numpy

    def manual_seed(self, seed: int) -> Generator:
        """Set the seed, and return the generator.

        Raises
        ------
        ValueError
            If the seed does not fit into 64 bits.
        """
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"Overflow when unpacking long long: the seed is {seed}")
        self._seed = seed
        self._numpy = np.random.default_rng(self._seed % 2**64)
        return self

    def seed(self) -> int:
        """Set a seed from the operating system, and return it."""
        import secrets

        seed = secrets.randbits(63)
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """Return the seed that was set last."""
        _ = self.numpy
        assert self._seed is not None
        return self._seed

    def get_state(self) -> Tensor:
        """Return the state, for `set_state`: bytes, as in PyTorch, whose number and meaning are NumPy's."""
        import json  # most programs never ask

        state = {"seed": self.initial_seed(), **self.numpy.bit_generator.state}
        return made(np.frombuffer(json.dumps(state).encode(), np.uint8).copy())

    def set_state(self, new_state: Any) -> Generator:
        """Go back to a state that `get_state` returned, and return the generator.

        Raises
        ------
        TypeError
            If it is no tensor of bytes.
        RuntimeError
            If it is no state.
        """
        import json

        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}; see get_state()")
        if new_state.dtype != np.uint8:
            raise TypeError(f"RNG state must be a torch.ByteTensor, not of dtype {new_state.dtype}; see get_state()")
        try:
            state = json.loads(new_state.numpy().tobytes())
            self._seed = int(state.pop("seed"))
            self.numpy.bit_generator.state = state
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise RuntimeError(f"RNG state is wrong: these bytes are no state of a generator ({error!r})") from None
        return self


default_generator = Generator()
default_generator._seed = None  # another one in each process


@public()
def manual_seed(seed: int) -> Generator:
    """Set the seed of the generator that is used where none is given, and return that generator.

    Parameters
    ----------
    seed : int

    Returns
    -------
    Generator

    Examples
    --------
    >>> import tapegrad as tg
    >>> _ = tg.manual_seed(0)
    >>> a = tg.randn(2)
    >>> _ = tg.manual_seed(0)
    >>> bool((a == tg.randn(2)).all())
    True
    """
    return default_generator.manual_seed(seed)


def numpy_generator(generator: Generator | np.random.Generator | None) -> np.random.Generator:
    """Return NumPy's generator behind one of ours; NumPy's own are accepted too."""
    if modes.mode.value:
        modes.tell("random")
    return _behind(generator)


def drawn(
    generator: Generator | np.random.Generator | None,
    draw: Callable[[np.random.Generator], np.ndarray],
    requires_grad: bool = False,
    device: DeviceLike = None,
) -> Tensor:
    """Return what a function draws from NumPy's generator behind one of ours.

    In a function that is traced it is called again in each call of the program. So it may depend on nothing but numbers
    that are constants there.
    """
    if modes.mode.value & modes.INTERCEPTORS:
        tracer = modes.tracer()
        if tracer is not None:
            result: Tensor = tracer.draw(lambda: _behind(generator), draw)
            return result.requires_grad_() if requires_grad else result
    return made(draw(_behind(generator)), requires_grad, device)


def _behind(generator: Generator | np.random.Generator | None) -> np.random.Generator:
    if generator is None:
        return default_generator.numpy
    if isinstance(generator, Generator):
        return generator.numpy
    if isinstance(generator, np.random.Generator):
        return generator
    raise TypeError(f"expected a Generator, but got {type(generator).__name__}; make one with tapegrad.Generator()")


@public()
def seed() -> int:
    """Seed the default generator by a number from the operating system, and return it; see `manual_seed`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> isinstance(tg.seed(), int)  # new random numbers from here on
    True
    """
    return default_generator.seed()


@public()
def initial_seed() -> int:
    """Return the seed of the default generator that was set last; see `manual_seed`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> generator = tg.manual_seed(3)
    >>> tg.initial_seed()
    3
    """
    return default_generator.initial_seed()


@public()
def get_rng_state() -> Tensor:
    """Return the state of the default generator, for `set_rng_state`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> state = tg.get_rng_state()
    >>> first = tg.rand(2)
    >>> tg.set_rng_state(state)
    >>> tg.equal(tg.rand(2), first)
    True
    """
    return default_generator.get_state()


@public()
def set_rng_state(new_state: Tensor) -> None:
    """Let the default generator go back to a state that `get_rng_state` returned.

    Parameters
    ----------
    new_state : Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> state = tg.get_rng_state()
    >>> x = tg.rand(2)
    >>> tg.set_rng_state(state)
    >>> tg.equal(x, tg.rand(2))
    True
    """
    default_generator.set_state(new_state)
