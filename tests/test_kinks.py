"""Derivatives of first to third order at kinks and edges: PyTorch's, or what stands here with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.table.composites import Composite, composites
from tapegrad.ops.table.op import Op, op_table
from tests import checks
from tests.cases import Case, numpy_key
from tests.test_composites import on_torch as composite_on_torch
from tests.tiers import mostly_full
from tests.torch_programs import FUNCTIONS, WITHOUT_DERIVATIVE, function_on_torch, torch

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
POINTS = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5)
ORDER = 3


def derivatives(module: Any, function: Callable[[Any], Any], at: Any, order: int = ORDER) -> list[Any]:
    """Return the value's derivatives, one after the other; 0 where a derivative has no graph any more."""
    x = at.clone().requires_grad_() if torch is not None and isinstance(at, torch.Tensor) else tg.tensor(at)
    x = x.requires_grad_()
    y, found = function(x), []
    for _ in range(order):
        if y is not None and y.requires_grad:
            (y,) = module.autograd.grad(y, x, create_graph=True, allow_unused=True)
        else:
            y = None
        found.append(0.0 if y is None else y.item())
    return found


def check(function: Callable[[Any], Any], at: float, expected: list[Any], what: str = "") -> None:
    with np.errstate(all="ignore"):
        found = derivatives(tg, function, at)
    rtol = 1e-8 if what.startswith(ROUGH) else 1e-10
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-14, err_msg=what)


@pytest.mark.parametrize("exponent", [0, 0.0, 1, 2, 2.0, 3, 4, 0.5, 1.5, -1])
@pytest.mark.parametrize("base", [0.0, 2.0, -2.0])
def test_powers(exponent: float, base: float) -> None:
    """Of x**n at 0, the n-th derivative is n!, and all others are 0, those that follow too."""
    expected, factor = [], 1.0
    for order in range(1, 6):
        factor *= exponent - order + 1
        with np.errstate(all="ignore"):
            expected.append(factor * np.power(base, exponent - order) if factor else 0.0)
    with np.errstate(all="ignore"):
        for power in (exponent, tg.tensor(float(exponent)), np.array(float(exponent))):
            found = derivatives(tg, lambda x, n=power: x**n, base, 5)
            np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (tg.special.log_ndtr, 50.0, [0.0, 0.0, 0.0]),
        (tg.special.log_ndtr, -1e5, [1e5 + 1e-5, -1.0, 0.0]),
        (tg.special.i1e, 1e154, [0.0, 0.0, 0.0]),
        (tg.special.i0e, -1e154, [0.0, 0.0, 0.0]),
        (tg.special.i1, 1e-310, [0.5, 0.0, 0.375]),
        (lambda x: tg.copysign(x, -1.0), 0.0, [0.0, 0.0, 0.0]),
        (lambda x: tg.copysign(x, -1.0), 1e-200, [-1.0, 0.0, 0.0]),
        (lambda x: tg.copysign(x, -1.0), -np.inf, [1.0, 0.0, 0.0]),
    ],
)
def test_no_nan(function: Callable[[Any], Any], at: float, expected: list[Any]) -> None:
    """No quotient that overflows or is 0/0 is part of a derivative that is finite."""
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(derivatives(tg, function, at), expected, rtol=1e-9, atol=1e-8)


def test_exponent_of_zero() -> None:
    """0**y is 0 for all y > 0: its derivatives are 0, by the base as well where the exponent is 2."""
    x, y = tg.tensor(0.0, requires_grad=True), tg.tensor(2.0, requires_grad=True)
    by_y, by_x = tg.autograd.grad(x**y, (y, x), create_graph=True)
    assert [own.item() for own in tg.autograd.grad(by_y, (x, y), retain_graph=True)] == [0.0, 0.0]
    assert [own.item() for own in tg.autograd.grad(by_x, (x, y))] == [2.0, 0.0]


def test_origin() -> None:
    """Of the angle of the origin all derivatives are 0: none is recorded of what a mask hides."""
    x, y = tg.tensor(0.0, requires_grad=True), tg.tensor(0.0, requires_grad=True)
    first = tg.autograd.grad(tg.atan2(x, y), (x, y), create_graph=True)
    second = tg.autograd.grad(first[0] + first[1], (x, y))
    assert [own.item() for own in (*first, *second)] == [0.0] * 4


