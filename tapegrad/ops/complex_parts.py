"""Ops and composites: complex numbers made of real ones, and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.dtypes import TORCH_NAMES
from tapegrad.kernels.structural import gather_step
from tapegrad.ops.arithmetic import flat, mul
from tapegrad.ops.broadcasting import contiguous
from tapegrad.ops.casts import cast
from tapegrad.ops.complex import conj, imag, real
from tapegrad.ops.movement import same_view
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.elementwise import bind_operands, check_broadcast, unary
from tapegrad.ops.table.gateway import as_operand, connect, connect_as
from tapegrad.ops.table.op import Bound, ErrorSample, Op, Sample, op_table, xp
from tapegrad.ops.table.promotion import no_numbers
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import operation
from tapegrad.ops.transcendental import cos, sin
from tapegrad.recording.keys import MAKES_VIEWS
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

_PI = math.pi


def _check(layouts: tuple[Layout, ...], call: str = "complex", names: tuple[str, str] = ("real", "imag")) -> None:
    no_numbers(call, *names)(layouts)
    if layouts[0].dtype == layouts[1].dtype and layouts[0].dtype.kind == "f":
        return
    first, second = (TORCH_NAMES.get(layout.dtype.name, layout.dtype.name) for layout in layouts)
    if any(layout.dtype.kind != "f" for layout in layouts):
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {first} and {second}"
            ": convert their dtypes"
        )
    if first != second:
        raise RuntimeError(f"Expected object of scalar type {first} but got scalar type {second} for second argument")


def _forward(x: Any, y: Any) -> np.ndarray:
    shape = x.shape if x.shape == y.shape else np.broadcast_shapes(x.shape, y.shape)
    out = np.empty(shape, np.complex64 if x.dtype == np.float32 else np.complex128)
    out.real, out.imag = x, y
    return out


_complex = Op(
    name="complex",
    operands=("x", "y"),
    forward=_forward,
    vjp=(lambda ct: xp.real(ct), lambda ct: xp.imag(ct)),
    family="complex",
    linear=True,
    step=lambda plan, operand: gather_step(plan, lambda z: z.imag if operand else z.real, operand),
    real_only=True,
    check_dtypes=_check,
    check=lambda bound: check_broadcast("complex", bound.operands),
    bind=bind_operands("complex", ("real", "imag")),
    oracle=lambda x, y: np.stack(np.broadcast_arrays(x, y), -1).view(np.result_type(x.dtype, np.complex64))[..., 0],
    samples=(Sample(((), ())), Sample(((3,), (3,))), Sample(((2, 3), (3,))), Sample(((2, 0), (1, 1)))),
    errors=(
        ErrorSample(lambda: xp.complex(np.ones(2), np.ones(2, np.float32)), RuntimeError, "Expected object of scalar"),
        ErrorSample(lambda: xp.complex(np.ones(2, int), np.ones(2)), RuntimeError, "Expected both inputs to be Half"),
        ErrorSample(lambda: xp.complex(np.ones(2), np.ones(3)), RuntimeError, "must match the size of tensor b (3)"),
    ),
)
connect(_complex)


@public(of=_complex)
def complex(real: Any, imag: Any) -> Tensor:
    r"""Complex numbers with these real and imaginary parts.

    Parameters
    ----------
    real, imag : Tensor or array
        Of one real floating dtype.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If the shapes do not broadcast, or the dtypes differ or are not real and floating.

    Notes
    -----
    Derivative: with :math:`z = x + \mathrm{i} y`, :math:`\bar x = \operatorname{Re}(\bar z)` and
    :math:`\bar y = \operatorname{Im}(\bar z)`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.complex(tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0]))
    tensor([1.+3.j, 2.+4.j])
    """
    result: Tensor = _complex.plans.call(real, imag)
    return result


complex.op = _complex  # type: ignore[attr-defined]
xp.complex = complex


@public()
@composite(
    (Sample(((3,), (3,))), Sample(((2, 3), (3,)))), lambda abs, angle: abs * np.exp(1j * angle), real_only=True,
    domain=(0.5, 3.0),
)  # fmt: skip
def polar(abs: Any, angle: Any) -> Tensor:
    r"""Complex numbers with these absolute values and angles.

    Derivative: with :math:`z = r e^{\mathrm{i} \phi}`, :math:`\bar r = \operatorname{Re}(e^{-\mathrm{i} \phi} \bar z)`
    and :math:`\bar \phi = \operatorname{Im}(z^* \bar z)`.

    Parameters
    ----------
    abs, angle : Tensor or array
        Of one real floating dtype.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If the shapes do not broadcast, or the dtypes differ or are not real and floating.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.polar(tg.tensor([2.0]), tg.tensor([0.0]))
    tensor([2.+0.j])
    """
    size, turn = as_operand(abs, "polar", "abs", 1), as_operand(angle, "polar", "angle", 2)
    _check((size._layout, turn._layout), "polar", ("abs", "angle"))
    return complex(mul(size, cos(turn)), mul(size, sin(turn)))


def _angle_of_numpy(z: Any, deg: bool = False) -> Tensor:
    found = angle(z)
    return mul(found, 180 / np.pi) if deg else found


_angle_of_real = unary(
    "angle_of_real", None, flat, doc="0 or pi; nan of nan.", derivative="0.", real_only=True,
    node_name="AngleBackward0",
    fx=lambda x: xp.where(x < 0, _PI, xp.where(x == x, 0.0, x)), oracle=lambda x: np.where(x == 0, 0.0, np.angle(x)),
    special={0.0: 0.0}, names=None,
)  # fmt: skip


_angle_of_parts = connect_as("AngleBackward0", op_table["atan2"])


@public(method=True, functions=("angle",), adapter=_angle_of_numpy, common=docs.UNARY)
@composite((Sample(((),)), Sample(((2, 3),))), np.angle)
def angle(input: Any) -> Tensor:
    """Angle of complex numbers, in radians; 0 or pi of real ones.

    Notes
    -----
    Derivative: :math:`i z / |z|^2`; 0 at the origin, and of real numbers.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.angle(tg.tensor([1j, -1 + 0j]))
    tensor([1.5708, 3.1416])
    """
    x = as_operand(input, "angle", "input", 1)
    if x._layout.dtype.kind == "c":
        return _angle_of_parts(imag(x), real(x))
    return _angle_of_real(x)


# The same memory ---------------------------------------------------------------------------------------------------


def _as_real(x: np.ndarray) -> np.ndarray:
    part = x.real
    strides = (*x.strides, part.itemsize)
    return np.lib.stride_tricks.as_strided(part, (*x.shape, 2), strides)


def _as_complex(x: np.ndarray) -> np.ndarray:
    dtype = np.result_type(x.dtype, np.complex64)
    if x.strides[-1] != x.itemsize or any(step % dtype.itemsize for step in x.strides[:-1]):
        x = np.ascontiguousarray(x)
    return x.view(dtype)[..., 0]


def _seen_as(name: str, forward: Any, rule: Any, oracle: Any, shapes: Any, call: Any, errors: Any) -> Any:
    """Make the op of a function that shows the same memory in another dtype: its argument must have the right one."""
    return operation(
        name,
        forward=forward,
        vjp=(rule,),
        family="movement",
        linear=True,
        step=same_view,
        call=call,
        oracle=oracle,
        samples=tuple(Sample((shape,)) for shape in shapes),
        errors=errors,
        flags=MAKES_VIEWS,
        common=docs.MOVEMENT,
    )


def _bound(input: Any, name: str) -> Tensor:
    x = as_operand(input, name, "input", 1)
    x._array()
    return x


def _as_complex_dtype(input: Any) -> Tensor:
    x = as_operand(input, "view_as_real", "input", 1)
    return cast(x, np.result_type(x.dtype, np.complex64))


@public()
@_seen_as(  # type: ignore[untyped-decorator]
    "view_as_real",
    _as_real,
    lambda ct: xp.view_as_complex(contiguous(ct)),
    lambda x: np.stack([x.real, x.imag], -1),
    ((), (3,), (2, 3), (0, 2)),
    lambda x: xp.view_as_real(_as_complex_dtype(x)),
    (ErrorSample(lambda: xp.view_as_real(np.ones(2)), RuntimeError, "only supported for complex tensors"),),
)
def view_as_real(input: Any) -> Bound:
    r"""Real and imaginary parts along a new last dimension, as a view.

    Derivative: with :math:`Y_{ij} = [j = 0] \operatorname{Re}(x_i) + [j = 1] \operatorname{Im}(x_i)`,
    :math:`\bar x_i = \bar Y_{i,0} + \mathrm{i} \bar Y_{i,1}`.

    Raises
    ------
    RuntimeError
        If the dtype is not complex.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.view_as_real(tg.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    x = _bound(input, "view_as_real")
    if x.dtype.kind != "c":
        raise RuntimeError(f"view_as_real is only supported for complex tensors; it got {x.dtype}")
    return Bound((x,))


@public()
@_seen_as(  # type: ignore[untyped-decorator]
    "view_as_complex",
    _as_complex,
    lambda ct: xp.view_as_real(ct),
    lambda x: np.ascontiguousarray(x.real).view(np.result_type(x.dtype, np.complex64))[..., 0],
    ((2,), (3, 2), (0, 2)),
    lambda x: xp.view_as_complex(contiguous(real(x))),
    (
        ErrorSample(lambda: xp.view_as_complex(np.ones(3)), RuntimeError, "must have a last dimension of size 2"),
        ErrorSample(lambda: xp.view_as_complex(np.ones(())), RuntimeError, "must have one or more dimensions"),
        ErrorSample(lambda: xp.view_as_complex(np.ones(2, int)), RuntimeError, "only supported for half, float and"),
        ErrorSample(
            lambda: xp.view_as_complex(np.ones((2, 3)).T), RuntimeError, "must have a last dimension with stride 1"
        ),
    ),
)
def view_as_complex(input: Any) -> Bound:
    r"""Complex numbers whose real and imaginary parts stand along the last dimension, as a view.

    Derivative: with :math:`y_i = X_{i,0} + \mathrm{i} X_{i,1}`,
    :math:`\bar X_{ij} = [j = 0] \operatorname{Re}(\bar y_i) + [j = 1] \operatorname{Im}(\bar y_i)`.

    Raises
    ------
    RuntimeError
        If that dimension does not have length 2 and stride 1, or the dtype is not real and floating.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.view_as_complex(tg.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    x = _bound(input, "view_as_complex")
    if x.dtype.kind != "f":
        name = TORCH_NAMES.get(x.dtype.name, x.dtype.name)
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{name}; convert its dtype first"
        )
    if not x.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions; view_as_complex() got none")
    if x.shape[-1] != 2:
        raise RuntimeError(f"Tensor must have a last dimension of size 2; it has shape {list(x.shape)}")
    if x.numel() and x.stride()[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1; call contiguous() before")
    return Bound((x,))


# Conjugates that are computed at once ------------------------------------------------------------------------------


@public(method=True, inplace=True, common=docs.UNARY)
@composite((Sample(((2, 3),)),), np.conj)
def conj_physical(input: Any) -> Tensor:
    """Complex conjugate; the same as `conj`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.conj_physical(tg.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return conj(input)


@public(aliases=("resolve_neg",), method=True, common=docs.UNARY)
@composite((Sample(((2, 3),)),), lambda input: input)
def resolve_conj(input: Any) -> Tensor:
    """Return the tensor itself: conjugates are computed at once here.

    Derivative: as of `clone`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.resolve_conj(tg.tensor([1 + 2j]))
    tensor([1.+2.j])
    """
    return as_operand(input, "resolve_conj", "input", 1)
