"""PlanCache of an op, and the table in which compiled code looks them up."""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tapegrad.runtime import state
from tapegrad.runtime.locks import module_lock
from tapegrad.tape.keys import (
    KEY_WORDS,
    KEYWORDS,
    LINE_LENGTH,
    LINE_WORDS,
    LINES,
    LINES_WITH_ARGUMENTS,
    REVERSED,
    ROW_WORDS,
    SHARED,
)
from tapegrad.tape.layout import FLOAT, INTEGER, Layout
from tapegrad.tape.native import as_method, keep_forever, load, shared
from tapegrad.tape.plan import Plan
from tapegrad.tape.recording import record
from tapegrad.tensor import Tensor

#: Plans of all ops that are remembered in a generation: see `PlanCache.remember`.
MOST_PLANS: Final = 1024
_caches: Final[weakref.WeakSet[PlanCache]] = weakref.WeakSet()
_counts = {"young": 0}
_lock = module_lock()  # a collection in the middle may run a finalizer that computes


class PlanCache(dict[Any, Plan]):
    """The plans of an op, by the operands' layouts and by attributes, and the compiled function that looks them up.

    The dictionary holds the young generation of plans.

    Attributes
    ----------
    call : callable
        Computes and records the op on operands that stand in the table, and calls the fallback on others.
    operators : dict
        Methods of Tensor that are the op, and whether they take its operands in reverse. They become `call` itself: a
        Python function between takes 75 ns.
    """

    def __init__(self) -> None:
        self._old: dict[Any, Plan] = {}
        self._words = np.zeros((2, ROW_WORDS), dtype=np.int64)  # for operands in order, and in reverse
        self._table = np.zeros(0, dtype=np.int64)
        self._in_table: dict[int, Any] = {}
        self._fallback: Callable[..., Tensor] | None = None
        self.operators: dict[str, bool] = {}
        self.call: Callable[..., Tensor]

    def connect(self, name: str, n_operands: int, fallback: Callable[..., Any], n_arguments: int = 0) -> None:
        """Define `call`; the code is loaded, or compiled, when it is first called."""

        def first_call(*operands: Any, **arguments: Any) -> Tensor:
            with _lock:
                if not len(self._table):
                    lines = LINES_WITH_ARGUMENTS if n_arguments else LINES
                    self._table = np.zeros(lines * LINE_WORDS, dtype=np.int64)
                    self._fallback = fallback
                    table = self._table.ctypes.data
                    self._words[:] = shared().ctypes.data, n_operands, n_arguments, table, lines, id(fallback), 0
                    self._words[1, REVERSED] = 1
                    keep_forever(self)
            self.call, reverse = (load(record, words, name, f"tapegrad.{name} as an operator") for words in self._words)
            for operator, is_reversed in self.operators.items():
                setattr(Tensor, operator, as_method(reverse if is_reversed else self.call))
            result: Tensor = self.call(*operands, **arguments)
            return result

        self.call = first_call

        _caches.add(self)

    __hash__ = object.__hash__  # type: ignore[assignment]

    def remember(self, key: Any, plan: Plan) -> None:
        """Keep a plan.

        When there are `MOST_PLANS` young plans of all ops, they become the old ones, and the old ones are forgotten.
        Plans that are still in use are found among the old ones and become young again.
        """
        with _lock:
            if _counts["young"] >= MOST_PLANS:
                _counts["young"] = 0
                for cache in list(_caches):
                    cache._age()
            _counts["young"] += 1
            self[key] = plan

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the plan for a key."""
        plan = super().get(key)
        if plan is None and key in self._old:
            plan = self._old[key]
            self.remember(key, plan)
        return plan if plan is not None else default

    def clear(self) -> None:
        """Forget all plans."""
        self._age()
        self._old = {}

    def _age(self) -> None:
        with _lock:
            if self or self._old:
                self._old = dict(self)
                super().clear()
                self._table[:] = 0
                self._in_table.clear()

    def insert(
        self,
        layouts: tuple[Layout, ...],
        plan: Plan,
        arguments: tuple[Any, ...] = (),
        keywords: Mapping[str, Any] | None = None,
    ) -> None:
        """Let compiled code find the plan for operands of these layouts, and for arguments that cannot change.

        Integers become floats where the plan says so.
        """
        key = [*map(id, layouts), *(word for argument in arguments for word in _words_of(argument))]
        if keywords:
            key.append(KEYWORDS)
            key += [word for name, value in keywords.items() for word in (id(name), *_words_of(value))]
        if len(key) > KEY_WORDS - 4:  # as for compiled code, which asks for room for a slice
            return
        place = 0
        for word in key:
            place = 3 * place + (word >> 4) + (word >> 10) + word
        floats = sum(1 << i for i, own in enumerate(layouts) if own is INTEGER and plan.layouts[i] is FLOAT)
        line = [id(plan), plan.address, floats, len(key), *key]
        with _lock:
            first = place & (len(self._table) // LINE_WORDS - 1)
            second = first ^ 1
            table = memoryview(self._table.data)  # reads and writes a few words three times as fast as the array
            words, other = (table[place * LINE_WORDS : (place + 1) * LINE_WORDS] for place in (first, second))
            if line in (words[: len(line)].tolist(), other[: len(line)].tolist()):
                return  # another thread was faster
            if words[LINE_LENGTH] and not other[LINE_LENGTH]:
                first, words = second, other
            elif words[LINE_LENGTH]:
                # The one that stands there goes to the other place, and what stood in that one may die now.
                other[:] = words
                self._in_table[second] = self._in_table[first]
            words[: len(line)] = array("l", line)
            self._in_table[first] = plan, layouts, arguments, keywords  # whose addresses stand in the line


def _clear_all() -> None:
    for cache in list(_caches):
        cache.clear()


def _count_all() -> int:
    return sum(len(cache) + len(cache._old) for cache in list(_caches))


state.register("tape.plan_cache: plans", _count_all, _clear_all)


def _words_of(argument: Any) -> list[int]:
    """Return what stands for an argument in a key: see `add_argument`."""
    kind = argument.__class__
    if kind is tuple:
        return [id(tuple), len(argument), *(word for item in argument for word in _words_of(item))]
    if kind is slice:
        parts = (argument.start, argument.stop, argument.step)
        return [id(slice), *(word for part in parts for word in _words_of(part))]
    if kind is int and -(1 << 62) <= argument < 1 << 62:
        return [2 * argument + 1]
    return [id(argument)]


class _Finish:
    """`finish`, loaded when it is first asked for."""

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        if name != "finish":
            raise AttributeError(name)
        words = np.zeros(ROW_WORDS, dtype=np.int64)
        words[SHARED] = shared().ctypes.data
        self.finish: Callable[..., Tensor] = load(record, words)
        return self.finish


#: ``compiled.finish(plan, out, *operands, *index_arrays)`` returns the result of an op as a tensor, recorded where its
#: plan says so.
compiled: Final = _Finish()
