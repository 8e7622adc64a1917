"""Whether subnormal numbers become zeros: in operations, sweeps and programs of the calling thread alone."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import tapegrad as tg

TINY = 1e-300
FACTOR = 1e-10  # their product is subnormal


@pytest.fixture
def flushed() -> Iterator[None]:
    if not tg.set_flush_denormal(True):
        pytest.skip("this platform always computes with subnormal numbers")
    try:
        yield
    finally:
        assert tg.set_flush_denormal(False)


def test_operations(flushed: None) -> None:
    x = tg.tensor([TINY, 1.0])
    assert (x * FACTOR).tolist() == [0.0, FACTOR]
    assert (tg.tensor([1e-310, 1.0]) * 2.0**50).tolist() == [0.0, 2.0**50]  # an operand
    assert tg.set_flush_denormal(False)
    assert (x * FACTOR).tolist() == [TINY * FACTOR, FACTOR] != [0.0, FACTOR]


def test_sweep_and_program(flushed: None) -> None:
    def f(x: tg.Tensor) -> tg.Tensor:
        return (x * x).sum() * FACTOR / 2

    compiled = tg.compile(tg.func.grad(f))
    for is_flushed in (True, False):
        assert tg.set_flush_denormal(is_flushed)
        x = tg.tensor([TINY, 1.0], requires_grad=True)
        f(x).backward()
        for gradient in (x.grad, compiled(np.array([TINY, 1.0]))):
            values = np.asarray(gradient)
            assert (values[0] == 0) == is_flushed
            assert values[1] == FACTOR


def test_other_threads_keep_their_mode() -> None:
    go_on, found = threading.Event(), []

    def work() -> None:
        go_on.wait()
        found.append((tg.tensor(TINY) * FACTOR).item())

    thread = threading.Thread(target=work)
    thread.start()
    tg.set_flush_denormal(True)
    try:
        go_on.set()
        thread.join()
    finally:
        tg.set_flush_denormal(False)
    assert found == [TINY * FACTOR]
    assert found[0] > 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives a new thread the mode of its starter")
def test_new_threads_have_the_mode_of_their_starter(flushed: None) -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append((tg.tensor(TINY) * FACTOR).item()))
    thread.start()
    thread.join()
    assert found == [0.0]


@pytest.mark.parametrize("mode", [1, None, "on"])
def test_mode_is_a_bool(mode: object) -> None:
    with pytest.raises(TypeError, match=f"set_flush_denormal expects a bool, but got {type(mode).__name__}"):
        tg.set_flush_denormal(mode)  # type: ignore[arg-type]


def test_platform_without_the_mode() -> None:
    code = "import tapegrad as tg; print(tg.set_flush_denormal(True), (tg.tensor(1e-300) * 1e-10).item() > 0)"
    environment = {**os.environ, "TAPEGRAD_WITHOUT": "fenv"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_as_torch() -> None:
    torch = pytest.importorskip("torch")
    try:
        assert tg.set_flush_denormal(True) is torch.set_flush_denormal(True)
        here, there = tg.tensor(TINY) * FACTOR, torch.tensor(TINY, dtype=torch.float64) * FACTOR
        assert here.item() == there.item()
    finally:
        assert tg.set_flush_denormal(False) is torch.set_flush_denormal(False)
