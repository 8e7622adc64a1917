"""Pruning beside PyTorch: names, masks, values, gradients and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tests.torch_programs import torch

pytestmark = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")

WEIGHT = np.random.default_rng(0).normal(size=(4, 2, 3, 3))


def layers() -> list[tuple[Any, Any, Any]]:
    found = []
    for module in (tg, torch):
        layer = module.nn.Conv2d(2, 4, 3).to(module.float64)
        layer.weight.data = module.tensor(WEIGHT.copy())
        layer.bias.data = module.tensor(np.arange(4.0) - 1.5)
        prune = module.nn.utils.prune if module is tg else __import__("torch.nn.utils.prune").nn.utils.prune
        found.append((module, prune, layer))
    return found


def state(layer: Any) -> dict[str, np.ndarray]:
    return {name: np.asarray(value.detach()) for name, value in layer.state_dict().items()}


STEPS = {
    "elements": lambda p, m, x: p.l1_unstructured(x, "weight", amount=0.3),
    "number": lambda p, m, x: p.l1_unstructured(x, name="bias", amount=2),
    "scores": lambda p, m, x: p.l1_unstructured(x, "weight", 5, importance_scores=m.arange(72.0).view(4, 2, 3, 3)),
    "slices": lambda p, m, x: p.ln_structured(x, "weight", amount=0.5, n=2, dim=0),
    "largest": lambda p, m, x: p.ln_structured(x, "weight", amount=1, n=float("inf"), dim=-1),
    "first": lambda p, m, x: p.ln_structured(x, "weight", amount=1, n=1, dim=1),
    "mask": lambda p, m, x: p.custom_from_mask(x, "bias", m.tensor([0, 1, 0, 1])),
    "identity": lambda p, m, x: p.identity(x, "weight"),
    "nothing": lambda p, m, x: p.l1_unstructured(x, "weight", amount=0),
    "all": lambda p, m, x: p.l1_unstructured(x, "weight", amount=1.0),
    "global": lambda p, m, x: p.global_unstructured(
        [(x, "weight"), (x, "bias")], pruning_method=p.L1Unstructured, amount=0.4
    ),
}


@pytest.mark.parametrize(
    "names",
    [
        *[(name,) for name in STEPS], ("elements", "slices"), ("slices", "elements", "number"),
        ("slices", "slices", "mask"), ("identity", "elements", "global", "elements"),
    ],
)  # fmt: skip
def test_as_torch(names: tuple[str, ...]) -> None:
    results = []
    for module, prune, layer in layers():
        for name in names:
            STEPS[name](prune, module, layer)
        x = module.tensor(np.random.default_rng(1).normal(size=(1, 2, 4, 4)))
        (layer(x) ** 2).sum().backward()
        parameters = {name: np.asarray(p.grad) for name, p in layer.named_parameters()}
        hooks = [type(hook).__name__ for hook in layer._forward_pre_hooks.values()]
        was = prune.is_pruned(layer)
        values = {name: np.asarray(getattr(layer, name).detach()) for name in ("weight", "bias")}
        for name in ("weight", "bias"):
            if hasattr(layer, f"{name}_orig"):
                assert prune.remove(layer, name) is layer
        assert not prune.is_pruned(layer)
        results.append(({}, parameters, values, state(layer), hooks, was))
    for own, other in zip(results[0][:4], results[1][:4], strict=True):
        assert list(own) == list(other)
        for name in own:
            np.testing.assert_allclose(own[name], other[name], rtol=1e-10, atol=1e-12, err_msg=name)
    assert results[0][4:] == results[1][4:]


@pytest.mark.parametrize("names", [("elements",), ("elements", "slices")])
def test_state(names: tuple[str, ...]) -> None:
    own, other = layers()
    for module, prune, layer in (own, other):
        for name in names:
            STEPS[name](prune, module, layer)
    assert list(state(own[2])) == list(state(other[2]))
    own[2].load_state_dict({name: tg.ones_like(value) for name, value in own[2].state_dict().items()})
    assert own[2](tg.ones(1, 2, 3, 3, dtype=tg.float64)).tolist() == [[[[19.0]]] * 4]


@pytest.mark.parametrize("structured", [False, True])
def test_at_random(structured: bool) -> None:
    for module, prune, layer in layers():
        if structured:
            prune.random_structured(layer, "weight", amount=3, dim=0)
            assert sorted(layer.weight_mask.sum((1, 2, 3)).tolist()) == [0, 0, 0, 18]
        else:
            prune.random_unstructured(layer, "weight", amount=0.25)
            assert layer.weight_mask.sum().item() == 54
        kept = np.asarray(layer.weight_mask) == 1
        np.testing.assert_array_equal(np.asarray(layer.weight.detach())[kept], WEIGHT[kept])
        assert not np.asarray(layer.weight.detach())[~kept].any()
        assert module.is_tensor(prune.RandomUnstructured(2).prune(module.ones(5)))
        assert prune.RandomUnstructured(2).prune(module.ones(5)).sum().item() == 3


def test_own_methods() -> None:
    found = []
    for _, prune, layer in layers():

        class EverySecond(prune.BasePruningMethod):  # type: ignore[name-defined, misc]
            PRUNING_TYPE = "unstructured"

            def compute_mask(self, t: Any, default_mask: Any) -> Any:
                mask = default_mask.clone()
                mask.view(-1)[::2] = 0
                return mask

        EverySecond.apply(layer, "bias")
        EverySecond.apply(layer, "bias")
        found.append((layer.bias.tolist(), [len(hook) for hook in layer._forward_pre_hooks.values()]))
        with pytest.raises(TypeError, match="is not a BasePruningMethod subclass"):
            next(iter(layer._forward_pre_hooks.values())).add_pruning_method(3)
    assert found[0] == found[1]


ERRORS = {
    "part": (lambda p, x: p.l1_unstructured(x, "weight", amount=1.5), ValueError, "should either be a float in the"),
    "negative": (lambda p, x: p.l1_unstructured(x, "weight", amount=-1), ValueError, "should either be a float"),
    "kind": (lambda p, x: p.l1_unstructured(x, "weight", amount="all"), TypeError, "Invalid type for amount"),
    "too many": (lambda p, x: p.l1_unstructured(x, "bias", amount=5), ValueError, "should be smaller than the number"),
    "vector": (lambda p, x: p.ln_structured(x, "bias", 1, 2, 0), ValueError, "only be applied to multidimensional"),
    "dim": (lambda p, x: p.ln_structured(x, "weight", 1, 2, 7), IndexError, "Invalid index 7 for tensor of size"),
    "scores": (lambda p, x: p.l1_unstructured(x, "bias", 1, x.weight), AssertionError, "should have the same shape"),
    "global": (lambda p, x: p.global_unstructured([(x, "bias")], p.LnStructured, amount=1, n=2), TypeError, "Only"),
    "list": (lambda p, x: p.global_unstructured(3, p.L1Unstructured), TypeError, "parameters is not an Iterable"),
    "remove": (lambda p, x: p.remove(x, "weight"), ValueError, "has to be pruned before pruning can be removed"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, error, words = ERRORS[name]
    for module, prune, layer in layers():
        before = state(layer)
        with pytest.raises(error, match=words):
            call(prune, layer)
        assert module is torch or list(state(layer)) == list(before)
        assert not prune.is_pruned(layer)
