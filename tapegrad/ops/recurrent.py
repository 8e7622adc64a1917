"""Ops: the steps of a recurrent layer over a whole sequence, from what the input adds to its gates.

The names are those of `tapegrad.kernels.recurrent`. ``x`` is (steps, items, gates * hidden), ``w`` what a state is
multiplied by, (gates * hidden, hidden), ``h`` and ``c`` the first output and cell, (items, hidden), and ``b`` what a
GRU adds to the products. Cotangents are computed by a kernel, unless they are to be differentiated.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tapegrad import modes
from tapegrad.kernels.blas import BLAS_LETTERS
from tapegrad.kernels.recurrent import (
    KEPT,
    geometry_of_steps,
    gru_back,
    lstm_back,
    recurrent_address,
    tanh_back,
)
from tapegrad.ops.broadcasting import contiguous
from tapegrad.ops.table.gateway import as_operand, connect, constant
from tapegrad.ops.table.op import Bound, ErrorSample, Op, Sample, xp
from tapegrad.recording.steps import address_of_array
from tapegrad.runtime import pool
from tapegrad.tape.layout import Layout, contiguous_layout, dtype_name, layout_of
from tapegrad.tensor import Tensor, from_array

_call: Final = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 4)  # it releases the GIL
_NONE: Final = np.empty(0)
# BLAS is faster with the transposed matrix of a state, from so many steps and up to so many numbers that a copy pays.
_MANY_STEPS: Final = 8
_FEW_NUMBERS: Final = 1 << 16


def has_steps(x: Tensor) -> bool:
    """Whether there is a kernel for the dtype of the input."""
    return x._layout.dtype.kind == "f" and dtype_name(x._layout.dtype) in BLAS_LETTERS


def _addresses(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([address_of_array(own) for own in arrays])


def _prepared(mode: str) -> Callable[[tuple[Layout, ...], dict[str, Any]], Callable[..., Any]]:
    """Return what makes the forward for operands of some layouts."""
    blocks = KEPT[mode]

    def prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
        steps, items, _ = layouts[0].shape
        hidden, dtype = layouts[1].shape[1], layouts[0].dtype
        turned = steps >= _MANY_STEPS and layouts[1].size <= _FEW_NUMBERS
        geometry = np.array(geometry_of_steps(steps, items, hidden, attrs["reverse"], dtype.name, turned=turned))
        kernel = _call(recurrent_address("forward", mode, dtype.name))
        shape, kept_shape = (steps, items, hidden), (steps, blocks, items, hidden)

        def forward(x: Any, w: Any, h: Any, more: Any = _NONE) -> Any:
            out = pool.empty(shape, dtype)
            cells = pool.empty(shape, dtype) if mode == "lstm" else _NONE
            kept = pool.empty(kept_shape, dtype)
            rows = np.empty((items, blocks * hidden), dtype)
            w = w.T.copy() if turned else w
            args = _addresses((x, w, h, more, out, cells, kept, rows))
            kernel(address_of_array(args), address_of_array(geometry), 0)
            if not blocks:
                return out
            # Integers have no cotangent.
            return (out, cells, kept.view(np.uint8)) if mode == "lstm" else (out, kept.view(np.uint8))

        return forward

    return prepare


# Rules ---------------------------------------------------------------------------------------------------------------


class _Back(NamedTuple):
    """A call of the kernel that computes cotangents."""

    kernel: Callable[[int, int, int], int]
    geometry: np.ndarray
    of_x: Layout


@functools.lru_cache(maxsize=256)
def _back(mode: str, layout: Layout, width: int, reverse: bool) -> _Back:
    """Return the call for outputs of a layout."""
    (steps, items, hidden), dtype = layout.shape, dtype_name(layout.dtype)
    geometry = np.array(geometry_of_steps(steps, items, hidden, reverse, dtype))
    kernel = _call(recurrent_address("back", mode, dtype))
    return _Back(kernel, geometry, contiguous_layout((steps, items, width), layout.dtype))


def _by_kernel(
    mode: str, cts: Sequence[Any], w: Any, h: Any, c: Any, out: Any, cells: Any, kept: Any, reverse: bool,
    wanted: Sequence[bool],
) -> tuple[Any, ...]:  # fmt: skip
    """Return the cotangents of x, w, h, and of c or b."""
    kernel, geometry, of_x = _back(mode, out._layout, w._layout.shape[0], reverse)
    dtype, of_w, of_h = of_x.dtype, w._layout, h._layout
    dx, dh, blocks = pool.empty(of_x.shape, dtype), np.empty(of_h.shape, dtype), np.empty((5, *of_h.shape), dtype)
    dsums = pool.empty(of_x.shape, dtype) if mode == "gru" else dx
    dw = pool.empty(of_w.shape, dtype) if wanted[1] else _NONE
    dc = np.empty(of_h.shape, dtype) if mode == "lstm" else _NONE
    arrays = (
        *[np.ascontiguousarray(own._data) for own in cts], *[_NONE] * (2 - len(cts)),
        *[_NONE if own is None else own._data for own in (w, h, c, out, cells, kept)], dx, dsums, dw, dh, dc, blocks,
    )  # fmt: skip
    args = _addresses(arrays)
    if not wanted[1]:
        args[10] = 0
    kernel(address_of_array(args), address_of_array(geometry), 0)
    found = constant(dx, of_x), constant(dw, of_w.plain) if wanted[1] else None, constant(dh, of_h.plain)
    if mode == "lstm":
        return *found, constant(dc, of_h.plain)
    return (*found, from_array(np.add.reduce(dsums, (0, 1)))) if mode == "gru" else found


def _is_plain(*tensors: Any) -> bool:
    """Whether nobody follows what a rule does with these tensors."""
    if modes.interceptor() is not None:
        return False
    return not modes.is_grad_enabled() or not any(own.requires_grad for own in tensors)


def _before(first: Any, values: Any, reverse: bool) -> Any:
    """Return the states before each step."""
    own = xp.unsqueeze(first, 0)
    return xp.cat([values[1:], own] if reverse else [own, values[:-1]])


def _backwards(reverse: bool, *values: Any) -> Iterator[tuple[Any, ...]]:
    """Go over the steps from the last one that was computed; yield the values of each."""
    steps = values[0].shape[0]
    for t in range(steps) if reverse else range(steps - 1, -1, -1):
        yield tuple([own[t] for own in values])


def _stacked(values: list[Any], reverse: bool) -> Any:
    """Return what was found step by step, `_backwards`, as a sequence."""
    return xp.stack(values if reverse else values[::-1])


def _of_matrix(sums: Any, before: Any) -> Any:
    """Return the cotangent of a matrix from those of products: (gates, steps * items) @ (steps * items, hidden)."""
    rows = xp.reshape(sums, (-1, sums.shape[-1]))
    return xp.matmul(xp.transpose(rows, 0, 1), xp.reshape(before, (-1, before.shape[-1])))


def _products(before: Any, w: Any) -> Any:
    return xp.matmul(before, xp.transpose(w, 0, 1))


def _lstm_rule(
    ct: Any,
    x: Any,
    w: Any,
    h: Any,
    c: Any,
    outputs: Any,
    cells: Any,
    kept: Any,
    reverse: bool,
    wanted: tuple[bool, ...],
) -> Any:
    if _is_plain(*ct, x, w, h, c):
        return _by_kernel("lstm", ct, w, h, c, outputs, cells, kept, reverse, wanted)
    before, n = _before(h, outputs, reverse), h.shape[1]
    sums = x + _products(before, w)
    i, f, o = (xp.sigmoid(sums[:, :, gate * n : (gate + 1) * n]) for gate in (0, 1, 3))
    values = i, f, xp.tanh(sums[:, :, 2 * n : 3 * n]), o, xp.tanh(cells), _before(c, cells, reverse)
    found, dh, dc = [], 0.0, 0.0
    for ct_out, ct_cell, *own in _backwards(reverse, *ct, *values):
        *gates, dc = lstm_back(dh + ct_out, dc + ct_cell, *own)
        found.append(xp.cat(gates, -1))
        dh = xp.matmul(found[-1], w)
    dx = _stacked(found, reverse)
    return dx, _of_matrix(dx, before), dh, dc


def _gru_rule(
    ct: Any, x: Any, w: Any, h: Any, b: Any, out: Any, kept: Any, reverse: bool, wanted: tuple[bool, ...]
) -> Any:
    if _is_plain(ct, x, w, h, b):
        return _by_kernel("gru", (ct,), w, h, b, out, None, kept, reverse, wanted)
    before, n = _before(h, out, reverse), h.shape[1]
    sums = _products(before, w) + b
    shares, by_state = xp.sigmoid(x[:, :, : 2 * n] + sums[:, :, : 2 * n]), sums[:, :, 2 * n :]
    r = shares[:, :, :n]
    values = r, shares[:, :, n:], by_state, xp.tanh(x[:, :, 2 * n :] + r * by_state), before
    found, summed, dh = [], [], 0.0
    for ct_out, *own in _backwards(reverse, ct, *values):
        dr, dz, dn, ds, rest = gru_back(dh + ct_out, *own)
        found.append(xp.cat([dr, dz, dn], -1))
        summed.append(xp.cat([dr, dz, ds], -1))
        dh = rest + xp.matmul(summed[-1], w)
    all_sums = _stacked(summed, reverse)
    return _stacked(found, reverse), _of_matrix(all_sums, before), dh, xp.sum(all_sums, (0, 1))


def _plain_rule(mode: str, back: Callable[..., Any]) -> Callable[..., Any]:
    def rule(ct: Any, w: Any, h: Any, out: Any, reverse: bool, wanted: tuple[bool, ...]) -> Any:
        if _is_plain(ct, w, h, out):
            return _by_kernel(mode, (ct,), w, h, None, out, None, None, reverse, wanted)
        found, dh = [], 0.0
        for ct_out, own in _backwards(reverse, ct, out):
            found.extend(back(dh + ct_out, own))
            dh = xp.matmul(found[-1], w)
        dx = _stacked(found, reverse)
        return dx, _of_matrix(dx, _before(h, out, reverse)), dh

    return rule


# Ops -----------------------------------------------------------------------------------------------------------------


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _lstm_by_numpy(x: Any, w: Any, bias: Any, h: Any, c: Any) -> Any:
    i, f, g, o = np.split(x + h @ w.T + bias, 4, -1)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(c), c


def _gru_by_numpy(x: Any, w: Any, bias: Any, h: Any) -> Any:
    (a, d, e), (p, q, s) = np.split(x, 3, -1), np.split(h @ w.T + bias, 3, -1)
    z = _sigmoid(d + q)
    return ((1 - z) * np.tanh(e + _sigmoid(a + p) * s) + z * h,)


def _plain_by_numpy(x: Any, w: Any, bias: Any, h: Any, function: Any) -> Any:
    return (function(x + h @ w.T + bias),)


def _over_steps(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a sequence, of the matrix and the bias of a state, and of the first state.

    It returns the outputs, and the cells if there are.
    """

    def steps(x: Any, w: Any, bias: Any, *state: Any, reverse: bool = False) -> Any:
        found = [np.empty((*x.shape[:2], w.shape[1])) for _ in state]
        for t in range(len(x))[:: -1 if reverse else 1]:
            state = step(x[t], w, bias, *state)
            for own, value in zip(found, state, strict=True):
                own[t] = value
        return found

    return steps


