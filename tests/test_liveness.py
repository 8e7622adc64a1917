"""What the tape keeps alive and what not: residuals, leaves, pages and plans; no cycles, no recursion."""

import gc
import os
import sys
import tracemalloc
import weakref

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler import drafts, interpreter
from tapegrad.recording import plan, steps
from tapegrad.runtime import memory
from tapegrad.runtime.memory import INTERPRETS
from tapegrad.sweep import sweep
from tapegrad.tape import entries, versions
from tapegrad.tape.structs import PAGE_BYTES
from tests.checks import SLOWER


def leaf(value=1.0, size=10):
    return tg.full((size,), value, requires_grad=True)


def watch(tensor):
    """Return a weak reference to a tensor's array, which dies with the last thing that keeps it."""
    return weakref.ref(tensor._array())


# Residuals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["backward", "grad", "dropped", "last retained"])
def test_residuals_die_when_they_are_used_up(how):
    x = leaf()
    a = x.exp()
    b = a.sin()
    saved = [watch(a), watch(a * 1), watch(b)]
    loss = (b * b).sum()
    del a, b
    assert [array() is not None for array in saved] == [True, False, True]
    if how == "backward":
        loss.backward()
    elif how == "grad":
        tg.autograd.grad(loss, x)
    else:
        if how == "last retained":
            loss.backward(retain_graph=True)
            assert saved[0]() is not None
        del loss
    assert [array() for array in saved] == [None, None, None]


def test_only_what_rules_ask_for_is_kept():
    x, c, d = leaf(), leaf(2.0).detach(), leaf(3.0).detach()
    h, k = x + 1, x + 2
    arrays = {name: watch(value) for name, value in [("h", h), ("k", k), ("c", c), ("d", d)]}
    results = {"h + k": h + k, "h * c": h * c, "h + d": h + d, "sum": k.sum(), "mean": k.mean(), "neg": -k}
    del h, k, c, d
    assert [name for name, array in arrays.items() if array() is not None] == ["c"]
    del results["h * c"]
    assert arrays["c"]() is None
    sum(result.sum() for result in results.values()).backward()
    assert x.grad[0].item() == pytest.approx(2 + 1 + 1 + 1 / 10 - 1)


def test_a_factor_is_kept_for_the_other_one_only():
    x, w = leaf(2.0), leaf(3.0)
    h, k = x + 1, w + 1
    both, one = h * k, h.detach() * k
    arrays = watch(h), watch(k)
    del h, k
    assert [array() is not None for array in arrays] == [True, True]
    del both
    assert [array() is not None for array in arrays] == [True, False]  # h is the slope of k
    one.sum().backward()
    assert w.grad[0].item() == 3


def test_an_intermediate_keeps_what_it_was_computed_from_and_no_more():
    x = leaf()
    a = x.exp()
    b = a.sin()
    c = b.cos()
    arrays = watch(a), watch(b), watch(c)
    loss = c.sum()
    del a, c, loss
    assert [array() is not None for array in arrays] == [True, True, False]
    b.sum().backward()
    assert [array() is not None for array in arrays] == [False, True, False]
    assert x.grad[0].item() == pytest.approx(np.cos(np.e) * np.e)


def test_residuals_of_each_loss_on_a_retained_trunk_die_with_it():
    x = leaf()
    trunk = x.exp()
    kept = watch(trunk)
    for factor in range(3):
        h = trunk * (factor + 1.0)
        inner = watch(h)
        loss = (h * h).sum()
        del h
        loss.backward(retain_graph=True)
        assert inner() is not None
        del loss
        assert (inner(), kept() is not None) == (None, True)
    trunk.sum().backward()
    del trunk
    assert kept() is None


def test_an_error_frees_nothing_and_keeps_nothing():
    x = leaf()
    h = x.exp()
    saved = watch(h)
    loss = h * 1
    del h
    for wrong in (lambda: loss.backward(), lambda: tg.autograd.grad(loss.sum(), leaf())):
        with pytest.raises(RuntimeError):
            wrong()
        assert saved() is not None
    loss.sum().backward()
    assert saved() is None


# Leaves -----------------------------------------------------------------------------------------------------


