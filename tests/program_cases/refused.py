"""What cannot be traced yet, each with an error that names the line."""

from __future__ import annotations

from typing import Any

import tapegrad as tg
from tapegrad import nn
from tests.program_cases.case import ERROR, case


@case(ERROR, message="in place")
def element_written(x: Any) -> Any:
    y = x * 2.0
    y[0] = 1.0
    return y


@case(ERROR, message="in place")
def added_in_place(x: Any) -> Any:
    y = x * 2.0
    y += x
    return y


@case(ERROR, message="in place")
def method_in_place(x: Any) -> Any:
    return (x * 2.0).clamp_(0.0, 1.0)


@case(ERROR, message="in place")
def traced_into_untraced(x: Any) -> Any:
    y = tg.zeros(3)
    y[0] = x[0]
    return y * x


@case(ERROR, message="in place")
def result_into_out(x: Any) -> Any:
    y = tg.zeros(3)
    tg.add(x, 1.0, out=y)
    return y * x


@case(ERROR, message="random")
def random_numbers(x: Any) -> Any:
    return x + tg.rand(3)


@case(ERROR, message="random")
def random_numbers_like_an_argument(x: Any) -> Any:
    return x + tg.randn_like(x)


@case(ERROR, message="random")
def dropout(x: Any) -> Any:
    return nn.functional.dropout(x, 0.5, training=True)
