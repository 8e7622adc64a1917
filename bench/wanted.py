"""How fast tapegrad is to be beside torch, problem by problem, and what limits it where it is not."""

from __future__ import annotations

from typing import Final

#: torch's time over tapegrad's, at least.
WANTED: Final = {
    "chain": 4.5, "vector_chain": 4.0, "mlp": 2.5, "digits": 1.2, "rosenbrock": 2.5, "rnn": 2.5, "logistic": 1.3,
    "attention": 1.1, "vectors": 2.5, "elementwise": 2.0, "broadcast": 1.5, "matmul": 0.95,
}  # fmt: skip
LIMITS: Final = {
    "elementwise": (
        "memory. On the project's machine an element takes 3.1 ns forward and 2.9 back where 200,000 of them stay in "
        "the cache, and 4.8 and 4.5 where 1,000,000 do not. Forward, eight operations read and write 230 MB, as "
        "NumPy's do. Back, six residuals are read and two gradients written once, block by block: 80 MB. Only one loop "
        "over the whole program, as jax compiles it, moves less. torch's own time depends on where its memory lies: "
        "in other runs it took from 1.8 to 2.8 times as long."
    ),
}


def wanted_mean(threads: int) -> float:
    """Return the same for the geometric mean over all problems."""
    return 2.2 if threads == 1 else 1.8