def test_complex_exponent() -> None:
    """The logarithm of a negative base is complex where the exponent is."""
    by_z = np.conj((-2 + 0j) ** (1 + 1j) * np.log(-2 + 0j))
    for base in (tg.tensor([-2.0]), -2.0, np.array([-2.0]), tg.tensor([-2.0], dtype="float32")):
        z = tg.tensor([1 + 1j], requires_grad=True)
        tg.real(base**z).sum().backward()
        np.testing.assert_allclose(z.grad.numpy(), [by_z], rtol=1e-6)
        second = tg.tensor([1 + 1j], requires_grad=True)
        (gradient,) = tg.autograd.grad(tg.real(base**second).sum(), second, create_graph=True)
        np.testing.assert_allclose(gradient.detach().numpy(), z.grad.numpy(), rtol=1e-6)


def test_numbers_under_single_precision() -> None:
    tg.set_default_dtype("float32")
    try:
        x = tg.ones(3, requires_grad=True)
        (gradient,) = tg.autograd.grad((2.0**x).sum(), x, create_graph=True)
        assert gradient.dtype == np.float32
        np.testing.assert_allclose(gradient.detach().numpy(), 2 * np.log(2), rtol=1e-6)
        assert tg.log(2.0).dtype == tg.pow(2.0, 3.0).dtype == np.float32
    finally:
        tg.set_default_dtype("float64")


# The table ---------------------------------------------------------------------------------------------------------

UNARY = [
    op
    for op in op_table.values()
    if op.family == "unary" and callable(op.vjp[0]) and op.name not in ("imag", *WITHOUT_DERIVATIVE)
]
BINARY = [
    op
    for op in op_table.values()
    if op.family == "binary"
    and any(map(callable, op.vjp))
    and op.name not in ("gammaincinv", "gammainccinv", "gamma_density", *WITHOUT_DERIVATIVE)
]
# Where PyTorch's derivatives are not those of the function.
BETTER: dict[str, Callable[[float], bool]] = {
    "acosh": lambda x: (
        x <= 1 or x == np.inf
    ),  # numbers where the function is nan, and nan where derivatives are 0 or inf
    "softsign": np.isinf,  # nan
    "mish": np.isposinf,  # nan in the second order
    "i1": lambda x: x == 0 or np.isinf(x),  # 0 for the third one, which is 3/8; nan
    "i1e": lambda x: x == 0,  # the same
    "i0": np.isinf,  # PyTorch: nan
    "sinc": lambda x: x == 0,  # nan for the second one, which is -pi**2/3
    "erfcx": lambda x: x > 30,  # digits are lost, nan at infinity
    "log_ndtr": lambda x: x == -np.inf,  # nan for the first one
    "lgamma": lambda x: x <= 0 or x == np.inf,  # numbers at negative integers; nan for derivatives that are 0
    "digamma": lambda x: x <= 0 or x == np.inf,  # the same
}
ROUGH = ("lgamma", "digamma")  # PyTorch's polygamma of order 1 has 10 digits
BETTER_PAIRS: dict[str, Callable[[float, float], bool]] = {
    "pow": lambda x, y: x == 0,  # nan, from the second order on
    "atan2": lambda x, y: x == y == 0,  # the same; here all are 0, as the first
    "copysign": lambda x, y: x == 0,  # the same
}


def by_torch(function: Callable[[Any], Any], at: float) -> list[Any]:
    return derivatives(torch, function, torch.tensor(at, dtype=torch.float64))


@needs_torch
@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.name)
def test_unary(op: Op) -> None:
    for at in {*POINTS, *op.special, np.inf, -np.inf}:
        if not BETTER.get(op.name, lambda x: False)(at):
            expected = by_torch(function_on_torch(op.name), at)
            check(lambda x: op.called((x,), {}), at, expected, f"{op.name} at {at}")