def test_the_tape_does_not_keep_a_leaf():
    x, w = leaf(2.0), leaf(3.0)
    y = (x * w).sum()
    tensor, data = weakref.ref(x), watch(x)
    del x
    assert (tensor(), data() is not None) == (None, True)  # its data is a residual
    stranger = leaf(5.0)  # does not take its place
    y.backward()
    assert (w.grad[0].item(), stranger.grad, data()) == (2, None, None)


def test_a_leaf_does_not_keep_the_tape():
    x = leaf()
    y = x.exp()
    entry, saved = y._node, watch(y)
    y.sum().backward(retain_graph=True)
    del y
    assert saved() is not None
    alone: list[object] = []
    references = sys.getrefcount(entry), sys.getrefcount(alone)  # what a call adds depends on the version of Python
    del entry
    assert saved() is None
    assert x.grad is not None
    assert references[0] == references[1]


def test_leaf_records_are_used_again():
    x = leaf()
    before = holdings()
    for _ in range(1000):
        (leaf() * x).sum().backward()
    after = holdings()
    assert after["leaves"] == before["leaves"]
    assert after["pages"] <= before["pages"] + 1
    assert after["pool"] <= before["pool"] + entries._BLOCK_PAGES


# Cycles -----------------------------------------------------------------------------------------------------


def forward_only(x):
    (x * x).exp().sum()


def backward_twice(x):
    y = (x * x).exp().sum()
    y.backward(retain_graph=True)
    y.backward()


def second_order(x):
    (slope,) = tg.autograd.grad((x**3).sum(), x, create_graph=True)
    slope.sum().backward()


def graph_in_grad(x):
    (x**3).sum().backward(create_graph=True)


def hooked(x):
    y = x * 3
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    x.register_hook(lambda g: None)
    (y * y).sum().backward()
    (y * y).sum().backward(inputs=[y])


def written(x):
    y = x * 2
    y += 1
    y[0] = x[1]
    y.sum().backward()


def joined(x):
    tg.stack([x, x * 2, tg.cat([x[:5], x[5:]])]).sum().backward()


def failed(x):
    y = x * x
    for _ in range(2):
        try:
            y.backward()
        except RuntimeError:
            pass
    y.sum().grad_fn.next_functions[0][0].next_functions  # noqa: B018


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize(
    "work", [forward_only, backward_twice, second_order, graph_in_grad, hooked, written, joined, failed]
)
def test_no_reference_cycles(work):
    work(leaf())  # fills caches
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        x = leaf()
        tensor, data = weakref.ref(x), watch(x)
        work(x)
        del x
        gc.collect()
        ours = [found for found in gc.garbage if type(found).__module__.startswith("tapegrad") or type(found) is list]
        assert ours == []
        assert (tensor(), data()) == (None, None)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


# Loops ------------------------------------------------------------------------------------------------------


def holdings():
    """Count what a loop could pile up."""
    gc.collect()
    kinds = [type(thing) for thing in gc.get_objects()]
    pages = kinds.count(entries.Page)
    return {
        "pages": pages, "leaves": kinds.count(entries.Leaf), "plans": len(plan.alive()),
        "sizes": len(steps.size_classes), "writes": len(versions.storages), "to empty": len(sweep._to_empty),
        "workspaces": len(sweep._idle), "pool": len(entries._pool) + pages,
    }  # fmt: skip


def step_of_a_fit(w, step):
    y = (w * float(step % 7) + 1.0).exp()
    loss = (y - y * y).sum()
    w.grad = None
    loss.backward()
    with tg.no_grad():
        w -= 1e-3 * w.grad.clamp(-1, 1)


def forward_without_backward(w, step):
    (w * float(step)).sin()


class SharedTrunk:
    def __init__(self):
        self.trunk = None

    def __call__(self, w, step):
        if self.trunk is None:
            self.trunk = w.exp()
        (self.trunk * float(step)).sum().backward(retain_graph=True)


# Not the lines of the test runner, whose threads allocate meanwhile.
LINES_OF_THE_LOOP = [tracemalloc.Filter(True, f"{os.path.dirname(tg.__file__)}/*"), tracemalloc.Filter(True, __file__)]
# Nor what the interpreter keeps for its checks.
LINES_OF_THE_LOOP += [tracemalloc.Filter(False, module.__file__) for module in (interpreter, memory)]


