"""The printed text: literal examples that always run, and torch itself as the oracle where installed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tapegrad.printing import format_tensor, set_printoptions
from tests.tiers import mostly_full


@pytest.fixture(autouse=True)
def _default_options() -> Iterator[None]:
    set_printoptions(profile="default")
    yield
    set_printoptions(profile="default")


@pytest.fixture
def torch() -> Iterator[Any]:
    """Torch with float64 as its default, as it was afterwards."""
    torch = pytest.importorskip("torch")
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.set_printoptions(profile="default")
    yield torch
    torch.set_default_dtype(before)
    torch.set_printoptions(profile="default")


INF, NAN = math.inf, math.nan

LITERALS = [
    # rank 0 and empty
    (np.array(3.14), "tensor(3.1400)"),
    (np.float64(-0.0), "tensor(-0.)"),
    (np.array(5), "tensor(5)"),
    (np.bool_(True), "tensor(True)"),
    (np.array(1e-10), "tensor(1.0000e-10)"),
    (np.zeros(0), "tensor([])"),
    (np.zeros((0, 3)), "tensor([], size=(0, 3))"),
    (np.zeros((2, 0, 3), np.float32), "tensor([], size=(2, 0, 3), dtype=float32)"),
    (np.zeros(0, bool), "tensor([], dtype=bool)"),
    (np.zeros(0, np.int64), "tensor([], dtype=int64)"),
    (np.zeros(0, complex), "tensor([], dtype=complex128)"),
    # dtypes
    (np.array([1.0, 2.0]), "tensor([1., 2.])"),
    (np.array([1.0, 2.0], np.float32), "tensor([1., 2.], dtype=float32)"),
    (np.array([1.5, 2.0], np.float16), "tensor([1.5000, 2.0000], dtype=float16)"),
    (np.array([5, -100]), "tensor([   5, -100])"),
    (np.array([1, 2], np.uint8), "tensor([1, 2], dtype=uint8)"),
    (np.array([True, False]), "tensor([ True, False])"),
    (np.array([1.0, 2.0], ">f8"), "tensor([1., 2.])"),
    (np.array([1 + 2j, -3.5 - 1j]), "tensor([ 1.0000+2.j, -3.5000-1.j])"),
    (np.array([1 + 2j], np.complex64), "tensor([1.+2.j], dtype=complex64)"),
    (np.array([complex(NAN, 2), complex(0, -INF)]), "tensor([nan+2.j, 0.-infj])"),
    # choice between whole, fixed and scientific
    (np.array([1.5, -2.25]), "tensor([ 1.5000, -2.2500])"),
    (np.array([1.0, 1000.0]), "tensor([   1., 1000.])"),
    (np.array([1.0, 1001.0]), "tensor([1.0000e+00, 1.0010e+03])"),
    (np.array([1e8]), "tensor([100000000.])"),
    (np.array([1e8 + 1]), "tensor([1.0000e+08])"),
    (np.array([1e-4]), "tensor([0.0001])"),
    (np.array([9e-5]), "tensor([9.0000e-05])"),
    (np.array([5e-324, 1.0]), "tensor([4.9407e-324,  1.0000e+00])"),
    (np.array([0.0, 1e-5]), "tensor([0.0000e+00, 1.0000e-05])"),
    # zero, infinity and nan decide nothing
    (np.array([NAN, 1.5]), "tensor([   nan, 1.5000])"),
    (np.array([NAN, INF, -INF, 1.0]), "tensor([nan, inf, -inf, 1.])"),
    (np.array([-0.0, 0.0, 1.5]), "tensor([-0.0000, 0.0000, 1.5000])"),
    # layout
    (np.ones((2, 2)), "tensor([[1., 1.],\n        [1., 1.]])"),
    (
        np.ones((2, 2, 2)),
        "tensor([[[1., 1.],\n         [1., 1.]],\n\n        [[1., 1.],\n         [1., 1.]]])",
    ),
    (
        np.arange(25.0),
        (
            "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n"
            "        14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24.])"
        ),
    ),
    (np.arange(1001.0), "tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.])"),
    (
        np.zeros((40, 40)),
        (
            "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        ...,\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.]])"
        ),
    ),
]


@pytest.mark.parametrize(("data", "text"), LITERALS, ids=[text[:40] for _, text in LITERALS])
def test_literal(data: np.ndarray, text: str) -> None:
    assert format_tensor(data) == text


def test_suffixes_follow_the_dtype_and_wrap() -> None:
    data = np.arange(14.0)
    row = "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.]"
    assert format_tensor(data, suffixes=["requires_grad=True"]) == f"{row},\n       requires_grad=True)"
    assert (
        format_tensor(data.astype(np.float32), suffixes=["grad_fn=<MulBackward0>"])
        == f"{row},\n       dtype=float32, grad_fn=<MulBackward0>)"
    )
    assert format_tensor(np.ones(2), suffixes=["a", "b=1"]) == "tensor([1., 1.], a, b=1)"


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (np.float32, "tensor([1.])"),
        (np.float64, "tensor([1.], dtype=float64)"),
        (np.complex64, "tensor([1.+0.j])"),
        (np.complex128, "tensor([1.+0.j], dtype=complex128)"),
    ],
)
def test_default_dtype_needs_no_mention(dtype: type[np.generic], text: str) -> None:
    assert format_tensor(np.ones(1, dtype), default_dtype=np.dtype(np.float32)) == text


def test_printoptions_last_until_replaced() -> None:
    set_printoptions(precision=2, linewidth=20)
    assert format_tensor(np.array([1.5, 2.5, 3.5])) == "tensor([1.50, 2.50,\n        3.50])"
    set_printoptions(profile="short")
    assert format_tensor(np.array([1.5, 2.5, 3.5])) == "tensor([1.50, 2.50, 3.50])"
    set_printoptions(profile="full")
    assert "..." not in format_tensor(np.arange(2000))
    set_printoptions(profile="default", threshold=5, edgeitems=1)
    assert format_tensor(np.arange(6)) == "tensor([0,  ..., 5])"


def test_sci_mode_is_set_by_every_call() -> None:
    set_printoptions(sci_mode=True)
    assert format_tensor(np.ones(1)) == "tensor([1.0000e+00])"
    set_printoptions(sci_mode=False)
    assert format_tensor(np.array([1e9, 1.0])) == "tensor([1000000000.,          1.])"
    set_printoptions(precision=4)
    assert format_tensor(np.array([1e9, 1.0])) == "tensor([1.0000e+09, 1.0000e+00])"


@pytest.mark.parametrize(
    "options",
    [{"profile": "bogus"}, {"precision": -1}, {"threshold": NAN}, {"edgeitems": -1}, {"linewidth": 0}],
)
def test_wrong_printoptions_are_named_and_change_nothing(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValueError, match=f"set_printoptions: {name}="):
        set_printoptions(**{"precision": 1, **options})
    assert format_tensor(np.array(1.5)) == "tensor(1.5000)"


def test_input_is_not_changed_and_may_be_a_read_only_strided_view() -> None:
    data = np.arange(12.0).reshape(3, 4)
    data.flags.writeable = False
    assert format_tensor(data[::2, ::-2]) == "tensor([[ 3.,  1.],\n        [11.,  9.]])"


# -- torch as the oracle ------------------------------------------------------------------------------------

SHAPES = [
    (), (0,), (0, 3), (2, 0, 3), (1,), (3,), (2, 3), (2, 2, 2), (7,), (30,), (100,), (1000,), (1001,),
    (3, 40), (40, 40), (6, 200), (200, 6), (1, 1001), (1001, 1), (11, 11, 11), (2, 1, 3, 2), (2, 600, 1, 2),
]  # fmt: skip
DTYPES = ["f8", "f4", "f2", "c16", "c8", "?", "i8", "i4", "i2", "i1", "u1", "u2", "u4", "u8"]
FLOATS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "whole": lambda rng, shape: np.round(100 * rng.normal(size=shape)),
    "large whole": lambda rng, shape: np.round(1e9 * rng.normal(size=shape)),
    "mixed magnitudes": lambda rng, shape: rng.normal(size=shape) * 10.0 ** rng.integers(-8, 9, size=shape),
    "tiny": lambda rng, shape: rng.normal(size=shape) * 1e-307,
    "huge": lambda rng, shape: rng.normal(size=shape) * 1e300,
    "not finite": lambda rng, shape: rng.choice([1.0, 2.5, -0.0, NAN, INF, -INF], size=shape),
    "none but special": lambda rng, shape: rng.choice([0.0, -0.0, NAN, INF, -INF], size=shape),
    "ratio 1000": lambda rng, shape: rng.choice([0.5, 500.0, -3.0], size=shape),
    "zero": lambda rng, shape: np.zeros(shape),
}


def draw(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Return an array of the dtype; `kind` names the floats, and for integers the seed alone decides."""
    if dtype.kind == "b":
        return np.array(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        bound = min(info.max, 10 ** int(rng.integers(1, 19)))
        return np.array(rng.integers(max(info.min, -bound), bound, size=shape)).astype(dtype)
    data = np.empty(shape, dtype)
    with np.errstate(over="ignore"):
        data.real = FLOATS[kind](rng, shape)
        if dtype.kind == "c":
            data.imag = FLOATS[rng.choice(list(FLOATS))](rng, shape)
    return data


def by_torch(tensor: Any) -> str:
    return repr(tensor).replace("torch.", "")


def test_literals_are_what_torch_prints(torch: Any) -> None:
    for data, text in LITERALS:
        native = np.array(data, data.dtype.newbyteorder("="))  # torch takes no other byte order
        assert by_torch(torch.from_numpy(native)) == text


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_torch_prints_the_same(torch: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    for name in DTYPES:
        dtype = np.dtype(name)
        for kind in FLOATS if dtype.kind in "fc" else ["normal", "whole"]:
            data = draw(rng, dtype, shape, kind)
            tensor = torch.from_numpy(data)
            assert format_tensor(data) == by_torch(tensor), (name, kind)
            if dtype.kind in "fc":
                tensor.requires_grad_()
                assert format_tensor(data, suffixes=["requires_grad=True"]) == by_torch(tensor), (name, kind)
                suffix = "grad_fn=<CloneBackward0>"
                assert format_tensor(data, suffixes=[suffix]) == by_torch(tensor.clone()), (name, kind)


@pytest.mark.parametrize("name", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(3,), (3, 8), (2, 2, 9), (0, 3), ()], ids=str)
def test_torch_breaks_lines_at_the_same_column(torch: Any, shape: tuple[int, ...], name: str) -> None:
    data = np.ones(shape, name)
    tensor = torch.from_numpy(data).requires_grad_()
    for linewidth in range(1, 100):
        set_printoptions(linewidth=linewidth)
        torch.set_printoptions(linewidth=linewidth)
        assert format_tensor(data, suffixes=["requires_grad=True"]) == by_torch(tensor), linewidth


@pytest.mark.parametrize("sci_mode", [None, True, False])
@pytest.mark.parametrize("edgeitems", [0, 1, 2, 5])
@pytest.mark.parametrize("threshold", mostly_full([0, 2, 50], [2]))
def test_torch_agrees_under_options(torch: Any, threshold: int, edgeitems: int, sci_mode: Any) -> None:
    rng = np.random.default_rng(1)
    common = {"threshold": threshold, "edgeitems": edgeitems, "sci_mode": sci_mode}
    for precision in (0, 1, 7):
        set_printoptions(precision, **common)
        torch.set_printoptions(precision, **common)
        for shape in [(), (0,), (0, 3), (3,), (12,), (5, 12), (1, 3, 9)]:
            for name in ("f8", "f4", "c16", "i8", "?"):
                for kind in FLOATS:
                    data = draw(rng, np.dtype(name), shape, kind)
                    case = (precision, shape, name, kind)
                    assert format_tensor(data) == by_torch(torch.from_numpy(data)), case


@pytest.mark.parametrize("default", ["float32", "float64", "float16"])
def test_torch_agrees_on_which_dtypes_to_mention(torch: Any, default: str) -> None:
    torch.set_default_dtype(getattr(torch, default))
    for name in DTYPES:
        for shape in [(), (2,), (0,)]:
            data = np.ones(shape, name)
            text = format_tensor(data, default_dtype=np.dtype(default))
            assert text == by_torch(torch.from_numpy(data)), (name, shape)
