"""Datasets, samplers and loaders: PyTorch's batches where nothing is random, and what randomness must keep."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.utils import data

try:
    import torch
    import torch.utils.data
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")


class Pair(NamedTuple):
    x: Any
    y: Any


class Squares(data.Dataset[int]):
    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        return index * index


class Stream(data.IterableDataset[int]):
    """The numbers below a length, those of a worker only."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[int]:
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.length, step))


def _plain(value: Any) -> Any:
    """Nested containers, with lists and dtypes in place of tensors of either library."""
    if hasattr(value, "tolist"):
        return value.tolist(), str(value.dtype).removeprefix("torch.")
    if isinstance(value, dict):
        return type(value).__name__, {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [_plain(item) for item in value]
    return value


#: Items of which a batch is made, where `t` makes a tensor.
ITEMS: dict[str, Any] = {
    "tensors": lambda t: t([1.0, 2.0]),
    "arrays": lambda t: np.arange(3.0),
    "NumPy numbers": lambda t: np.float32(2.5),
    "floats": lambda t: 2.5,
    "integers": lambda t: 3,
    "truth values": lambda t: True,
    "words": lambda t: "word",
    "pairs": lambda t: (t([1.0]), 3),
    "lists": lambda t: [1.5, t([[2]])],
    "dicts": lambda t: {"a": t(1.0), "b": ("x", 2.0)},
    "ordered dicts": lambda t: OrderedDict(a=1, b=np.ones(2)),
    "named tuples": lambda t: Pair(t([1.0]), 2),
    "empty tuples": lambda t: (),
}


@needs_torch
@pytest.mark.parametrize("name", ITEMS)
def test_collate_as_torch(name: str) -> None:
    ours, theirs = (
        [ITEMS[name](lambda values, lib=lib: lib.tensor(values, dtype=lib.float64)) for _ in range(3)]
        for lib in (tg, torch)
    )
    assert _plain(data.default_collate(ours)) == _plain(torch.utils.data.default_collate(theirs))
    assert _plain(data.default_convert(ours[0])) == _plain(torch.utils.data.default_convert(theirs[0]))


@needs_torch
@pytest.mark.parametrize("batch", [[None, None], [object()], [np.array("x")], [[1], [1, 2]], [{"a": 1}, {"b": 1}]])
def test_what_makes_no_batch(batch: list[Any]) -> None:
    errors = []
    for collate in (data.default_collate, torch.utils.data.default_collate):
        with pytest.raises(Exception) as info:  # noqa: PT011
            collate(batch)
        errors.append(info.value)
    assert type(errors[0]) is type(errors[1])
    assert str(errors[1]).replace("<U1", "") in str(errors[0]).replace("<U1", "")


def test_gradients_go_through_a_batch() -> None:
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (batch,) = next(iter(data.DataLoader(data.TensorDataset(x), batch_size=2)))
    (batch * batch).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[2.0, 4.0], [6.0, 8.0]]


@needs_torch
@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("options", [
    {}, {"batch_size": 4}, {"batch_size": 4, "drop_last": True}, {"batch_size": None}, {"batch_size": 40},
    {"batch_sampler": [[0, 3], [2], [5, 1, 1]]}, {"sampler": [4, 2, 2]}, {"collate_fn": sorted, "batch_size": 3},
])  # fmt: skip
def test_batches_as_torch(options: dict[str, Any], workers: int) -> None:
    x, y = np.arange(20.0).reshape(10, 2), np.arange(10)
    found = []
    for lib in (tg, torch):
        dataset = lib.utils.data.TensorDataset(lib.from_numpy(x), lib.from_numpy(y))
        if "collate_fn" in options:
            dataset = list(y)
        loader = lib.utils.data.DataLoader(dataset, **options, num_workers=workers if lib is tg else 0)
        epochs = [[_plain(batch) for batch in loader] for _ in range(2)]
        assert epochs[0] == epochs[1]
        found.append((len(loader), epochs[0], loader.batch_size, loader.drop_last))
    assert found[0] == found[1]


@pytest.mark.parametrize("options", [{}, {"batch_size": 4}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}])
@pytest.mark.parametrize("workers", [0, 2])
def test_streams(options: dict[str, Any], workers: int) -> None:
    loader = data.DataLoader(Stream(10), **options, num_workers=workers)
    batches = [batch.tolist() if hasattr(batch, "tolist") else batch for batch in loader]
    size = options.get("batch_size", 1)
    if workers == 0:
        numbers = [number for batch in batches for number in (batch if size else [batch])]
        assert numbers == list(range(9 if options.get("drop_last") else 10))
        assert len(loader) == len(batches)
    else:  # each worker has its own batches
        flat = sorted(number for batch in batches for number in (batch if size else [batch]))
        assert set(flat) <= set(range(10))
        assert len(flat) == len(set(flat)) == (6 if options.get("drop_last") else 10)


