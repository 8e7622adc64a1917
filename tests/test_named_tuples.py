"""Named tuples that are quickly made at import behave as Python's."""

from __future__ import annotations

import copy
import pickle
import typing

import numpy as np
import pytest

from tapegrad.runtime.named_tuples import NamedTuple


class Own(NamedTuple):
    """Of our kind."""

    first: int
    second: object = 2
    third: tuple[int, ...] = ()

    @property
    def doubled(self) -> int:
        return 2 * self.first


class Python(typing.NamedTuple):
    first: int
    second: object = 2
    third: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((1,), {}), ((1, 5), {}), ((1, 5, (3,)), {}), ((), {"first": 1}), ((), {"third": (1,), "first": 0}),
        ((1,), {"third": (4,)}), ((1, 2), {"third": ()}),
    ],
)  # fmt: skip
def test_values(values: tuple[typing.Any, ...], named: dict[str, typing.Any]) -> None:
    own, other = Own(*values, **named), Python(*values, **named)
    assert own == other == tuple(own)
    assert (own.first, own.second, own.third) == tuple(other)
    assert repr(own) == repr(other).replace("Python", "Own")
    assert own._asdict() == other._asdict()
    assert own._replace(second=7) == other._replace(second=7)
    assert own.doubled == 2 * own.first
    assert copy.deepcopy(own) == pickle.loads(pickle.dumps(own)) == own
    assert type(pickle.loads(pickle.dumps(own))) is Own
    assert not hasattr(own, "__dict__")


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((), {}), ((), {"second": 1}), ((1, 2, (), 4), {}), ((1,), {"first": 2}), ((1,), {"fourth": 2}),
        ((1, 2, ()), {"third": ()}),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(values: tuple[typing.Any, ...], named: dict[str, typing.Any]) -> None:
    for kind in (Own, Python):
        with pytest.raises(TypeError):
            kind(*values, **named)
    with pytest.raises(ValueError, match="fourth"):
        Own(1)._replace(fourth=2)


def test_attributes_of_the_class() -> None:
    assert Own._fields == Python._fields == Own.__match_args__
    assert Own._field_defaults == Python._field_defaults
    assert Own._make([1, 2, ()]) == (1, 2, ())
    with pytest.raises(AttributeError):
        Own(1).first = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match="default"):

        class Wrong(NamedTuple):
            first: int = 1
            second: int  # type: ignore[misc]

    match Own(1, np.ones(2)):
        case Own(first, second):
            assert first == 1
            assert second.shape == (2,)  # type: ignore[attr-defined]
