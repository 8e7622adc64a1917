"""What cannot be traced yet, each with an error that names the line."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.program_cases.case import ERROR, case


@case(ERROR, message="numpy()")
def array_taken_out(x: Any) -> Any:
    return x * x.numpy()


@case(ERROR, message="numpy()")
def array_made_of_a_tensor(x: Any) -> Any:
    return x + np.asarray(x * 2.0)


@case(ERROR, message="another shape")
def data_of_another_shape(x: Any) -> Any:
    y = x * 2.0
    y.data = y[:2]
    return y


@case(ERROR, message="t_()")
def reshaped_in_place(x: Any) -> Any:
    y = x.reshape(1, 3) * 2.0
    y.t_()
    return y
