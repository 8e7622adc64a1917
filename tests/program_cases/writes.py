"""Writes in place, to results and to views of them: in a program each computes another value."""

from __future__ import annotations

from typing import Any

import tapegrad as tg
from tests.program_cases.case import GUARD, INDEXED, MATRICES, PAIRS, PROGRAM, case


@case(PROGRAM)
def element_written(x: Any) -> Any:
    y = x * 2.0
    y[0] = 1.0
    return y


@case(PROGRAM)
def added_in_place(x: Any) -> Any:
    y = x * 2.0
    y += x
    return y


@case(PROGRAM)
def method_in_place(x: Any) -> Any:
    return (x * 2.0).clamp_(0.0, 1.0)


@case(PROGRAM)
def traced_into_untraced(x: Any) -> Any:
    y = tg.zeros(3)
    y[0] = x[0]
    return y * x


@case(PROGRAM)
def result_into_out(x: Any) -> Any:
    y = tg.zeros(3)
    tg.add(x.detach(), 1.0, out=y)
    return y * x


@case(PROGRAM)
def part_of_a_copy(x: Any) -> Any:
    y = x.clone()
    y[1:] *= 2.0
    return y * y


@case(PROGRAM)
def element_by_element(x: Any) -> Any:
    out = tg.zeros(3)
    for i in range(3):
        out[i] = tg.sin(x[i]) * 2.0
    return out * x


@case(PROGRAM)
def stencil_in_place(x: Any) -> Any:
    y = tg.cat([x, x * 2.0, x * x])
    for _ in range(12):
        y[1:-1] = (y[2:] + y[:-2]) * 0.5
    return y * y


@case(PROGRAM)
def masked_write(x: Any) -> Any:
    y = x * 2.0
    y[y < 0] = 0.0
    return y * x


@case(GUARD)
def masked_elements_changed(x: Any) -> Any:
    y = x * 2.0
    y[x > 0] += x[x > 0]
    return y * x


@case(PROGRAM)
def written_at_indices(x: Any) -> Any:
    y = x * 2.0
    y[[0, 2]] = x[1] * x[:2]
    return y * y


@case(PROGRAM, INDEXED)
def written_at_an_argument(x: Any, index: Any) -> Any:
    y = x * 2.0
    y[index[:1]] = x.sum()
    return y * x


@case(PROGRAM)
def views_see_each_other(x: Any) -> Any:
    y = x * 1.0
    left, right = y[:2], y[1:]
    right *= 3.0
    left += 1.0
    return y * y, right.sum(), left * x[0]


@case(PROGRAM, MATRICES)
def through_transposed_and_flat(a: Any) -> Any:
    b = a * 1.0
    turned, flat = b.T, b.reshape(-1)
    turned[0] = 5.0 * a[0, 0]
    flat[3] *= 2.0
    b.diagonal().mul_(0.5)
    return b * b, turned @ a, flat.sum()


@case(PROGRAM, MATRICES)
def rows_scaled_in_place(a: Any) -> Any:
    b = a * 1.0
    for i in range(3):
        b[i].mul_(i + 1.0)
    for row in b.detach():
        row += 1.0
    return b * a


@case(PROGRAM, MATRICES)
def elimination_in_place(a: Any) -> Any:
    u = a + 3.0 * tg.eye(3)
    for k in range(2):
        for i in range(k + 1, 3):
            u[i, k:] = u[i, k:].clone() - u[i, k].clone() / u[k, k].clone() * u[k, k:].clone()
    return u.diagonal().prod()


@case(PROGRAM)
def zeroed_and_filled(x: Any) -> Any:
    y = x * 2.0
    y[2:].zero_()
    y[0].fill_(3.0)
    return y * x


@case(PROGRAM)
def written_to_what_is_detached(x: Any) -> Any:
    y = x * 2.0
    same = y.detach()
    same *= 2.0
    return y * x


@case(PROGRAM)
def integers_written(x: Any) -> Any:
    counts = tg.zeros(3, dtype=tg.int64)
    counts[0] = 2
    counts[1] = (x > 0).sum()
    return x * counts


@case(PROGRAM, PAIRS)
def two_names_of_one(x: Any, y: Any) -> Any:
    z = x * y
    same = z
    z += 1.0
    return same * z


@case(PROGRAM, PAIRS)
def swapped_in_place(x: Any, y: Any) -> Any:
    z = tg.stack([x, y])
    z[0], z[1] = z[1].clone(), z[0].clone()
    return z * x


@case(PROGRAM)
def recurrence_in_a_buffer(x: Any) -> Any:
    series = tg.zeros(40)
    series[0], series[1] = x[0], x[1]
    for i in range(2, 40):
        series[i] = 0.5 * series[i - 1] + 0.3 * series[i - 2] * x[2]
    return series


@case(PROGRAM, PAIRS)
def parts_of_complex_numbers_written(x: Any, y: Any) -> Any:
    z = tg.complex(x, y) * 1.0
    z.imag[0] = 5.0
    z.real.mul_(2.0)
    z.imag[1:] *= x[:2]
    pairs = tg.view_as_real(z)
    pairs[:, 1][2] += x[0]
    return z.real * z.imag + pairs.sum(1)


@case(PROGRAM, PAIRS)
def parts_of_rows_in_a_loop(x: Any, y: Any) -> Any:
    z, rows = tg.complex(x, y), tg.zeros(6, 3, dtype=tg.complex128)
    for k in range(6):
        z = z * (0.5 + 0.2j) + 1.0
        rows[k].real[:] = z.real**2
        rows.T.imag[1:, k] = (z.imag * x)[1:]
    return rows.real.sum(0) * rows.imag.prod(0)
