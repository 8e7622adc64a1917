"""What compiled code says of a whole list of entries, against sets and loops in Python."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from test_interpreter import interpreted

import tapegrad as tg
from tapegrad import func
from tapegrad.program.columns import Columns
from tapegrad.program.program import Program
from tapegrad.program.trace import trace

RNG = np.random.default_rng(0)


def indexed(x: Any) -> Any:
    largest = tg.sort(x).values[::2]
    return (x[tg.tensor([0, 2, 2])] * largest[:3] * 2.0).sum() + tg.stack([x[k] * x[k + 1] for k in range(5)]).sum()


def turns(x: Any) -> Any:
    y, dead = x[0], x[1]
    for _ in range(30):
        y, dead = tg.sin(y) * x[1] + x[0], dead * y
    return y


def program_of(function: Any) -> Program:
    return trace(lambda x: func.grad_and_value(function)(x), [RNG.normal(size=6)])[0]


@pytest.fixture(params=[indexed, turns])
def program(request: pytest.FixtureRequest) -> Program:
    return program_of(request.param)


def test_numbers_are_those_of_entries(program: Program) -> None:
    columns = Columns(program.entries)
    for entry, counts, start in zip(program.entries, columns.counts.tolist(), columns.starts.tolist(), strict=True):
        assert counts == [len(entry.operands), len(entry.index_arrays), len(entry.results)]
        own = (*entry.operands, *entry.index_arrays, *entry.results)
        assert columns.numbers[start : start + len(own)].tolist() == list(own)


def test_alive_and_reached(program: Program) -> None:
    count, columns = len(program.layouts), Columns(program.entries)
    numbers = [number for entry in program.entries for number in entry.results]
    for wanted in RNG.choice(numbers, 8).tolist():
        alive, reached = {wanted}, {wanted}
        kept, later = [], []
        for entry in reversed(program.entries):
            kept.append(not alive.isdisjoint(entry.results))
            alive.update((*entry.operands, *entry.index_arrays) if kept[-1] else ())
        for entry in program.entries:
            later.append(not reached.isdisjoint((*entry.operands, *entry.index_arrays)))
            reached.update(entry.results if later[-1] else ())
        for (values, entries), marked, which in (
            (columns.alive(count, [wanted]), alive, kept[::-1]),
            (columns.reached(count, [wanted]), reached, later),
        ):
            assert set(np.flatnonzero(values).tolist()) == marked
            assert entries.tolist() == which
            assert columns.chosen(entries).entries == list(itertools.compress(program.entries, which))


def test_alive_among_some(program: Program) -> None:
    count, columns = len(program.layouts), Columns(program.entries)
    wanted = [*program.outputs]
    among = RNG.uniform(size=len(program.entries)) < 0.8
    rest = columns.chosen(among)
    kept = columns.chosen(columns.alive(count, wanted, among)[1]).entries
    assert kept == rest.chosen(rest.alive(count, wanted)[1]).entries != rest.entries


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_columns_of_some_entries_are_those_of_their_list(program: Program, share: float) -> None:
    some = Columns(program.entries).chosen(RNG.uniform(size=len(program.entries)) < share)
    again = Columns(some.entries)
    for name in ("counts", "numbers", "ops", "starts"):
        np.testing.assert_array_equal(getattr(some, name), getattr(again, name))
    count = len(program.layouts)
    for ours, theirs in zip(some.users(count), again.users(count), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_program_forgets_its_columns(program: Program) -> None:
    assert program.columns is program.columns
    assert program.ops == {entry.op for entry in program.entries}
    program.forget()
    assert not {"columns", "ops"} & vars(program).keys()


def test_kinds_share_operation_attributes_and_layouts(program: Program) -> None:
    codes, examples = Columns(program.entries).kinds(program.layouts)
    kinds: dict[Any, int] = {}
    for entry, code in zip(program.entries, codes.tolist(), strict=True):
        numbers = (*entry.operands, *entry.index_arrays, *entry.results)
        counts = len(entry.operands), len(entry.index_arrays), len(entry.results)
        key = id(entry.op), id(entry.attrs), counts, *[id(program.layouts[number]) for number in numbers]
        assert kinds.setdefault(key, code) == code
    assert sorted(kinds.values()) == list(range(len(examples)))
    assert [codes[place] for place in examples] == list(range(len(examples)))


def test_users(program: Program) -> None:
    places, ends = Columns(program.entries).users(len(program.layouts))
    for number, (start, end) in enumerate(zip([0, *ends.tolist()], ends.tolist(), strict=False)):
        takes = [place for place, own in enumerate(program.entries)
                 for other in (*own.operands, *own.index_arrays) if other == number]  # fmt: skip
        assert places[start:end].tolist() == takes


INTERPRETED = """
import numpy as np
from tapegrad.program.columns import Columns
entries = [(9, (k, k // 2), {}, (k,) * (k % 2), (k + 1,), False) for k in range(7)]
columns = Columns(entries)
print(columns.numbers, columns.counts, columns.alive(8, [4]), columns.reached(8, [4]), columns.users(8))
print(columns.kinds([None, int, None, int, None, None, None, int])[1])
"""


def test_no_access_is_out_of_bounds() -> None:
    assert interpreted(INTERPRETED) == interpreted(INTERPRETED, TAPEGRAD_INTERPRET="0") != ""
