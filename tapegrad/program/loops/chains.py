"""Calls that follow on one another again and again, as one function each: a CPU foresees fewer of these.

It runs ahead of a call through a pointer if it foresees where that leads. In a list of some thousand calls of several
functions it does not, and a call takes 12 ns in place of 5. What calls two or four of them itself is foreseen.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Final

__all__ = ["chain_text", "chains_of"]

_LONG: Final = 1000  # calls; the order of fewer is learnt by heart
_OFTEN: Final = 16  # times that two calls have to follow on one another
_MOST: Final = 64  # pairs a round, as compiling one takes a millisecond
_ROUNDS: Final = 2


def chains_of(calls: Sequence[int], n_plain: int) -> list[tuple[int, ...]]:
    """Return the functions that are called one after the other, most alone, others as parts of chains.

    Parameters
    ----------
    calls : sequence of int
        The numbers of functions.
    n_plain : int
        Functions from this number on stand in no chain, as they may fail.
    """
    links: list[tuple[int, ...]] = [(own,) for own in calls]
    for _ in range(_ROUNDS if len(calls) >= _LONG else 0):
        pairs = itertools.pairwise(links)
        counts = Counter([(one, two) for one, two in pairs if one[0] < n_plain and two[0] < n_plain])
        often = {pair for pair, count in counts.most_common(_MOST) if count >= _OFTEN}
        found = links[:1]
        is_whole = False  # the last one has been put together in this round
        for own in links[1:]:
            is_whole = not is_whole and (found[-1], own) in often
            if is_whole:
                found[-1] += own
            else:
                found.append(own)
        links = found
    return links


def chain_text(name: str, parts: Sequence[tuple[str, int, int]]) -> str:
    """Return a function that makes calls.

    Parameters
    ----------
    name : str
    parts : sequence of tuple
        The name of each function, how many operands it has, and how many of these and results.
    """
    lines, first = [], 0
    for k, (own, count, size) in enumerate(parts):
        lines += [
            f"  %o{k} = getelementptr ptr, ptr %operands, i64 {first}",
            f"  %r{k} = getelementptr ptr, ptr %operands, i64 {first + count}",
            f"  tail call void @{own}(ptr %o{k}, ptr %r{k}, ptr %rest) noinline",
        ]
        first += size
    head = f"define internal void @{name}(ptr %operands, ptr %results, ptr %rest) noinline nounwind {{"
    return "\n".join([head, *lines, "  ret void", "}"])