def test_workers_are_threads_that_fetch_ahead() -> None:
    seen: dict[str, set[Any]] = {"threads": set(), "infos": set(), "begun": set()}
    barrier = threading.Barrier(2, timeout=20)

    class Slow(Squares):
        def __getitem__(self, index: int) -> int:
            barrier.wait()  # two at a time, or never
            info = data.get_worker_info()
            assert info is not None
            seen["threads"].add(threading.get_ident())
            seen["infos"].add((info.id, info.num_workers, info.dataset is dataset))
            return super().__getitem__(index)

    dataset = Slow(8)
    loader = data.DataLoader(dataset, num_workers=2, worker_init_fn=seen["begun"].add)
    assert [batch.item() for batch in loader] == [k * k for k in range(8)]
    assert len(seen["threads"]) == 2
    assert threading.get_ident() not in seen["threads"]
    assert (seen["infos"], seen["begun"]) == ({(0, 2, True), (1, 2, True)}, {0, 1})
    assert data.get_worker_info() is None


def test_threads_end_with_their_epoch_unless_they_are_kept() -> None:
    def count() -> int:
        return sum(thread.name.startswith("tapegrad-worker") for thread in threading.enumerate())

    def none_left() -> bool:
        until = time.monotonic() + 20
        while count() and time.monotonic() < until:
            time.sleep(0.01)
        return count() == 0

    assert none_left()
    loader = data.DataLoader(Squares(30), num_workers=2)
    next(iter(loader))  # an epoch that is not finished
    assert none_left()
    kept = data.DataLoader(Squares(30), num_workers=2, persistent_workers=True)
    idents = []
    for _ in range(2):
        assert sum(batch.item() for batch in kept) == sum(k * k for k in range(30))
        idents.append({t.ident for t in threading.enumerate() if t.name.startswith("tapegrad-worker")})
    assert idents[0] == idents[1]
    assert len(idents[0]) == 2
    del kept
    assert none_left()


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_of_a_dataset_arrive(workers: int) -> None:
    class Broken(Squares):
        def __getitem__(self, index: int) -> int:
            if index == 3:
                raise ZeroDivisionError("item 3")
            return index

    loader = iter(data.DataLoader(Broken(6), num_workers=workers))
    assert [next(loader).item() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ZeroDivisionError, match="item 3"):
        next(loader)


def test_a_worker_that_takes_too_long() -> None:
    free = threading.Event()

    class Waiting(Squares):
        def __getitem__(self, index: int) -> int:
            free.wait(20)
            return index

    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.05 seconds"):
        next(iter(data.DataLoader(Waiting(2), num_workers=1, timeout=0.05)))
    free.set()


def test_shuffling() -> None:
    def epochs(seed: int, **options: Any) -> list[list[int]]:
        loader = data.DataLoader(range(50), 5, shuffle=True, generator=tg.Generator().manual_seed(seed), **options)
        return [[number for batch in loader for number in batch.tolist()] for _ in range(2)]

    first, second = epochs(0)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
    assert epochs(0) == [first, second]
    assert epochs(1)[0] != first
    tg.manual_seed(3)
    by_default = [batch.item() for batch in data.DataLoader(range(50), shuffle=True)]
    tg.manual_seed(3)
    assert [batch.item() for batch in data.DataLoader(range(50), shuffle=True)] == by_default


def test_samplers() -> None:
    assert list(data.SequentialSampler(range(3))) == [0, 1, 2]
    assert sorted(data.RandomSampler(range(7))) == list(range(7))
    many = data.RandomSampler(range(3), num_samples=8)
    assert len(many) == 8
    assert Counter(many).most_common()[0][1] == 3
    drawn = list(data.RandomSampler(range(3), replacement=True, num_samples=100))
    assert (len(drawn), set(drawn)) == (100, {0, 1, 2})
    assert sorted(data.SubsetRandomSampler([5, 7, 9])) == [5, 7, 9]
    weighted = list(data.WeightedRandomSampler([0.0, 1.0, 3.0], 4000))
    assert 0 not in weighted
    assert 0.7 < weighted.count(2) / 4000 < 0.8
    assert sorted(data.WeightedRandomSampler([1.0, 1.0], 2, replacement=False)) == [0, 1]
    batches = data.BatchSampler(data.SequentialSampler(range(7)), 3, True)
    assert (list(batches), len(batches)) == ([[0, 1, 2], [3, 4, 5]], 2)