@needs_torch
@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
def test_binary(op: Op) -> None:
    """By the one, by the other, and by both at once."""
    function = function_on_torch(op.name)

    def compare(x: float, y: float) -> None:
        wide = [torch.tensor(own, dtype=torch.float64) for own in (x, y)]
        plain = [tg.tensor(own) for own in (x, y)]
        what = f"{op.name} at {x}, {y}"
        check(lambda t: op.called((t, plain[1]), {}), x, by_torch(lambda t: function(t, wide[1]), x), what)
        check(lambda t: op.called((plain[0], t), {}), y, by_torch(lambda t: function(wide[0], t), y), what)
        if x == y:
            check(lambda t: op.called((t, t), {}), x, by_torch(lambda t: function(t, t), x), what)

    for pair in {*op.special, *((x, y) for x in POINTS for y in POINTS)}:
        if not BETTER_PAIRS.get(op.name, lambda x, y: False)(*pair):
            compare(*pair)


def numpy_of(tensor: Any) -> np.ndarray:
    found: np.ndarray = tensor.detach().numpy() if isinstance(tensor, tg.Tensor) else tensor.numpy(force=True)
    return found


def gradients(module: Any, function: Callable[[Any], Any], at: Any) -> list[np.ndarray]:
    """Return the gradients of first to third order, each of the sum of the one before, weighed."""
    x = at.requires_grad_()
    y, found = function(x), []
    weights = np.linspace(1.0, 2.0, 12)
    for _ in range(ORDER):
        if y is not None and y.requires_grad:
            weight = weights[: int(np.prod(tuple(y.shape)))].reshape(tuple(y.shape))
            (y,) = module.autograd.grad(
                (y * (torch.tensor(weight) if module is torch else weight)).sum(), x, create_graph=True,
                allow_unused=True,
            )  # fmt: skip
        else:
            y = None
        found.append(np.zeros(tuple(x.shape)) if y is None else numpy_of(y))
    return found


TIES = {
    "ties": [1.0, 3.0, 3.0, 2.0],
    "zeros": [0.0, 0.0, 0.0, 0.0],
    "one zero": [2.0, 0.0, 3.0, -1.0],
    "bounds": [-1.0, 1.0, 2.0, -2.0],
    "infinite": [1.0, np.inf, 2.0, 3.0],
    "below": [1.0, -np.inf, 2.0, 3.0],
}
# Functions of a vector, by the same text on both sides: `m` is the module, `F` its `nn.functional`.
VECTOR: dict[str, Callable[[Any, Any, Any], Any]] = {
    "amax": lambda m, F, x: m.amax(x * x * x, 0),
    "amin": lambda m, F, x: m.amin(x * x * x, 0),
    "max": lambda m, F, x: m.max(x * x * x),
    "max dim": lambda m, F, x: m.max(x * x * x, 0)[0],
    "min dim": lambda m, F, x: m.min(x * x * x, 0)[0],
    "sum": lambda m, F, x: (x * x).sum(),
    "mean": lambda m, F, x: (x * x * x).mean(),
    "var": lambda m, F, x: m.var(x * x),
    "clamp": lambda m, F, x: m.clamp(x * x * x, -1.0, 1.0) * x,
    "clamp min": lambda m, F, x: m.clamp(x * x, min=1.0) * x,
    "where": lambda m, F, x: m.where(x > 1, x * x * x, x),
    "softmax": lambda m, F, x: m.softmax(x, 0),
    "log_softmax": lambda m, F, x: m.log_softmax(x, 0),
    "logsumexp": lambda m, F, x: m.logsumexp(x, 0),
    "mse_loss": lambda m, F, x: F.mse_loss(x * x, x),
    "softplus": lambda m, F, x: F.softplus(x, 2.0, 2.5),
    "square": lambda m, F, x: m.square(x),
    "reciprocal": lambda m, F, x: m.reciprocal(x),
    "sgn": lambda m, F, x: m.sgn(x) * x * x,
    "relu of cube": lambda m, F, x: m.relu(x * x * x) * x,
    "matmul": lambda m, F, x: m.matmul(x, x) * x,
    "outer": lambda m, F, x: m.outer(x, x).sum(0),
    "flip": lambda m, F, x: m.flip(x, (0,)) * x * x,
    "cat": lambda m, F, x: m.cat([x * x, x])[2:6] * x,
    "gather": lambda m, F, x: x[[0, 0, 1, 1]] * x * x,
}


# Beside an infinite element: nan here for all, in PyTorch infinite for the others (first order); infinite here (third).
NOT_FINITE = ("var", "relu of cube")


