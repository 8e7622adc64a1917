"""First calls of compiled functions: traces compute by NumPy alone, and what Python looks at has ordinary bits."""

from __future__ import annotations

import copy
import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import modes, nn
from tapegrad.compiler.cache import address_of_ir
from tapegrad.ops.table import gateway
from tapegrad.ops.table.gateway import raw_data
from tapegrad.ops.table.op import Bound, Op, op_table
from tapegrad.ops.table.plain import by_numpy
from tapegrad.program.entry import FIRST
from tapegrad.runtime import garbage
from tapegrad.tape.layout import layout_of
from tapegrad.testing.operands import operands_of

PROGRAM = """
import sys
import numpy as np
import tapegrad as tg
from tapegrad.compiler.cache import on_compile

compiled, activation = [], tg.tanh

def loss(w, x):
    z = activation(x @ w + tg.exp(-w).sum()) + tg.where(x[:, 0] > 0, x[:, 1], x[:, 2])
    return (tg.softmax(z, 0) * tg.log1p(z * z)).sum() + (x[:, :1] - x).mean() + tg.sqrt(abs(w)).sum()

arrays = np.linspace(0.1, 1.0, 5), np.linspace(-1.0, 1.0, 35).reshape(7, 5)
on_compile.append(compiled.append)
value, gradient = tg.compile(tg.func.value_and_grad(loss))(*arrays)
assert np.isfinite(gradient).all()
kernels = [name for name in compiled if "float" in name or "gem" in name]
print("numba" in sys.modules, compiled.count("program"), kernels)
"""


def test_a_trace_compiles_no_kernels(tmp_path: Path) -> None:
    """The first call traces and makes one program: no kernel of an operation, and not numba, is loaded."""
    variables = {**os.environ, "TAPEGRAD_CACHE_DIR": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=variables, check=True, capture_output=True, text=True, timeout=120
    )
    assert found.stdout == "False 1 []\n"


LINKS = """
import numpy as np
import tapegrad as tg
from tapegrad.compiler import cache

link, counts = cache.link, []
cache.link = lambda code, symbols, imports={}: counts.append(len(symbols)) or link(code, symbols, imports)
f = tg.compile(tg.func.value_and_grad(lambda x: (x * x).sum()))
assert f(np.arange(3.0))[0] == 5.0
print(max(counts, default=0))
"""


def test_what_the_first_program_needs_is_linked_at_once(tmp_path: Path) -> None:
    """In a process that finds it in the cache. A broken file is made again, and the others are linked all the same."""

    def most() -> int:
        variables = {**os.environ, "TAPEGRAD_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", LINKS], env=variables, check=True, capture_output=True, text=True, timeout=120
        )
        return int(done.stdout)

    most()
    assert most() == len(FIRST)
    largest = max(tmp_path.glob("*.o"), key=lambda own: own.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-100])
    assert most() == len(FIRST) - 1
    assert most() == len(FIRST)


