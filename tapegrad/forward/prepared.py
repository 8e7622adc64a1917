"""Forwards of ufuncs: small results without NumPy's overhead, large ones in memory of the pool, by several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.forward.direct import direct, direct_where
from tapegrad.forward.powers import Power
from tapegrad.runtime import blocking, pool, threads
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import Layout, broadcast_shape

# Elements from which on two threads gain more than it takes to wake one, 30 µs: of arithmetic (0.3 ns an element, and
# memory is shared), and of functions (1 to 10 ns).
_ARITHMETIC: Final[tuple[np.ufunc, ...]] = np.add, np.subtract, np.multiply, np.divide, np.negative, np.conjugate
_MANY: Final[dict[Any, int]] = dict.fromkeys(_ARITHMETIC, 1 << 19)
_MANY_OF_OTHERS: Final = 1 << 17
_UNIT: Final = 64  # elements, so that no two threads write to one line of the cache


def first_result(forward: Callable[..., Any], layouts: Sequence[Layout], values: Sequence[Any]) -> Any:
    """Call a forward that has no plan yet; a large result of a ufunc is put into memory of the pool here, too."""
    if not isinstance(forward, np.ufunc) or forward.signature or forward.nout != 1:
        return forward(*values)
    if max([layout.nbytes for layout in layouts], default=0) < pool.THRESHOLD:
        return forward(*values)
    if not all(layout.contiguous for layout in layouts):
        return forward(*values)  # NumPy chooses the order of the result
    no_elements = [value.reshape(-1)[:0] if isinstance(value, np.ndarray) else value for value in values]
    shape = broadcast_shape(*[layout.shape for layout in layouts])
    return forward(*values, out=pool.empty(shape, forward(*no_elements).dtype))


def prepared(forward: Callable[..., Any], layouts: Sequence[Layout], result: Layout) -> Callable[..., Any]:
    """Return the forward for a plan: powers and ufuncs with contiguous results are replaced, others stay."""
    if forward is np.where:
        return direct_where(layouts, result)
    if not isinstance(forward, (np.ufunc, Power)):
        return forward
    if isinstance(forward, Power):
        return forward.prepared(layouts, result, prepared)
    if result.nbytes < pool.THRESHOLD:
        return direct(forward, layouts, result)
    if not result.contiguous or result.inline:
        return forward
    if forward.nout != 1 or forward.nin != len(layouts):
        return forward
    whole = tuple([layout.shape == result.shape and layout.contiguous for layout in layouts])
    # What is not whole is one number: rows that are repeated would have to be cut at their ends.
    is_cut = all(own or layout.size == 1 for own, layout in zip(whole, layouts, strict=True))
    is_shared = is_cut and not forward.signature and result.size >= _MANY.get(forward, _MANY_OF_OTHERS)
    into: Any = Into(forward, result.shape, result.dtype, result.size, whole if is_shared else ())
    return into  # type: ignore[no-any-return]  # mypy sees no __call__ of named tuples


class Into(NamedTuple):
    """The forward of a ufunc for large results: they are written to memory of the pool, or to an array.

    Attributes
    ----------
    forward : ufunc
    shape, dtype, size
        Of the result.
    whole : sequence of bool
        Which operands are as large as the result, and not numbers, if threads share the work; else empty.
    """

    forward: np.ufunc
    shape: tuple[int, ...]
    dtype: np.dtype
    size: int
    whole: Sequence[bool]

    def __call__(self, *values: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Compute the result."""
        forward, shape, dtype, size, whole = self
        count = blocking.division.threads
        if out is None:
            out = pool.empty(shape, dtype)
        if not whole or count == 1:
            done: np.ndarray = forward(*values, out=out)
            return done
        flat = [value.reshape(-1 if own else ()) if isinstance(value, np.ndarray) else value
                for value, own in zip(values, whole, strict=True)]  # fmt: skip
        flat_out = out.reshape(-1)

        def work(first: int, end: int, thread: int) -> None:
            parts = (value[first:end] if own else value for value, own in zip(flat, whole, strict=True))
            forward(*parts, out=flat_out[first:end])

        threads.share(work, size, _UNIT, count)
        return out