@needs_torch
@pytest.mark.parametrize("name", VECTOR)
@pytest.mark.parametrize("point", TIES)
def test_vector(name: str, point: str) -> None:
    function = VECTOR[name]
    if name in NOT_FINITE and not np.isfinite(TIES[point]).all():
        pytest.skip("see NOT_FINITE")
    expected = gradients(
        torch, lambda x: function(torch, torch.nn.functional, x), torch.tensor(TIES[point], dtype=torch.float64)
    )
    with np.errstate(all="ignore"):
        found = gradients(tg, lambda x: function(tg, tg.nn.functional, x), tg.tensor(TIES[point]))
    for order, (own, other) in enumerate(zip(found, expected, strict=True), 1):
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12, err_msg=f"order {order}")


# Other families ----------------------------------------------------------------------------------------------------

OTHERS = [
    *(op for op in op_table.values() if op.family not in ("unary", "binary", "elementwise")),
    *composites.values(),
]


def _kinks(one: Op | Composite) -> Iterator[tuple[Case, list[Any]]]:
    """Go over the samples of an op, each with its operands at each of the kinks."""
    rng = np.random.default_rng(0)
    for number, sample in enumerate(one.samples):
        given = sample.values or (None,) * len(sample.shapes)
        for draw in one.kinks if np.prod([np.prod(shape) for shape in sample.shapes]) else ():
            yield (
                Case(one, number),
                [  # type: ignore[arg-type]
                    draw(shape, np.float64, rng) if value is None or callable(value) else value
                    for shape, value in zip(sample.shapes, given, strict=True)
                ],
            )


def _eigh(x: Any, UPLO: str = "L") -> Any:  # PyTorch's name
    values, vectors = torch.linalg.eigh((x + x.mH) / 2, UPLO)
    both = (vectors * torch.arange(1.0, x.shape[-1] + 1, dtype=torch.float64)) @ vectors.mH
    return torch.cat([values.reshape(-1), both.reshape(-1)])


def _phase_free_qr(x: Any, mode: str = "reduced") -> Any:
    q, r = torch.linalg.qr(x, mode)
    n = min(r.shape[-2:])
    diagonal = r[..., :n, :n] * torch.eye(n, dtype=r.dtype)
    return torch.cat([(q[..., :n] @ diagonal).reshape(-1), (diagonal.mH @ r).reshape(-1)])


def _phase_free_svd(x: Any, full_matrices: bool = True) -> Any:
    u, s, vh = torch.linalg.svd(x, full_matrices=False)
    return torch.cat([s.reshape(-1), ((u * torch.arange(1.0, s.shape[-1] + 1, dtype=s.dtype)) @ vh).reshape(-1)])


def _phase_free_eig(x: Any) -> Any:
    values, vectors = torch.linalg.eig(x)
    cubes, turned = (values**3).sum(-1), vectors.mH @ vectors
    lengths = (turned * turned.conj()).real.sum((-2, -1))
    return torch.cat([cubes.real.reshape(-1), cubes.imag.reshape(-1), lengths.reshape(-1)])


def _put_along(x: Any, indices: np.ndarray, dim: int, length: int) -> Any:
    shape = list(x.shape)
    shape[dim] = length
    return torch.zeros(shape, dtype=x.dtype).scatter_add(dim, torch.as_tensor(indices), x)


def _scatter_add(x: Any, index_arrays: tuple[np.ndarray, ...], key: Any, shape: tuple[int, ...]) -> Any:
    places = np.arange(int(np.prod(shape))).reshape(shape)[numpy_key(key, index_arrays)]
    zeros = torch.zeros(int(np.prod(shape)), dtype=x.dtype)
    return zeros.index_add(0, torch.tensor(places.ravel()), x.reshape(-1)).reshape(shape)