def test_pages_are_used_again_at_once():
    x = tg.tensor(1.5, requires_grad=True)
    pages = set()
    for _ in range(20):
        y = x
        for _ in range(500):  # two pages of entries
            y = y * x
            pages.add(y._node[entries.SLOT] & -PAGE_BYTES)
    assert len(pages) <= 8, "one program lives while the next one is recorded"


@pytest.mark.skipif(INTERPRETS, reason="interpreted code is watched, and what watches holds memory")
@pytest.mark.parametrize(
    ("work", "steps"),
    [
        (step_of_a_fit, 5_000 // SLOWER),
        (forward_without_backward, 100_000 // SLOWER),
        (SharedTrunk(), 10_000 // SLOWER),
    ],
)
def test_a_loop_does_not_grow(work, steps):
    w = leaf(0.0)
    for step in range(min(1000, 50_000 // SLOWER)):
        work(w, step)
    drafts.finish()  # no thread collects garbage meanwhile
    before = holdings()
    snapshots = []
    tracemalloc.start()
    for step in range(steps):
        work(w, step)
        if step in (steps // 4, steps - 1):
            gc.collect()
            snapshots.append(tracemalloc.take_snapshot().filter_traces(LINES_OF_THE_LOOP))
    tracemalloc.stop()
    assert holdings() == before
    growth = snapshots[1].compare_to(snapshots[0], "lineno")
    # A step that kept one array would take megabytes.
    assert sum(line.size_diff for line in growth) < 20_000, "\n".join(map(str, growth[:5]))


@pytest.mark.skipif(INTERPRETS, reason="interpreted code is watched, and what watches holds memory")
@pytest.mark.parametrize("how", ["backward", "dropped", "some kept", "some kept, backward"])
def test_a_chain_of_a_million_entries(how):
    def pages():
        return sum(type(thing) is entries.Page for thing in gc.get_objects())

    gc.collect()
    before = pages()
    x = tg.tensor(1.0, requires_grad=True)
    y, kept = x, []
    for step in range(10**6 // (10 * SLOWER)):
        y = y * 1.0
        if how.startswith("some") and step % 1000 == 0:
            kept.append(y)
    if how.endswith("backward"):
        y.backward()
        assert x.grad.item() == 1
    del y
    kept.reverse()
    del kept[:500]
    kept.clear()
    assert pages() <= before + 2  # the entry of x, and the next one


def test_a_chain_of_diamonds_costs_its_length():
    y = x = tg.tensor(1.0, requires_grad=True)
    for _ in range(1000 // SLOWER):
        y = y * 0.5 + y * 0.5
    y.backward()
    assert x.grad.item() == 1


# Reference counts -------------------------------------------------------------------------------------------


def test_a_count_that_is_too_low_frees_later_and_changes_no_gradient(monkeypatch):
    # The reference count of a node only tells whether the sweep empties it, or it goes with the node that used it.
    def find_too_low(self, *args):
        found(self, *args)
        self.shared_nodes = ()

    found = sweep.Sweep.find
    monkeypatch.setattr(sweep.Sweep, "find", find_too_low)
    x = leaf(2.0)
    y = x.exp()
    saved, z = watch(y), y * 3.0
    loss = (z * z).sum()
    loss.backward()
    assert x.grad[0].item() == pytest.approx(18 * np.exp(4.0))
    with pytest.raises(RuntimeError, match="a second time"):
        z.sum().backward()
    del y, z, loss
    assert saved() is None


def test_a_gradient_that_a_graph_saved_is_not_added_to_unnoticed():
    x = tg.ones(3, 2).T.detach().requires_grad_()  # not contiguous, so Python adds to its gradient
    (x * x).sum().backward()
    loss = (x.grad * x * x.grad).sum()
    (x * x).sum().backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("join", [tg.cat, tg.stack])
def test_what_was_joined_is_not_kept(join):
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(4):  # compiled code knows the call from the third on
        parts = [x * 2.0, x * 3.0]
        data = [weakref.ref(part._data) for part in parts]
        joined = join(parts)
        del parts
        assert [reference() for reference in data] == [None, None]
        joined.sum().backward()
