"""Python depends on values: branches, numbers, and shapes that values decide."""

from __future__ import annotations

import math
from typing import Any

import tapegrad as tg
from tapegrad import nn
from tests.program_cases.case import GUARD, INDEXED, PAIRS, X, Y, case

# ---- Control flow on values


@case(GUARD)
def branch_on_a_comparison(x: Any) -> Any:
    return 2.0 * x if x.sum() > 0 else -x


@case(GUARD)
def branch_on_an_item(x: Any) -> Any:
    return x * x if x[0].item() > 0.5 else x + 1.0


@case(GUARD)
def chained_comparison(x: Any) -> Any:
    return x.exp() if 0 < x[0] < 1 else x


@case(GUARD)
def boolean_operators(x: Any) -> Any:
    return x * 3.0 if x[0] > 0 and not x[1] > 0 else x - 3.0


@case(GUARD)
def float_of_an_element(x: Any) -> Any:
    return x * float(x[0])


@case(GUARD)
def function_of_math(x: Any) -> Any:
    return x * math.cos(x[0])


@case(GUARD)
def floor_of_math(x: Any) -> Any:
    return x * math.floor(x[2])


@case(GUARD)
def while_it_is_large(x: Any) -> Any:
    while x.abs().max() > 0.1:
        x = x * 0.5
    return x


@case(GUARD, ((X,), (Y,), (1e6 * X,)))
def newton_until_it_converges(x: Any) -> Any:
    root = x.abs() + 1.0
    for _ in range(50):
        step = (root * root - x.abs() - 2.0) / (2.0 * root)
        root = root - step
        if step.abs().max() < 1e-8:
            break
    return root


@case(GUARD)
def largest_of_the_builtin(x: Any) -> Any:
    return max(x[0], x[1]) * min(x)


@case(GUARD)
def sorted_by_the_builtin(x: Any) -> Any:
    low, middle, high = sorted(x)
    return low + 2.0 * middle + 3.0 * high


@case(GUARD)
def a_membership(x: Any) -> Any:
    return x * 2.0 if 0.6 in x else x


@case(GUARD)
def turns_of_a_value(x: Any) -> Any:
    total = x
    for _ in range(int(x.abs().sum())):
        total = total * x
    return total


@case(GUARD)
def index_of_a_list(x: Any) -> Any:
    return x * [1.0, 2.0, 3.0][x.argmax()]


@case(GUARD)
def key_of_a_dictionary(x: Any) -> Any:
    return x * {0: 10.0, 1: 20.0, 2: 30.0}[x.argmax().item()]


@case(GUARD)
def refuses_what_is_not_finite(x: Any) -> Any:
    if tg.isnan(x).any():
        raise ValueError("not a number")
    return x + 1.0


@case(GUARD, PAIRS)
def asks_whether_all_is_close(x: Any, y: Any) -> Any:
    return x if tg.allclose(x, y, atol=2.0) else x + y


@case(GUARD)
def values_of_a_list(x: Any) -> Any:
    return x * sum(value for value in x.tolist() if value > 0)


@case(GUARD)
def numbers_in_a_text(x: Any) -> Any:
    return x * float(f"{x[0]:.3f}")


# ---- Shapes that depend on values


@case(GUARD)
def elements_of_a_mask(x: Any) -> Any:
    return x[x > 0].sum()


@case(GUARD)
def places_that_are_not_zero(x: Any) -> Any:
    return x[(x > 0).nonzero()[:, 0]].prod()


@case(GUARD)
def masked_select_of_half(x: Any) -> Any:
    return tg.masked_select(x, x < x.mean()) * 2.0


@case(GUARD)
def places_as_a_tuple(x: Any) -> Any:
    (places,) = tg.nonzero(x > 0, as_tuple=True)
    return x[places] * 2.0


@case(GUARD, INDEXED)
def classes_counted_by_values(x: Any, index: Any) -> Any:
    return nn.functional.one_hot(index).to(tg.float64).sum(0).sum() * x


@case(GUARD, INDEXED)
def distinct_values(x: Any, index: Any) -> Any:
    return tg.unique(index).sum() * x


@case(GUARD, INDEXED)
def repeated_by_counts(x: Any, index: Any) -> Any:
    return tg.repeat_interleave(x, index)
