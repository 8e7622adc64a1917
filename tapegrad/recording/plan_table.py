"""The table of an op in which compiled code finds the plan of a call by its key."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.recording.keys import BUCKET_WORDS, HASH, OP_WORDS, PLACES, PLACES_APART, Bucket, OpFields
from tapegrad.recording.objects import runtime
from tapegrad.runtime.memory import watch

_LENGTH, _KEY = Bucket.word("length"), Bucket.word("key")
_FEWEST_BUCKETS: Final = 64
_MOST_BUCKETS: Final = 8192  # then all are forgotten: keys may come without end, as a string is known by its address
_MOST_MOVES: Final = 32


class PlanTable:
    """The buckets of an op, and its words for compiled code.

    A line (a bucket's words) stands in one of two buckets, which its key decides. A line that finds both taken moves
    one of the others to its second bucket. If that does not end soon, the table doubles: a line that was left out
    would send its calls to Python for ever.

    Whoever adds lines holds a lock.

    Attributes
    ----------
    lines : dict
        By key: each line, and the objects whose addresses stand in it.
    op_words : ndarray
        The `OpFields` of the function, of its operator, and of this with the operands in reverse.
    """

    def __init__(
        self,
        name: str,
        n_operands: int,
        n_arguments: int,
        fallback: Callable[..., Any],
        reflected: Callable[..., Any] | None = None,
        flags: int = 0,
        operator: Callable[..., Any] | None = None,
        plans: object = None,
    ) -> None:
        self._name, self._functions = name, (fallback, operator, reflected)  # whose addresses stand in `op_words`
        self.lines: dict[tuple[int, ...], tuple[list[int], Any]] = {}
        self.op_words = watch(np.zeros((3, OP_WORDS), dtype=np.int64), f"what compiled code knows of {name}")
        self.op_words[:] = runtime().ctypes.data, n_operands, n_arguments, 0, 0, id(fallback), 0, flags, id(plans)
        self.op_words[1:, OpFields.word("fallback")] = id(operator or fallback)
        if reflected is not None:
            self.op_words[2, OpFields.word("reflected")] = id(reflected)
        self._set_buckets(self._new_buckets(_FEWEST_BUCKETS))

    def clear(self) -> None:
        """Forget all lines."""
        self._set_buckets(self._new_buckets(_FEWEST_BUCKETS))
        self.lines.clear()

    def add(self, line: list[int], held: Any) -> None:
        """Add a line; `held` are the objects whose addresses stand in it."""
        line, _ = self.lines.setdefault(tuple(line[_KEY:]), (line, held))  # another thread may have been faster
        if not _put(self._buckets, line):
            self._enlarge(line, held)

    def _enlarge(self, line: list[int], held: Any) -> None:
        buckets, fits = self._buckets, False
        while not fits:
            if len(buckets) == _MOST_BUCKETS:
                self.clear()
                return self.add(line, held)
            buckets = self._new_buckets(2 * len(buckets))
            fits = all(_put(buckets, line) for line, _ in list(self.lines.values()))
        return self._set_buckets(buckets)

    def _new_buckets(self, count: int) -> np.ndarray:
        return watch(np.zeros((count, BUCKET_WORDS), dtype=np.int64), f"the plans of {self._name}")

    def _set_buckets(self, buckets: np.ndarray) -> None:
        address, count = OpFields.word("table"), OpFields.word("n_buckets")
        self.op_words[:, count] = min(len(buckets), self.op_words[0, count])  # neither array is longer meanwhile
        self.op_words[:, address] = buckets.ctypes.data
        self.op_words[:, count] = len(buckets)
        self._buckets = buckets


def _put(buckets: np.ndarray, line: list[int]) -> bool:
    """Put a line into one of its two buckets; return whether all lines that moved for it have a bucket."""
    words = memoryview(buckets.reshape(-1).data)  # reads and writes a few words three times as fast as the array
    last, left = len(buckets) - 1, -1
    for _ in range(_MOST_MOVES):
        first, second = _places(line[_KEY:], last)
        there = {place: words[place * BUCKET_WORDS : (place + 1) * BUCKET_WORDS] for place in (first, second)}
        if any(bucket[: len(line)].tolist() == line for bucket in there.values()):
            return True
        empty = [place for place, bucket in there.items() if not bucket[_LENGTH]]
        left = empty[0] if empty else second if left == first else first
        bucket = there[left]
        before = bucket[: _KEY + bucket[_LENGTH]].tolist()
        bucket[: len(line)] = array("l", line)
        if empty:
            return True
        line = before
    return False


def _places(key: Sequence[int], last: int) -> tuple[int, int]:
    hashed = 0
    for word in key:
        hashed = (hashed + word) * HASH
    return hashed >> PLACES & last, hashed >> PLACES + PLACES_APART & last
