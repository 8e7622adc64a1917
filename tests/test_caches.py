"""Caches are bounded: new lengths do not pile up, and nothing is freed that is still referred to."""

from __future__ import annotations

import gc
import inspect
import subprocess
import sys
import weakref

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler import cache
from tapegrad.kernels.rules import rule_parameters
from tapegrad.ops.table import gateway
from tapegrad.ops.table.op import op_table
from tapegrad.recording import plan, plan_cache, plan_table, steps
from tapegrad.runtime import state
from tapegrad.runtime.memory import INTERPRETS
from tapegrad.tape.entries import PLAN_OBJECT
from tapegrad.tape.layout import _recent, intern, layout_of
from tests.checks import is_known

LENGTHS = """
import numpy as np, tapegrad as tg
from tapegrad.runtime import state
from tapegrad.runtime.memory import INTERPRETS
from tests.checks import is_known

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20

kept = []
def program(n):
    x = tg.arange(n, dtype="float64").requires_grad_()
    loss = (tg.sin(x) * x - x**2 + np.ones(n)).sum()
    loss.backward()
    values = x.detach().numpy()
    expected = np.cos(values) * values + np.sin(values) - 2 * values
    assert np.allclose(x.grad.numpy(), expected, rtol=1e-12, atol=1e-12), n
    if n % 500 == 0:
        kept.append((x, (tg.sin(x) * x).sum()))

for n in range(1, 1200):
    program(n)
before = resident()
for n in range(1200, {end}):
    program(n % 7919 + 1200 if n % 3 else n)
print(resident() - before)
for x, loss in kept:
    x.grad = None
    loss.backward()
    values = x.detach().numpy()
    assert np.allclose(x.grad.numpy(), np.cos(values) * values + np.sin(values)), len(x)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("end", [3000, pytest.param(9000, marks=pytest.mark.full)])
def test_memory_does_not_grow_with_lengths(end: int) -> None:
    """Thousands of lengths, some of them met again, and graphs that outlive their plans in the caches."""
    run = subprocess.run([sys.executable, "-c", LENGTHS.format(end=end)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 8


def test_layouts_die_with_their_last_user() -> None:
    shape = (3, 1, 4, 1, 5)
    x = tg.ones(shape)
    layout = weakref.ref(x._layout)
    assert layout_of(np.ones(shape)) is layout()
    state.reset()
    assert layout_of(np.ones(shape)) is layout()  # of a tensor that is alive
    del x
    state.reset()
    assert layout() is None


def test_layouts_are_one_object_for_each_property() -> None:
    one = intern((2, 3), (24, 8), np.dtype("float64"))
    assert intern((2, 3), (24, 8), np.dtype("float64")) is one
    assert one.tracked.plain is one
    assert one.plain is one
    tracked = one.tracked
    assert one.tracked is tracked.tracked is tracked
    assert intern((2, 3), (24, 8), np.dtype("int64")).tracked.requires_grad is False


def test_layouts_form_no_cycles() -> None:
    state.reset()
    gc.collect()
    gc.disable()
    try:
        layout = weakref.ref(intern((6, 7, 8), (448, 64, 8), np.dtype("float64")).tracked)
        state.reset()
        assert layout() is None
    finally:
        gc.enable()


def test_plans_in_use_stay_and_others_go() -> None:
    state.reset()
    x = tg.ones((3, 2), requires_grad=True)
    tg.sum(x, 1), tg.sum(x, 0)
    plans = op_table["sum"].plans
    key, other = list(plans)
    used, unused = plans.get(key), weakref.ref(plans.get(other))
    for _ in range(3):
        for n in range(plan_cache.MOST_PLANS):
            tg.sinh(tg.ones(n + 1))
        assert plans.get(key) is used
    assert unused() is None
    assert state.sizes()["recording.plan_cache: plans"] <= 2 * plan_cache.MOST_PLANS


def test_many_indices_make_few_plans() -> None:
    """Parts of constants, beyond those that are remembered, are the same views as those."""
    state.reset()
    x, count = tg.zeros((40, 60)), 0
    for i in range(40):
        for j in range(60):
            row, cell = x[i], x[i, -j - 1]
            x[i, j] = float(count)
            cell += 0.5
            assert row[j].item() == count
            assert cell._base is x is row._base
            assert cell.shape == ()
            count += 1
    assert state.sizes()["recording.plan_cache: plans"] < 2400
    assert (x.numpy() == np.arange(2400).reshape(40, 60) + (np.arange(60) < 30) * 0.5).all()
    y = x * tg.ones((), requires_grad=True)
    y[3, 4] = 2.0  # what is recorded has plans as before
    assert y[3, 4].requires_grad
    assert x[3:5]._version == x._version
    for index in (40, (3, 60)):
        with pytest.raises(IndexError, match="out of bounds for dimension"):
            x[index]
        with pytest.raises(IndexError, match="out of bounds for dimension"):
            x[index] = 1.0
    with pytest.raises(RuntimeError, match=r"expanded size of the tensor \(60\) must match"):
        x[3] = tg.ones(7)


def test_a_call_adds_no_reference_to_its_plan() -> None:
    x = tg.ones((5, 2), requires_grad=True)
    calls = (lambda: x * x, lambda: tg.sum(x, 1), lambda: tg.cat([x, x]), lambda: x[1:], lambda: tg.exp(x))
    for call in calls:
        held = [call(), call()]
        plan = held[0]._node[PLAN_OBJECT]
        del held
        before = sys.getrefcount(plan)
        for _ in range(50):
            call()
        assert sys.getrefcount(plan) == before
        held = [call() for _ in range(50)]
        assert sys.getrefcount(plan) == before + 50  # one for each node
        del held
        assert sys.getrefcount(plan) == before


@pytest.mark.parametrize("sweeps", [False, True])
def test_a_plan_that_the_caches_forgot_dies_with_its_last_node(sweeps: bool) -> None:
    state.reset()
    x = tg.ones((5, 3), requires_grad=True)
    for _ in range(3):
        out = x * x
    plans = op_table["mul"].plans
    plan = weakref.ref(out._node[PLAN_OBJECT])
    if sweeps:
        out.sum().backward(retain_graph=True)
    plans.clear()
    state.reset()
    assert plan() is not None
    (out.sum()).backward()
    del out
    gc.collect()
    assert plan() is None


def test_reset_leaves_graphs_valid() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    loss = (x * x).sum()
    state.reset()
    gc.collect()
    loss.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    (x * x).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_there_are_some_hundred_size_classes() -> None:
    classes = {steps.buffer_class(nbytes) for nbytes in range(1, 1 << 20, 64)}
    assert len(steps.size_classes) < 1000
    sizes = list(steps.size_classes)
    for nbytes in (1, 64, 65, 1000, 12345, 999_999):
        size = sizes[steps.buffer_class(nbytes)]
        assert nbytes <= size <= max(64, 1.13 * nbytes + 64)
    assert classes <= set(range(len(sizes)))


def test_a_rule_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(n: int) -> None:
        x = tg.ones(n, requires_grad=True)
        (slope,) = tg.autograd.grad(tg.sin(x * x).sum(), x, create_graph=True)
        slope.sum().backward()

    def forbidden(*args: object) -> None:
        raise AssertionError("a rule was looked at again")

    program(3)
    monkeypatch.setattr(inspect, "signature", forbidden)
    for n in (3, 31, 131):
        program(n)
    assert rule_parameters(op_table["mul"].vjp[0]) == ("ct", "y")


@pytest.mark.parametrize("name", ["sin", "mul", "pow", "where", "add"])
def test_plans_of_templates_are_what_plans_are(name: str) -> None:
    """A plan that comes from a template computes the same bits as one that was made from its parts."""
    rng = np.random.default_rng(0)
    functions = {
        "sin": lambda x, y: tg.sin(x), "mul": lambda x, y: x * y, "pow": lambda x, y: x**3 + x**2 + y**0.5 + x**y,
        "where": lambda x, y: tg.where(x > y, x, y), "add": lambda x, y: x + y + 1,
    }  # fmt: skip
    for shape in [(2,), (5,), (3, 4), (7, 2, 3), (1, 9), (300,), (2000,)]:
        data = [rng.uniform(0.5, 2, shape) for _ in range(2)]
        outcomes = []
        for fresh in (False, True):
            if fresh:
                state.reset()
            x, y = (tg.tensor(array, requires_grad=True) for array in data)
            out = functions[name](x, y)
            (out * out).sum().backward()
            outcomes.append([out.detach().numpy(), x.grad.numpy(), *([] if y.grad is None else [y.grad.numpy()])])
        for one, other in zip(*outcomes, strict=True):
            assert one.shape == other.shape
            np.testing.assert_array_equal(one, other)


def test_a_thousand_lengths_make_no_plan_from_its_parts_and_no_function(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(n: int) -> None:
        x = tg.ones(n, requires_grad=True)
        y = tg.sin(x) * x - x**2 + x * 3.0
        y.backward(tg.ones(n))

    for n in (3, 5, 7):
        program(n)
    known = cache.known()

    def forbidden(*args: object) -> None:
        raise AssertionError("a plan was made from its parts")

    monkeypatch.setattr(plan, "kernel_calls", forbidden)
    monkeypatch.setattr(gateway, "prepared", forbidden)
    for n in range(8, 1008):
        program(n)
    assert cache.known() == known


@pytest.mark.parametrize("name", ["shapes", "slices", "targets", "products"])
def test_new_layouts_need_no_new_function(name: str) -> None:
    programs = {
        "shapes": lambda n: (tg.ones(n, 3, requires_grad=True) * tg.ones(3, requires_grad=True)).sum(0),
        "slices": lambda n: tg.ones(2000, requires_grad=True)[n : n + 5],
        "targets": lambda n: tg.ones(12 * n, requires_grad=True).reshape(3, -1, 2),
        "products": lambda n: tg.ones(n, 4, requires_grad=True) @ tg.ones(4, 3, requires_grad=True),
    }
    for n in (5, 6, 300, 301):
        programs[name](n).sum().backward()
    known = cache.known()
    for n in range(302, 402):
        programs[name](n).sum().backward()
    assert cache.known() == known


def test_a_call_gets_its_line_at_the_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        gateway, "compute", lambda *args, of=gateway.compute, **kw: asked.append(args) or of(*args, **kw)
    )
    x = tg.ones(1237, requires_grad=True)
    for _ in range(5):
        tg.sinh(x)
    assert len(asked) == 2


def test_compiled_code_finds_hundreds_of_slices() -> None:
    """Their keys differ in small numbers, yet each has a place."""
    x, plans = tg.zeros(600, requires_grad=True), op_table["getitem"].plans
    plans.clear()
    for _ in range(3):
        parts = [x[first : first + 2] for first in range(200)]
    assert len(parts) == len(plans._table.lines) == 200


def test_a_table_that_is_full_grows() -> None:
    """No kind of call is left out of it, however many kinds there are."""
    tensors, plans = [tg.ones(n, requires_grad=True) for n in range(1, 501)], op_table["mul"].plans
    for _ in range(3):
        for x in tensors:
            x * x
    if not INTERPRETS:
        assert all(is_known(lambda x=x: x * x) for x in tensors)
    assert not is_known(lambda: tensors[0] * tg.ones((7, 1)))
    plans.clear()
    assert len(plans._table.lines) == 0
    assert (tensors[1] * tensors[1]).tolist() == [1, 1]


def test_keys_without_end_are_forgotten() -> None:
    """A string is known by its address, so a program may make a key in each call."""
    table = plan_table.PlanTable("test", 1, 0, print)
    for word in range(0, 64 * plan_table._MOST_BUCKETS, 64):
        table.add([0, 0, 0, 2, 0, word], None)
        assert len(table._buckets) <= plan_table._MOST_BUCKETS
    assert 0 < len(table.lines) < plan_table._MOST_BUCKETS


def test_the_latest_layouts_outlive_their_tensors() -> None:
    kept = intern((3, 1, 7), (56, 56, 8), np.dtype("f8"))
    found = weakref.ref(kept), weakref.ref(kept.tracked)
    del kept
    gc.collect()
    kept = intern((3, 1, 7), (56, 56, 8), np.dtype("f8"))
    assert (kept, kept.tracked) == (found[0](), found[1]())
    del kept
    for length in range(_recent.maxlen or 0):
        intern((length, 1, 1, 1), (8, 8, 8, 8), np.dtype("f8"))
    gc.collect()
    assert [reference() for reference in found] == [None, None]


def test_plans_of_views_of_new_numbers_are_found_by_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that was just computed is no array yet; once it is one, its layout is a known one."""
    x = tg.tensor(2.0, requires_grad=True)
    calls = [lambda: tg.reshape(x * x, (1,)), lambda: tg.expand(x * 3.0, (2, 3)), lambda: tg.unsqueeze(x + x, 0)]
    for call in calls * 3:
        call()
    inserted: list[str] = []
    monkeypatch.setattr(plan_cache.PlanCache, "insert", lambda self, plan, *others: inserted.append(plan.name))
    for call in calls:
        call()
    assert inserted == []