@pytest.mark.parametrize("count", [0, 5])
def test_frozen_objects_are_counted_once(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """What a program has frozen stays frozen, and is not counted in each trace; else what is new counts as old."""
    calls = []
    monkeypatch.setattr(garbage._Others, "freeze", False)
    for name in ("freeze", "unfreeze", "get_freeze_count"):
        monkeypatch.setattr(gc, name, lambda name=name: calls.append(name) or count)
    for _ in range(2):
        with garbage.kept():
            assert not gc.isenabled()
        assert gc.isenabled()
    once = ["get_freeze_count", "freeze", "unfreeze"]
    assert calls == (once[:1] if count else 2 * once)
    gc.disable()
    try:
        with garbage.kept(), garbage.paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert calls == (once[:1] if count else 2 * once)


@pytest.mark.parametrize("name", sorted(op_table))
def test_by_numpy(name: str) -> None:
    """Forwards without kernels give results of the same layout and value, for all operations of all samples."""
    op = op_table[name]

    def compare(op: Op, bound: Bound) -> object:
        layouts = tuple([own._layout.plain for own in bound.operands])
        plan, out, _ = gateway.forward(op, bound, layouts)
        function = by_numpy(op, layouts, bound.attrs)
        if function is not None:
            other = function(*map(raw_data, bound.operands), *bound.index_arrays)
            one, two = layout_of(other), layout_of(out)
            assert (one.shape, one.dtype, one.strides) == (two.shape, two.dtype, two.strides)
            eps = np.finfo(out.dtype).eps if out.dtype.kind == "f" else 0.0
            np.testing.assert_allclose(other, out, rtol=60 * eps, atol=eps, equal_nan=True)
        if plan.pack is not None:
            return plan.pack(plan, out, *bound.operands)
        return gateway.compiled.finish(plan, out, *bound.operands, *bound.index_arrays)

    for sample in op.samples:
        for dtype in (np.float64, np.float32):
            operands = operands_of(op, sample, dtype, np.random.default_rng(1))
            with modes.intercept(compare), np.errstate(all="ignore"):
                op.called(list(operands), sample.attrs)


def test_what_python_looks_at_has_ordinary_bits() -> None:
    x = np.linspace(0.3, 2.0, 9)

    def function(x: tg.Tensor) -> tg.Tensor:
        total = (tg.exp(x) * tg.sin(x))[4]
        seen.append(float(total))
        y = tg.log(total * x)
        for k in range(3):
            seen.append(y[k].item())
            y = tg.tanh(y)
        return y

    seen: list[float] = []
    tg.compile(function)(x)
    traced, seen = seen[:4], []
    function(tg.tensor(x))
    assert traced == seen


def conjugate_gradients(b: tg.Tensor) -> tg.Tensor:
    a = tg.tensor(np.diag(2.5 * np.ones(10)) - np.diag(np.ones(9), 1) - np.diag(np.ones(9), -1))
    x, r = b * 0, b - a @ (b * 0)
    p, before = r, (r * r).sum()
    for _ in range(8):
        step = a @ p
        x, r = x + before / (p @ step) * p, r - before / (p @ step) * step
        now = (r * r).sum()
        p, before = r + now / before * p, now + 1e-300
    return (x * b).sum()


def test_long_programs_of_short_axes_are_cut() -> None:
    """A second derivative of matrix products in a loop would be 2,000 nests in one function: minutes for LLVM."""
    b = 1.0 / (1.0 + np.arange(10.0))
    hessian = tg.compile(tg.func.hessian(conjugate_gradients))
    expected = tg.func.hessian(conjugate_gradients)(tg.tensor(b)).numpy()
    np.testing.assert_allclose(hessian(b), expected, rtol=1e-6, atol=1e-7)
    assert "nests of loops" in hessian.explain()


def test_long_modules_get_few_passes() -> None:
    """They are right, and take seconds with all passes."""
    lines = ["define i64 @total(ptr %x) {", "  %s0 = load i64, ptr %x"]
    for k in range(1, 3001):
        lines.append(f"  %v{k} = load i64, ptr %x")
        lines.append(f"  %s{k} = call i64 @plus(i64 %s{k - 1}, i64 %v{k})")
    lines += ["  ret i64 %s3000", "}", "define i64 @plus(i64 %a, i64 %b) alwaysinline {", "  %c = add i64 %a, %b"]
    text = "\n".join([*lines, "  ret i64 %c", "}", ""])
    address = address_of_ir("total", text, lambda: text, "total")
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(address)(np.array([7]).ctypes.data) == 7 * 3001


def test_many_stores_of_straight_code() -> None:
    """Fences between them change no value."""
    x = np.linspace(-1.0, 1.0, 24 * 24).reshape(24, 24)
    found = tg.compile(lambda x: tg.roll(x, 1, 0) + tg.roll(x, -1, 1) * x.T)(x)
    np.testing.assert_array_equal(found, np.roll(x, 1, 0) + np.roll(x, -1, 1) * x.T)


def test_modes_of_modules_that_a_function_sets() -> None:
    """A step lets its model train and another function lets it evaluate: each is traced once, and sets modes after."""

    def made(model: nn.Module) -> tuple[Callable[..., Any], Callable[..., Any]]:
        optimizer = tg.optim.SGD(model.parameters(), lr=0.1)

        def step(x: tg.Tensor) -> tg.Tensor:
            model.train()
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        def evaluated(x: tg.Tensor) -> tg.Tensor:
            model.eval()
            return model(x).sum()

        return step, evaluated

    model = nn.Sequential(nn.Linear(3, 4, dtype=tg.float64), nn.BatchNorm1d(4, dtype=tg.float64))
    other = copy.deepcopy(model)
    compiled, eager = [tg.compile(own) for own in made(model)], made(other)
    for turn in range(6):
        for own, expected in zip(compiled, eager, strict=True):
            x = tg.tensor(np.random.default_rng(turn).standard_normal((5, 3)))
            np.testing.assert_allclose(own(x).detach().numpy(), expected(x).detach().numpy(), rtol=1e-9)
            assert [part.training for part in model.modules()] == [part.training for part in other.modules()]
    for own, expected in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        np.testing.assert_allclose(own.numpy(), expected.numpy(), rtol=1e-9, atol=1e-14)
    assert [len(own.programs) for own in compiled] == [1, 1]


def test_a_branch_sets_the_mode_of_a_module() -> None:
    """The mode that the other branch sets is not set."""
    model = nn.Sequential(nn.BatchNorm1d(3, dtype=tg.float64), nn.Dropout(0.5))
    other = copy.deepcopy(model)

    def function(x: tg.Tensor, model: nn.Module) -> tg.Tensor:
        with tg.no_grad():
            if x.sum() > 0:
                model.train()
            else:
                model.eval()
            return model[0](x)

    compiled = tg.compile(lambda x: function(x, model))
    for turn in range(8):
        x = tg.tensor(np.random.default_rng(turn).standard_normal((5, 3)) + (-1.0) ** turn * 3.0)
        np.testing.assert_allclose(compiled(x).numpy(), function(x, other).numpy(), rtol=1e-9)
        assert [part.training for part in model.modules()] == [part.training for part in other.modules()]
    assert len(compiled.programs) == 2


@pytest.mark.parametrize("norm", [nn.utils.parametrizations.spectral_norm, nn.utils.spectral_norm])
def test_spectral_norms_are_traced(norm: Callable[..., Any]) -> None:
    """Their vectors are written to in place."""
    layer = norm(nn.Linear(3, 4, dtype=tg.float64))
    other = copy.deepcopy(layer)
    compiled, x = tg.compile(lambda x: layer(x).sum()), tg.ones(2, 3, dtype=tg.float64)
    for _ in range(3):
        assert compiled(x).item() == pytest.approx(other(x).sum().item(), rel=1e-9)
    for own, expected in zip(layer.state_dict().values(), other.state_dict().values(), strict=True):
        np.testing.assert_allclose(own.numpy(), expected.numpy(), rtol=1e-9)
    assert len(compiled.programs) == 1