#: By mode: the same by NumPy, for tests.
STEPS_BY_NUMPY: Final = {
    "lstm": _over_steps(_lstm_by_numpy),
    "gru": _over_steps(_gru_by_numpy),
    "rnn_tanh": _over_steps(functools.partial(_plain_by_numpy, function=np.tanh)),
    "rnn_relu": _over_steps(functools.partial(_plain_by_numpy, function=lambda x: np.maximum(x, 0))),
}


def _steps(mode: str, rule: Callable[..., Any], more: str, results: tuple[str, ...] = ("out",)) -> Callable[..., Any]:
    """Return the function of the op of a mode."""
    name, operands = f"{mode}_steps", ("x", "w", "h", more)[: 3 + bool(more)]
    gates = {"lstm": 4, "gru": 3}.get(mode, 1)
    shapes = ((3, 2, 2 * gates), (2 * gates, 2), (2, 2), (3 * 2,) if more == "b" else (2, 2))[: len(operands)]

    prepare = _prepared(mode)

    def oracle(x: Any, w: Any, h: Any, last: Any = 0.0, reverse: bool = False) -> Any:
        state = (h, last) if more == "c" else (h,)
        found = STEPS_BY_NUMPY[mode](x, w, last if more == "b" else 0.0, *state, reverse=reverse)
        return (found[0] if len(found) == 1 else np.concatenate([own.reshape(-1) for own in found])).astype(x.dtype)

    def forward(*arrays: Any, reverse: bool) -> Any:
        return prepare(tuple(map(layout_of, arrays)), {"reverse": reverse})(*arrays)

    def check(bound: Bound) -> None:
        x, w, h, *others = (tensor.shape for tensor in bound.operands)
        width, hidden = w if len(w) == 2 else (0, 0)
        wanted = [(*x[:2], width), (gates * hidden, hidden), (*x[1:2], hidden)]
        wanted += [(width,) if more == "b" else (*x[1:2], hidden)] * len(others)
        if len(x) != 3 or [x, w, h, *others] != wanted:
            shapes = ", ".join(
                f"{name} {list(shape)}" for name, shape in zip(operands, (x, w, h, *others), strict=True)
            )
            raise RuntimeError(
                f"{mode}: shapes do not fit: x is (steps, items, {gates} * hidden), and w ({gates} * hidden, hidden), "
                f"but got {shapes}"
            )
        if len({tensor.dtype for tensor in bound.operands}) > 1 or not has_steps(bound.operands[0]):
            raise RuntimeError(f"{mode}: takes one dtype, float32 or float64, not {bound.operands[0].dtype}")

    def bind(*args: Any) -> Bound:
        tensors = [
            contiguous(as_operand(own, name, operand, place))
            for place, (operand, own) in enumerate(zip(operands, args, strict=False), 1)
        ]
        return Bound(tensors, {"reverse": bool(args[len(operands)]) if len(args) > len(operands) else False})

    op = Op(
        name=name, operands=operands, forward=forward, vjp=rule, family="recurrent",
        attrs=("reverse",), results=results, bind=bind, check=check, prepare_forward=prepare, oracle=oracle,
        real_only=True, samples=(Sample(shapes), Sample(shapes, {"reverse": True})), domain=(-1.5, 1.5),
        call=lambda *operands, reverse=False: getattr(xp, name)(*operands, reverse),
        errors=(
            ErrorSample(lambda: getattr(xp, name)(*[None] * 4), TypeError, name),
            ErrorSample(lambda: getattr(xp, name)(*[np.ones((2, 2))] * len(operands)), RuntimeError, "do not fit"),
        ),
    )  # fmt: skip
    function = connect(op, n_arguments=1)
    function.__doc__ = f"Return the outputs of all steps of `{mode}`, from what the input adds to its gates."
    setattr(xp, name, function)
    return function


#: By mode: a function of x, w, h, of c or b if there is one, and of whether the last step is the first. It returns the
#: outputs, and what else there is.
STEPS: Final = {
    "lstm": _steps("lstm", _lstm_rule, "c", ("outputs", "cells", "kept")),
    "gru": _steps("gru", _gru_rule, "b", ("out", "kept")),
    "rnn_tanh": _steps("rnn_tanh", _plain_rule("rnn_tanh", tanh_back), ""),
    "rnn_relu": _steps("rnn_relu", _plain_rule("rnn_relu", lambda dh, out: (xp.where(out > 0, dh, 0.0),)), ""),
}
