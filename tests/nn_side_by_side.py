"""The same module in torch and in tapegrad, from the same weights: what both give, and what differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")


def both(make: Any, dtype: str = "float64") -> tuple[Any, Any]:
    """Make a module by ``make(nn)`` with torch's weights; it looks the same and has the same state."""
    torch.manual_seed(0)
    theirs = make(torch.nn).to(getattr(torch, dtype))
    ours = make(tg.nn).to(dtype)
    assert repr(ours) == repr(theirs)
    assert [(name, tuple(one.shape)) for name, one in theirs.state_dict().items()] == [
        (name, one.shape) for name, one in ours.state_dict().items()
    ]
    for kind in ("named_parameters", "named_buffers", "named_modules", "named_children"):
        assert [name for name, _ in getattr(ours, kind)()] == [name for name, _ in getattr(theirs, kind)()]
    copy_state(theirs, ours)
    return ours, theirs


def copy_state(theirs: Any, ours: Any) -> None:
    result = ours.load_state_dict({name: as_ours(one) for name, one in theirs.state_dict().items()})
    assert repr(result) == "<All keys matched successfully>"


def as_ours(value: Any, requires_grad: bool = False) -> Any:
    """Return a tensor of torch, or what holds some, as ours."""
    if isinstance(value, (tuple, list)):
        return type(value)(as_ours(one, requires_grad) for one in value)
    if not isinstance(value, torch.Tensor):
        return value
    own = tg.tensor(value.detach().numpy())
    return own.requires_grad_() if value.requires_grad else own


def tensors_in(value: Any) -> list[Any]:
    """Return all tensors of a result, in order."""
    if isinstance(value, (tuple, list)):
        return [one for part in value for one in tensors_in(part)]
    return [] if value is None else [value]


def same(ours: Any, theirs: Any, rtol: float = 1e-10, what: str = "") -> None:
    assert (ours is None) == (theirs is None), what
    if ours is not None:
        assert ours.shape == tuple(theirs.shape), what
        assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch."), what
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=rtol, atol=rtol, err_msg=what)


def compare(ours: Any, theirs: Any, *args: Any, rtol: float = 1e-10, **kwargs: Any) -> None:
    """Call both modules, and hold results, gradients of arguments and of parameters, and buffers against each other."""
    own = as_ours(args)
    own_kwargs = {name: as_ours(value) for name, value in kwargs.items()}
    a, b = tensors_in(ours(*own, **own_kwargs)), tensors_in(theirs(*args, **kwargs))
    assert len(a) == len(b)
    loss_a, loss_b = 0.0, 0.0
    for place, (x, y) in enumerate(zip(a, b, strict=True)):
        same(x, y, rtol, f"result {place}")
        if y.requires_grad:
            weights = np.cos(np.arange(y.numel())).reshape(tuple(y.shape)).astype(str(x.dtype))
            loss_a, loss_b = loss_a + (x * tg.tensor(weights)).sum(), loss_b + (y * torch.tensor(weights)).sum()
    if isinstance(loss_b, torch.Tensor):
        for one in (ours, theirs):
            one.zero_grad()
        for one in (*tensors_in(list(own)), *tensors_in(list(args))):
            one.grad = None
        loss_a.backward()
        loss_b.backward()
        for place, (x, y) in enumerate(zip(tensors_in(list(own)), tensors_in(list(args)), strict=True)):
            same(x.grad, y.grad, 10 * rtol, f"gradient of argument {place}")
        for (name, x), (_, y) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
            same(x.grad, y.grad, 10 * rtol, f"gradient of {name}")
    for (name, x), (_, y) in zip(ours.named_buffers(), theirs.named_buffers(), strict=True):
        same(x, y, rtol, f"buffer {name}")
