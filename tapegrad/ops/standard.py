"""Op: rows of mean 0 and mean square 1, which layer norm and its kin are made of; and what they are scaled by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.forward.computed import computed
from tapegrad.kernels.along import has_kernel
from tapegrad.kernels.standard import BACK, FORWARD, geometry_of_rows, kernel_of_rows
from tapegrad.ops.along import floating
from tapegrad.ops.table.elementwise import elementwise
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.promotion import check_mixed, one_dtype
from tapegrad.ops.table.structural import operation
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.tape.layout import Layout

Parts = tuple[int, int, int]  # outer, rows, inner: a row has all elements of one index in the middle


def _by_numpy(x: Any, parts: Parts, eps: float, centered: bool) -> Any:
    rows = np.reshape(x, parts).astype(np.float64)
    if centered:
        rows = rows - rows.mean((0, 2), keepdims=True)
    rows = rows / np.sqrt(np.square(rows).mean((0, 2), keepdims=True) + eps)
    return rows.reshape(np.shape(x)).astype(x.dtype)


def _prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    layout, values = layouts[0], dict(attrs)

    def in_numpy(x: Any) -> Any:
        with np.errstate(all="ignore"):
            return _by_numpy(np.asarray(x), **values)

    if not has_kernel(layout) or not layout.size:
        return in_numpy
    kernel = kernel_of_rows(FORWARD, layout.dtype.name, values["centered"])
    geometry = geometry_of_rows(values["parts"], values["eps"])
    return computed(kernel, geometry, layout.shape, layout.dtype, in_numpy, by_status=True)


def _step(plan: Plan, operand: int) -> Step | None:
    layout, attrs = plan.layouts[0], plan.attrs
    if not has_kernel(layout):
        return None
    name, centered = layout.dtype.name, attrs["centered"]
    sources = [plan.source(name) for name in ("ct", "x")]
    return Step(lambda: kernel_of_rows(BACK, name, centered), geometry_of_rows(attrs["parts"], attrs["eps"]), sources)


def _rule(ct: Any, x: Any, parts: Parts, eps: float, centered: bool) -> Any:
    shape, x, ct = x.shape, xp.reshape(x, parts), xp.reshape(ct, parts)
    if centered:
        x, ct = x - xp.mean(x, (0, 2), True), ct - xp.mean(ct, (0, 2), True)
    scale = xp.rsqrt(xp.mean(x * x, (0, 2), True) + eps)
    y = x * scale
    return xp.reshape((ct - y * xp.mean(ct * y, (0, 2), True)) * scale, shape)


def _oracle(x: Any, parts: Parts, eps: float, centered: bool) -> Any:
    rows = np.moveaxis(np.reshape(x, parts), 1, 0).reshape(parts[1], -1).T  # a row is a column
    rows = rows - rows.mean(0) if centered else rows
    rows = rows / np.sqrt(np.square(rows).mean(0) + eps)
    return np.moveaxis(rows.T.reshape(parts[1], parts[0], parts[2]), 0, 1).reshape(np.shape(x)).astype(x.dtype)


@operation(
    "standardize",
    node_name="NativeLayerNormBackward0",
    family="along",
    forward=_by_numpy,
    vjp=(_rule,),
    step=_step,
    attrs=("parts", "eps", "centered"),
    lengths=("parts",),
    prepare_forward=_prepare,
    oracle=_oracle,
    samples=(
        Sample(((2, 3),), {"parts": (1, 2, 3), "eps": 0.125, "centered": True}),
        Sample(((4, 3),), {"parts": (4, 3, 1), "eps": 1e-5, "centered": True}),
        Sample(((2, 3, 2),), {"parts": (2, 3, 2), "eps": 1e-5, "centered": True}),
        Sample(((2, 3, 2),), {"parts": (1, 6, 2), "eps": 0.5, "centered": False}),
        Sample(((2, 2, 2, 2),), {"parts": (2, 2, 4), "eps": 0.25, "centered": False}),
    ),
    errors=(
        ErrorSample(
            lambda: xp.standardize(np.ones(3, int), (1, 1, 3), 1e-5, True), NotImplementedError,
            "not implemented for 'Long'",
        ),
    ),
    real_only=True,
)  # fmt: skip
def standardize(input: Any, parts: Parts, eps: float, centered: bool) -> Bound:
    """Return rows less their means, divided by the square root of their mean squares and of `eps`."""
    return Bound((floating("norm", input),), {"parts": parts, "eps": eps, "centered": centered})


affine = elementwise(
    "affine", ("x", "y", "z"), None,
    (lambda ct, y: ct * y, lambda ct, x: ct * x, lambda ct: ct), fx=lambda x, y, z: x * y + z,
    doc="Product and sum.",
    samples=(Sample(((2, 3), (3,), (3,))), Sample(((3,), (3,), (3,)))), oracle=lambda x, y, z: z + y * x,
    real_only=True, check_dtypes=one_dtype(check_mixed),
)  # fmt: skip
