"""The dtypes that tensors can have, by PyTorch's names: NumPy's dtype objects."""

from __future__ import annotations

import numpy as np

float32 = float = np.dtype(np.float32)
float64 = double = np.dtype(np.float64)
complex64 = cfloat = np.dtype(np.complex64)
complex128 = cdouble = np.dtype(np.complex128)
int8, int16, uint8 = np.dtype(np.int8), np.dtype(np.int16), np.dtype(np.uint8)
int32 = int = np.dtype(np.int32)
int64 = long = np.dtype(np.int64)
bool_ = bool = np.dtype(np.bool_)
