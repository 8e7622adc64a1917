"""PlanCache of an op, and the table in which compiled code looks them up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

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


class PlanCache(dict[Any, Plan]):
    """The plans of an op, by the operands' layouts and by attributes, and the compiled function that looks them up.

    Attributes
    ----------
    call : callable
        Computes and records the op on operands that stand in the table, and calls the fallback on others.
    operators : dict
        Methods of Tensor that are the op, and whether they take its operands in reverse. They become `call` itself: a
        Python function between takes 75 ns.
    """

    def __init__(self) -> None:
        self.most = 16384
        self._words = np.zeros((2, ROW_WORDS), dtype=np.int64)  # for operands in order, and in reverse
        self._table = np.zeros(0, dtype=np.int64)
        self._in_table: dict[int, Any] = {}
        self._lock = module_lock()
        self._fallback: Callable[..., Tensor] | None = None
        self.operators: dict[str, bool] = {}
        self.call: Callable[..., Tensor]

    def connect(self, name: str, n_operands: int, fallback: Callable[..., Any], n_arguments: int = 0) -> None:
        """Define `call`; the code is loaded, or compiled, when it is first called."""

        def first_call(*operands: Any, **arguments: Any) -> Tensor:
            with self._lock:
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

    def remember(self, key: Any, plan: Plan) -> None:
        """Keep a plan; an op with more than `most` starts over."""
        if len(self) >= self.most:
            self.clear()
        self[key] = plan

    def clear(self) -> None:
        """Forget all plans."""
        super().clear()
        with self._lock:
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
        with self._lock:
            lines = self._table.reshape(-1, LINE_WORDS)
            first = place & (len(lines) - 1)
            second = first ^ 1
            if line in (lines[place, : len(line)].tolist() for place in (first, second)):
                return  # another thread was faster
            if lines[first, LINE_LENGTH] and not lines[second, LINE_LENGTH]:
                first = second
            elif lines[first, LINE_LENGTH]:
                # The one that stands there goes to the other place, and what stood in that one may die now.
                lines[second] = lines[first]
                self._in_table[second] = self._in_table[first]
            lines[first, : len(line)] = line
            self._in_table[first] = plan, arguments, keywords


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
