"""NumPy's names of arguments, on every function and method that has parameters of PyTorch's names for them."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.table import public
from tapegrad.ops.table.callers import numpy_names

X = np.arange(1.0, 10.0).reshape(3, 3) / 7 + np.eye(3)
INDICES, FEW = np.array([[0, 2, 1], [1, 0, 2]]), np.array([2, 0])

# What functions take besides the operand and `dim`.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "unflatten": {"sizes": (1, 3)}, "gather": {"index": INDICES}, "take_along_dim": {"indices": INDICES.T[:, :1]},
    "narrow": {"start": 0, "length": 2}, "narrow_copy": {"start": 1, "length": 1}, "select": {"index": 1},
    "select_copy": {"index": -1}, "split": {"split_size_or_sections": 2},
    "Tensor.split": {"split_size": 2}, "split_with_sizes": {"split_sizes": (1, 2)},
    "split_with_sizes_copy": {"split_sizes": (2, 1)}, "chunk": {"chunks": 2}, "cross": {"other": X.T},
    "renorm": {"p": 2.0, "maxnorm": 0.5}, "scatter": {"index": INDICES, "src": X},
    "scatter_add": {"index": INDICES, "src": X},
    "scatter_reduce": {"index": INDICES, "src": X, "reduce": "amax"}, "index_select": {"index": FEW},
    "index_add": {"index": np.array([2, 0, 1]), "source": X}, "index_copy": {"index": np.array([2, 0, 1]), "source": X},
    "index_fill": {"index": FEW, "value": 0.5}, "cosine_similarity": {"x2": X.T}, "pairwise_distance": {"x2": X.T},
    "index_reduce": {"index": np.array([2, 0, 1]), "source": X, "reduce": "amax"}, "tensordot": {"b": X},
    "tensorsolve": {"B": np.ones(3)}, "vecdot": {"y": X.T}, "quantile": {"q": 0.3},
    "nanquantile": {"q": 0.3}, "kthvalue": {"k": 2}, "repeat_interleave": {"repeats": 2},
    "select_scatter": {"src": np.ones(3), "index": 1}, "slice_scatter": {"src": np.ones((3, 1)), "end": 1},
    "tensor_split": {"indices_or_sections": 2}, "unsafe_split": {"split_size": 2}, "unsafe_chunk": {"chunks": 2},
    "unsafe_split_with_sizes": {"split_sizes": (1, 2)}, "topk": {"k": 2}, "roll": {"shifts": 1}, "glu": {},
}  # fmt: skip
# Values of ours that differ from the default, where 1 and True are none that the function takes.
VALUES: dict[str, Any] = {
    "permute": (1, 0), "permute_copy": (1, 0), "tensordot": 1, "tensorsolve": (1,), "matrix_norm": (1, 0),
    "rot90": (1, 0), "squeeze": 1, "fft2": (0, 1), "ifft2": (0, 1), "rfft2": (1, 0), "irfft2": (1, 0),
    "hfft2": (1, 0), "ihfft2": (1, 0), "glu": 0, "fftn": (0,), "ifftn": (0,), "rfftn": (0,), "irfftn": (0,),
    "hfftn": (0,), "ihfftn": (0,), "cosine_similarity": 0, "normalize": 0,
}  # fmt: skip

FUNCTIONS = {
    f"{one.names.namespaces[0] if one.names.namespaces else 'Tensor'}.{one.name}": one
    for one in public.registry
    if inspect.isfunction(one.function) and numpy_names(one.function)
}


def results(function: Callable[..., Any], name: str, first: Any, **arguments: Any) -> list[Any]:
    """Return the arrays that a call gives."""
    tg.manual_seed(0)
    if name in ("cat", "stack"):
        first = [first, first]
    if name == "glu":
        first = np.concatenate([first, first])
    out = function(first, **ARGUMENTS.get(name, {}) | arguments)
    parts = out if isinstance(out, tuple) else (out,)
    return [part.detach().numpy() if isinstance(part, tg.Tensor) else np.asarray(part) for part in parts]


def value_of(name: str, ours: str) -> Any:
    """Return a value of a parameter that is not its default."""
    return {"keepdim": True, "correction": 0}.get(ours, VALUES.get(name, 1))


@pytest.mark.parametrize(
    ("where", "theirs"), [(where, theirs) for where, one in FUNCTIONS.items() for theirs in numpy_names(one.function)]
)
def test_each_function_takes_them(where: str, theirs: str) -> None:
    one = FUNCTIONS[where]
    ours = numpy_names(one.function)[theirs]
    more = {}
    if ours == "keepdim" and "dim" in inspect.signature(one.function).parameters:
        more = {"dim": value_of(one.name, "dim")}
    value = value_of(one.name, ours)
    expected = results(one.function, one.name, tg.tensor(X), **{ours: value}, **more)
    found = results(one.function, one.name, tg.tensor(X), **{theirs: value}, **more)
    again = results(one.function, one.name, tg.tensor(X), **{theirs: value}, **more)  # by a plan that is known
    assert len(found) == len(again) == len(expected)
    for values in (found, again):
        for own, other in zip(values, expected, strict=True):
            np.testing.assert_array_equal(own, other)
    with pytest.raises(TypeError, match=rf"\w+\(\) got .*{ours}"):
        one.function(tg.tensor(X), **{**ARGUMENTS.get(one.name, {}), **more, ours: value, theirs: value})


@pytest.mark.parametrize("name", [one.name for one in FUNCTIONS.values() if one.names.method])
def test_each_method_takes_them(name: str) -> None:
    method = getattr(tg.Tensor, name)
    case = f"Tensor.{name}" if f"Tensor.{name}" in ARGUMENTS else name
    for theirs, ours in numpy_names(method).items():
        more = {"dim": value_of(name, "dim")} if ours == "keepdim" else {}
        expected = results(method, case, tg.tensor(X), **{ours: value_of(name, ours)}, **more)
        for own, other in zip(
            results(method, case, tg.tensor(X), **{theirs: value_of(name, ours)}, **more), expected, strict=True
        ):
            np.testing.assert_array_equal(own, other)


def test_numpys_arguments_of_methods() -> None:
    x, t = np.array(X), tg.tensor(X)
    for own, expected in (
        (t.std(ddof=0), x.std()), (t.var(axis=0, ddof=1), x.var(axis=0, ddof=1)), (t.round(1), x.round(1)),
        (t.min(axis=(0,)), x.min(axis=(0,))), (t.max(axis=(0, 1), keepdims=True), x.max(axis=(0, 1), keepdims=True)),
    ):  # fmt: skip
        np.testing.assert_allclose(own, expected, rtol=1e-15)


@pytest.mark.parametrize("name", ["scatter_", "index_fill_", "scatter_add_"])
def test_methods_in_place_take_them(name: str) -> None:
    x, y = tg.tensor(X), tg.tensor(X)
    more = ARGUMENTS.get(name[:-1], {})
    assert getattr(x, name)(axis=1, **more).tolist() == getattr(y, name)(dim=1, **more).tolist()


@pytest.mark.parametrize("where", list(FUNCTIONS))
def test_functions_are_pickled_by_name(where: str) -> None:
    one = FUNCTIONS[where]
    if one.names.namespaces and one.name == one.function.__name__:
        assert pickle.loads(pickle.dumps(one.function)) is one.function


def test_gradients_flow() -> None:
    x, y = tg.tensor(X, requires_grad=True), tg.tensor(X, requires_grad=True)
    (tg.softmax(x, axis=1).std(axis=0) * tg.linalg.norm(x, axis=0)).sum(axis=0, keepdims=True).backward()
    (tg.softmax(y, 1).std(0) * tg.linalg.norm(y, dim=0)).sum(0, True).backward()
    assert x.grad is not None
    assert y.grad is not None
    assert x.grad.tolist() == y.grad.tolist()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: x.sum(0, axis=0), r"sum\(\) got dim=0 and axis=0; axis is NumPy's name of dim"),
        (lambda x: x.amax(None, axis=0), r"amax\(\) got dim=None and axis=0"),
        (lambda x: tg.cat([x], 0, axis=0), r"cat\(\) got dim=0 and axis=0"),
        (lambda x: tg.narrow(x, 0, 0, 1, axis=0), r"narrow\(\) got dim=0 and axis=0"),
        (lambda x: tg.flip(x, 0, axis=1), r"flip\(\) got multiple values for argument 'dims'"),
        (lambda x: x.amax(0, True, keepdims=False), r"amax\(\) got keepdim=True and keepdims=False"),
        (lambda x: x.amax(0, True, 1), r"amax\(\) got dim=0 and axis=1"),
        (lambda x: tg.chunk(x, 2, 0, 1), r"chunk\(\) takes from 2 to 3 positional arguments but 4 were given"),
        (lambda x: tg.topk(x), r"topk\(\) missing 1 required positional argument: 'k'"),
        (lambda x: tg.narrow(x, axis=0), r"narrow\(\) missing 2 required positional arguments: 'start' and 'length'"),
        (lambda x: x.sum(axes=0), r"sum\(\) got an unexpected keyword argument 'axes'"),
        (lambda x: x.std(axes=0), r"std\(\) got an unexpected keyword argument 'axes'"),
    ],
)
def test_refusals(call: Callable[[tg.Tensor], Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call(tg.tensor(X))
