"""Ops: complex numbers and their parts; cotangents follow PyTorch's convention of conjugates."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.casts import cast
from tapegrad.ops.table import docs
from tapegrad.ops.table.elementwise import unary
from tapegrad.ops.table.gateway import as_operand, is_complex
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.public import public
from tapegrad.recording.keys import MAKES_VIEWS
from tapegrad.tensor import Tensor

conj_of_complex = unary(
    "conj", np.conjugate, lambda ct: xp.conj(ct),
    doc="Complex conjugate.", derivative="conjugates the cotangent.", to_float=False, oracle=np.conjugate, linear=True,
    names=None,
)  # fmt: skip

real_of_complex = unary(
    "real", np.real, lambda ct: ct,
    doc="Real part.", derivative="the cotangent becomes the real part.", to_float=False, oracle=np.real, linear=True,
    flags=MAKES_VIEWS,
    names=None,
)  # fmt: skip


@public(method=True, ufuncs=("conjugate",), common=docs.UNARY)
def conj(input: Any) -> Tensor:
    r"""Complex conjugate; of real numbers the tensor itself.

    Notes
    -----
    Derivative: with :math:`y = x^*`, :math:`\bar x = \bar y^*`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.conj(tg.tensor([1 + 2j, 3 - 4j]))
    tensor([1.-2.j, 3.+4.j])
    """
    x = as_operand(input, "conj", "input", 1)
    return conj_of_complex(x) if x.dtype.kind == "c" else x


@public(functions=("real",), attribute=True, common=docs.UNARY)
def real(input: Any) -> Tensor:
    r"""Real part; of real numbers the tensor itself.

    Notes
    -----
    Derivative: with :math:`y = \operatorname{Re}(x)`, :math:`\bar x = \bar y`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.real(tg.tensor([1 + 2j, 3 - 4j]))
    tensor([1., 3.])
    """
    x = as_operand(input, "real", "input", 1)
    if x.dtype.kind != "c":
        return x
    x._array()  # the view must share its memory
    return real_of_complex(x)


imag_or_zero = unary(
    "imag", lambda x: np.imag(x) if np.iscomplexobj(x) else np.zeros_like(x), lambda ct: ct * 1j,
    doc="Imaginary part; 0 of real numbers.", derivative="the cotangent becomes the imaginary part.", to_float=False,
    oracle=np.imag, call=lambda x: xp.imag(x), fx=lambda x: x.imag, linear=True, flags=MAKES_VIEWS, names=None,
)  # fmt: skip


@public(attribute=True, common=docs.UNARY)
def imag(input: Any) -> Tensor:
    r"""Imaginary part of complex numbers.

    Raises
    ------
    RuntimeError
        If the dtype is not complex. ``np.imag(input)`` gives zeros then.

    Notes
    -----
    Derivative: with :math:`y = \operatorname{Im}(x)`, :math:`\bar x = \mathrm{i} \bar y`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.imag(tg.tensor([1 + 2j, 3 - 4j]))
    tensor([ 2., -4.])
    """
    x = as_operand(input, "imag", "input", 1)
    if x.dtype.kind != "c":
        raise RuntimeError(
            f"imag is not implemented for tensors with non-complex dtypes; it got {x.dtype}. np.imag(x) gives zeros"
        )
    x._array()  # the view must share its memory
    return imag_or_zero(x)


def _conj(value: Any) -> Any:
    return conj_of_complex(value) if is_complex(value) else value


def _real(value: Any) -> Any:
    return real_of_complex(value) if is_complex(value) else value


def _alike(x: Any, other: Any) -> Any:
    """Return a real number as a complex one if the other is complex."""
    if not is_complex(other) or is_complex(x):
        return x
    return cast(x, np.result_type(x.dtype, np.complex64)) if isinstance(x, Tensor) else complex(x)


xp.conj, xp.real, xp.alike = _conj, _real, _alike  # free for real numbers: nothing is recorded
