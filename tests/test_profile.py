"""`profile`: each operation is measured, forward and backward, and nothing else changes."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd import profiling
from tapegrad.sweep.sweep import profilers


def loss_of(x: tg.Tensor) -> tg.Tensor:
    h = tg.tanh(x @ x.T) * 2
    return h.cumsum(0).sum() + tg.linalg.det(h)  # det has a rule without kernel


def calls(measured: Any, phase: str) -> dict[str, int]:
    return {op: count for (op, own), (count, _) in measured.totals().items() if own == phase}


def test_each_operation_is_measured() -> None:
    x = tg.tensor(np.linspace(0.1, 1.0, 9).reshape(3, 3), requires_grad=True)
    loss_of(x).backward()
    expected, x.grad = x.grad, None
    with tg.profile() as measured:
        value = loss_of(x)
        value.backward()
    assert x.grad.tolist() == expected.tolist()
    backward = calls(measured, "backward")
    assert backward.pop("permute", 1) == 1
    assert backward == {"matmul": 1, "tanh": 1, "mul": 1, "cumsum": 1, "sum": 1, "det": 1, "add": 1}
    assert backward.items() <= calls(measured, "forward").items()
    assert all(event.seconds >= 0 for event in measured.events)
    starts = [event.start for event in measured.events]
    assert starts == sorted(starts)
    before = len(measured.events)
    value = loss_of(x)
    value.tape().verify()
    value.backward()
    assert len(measured.events) == before  # nothing is measured behind the block
    assert not profilers


def test_hooks_and_inputs_that_are_results() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    seen = []
    h = x * x
    h.register_hook(lambda ct: seen.append(ct.tolist()))
    y = (h.exp() * 2).sum()
    with tg.profile() as measured:
        (slope,) = tg.autograd.grad(y, h, retain_graph=True)
        y.backward()
    assert len(seen) == 2
    np.testing.assert_allclose(slope, 2 * np.exp(h.detach()))
    np.testing.assert_allclose(x.grad, 4 * x.detach() * np.exp(x.detach() ** 2))
    assert calls(measured, "backward")["mul"] == 3


def test_large_arrays_and_recorded_passes() -> None:
    x = tg.tensor(np.linspace(0.0, 1.0, 300_000), requires_grad=True)
    with tg.profile() as measured:
        (x.sin() * x).sum().backward()
    assert calls(measured, "backward") == {"sum": 1, "mul": 1, "sin": 1}
    np.testing.assert_allclose(x.grad, np.cos(x.detach()) * x.detach() + np.sin(x.detach()), rtol=1e-12)
    y = tg.tensor([1.0, 2.0], requires_grad=True)
    with tg.profile() as measured:
        tg.autograd.grad(y.sin().sum(), y, create_graph=True)
    assert calls(measured, "forward")["cos"] == 1


def test_results(tmp_path: Path) -> None:
    measured = profiling.profile()
    for op, seconds in (("sin", 2e-6), ("sin", 4e-6), ("matmul", 3e-3)):
        measured.events.append(profiling.Event(op, "forward", 1.0, seconds, (2, 3), 7))
    assert str(measured).splitlines() == [
        "op      phase    calls    total     mean   share",
        "matmul  forward      1  3.00 ms  3.00 ms  99.8 %",
        "sin     forward      2   6.0 µs   3.0 µs   0.2 %",
    ]
    measured.export_chrome_trace(tmp_path / "trace.json")
    first = json.loads((tmp_path / "trace.json").read_text())["traceEvents"][0]
    assert (first["name"], first["cat"], first["ph"], first["tid"]) == ("sin", "forward", "X", 7)
    assert (first["ts"], first["dur"]) == (pytest.approx(1e6), pytest.approx(2.0))
    assert first["args"] == {"shape": [2, 3]}
    assert str(profiling.profile()).splitlines() == ["op  phase  calls  total  mean  share"]


def test_blocks_nest_and_end_with_an_error() -> None:
    x = tg.tensor([1.0], requires_grad=True)
    with tg.profile() as outer:
        with pytest.raises(ZeroDivisionError), tg.profile() as inner:  # noqa: PT012
            x.exp().backward()
            raise ZeroDivisionError
        x.sin().backward()
    assert calls(inner, "backward") == {"exp": 1}
    assert calls(outer, "backward") == {"sin": 1}
    assert calls(outer, "forward") == {"exp": 1, "sin": 1}


def test_other_threads_are_not_measured() -> None:
    x = tg.tensor([1.0], requires_grad=True)
    with tg.profile() as measured:
        thread = threading.Thread(target=lambda: x.exp().backward())
        thread.start()
        thread.join()
    assert measured.events == []
