"""`tapegrad.distributed` on clusters of processes of this machine, one of which is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

distributed = pytest.importorskip("distributed")

RNG = np.random.default_rng(0)
X, Y, W = RNG.normal(size=(50, 3)), RNG.normal(size=50), {"w": RNG.normal(size=3), "b": np.zeros(())}


def loss(params: Any, x: Any, y: Any) -> Any:
    errors = tg.tanh(x @ params["w"] + params["b"]) - y
    return (errors * errors).mean()


step = tg.func.value_and_grad(loss)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _leaves(found: Any) -> list[Any]:
    value, slopes = found
    return [value, slopes["w"], slopes["b"]]


def test_mean_over_chunks_is_that_of_the_batch(client: Any) -> None:
    parallel = tg.distributed.data_parallel(step, client, (None, 0, 0), chunks=4)  # 13, 13, 12, 12 items
    for weights in (W, {"w": -W["w"], "b": np.ones(())}):
        for found, wanted in zip(_leaves(parallel(weights, X, Y)), _leaves(step(weights, X, Y)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-13)
    assert parallel.__name__ == step.__name__


def test_bits_do_not_depend_on_the_number_of_workers(client: Any) -> None:
    found = _leaves(tg.distributed.data_parallel(step, client, (None, 0, 0), chunks=7)(W, X, Y))
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=3, dashboard_address=":0") as other:
        alone = _leaves(tg.distributed.data_parallel(step, other, (None, 0, 0), chunks=7)(W, X, Y))
    assert [leaf.tobytes() for leaf in map(np.asarray, found)] == [leaf.tobytes() for leaf in map(np.asarray, alone)]


def test_sums_and_items(client: Any) -> None:
    total = tg.distributed.data_parallel(lambda x: {"s": x.sum(0)}, client, reduce="sum", chunks=5)
    np.testing.assert_allclose(total(X)["s"], X.sum(0), rtol=1e-13)
    slopes = tg.distributed.data_parallel(
        tg.vmap(tg.func.grad(lambda x, y: (tg.sin(x) * y).sum()), (0, 1)), client, (0, 1), reduce="concat", chunks=3
    )
    np.testing.assert_allclose(slopes(X, Y[None]), np.cos(X) * Y[:, None], rtol=1e-13)


def test_parts_of_an_argument_are_cut_each_in_its_way(client: Any) -> None:
    def function(scale: Any, batch: Any) -> Any:
        return (batch["x"] @ batch["w"] * scale + batch["y"].sum(0)).mean()

    batch = {"x": np.arange(32.0).reshape(16, 2), "w": np.array([1.0, -2.0]), "y": np.arange(48.0).reshape(3, 16)}
    dims = (None, {"x": 0, "w": None, "y": 1})
    split = tg.distributed.data_parallel(function, client, dims, chunks=4)
    assert float(split(2.0, batch)) == pytest.approx(float(function(2.0, batch)))
    with pytest.raises(ValueError, match=r"in_dims must be like the arguments.*'x': \*.* but has \{'z': \*\}"):
        tg.distributed.data_parallel(function, client, (None, {"z": 0}))(2.0, batch)


def test_chunks_can_stay_on_the_workers(client: Any) -> None:
    x, y = tg.distributed.split(X, client, chunks=4), tg.distributed.split(Y, client, chunks=4)
    parallel = tg.distributed.data_parallel(step, client, (None, 0, 0))
    for _ in range(2):
        np.testing.assert_allclose(_leaves(parallel(W, x, y))[0], loss(W, X, Y), rtol=1e-13)


def test_tensors_and_numbers_are_arguments_too(client: Any) -> None:
    parallel = tg.distributed.data_parallel(
        lambda x, power, scale: (x**power).sum() * scale, client, (0, None, None), reduce="sum"
    )
    assert float(parallel(tg.tensor(X), 2, 0.5)) == pytest.approx((X**2).sum() / 2)


def test_a_killed_worker_costs_its_tasks_and_nothing_else(client: Any) -> None:
    def slow(x: Any) -> Any:
        time.sleep(0.2)
        return os.getpid(), (x * x).sum()

    before = client.run(os.getpid)
    futures = client.map(slow, np.array_split(X, 12), pure=False)
    parallel = tg.distributed.data_parallel(step, client, (None, 0, 0), chunks=8)
    wanted = _leaves(parallel(W, X, Y))
    distributed.wait(futures[:2])
    os.kill(next(iter(before.values())), signal.SIGKILL)
    found = _leaves(parallel(W, X, Y))
    assert [np.asarray(leaf).tobytes() for leaf in found] == [np.asarray(leaf).tobytes() for leaf in wanted]
    assert sum(part for _, part in client.gather(futures)) == pytest.approx((X**2).sum())
    client.wait_for_workers(2, timeout=120)
    assert len(set(client.run(os.getpid).values()) - set(before.values())) == 1  # one was started anew
    assert _leaves(parallel(W, X, Y))[0] == wanted[0]  # it got the program too


def test_map_returns_results_in_order_and_shows_a_bar(client: Any, capsys: pytest.CaptureFixture[str]) -> None:
    fit = tg.compile(tg.func.grad(lambda x: (x**4).sum()))
    found = tg.distributed.map(lambda x, c: (os.getpid(), fit(x) * c), X[:6], range(6), client=client)
    for i, (_, slope) in enumerate(found):
        np.testing.assert_allclose(slope, 4 * X[i] ** 3 * i)
    assert len({pid for pid, _ in found}) >= 1
    assert "100%" in capsys.readouterr().out
    assert tg.distributed.map(abs, [], client=client) == []


def _refuse(x: int) -> int:
    if x == 2:
        raise ZeroDivisionError("two")
    return x


def test_what_a_call_raises_is_raised(client: Any) -> None:
    with pytest.raises(ZeroDivisionError, match="two"):
        tg.distributed.map(_refuse, range(4), client=client, show=False)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: tg.distributed.data_parallel(step, c, reduce="max"), "one of mean, sum, concat, but got 'max'"),
        (lambda c: tg.distributed.data_parallel(step, c, chunks=0), "chunks is 1 or more, but got 0"),
        (lambda c: tg.distributed.data_parallel(step, c, (None, 0))(W, X, Y), "in_dims has 2 entries, but there are 3"),
        (lambda c: tg.distributed.data_parallel(step, c, (None,) * 3)(W, X, Y), "there is no batch to split"),
        (lambda c: tg.distributed.data_parallel(step, c, (None, 0, 0))(W, X, Y[:9]), "50 in 8 chunks, 9 in 8 chunks"),
        (lambda c: tg.distributed.data_parallel(step, c, 0, chunks=60)(W, X, Y), "the same length where they are cut"),
        (lambda c: tg.distributed.data_parallel(len, c, 0, chunks=60)(X), "50 items cannot be split into 60 chunks"),
        (lambda c: tg.distributed.data_parallel(len, c)(tg.tensor(X).requires_grad_()), "require no grad"),
        (lambda c: tg.distributed.map(len, client=c), "needs at least one iterable"),
        (lambda c: tg.distributed.map(len, [1], [2, 3], client=c), "iterables of 1, 2 items"),
    ],
)  # fmt: skip
def test_bad_input(client: Any, call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(client)
