"""The memory behind tensors and how programs name its order: as PyTorch shows it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tests.both import needs_torch
from tests.torch_programs import torch

LIBRARIES = pytest.mark.parametrize("T", [tg, pytest.param(torch, marks=needs_torch)], ids=["tapegrad", "torch"])


@LIBRARIES
def test_the_memory_of_a_tensor_and_its_views(T: Any) -> None:
    x = T.arange(6, dtype=T.float32).view(2, 3)
    bytes_of = x.untyped_storage()
    assert (bytes_of.nbytes(), len(bytes_of), bytes_of.data_ptr()) == (24, 24, x.data_ptr())
    for view in (x[1], x.t(), x[:, ::2], x.detach()):
        assert view.untyped_storage().data_ptr() == bytes_of.data_ptr()
        assert view.untyped_storage().nbytes() == 24
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        elements = x.t().storage()
    assert (elements.tolist(), len(elements), elements[4]) == ([0, 1, 2, 3, 4, 5], 6, 4)
    elements[4] = 9
    assert x.tolist() == [[0, 1, 2], [3, 9, 5]]
    assert T.is_storage(elements)
    assert not T.is_storage(x)
    assert "of size 6]" in repr(elements)
    assert (x.stride(), x.stride(0), x.stride(-1), x.layout) == ((3, 1), 3, 1, T.strided)


def test_memory_that_runs_backwards() -> None:
    array = np.arange(6.0)[::-2]
    assert tg.TypedStorage(tg.from_numpy(array)).tolist() == [0, 1, 2, 3, 4, 5]
    assert tg.TypedStorage(tg.tensor(2.0) * 3).tolist() == [6]
    assert tg.TypedStorage(tg.zeros(0)).tolist() == []


def test_a_write_to_the_memory_is_noticed() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z = (y * y).sum()
    with pytest.raises(RuntimeError, match="requires grad"):
        tg.TypedStorage(y)[0] = 3.0
    with tg.no_grad():
        tg.TypedStorage(y)[0] = 3.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@LIBRARIES
def test_orders_of_memory(T: Any) -> None:
    x = T.ones(2, 3, requires_grad=True)
    for like in (T.zeros_like, T.empty_like, T.ones_like, T.rand_like, T.clone):
        assert like(x, memory_format=T.preserve_format).shape == (2, 3)
    assert x.contiguous(memory_format=T.contiguous_format) is x
    assert T.full_like(x, 2.0, memory_format=T.contiguous_format).sum() == 12
    assert isinstance(T.channels_last, T.memory_format)
    x.clone(memory_format=T.preserve_format).sum().backward()
    assert x.grad.tolist() == [[1, 1, 1], [1, 1, 1]]


@LIBRARIES
def test_what_optimizers_ask_of_gradients(T: Any) -> None:
    x = T.ones(2)
    assert not any((x.is_sparse, x.is_quantized, x.is_meta, x.is_mps, x.is_nested, x.is_sparse_csr))
    assert x.is_set_to(x)
    assert not x.is_set_to(x.clone())
    y = T.zeros(3)
    assert y.set_(x) is y
    assert y.is_set_to(x)
    assert T.ones(2, requires_grad=True).numpy(force=True).tolist() == [1, 1]


@LIBRARIES
def test_the_default_type(T: Any) -> None:
    before = T.get_default_dtype()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            T.set_default_tensor_type(T.FloatTensor)
            assert T.ones(1).dtype == T.float32
            T.set_default_tensor_type("torch.DoubleTensor")
            assert T.Tensor([1]).dtype == T.float64
            with pytest.raises(TypeError, match="invalid type object"):
                T.set_default_tensor_type(T.nn.Linear)
        finally:
            T.set_default_dtype(before)


@LIBRARIES
def test_a_dual_tensor_shows_its_tangent(T: Any) -> None:
    forward_ad = T.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(T.tensor([1.0, 2.0]), T.ones(2))
        assert repr(dual) == "tensor([1., 2.], tangent=tensor([1., 1.]))"
        assert repr(T.ones(1)) == "tensor([1.])"
