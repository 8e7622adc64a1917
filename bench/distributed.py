"""How `tapegrad.distributed.data_parallel` scales on this machine: ``python -m bench.distributed``.

A step is value and gradient of a network's loss over a batch that is on the workers already; only the parameters are
sent, and the gradients come back. The last column is what the model in docs/howto/distributed.md says.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import tapegrad as tg

SIZES = (32, 64, 64, 10)


def loss(weights: Any, x: Any, labels: Any) -> Any:
    for w, b in weights[:-1]:
        x = np.tanh(x @ w + b)
    w, b = weights[-1]
    return tg.nn.functional.cross_entropy(x @ w + b, labels)


def _seconds(call: Callable[[], Any], rounds: int) -> float:
    taken = []
    call()
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.distributed", description=__doc__)
    add = parser.add_argument
    add("--items", type=int, nargs="+", default=[20_000, 200_000], help="in a batch")
    add("--workers", type=int, nargs="+", default=[1, 2])
    add("--chunks", type=int, default=8)
    add("--rounds", type=int, default=15)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    weights = [(rng.normal(size=(m, n)) / m**0.5, np.zeros(n)) for m, n in pairwise(SIZES)]
    size = sum(array.nbytes for pair in weights for array in pair)
    print(f"{size} bytes of parameters, {options.chunks} chunks, {options.chunks * size} bytes of gradients a step")
    print(f"{'items':>8}{'workers':>9}{'step, ms':>10}{'speedup':>9}{'empty step, ms':>16}{'model, ms':>11}")
    step = tg.func.value_and_grad(loss)
    for items in options.items:
        x, labels = rng.normal(size=(items, SIZES[0])), rng.integers(SIZES[-1], size=items)
        compiled = tg.compile(step)
        alone = _seconds(lambda f=compiled, x=x, y=labels: f(weights, x, y), options.rounds)
        print(f"{items:8}{'none':>9}{alone * 1e3:10.2f}", flush=True)
        for workers in options.workers:
            with (
                LocalCluster(workers, threads_per_worker=1, dashboard_address=":0") as cluster,
                Client(cluster) as client,
            ):
                batch = [tg.distributed.split(array, client, options.chunks) for array in (x, labels)]
                parallel = tg.distributed.data_parallel(step, client, (None, 0, 0))
                empty = tg.distributed.data_parallel(lambda w, x, y: w, client, (None, 0, 0))
                taken = _seconds(lambda f=parallel, b=batch: f(weights, *b), options.rounds)
                overhead = _seconds(lambda f=empty, b=batch: f(weights, *b), options.rounds)
                model = overhead + alone / options.chunks * -(-options.chunks // workers)
                shown = f"{items:8}{workers:9}{taken * 1e3:10.2f}{alone / taken:9.2f}"
                print(f"{shown}{overhead * 1e3:16.2f}{model * 1e3:11.2f}", flush=True)


if __name__ == "__main__":
    main()
