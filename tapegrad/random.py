"""Random numbers as `torch.random` has them: seeds and states of the default generator."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from tapegrad.ops.generators import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


@contextlib.contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None, enabled: bool = True, *, device_type: str | None = None
) -> Iterator[None]:
    """Let the default generator go back at the end of a ``with`` block to the state that it has at its beginning.

    Parameters
    ----------
    devices : iterable, optional
        Without meaning here: there is only the CPU.
    enabled : bool
        Without it, the block does nothing.
    device_type : str, optional
        Without meaning here.

    Examples
    --------
    >>> import tapegrad as tg
    >>> _ = tg.manual_seed(0)
    >>> with tg.random.fork_rng():
    ...     x = tg.rand(2)
    >>> tg.equal(x, tg.rand(2))
    True
    """
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)
