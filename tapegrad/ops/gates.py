"""Activations along a dimension: gated linear units, and softmax as networks call it."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np

from tapegrad.ops.along import log_softmax as log_softmax_of_dim
from tapegrad.ops.along import softmax as softmax_of_dim
from tapegrad.ops.arithmetic import neg
from tapegrad.ops.indexing import getitem
from tapegrad.ops.shaped import only_floats
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.elementwise import binary
from tapegrad.ops.table.gateway import as_operand, shape_of
from tapegrad.ops.table.op import Sample, xp
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.ops.table.structural import one_dim
from tapegrad.tensor import Tensor


def _gate_rule(ct: Any, x: Any, y: Any) -> Any:
    part = xp.sigmoid(y)
    return ct * x * (part * (1 - part))


_gated = binary(
    "gated", None, (lambda ct, y: ct * xp.sigmoid(y), _gate_rule), doc="", fx=lambda x, y: x * xp.sigmoid(y),
    oracle=lambda x, y: x / (1 + np.exp(-y)), real_only=True, check_dtypes=only_floats("glu"), names=None,
    special={(2.0, 0.0): (0.5, 0.5)}, node_name="GluBackward0",
)  # fmt: skip


def _glu_by_numpy(input: np.ndarray, dim: int = -1) -> Any:
    x, y = np.split(input, 2, dim)
    return x / (1 + np.exp(-y))


@public(namespaces=(FUNCTIONAL,))
@composite((Sample(((4,),)), Sample(((2, 4, 3),), {"dim": 1})), _glu_by_numpy, real_only=True)
def glu(input: Any, dim: int = -1) -> Tensor:
    r"""First half of a tensor, times the `sigmoid` of the second half: :math:`y = a\, \sigma(b)`.

    Parameters
    ----------
    input : Tensor or array
    dim : int
        Along which it is halved.

    Raises
    ------
    RuntimeError
        If its length is odd, or there is none.
    IndexError
        If `input` does not have such a dimension.

    Notes
    -----
    Derivatives: :math:`\bar a = \bar y\, \sigma(b)` and :math:`\bar b = \bar y\, a\, \sigma(b) (1 - \sigma(b))`.
    Y. Dauphin et al., "Language modeling with gated convolutional networks" (2016).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.glu(tg.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """
    x = as_operand(input, "glu", "input", 1)
    if not x.ndim:
        raise RuntimeError("glu does not support 0-dimensional tensors; it halves a dimension")
    place = one_dim("glu", x.ndim, dim)
    half, odd = divmod(x.shape[place], 2)
    if odd:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {x.shape[place]}")
    before = (slice(None),) * place
    result: Tensor = _gated(getitem(x, (*before, slice(0, half))), getitem(x, (*before, slice(half, 2 * half))))
    return result


def _softmin_by_numpy(input: np.ndarray, dim: int) -> Any:
    powers = np.exp(-input)
    return powers / powers.sum(dim, keepdims=True)


def _implicit_dim(call: str, input: Any) -> int:
    """Return the dimension that PyTorch's functions of neural networks choose where none is given, with a warning."""
    warnings.warn(
        f"Implicit dimension choice for {call} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=4,
    )
    return 0 if len(shape_of(input)) in (0, 1, 3) else 1


_SAMPLES: Final = (Sample(((2, 3),), {"dim": 1}), Sample(((3,),), {"dim": 0}))


@public(namespaces=(FUNCTIONAL,), common=docs.ALONG_IN_DTYPE)
@composite(_SAMPLES, lambda input, dim: _softmin_by_numpy(-input, dim), real_only=True)
def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    r"""Exponentials along a dimension, divided by their sum: `tapegrad.softmax`, whose `dim` may be left out here.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.softmax(tg.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    if dim is None:
        dim = _implicit_dim("softmax", input)
    return softmax_of_dim(input, dim, dtype)


@public(namespaces=(FUNCTIONAL,), common=docs.ALONG_IN_DTYPE)
@composite(_SAMPLES, lambda input, dim: np.log(_softmin_by_numpy(-input, dim)), real_only=True)
def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    r"""Logarithm of `softmax`: `tapegrad.log_softmax`, whose `dim` may be left out here.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.log_softmax(tg.tensor([0.0, 1000.0]), 0)
    tensor([-1000.,     0.])
    """
    if dim is None:
        dim = _implicit_dim("log_softmax", input)
    return log_softmax_of_dim(input, dim, dtype)


@public(namespaces=(FUNCTIONAL,), common=docs.ALONG_IN_DTYPE)
@composite(_SAMPLES, _softmin_by_numpy, real_only=True)
def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    r"""`softmax` of the negative elements: the least has the largest share.

    Notes
    -----
    Derivative: :math:`\bar x_i = y_i (\sum_j \bar y_j y_j - \bar y_i)`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.softmin(tg.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    if dim is None:
        dim = _implicit_dim("softmin", input)
    return softmax_of_dim(neg(input), dim, dtype)
