"""PyTorch's own samples of each function that both libraries have: a few of each here, all in the full tier."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.tiers import mostly_full

pytest.importorskip("torch", reason="PyTorch is not installed")
opinfo = pytest.importorskip("tests.opinfo", reason="expecttest is not installed, which PyTorch's samples need")

FEW = 2  # samples of a function and a dtype
REFUSING = [op for op in opinfo.op_db if op.error_inputs_func and opinfo.ours(op) is not None]
SHARED = [op for op in opinfo.infos() if opinfo.ours(op) is not None]


@pytest.mark.parametrize("op", SHARED[::5], ids=opinfo.title)  # the others, with more samples, in the full tier
def test_samples(op: Any) -> None:
    """Values, gradients and second gradients of PyTorch's samples agree."""
    _compare(op, FEW)


@pytest.mark.full
@pytest.mark.parametrize("op", SHARED, ids=opinfo.title)
def test_all_samples(op: Any) -> None:
    """The same for all samples."""
    _compare(op, opinfo.MOST)


@pytest.mark.parametrize("op", mostly_full(REFUSING, 3), ids=opinfo.title)
def test_errors(op: Any) -> None:
    """What PyTorch refuses is refused, by an error of its type that begins with its words."""
    found = list(opinfo.refusals(op, opinfo.ours(op)))
    assert not found, "\n".join(found)


def test_errors_are_looked_at() -> None:
    """A function that accepts all, or raises another type, or other words, is found."""
    (op,) = [op for op in opinfo.op_db if op.name == "dot"]

    def raising(error: Exception) -> Any:
        def function(*args: Any) -> Any:
            raise error

        return function

    wrong = [lambda *args: None, raising(TypeError("1D tensors expected, but got 1D")), raising(RuntimeError("no"))]
    assert all(list(opinfo.refusals(op, function)) for function in wrong)
    assert opinfo.first_words("torch.f(): Got [2, 3] of a size, not 4") == ["got", "of", "a"]


def test_samples_are_drawn_without_looking_at_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which would take most of their time: what keeps PyTorch from it is known under other names in its versions."""
    (op,) = [op for op in opinfo.op_db if op.name == "dot"]

    looked: list[Any] = []

    def look(*given: Any, **_: Any) -> list[Any]:
        looked.append(given)
        return []

    for name in ("inspect.stack", "traceback.format_stack"):
        monkeypatch.setattr(name, look)
    first, second = ([own.input.tolist() for own in op.sample_inputs("cpu", opinfo.torch.float64)] for _ in range(2))
    assert first == second
    assert not looked


def test_errors_of_what_is_not_here() -> None:
    """Each function that PyTorch has error samples of exists here, or a reason is given."""
    missing = {op.name for op in opinfo.op_db if op.error_inputs_func and opinfo.ours(op) is None}
    assert missing == set(opinfo.NOT_HERE)


def _compare(op: Any, most: int) -> None:
    found = list(opinfo.differences(op, opinfo.ours(op), most))
    assert not found, "\n".join(found)


#: Functions of integers and bools whose results were others, or which refused them.
OF_INTEGERS: Final = {
    "nn.functional.max_pool2d": "uint8 int64", "nn.functional.max_pool3d": "int32",
    "nn.functional.avg_pool1d": "int64", "nn.functional.avg_pool2d": "int64",
    "nn.functional.interpolate(nearest)": "uint8", "scatter_reduce(amax)": "bool", "masked.var": "float32",
}  # fmt: skip


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_samples_of_other_dtypes(name: str) -> None:
    (op,) = (own for own in opinfo.op_db if opinfo.title(own) == name)
    dtypes = [getattr(opinfo.torch, own) for own in OF_INTEGERS[name].split()]
    found = list(opinfo.differences(op, opinfo.ours(op), 12, dtypes))
    assert not found, "\n".join(found)
