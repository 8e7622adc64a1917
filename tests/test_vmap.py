"""`vmap`, `functional_call` and `stack_module_state` beside PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tests.both import check, needs_torch

MAPS = {
    "sum": lambda w: w.func.vmap(lambda x: x.sum())(w.m),
    "in_dims": lambda w: w.func.vmap(lambda m, x: m * x, in_dims=(0, None))(w.m, w.x),
    "dimension 1": lambda w: w.func.vmap(lambda x: x * 2, in_dims=1, out_dims=1)(w.m),
    "the last dimension": lambda w: w.func.vmap(lambda x: x * 2, in_dims=-1, out_dims=-1)(w.m),
    "dict": lambda w: w.func.vmap(lambda p: p["a"] * p["b"], in_dims=({"a": 0, "b": None},))({"a": w.m, "b": w.x}),
    "to a tuple": lambda w: w.func.vmap(lambda x: (x, x.sum()), out_dims=(1, 0))(w.m),
    "to a dict": lambda w: w.func.vmap(lambda x: {"a": x})(w.m),
    "a result without items": lambda w: w.func.vmap(lambda x: (x, w.s), out_dims=(0, None))(w.m),
    "a constant": lambda w: w.func.vmap(lambda x: w.s)(w.m),
    "keyword": lambda w: w.func.vmap(lambda x, k: x * k)(w.m, k=w.m),
    "of grad": lambda w: w.func.vmap(w.func.grad(lambda x: (x**2).sum()))(w.m),
    "of grad, with a parameter": lambda w: w.func.vmap(
        w.func.grad(lambda p, x: (p * x).tanh().sum()), (None, 0))(w.x, w.m),
    "inside grad": lambda w: w.func.grad(lambda x: w.func.vmap(lambda row: row @ x)(w.m).exp().sum())(w.x),
    "of jacrev": lambda w: w.func.vmap(w.func.jacrev(lambda x: x * x))(w.m),
    "of a vjp's function": lambda w: w.func.vmap(w.func.vjp(lambda x: x * x, w.x)[1])(w.m),
    "of jvp": lambda w: w.func.vmap(lambda v: w.func.jvp(w.T.exp, (w.x,), (v,))[1])(w.m),
    "of vmap": lambda w: w.func.vmap(w.func.vmap(lambda a, b: a * b, in_dims=(0, None)), in_dims=(None, 0))(w.x, w.m),
    "requires grad": lambda w: w.func.vmap(lambda x, k: x * k, in_dims=(0, None))(w.w, w.s),
    "in chunks": lambda w: w.func.vmap(lambda x: x * 2, chunk_size=2)(w.m),
    "no item": lambda w: w.func.vmap(lambda x: x.sum())(w.m[:0]),
    "no item, dimension 1": lambda w: w.func.vmap(lambda x: x * 2, out_dims=1)(w.m[:0]),
    "same random numbers": lambda w: (lambda r: r[0] - r[1])(
        w.func.vmap(lambda x: w.T.rand(2), randomness="same")(w.m)),
    "at the top": lambda w: w.T.vmap(lambda x: x.sum())(w.m),
    "a number": lambda w: w.func.vmap(lambda x: 3)(w.m),
    "None": lambda w: w.func.vmap(lambda x: None)(w.m),
    "no arguments": lambda w: w.func.vmap(lambda: 3)(),
    "in_dims None": lambda w: w.func.vmap(lambda x: x, in_dims=None)(w.x),
    "nothing mapped": lambda w: w.func.vmap(lambda x: x, in_dims=(None,))(w.x),
    "other sizes": lambda w: w.func.vmap(lambda x, y: x)(w.m, w.x),
    "no dimension": lambda w: w.func.vmap(lambda x: x)(w.s),
    "dimension too large": lambda w: w.func.vmap(lambda x: x, in_dims=4)(w.x),
    "argument a number": lambda w: w.func.vmap(lambda x, y: x * y)(w.x, 3),
    "in_dims a list": lambda w: w.func.vmap(lambda x: x, in_dims=[0])(w.x),
    "in_dims of floats": lambda w: w.func.vmap(lambda x: x, in_dims=(0.5,))(w.x),
    "random numbers": lambda w: w.func.vmap(lambda x: x + w.T.rand(2))(w.m),
    "another randomness": lambda w: w.func.vmap(lambda x: x, randomness="z")(w.m),
    "chunks of 0": lambda w: w.func.vmap(lambda x: x, chunk_size=0)(w.m),
}  # fmt: skip
IN_WORDS = {
    "in_dims too few": (lambda w: w.func.vmap(lambda x, y: x * y, in_dims=(0,))(w.x, w.x),
                        "in_dims is not compatible with the structure of `inputs`."),
    "out_dims too many": (lambda w: w.func.vmap(lambda x: x, out_dims=(0, 0))(w.x),
                          "out_dims is not compatible with the structure of `outputs`."),
    "out_dims too large": (lambda w: w.func.vmap(lambda x: x, out_dims=3)(w.x), "Dimension out of range"),
    "out_dims a string": (lambda w: w.func.vmap(lambda x: x, out_dims="a")(w.x), "`out_dims` must be an int, None or"),
}  # fmt: skip


@needs_torch
@pytest.mark.parametrize("name", MAPS)
def test_vmap_as_pytorch(name: str) -> None:
    check(MAPS[name])


@needs_torch
@pytest.mark.parametrize("name", IN_WORDS)
def test_vmap_refuses_as_pytorch(name: str) -> None:
    check(*IN_WORDS[name])


def test_vmap_of_arrays() -> None:
    m = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(func.vmap(np.sum)(m), m.sum(1))
    slopes = func.vmap(func.grad(lambda x: np.sum(x**2)))(m)
    assert type(slopes) is np.ndarray
    np.testing.assert_array_equal(slopes, 2 * m)


def test_random_numbers() -> None:
    m = tg.zeros(3, 2)
    tg.manual_seed(0)
    different = func.vmap(lambda x: x + tg.rand(2), randomness="different")(m)
    tg.manual_seed(0)
    assert different.tolist() == tg.stack([tg.rand(2) for _ in range(3)]).tolist()
    tg.manual_seed(0)
    same = func.vmap(lambda x: x + tg.rand(2), randomness="same")(m)
    assert same.tolist() == [different[0].tolist()] * 3
    assert tg.rand(2).tolist() == different[1].tolist()


# Modules ------------------------------------------------------------------------------------------------------------


class Module:
    """What `functional_call` asks of a module, in a few lines."""

    def __init__(self, **tensors: Any) -> None:
        vars(self).update(_parameters={}, _buffers={}, _children={}, training=True)
        for name, value in tensors.items():
            store = "_children" if isinstance(value, Module) else "_parameters" if value.requires_grad else "_buffers"
            vars(self)[store][name] = value

    def __getattr__(self, name: str) -> Any:
        for store in ("_parameters", "_buffers", "_children"):
            if name in vars(self)[store]:
                return vars(self)[store][name]
        raise AttributeError(name)

    def _named(self, store: str, remove_duplicate: bool, seen: set[int], prefix: str = "") -> Iterator[Any]:
        for name, tensor in vars(self)[store].items():
            if not remove_duplicate or id(tensor) not in seen:
                seen.add(id(tensor))
                yield prefix + name, tensor
        for name, child in self._children.items():
            yield from child._named(store, remove_duplicate, seen, f"{prefix}{name}.")

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[Any]:
        return self._named("_parameters", remove_duplicate, set())

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[Any]:
        return self._named("_buffers", remove_duplicate, set())


class Scale(Module):
    def __call__(self, x: Any, power: int = 1) -> Any:
        return self.weight * x**power + self.shift


class Two(Module):
    def __call__(self, x: Any) -> Any:
        return self.second(self.first(x))


def scale(weight: float) -> Scale:
    return Scale(weight=tg.tensor(weight, requires_grad=True), shift=tg.tensor(1.0))


def test_functional_call() -> None:
    model = scale(2.0)
    weight, x = model.weight, tg.tensor([1.0, 2.0])
    assert func.functional_call(model, {"weight": tg.tensor(5.0)}, x).tolist() == [6.0, 11.0]
    assert func.functional_call(model, ({"weight": tg.tensor(5.0)}, {"shift": tg.tensor(0.0)}), (x, 2)).tolist() == [
        5,
        20,
    ]
    assert func.functional_call(model, {}, x, {"power": 2}).tolist() == [3.0, 9.0]
    assert model.weight is weight
    with pytest.raises(TypeError, match="pow"):
        func.functional_call(model, {"weight": tg.tensor(5.0)}, x, {"power": "two"})
    assert model.weight is weight
    slope = func.grad(lambda p: func.functional_call(model, p, x).sum())({"weight": tg.tensor(5.0)})
    assert slope == {"weight": 3.0}
    assert weight.grad is None


def test_functional_call_of_nested_and_tied_modules() -> None:
    first = scale(2.0)
    model = Two(first=first, second=first)
    x = tg.tensor(1.0)
    assert func.functional_call(model, {"first.weight": tg.tensor(3.0)}, x).item() == 13.0
    tied = Two(first=first, second=Scale(weight=first.weight, shift=tg.tensor(0.0)))
    assert func.functional_call(tied, {"first.weight": tg.tensor(3.0)}, x).item() == 12.0
    assert func.functional_call(tied, {"first.weight": tg.tensor(3.0)}, x, tie_weights=False).item() == 8.0
    with pytest.raises(ValueError, match="functional_call got multiple values for keys"):
        func.functional_call(tied, {"first.weight": tg.tensor(3.0), "second.weight": tg.tensor(4.0)}, x)


def test_functional_call_refuses() -> None:
    model, x = scale(2.0), tg.ones(2)
    with pytest.raises(RuntimeError, match=r"Error\(s\) in reparametrizing .* Unexpected key\(s\): w\. .* weight"):
        func.functional_call(model, {"w": x}, x, strict=True)
    with pytest.raises(AttributeError, match="layer"):
        func.functional_call(model, {"layer.w": x}, x)
    with pytest.raises(ValueError, match=r"\['weight'\] appeared in multiple dictionaries"):
        func.functional_call(model, ({"weight": x}, {"weight": x}), x)
    with pytest.raises(ValueError, match="Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts"):
        func.functional_call(model, 3, x)
    with pytest.raises(ValueError, match="Expected all elements of parameter_and_buffer_dicts to be dictionaries"):
        func.functional_call(model, [3], x)


def test_batch_norms_without_statistics() -> None:
    class BatchNorm1d(Scale):
        pass

    class InstanceNorm1d(Scale):
        pass

    found = [kind(running_mean=tg.zeros(2)) for kind in (BatchNorm1d, InstanceNorm1d)]
    for norm in found:
        norm.track_running_stats = True
    model = Two(first=found[0], second=found[1])
    model.modules = lambda: iter([model, *found])
    assert func.replace_all_batch_norm_modules_(model) is model
    assert vars(found[0])["running_mean"] is None
    assert [norm.track_running_stats for norm in found] == [False, True]
    assert not hasattr(model, "track_running_stats")


def test_an_ensemble() -> None:
    models = [scale(value) for value in (1.0, 2.0, 3.0)]
    parameters, buffers = func.stack_module_state(models)
    assert (parameters["weight"].tolist(), parameters["weight"].requires_grad) == ([1.0, 2.0, 3.0], True)
    assert (buffers["shift"].tolist(), buffers["shift"].requires_grad) == ([1.0] * 3, False)

    def call(parameters: Any, buffers: Any, x: Any) -> Any:
        return func.functional_call(models[0], (parameters, buffers), (x,))

    x = tg.tensor([1.0, 2.0])
    assert func.vmap(call, in_dims=(0, 0, None))(parameters, buffers, x).tolist() == [
        model(x).tolist() for model in models
    ]
    with pytest.raises(RuntimeError, match="Expected at least one model, got 0"):
        func.stack_module_state([])
    with pytest.raises(RuntimeError, match="to be of the same class"):
        func.stack_module_state([models[0], Two(first=models[1])])
    models[1].training = False  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="same training/eval mode"):
        func.stack_module_state(models)
    frozen = Scale(weight=tg.tensor(1.0).requires_grad_(), shift=tg.tensor(1.0))
    frozen.weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match=r"Expected weight from each model to have the same \.requires_grad"):
        func.stack_module_state([models[0], frozen])
