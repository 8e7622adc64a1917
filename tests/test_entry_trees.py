"""The entry of programs: arguments and results in containers, by name, from outside; constants."""

from collections import OrderedDict

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.program.entry import Input, Output, Variant
from tests.machine_code import MISSED, ONE, Pair, copies, entry_of, form, is_missed, numbers

# ---- containers, keywords, constants, tensors from outside


def test_containers():
    call = entry_of(numbers(6, [[ONE, ONE], {"a": ONE, "b": (ONE, [ONE])}, Pair(ONE, ())]))
    a, b, c, d, e, f = map(np.float64, range(6))
    for _ in range(2):
        assert call([a, b], {"a": c, "b": (d, [e])}, Pair(f, ())) == (0, 1, 2, 3, 4, 5)
    for args in (
        ((a, b), {"a": c, "b": (d, [e])}, Pair(f, ())),
        ([a], {"a": c, "b": (d, [e])}, Pair(f, ())),
        ([a, b, c], {"a": c, "b": (d, [e])}, Pair(f, ())),
        ([a, b], {"b": (d, [e]), "a": c}, Pair(f, ())),
        ([a, b], {"a": c}, Pair(f, ())),
        ([a, b], {}, Pair(f, ())),
        ([a, b], {"a": c, "c": (d, [e])}, Pair(f, ())),
        ([a, b], {"a": c, "b": (d, [e]), "c": f}, Pair(f, ())),
        ([a, b], {"a": c, "b": (d, (e,))}, Pair(f, ())),
        ([a, b], {"a": c, "b": (d, [e])}, (f, ())),
        ([a, b], {"a": c, "b": (d, [e])}, Pair(f, [])),
        ([a, b], {"a": c, "b": (d, [e])}, Pair(f, (a,))),
        ([a, b], OrderedDict({"a": c, "b": (d, [e])}), Pair(f, ())),
        ([a, "b"], {"a": c, "b": (d, [e])}, Pair(f, ())),
        ([a, b], {1: c, "b": (d, [e])}, Pair(f, ())),
        ([a, b], None, Pair(f, ())),
    ):
        assert is_missed(call(*args)), args


def test_keys_are_compared_not_their_identity():
    call = entry_of(numbers(1, [{"a long key, which is no name": ONE}]))
    assert call({"a long key, which is {} name".format("no"): np.float64(3)}) == (3,)


def test_results_in_containers():
    flag = object()
    tree = {"list": [Output(1), None], "pair": Pair(Output(0), (Output(2), flag)), "again": Output(0), 7: {}, "": []}
    call = entry_of(numbers(3, [ONE, ONE, ONE], result=tree))
    for _ in range(3):
        out = call(*map(np.float64, range(3)))
        assert out == {"list": [1, None], "pair": (0, (2, flag)), "again": 0, 7: {}, "": []}
        assert type(out["pair"]) is Pair
        assert out["pair"].second[1] is flag
        out["list"].append(1)
    assert entry_of(numbers(1, [ONE], result=5))(np.float64(1)) == 5
    assert entry_of(numbers(0, [], result=[Pair(1, 2)]))() == [(1, 2)]


def test_unknown_containers_are_refused():
    for kind in (OrderedDict, type("Own", (list,), {}), type("Other", (tuple,), {})):
        with pytest.raises(TypeError, match=f"does not look into a {kind.__name__}"):
            numbers(1, [kind()])
        with pytest.raises(TypeError, match=f"does not look into a {kind.__name__}"):
            numbers(1, [ONE], result=kind())


def test_keywords():
    call = entry_of(numbers(3, [ONE], keywords={"scale": ONE, "shift": (ONE,)}))
    a, b, c = map(np.float64, range(3))
    assert call(a, scale=b, shift=(c,)) == (0, 1, 2)
    assert call(a, **{"sca{}".format("le"): b, "shift": (c,)}) == (0, 1, 2)
    for out in (
        call(a, b, (c,)),
        call(a, scale=b),
        call(scale=b, shift=(c,)),
        call(a, shift=(c,), scale=b),
        call(a, scale=b, shift=(c,), more=c),
        call(a, scale=b, other=(c,)),
    ):
        assert is_missed(out)
    assert call(a, scale=b, other=c) == (MISSED, (a,), {"scale": b, "other": c})


def test_constants_must_be_the_same():
    function, array = len, np.zeros(2)
    for constant, others in (
        (3, (4, 3.0, True, 2**70, None)),
        (2**70, (2**70 + 1, 0)),
        (-1, (2**64 - 1, 1)),
        (True, (False, 1, None)),
        (None, (0, False, ())),
        ("mean", ("sum", b"mean", None, "")),
        (function, (max, None)),
        (array, (np.zeros(2),)),
        (np.float32, (np.float64, np.dtype(np.float32))),
    ):
        call = entry_of(numbers(1, [ONE, constant]))
        assert call(np.float64(5), constant) == (5,)
        for other in others:
            assert is_missed(call(np.float64(5), other)), (constant, other)
    call = entry_of(numbers(1, [ONE, 10**6, "a word of text"]))
    assert call(np.float64(5), int("1000000"), "a word of {}".format("text")) == (5,)


def test_tensors_from_outside_are_read_in_every_call():
    weight, bias = tg.nn.Parameter(tg.tensor(2.0)), tg.tensor([1.0])
    variant = Variant(
        copies([8, 8, 8]),
        [Input(tg.Tensor, form())],
        [form(), form(), form(1)],
        captured=[(weight, form()), (bias, form(1))],
        as_tensors=True,
    )
    call = entry_of(variant)
    x = tg.tensor(5.0)
    assert is_missed(call(x))
    with tg.no_grad():
        assert [out.tolist() for out in call(x)] == [5.0, 2.0, [1.0]]
        weight.mul_(2)
        bias.data = tg.tensor([7.0])
        assert [out.tolist() for out in call(x)] == [5.0, 4.0, [7.0]]
        bias.data = tg.tensor([7.0, 8.0])
        assert is_missed(call(x))
    bias.data = tg.tensor([9.0])
    weight.requires_grad_(False)
    assert [out.tolist() for out in call(x)] == [5.0, 4.0, [9.0]]
    bias.requires_grad_()
    assert is_missed(call(x))
