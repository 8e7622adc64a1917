"""Ops along dimensions that have kernels: softmax, log_softmax and logsumexp, and the forward that such ops share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import TORCH_NAMES, DTypeLike, default_dtype
from tapegrad.forward.computed import OfCopy, computed
from tapegrad.forward.results import is_draft
from tapegrad.kernels.along import geometry_along, has_kernel, kernel_along, step_along
from tapegrad.ops.arithmetic import abs as absolute
from tapegrad.ops.arithmetic import sub, where
from tapegrad.ops.casts import cast
from tapegrad.ops.complex import real
from tapegrad.ops.extrema import amax
from tapegrad.ops.movement import reshape
from tapegrad.ops.reductions import kept_shape, sum, total_shape
from tapegrad.ops.table import docs
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, Sample, xp
from tapegrad.ops.table.public import SPECIAL, TOP, public
from tapegrad.ops.table.structural import one_dim, operation, out_of_range, reduced_dims
from tapegrad.ops.transcendental import exp, log
from tapegrad.tape.layout import Layout, contiguous_layout
from tapegrad.tensor import Tensor

Dims = tuple[int, ...]


def floating(call: str, input: Any, dtype: DTypeLike | None = None) -> Tensor:
    """Return an operand as a tensor of a real floating dtype, converted to the given one.

    Raises
    ------
    NotImplementedError
        If it is of another dtype and none is given.
    """
    x = as_operand(input, call, "input", 1)
    if dtype is not None:
        return cast(x, dtype)
    if x._layout.dtype.kind != "f":
        name = TORCH_NAMES.get(x.dtype.name, x.dtype.name)
        raise NotImplementedError(f"{call} not implemented for '{name}'; it got dtype {x.dtype}: convert it first")
    return x


_DOUBLE: Final = str.maketrans("fF", "dD")


def in_numpy(by_numpy: Callable[..., Any], dtype: np.dtype, attrs: dict[str, Any]) -> Callable[..., Any]:
    """Return the forward that lets NumPy compute a result of this dtype, as accurate as a kernel's.

    NumPy adds up dimensions that are no neighbours term by term, so single precision is summed in double precision.
    """

    def forward(x: Any, *index_arrays: Any) -> Any:
        values = np.asarray(x)
        if values.dtype.char in "fF":
            values = values.astype(values.dtype.char.translate(_DOUBLE))
        with np.errstate(all="ignore"):
            return np.asarray(by_numpy(values, *index_arrays, **attrs), dtype=dtype, order="C")[()]

    return forward


def along(
    name: str,
    result_shape: Callable[[Layout, dict[str, Any]], tuple[int, ...]],
    by_numpy: Any,
    result_dtype: np.dtype | None = None,
) -> Any:
    """Return `Op.prepare_forward` of an op whose kernel has its name; without one, NumPy computes."""

    def prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Any:
        operand, values = layouts[0], dict(**attrs)
        dtype = result_dtype or operand.dtype
        geometry = geometry_along(operand.shape, values["dim"])

        otherwise = in_numpy(by_numpy, dtype, values)
        in_order = contiguous_layout(operand.shape, operand.dtype)
        if geometry is None or not has_kernel(in_order) or operand.inline or not operand.size:
            return otherwise
        shape = result_shape(in_order, values)
        kernel = kernel_along(name, operand.dtype.name)
        forward: Any = computed(kernel, geometry, shape, dtype, otherwise, by_status=True)
        if operand.contiguous:
            return forward
        of_copy = OfCopy(forward)
        return of_copy if is_draft(forward) else of_copy.made()

    return prepare


def _shifted(x: Any, dim: Dims) -> Any:
    """Return x less its largest element along dimensions, so that no exponential is infinite."""
    return x - np.max(x, axis=dim, keepdims=True, initial=-np.inf)


def _softmax_by_numpy(x: Any, dim: Dims) -> Any:
    powers = np.exp(_shifted(x, dim))
    return powers / powers.sum(axis=dim, keepdims=True)


def _log_softmax_by_numpy(x: Any, dim: Dims) -> Any:
    shifted = _shifted(x, dim)
    return shifted - np.log(np.exp(shifted).sum(axis=dim, keepdims=True))


def _logsumexp_by_numpy(x: Any, dim: Dims, keepdim: bool) -> Any:
    top = np.max(x, axis=dim, keepdims=True, initial=-np.inf)
    top = np.where(np.isinf(top), 0, top)  # if the largest element is infinite, so is the result
    found = np.log(np.exp(x - top).sum(axis=dim, keepdims=True)) + top
    return found if keepdim else found.reshape(total_shape(x.shape, dim, False))


def same_shape(layout: Layout, attrs: dict[str, Any]) -> tuple[int, ...]:
    """Return the shape of a result that has the shape of its operand."""
    return layout.shape


def reduced_shape(layout: Layout, attrs: dict[str, Any]) -> tuple[int, ...]:
    """Return the shape of a result of one element for each line of its operand."""
    return total_shape(layout.shape, attrs["dim"], attrs["keepdim"])


SAMPLES = (
    Sample(((),), {"dim": 0}),
    Sample(((3,),), {"dim": 0}),
    Sample(((2, 3),), {"dim": -1}),
    Sample(((2, 3, 4),), {"dim": 1}),
    Sample(((3, 2),), {"dim": 1}, values=(np.arange(6.0).reshape(2, 3).T / 4,)),
    Sample(((0, 3),), {"dim": 1}),
)


def _log_softmax_oracle(x: Any, dim: int) -> Any:
    dims = (dim,) if np.ndim(x) else ()
    return _shifted(x, dims) - np.log(np.exp(_shifted(x, dims)).sum(dims, keepdims=True))


def _normalising(
    name: str, by_numpy: Callable[..., Any], rule: Callable[..., Any], oracle: Callable[..., Any], doc: str
) -> Callable[..., Tensor]:
    """Return a function whose results belong together along one dimension, and whose rule asks for them."""

    @public(method=True, namespaces=(TOP, SPECIAL))
    @operation(
        name,
        forward=by_numpy,
        vjp=(rule,),
        family="along",
        step=lambda plan, operand: step_along(plan, plan.attrs["dim"], ("out",)),
        attrs=("dim",),
        prepare_forward=along(name, same_shape, by_numpy),
        oracle=oracle,
        samples=SAMPLES,
        errors=(out_of_range(name),),
        real_only=True,
        doc=doc,
        common=docs.ALONG_IN_DTYPE,
    )
    def bind(input: Any, dim: int, dtype: DTypeLike | None = None) -> Bound:
        x = floating(name, input, dtype)
        place = one_dim(name, x._layout.ndim, dim)
        return Bound((x,), {"dim": (place,) if x._layout.ndim else ()})

    return bind


softmax = _normalising(
    "softmax",
    _softmax_by_numpy,
    lambda ct, out, dim: out * (ct - xp.sum(ct * out, dim, True)),
    lambda x, dim: np.exp(_log_softmax_oracle(x, dim)),
    r"""Exponentials along a dimension, divided by their sum, so that results sum to 1.

    Notes
    -----
    Derivative: :math:`\bar x_i = y_i (\bar y_i - \sum_j \bar y_j y_j)`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.softmax(tg.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """,
)
log_softmax = _normalising(
    "log_softmax",
    _log_softmax_by_numpy,
    lambda ct, out, dim: ct - xp.exp(out) * xp.sum(ct, dim, True),
    _log_softmax_oracle,
    r"""Logarithm of `softmax`, computed so that nothing overflows or cancels.

    Notes
    -----
    Derivative: :math:`\bar x_i = \bar y_i - e^{y_i} \sum_j \bar y_j`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.log_softmax(tg.tensor([0.0, 1000.0]), 0)
    tensor([-1000.,     0.])
    """,
)


def _logsumexp_rule(ct: Any, x: Any, out: Any, dim: Dims) -> Any:
    kept = kept_shape(x.shape, dim)
    shift = xp.where(out == -np.inf, 0.0, out)  # where all elements are -inf, the slope is 0
    return xp.reshape(ct, kept) * xp.exp(x - xp.reshape(shift, kept))


def _logsumexp_of_complex(x: Tensor, dim: int | tuple[int, ...], keepdim: bool) -> Tensor:
    parts = real(x).detach()
    if parts.numel():
        highest = amax(parts, dim, True)  # a constant: any shift gives the same sum
        top = where(absolute(highest) == np.inf, 0.0, highest)
        found = log(sum(exp(sub(x, top)), dim, True)) + top
    else:
        found = sum(x, dim, True) - np.inf  # not log(0), whose slope is infinite
    return found if keepdim else reshape(found, sum(parts, dim).shape)


@public(namespaces=(TOP, SPECIAL), method=True, reduces="logaddexp")
@operation(
    "logsumexp",
    forward=_logsumexp_by_numpy,
    vjp=(_logsumexp_rule,),
    family="along",
    step=lambda plan, operand: step_along(plan, plan.attrs["dim"], ("x", "out")),
    attrs=("dim", "keepdim"),
    prepare_forward=along("logsumexp", reduced_shape, _logsumexp_by_numpy),
    oracle=lambda x, dim, keepdim=False: np.log(np.exp(x).sum(axis=dim if np.ndim(x) else None, keepdims=keepdim)),
    samples=(
        *SAMPLES[:-1],
        Sample(((2, 3, 4),), {"dim": (0, 2)}),
        Sample(((2, 3, 4),), {"dim": (1, 2), "keepdim": True}),
    ),
    errors=(out_of_range("logsumexp"),),
)
def logsumexp(input: Any, dim: int | tuple[int, ...], keepdim: bool = False) -> Any:
    r"""Logarithm of the sum of exponentials, computed so that nothing overflows.

    Parameters
    ----------
    input : Tensor or array
    dim : int or tuple of int
    keepdim : bool
        Keep the dimensions, with length 1.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If `input` does not have such a dimension.

    Notes
    -----
    Derivative: the softmax, :math:`\bar x_i = \bar y e^{x_i - y}`; 0 where all elements are -inf (PyTorch: nan).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.logsumexp(tg.tensor([1000.0, 1000.0]), 0)
    tensor(1000.6931)
    """
    x = as_operand(input, "logsumexp", "input", 1)
    kind = x._layout.dtype.kind
    if kind == "c":
        return _logsumexp_of_complex(x, dim, keepdim)
    return Bound(
        (x if kind == "f" else cast(x, default_dtype()),),
        {"dim": reduced_dims("logsumexp", x._layout.ndim, dim), "keepdim": bool(keepdim)},
    )