def _prod(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    dims = range(x.ndim) if dim is None else np.atleast_1d(dim) % max(x.ndim, 1)
    for own in sorted(dims, reverse=True) if x.ndim else ():
        x = torch.prod(x, int(own), keepdim)
    return x


def _strided_put(x: Any, value: Any, part: Any) -> Any:
    places = torch.arange(x.numel()).as_strided(part.shape, part.strides, part.offset)
    return x.reshape(-1).index_put((places.reshape(-1),), value.expand(part.shape).reshape(-1)).reshape(x.shape)


def _strided_sum(x: Any, part: Any, shape: tuple[int, ...]) -> Any:
    places = torch.arange(part.offset + 10_000).as_strided(part.shape, part.strides, part.offset)
    zeros = torch.zeros(int(np.prod(shape)), dtype=x.dtype)
    return zeros.index_add(0, places.reshape(-1), x.reshape(-1)).reshape(shape)


def _like(indices: Any, source: Any) -> Any:
    """Return as much of a source as there are indices: torch has no gradient of a longer one."""
    return source[tuple(slice(length) for length in indices.shape)]


def _scatter_reduce(x: Any, indices: Any, source: Any, dim: int, reduce: str, include_self: bool) -> Any:
    if not include_self:  # torch lets elements that do not count have a share where they tie
        x = x.scatter(dim, indices, 1e9)
    return torch.scatter_reduce(x, dim, indices, _like(indices, source), reduce, include_self=include_self)


def _logcumsumexp(x: Any, dim: int) -> Any:
    """Return them one by one: of torch.logcumsumexp third derivatives are nan."""
    return torch.stack([x.narrow(dim, 0, k + 1).logsumexp(dim) for k in range(x.shape[dim])], dim) if x.ndim else x


def _first_of(name: str) -> Callable[..., Any]:
    return lambda x, **attrs: getattr(torch, name)(x, **attrs)[0]


def _standardize(x: Any, parts: tuple[int, int, int], eps: float, centered: bool) -> Any:
    rows = x.reshape(parts)
    rows = rows - rows.mean((0, 2), keepdim=True) if centered else rows
    return (rows * torch.rsqrt((rows * rows).mean((0, 2), keepdim=True) + eps)).reshape(x.shape)


def _layer_norm(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    last = int(np.prod(normalized_shape))
    out = _standardize(x, (1, x.numel() // last, last), eps, True)
    return out if weight is None else out * weight + (0 if bias is None else bias)


def _batch_norm(x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, *, training: bool,
                eps: float = 1e-5) -> Any:  # fmt: skip
    out = _standardize(x, (x.shape[0], x.shape[1], x[0, 0].numel()), eps, True)
    one = (-1, *(1 for _ in x.shape[2:]))
    return out if weight is None else out * weight.reshape(one) + bias.reshape(one)


def _instance_norm(x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, **options: Any) -> Any:
    rows = x.reshape(1, -1, *x.shape[2:])
    more = [None if own is None else own.repeat(x.shape[0]) for own in (weight, bias)]
    return _batch_norm(rows, None, None, *more, training=True, **options).reshape(x.shape)


def _attention(q: Any, k: Any, v: Any, attn_mask: Any = None, is_causal: bool = False, scale: float | None = None,
               enable_gqa: bool = False) -> Any:  # fmt: skip
    if enable_gqa:
        k, v = (own.repeat_interleave(q.shape[-3] // own.shape[-3], -3) for own in (k, v))
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril() if is_causal else attn_mask
    return torch.softmax(scores if mask is None else torch.where(mask, scores, -np.inf), -1) @ v


def _reduced(loss: Any, reduction: str) -> Any:
    return loss if reduction == "none" else getattr(loss, reduction)()


def _multi_margin(x: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None,
                  reduction: str = "mean") -> Any:  # fmt: skip
    rows, goal = torch.atleast_2d(x), torch.atleast_1d(target)
    others = 1.0 - torch.eye(rows.shape[1], dtype=rows.dtype)[goal]
    factors = others if weight is None else others * weight[goal][:, None]
    terms = torch.relu(torch.where(others > 0, margin - rows.gather(1, goal[:, None]) + rows, 0.0)) ** p
    return _reduced((terms * factors).mean(1).reshape(target.shape), reduction)


def _multilabel_margin(x: Any, target: Any, reduction: str = "mean") -> Any:
    losses = []
    for row, labels in zip(torch.atleast_2d(x), torch.atleast_2d(target), strict=True):
        chosen = labels[: int(torch.argmax((torch.cat([labels, labels.new_tensor([-1])]) < 0).int()))]
        others = row[[k for k in range(len(row)) if k not in chosen]]
        losses.append(torch.relu(1 - row[chosen][:, None] + others).sum() / len(row))
    return _reduced(torch.stack(losses).reshape(target.shape[:-1]), reduction)


# Torch's functions of another name, or with other arguments.
AS_TORCH: dict[str, Callable[..., Any]] = {
    "turned": lambda x, dims, place: torch.roll(x, place, dims if len(dims) == 1 else None),
    "cast": lambda x, source, dtype: FUNCTIONS["cast"](x, dtype),
    "take_along": lambda x, indices, dim: torch.take_along_dim(x, torch.as_tensor(indices), dim),
    "put_along": _put_along,
    "index_scatter_add": _scatter_add,
    "rows_added": lambda x, index_arrays, count: torch.zeros(count, *x.shape[1:], dtype=x.dtype).index_add(
        0, torch.as_tensor(index_arrays[1]), x[torch.as_tensor(index_arrays[0])]
    ),
    "prod": _prod,
    "solve": lambda a, b, left=True: torch.linalg.solve(a, b, left=left),
    "repeat": lambda x, repeats: x.repeat(repeats),
    "unfold": lambda x, **attrs: x.unfold(**attrs),
    "block_diag": lambda tensors: torch.block_diag(*tensors),
    "view_as_real": lambda x: torch.view_as_real(torch.complex(x, torch.zeros_like(x))),
    "strided_sum": _strided_sum,
    "strided_put": _strided_put,  # torch.as_strided_scatter has gradients where elements were replaced
    "mask_replace": lambda x, value, index_arrays: torch.where(torch.as_tensor(index_arrays[0]), value, x),
    "class_nll": lambda x, target: torch.nn.functional.nll_loss(x, torch.as_tensor(target), reduction="none"),
    "class_loss": lambda x, target: torch.nn.functional.cross_entropy(x, torch.as_tensor(target), reduction="none"),
    "eigh": _eigh,
    "gather": lambda x, indices, dim: torch.gather(x, dim, indices),
    "scatter": lambda x, indices, source, dim: torch.scatter(x, dim, indices, source),
    "scatter_add": lambda x, indices, source, dim: torch.scatter_add(x, dim, indices, _like(indices, source)),
    "scatter_reduce": _scatter_reduce,
    "logcumsumexp": _logcumsumexp,
    "median_along": lambda x, dim, keepdim=False: torch.median(x, dim, keepdim)[0],
    "nanmedian_along": lambda x, dim, keepdim=False: torch.nanmedian(x, dim, keepdim)[0],
    "median_of_all": lambda x, ignores_nan: torch.nanmedian(x) if ignores_nan else torch.median(x),
    **{name: _first_of(name) for name in ("kthvalue", "mode", "topk", "cummax", "cummin")},
    "cholesky": lambda x, **attrs: torch.linalg.cholesky((x + x.mH) / 2, **attrs),
    "cholesky_ex": lambda x, **attrs: torch.linalg.cholesky((x + x.mH) / 2, **attrs),
    "qr": _phase_free_qr,
    "svd": _phase_free_svd,
    "eig": _phase_free_eig,
    "cross": lambda x, y, dim=-1: torch.linalg.cross(x, y, dim=dim),
    "slogdet": lambda x: torch.cat([own.reshape(-1) for own in torch.linalg.slogdet(x)]),
    "lu_factor_ex": lambda x: torch.linalg.lu_factor(x)[0],
    "least_squares": lambda a, b: torch.linalg.lstsq(a, b).solution,
    "euclidean_distances": lambda x, y: torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), dim=-1),
    "standardize": _standardize,
    # What torch's own lacks: third derivatives of norms, in which means and variances do not stand still; second ones.
    "layer_norm": _layer_norm,
    "batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
    "scaled_dot_product_attention": _attention,
    "multi_margin_loss": _multi_margin,
    "multilabel_margin_loss": _multilabel_margin,
    "class_margins": lambda x, labels, p, margin, lists: (
        _multilabel_margin(x, labels, "none") if lists else _multi_margin(x, labels, p, margin, None, "none")
    ),
}
# They copy elements, with paddings that torch's functions do not have; what they make is compared: `conv2d`, `pow`,
# `lstm`.
# frexp has several results; mvlgamma and polygamma: see ROUGH.
NOT_ON_TORCH = (
    "im2col", "col2im", "conv2d_biased", "conv2d_transposed", "conv2d_kernels", "float_power",
    "recurrence", "solve_sylvester", "sqrtm", "frexp", "mvlgamma",
    "polygamma", "gamma_derivative", "beta_derivative", "resampled", "pooled", "unpooled", "fractionally_pooled",
    "resized", "ldl_solve", "segment_reduce",
    "lstm_steps", "gru_steps", "rnn_tanh_steps", "rnn_relu_steps",
)  # fmt: skip
# Beside an infinite element: torch has nan or 0 where these have what stands here.
OWN_AT_INFINITY = (
    "addcdiv",
    "deviations",
    "var",
    "prod",
    "sgn",
    "logsumexp",
    "logcumsumexp",
    "cumprod",
    "scatter_reduce",
    "softsign",
    "glu",
    "pairwise_distance",  # torch's sign of a difference of infinities, which is nan, is 0
)


def _theirs(one: Op | Composite, operands: list[Any], attrs: dict[str, Any]) -> Any:
    """Apply torch's function that an op or a composite is."""
    if isinstance(one, Composite):
        return one.called(operands, attrs, AS_TORCH.get(one.name) or composite_on_torch(one.name))
    function: Any = AS_TORCH.get(one.name) or function_on_torch(one.name)
    return function(operands, **attrs) if one.variadic else function(*operands, **attrs)


def _derivatives(module: Any, function: Callable[..., Any], leaves: list[Any], smooth: bool) -> list[list[np.ndarray]]:
    """Return the gradients of first to third order, each of the weighed sum of those before."""
    results = [function([x * (x * x + 1) if smooth else x for x in leaves])]
    found = []
    for _ in range(ORDER):
        total: Any = 0.0
        for y in results:
            y = y.real if "complex" in str(y.dtype) else y
            weights = np.linspace(1.0, 2.0, int(np.prod(tuple(y.shape)))).reshape(tuple(y.shape))
            total = total + (y * (torch.tensor(weights) if module is torch else weights)).sum()
        results = module.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
        found.append(
            [np.zeros(tuple(x.shape)) if y is None else numpy_of(y) for x, y in zip(leaves, results, strict=True)]
        )
        results = [y for y in results if y is not None and y.requires_grad]
        if not results:
            break
    return found


def _with(operands: list[Any], wanted: tuple[int, ...], tensors: list[Any]) -> list[Any]:
    """Return operands, tensors in the place of those that are wanted."""
    given = dict(zip(wanted, tensors, strict=True))
    return [given.get(k, own) for k, own in enumerate(operands)]


def _on_torch(case: Case, operands: list[Any], wanted: tuple[int, ...], finite: bool) -> list[list[np.ndarray]]:
    rest = [torch.tensor(own.copy()) if isinstance(own, np.ndarray) else own for own in operands]
    attrs = case.attrs()
    for key, own in attrs.items():
        if isinstance(own, np.ndarray) and (key == "weight" or isinstance(case.op, Composite)):
            attrs[key] = torch.tensor(own)
    leaves = [rest[k].requires_grad_() for k in wanted]
    return _derivatives(torch, lambda tensors: _theirs(case.op, _with(rest, wanted, tensors), attrs), leaves, finite)


@needs_torch
@pytest.mark.filterwarnings("ignore:Using padding='same'")  # PyTorch's, of its own padding
@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize(
    "one",
    mostly_full([one for one in OTHERS if one.name not in NOT_ON_TORCH and "polynomial" not in one.name], 4),
    ids=lambda one: one.name,
)
def test_other_families(one: Op | Composite) -> None:
    """By all operands: finite ones are smooth functions of the leaves, so that third derivatives are not 0."""
    tg.manual_seed(0)  # some begin at random matrices
    torch.manual_seed(0)
    for case, operands in _kinks(one):
        wanted = case.problem("float64", operands).wanted
        finite = all(np.isfinite(operands[k]).all() for k in wanted)
        if not wanted or not (finite or one.name not in OWN_AT_INFINITY):
            continue
        expected = _on_torch(case, operands, wanted, finite)
        with np.errstate(all="ignore"):
            found = _derivatives(
                tg,
                lambda tensors, case=case, rest=operands, wanted=wanted: case.op.called(
                    _with(rest, wanted, tensors), case.attrs()
                ),
                [tg.tensor(operands[k], requires_grad=True) for k in wanted],
                finite,
            )
        for order, (own, other) in enumerate(zip_longest(found, expected), 1):
            nothing = [np.zeros(operands[k].shape) for k in wanted]
            what = f"{case} at {operands}, order {order}, operand"
            checks.assert_close(own or nothing, other or nothing, what=what)
