"""PyTensor: one compiled graph of arrays, in which Python's loops stand unrolled; what is constant stands in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt

from bench.problems import Data
from bench.programs.workload import Workload
from bench.tools.functions import Functions

FUNCTIONS = Functions(
    exp=pt.exp, log=pt.log, sin=pt.sin, cos=pt.cos, tanh=pt.tanh, sqrt=pt.sqrt, erf=pt.erf, sigmoid=pt.sigmoid,
    logsumexp=pt.logsumexp, einsum=pt.einsum, stack=pt.stack, cat=pt.concatenate, eye=np.eye, diagonal=pt.diagonal,
    inv=pt.linalg.inv, cholesky=pt.linalg.cholesky,
    solve_lower=lambda L, b: pt.linalg.solve_triangular(L, b, lower=True),
    cross_entropy=lambda z, labels: (pt.logsumexp(z, 1) - z[np.arange(len(labels)), labels]).mean(),
)  # fmt: skip


def array(array: np.ndarray) -> np.ndarray:
    return array


def function(workload: Workload, data: Data) -> Callable[..., Any]:
    inputs = [pt.tensor(f"x{number}", shape=own.shape) for number, own in enumerate(data.inputs)]
    value = workload.program(FUNCTIONS, *inputs, *data.constants)
    if workload.derivative == "jacobian":
        rows = zip(*(pytensor.grad(value[:, column].sum(), inputs) for column in range(2)), strict=True)
        outputs = [value, *(pt.stack(list(row), 1) for row in rows)]
    else:
        outputs = [value, *pytensor.grad(value.sum(), inputs)]
    compiled = pytensor.function(inputs, outputs)
    return lambda *arrays: compiled(*arrays[: len(inputs)])
