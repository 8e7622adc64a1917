"""How long the main piece of an example takes: eager, compiled, and in PyTorch.

PyTorch runs the example's own functions, in which the name ``tg`` stands for PyTorch, and arrays are
its tensors. One thread computes, in the example's dtype. The three take turns, after their results have
been compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

import tapegrad as tg

try:
    import torch
except ImportError:
    torch = None
try:
    from threadpoolctl import threadpool_limits  # scikit-learn brings it
except ImportError:
    from contextlib import nullcontext as threadpool_limits

ROUNDS, SECONDS = 7, 0.25  # each contender is called as often as fits into so many seconds


def gradient(loss: Callable[..., Any], *args: Any) -> None:
    """Print what the value and the gradient of a function take."""
    compiled = tg.compile(tg.func.value_and_grad(loss, argnums=tuple(range(len(args)))))
    arrays = _map(lambda x: np.asarray(x, dtype=float) if isinstance(x, float) else x, args)

    def of(loss: Callable[..., Any], tensor: Callable[[Any], Any]) -> Callable[[], Any]:
        leaves: list[Any] = []
        tensors = _map(lambda x: leaves.append(tensor(x).requires_grad_()) or leaves[-1], arrays)

        def run() -> Any:
            for leaf in leaves:
                leaf.grad = None
            value = loss(*tensors)
            value.backward()
            return value, [leaf.grad for leaf in leaves]

        return run

    contenders = {"eager": of(loss, tg.tensor), "compiled": lambda: compiled(*arrays)}
    if torch is not None:
        contenders["PyTorch"] = of(in_torch(loss), torch.tensor)
    _agree(contenders)
    _compare("value and gradient", contenders)


def calls(function: Callable[..., Any], *args: Any) -> None:
    """Print what a call of a function of arrays takes."""
    compiled, tensors = tg.compile(function), _map(tg.tensor, args)
    contenders = {"eager": lambda: function(*tensors), "compiled": lambda: compiled(*args)}
    if torch is not None:
        port, others = in_torch(function), _map(torch.tensor, args)
        contenders["PyTorch"] = lambda: port(*others)
    _agree(contenders)
    _compare(f"a call of {function.__name__}", contenders)


def steps(make: Callable[[], tuple[Any, Callable[..., Any]]], *batch: Any) -> None:
    """Print what a training step takes.

    `make` returns a model and a function of a batch that trains it. Each contender trains a new model: that
    of the example has learnt, so that some gradients are subnormal numbers, with which processors are slow.
    """
    tensors, eager, compiled = _map(tg.tensor, batch), make()[1], tg.compile(make()[1])
    contenders = {"eager": lambda: eager(*tensors), "compiled": lambda: compiled(*tensors)}
    if torch is not None:
        dtype = torch.get_default_dtype()
        torch.set_default_dtype(getattr(torch, str(tg.get_default_dtype()).rpartition(".")[2]))
        port, others = in_torch(make)()[1], _map(torch.tensor, batch)
        torch.set_default_dtype(dtype)
        contenders["PyTorch"] = lambda: port(*others)
    _compare("a training step", contenders)


def in_torch(function: FunctionType) -> Callable[..., Any]:
    """Return a function and what it calls of its script, with PyTorch in place of tapegrad."""
    names = dict(function.__globals__)

    def port(value: Any) -> Any:
        if isinstance(value, ModuleType) and value is tg:
            return torch
        if value is tg.func.scan:
            return _scan
        if isinstance(value, FunctionType) and value.__globals__ is function.__globals__:
            again = FunctionType(
                value.__code__, names, value.__name__, value.__defaults__, value.__closure__
            )
            again.__kwdefaults__ = value.__kwdefaults__
            return again
        if type(value) in (dict, list, tuple):
            return _map(port, value)
        if isinstance(value, tg.Tensor):
            value = value.detach().numpy()
        return (
            torch.tensor(value) if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" else value
        )

    names.update((name, port(value)) for name, value in function.__globals__.items())
    return port(function)


def _scan(turn: Callable[..., Any], state: Any, xs: Any = None, length: int | None = None) -> Any:
    """Run a loop as `tg.func.scan` does, which PyTorch lacks."""
    stacked = []
    for n in range(len(xs) if length is None else length):
        state, result = turn(state, None if xs is None else xs[n])
        stacked.append(result)
    return state, torch.stack(stacked)


def _map(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to the arrays of containers."""
    if isinstance(value, dict):
        return {key: _map(function, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_map(function, item) for item in value)
    return function(value)


def _flat(value: Any) -> np.ndarray:
    """Return all numbers of a result."""
    numbers: list[np.ndarray] = []

    def append(x: Any) -> None:
        numbers.append(np.asarray(x.detach() if hasattr(x, "detach") else x).ravel())

    _map(append, value)
    return np.concatenate(numbers)


def _agree(contenders: dict[str, Callable[[], Any]]) -> None:
    """Compare results before anything is timed."""
    results = {name: _flat(run()) for name, run in contenders.items()}
    for name, result in results.items():
        scale = np.abs(results["eager"]).max()
        np.testing.assert_allclose(result, results["eager"], rtol=1e-6, atol=1e-8 * scale, err_msg=name)


def _compare(piece: str, contenders: dict[str, Callable[[], Any]]) -> None:
    """Time functions that take turns, on one thread, and print the median of each."""
    threads = tg.get_num_threads(), torch and torch.get_num_threads()
    tg.set_num_threads(1)
    if torch is not None:
        torch.set_num_threads(1)
    counts, medians = {}, {name: [] for name in contenders}
    with threadpool_limits(1):  # of BLAS
        for name, run in contenders.items():
            run()
            counts[name] = max(1, int(SECONDS / ROUNDS / _seconds(run, 1)))
        for _ in range(ROUNDS):
            for name, run in contenders.items():
                medians[name].append(_seconds(run, min(counts[name], 2000)))
    tg.set_num_threads(threads[0])
    if torch is not None:
        torch.set_num_threads(threads[1])
    print(f"{piece}, one thread:")
    for name, seconds in medians.items():
        print(f"{name:8}{np.median(seconds) * 1e6:12,.1f} µs")
    if torch is None:
        print("PyTorch is not installed")


def _seconds(run: Callable[[], Any], count: int) -> float:
    """Return the seconds of one of so many calls."""
    start = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - start) / count
