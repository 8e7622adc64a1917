"""PyTorch's own samples of its modules, run here: values, gradients, names of the state, and errors.

The samples are those of its database of modules, which ships in its wheel.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest

import tapegrad as tg
from tests.tiers import mostly_full

torch = pytest.importorskip("torch")
modules = pytest.importorskip("torch.testing._internal.common_modules")

NOT_HERE: Final = {"LinearCrossEntropyLoss": "declared out of scope"}
#: Errors of what cannot be asked for here, by module and number.
NOT_ASKED: Final = {("NLLLoss", 0): "there is no float16"}
DRAWING: Final = re.compile("Dropout|RReLU|Fractional")
ALL: Final = [info for info in modules.module_db if info.module_cls.__name__ not in NOT_HERE]


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def ours(value: Any) -> Any:
    """Return what stands here for a value of PyTorch's."""
    if isinstance(value, torch.Tensor):
        return tg.tensor(value.detach().numpy().copy(), requires_grad=value.requires_grad)
    if isinstance(value, torch.nn.TransformerEncoderLayer):
        attention, first = value.self_attn, value.linear1
        return tg.nn.TransformerEncoderLayer(
            first.in_features, attention.num_heads, first.out_features, 0.0, ours(value.activation),
            batch_first=attention.batch_first, norm_first=value.norm_first, bias=first.bias is not None,
        )  # fmt: skip
    if isinstance(value, torch.dtype):
        return getattr(tg, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, dict):
        return {name: ours(own) for name, own in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(ours, value))
    if callable(value) and str(getattr(value, "__module__", "")).startswith("torch"):
        return getattr(tg.nn.functional, value.__name__)
    return value


def tensors(value: Any) -> list[Any]:
    """Return the tensors of nested containers."""
    if isinstance(value, (list, tuple, dict)):
        return [own for part in (value.values() if isinstance(value, dict) else value) for own in tensors(part)]
    return [value] if isinstance(value, (torch.Tensor, tg.Tensor)) else []


def made(info: Any, sample: Any, is_training: bool) -> tuple[Any, Any]:
    """Return PyTorch's module and ours, of the same state."""
    args, kwargs = sample.constructor_input.args, sample.constructor_input.kwargs
    theirs = info.module_cls(*args, **kwargs)
    own = getattr(tg.nn, info.module_cls.__name__)(*ours(args), **ours(kwargs))
    if sample.forward_input is not None and "Lazy" in info.name:
        for module, call in (theirs, sample.forward_input), (own, sample.forward_input):
            convert = ours if module is own else lambda value: value
            module(*convert(call.args), **convert(call.kwargs))
    theirs.train(is_training)
    own.train(is_training)
    state = theirs.state_dict()
    assert list(own.state_dict()) == list(state)
    own.load_state_dict(ours(dict(state)))
    assert "Transformer" in info.name or repr(own) == repr(theirs)
    return theirs, own


def check_sample(info: Any, sample: Any, is_training: bool) -> None:
    """Check that a module computes what PyTorch's does, and has its gradients."""
    theirs, own = made(info, sample, is_training)
    call = sample.forward_input
    if call is None:
        return
    args, kwargs = ours(call.args), ours(call.kwargs)
    expected, found = tensors(theirs(*call.args, **call.kwargs)), tensors(own(*args, **kwargs))
    about = [(tuple(y.shape), str(y.dtype).removeprefix("torch."), y.requires_grad) for y in expected]
    assert [(y.shape, str(y.dtype), y.requires_grad) for y in found] == about
    if DRAWING.search(info.name):
        return
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.numpy(force=True), other.numpy(force=True), 1e-8, 1e-10)
    if not any(y.requires_grad for y in expected):
        return
    for results in expected, found:
        sum(abs(y * y).sum() for y in results if y.requires_grad).backward()  # type: ignore[union-attr]
    pairs = zip(tensors([args, kwargs]), tensors([call.args, call.kwargs]), strict=True)
    for one, other in [*pairs, *zip(own.parameters(), theirs.parameters(), strict=True)]:
        if other.is_leaf:
            assert (one.grad is None) == (other.grad is None)
        if other.is_leaf and other.grad is not None:
            grad = other.grad.to_dense() if other.grad.is_sparse else other.grad
            np.testing.assert_allclose(one.grad.numpy(), grad.numpy(), 1e-6, 1e-9)


@pytest.mark.parametrize("info", mostly_full(ALL, 4), ids=lambda info: info.name)
def test_samples(info: Any) -> None:
    for is_training in (True, False) if info.train_and_eval_differ else (True,):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples = info.module_inputs_func(
                info, device="cpu", dtype=torch.float64, requires_grad=True, training=is_training
            )
            for sample in samples:
                check_sample(info, sample, is_training)


@pytest.mark.parametrize("info", [own for own in ALL if own.module_error_inputs_func], ids=lambda info: info.name)
def test_errors(info: Any) -> None:
    samples = info.module_error_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=False, training=True)
    for number, sample in enumerate(samples):
        given = sample.module_error_input
        if (info.module_cls.__name__, number) in NOT_ASKED:
            continue

        def run(given: Any = given) -> None:
            made = getattr(tg.nn, info.module_cls.__name__)
            module = made(*ours(given.constructor_input.args), **ours(given.constructor_input.kwargs))
            if given.forward_input is not None:
                module(*ours(given.forward_input.args), **ours(given.forward_input.kwargs))

        with pytest.raises(sample.error_type, match=sample.error_regex):
            run()
