"""What functions refuse: PyTorch's exception and first words, and nothing has changed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg


def _loaded(groups: list[int], state: list[int]) -> None:
    """Load the state of an optimizer whose groups have so many parameters into another."""

    def optimizer(sizes: list[int]) -> tg.optim.SGD:
        return tg.optim.SGD([{"params": [tg.ones(1) for _ in range(size)]} for size in sizes], lr=0.1)

    optimizer(groups).load_state_dict(optimizer(state).state_dict())


def _hooked() -> None:
    x = tg.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda own: own.grad)  # type: ignore[arg-type,return-value]
    (x * 2).sum().backward()


def _smoothed(T: Any, **options: Any) -> Any:
    return T.nn.functional.cross_entropy(T.ones(2, 3), T.tensor([0, 1]), **options)


def _conv2d(T: Any, shape: tuple[int, ...] = (1, 2, 4, 4), **options: Any) -> Any:
    return T.nn.functional.conv2d(T.ones(*shape), T.ones(3, 2, 2, 2), **options)


OVERFLOW = "value cannot be converted to type ... without overflow"


# Three dots stand for anything.
AS_TORCH: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "sum: keepdim": (lambda T: T.ones(2).sum(0, keepdim=2), TypeError,
                     "sum(): argument 'keepdim' must be bool, not int"),
    "max: keepdim": (lambda T: T.ones(2).max(0, 1), TypeError, "max(): argument 'keepdim' ...must be bool, not int"),
    "combinations: with_replacement": (lambda T: T.combinations(T.ones(3), with_replacement=2), TypeError,
                                       "combinations(): argument 'with_replacement' must be bool, not int"),
    "allclose: rtol": (lambda T: T.allclose(T.ones(2), T.ones(2), rtol=-1), RuntimeError,
                       "rtol must be greater than or equal to zero, but got -1"),
    "allclose: equal_nan": (lambda T: T.allclose(T.ones(2), T.ones(2), equal_nan=2), TypeError,
                            "allclose(): argument 'equal_nan' must be bool, not int"),
    "allclose: shapes": (lambda T: T.allclose(T.ones(2), T.ones(3)), RuntimeError,
                         "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0"),
    "mean: dtype": (lambda T: T.ones(2).mean(dtype=T.int64), RuntimeError,
                    "mean(): could not infer output dtype. Optional dtype must be either ..."),
    "isclose: equal_nan": (lambda T: T.isclose(T.ones(2), T.ones(2), equal_nan=2), TypeError,
                           "isclose(): argument 'equal_nan' must be bool, not int"),
    "max_unpool2d: dtype": (
        lambda T: T.nn.functional.max_unpool2d(*[T.zeros(1, 1, 2, 2, dtype=T.int64) for _ in range(2)], 2),
        NotImplementedError, "...max_unpool2d...not implemented for ..."),
    "interpolate: align_corners": (
        lambda T: T.nn.functional.interpolate(T.ones(1, 1, 4), 8, mode="linear", align_corners=2), TypeError, "..."),
    "requires_grad_": (lambda T: T.ones(2).requires_grad_(2), TypeError,
                       "requires_grad_(): argument 'requires_grad' ...must be bool, not int"),
    "set_grad_enabled": (lambda T: T.set_grad_enabled(1), TypeError, "set_grad_enabled(): argument ... must be bool"),
    "expand: a new dimension": (lambda T: T.ones(3).expand(-1, 3), RuntimeError,
                                "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dim"),
    "expand: -5": (lambda T: T.ones(3).expand(-5), RuntimeError, "The expanded size of the tensor (-5) must match"),
    "addr: alpha": (lambda T: T.addr(T.ones(2, 2).long(), *[T.ones(2).long()] * 2, alpha=0.5), RuntimeError,
                    "For integral input tensors, argument alpha must not be a floating point number"),
    "cdist: p": (lambda T: T.cdist(T.ones(2, 3), T.ones(2, 3), -1), RuntimeError,
                 "cdist only supports non-negative p values"),
    "cdist: compute_mode": (lambda T: T.cdist(T.ones(2, 3), T.ones(2, 3), compute_mode="x"), ValueError,
                            "x is not a valid value for compute_mode"),
    "addmm: mat1": (lambda T: T.addmm(T.ones(2, 2), T.ones(1, 2, 2), T.ones(2, 2)), RuntimeError,
                    "mat1 must be a matrix, got 3-D tensor"),
    "addmm: mat2": (lambda T: T.addmm(T.ones(2, 2), T.ones(2, 2), T.ones(1, 2, 2)), RuntimeError,
                    "mat2 must be a matrix, got 3-D tensor"),
    "lu_solve: dtype of pivots": (lambda T: T.linalg.lu_solve(T.eye(2), T.tensor([1, 2]), T.ones(2, 1)), RuntimeError,
                                  "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32"),
    "lu_solve: pivots": (lambda T: T.linalg.lu_solve(T.eye(2), T.tensor([1], dtype=T.int32), T.ones(2, 1)),
                         RuntimeError,
                         "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix"),
    "lu_factor: singular": (lambda T: T.linalg.lu_factor(T.zeros(2, 2)), RuntimeError,
                            "torch.linalg.lu_factor...U[1,1] is zero and using it on lu_solve would result"),
    "lu_unpack: a vector": (lambda T: T.lu_unpack(T.ones(5), T.ones(3, dtype=T.int32)), RuntimeError,
                            "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: [5] instead"),
    "kthvalue: k": (lambda T: T.kthvalue(T.ones(3), 1.5), TypeError,
                    "kthvalue(): argument 'k' ...must be int, not float"),
    "relu_: a number": (lambda T: T.nn.functional.relu_(3), TypeError,
                        "relu_(): argument 'input' (position 1) must be Tensor, not int"),
    "randperm: n": (lambda T: T.randperm(-1), RuntimeError,
                    "Trying to create tensor with negative dimension -1: [-1]"),
    "expand_as: other": (lambda T: T.ones(2).expand_as(None), TypeError,
                         "expand_as(): argument 'other' (position 1) must be Tensor, not NoneType"),
    "adaptive_avg_pool2d: empty": (lambda T: T.nn.functional.adaptive_avg_pool2d(T.zeros(3, 0, 2), 2), RuntimeError,
                                   "adaptive_avg_pool2d(): Expected input to have non-zero size"),
    "topk: largest": (lambda T: T.topk(T.ones(2), 1, largest=None), TypeError,
                      "topk(): argument 'largest' must be bool, not NoneType"),
    "triu: diagonal": (lambda T: T.triu(T.ones(2, 2), 1.5), TypeError,
                       "triu(): argument 'diagonal' ...must be int, not float"),
    "list of bytes": (lambda T: T.tensor([1, 300], dtype=T.uint8), RuntimeError, OVERFLOW),
    "nan among integers": (lambda T: T.tensor([math.nan], dtype=T.int32), RuntimeError, OVERFLOW),
    "shared list of bytes": (lambda T: T.as_tensor([300.0], dtype=T.uint8), RuntimeError, OVERFLOW),
    "number scattered": (lambda T: T.zeros(2, dtype=T.int8).scatter(0, T.tensor([0]), -200), RuntimeError, OVERFLOW),
    "number around": (lambda T: T.nn.functional.pad(T.zeros(2, dtype=T.uint8), (1, 1), value=300), RuntimeError,
                      OVERFLOW),
    "end of bytes": (lambda T: T.linspace(0, 300, 3, dtype=T.uint8), RuntimeError, OVERFLOW),
    "large number": (lambda T: T.full((2,), 1e39, dtype=T.float32), RuntimeError, OVERFLOW),
    "large number at a mask": (lambda T: T.zeros(2, dtype=T.float32).masked_fill(T.tensor([True, False]), -1e39),
                               RuntimeError, OVERFLOW),
    "gain": (lambda T: T.nn.init.calculate_gain("step"), ValueError, "Unsupported nonlinearity step"),
    "nonlinearity": (lambda T: T.nn.init.kaiming_uniform_(T.ones(2, 3), nonlinearity="step"), ValueError,
                     "Unsupported nonlinearity step"),
    "mode": (lambda T: T.nn.init.kaiming_normal_(T.ones(2, 3), mode="fan_avg"), ValueError, "Mode fan_avg not supp"),
    "classes of other items": (lambda T: T.nn.functional.cross_entropy(T.ones(2, 3, 4), T.ones(2, 5).long()),
                               RuntimeError, "Expected target size [2, 4], got [2, 5]"),
    "two weights of three classes": (lambda T: _smoothed(T, weight=T.ones(2)), RuntimeError,
                                     "weight tensor should be defined either for all 3 classes or no classes"),
    "too smooth": (lambda T: _smoothed(T, label_smoothing=1.5), RuntimeError, "label_smoothing must be between 0.0"),
    "padding": (lambda T: _conv2d(T, padding="half"), RuntimeError, "Invalid padding string"),
    "stride of a padding": (lambda T: _conv2d(T, padding="same", stride=(1, 2)), RuntimeError,
                            "padding='same' is not supported for strided convolutions"),
    "negative padding": (lambda T: _conv2d(T, padding=(0, -1)), RuntimeError, "negative padding is not supported"),
    "no dilation": (lambda T: _conv2d(T, dilation=0), RuntimeError, "dilation should be greater than zero"),
    "no stride": (lambda T: _conv2d(T, stride=0), RuntimeError, "non-positive stride is not supported"),
    "image of two dimensions": (lambda T: _conv2d(T, (4, 4)), RuntimeError, "Expected 3D (unbatched) or 4D (batched)"),
    "three channels": (lambda T: _conv2d(T, (1, 3, 4, 4)), RuntimeError, "Given groups=1, weight of size [3, 2, 2, 2]"),
    "volume kernel without depth": (
        lambda T: T.nn.functional.conv3d(T.ones(1, 1, 4, 4, 4), T.ones(1, 1, 0, 2, 2)), RuntimeError,
        "kernel size should be greater than zero, but got: 0 x 2 x 2 (TxHxW)",
    ),
    "volume kernel of too much depth": (
        lambda T: T.nn.functional.conv3d(T.ones(1, 1, 2, 4, 4), T.ones(1, 1, 3, 2, 2), dilation=2, padding=(1, 0, 2)),
        RuntimeError,
        "Calculated padded input size per channel: (4 x 4 x 8). Kernel size: (5 x 3 x 3). Kernel size can't be",
    ),
    "kernel larger than the image": (lambda T: _conv2d(T, (1, 2, 1, 4)), RuntimeError,
                                     "Calculated padded input size per channel: (1 x 4). Kernel size: (2 x 2)."),
    "spread kernel larger than the image": (lambda T: _conv2d(T, (1, 2, 5, 3), dilation=(3, 3)), RuntimeError,
                                            "Calculated padded input size per channel: (5 x 3). Kernel size: (4 x 4)."),
    "mm of a vector": (lambda T: T.mm(T.ones(3), T.ones(3, 2)), RuntimeError, "self must be a matrix"),
    "mm with a vector": (lambda T: T.mm(T.ones(2, 3), T.ones(3)), RuntimeError, "mat2 must be a matrix"),
    "bmm of matrices": (lambda T: T.bmm(T.ones(2, 3), T.ones(2, 3, 4)), RuntimeError, "batch1 must be a 3D tensor"),
    "bmm with matrices": (lambda T: T.bmm(T.ones(2, 3, 4), T.ones(4, 2)), RuntimeError, "batch2 must be a 3D tensor"),
    "bmm of others": (lambda T: T.bmm(T.ones(2, 3, 4), T.ones(3, 4, 2)), RuntimeError,
                      "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [3, 4]."),
    "mv of a vector": (lambda T: T.mv(T.ones(3), T.ones(3)), RuntimeError, "vector + matrix @ vector expected, got"),
    "dot of a matrix": (lambda T: T.dot(T.ones(2, 2), T.ones(2)), RuntimeError,
                        "1D tensors expected, but got 2D and 1D tensors"),
    "outer of a matrix": (lambda T: T.outer(T.ones(2, 2), T.ones(2)), RuntimeError,
                          "outer: Expected 1-D argument self, but got 2-D"),
    "outer with a matrix": (lambda T: T.outer(T.ones(2), T.ones(2, 2)), RuntimeError,
                            "outer: Expected 1-D argument vec2, but got 2-D"),
    "where of numbers": (lambda T: T.where(T.ones(2), T.ones(2), T.ones(2)), RuntimeError,
                         "where expected condition to be a boolean tensor, but got a tensor with dtype"),
    "clamp to nothing": (lambda T: T.clamp(T.ones(2)), RuntimeError, "...At least one of 'min' or 'max' must not be"),
    "sum to more": (lambda T: T.ones(2).sum_to_size(3), RuntimeError, "size ...[3]... is not expandable to"),
    "sum to more dimensions": (lambda T: T.ones(2).sum_to_size(1, 2), RuntimeError, "size ...[1, 2]... is not expand"),
    "plus of a truth": (lambda T: T.positive(T.tensor(True)), RuntimeError, "The `+` operator, on a bool tensor"),
    "cat of other lengths": (lambda T: T.cat([T.ones(2, 3), T.ones(2, 4)]), RuntimeError,
                             "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4"),
    "cat of other dimensions": (lambda T: T.cat([T.ones(2), T.ones(2, 3)]), RuntimeError,
                                "Tensors must have same number of dimensions: got 1 and 2"),
    "amax of nothing": (lambda T: T.amax(T.ones(0, 2), 0), IndexError, "amax(): Expected reduction dim"),
    "amin of nothing at all": (lambda T: T.amin(T.ones(0, 2)), RuntimeError,
                               "amin(): Expected reduction dim to be specified for input.numel() == 0"),
    "max of nothing": (lambda T: T.max(T.ones(0, 2), 0), IndexError, "max(): Expected reduction dim 0 to have"),
    "a length below -1": (lambda T: T.ones(6).reshape(3, -2), RuntimeError, "invalid shape dimension -2"),
    "any length": (lambda T: T.ones(0).reshape(-1, 0), RuntimeError, "cannot reshape tensor of 0 elements into shape"),
    "two lengths left out": (lambda T: T.ones(6).reshape(-1, -1), RuntimeError, "only one dimension can be inferred"),
    "t of three dimensions": (lambda T: T.ones(2, 2, 2).t(), RuntimeError,
                              "t() expects a tensor with <= 2 dimensions, but self is 3D"),
    "indices that do not fit": (lambda T: T.ones(3, 3)[[0, 1], [0, 1, 2]], IndexError,
                                "shape mismatch: indexing tensors could not be broadcast together with shapes"),
    "fewer than no steps": (lambda T: T.linspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
    "abs_ of complex numbers": (lambda T: T.ones(2, dtype=T.complex128).abs_(), RuntimeError,
                                "In-place abs is not supported for complex tensors."),
    "+= of more": (lambda T: T.ones(2).__iadd__(T.ones(3, 2)), RuntimeError,
                   "output with shape [2] doesn't match the broadcast shape [3, 2]"),
    "pow_ of more": (lambda T: T.ones(2).pow_(T.ones(3, 2)), RuntimeError,
                     "output with shape [2] doesn't match the broadcast shape [3, 2]"),
    "copy_ of more": (lambda T: T.ones(2).copy_(T.ones(3, 2)), RuntimeError, "output with shape [2] doesn't match"),
    "full_like of a number": (lambda T: T.full_like(1.0, 2.0), TypeError,
                              "full_like(): argument 'input' (position 1) must be Tensor, not float"),
    "rows of other lengths": (lambda T: T.tensor([[1, 2], [3]]), ValueError,
                              "expected sequence of length 2 at dim 1 (got"),
    "a word as dimension": (lambda T: T.log_softmax(T.ones(2), "x"), TypeError,
                            "log_softmax(): argument...must be int, not str"),
    "half a dimension": (lambda T: T.unbind(T.ones(2), 0.5), TypeError,
                         "unbind(): argument...must be int, not float"),
    "half an index": (lambda T: T.select(T.ones(2), 0, 0.5), TypeError,
                      "select(): argument...must be int, not float"),
    "half an offset": (lambda T: T.diagflat(T.ones(2), 0.5), TypeError,
                       "diag...must be int, not float"),
    "half a shift": (lambda T: T.roll(T.ones(2), 0, 0.5), TypeError, "...must be"),
    "half a window": (lambda T: T.nn.functional.avg_pool1d(T.ones(1, 1, 4), 1.5), TypeError, "...kernel_size"),
    "dimension 1 of a number": (lambda T: T.cummax(T.tensor(2.0), 1), IndexError, ""),
    "logarithms of complex numbers": (lambda T: T.xlogy(T.ones(2), T.ones(2, dtype=T.complex128)), NotImplementedError,
                                      "...not implemented for"),
    "fractions of bools": (lambda T: T.frac(T.ones(2, dtype=T.bool)), NotImplementedError, "...not implemented for"),
}  # fmt: skip
AS_TORCH |= {
    "a number and text": (lambda T: T.ones(2) + "a", TypeError, "unsupported operand type(s) for +: 'Tensor'"),
    "nothing less a number": (lambda T: None - T.ones(2), TypeError, "unsupported operand type(s) for -: 'NoneType'"),
    "power": (lambda T: T.tensor([2]) ** -1, RuntimeError, "Integers to negative integer powers are not allowed."),
    "size": (lambda T: T.ones(2).size(1), IndexError, "Dimension out of range (expected to be in range of [-1, 0]"),
    "text in a tensor": (lambda T: "a" in T.ones(2), RuntimeError, "Tensor.__contains__ only supports Tensor"),
    "index_add": (lambda T: T.zeros(2).index_add(0, T.tensor([2]), T.ones(1)), IndexError, "...ndex out of range"),
    "scores without classes": (lambda T: T.nn.functional.nll_loss(T.tensor(1.0), T.tensor(0)), ValueError,
                               "Expected 1 or more dimensions (got 0)"),
    "a real gradient of complex numbers": (
        lambda T: (T.tensor([1j], requires_grad=True) * 2).backward(T.ones(1)), RuntimeError,
        "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
    ),
    "a complex gradient of real numbers": (
        lambda T: (T.ones(1, requires_grad=True) * 2).backward(T.tensor([1j])), RuntimeError,
        "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
    ),
    "negative variances": (lambda T: T.nn.functional.gaussian_nll_loss(*T.ones(2, 2), T.tensor([1.0, -1.0])),
                           ValueError, "var has negative entry/entries"),
    "targets of scores": (lambda T: T.nn.functional.binary_cross_entropy_with_logits(T.ones(2), T.ones(3)), ValueError,
                          "Target size ("),
    **{
        f"{n} transposed, of two dtypes": (
            lambda T, n=n: getattr(T, f"conv_transpose{n}d")(
                T.ones(1, 1, *[2] * n, dtype=T.float64), T.ones(1, 1, *[2] * n, dtype=T.float32)
            ), RuntimeError, "expected scalar type ..."
        )
        for n in (1, 2, 3)
    },
}  # fmt: skip
# PyTorch's words as well, but it takes seconds to import its optimizers, or takes what cannot be meant.
OURS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "other groups": (lambda: _loaded([1], [1, 1]), ValueError,
                     "loaded state dict has a different number of parameter groups"),
    "other parameters": (lambda: _loaded([1, 2], [1, 1]), ValueError,
                         "loaded state dict contains a parameter group that doesn't match the size of optimizer's"),
    "bias of another dtype": (lambda: _conv2d(tg, bias=tg.ones(3, dtype=tg.float32)), RuntimeError,
                              "Input type (float64) and bias type (float32) should be the same"),
    "weight of another dtype": (lambda: tg.nn.functional.conv2d(
                                tg.ones(1, 1, 2, 2), tg.ones(1, 1, 2, 2, dtype=tg.float32)), RuntimeError,
                                "expected scalar type float64 but found float32"),
    "three strides": (lambda: _conv2d(tg, stride=(1, 1, 1)), RuntimeError, "expected stride to be a single integer"),
    "bits of numbers": (lambda: tg.bitwise_and(tg.ones(2), tg.ones(2)), RuntimeError,
                        "bitwise_and is not implemented for dtype float64; it takes integers and bools"),
    "integers drawn": (lambda: tg.randn(2, dtype="int64"), RuntimeError,
                       "randn() draws floating numbers, not int64; for integers use randint()"),
    "integers drawn as others": (lambda: tg.rand_like(tg.ones(2).long()), RuntimeError, "rand_like() draws floating"),
    "no generator": (lambda: tg.randn(2, generator=1), TypeError, "expected a Generator, but got int"),
    "variance into": (lambda: np.var(tg.ones(3), None, None, np.ones(())), TypeError, "...out="),
    "another order": (lambda: np.reshape(tg.ones(2, 2), (4,), order="A"), TypeError, "np.reshape...order='A'"),
    "slope of class weights": (lambda: _smoothed(tg, weight=tg.ones(3, requires_grad=True)), RuntimeError,
                               "the derivative for 'weight' is not implemented"),
    "less than not smooth": (lambda: _smoothed(tg, label_smoothing=-0.5), RuntimeError, "label_smoothing must be"),
    "result of a hook": (_hooked, RuntimeError, "Tensor post accumulate grad hooks should return None."),
    "a number and a tensor": (lambda: tg.clamp(tg.ones(2), 0.0, tg.ones(2)), TypeError, "clamp() received an invalid"),
}  # fmt: skip


def refuses(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        call()
    pattern = ".*".join(map(re.escape, words.split("...")))
    assert re.match(pattern, str(caught.value), re.DOTALL), str(caught.value)


@pytest.mark.parametrize("name", AS_TORCH)
def test_as_torch(T: Any, name: str) -> None:
    call, error, words = AS_TORCH[name]
    refuses(lambda: call(T), error, words)


@pytest.mark.parametrize("name", OURS)
def test_ours(name: str) -> None:
    refuses(*OURS[name])


# What the initial values refuse stands above; what they fill with is here.


def _gain(nonlinearity: str, slope: float) -> float:
    gains = {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75, "leaky_relu": math.sqrt(2 / (1 + slope**2))}
    return gains.get(nonlinearity, 1.0)


@pytest.mark.parametrize("mode", ["fan_in", "fan_out"])
@pytest.mark.parametrize("nonlinearity", ["linear", "sigmoid", "conv2d", "tanh", "relu", "selu", "leaky_relu"])
def test_initial_values(nonlinearity: str, mode: str) -> None:
    init, fan = tg.nn.init, {"fan_in": 3 * 4, "fan_out": 5 * 4}[mode]
    for slope in (0.0, 0.5):
        std = _gain(nonlinearity, slope) / math.sqrt(fan)
        bound = math.sqrt(3) * std
        assert init.calculate_gain(nonlinearity, slope) == pytest.approx(_gain(nonlinearity, slope))
        for ours, plain in (
            (init.kaiming_uniform_, lambda w, rng, b=bound: w.uniform_(-b, b, generator=rng)),
            (init.kaiming_normal_, lambda w, rng, s=std: w.normal_(0.0, s, generator=rng)),
        ):
            found, expected = tg.ones(5, 3, 2, 2), tg.ones(5, 3, 2, 2)
            assert ours(found, slope, mode, nonlinearity, tg.Generator().manual_seed(3)) is found
            plain(expected, tg.Generator().manual_seed(3))
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-14)
    assert init.calculate_gain("leaky_relu") == pytest.approx(_gain("leaky_relu", 0.01))


def test_initial_values_of_nothing() -> None:
    w = tg.ones(0, 3)
    for name in ("kaiming_uniform_", "kaiming_normal_"):
        with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
            assert getattr(tg.nn.init, name)(w) is w


@pytest.mark.parametrize(("length", "dilation"), [(2, 1), (4, 3), (5, 4)])
def test_a_kernel_may_be_as_large_as_the_image(T: Any, length: int, dilation: int) -> None:
    found = _conv2d(T, (1, 2, length, length + 1), dilation=dilation)
    assert found.tolist() == [[[[8.0, 8.0]]] * 3]


@pytest.mark.parametrize("shapes", [((1, 0, 4, 4), (3, 0, 2, 2)), ((0, 2, 4, 4), (3, 2, 2, 2))])
def test_a_convolution_of_nothing(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, w = (tg.ones(*shape, requires_grad=True) for shape in shapes)
    out = tg.nn.functional.conv2d(x, w)
    out.sum().backward()
    assert x.grad is not None
    assert w.grad is not None
    assert out.shape == (shapes[0][0], 3, 3, 3)
    assert (out.sum().item(), x.grad.sum().item(), w.grad.sum().item()) == (0, 0, 0)
