"""Devices, types and generators: what programs written for PyTorch ask and say beside values."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.devices import check_device

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")


def _shown(value: Any) -> str:
    return repr(value).replace("torch.", "").replace("tapegrad.", "")


#: What gives the same in both libraries, or the same error.
SAME: list[Callable[[Any], Any]] = [
    lambda t: t.device("cpu"),
    lambda t: str(t.device("cuda:1")),
    lambda t: t.device("cuda", 1),
    lambda t: t.device(t.device("cpu:0")),
    lambda t: (t.device("mps").type, t.device("mps").index),
    lambda t: t.device("cpu") == t.device("cpu:0"),
    lambda t: t.device(type="cpu") == t.device("cpu"),
    lambda t: hash(t.device("cpu")) == hash(t.device("cpu")),
    lambda t: pickle.loads(pickle.dumps(t.device("cuda:3"))),
    lambda t: t.device("foo"),
    lambda t: t.device("cuda:x"),
    lambda t: t.device("cuda:-1"),
    lambda t: t.device("cuda:1", 2),
    lambda t: t.device(3),
    lambda t: t.device("cuda" if t.cuda.is_available() else "cpu"),
    lambda t: t.zeros(2, device=t.device("cpu")),
    lambda t: t.zeros(2, device="cpu").device,
    lambda t: t.zeros(2, device="cuda"),
    lambda t: t.zeros(2, device=0),
    lambda t: t.zeros(2, device="foo"),
    lambda t: t.zeros(2, device=2.5),
    lambda t: t.zeros(2).to("cuda"),
    lambda t: t.zeros(2).cuda(),
    lambda t: t.zeros(2).cpu().get_device(),
    lambda t: (t.zeros(2).is_cuda, t.zeros(2).is_cpu, t.zeros(2).is_pinned(), t.zeros(2).is_shared()),
    lambda t: t.zeros(2).to("cpu", t.float32),
    lambda t: t.zeros(2).to(t.device("cpu")),
    lambda t: t.zeros(2).to(t.int64),
    lambda t: t.zeros(2).to(t.zeros(3, dtype=t.int32)),
    lambda t: t.zeros(2).to(device="cpu", dtype=t.int8, non_blocking=True),
    lambda t: [x.to(t.float32, non_blocking=True) is x for x in [t.zeros(2, dtype=t.float32)]],
    lambda t: [x.to(t.float32, copy=True) is x for x in [t.zeros(2, dtype=t.float32)]],
    lambda t: [x.to("cpu", t.float32, False, True) is x for x in [t.zeros(2, dtype=t.float32)]],
    lambda t: [x.to(None, t.float32) is x for x in [t.zeros(2, dtype=t.float32)]],
    lambda t: [x.to() is x for x in [t.zeros(2)]],
    lambda t: [t.zeros(2, dtype=own).type() for own in (t.float32, t.float64, t.int64, t.bool, t.uint8, t.complex64)],
    lambda t: t.ones(2).type(t.int64),
    lambda t: t.ones(2).type("torch.IntTensor"),
    lambda t: t.ones(2).type("torch.FooTensor"),
    lambda t: (t.ones(2).element_size, t.ones(2, 3).nelement())[1],
    lambda t: t.ones(2, 3).t().contiguous().is_contiguous(),
    lambda t: t.cuda.device_count(),
    lambda t: t.cuda.current_device(),
    lambda t: t.backends.mps.is_available(),
    lambda t: t.cuda.manual_seed_all(0),
    lambda t: t.Size([2, 3]).numel(),
    lambda t: isinstance(t.zeros(2, 3).shape, t.Size),
    lambda t: t.zeros(2, 3).shape == t.Size([2, 3]),
    lambda t: t.finfo(t.float32),
    lambda t: t.finfo(t.float64),
    lambda t: t.finfo(t.complex64),
    lambda t: [getattr(t.finfo(t.float64), name) for name in ("bits", "eps", "max", "min", "tiny", "dtype")],
    lambda t: t.finfo(t.float32).eps,
    lambda t: t.finfo(t.float32) == t.finfo(t.float32),
    lambda t: t.iinfo(t.int8),
    lambda t: (t.iinfo(t.uint8).max, t.iinfo(t.int64).min, t.iinfo(t.int16).bits),
    lambda t: t.finfo(t.int8),
    lambda t: t.iinfo(t.float32),
    lambda t: isinstance(t.ones(2).dtype, t.dtype),
    lambda t: [getattr(t, f"{name}Tensor")([1, 0]).type() for name in
               ("Float", "Double", "Long", "Int", "Short", "Char", "Byte", "Bool")],
    lambda t: t.Generator().initial_seed(),
    lambda t: t.Generator(device="cpu").device,
    lambda t: t.Generator().manual_seed(3).initial_seed(),
    lambda t: t.manual_seed(5) is t.default_generator,
    lambda t: [t.manual_seed(5), t.initial_seed()][1],
    lambda t: t.manual_seed(2**70),
    lambda t: t.manual_seed("a"),
    lambda t: t.is_tensor(t.ones(2)),
    lambda t: t.set_default_device("cpu"),
    lambda t: t.get_default_device(),
    lambda t: t.accelerator.current_accelerator().type if t.accelerator.is_available() else "cpu",
    lambda t: t.get_rng_state().dtype == t.uint8,
    lambda t: t.set_rng_state(3),
    lambda t: t.random.manual_seed(4) is t.default_generator and t.random.initial_seed(),
    lambda t: t.random.default_generator is t.default_generator,
    lambda t: t.Generator().set_state(t.ones(2)),
    lambda t: [g.set_state(g.get_state()) is g for g in [t.Generator()]],
    lambda t: [g.set_state(t.Generator().manual_seed(9).get_state()).initial_seed() for g in [t.Generator()]],
]  # fmt: skip


@needs_torch
@pytest.mark.parametrize("number", range(len(SAME)))
def test_as_torch(number: int) -> None:
    found = []
    for lib in (tg, torch):
        try:
            found.append(_shown(SAME[number](lib)).replace(", dtype=float64", "").replace(", dtype=float32", ""))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    ours, theirs = found
    if "Error: " in theirs:
        for part in (" at start of device string", ". Use torch"):
            theirs = theirs.split(part)[0]
        theirs = theirs.replace("zeros(): ", "")
        assert ours.startswith(theirs.split("\n")[0].rstrip("."))
    else:
        assert ours == theirs


def test_creation_takes_a_device() -> None:
    """All functions that may make leaves, with arguments that they take."""
    given: dict[str, tuple[Any, ...]] = {
        "arange": (3,), "asarray": ([1.0],), "eye": (2,), "fftfreq": (4,), "rfftfreq": (4,), "full": ((2,), 1.0),
        "full_like": (tg.ones(2), 3), "linspace": (0, 1, 3), "logspace": (0, 1, 3), "normal": (0.0, 1.0, (2,)),
        "randint": (3, (2,)), "randint_like": (tg.ones(2), 3), "randperm": (3,), "scalar_tensor": (1.0,),
        "tensor": ([1.0],), "as_tensor": ([1.0],), "new_full": (tg.ones(1), (2,), 1.0),
        "new_tensor": (tg.ones(1), [1.0]), "from_dlpack": (np.ones(2),),
    }  # fmt: skip
    checked = set()
    names = [name for name in dir(tg) if not name.startswith("set_")]
    places = {name: getattr(tg, name) for name in names} | {name: getattr(tg.fft, name) for name in dir(tg.fft)}
    places |= {name: getattr(tg.Tensor, name) for name in dir(tg.Tensor) if name.startswith("new_")}
    for name, function in places.items():
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):
            continue
        if "device" not in parameters or isinstance(function, type):
            assert "requires_grad" not in parameters or name.startswith(("requires_grad", "_", "frombuffer")), name
            continue
        args = given.get(name)
        if args is None:
            args = (tg.ones(2),) if name.endswith("_like") else (tg.ones(1), 2) if name.startswith("new_") else (4,)
        assert function(*args, device="cpu").device == tg.device("cpu")
        assert function(*args, device=None).is_cpu
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            function(*args, device="cuda")
        checked.add(name)
    assert given.keys() <= checked
    assert {"zeros", "ones_like", "rand", "randn_like", "hann_window", "new_zeros"} <= checked


def test_conversion_keeps_the_graph() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    assert x.to("cpu") is x
    assert x.pin_memory().share_memory_().cpu() is x
    (x.to("cpu", tg.float32, copy=True) * 3).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]
    copied = x.to(x, copy=True)
    assert copied is not x
    assert copied.requires_grad


@pytest.mark.parametrize("kind", ["mps", "meta", "hpu"])
def test_other_devices_are_not_there(kind: str) -> None:
    with pytest.raises(NotImplementedError, match="tapegrad computes on the CPU only"):
        check_device(kind)
    with pytest.raises(NotImplementedError, match="tapegrad computes on the CPU only"), tg.device(kind):
        pass
    with tg.device("cpu") as where:
        assert where.type == "cpu"


def test_a_device_does_not_change() -> None:
    where = tg.device("cpu")
    with pytest.raises(AttributeError, match="not writable"):
        where.type = "cuda"
    assert copy.deepcopy(where) == where


def test_half_precision_says_what_to_use() -> None:
    for dtype in (tg.half, tg.float16, tg.bfloat16):
        with pytest.raises(TypeError, match="use float32"):
            tg.ones(2, dtype=dtype)
    with pytest.raises(AttributeError, match="did you mean"):
        tg.HalfTensor  # noqa: B018


def test_generators() -> None:
    first, second = tg.Generator(), tg.Generator("cpu")
    assert tg.rand(3, generator=first).tolist() == tg.rand(3, generator=second).tolist()
    state = first.get_state()
    drawn = tg.randn(3, generator=first)
    first.set_state(state)
    assert tg.equal(tg.randn(3, generator=first), drawn)
    tg.manual_seed(0)
    state = tg.get_rng_state()
    drawn = tg.rand(2)
    tg.set_rng_state(state)
    assert tg.equal(tg.rand(2), drawn)
    with pytest.raises(RuntimeError, match="RNG state is wrong"):
        first.set_state(tg.zeros(5, dtype=tg.uint8))
    assert np.isscalar(tg.default_generator.initial_seed())


def test_fork_rng():
    tg.random.manual_seed(3)
    with tg.random.fork_rng():
        drawn = tg.rand(2)
    assert tg.equal(tg.rand(2), drawn)
    tg.random.manual_seed(3)
    with tg.random.fork_rng(enabled=False):
        tg.rand(2)
    assert not tg.equal(tg.rand(2), drawn)
    state = tg.random.get_rng_state()
    with pytest.raises(ValueError, match="Overflow when unpacking"), tg.random.fork_rng(devices=[]):
        tg.random.manual_seed(2**70 + tg.random.seed())
    assert tg.equal(tg.random.get_rng_state(), state)
    tg.random.set_rng_state(state)
    with pytest.raises(AssertionError, match="CUDA"):
        tg.Generator("cuda")
    seeds = {tg.Generator().seed() for _ in range(3)}
    assert len(seeds) == 3
    functions: list[Callable[[Any], Any]] = [
        lambda g: tg.rand(2, generator=g), lambda g: tg.randint(9, (4,), generator=g),
        lambda g: tg.randperm(9, generator=g), lambda g: tg.normal(0.0, 1.0, (3,), generator=g),
        lambda g: tg.bernoulli(tg.full((9,), 0.5), generator=g), lambda g: tg.poisson(tg.ones(9), generator=g),
        lambda g: tg.multinomial(tg.ones(9), 3, generator=g), lambda g: tg.zeros(4).normal_(generator=g),
        lambda g: tg.zeros(4).uniform_(generator=g),
    ]  # fmt: skip
    for function in functions:
        first, second = function(tg.Generator().manual_seed(1)), function(tg.Generator().manual_seed(1))
        assert tg.equal(first, second)
        assert not tg.equal(function(tg.Generator().manual_seed(2)), function(tg.Generator().manual_seed(3)))
