"""Rows: complex numbers and their parts; cotangents follow PyTorch's convention of conjugates."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.table.elementwise import unary
from tapegrad.ops.table.op import xp
from tapegrad.tape.keys import MAKES_VIEWS
from tapegrad.tensor import Tensor

__all__ = ["conj", "real"]

conj = unary(
    "conj", np.conjugate, lambda ct: xp.conj(ct),
    doc="Complex conjugate.", derivative="conjugates the cotangent.", to_float=False, oracle=np.conjugate,
)  # fmt: skip


def _conj(value: Any) -> Any:
    if isinstance(value, Tensor):
        return conj(value) if value._layout.dtype.kind == "c" else value
    return np.conj(value)


real = unary(
    "real", np.real, lambda ct: ct,
    doc="Real part.", derivative="the cotangent becomes the real part.", to_float=False, oracle=np.real,
    flags=MAKES_VIEWS,
)  # fmt: skip

xp.conj = _conj  # free for real numbers: nothing is recorded
