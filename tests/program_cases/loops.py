"""Loops over time as users write them, long enough that a compiler may find them; each has its own trap.

What is carried, read from a stack, written to one, or differs between turns is computed at the first and the last turn
as in the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tapegrad as tg
from tests.program_cases.case import BOTH, MATRICES, PAIRS, PROGRAM, VECTORS, A, X, Y, case

TURNS = 24
SERIES = np.sin(np.arange(TURNS * 3.0)).reshape(TURNS, 3)
SERIES_AND_STATE = ((SERIES, X), (SERIES[::-1].copy(), Y), (SERIES * 0.3, X + Y))
ROD = np.cos(np.arange(40.0))
RODS = ((ROD,), (ROD[::-1] * 2.0,), (ROD * ROD,))


@case(PROGRAM)
def trajectory_that_is_stacked(x: Any) -> Any:
    states = []
    for _ in range(TURNS):
        x = x + 0.05 * (x.sin() - 0.1 * x)
        states.append(x)
    return tg.stack(states), tg.stack(states[::3]).sum(0)


@case(PROGRAM, SERIES_AND_STATE)
def inputs_from_a_stack(series: Any, x: Any) -> Any:
    for t in range(TURNS):
        x = 0.9 * x + 0.1 * (series[t] * x).tanh()
    return x


@case(PROGRAM, SERIES_AND_STATE)
def inputs_as_rows(series: Any, x: Any) -> Any:
    for row in series:
        x = x - 0.05 * (x - row) ** 3
    return x


@case(PROGRAM, SERIES_AND_STATE)
def inputs_from_the_end(series: Any, x: Any) -> Any:
    for t in reversed(range(TURNS - 1)):
        x = 0.8 * x + 0.1 * series[t + 1] * series[t]
    return x


@case(PROGRAM, SERIES_AND_STATE)
def losses_inside(series: Any, x: Any) -> Any:
    loss = 0.0
    for t in range(TURNS):
        x = x + 0.1 * x.cos()
        loss = loss + ((x - series[t]) ** 2).sum()
    return loss


@case(PROGRAM)
def loss_of_every_third_turn(x: Any) -> Any:
    loss = x.sum()
    for t in range(TURNS):
        x = 0.95 * x + 0.05 * x.exp() / (1.0 + x * x)
        if t % 3 == 2:
            loss = loss + (x * x).sum()
    return loss, x


@case(PROGRAM, PAIRS)
def recurrence_of_second_order(before: Any, x: Any) -> Any:
    for _ in range(TURNS):
        before, x = x, 1.5 * x - 0.6 * before + 0.01 * x.sin()
    return x, before


@case(PROGRAM, PAIRS)
def states_that_change_places(x: Any, y: Any) -> Any:
    for _ in range(TURNS + 1):
        x, y = y, 0.5 * (x * y).tanh() + 0.1 * x
    return x - 2.0 * y


@case(PROGRAM)
def value_before_the_first_turn(x: Any) -> Any:
    """The last turn back reads what stood before the first turn."""
    total = tg.zeros(3)
    for _ in range(TURNS):
        new = x * 0.9 + 0.1
        total = total + new * x
        x = new
    return total


@case(PROGRAM)
def first_turns_differ(x: Any) -> Any:
    momentum = None
    for _ in range(TURNS):
        slope = 2.0 * x + x.sin()
        momentum = slope if momentum is None else 0.9 * momentum + slope
        x = x - 0.01 * momentum
    return x


@case(PROGRAM)
def numbers_that_change_with_time(x: Any) -> Any:
    for t in range(TURNS):
        x = x * (1.0 - 0.5**t) + 0.1 * np.sin(t) * x.cos()
    return x


@case(PROGRAM)
def exponents_that_change_with_time(x: Any) -> Any:
    return sum(x**t / (t + 1.0) for t in range(TURNS // 2))


@case(PROGRAM)
def loop_in_a_loop(x: Any) -> Any:
    for _ in range(8):
        y = x
        for _ in range(6):
            y = y - 0.1 * (y.tanh() - x)
        x = x + 0.1 * y
    return x


@case(PROGRAM, RODS)
def heat_of_a_rod(u: Any) -> Any:
    for _ in range(TURNS):
        inner = u[1:-1] + 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u = tg.cat([u[:1], inner, u[-1:]])
    return u


@case(PROGRAM, RODS)
def wave_of_a_ring(u: Any) -> Any:
    speed = tg.zeros_like(u)
    for _ in range(TURNS):
        speed = speed + 0.1 * (tg.roll(u, 1, 0) - 2.0 * u + tg.roll(u, -1, 0))
        u = u + 0.1 * speed
    return u


@case(PROGRAM, tuple((a, series) for (a,), (series, _) in zip(MATRICES, SERIES_AND_STATE, strict=True)))
def recurrent_network(a: Any, series: Any) -> Any:
    h = tg.zeros(3)
    outputs = []
    for t in range(TURNS):
        h = tg.tanh(0.3 * (a @ h) + series[t])
        outputs.append(h.sum())
    return tg.stack(outputs)


@case(PROGRAM, BOTH)
def powers_of_a_matrix(a: Any, x: Any) -> Any:
    for _ in range(TURNS):
        x = a @ x
        x = x / (x * x).sum().sqrt()
    return x @ a @ x


@case(PROGRAM, MATRICES)
def covariance_of_a_filter(a: Any) -> Any:
    P, noise = tg.eye(3), 0.1 * tg.eye(3)
    for _ in range(TURNS):
        P = 0.2 * a @ P @ a.T + noise
        P = P - P[:, :1] @ P[:1] / (P[0, 0] + 1.0)
    return P


@case(PROGRAM)
def state_as_a_dictionary(x: Any) -> Any:
    state = {"place": x, "speed": 0.0 * x, "turn": 0}
    while state["turn"] < TURNS:
        pull = -state["place"] - 0.1 * state["speed"]
        state["speed"] = state["speed"] + 0.1 * pull
        state = {**state, "place": state["place"] + 0.1 * state["speed"], "turn": state["turn"] + 1}
    return state["place"], state["speed"]


@case(PROGRAM)
def rows_joined_one_by_one(x: Any) -> Any:
    rows = x[None]
    for _ in range(TURNS // 2):
        rows = tg.cat([rows, rows[-1:] * 0.9 + rows[:1] * 0.1])
    return rows


@case(PROGRAM, PAIRS)
def scalars_of_a_system(x: Any, y: Any) -> Any:
    """Lorenz's, element by element."""
    a, b, c = x
    for _ in range(TURNS):
        a, b, c = a + 0.01 * y[0] * (b - a), b + 0.01 * (a * (y[1] - c) - b), c + 0.01 * (a * b - y[2] * c)
    return tg.stack([a, b, c])


