"""What flows through a program, however Python arranges it: loops, containers, indices, modules."""

from __future__ import annotations

import copy
from functools import lru_cache, reduce
from typing import Any

import numpy as np

import tapegrad as tg
from tapegrad import nn
from tests.program_cases.case import BOTH, INDEXED, MATRICES, PAIRS, PROGRAM, A, case

# ---- Loops, recursion, containers


@case(PROGRAM)
def loop_over_time(x: Any) -> Any:
    speed = tg.zeros(3)
    for _ in range(12):
        speed = speed - 0.1 * x.sin()
        x = x + 0.1 * speed
    return x, speed


@case(PROGRAM)
def loop_over_elements(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total = total + x[i] * x[i - 1]
    return total


@case(PROGRAM, MATRICES)
def loop_over_rows(a: Any) -> Any:
    return tg.stack([row * row.sum() for row in a])


@case(PROGRAM)
def unpacked(x: Any) -> Any:
    a, b, c = x
    first, *others = x
    return a * b - c, first * others[-1]


@case(PROGRAM)
def sum_of_the_builtin(x: Any) -> Any:
    return sum(part * part for part in x)


@case(PROGRAM)
def reduced_in_pairs(x: Any) -> Any:
    return reduce(lambda left, right: left * 0.5 + right, x)


@case(PROGRAM)
def recursion(x: Any) -> Any:
    def power(base: Any, exponent: int) -> Any:
        return base if exponent == 1 else base * power(base, exponent - 1)

    return power(x, 5)


@case(PROGRAM, MATRICES)
def determinant_by_minors(a: Any) -> Any:
    def minor(rows: list[Any]) -> Any:
        if len(rows) == 1:
            return rows[0][0]
        parts = [rows[0][j] * minor([row[:j] + row[j + 1 :] for row in rows[1:]]) for j in range(len(rows))]
        return sum((-1) ** j * part for j, part in enumerate(parts))

    return minor([list(row) for row in a])


@case(PROGRAM, PAIRS)
def nested_containers(x: Any, y: Any) -> Any:
    state = {"place": [x, y], "rest": ({"speed": x - y},)}
    state["place"].append(state["rest"][0]["speed"] * 2.0)
    return sum(state["place"][1:]) * x


@case(PROGRAM)
def alternating_turns(x: Any) -> Any:
    for turn in range(8):
        x = x.sin() if turn % 2 else x * x
    return x


_SCALE = tg.tensor([1.0, 2.0, 3.0])


@case(PROGRAM)
def captured_by_a_closure(x: Any) -> Any:
    return (x * _SCALE).sum() + _SCALE[1]


@case(PROGRAM)
def keywords_and_defaults(x: Any) -> Any:
    def inner(value: Any, *, power: int = 2, **options: Any) -> Any:
        return value**power * options.get("scale", 1.0)

    return inner(x) + inner(x, power=3, scale=x.sum())


@case(PROGRAM)
def cached_by_shape(x: Any) -> Any:
    @lru_cache
    def weights(size: int) -> Any:
        return tg.arange(size) / size

    return x * weights(len(x)) + weights(len(x))


@case(PROGRAM)
def shown_as_text(x: Any) -> Any:
    y = x * 2.0
    texts = [str(y), repr(y), f"{y}"]
    return y + len(texts) + len(x) + x.shape[0] + x.ndim


# ---- Indices, integers, bools


@case(PROGRAM)
def element_at_the_largest(x: Any) -> Any:
    return x[x.argmax()] * 2.0


@case(PROGRAM, INDEXED)
def indexed_by_an_argument(x: Any, index: Any) -> Any:
    return x[index] * 2.0


@case(PROGRAM, INDEXED)
def gathered_and_scattered(x: Any, index: Any) -> Any:
    parts = tg.gather(x, 0, index)
    return tg.zeros(3).scatter_add(0, index, parts * x) + tg.take_along_dim(x, index, 0)


@case(PROGRAM, INDEXED)
def column_by_an_argument(x: Any, index: Any) -> Any:
    return (x[:, None] * x)[:, index]


@case(PROGRAM)
def integers_inside(x: Any) -> Any:
    index = (tg.arange(3) * 2) % 3
    return x[index] * index + (index == 1) * x


@case(PROGRAM, INDEXED)
def integers_from_outside(x: Any, index: Any) -> Any:
    return x * (index // 2 + 1) + (index > 0).sum() * x ** (index % 2)


@case(PROGRAM)
def conversions(x: Any) -> Any:
    return (x > 0).to(tg.float64) * x + (x * 10.0).to(tg.int64) + x.to(tg.float32).exp()


@case(PROGRAM)
def masks_without_a_shape(x: Any) -> Any:
    return tg.where(x > 0, x, -0.1 * x) + x.masked_fill(x < 0, 0.0) + x.clamp(-0.5, 0.5)


@case(PROGRAM)
def largest_and_its_place(x: Any) -> Any:
    values, places = x.max(0)
    return values * places + x.amin()


@case(PROGRAM)
def sort_and_its_order(x: Any) -> Any:
    values, order = x.sort()
    return values * tg.arange(1, 4) + x[x.argsort()] + order


@case(PROGRAM)
def largest_two(x: Any) -> Any:
    values, places = x.topk(2)
    return values * places


@case(PROGRAM, PAIRS)
def searched_among_others(x: Any, y: Any) -> Any:
    return tg.searchsorted(y.sort()[0], x) * x


@case(PROGRAM)
def cumulative(x: Any) -> Any:
    return x.cumsum(0) * x.cumprod(0) + tg.logcumsumexp(x, 0)


# ---- Linear algebra


@case(PROGRAM, BOTH)
def products_and_einsum(a: Any, x: Any) -> Any:
    return tg.einsum("i,ij,j->", x, a, x) + (a @ x) * (x @ a)


@case(PROGRAM, BOTH)
def solved(a: Any, x: Any) -> Any:
    positive = a @ a.T + tg.eye(3)
    return tg.linalg.solve(positive, x) + tg.linalg.cholesky(positive)[1] + tg.linalg.det(a)


@case(PROGRAM, MATRICES)
def eigenvalues(a: Any) -> Any:
    return tg.linalg.eigvalsh(a + a.T) + tg.linalg.svdvals(a)


@case(PROGRAM, BOTH)
def solutions_with_lu_factors(a: Any, x: Any) -> Any:
    factors, pivots = tg.linalg.lu_factor(a.flip(0))
    p, lower, upper = tg.lu_unpack(factors, pivots)
    return tg.linalg.lu_solve(factors, pivots, x[:, None]) + p @ lower @ upper @ x[:, None]


@case(PROGRAM, BOTH)
def lu_factors_of_a_batch(a: Any, x: Any) -> Any:
    batch = tg.stack([a, a.flip(0)])
    p, lower, upper = tg.linalg.lu(batch)
    packed, pivots = tg.linalg.lu_factor(batch)
    return p @ lower + upper * x + tg.linalg.lu_solve(packed, pivots, a.expand(2, 3, 3), adjoint=True)


# ---- Modules and losses


_LINEAR = nn.Linear(3, 3, dtype=tg.float64)
_NORM = nn.LayerNorm(3, dtype=tg.float64)


@case(PROGRAM)
def module_from_outside(x: Any) -> Any:
    return nn.functional.gelu(_NORM(_LINEAR(x)))


@case(PROGRAM, ((A, np.array([0, 2, 1])), (A.T, np.array([1, 1, 0]))))
def cross_entropy_of_labels(scores: Any, labels: Any) -> Any:
    loss = nn.functional.nll_loss(nn.functional.log_softmax(scores, 1), labels)
    return loss + nn.functional.cross_entropy(scores, labels)


@case(PROGRAM)
def logarithm_of_sums(x: Any) -> Any:
    return tg.logsumexp(x, 0) + nn.functional.softmax(x, 0)


@case(PROGRAM)
def copied(x: Any) -> Any:
    return copy.deepcopy({"x": x})["x"] * x
