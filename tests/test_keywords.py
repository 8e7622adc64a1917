"""Names and order of parameters: those of PyTorch's functions, as its parser of arguments takes them."""

from __future__ import annotations

import inspect
from typing import Any, Final

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.table.callers import other_names
from tapegrad.ops.table.public import METHODS, NAMESPACES, names_in
from tests.torch_programs import torch

pytestmark = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")

#: Parameters of PyTorch's that ours have not, for all functions.
NOT_HERE: Final = {
    "layout", "device", "dtype", "pin_memory", "names", "generator", "memory_format", "requires_grad", "out", "out0",
    "out1",
    "_stacklevel", "cudnn_enable", "sparse_grad", "implicit",
}  # fmt: skip
#: Functions whose parameters have other names than PyTorch's, with the reason.
OTHERWISE: Final = {
    **dict.fromkeys(("lstsq", "tensorsolve", "vector_norm", "ormqr"), "named as in PyTorch's documentation"),
    **dict.fromkeys(
        [
            name
            for name in names_in("tapegrad.special")
            if "polynomial" in name or "bessel" in name or name == "airy_ai"
        ],
        "named as in PyTorch's documentation",
    ),
    **dict.fromkeys(("dropout", "alpha_dropout", "feature_alpha_dropout"), "the functions of nn.functional"),
    "uniform_": "from is a word of Python's",
    "Generator": "a class",
    "elu_": "internal parameters",
    "expand_copy": "internal parameters",
}


def _overloads(place: Any, name: str) -> list[tuple[str, ...]]:
    """Return the names of parameters of each overload of PyTorch's function; none if they cannot be known."""
    function = getattr(place, name, None)
    if inspect.isfunction(function):
        parameters = inspect.signature(function).parameters.values()
        wrapped = any(own.kind in (own.VAR_POSITIONAL, own.VAR_KEYWORD) for own in parameters)
        return [] if wrapped else [tuple(own.name for own in parameters)]
    prefix = {torch.linalg: "linalg_", torch.special: "special_", torch.fft: "fft_"}.get(place, "")
    found = []
    for one in (prefix + name, name):
        packet = getattr(torch.ops.aten, one, None)
        if function is not None and packet is not None:
            schemas = [getattr(packet, overload)._schema for overload in packet.overloads()]
            found = [tuple(own.name for own in schema.arguments) for schema in schemas]
            break
    first = "self" if place is torch.Tensor else "input"
    return [tuple(first if own == "self" else own for own in names) for names in found]


PLACES: Final = dict(zip(NAMESPACES, ("", "special", "nn.functional", "linalg", "fft"), strict=True)) | {
    METHODS: "Tensor"
}


def _place(module: Any, path: str) -> Any:
    for part in path.split(".") if path else ():
        module = getattr(module, part)
    return module


CASES: Final = [(path, name) for namespace, path in PLACES.items() for name in names_in(namespace)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", PLACES.values(), ids=lambda path: path or "torch")
def test_functions_take_the_names_of_torch(path: str) -> None:
    ours, theirs = _place(tg, path), _place(torch, path)
    missing = {}
    for one, name in CASES:
        overloads = [] if one != path or name in OTHERWISE else _overloads(theirs, name)
        if not overloads:
            continue
        function = getattr(ours, name)
        own = {*inspect.signature(function).parameters, *other_names(function)}
        own |= {"self"} if path == "Tensor" else set()
        least = min((set(names) - own - NOT_HERE for names in overloads), key=len)
        if least:
            missing[name] = sorted(least)
    assert missing == {}


X = np.eye(3) + 0.25
CALLS: Final = {
    "add": {"input": X, "other": X}, "pow": {"input": X, "exponent": 2.0}, "heaviside": {"input": X, "values": X},
    "float_power": {"input": X, "exponent": X}, "swapaxes": {"input": X, "axis0": 0, "axis1": 1},
    "det": {"input": X}, "matrix_power": {"input": X, "n": 2}, "cholesky": {"input": X}, "slogdet": {"input": X},
    "cholesky_solve": {"input": X, "input2": X}, "orgqr": {"input": X, "input2": X[0]},
    "triangular_solve": {"input": X, "A": X}, "hsplit": {"input": X, "sections": 3},
    "tensor_split": {"input": X, "indices": (1,)}, "unsafe_split": {"input": X, "split_size": 2},
    "result_type": {"tensor": X, "other": X}, "linalg.eigvalsh": {"input": X}, "linalg.det": {"A": X},
    "linalg.matrix_rank": {"input": X}, "linalg.solve_triangular": {"input": X, "B": X, "upper": True},
    "linalg.cond": {"input": X}, "linalg.norm": {"input": X, "ord": 1}, "linalg.pinv": {"input": X},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_calls_by_keyword(name: str) -> None:
    found = []
    for m in (tg, torch):
        arguments = {key: m.tensor(own) if isinstance(own, np.ndarray) else own for key, own in CALLS[name].items()}
        for _ in range(2):  # by a plan that is new, and one that is known
            result = _place(m, name)(**arguments)
        found.append([np.asarray(one) for one in (result if isinstance(result, tuple) else (result,))])
    if name != "result_type":
        for own, other in zip(*found, strict=True):
            np.testing.assert_allclose(own, other, atol=1e-12)


def test_methods_by_keyword() -> None:
    x = tg.tensor(X, requires_grad=True)
    assert [part.shape for part in x.split(split_size=2)] == [(2, 3), (1, 3)]
    assert x.pow(exponent=2.0).tolist() == (x * x).tolist()
    assert x.det().item() == x.slogdet()[1].exp().item() or np.isclose(x.det().item(), np.linalg.det(X))
    assert np.swapaxes(x, axis1=0, axis2=1).tolist() == X.T.tolist()


@pytest.mark.parametrize("arguments", [{"A": X, "input": X}, {"input": X, "upper": True, "A": X}])
def test_one_parameter_by_two_names(arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"(?s)got A=.* and input=.*; input is PyTorch's name of A: give one of them"):
        tg.linalg.cholesky(**arguments)


def test_a_parameter_is_missing() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'A'"):
        tg.linalg.cholesky()
    with pytest.raises(TypeError, match="unexpected keyword argument 'b'"):
        tg.linalg.cholesky(b=X)


@pytest.mark.parametrize(
    "operator", ["__rsub__", "__rtruediv__", "__rpow__", "__rmod__", "__rfloordiv__", "__rmatmul__"]
)
def test_reflected_operators_take_no_other_arguments(operator: str) -> None:
    x, y = tg.ones(2, requires_grad=True), tg.ones(2)
    getattr(tg.Tensor, operator)(x, y)  # compiled code is there now
    for args, kwargs in [
        ((x, y), {"alpha": 2}),
        ((x, y), {"out": y, "dim": 1}),
        ((x, y, 2), {}),
        ((x,), {"other": y, "a": x}),
    ]:
        with pytest.raises(TypeError):
            getattr(tg.Tensor, operator)(*args, **kwargs)