@case(PROGRAM, VECTORS)
def newton_of_fixed_turns(x: Any) -> Any:
    root = x.abs() + 1.0
    for _ in range(12):
        root = root - (root * root - x.abs() - 2.0) / (2.0 * root)
    return root


@case(PROGRAM, ((A, X),))
def turns_without_any_input(a: Any, x: Any) -> Any:
    table = tg.ones(3)
    for t in range(TURNS):
        table = table * 0.5 + t
    return a @ x + table


@case(PROGRAM, SERIES_AND_STATE)
def controls_of_each_turn(series: Any, x: Any) -> Any:
    """Elements and rows of one array, some of them read twice."""
    states = []
    for t in range(TURNS):
        x = x + 0.1 * tg.stack([series[t, 0] * x[1], x[2] - series[t, 1], (series[t] * x).sum()])
        states.append(x)
    return tg.stack(states), (series * series).sum()


@case(PROGRAM, SERIES_AND_STATE)
def differences_of_neighbours(series: Any, x: Any) -> Any:
    for t in range(1, TURNS):
        x = 0.9 * x + (series[t] - series[t - 1]) ** 2 * x.cos()
    return x.sum() * series[0] + series[-1]


@case(PROGRAM, SERIES_AND_STATE)
def some_rows_of_a_stack(series: Any, x: Any) -> Any:
    states = [x, x * 0.0]
    for t in range(5, TURNS):
        x = 0.5 * x + series[t].sin()
        states.append(x * series[t])
    whole = tg.stack(states)
    return whole[3:] * whole[:-3], whole[0], whole[-1] * series[2]


@case(PROGRAM, SERIES_AND_STATE)
def gradient_of_a_fit_by_steps(series: Any, x: Any) -> Any:
    """A gradient inside, by the parameters of each turn, which are moved then."""
    for _ in range(3):
        series = series - 0.1 * tg.func.grad(lambda own, x=x: (inputs_from_a_stack(own, x) ** 2).sum())(series)
    return series, x
