"""Random programs on PyTorch: each row by torch's function of its name, or by what stands here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.ops.table.op import op_table
from tests.cases import numpy_key

try:
    import torch
except ImportError:
    torch: Any = None
else:
    torch.backends.opt_einsum.enabled = False  # where installed (JAX needs it), it changes the order of the products


def _places(x: Any, key: Any) -> Any:
    """Return where the elements that an index chooses stand; torch knows no negative steps."""
    return torch.tensor(np.array(np.arange(x.numel()).reshape(tuple(x.shape))[key]))


def _taken(x: Any, key: Any) -> Any:
    places = _places(x, key)
    return x.reshape(-1)[places.reshape(-1)].reshape(places.shape)


def _number(y: Any) -> Any:
    """Return integers for truth values, which torch does not subtract, nor raise to the power of."""
    return y.to(torch.int64) if getattr(y, "dtype", None) == torch.bool else y


def _set_at(x: Any, value: Any, index_arrays: tuple[np.ndarray, ...], key: Any) -> Any:
    places = _places(x, numpy_key(key, index_arrays))
    value = torch.as_tensor(value, dtype=x.dtype).expand(places.shape)
    return x.reshape(-1).index_put((places.reshape(-1),), value.reshape(-1)).reshape(x.shape)


def _reduced(name: str) -> Callable[..., Any]:
    def call(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        function = getattr(torch, name)
        return function(x) if dim is None else function(x, dim, keepdim)

    return call


def _clamp(x: Any, low: Any, high: Any) -> Any:
    """Clamp; torch.clamp gives the gradient to neither of two equal bounds."""
    dtype = (x + low + high).dtype  # as torch promotes numbers, tensors without dimensions, and others
    x, low, high = (torch.as_tensor(own).to(dtype) for own in (x, low, high))
    outside = torch.where((x < low) & (low <= high), low, high)
    return torch.where((x >= low) & (x <= high), x, outside)


def _root(x: Any) -> Any:
    return torch.where(x == 0, 0.0, torch.where(x == 0, 1.0, x).sqrt())


# PyTorch has a gradient for the triangle of a factor that is not read: it is made of zeros first.
OF_TRIANGLES: dict[str, Callable[..., Any]] = {
    "cholesky_solve": lambda b, L, upper=False: torch.cholesky_solve(b, L.triu() if upper else L.tril(), upper=upper),
    "cholesky_inverse": lambda L, upper=False: torch.cholesky_inverse(L.triu() if upper else L.tril(), upper=upper),
}

# Functions of which PyTorch has no derivative, or that it lacks.
WITHOUT_DERIVATIVE = (
    "floor_divide", "heaviside", "zeta", "bessel_j2", "bessel_i2", "bessel_i2e", "spherical_bessel_j0", "gamma",
    "beta", "betaln", "j0", "j1", "y0", "y1", "k0", "k1", "k0e", "k1e", "jv", "yv", "iv", "ive", "kv",
    "gammainc", "gammaincc", "trigamma", "cbrt", "airy_ai", "airy_ai_prime", "airy_bi", "airy_bi_prime",
    "ldl_factor_ex", "erfi", "dawsn", "erfcinv", "expi", "exp1", "sine_integral", "cosine_integral", "sinh_integral",
    "cosh_integral", "fresnel_s", "fresnel_c", "spence", "ellipe", "ellipk",
)  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "root": _root,
    "angle_of_real": lambda x: torch.angle(x),
    "trunc_divide": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "getitem": _taken,
    "unfold": lambda x, dimension, size, step: x.unfold(dimension, size, step),
    "block_diag": lambda tensors: torch.block_diag(*tensors),
    "index_gather": _taken,
    "index_replace": _set_at,
    "strided_part": lambda x, part: x.contiguous().as_strided(part.shape, part.strides, part.offset),
    "strided_put": lambda x, value, part: torch.as_strided_scatter(
        x.contiguous(), torch.as_tensor(value, dtype=x.dtype).expand(part.shape), part.shape, part.strides, part.offset
    ),
    "sum": _reduced("sum"),
    "mean": _reduced("mean"),
    "pow": lambda x, y: torch.pow(x, _number(y)),
    "sub": lambda x, y: torch.sub(x, _number(y)),
    "logaddexp": lambda x, y: torch.logaddexp(_number(x), _number(y)),  # its derivative subtracts
    "logaddexp2": lambda x, y: torch.logaddexp2(_number(x), _number(y)),
    "atan2": lambda x, y: torch.atan2(_number(x), _number(y)),  # its derivative negates
    "reshape": lambda x, shape: x.reshape(shape),
    "expand": lambda x, size: x.expand(size),
    "clamp": _clamp,
    "softplus": lambda x: torch.nn.functional.softplus(x, threshold=700.0),  # the row has none
    "prelu_kernel": lambda x, y: torch.where(x > 0, x, x * y),
    "elu": lambda x, alpha, scale: torch.ops.aten.elu(x, alpha, 1, scale),  # the third of its function is another
    "gated": lambda x, y: x * torch.sigmoid(torch.as_tensor(y).to(torch.result_type(x, y))),
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "hardsigmoid": lambda x: torch.nn.functional.hardtanh(x, -3.0, 3.0) / 6 + 0.5,  # its own has no second derivative
    "max_along": lambda x, dim, keepdim=False: torch.max(x, dim, keepdim).values,
    "min_along": lambda x, dim, keepdim=False: torch.min(x, dim, keepdim).values,
    "sort": lambda x, dim=-1, descending=False: torch.sort(x, dim, descending).values,
    "deviations": lambda x, dim=None, keepdim=False: ((x - _reduced("mean")(x, dim, True)) ** 2).sum(dim, keepdim),
    "cast": lambda x, dtype: x.to(getattr(torch, np.dtype(dtype).name)),
}


def function_on_torch(name: str) -> Callable[..., Any] | None:
    """Return PyTorch's function of an op, if there is one."""
    modules = (torch, torch.special, torch.nn.functional, torch.linalg, torch.fft)
    found = [FUNCTIONS.get(name), *(getattr(module, name, None) for module in modules)]
    return next((function for function in found if function is not None), None)


def on_torch(name: str, operands: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """Apply a step of a program."""
    function = function_on_torch(name)
    assert function is not None
    given = [torch.tensor(own.copy()) if isinstance(own, np.ndarray) else own for own in operands]
    if op_table[name].variadic:
        return function(given, **attrs)
    try:
        return function(*given, **attrs)
    except TypeError:  # not all take Python's numbers; tensors without dimensions promote as these do
        like = next(own for own in given if isinstance(own, torch.Tensor) and own.is_floating_point())
        given = [own if isinstance(own, torch.Tensor) else torch.tensor(own, dtype=like.dtype) for own in given]
        return function(*given, **attrs)
