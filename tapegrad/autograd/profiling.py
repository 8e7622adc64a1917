"""`profile`: how long each operation takes, forward and in backward passes.

Forward, an interceptor times each call. A backward pass stops at each entry while one is active: the time between two
stops is that of an entry. Both make the program slower; that overhead is not counted.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any

from tapegrad import modes
from tapegrad.ops.table.gateway import compute
from tapegrad.ops.table.op import Bound, Op
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.sweep import workspace as ws
from tapegrad.sweep.sweep import Sweep, profilers
from tapegrad.tape.entries import PLAN_OBJECT, SLOT, STOP, read_entry, write_word

FORWARD, BACKWARD = "forward", "backward"


class Event(NamedTuple):
    """One call: its operation, ``"forward"`` or ``"backward"``, when it began, how long it took, and its shape."""

    op: str
    phase: str
    start: float
    seconds: float
    shape: tuple[int, ...]
    thread: int


class profile:  # noqa: N801  # as in PyTorch
    """Measure how long each operation takes, forward and in backward passes, in a ``with`` block.

    Attributes
    ----------
    events : list of Event
        Each call: operation, phase, start in seconds, duration, shape of the result, thread.

    Notes
    -----
    Operations are measured in the thread that entered the block; passes backward as well. A pass with `create_graph`
    consists of operations, which count as forward. Large arrays are not worked on block by block, as entries are
    measured one by one.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.ones(1000, requires_grad=True)
    >>> with tg.profile() as measured:
    ...     (x.exp() * x).sum().backward()
    >>> sorted({(event.op, event.phase) for event in measured.events})[:2]
    [('exp', 'backward'), ('exp', 'forward')]
    >>> measured.table().splitlines()[0].split()
    ['op', 'phase', 'calls', 'total', 'mean', 'share']
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._interception: modes.intercept | None = None
        self._outer: Callable[[Sweep], None] | None = None

    def __enter__(self) -> profile:
        outer = modes.interceptor()
        self._interception = modes.intercept(lambda op, bound: self._call(op, bound, outer))
        self._interception.__enter__()
        self._outer = profilers.get(threading.get_ident())
        profilers[threading.get_ident()] = self._run
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._interception is not None
        del profilers[threading.get_ident()]
        if self._outer is not None:
            profilers[threading.get_ident()] = self._outer
        self._interception.__exit__()

    def _call(self, op: Op, bound: Bound, outer: modes.Interceptor | None) -> Any:
        start = perf_counter()
        result = compute(op, bound)[0] if outer is None else outer(op, bound)
        seconds = perf_counter() - start
        first = result[0] if isinstance(result, tuple) else result
        self._note(op.name, FORWARD, start, seconds, first._layout.shape)
        return result

    def _run(self, sweep: Sweep) -> None:
        """Run a sweep that stops at each entry."""
        nodes = [node for node in sweep.order() if node is not None and not read_entry(node[SLOT])[STOP]]
        for node in nodes:
            write_word(node[SLOT], STOP, 1)
        try:
            with modes.uninterrupted():  # rules are operations, too
                self._run_stops(sweep, {id(node) for node in nodes})
        finally:
            for node in nodes:
                write_word(node[SLOT], STOP, 0)

    def _run_stops(self, sweep: Sweep, without_hooks: set[int]) -> None:
        workspace = sweep.workspace
        status = sweep.start()
        while status != ws.DONE:
            position, start = workspace.state[ws.POSITION], perf_counter()
            if status != ws.STOPPED:  # the entry of the event before needs memory, or is on large arrays
                status = sweep.serve(status)
                last = self.events.pop()
                self.events.append(last._replace(seconds=last.seconds + perf_counter() - start))
                continue
            node = sweep.node(position)
            plan = node[PLAN_OBJECT]
            captured = workspace.arrays[ws.CTS_AT][workspace.arrays[ws.ORDER_AT][position]] & ws.CAPTURED
            if id(node) in without_hooks and not plan.python_operands and not captured:
                workspace.state[ws.RESUMED] = position
                start = perf_counter()
                status = workspace.sweep()
            else:
                status = sweep.serve(status)
            self._note(plan.name, BACKWARD, start, perf_counter() - start, plan.result.shape)

    def _note(self, op: str, phase: str, start: float, seconds: float, shape: tuple[int, ...]) -> None:
        self.events.append(Event(op, phase, start, seconds, shape, threading.get_ident()))

    # --- results -----------------------------------------------------------------------------------------------------

    def totals(self) -> dict[tuple[str, str], tuple[int, float]]:
        """Return the number of calls and the seconds of each operation and phase, longest first."""
        sums: dict[tuple[str, str], tuple[int, float]] = {}
        for event in self.events:
            calls, seconds = sums.get((event.op, event.phase), (0, 0.0))
            sums[event.op, event.phase] = calls + 1, seconds + event.seconds
        return dict(sorted(sums.items(), key=lambda item: -item[1][1]))

    def table(self) -> str:
        """Return the totals as a table; ``print`` of the profile shows it too."""
        totals = self.totals()
        whole = sum(seconds for _, seconds in totals.values()) or 1.0
        rows = [("op", "phase", "calls", "total", "mean", "share")]
        rows += [
            (op, phase, str(calls), _time(seconds), _time(seconds / calls), f"{100 * seconds / whole:.1f} %")
            for (op, phase), (calls, seconds) in totals.items()
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        return "\n".join(_line(row, widths) for row in rows)

    __str__ = table

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events to a file that chrome://tracing and Perfetto show."""
        events = [
            {
                "name": event.op, "cat": event.phase, "ph": "X", "pid": os.getpid(), "tid": event.thread,
                "ts": 1e6 * event.start, "dur": 1e6 * event.seconds, "args": {"shape": list(event.shape)},
            }
            for event in self.events
        ]  # fmt: skip
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}))


def _time(seconds: float) -> str:
    return f"{1e6 * seconds:.1f} µs" if seconds < 1e-3 else f"{1e3 * seconds:.2f} ms"


def _line(row: Iterable[str], widths: Iterable[int]) -> str:
    cells = [
        cell.ljust(width) if column < 2 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()
