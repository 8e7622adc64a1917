"""Ops: what kind of number an element is, which has no gradient; mantissa and exponent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.kernels.elementwise import loop_step
from tapegrad.ops.table import docs
from tapegrad.ops.table.elementwise import UNARY_SAMPLES, binary, unary
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, ErrorSample, xp
from tapegrad.ops.table.promotion import no_numbers
from tapegrad.ops.table.public import Names, public
from tapegrad.ops.table.structural import operation
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import ARRAY, CT, Step
from tapegrad.return_types import return_type
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import contiguous_strides, dtype_name
from tapegrad.tensor import Tensor


def _predicate(name: str, forward: Callable[..., Any], doc: str, real_only: bool = False) -> Callable[[Any], Tensor]:
    functions = () if isinstance(forward, np.ufunc) else (name,)
    return unary(
        name, forward, NOT_DIFFERENTIABLE, doc=doc, to_float=False, real_only=real_only, oracle=forward,
        names=Names(method=True, functions=functions),
    )  # fmt: skip


isnan = _predicate("isnan", np.isnan, r"Whether an element is nan, :math:`y = [x \ne x]`.")
isinf = _predicate("isinf", np.isinf, r"Whether an element is infinite, :math:`y = [\left|x\right| = \infty]`.")
isfinite = _predicate("isfinite", np.isfinite, r"Whether an element is finite, :math:`y = [\left|x\right| < \infty]`.")
isposinf = _predicate(
    "isposinf", np.isposinf, r"Whether an element is plus infinity, :math:`y = [x = \infty]`.", real_only=True
)
isneginf = _predicate(
    "isneginf", np.isneginf, r"Whether an element is minus infinity, :math:`y = [x = -\infty]`.", real_only=True
)
isreal = _predicate(
    "isreal", np.isreal, r"Whether an element has no imaginary part, :math:`y = [\operatorname{Im}(x) = 0]`."
)
signbit = _predicate(
    "signbit",
    np.signbit,
    r"Whether the sign bit is set, :math:`y = [\operatorname{copysign}(1, x) < 0]`.",
    real_only=True,
)

logical_xor = binary(
    "logical_xor", np.logical_xor, (NOT_DIFFERENTIABLE, NOT_DIFFERENTIABLE),
    doc=r"Whether just one of the two is nonzero, :math:`z = [[x = 0] \ne [y = 0]]`.", oracle=np.logical_xor,
    check_dtypes=no_numbers("logical_xor", "input", "other"),
    names=Names(method=True, inplace=True, ufuncs=("logical_xor",)),
)  # fmt: skip


class Frexp(NamedTuple):
    """Mantissa and exponent."""

    mantissa: Tensor
    exponent: Tensor


def _whole(x: Any) -> Any:
    exponents = np.where((x == 0) | ~np.isfinite(x), 0, np.floor(np.log2(np.where(x == 0, 1, abs(x)))) + 1)
    return np.where(exponents == 0, x, x / np.exp2(exponents)).astype(x.dtype)


def _frexp(x: Any) -> tuple[Any, np.ndarray]:
    mantissa, exponent = np.frexp(x, order="C")
    return mantissa, np.asarray(exponent)


def _frexp_rule(ct: Any, exponent: Any) -> Any:
    return ct * xp.exp2(-exponent)


def _frexp_step(plan: Plan, operand: int) -> Step:
    own, exponents = plan.layouts[0], (ARRAY, plan.position("exponent"))
    name, strides = dtype_name(own.dtype), contiguous_strides(own.shape, own.dtype.itemsize)
    sources = [((CT, 0), name, strides), (exponents, "int32", contiguous_strides(own.shape, 4))]
    return loop_step("frexp", _frexp_rule, own.shape, sources, (name, strides), casts=(name, name))


@public(method=True)
@operation(
    "frexp",
    forward=_frexp,
    vjp=(_frexp_rule,),
    step=_frexp_step,
    family="results",
    results=("mantissa", "exponent"),
    result_type=return_type(Frexp, "frexp"),
    samples=tuple(UNARY_SAMPLES),
    oracle=lambda x: _whole(x),
    real_only=True,
    domain=(0.6, 0.9),
    errors=(ErrorSample(lambda: xp.frexp(np.arange(3)), RuntimeError, "only supports floating-point dtypes"),),
    common=docs.Common(docs.INPUT),
)
def frexp(input: Any) -> Bound:
    """Split numbers into a mantissa from 0.5 to 1 and a power of 2.

    Returns
    -------
    named tuple of Tensor
        ``mantissa``, and ``exponent`` of dtype int32: ``input`` is ``mantissa * 2**exponent``.

    Raises
    ------
    RuntimeError
        If the dtype is not floating point.

    Notes
    -----
    Derivative: of the mantissa :math:`2^{-e}`; the exponent has no gradient.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.frexp(tg.tensor([3.0, 8.0])).mantissa
    tensor([0.7500, 0.5000])
    """
    x = as_operand(input, "frexp", "input", 1)
    if x.dtype.kind != "f":
        raise RuntimeError(f"frexp() only supports floating-point dtypes; it got {x.dtype}, convert with .to(...)")
    return Bound((x,))