def test_combinations_of_datasets() -> None:
    both = Squares(3) + Squares(4)
    assert isinstance(both, data.ConcatDataset)
    assert [both[k] for k in range(-7, 7)] == [0, 1, 4, 0, 1, 4, 9] * 2
    with pytest.raises(IndexError):
        both[7]
    with pytest.raises(ValueError, match="absolute value of index should not exceed dataset length"):
        both[-8]
    assert list(Stream(3) + Stream(2)) == [0, 1, 2, 0, 1]
    assert len(Stream(3) + Stream(2)) == 5
    part = data.Subset(Squares(9), [8, 2])
    assert ([part[0], part[1]], len(part)) == ([64, 4], 2)
    assert data.StackDataset(Squares(3), [5, 6, 7])[2] == (4, 7)
    assert data.StackDataset(a=Squares(3), b="xyz")[1] == {"a": 1, "b": "y"}
    parts = data.random_split(Squares(11), [0.5, 0.25, 0.25], generator=tg.Generator().manual_seed(0))
    assert [len(part) for part in parts] == [6, 3, 2]
    assert sorted(index for part in parts for index in part.indices) == list(range(11))
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        data.random_split(range(1), [0.5, 0.5])


#: What raises, of the module `utils.data`.
ERRORS: list[Any] = [
    lambda d: d.DataLoader([1], num_workers=-1),
    lambda d: d.DataLoader([1], timeout=-1),
    lambda d: d.DataLoader([1], prefetch_factor=2),
    lambda d: d.DataLoader([1], num_workers=1, prefetch_factor=-2),
    lambda d: d.DataLoader([1], persistent_workers=True),
    lambda d: d.DataLoader([1], batch_size=0),
    lambda d: d.DataLoader([1], batch_size=2.0),
    lambda d: d.DataLoader([1], drop_last=1),
    lambda d: d.DataLoader([1], shuffle=True, sampler=[0]),
    lambda d: d.DataLoader([1], batch_size=None, drop_last=True),
    lambda d: d.DataLoader([1], batch_size=2, batch_sampler=[[0]]),
    lambda d: d.DataLoader([], shuffle=True),
    lambda d: d.DataLoader(d.ChainDataset([]), shuffle=True),
    lambda d: d.DataLoader(d.ChainDataset([]), sampler=[0]),
    lambda d: d.DataLoader(d.ChainDataset([]), batch_sampler=[[0]]),
    lambda d: len(d.DataLoader(d.ChainDataset([[1]]))),
    lambda d: list(d.DataLoader(d.ChainDataset([[1]]))),
    lambda d: d.RandomSampler([1], replacement=1),
    lambda d: d.RandomSampler([1], num_samples=0),
    lambda d: d.WeightedRandomSampler([1.0], 0),
    lambda d: d.WeightedRandomSampler([1.0], 1, 1),
    lambda d: d.WeightedRandomSampler([[1.0]], 1),
    lambda d: d.BatchSampler([1], 2, None),
    lambda d: d.Dataset()[0],
    lambda d: d.ConcatDataset([]),
    lambda d: d.ConcatDataset([d.ChainDataset([])]),
    lambda d: d.StackDataset(),
    lambda d: d.StackDataset([1], [1, 2]),
    lambda d: d.StackDataset([1], a=[1]),
    lambda d: d.random_split([1, 2], [3]),
    lambda d: d.IterableDataset(),
    lambda d: d.random_split([1, 2], [1.5, -0.5]),
]  # fmt: skip


@needs_torch
@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors_as_torch(number: int) -> None:
    errors = []
    for lib in (tg, torch):
        with pytest.raises(Exception) as info:  # noqa: PT011
            ERRORS[number](lib.utils.data)
        errors.append(info.value)
    ours, theirs = errors
    assert type(ours) is type(theirs)
    assert str(theirs).split(";")[0].split(", but got")[0].split(".let")[0] in str(ours).replace("; use", "")
    if theirs.args:
        assert ours.args


def test_sizes_of_tensors_differ() -> None:
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        data.TensorDataset(tg.ones(2), tg.ones(3))


def test_rows_of_tensors_are_taken_at_once() -> None:
    whole = data.TensorDataset(tg.arange(20.0).reshape(10, 2), tg.arange(10))
    for dataset in (whole, data.Subset(whole, range(1, 9))):
        one_by_one = [dataset[k] for k in range(len(dataset))]
        batches = list(data.DataLoader(dataset, batch_size=4))
        stacked = list(data.DataLoader(one_by_one, batch_size=4))
        assert [[part.tolist() for part in batch] for batch in batches] == [
            [part.tolist() for part in batch] for batch in stacked
        ]
        assert {type(batch) for batch in batches} == {list}
    batches[0][0].zero_()
    assert whole.tensors[0].sum().item() == 190.0
    with pytest.raises(IndexError):
        list(data.DataLoader(whole, batch_sampler=[[3, 10]]))
    calls: list[Any] = []
    for _ in range(3):
        list(data.DataLoader(whole, batch_size=10))  # makes plans, and remembers what comes again
    sys.setprofile(lambda frame, event, value: calls.append(frame) if event == "call" else None)
    try:
        list(data.DataLoader(whole, batch_size=10))
    finally:
        sys.setprofile(None)
    assert len(calls) < 150
