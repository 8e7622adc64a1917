"""CasADi: a graph of scalars (SX), in NumPy arrays of objects; items go through a mapped function, one at a time."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import casadi
import numpy as np

from bench.problems import Data
from bench.programs.tools import arrays, bound
from bench.programs.workload import Workload
from bench.tools.functions import Functions


class Scalar:
    """An SX of one element: CasADi's own take arrays of objects for matrices."""

    def __init__(self, sx: Any) -> None:
        self.sx = sx

    def __pow__(self, exponent: int) -> Scalar:
        return Scalar(self.sx**exponent)

    def __neg__(self) -> Scalar:
        return Scalar(-self.sx)


def _sx(value: Any) -> Any:
    return value.sx if isinstance(value, Scalar) else value


def _operators(name: str) -> None:
    apply = getattr(operator, name)

    def left(self: Scalar, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else Scalar(apply(self.sx, _sx(other)))

    def right(self: Scalar, other: Any) -> Any:
        return Scalar(apply(float(other), self.sx))

    setattr(Scalar, f"__{name}__", left)
    setattr(Scalar, f"__r{name}__", right)


for _name in ("add", "sub", "mul", "truediv"):
    _operators(_name)


def _elementwise(function: Callable[..., Any], count: int = 1) -> Any:
    return np.frompyfunc(lambda *operands: Scalar(function(*map(_sx, operands))), count, 1)


_exp, _log, _fmax = _elementwise(casadi.exp), _elementwise(casadi.log), _elementwise(casadi.fmax, 2)


def _logsumexp(x: Any, axis: int) -> Any:
    shift = _fmax.reduce(x, axis=axis, keepdims=True)
    return _log(_exp(x - shift).sum(axis)) + shift.squeeze(axis)


def _matrix(x: Any) -> Any:
    return casadi.vertcat(*(casadi.horzcat(*map(_sx, row)) for row in x))


def _solve_lower(L: Any, b: Any) -> Any:
    x: list[Any] = []
    for row in range(len(b)):
        x.append((b[row] - sum(L[row, column] * x[column] for column in range(row))) / L[row, row])
    return np.array(x, object)


FUNCTIONS = Functions(
    exp=_exp, log=_log, sin=_elementwise(casadi.sin), cos=_elementwise(casadi.cos), tanh=_elementwise(casadi.tanh),
    sqrt=_elementwise(casadi.sqrt), erf=_elementwise(casadi.erf), sigmoid=lambda x: 1.0 / (1.0 + _exp(-x)),
    logsumexp=_logsumexp, einsum=partial(np.einsum, optimize=False), stack=np.stack, cat=np.concatenate, eye=np.eye,
    diagonal=np.diagonal, solve_lower=_solve_lower,
    inv=lambda x: _objects(casadi.inv(_matrix(x)), x.shape),
    cholesky=lambda x: _objects(casadi.chol(_matrix(x)).T, x.shape),
    cross_entropy=lambda z, labels: (_logsumexp(z, 1) - z[np.arange(len(z)), labels]).mean(),
)  # fmt: skip


def _objects(matrix: Any, shape: tuple[int, ...]) -> Any:
    """Return the scalars of a matrix as an array, row by row."""
    scalars = list(map(Scalar, casadi.vertsplit(casadi.vec(matrix.T))))
    result = np.empty(len(scalars), object)
    result[:] = scalars
    return result.reshape(shape)


def array(array: np.ndarray) -> np.ndarray:
    return array


def function(workload: Workload, data: Data, make: Callable[[Any], Any] = lambda own: own) -> Callable[..., Any]:
    """Return the function of all items, or of the arrays as they are; `make` gets CasADi's function of one."""
    inputs, items = len(data.inputs), 0 if workload.derivative == "gradient" else len(data.inputs[0])
    symbols, values = [], []
    for number, own in enumerate(arrays(data)):
        shape = own.shape[1:] if items else own.shape
        symbols.append(casadi.SX.sym(f"x{number}", int(np.prod(shape))))
        values.append(_objects(symbols[-1], shape) if own.dtype.kind == "f" else own)  # indices stand in the graph
    value = casadi.vertcat(*map(_sx, np.ravel(bound(workload, FUNCTIONS, data)(*values))))
    derivatives = [casadi.jacobian(value, symbol) for symbol in symbols[:inputs]]
    outputs = [casadi.densify(casadi.vec(own.T)) for own in (value, *derivatives)]
    compiled = make(casadi.Function("f", symbols, outputs))
    rows: tuple[int, ...] = (value.numel(),) if workload.derivative == "jacobian" else ()
    if not items:
        shapes = [rows, *(own.shape for own in data.inputs)]
        return lambda *arrays: [
            own.full().reshape(shape)
            for own, shape in zip(compiled(*(given.reshape(-1) for given in arrays)), shapes, strict=True)
        ]
    mapped = compiled.map(items)
    shapes = [(items, *rows), *((items, *rows, *own.shape[1:]) for own in data.inputs)]
    return lambda *arrays: [
        own.full().T.reshape(shape)
        for own, shape in zip(mapped(*(given.reshape(items, -1).T for given in arrays)), shapes, strict=True)
    ]
