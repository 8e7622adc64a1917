"""NumPy's functions of shapes on tensors: the values are NumPy's, and gradients flow; errors that say how to repair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tests import checks

X = np.arange(1.0, 13.0).reshape(3, 4) ** 1.5
V = np.array([1.0, 4.0, 9.0, 2.0, 7.0])

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "split": lambda x, v: np.split(x, 2, axis=1)[-1],
    "split at": lambda x, v: np.split(v, [1, 3])[1],
    "array_split": lambda x, v: np.array_split(v, 2)[0],
    "hsplit": lambda x, v: np.hsplit(x, 2)[0],
    "vsplit": lambda x, v: np.vsplit(x, 3)[1],
    "dsplit": lambda x, v: np.dsplit(x.reshape(1, 3, 4), 2)[1],
    "unstack": lambda x, v: np.unstack(x, axis=1)[2],
    "roll": lambda x, v: np.roll(x, 2),
    "roll axis": lambda x, v: np.roll(x, shift=(1, -1), axis=(0, 1)),
    "roll one shift": lambda x, v: np.roll(x, 1, axis=(0, 1)),
    "rot90": lambda x, v: np.rot90(x, k=3, axes=(1, 0)),
    "tile": lambda x, v: np.tile(x, (2, 1, 2)),
    "tile short": lambda x, v: np.tile(x, reps=2),
    "repeat": lambda x, v: np.repeat(x, 2, axis=0),
    "repeat flat": lambda x, v: np.repeat(x, 2),
    "repeat each": lambda x, v: np.repeat(v, [1, 0, 2, 1, 3], axis=0),
    "diag": lambda x, v: np.diag(v, k=1),
    "diag of matrix": lambda x, v: np.diag(x),
    "diagflat": lambda x, v: np.diagflat(x, 1),
    "tril": lambda x, v: np.tril(x, k=-1),
    "triu": lambda x, v: np.triu(x),
    "hstack": lambda x, v: np.hstack([v, v]),
    "vstack": lambda x, v: np.vstack((v, v)),
    "dstack": lambda x, v: np.dstack((x, x)),
    "column_stack": lambda x, v: np.column_stack((v, v)),
    "fliplr": lambda x, v: np.fliplr(x),
    "flipud": lambda x, v: np.flipud(x),
    "flip": lambda x, v: np.flip(x),
    "atleast_1d": lambda x, v: np.atleast_1d(v[0]),
    "atleast_2d": lambda x, v: np.atleast_2d(v),
    "atleast_3d": lambda x, v: np.atleast_3d(x),
    "broadcast_arrays": lambda x, v: np.broadcast_arrays(v[:4], x)[0],
    "meshgrid": lambda x, v: np.meshgrid(v, v[:2])[0],
    "meshgrid sparse": lambda x, v: np.meshgrid(v, v[:2], sparse=True, indexing="ij")[1],
    "diff": lambda x, v: np.diff(x, n=2, axis=0),
    "diff prepend": lambda x, v: np.diff(v, prepend=0.0, append=v[:2]),
    "gradient": lambda x, v: np.gradient(v, 0.5),
    "gradient of matrix": lambda x, v: np.gradient(x)[1],
    "gradient coordinates": lambda x, v: np.gradient(v, [0.0, 1.0, 1.5, 3.0, 4.0], edge_order=2),
    "gradient axis": lambda x, v: np.gradient(x, 2.0, axis=0),
    "trapezoid": lambda x, v: np.trapezoid(x, dx=0.5, axis=0),
    "trapezoid points": lambda x, v: np.trapezoid(x, v[:4]),
    "append": lambda x, v: np.append(x, v),
    "append axis": lambda x, v: np.append(x, x, axis=1),
    "fftshift": lambda x, v: np.fft.fftshift(x, axes=1),
    "ifftshift": lambda x, v: np.fft.ifftshift(v),
    "moveaxis": lambda x, v: np.moveaxis(x, 0, 1),
    "expand_dims": lambda x, v: np.expand_dims(x, (0, 2)),
    "pad": lambda x, v: np.pad(x, 1),
    "pad constants": lambda x, v: np.pad(x, ((1, 2), (0, 1)), constant_values=((1, 2), (3, 4))),
    "pad far": lambda x, v: np.pad(v, (9, 7), mode="reflect"),
    "pad odd": lambda x, v: np.pad(v, (3, 2), mode="reflect", reflect_type="odd"),
    "pad symmetric odd": lambda x, v: np.pad(x, 2, mode="symmetric", reflect_type="odd"),
    "pad ramp": lambda x, v: np.pad(x, ((2, 1), (3, 2)), mode="linear_ramp", end_values=((5, 6), (7, 8))),
    "pad statistics": lambda x, v: np.pad(x, 2, mode="mean", stat_length=2),
    "pad dict": lambda x, v: np.pad(x, {1: (1, 2)}, mode="edge"),
    **{f"pad {mode}": lambda x, v, mode=mode: np.pad(x, ((1, 2), (2, 0)), mode=mode)
       for mode in ("edge", "reflect", "symmetric", "wrap", "maximum", "minimum", "mean", "median", "linear_ramp")},
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_numpy(name: str) -> None:
    call = CALLS[name]
    expected = np.asarray(call(X, V))
    leaves = [checks.leaf(own.copy()) for own in (X, V)]
    found = call(*leaves)
    assert isinstance(found, tg.Tensor)
    assert found.requires_grad
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-13)
    ct = checks.random_like(expected)
    (found * ct).sum().backward()
    for own, point in zip(leaves, (X, V), strict=True):
        direction = checks.random_like(point)
        moved = [np.vdot(ct, call(*(p + t * direction if p is point else p for p in (X, V)))) for t in (1e-6, -1e-6)]
        slope = (moved[0] - moved[1]) / 2e-6
        gradient = np.zeros(point.shape) if own.grad is None else own.grad.numpy()
        np.testing.assert_allclose(np.vdot(gradient, direction), slope, rtol=1e-6, atol=1e-7)


def test_integers_are_padded_as_by_numpy() -> None:
    x = np.array([[1, 2, 4]])
    for mode in ("mean", "median", "linear_ramp", "reflect", "constant"):
        assert (
            np.pad(tg.tensor(x), ((0, 0), (2, 1)), mode=mode).tolist()
            == np.pad(x, ((0, 0), (2, 1)), mode=mode).tolist()
        )


x, v, s = tg.ones(4, 3), tg.ones(4), tg.tensor(1.0)
F = tg.nn.functional
# Calls that PyTorch refuses, with the type and words of its error.
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: tg.narrow(s, 0, 0, 1), RuntimeError, "narrow() cannot be applied to a 0-dim tensor."),
    (lambda: tg.narrow(x, 0, 3, 2), RuntimeError, "start (3) + length (2) exceeds dimension size (4)."),
    (lambda: tg.narrow(x, 0, 7, 1), IndexError, "start out of range (expected to be in range of [-4, 4], but got 7)"),
    (lambda: tg.narrow(x, 0, 0, -1), RuntimeError, "narrow(): length must be non-negative."),
    (lambda: tg.narrow(x, 2, 0, 1), IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got"),
    (lambda: tg.select(x, 0, 4), IndexError, "select(): index 4 out of range for tensor of size [4, 3] at dimension 0"),
    (lambda: tg.select(s, 0, 0), IndexError, "select() cannot be applied to a 0-dim tensor."),
    (lambda: tg.split(x, 0), RuntimeError, "split_size can only be 0 if dimension size is 0, but got dimension size"),
    (lambda: tg.split(x, -1), RuntimeError, "split expects split_size be non-negative, but got split_size=-1"),
    (lambda: tg.split(x, [1, 2]), RuntimeError, "split_with_sizes expects split_sizes to sum exactly to 4"),
    (lambda: tg.split(s, 1), RuntimeError, "split expects at least a 1-dimensional tensor"),
    (lambda: tg.split_with_sizes(x, [5, -1]), RuntimeError, "split_sizes have only non-negative entries"),
    (lambda: tg.chunk(x, 0), RuntimeError, "chunk expects `chunks` to be greater than 0, got: 0"),
    (lambda: tg.tensor_split(s, 2), RuntimeError, "tensor_split expected at least a 1-dimensional tensor, but got a"),
    (lambda: tg.tensor_split(x, 0), RuntimeError, "number of sections must be larger than 0, got 0"),
    (lambda: tg.tensor_split(x, tg.ones(2)), RuntimeError, "to have dtype of long, but got"),
    (lambda: tg.tensor_split(x, tg.tensor([[1]])), RuntimeError, "but got a tensor with 2 dims"),
    (lambda: tg.hsplit(s, 2), RuntimeError, "hsplit requires a tensor with at least 1 dimension, but got a tensor"),
    (lambda: tg.vsplit(x, 3), RuntimeError, "the size of the dimension 4 is not divisible by the split_size 3!"),
    (lambda: np.split(x, 3), ValueError, "array split does not result in an equal division"),
    (lambda: tg.unbind(s), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
    (lambda: tg.unflatten(x, 0, (3, 2)), RuntimeError, "Provided sizes [3, 2] don't multiply up to the size of dim 0"),
    (lambda: tg.unflatten(x, 0, ()), RuntimeError, "unflatten: sizes must be non-empty"),
    (lambda: tg.rot90(v), RuntimeError, "expected total dims >= 2, but got total dims = 1"),
    (lambda: tg.rot90(x, 1, [0]), RuntimeError, "expected total rotation dims == 2, but got dims = 1"),
    (lambda: tg.rot90(x, 1, [0, 0]), RuntimeError, "expected rotation dims to be different, but got dim0 = 0 and dim1"),
    (lambda: tg.fliplr(v), RuntimeError, "Input must be >= 2-d."),
    (lambda: tg.flipud(s), RuntimeError, "Input must be >= 1-d."),
    (lambda: tg.roll(x, (1, 2), 0), RuntimeError, "shifts and dimensions must align. shifts: 2, dims:1"),
    (lambda: tg.roll(x, ()), RuntimeError, "`shifts` required"),
    (lambda: tg.tile(x, (-1,)), RuntimeError, "Trying to create tensor with negative dimension"),
    (lambda: tg.repeat_interleave(x, -1, 0), RuntimeError, "Repeats must be non-negative"),
    (lambda: tg.repeat_interleave(x, tg.tensor([1, 2]), 0), RuntimeError, "repeats must have the same size as input"),
    (lambda: tg.repeat_interleave(v, v), NotImplementedError, '"repeat_interleave" not implemented for float64'),
    (lambda: tg.repeat_interleave(x, tg.tensor([[1]]), 0), RuntimeError, "repeats must be 0-dim or 1-dim tensor"),
    (lambda: tg.repeat_interleave(v, tg.tensor([-1])), RuntimeError, "repeats can not be negative"),
    (lambda: tg.hstack([]), RuntimeError, "hstack expects a non-empty TensorList"),
    (lambda: tg.hstack([v, x]), RuntimeError, "Tensors must have same number of dimensions: got 1 and 2"),
    (lambda: tg.block_diag(tg.ones(2, 2, 2)), RuntimeError, "Input 0 has 3 dimensions"),
    (lambda: tg.meshgrid(x), RuntimeError, "meshgrid: Expected 0D or 1D tensor in the tensor list but got"),
    (lambda: tg.meshgrid(v, v, indexing="kl"), RuntimeError, 'indexing must be one of "xy" or "ij", but received: kl'),
    (lambda: tg.meshgrid(v, v.float()), RuntimeError, "meshgrid expects all tensors to have the same dtype"),
    (lambda: tg.cartesian_prod(x, v), RuntimeError, "Expect a 1D vector, but got shape [4, 3]"),
    (lambda: tg.combinations(v, -1), RuntimeError, "Expect a non-negative number, but got -1"),
    (lambda: tg.broadcast_tensors(tg.ones(2), tg.ones(3)), RuntimeError, "The size of tensor a (2) must match"),
    (lambda: tg.diag(s), RuntimeError, "diag(): Supports 1D or 2D tensors. Got 0D"),
    (lambda: tg.tril(v), RuntimeError, "tril: input tensor must have at least 2 dimensions"),
    (lambda: tg.tril_indices(-1, 2), RuntimeError, "row must be non-negative, got"),
    (lambda: F.pad(x, (1,)), RuntimeError, "Padding length must be divisible by 2"),
    (lambda: F.pad(x, (1,) * 6), RuntimeError, "Padding length should be less than or equal to two times the input"),
    (lambda: F.pad(x, (-3, -3)), RuntimeError, "narrow(): length must be non-negative."),
    (lambda: F.pad(x, (1, 1), "reflect", 1), RuntimeError, 'Padding mode "reflect" doesn\'t take in value argument'),
    (lambda: F.pad(x, (1, 1), "foo"), NotImplementedError, "Unrecognised padding mode foo"),
    (lambda: F.pad(x, (3, 1), "reflect"), RuntimeError, "Padding size should be less than the corresponding input"),
    (lambda: F.pad(x, (4, 1), "circular"), RuntimeError, "Padding value causes wrapping around more than once"),
    (lambda: F.pad(tg.ones(2, 0), (1, 1), "replicate"), RuntimeError, "non-zero dimensions for input, but got: [2, 0]"),
    (lambda: np.pad(x.requires_grad_(), 1, mode="foo"), ValueError, "mode 'foo' is not supported"),
    (lambda: np.pad(x, 1, mode=lambda *_: None), TypeError, "with a function as mode"),
    (lambda: tg.select_scatter(x, tg.ones(2), 0, 0), RuntimeError, "src size = [2], slice size = [3]"),
    (lambda: tg.slice_scatter(x, tg.ones(1, 3), 0, 0, 1, 0), RuntimeError, "slice step must be positive"),
    (lambda: tg.diagonal_scatter(x, tg.ones(2)), RuntimeError, "to have a size equal to the slice of self"),
    (lambda: tg.as_strided(v, (2,), (1, 2)), RuntimeError, "mismatch in length of strides and shape"),
    (lambda: tg.as_strided(v, (5,), (1,)), RuntimeError, "out of bounds for storage of size 4"),
    (lambda: tg.as_strided(v, (2,), (-1,)), RuntimeError, "Negative strides are not supported at the moment"),
    (lambda: tg.as_strided(tg.ones(2, 3).T, (2,), (1,)), RuntimeError, "call contiguous()"),
    (lambda: tg.diff(s), RuntimeError, "diff expects input to be at least one-dimensional"),
    (lambda: tg.diff(x, -1), RuntimeError, "order must be non-negative but got -1"),
    (lambda: tg.diff(x, 1, 0, tg.ones(3)), RuntimeError, "to be the same dimension as input"),
    (lambda: tg.diff(x, 1, 0, tg.ones(3, 2)), RuntimeError, "input.size(1) = 3, but got tensor.size(1) = 2"),
    (lambda: tg.gradient(tg.ones(1)), RuntimeError, "expected each dimension size to be at least edge_order+1"),
    (lambda: tg.gradient(x, spacing=[1.0, 2.0, 3.0]), RuntimeError, "but got a list of length 3"),
    (lambda: tg.gradient(x, edge_order=3), RuntimeError, "gradient only supports edge_order=1 and edge_order=2."[:-1]),
    (lambda: tg.trapezoid(x, tg.ones(5)), RuntimeError, "There must be one `x` value for each sample point"),
    (lambda: tg.polar(v, v.float()), RuntimeError, "Expected object of scalar type"),
    (lambda: F.pixel_shuffle(x, 2), RuntimeError, "pixel_shuffle expects input to have at least 3 dimensions, but got"),
    (lambda: F.pixel_shuffle(tg.ones(3, 2, 2), 2), RuntimeError, "input.size(-3)=3 is not divisible by 4"),
    (lambda: F.pixel_unshuffle(tg.ones(3, 3, 2), 2), RuntimeError, "input.size(-2)=3 is not divisible by 2"),
    (lambda: F.pixel_unshuffle(tg.ones(3, 3, 2), 0), RuntimeError, "expects a positive downscale_factor, but got 0"),
    (lambda: F.channel_shuffle(x, 2), RuntimeError, "channel_shuffle expects input with > 2 dims"),
    (lambda: F.channel_shuffle(tg.ones(1, 3, 2), 2), RuntimeError, "Number of channels must be divisible by groups."),
    (lambda: F.channel_shuffle(tg.ones(1, 3, 2), 0), RuntimeError, "must be positive. Value of groups:0"),
    (lambda: F.one_hot(v), RuntimeError, "one_hot is only applicable to index tensor of type LongTensor."),
    (lambda: F.one_hot(tg.tensor([-1])), RuntimeError, "Class values must be non-negative."),
    (lambda: F.one_hot(tg.tensor([3]), 2), RuntimeError, "Class values must be smaller than num_classes."),
    (lambda: F.one_hot(tg.tensor([3])[:0]), RuntimeError, "Can not infer total number of classes from empty tensor."),
    (lambda: tg.is_complex(1), TypeError, "is_complex(): argument 'input' (position 1) must be Tensor, not int"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors_are_those_of_pytorch(number: int) -> None:
    call, error, words = ERRORS[number]
    with pytest.raises(error) as caught:
        call()
    assert words.rstrip(".") in str(caught.value)


def test_parts_share_memory() -> None:
    """Splits, windows and diagonals are views: a write to the base is seen in them."""
    base = tg.zeros(2, 4)
    parts = [*tg.split(base, 2, 1), *tg.unbind(base), base.unfold(1, 2, 1), tg.as_strided(base, (2,), (5,))]
    base += 1
    assert all((part == 1).all() for part in parts)
    z = tg.tensor([1 + 2j, 3 + 4j])
    assert tg.view_as_real(z)._data.base is not None
    assert np.shares_memory(tg.view_as_complex(tg.view_as_real(z)).numpy(), z.numpy())


def test_copies_share_none() -> None:
    base = tg.zeros(2, 4)
    copies = [tg.roll(base, 0), tg.rot90(base, 4), base.repeat(1, 1), tg.diag(base), F.pad(base, (0, 0))]
    base += 1
    assert all((copy == 0).all() for copy in copies)


def test_indices_of_triangles() -> None:
    for offset in (-1, 0, 2):
        assert tg.tril_indices(3, 4, offset).tolist() == np.stack(np.tril_indices(3, offset, 4)).tolist()
        assert tg.triu_indices(3, 4, offset).tolist() == np.stack(np.triu_indices(3, offset, 4)).tolist()
    assert tg.tril_indices(2, 2, dtype=tg.int32).dtype == np.int32


def test_one_hot() -> None:
    assert F.one_hot(tg.tensor([[1, 0]]), 3).tolist() == [[[0, 1, 0], [1, 0, 0]]]
    assert F.one_hot(tg.tensor(2)).dtype == np.int64
    assert tg.is_floating_point(tg.ones(1))
    assert not tg.is_complex(tg.ones(1))


@pytest.mark.parametrize("dims", [(), (None,), (2, 0, 1), ((2, 0, 1),), ([1, -1, 0],)])
def test_transpose_as_of_arrays(dims: tuple[Any, ...]) -> None:
    x = tg.tensor(np.arange(24.0).reshape(2, 3, 4), requires_grad=True)
    y = x.transpose(*dims)
    np.testing.assert_array_equal(y.detach().numpy(), x.detach().numpy().transpose(*dims))
    weights = np.arange(24.0).reshape(y.shape)
    (y * weights).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy().transpose(*dims), weights)  # type: ignore[union-attr]


def test_transpose_of_two_dimensions_swaps_as_in_torch() -> None:
    x = tg.zeros(2, 3)
    assert x.transpose(0, 1).shape == x.transpose(dim0=1, dim1=0).shape == x.transpose().shape == (3, 2)
    with pytest.raises(RuntimeError, match="number of dimensions"):
        x.transpose(0)
    with pytest.raises(RuntimeError, match="number of dimensions"):
        x.transpose(0, 1, 2)


def test_copy_as_of_arrays() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x.copy()
    assert not np.shares_memory(y.detach().numpy(), x.detach().numpy())
    (y * y).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]  # type: ignore[union-attr]


def test_integrals_and_copies_of_nothing() -> None:
    """As in PyTorch, whatever the points and the dtype."""
    x = tg.zeros((0, 3), requires_grad=True)
    assert tg.trapezoid(x, dim=0).tolist() == [0.0, 0.0, 0.0]
    assert not tg.trapezoid(x, tg.ones(5), dim=0).requires_grad
    assert tg.trapezoid(tg.zeros(0, dtype=bool)).dtype == bool
    with pytest.raises(RuntimeError, match="received a bool input for `y`"):
        tg.cumulative_trapezoid(tg.zeros(0, dtype=bool))
    assert tg.select_scatter(x, tg.zeros(0), 1, 1).shape == (0, 3)
    assert tg.slice_scatter(tg.zeros(3, 2), tg.zeros(0, 2), 0, 3).shape == (3, 2)
    assert tg.diagonal_scatter(tg.zeros(2, 2), tg.zeros(0), 3).shape == (2, 2)
