"""Look at each operation of a thread after it was computed: the base of saved-tensor hooks and of anomaly mode.

An observer is an interceptor, so it costs nothing while there is none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tapegrad.kernels.rules import identity
from tapegrad.modes import Interceptor, intercept
from tapegrad.ops.table.gateway import compute
from tapegrad.ops.table.op import Bound, Op
from tapegrad.tape.entries import TapeNode
from tapegrad.tape.graph import whole_node

See = Callable[[Op, Bound, TapeNode], None]


class Observer(intercept):
    """Show each recorded operation of this thread to a function, in a ``with`` block.

    Parameters
    ----------
    see : callable
        Called as ``see(op, bound, node)`` with the node of the new entry.
    """

    def __init__(self, see: See) -> None:
        super().__init__(identity)
        # Not a bound method: that would be a cycle, in which `see` holds tensors.
        self.function = observing(self.before, see)


def observing(before: list[Interceptor | None], see: See) -> Interceptor:
    """Return the interceptor of an observer; the last item of `before` is the one that it came in place of."""
    return functools.partial(_computed, before, see)


def _computed(before: list[Interceptor | None], see: See, op: Op, bound: Bound) -> Any:
    outer = before[-1]
    result = compute(op, bound)[0] if outer is None else outer(op, bound)
    for value in result if isinstance(result, tuple) else (result,):
        if isinstance(value._node, list):
            see(op, bound, whole_node(value._node))
            break
    return result
