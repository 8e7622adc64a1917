"""Structs: the same expressions read and write the same memory in compiled code and in Python."""

import ctypes
import linecache
import sys
import weakref

import numpy as np
import pytest

from tapegrad.compiler import cache, frontend, jit
from tapegrad.compiler.fingerprint import fingerprint
from tapegrad.recording.native import decref, incref, load
from tapegrad.runtime import memory, objects, structs
from tapegrad.runtime.objects import List
from tapegrad.runtime.structs import Array, Struct, Table, embedded, int32, sizeof


class Pair(Struct):
    first: int
    second: int


class Thing(Struct):
    number: int
    low: int = int32()
    high: int = int32()
    half: int = int32()
    inside: Array[int] = embedded(2)
    pairs: Table[Pair]
    next: "Thing"
    others: Array[Pair]
    rest: Array[int] = embedded()


class Longer(Thing):
    more: int


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_addresses", {})


@pytest.fixture(autouse=True)
def everything_is_watched(monkeypatch):
    monkeypatch.setattr(memory, "INTERPRETS", True)


def test_offsets_follow_from_the_order_of_fields():
    offsets = {field.name: field.offset for field in Thing.fields()}
    assert offsets == {
        "number": 0, "low": 8, "high": 12, "half": 16, "inside": 24, "pairs": 40, "next": 48, "others": 56, "rest": 64,
    }  # fmt: skip
    assert (sizeof(Thing), sizeof(Pair), Longer.field("more").offset) == (64, 16, 64)
    assert (Longer.field("low").offset, Thing.word("pairs"), Thing.field("none")) == (8, 5, None)


def change(thing: Thing, n: int) -> int:
    thing.number += n
    thing.low = thing.high = -n
    thing.half -= 1
    thing.inside[0] = thing.inside[1] = thing.low + 5
    inside = thing.inside.at(1)
    inside[0] <<= 1
    for i in range(2):
        pair = thing.pairs[i]
        pair.first, pair.second = pair.second, thing.pairs[i].first
    other = thing.next if n > 0 else Thing(0)
    other.number |= 1 << 63
    thing.others[1] = thing.pairs[0]
    thing.rest[1] = second_of(thing.others[1])
    words = Array[int](other)
    words[2] = words[2] + other.half
    return (other == thing) + thing.next.next.next.half


def second_of(pair: Pair) -> int:
    return pair.second


def give(thing: Thing) -> Thing:
    return thing.next


def chained(thing: Thing, n: int) -> int:
    return give(thing).number + give(give(thing)).low


def made():
    """Return memory for two things that point to each other, and for pairs."""
    pairs = memory.watch(np.arange(10, 14), "pairs")
    things = [memory.watch(np.arange(100 * i, 100 * i + 10), f"thing {i}") for i in range(2)]
    others = memory.watch(np.zeros(2, dtype=np.int64), "others")
    for i, thing in enumerate(things):
        thing[5:8] = pairs.ctypes.data, things[1 - i].ctypes.data, others.ctypes.data
    return [*things, pairs, others]


def contents(arrays):
    """Return what stands in memory, with addresses named by what they point to."""
    names = {array.ctypes.data: 7000 + i for i, array in enumerate(arrays)}
    return [[names.get(word, word) for word in array.tolist()] for array in arrays]


@pytest.mark.parametrize("function", [change, chained])
def test_compiled_code_does_what_python_does(function):
    native = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 3)(cache.address_of("test", function, ("int64",) * 2))
    one, other = made(), made()
    assert native(one[0].ctypes.data, 3) == function(Thing(other[0].ctypes.data), 3)
    assert contents(one) == contents(other)


def bad_field(thing: Thing) -> int:
    return thing.nubmer


def bad_index(thing: Thing) -> int:
    return thing.number[3]


def bad_target(thing: Thing) -> int:
    thing.inside = 5
    return 0


def bad_element(thing: Thing) -> int:
    thing.pairs[0] = thing.number
    return 0


@pytest.mark.parametrize(("function", "said"), [
    (bad_field, "Thing has no field nubmer"), (bad_index, r"thing.number\[3\] is no place for a value"),
    (bad_target, "thing.inside is no place"), (bad_element, r"thing.pairs\[0\] is no place"),
])  # fmt: skip
def test_what_is_no_field_is_said(function, said):
    with pytest.raises(jit.JitError, match=f"{function.__name__}: a function over structs .*line .*{said}"):
        jit.compile_function(function, ("int64",))


def test_structs_need_source_text(tmp_path):
    path = tmp_path / "gone.py"
    path.write_text("def f(a: Pair):\n    return a.second\n")
    space = {"Pair": Pair}
    exec(compile("from __future__ import annotations\n" + path.read_text(), str(path), "exec"), space)
    linecache.checkcache(str(path))
    assert frontend.uses_structs(space["f"], {})
    with pytest.raises(jit.JitError, match=r"gone.py does not say what f does"):
        jit.compile_function(space["f"], ("int64",))
    assert not frontend.uses_structs(contents, {})


def test_a_fingerprint_covers_the_layouts_that_a_function_reaches(monkeypatch):
    before = fingerprint(chained, ("int64",) * 2, {}), fingerprint(second_of, ("int64",), {})
    monkeypatch.setattr(structs, "_cache", {})
    assert (fingerprint(chained, ("int64",) * 2, {}), fingerprint(second_of, ("int64",), {})) == before
    monkeypatch.setattr(structs, "_cache", {})
    monkeypatch.setattr(Pair.__dict__["second"], "offset", 24)  # Thing leads to Pair
    after = fingerprint(chained, ("int64",) * 2, {}), fingerprint(second_of, ("int64",), {})
    assert after[0] != before[0]
    assert after[1] != before[1]


def test_memory_out_of_bounds():
    array = memory.watch(np.arange(3), "three words")
    words = Array[int](array.ctypes.data)
    assert [words[0], words[2], words.at(2)[-1]] == [0, 2, 1]
    for index in (-1, 3, 1 << 40):
        with pytest.raises(memory.OutOfBoundsError, match="of three words, which has 24"):
            words[index]
    with pytest.raises(memory.OutOfBoundsError, match="of three words"):
        words[3] = 5
    del array
    with pytest.raises(memory.OutOfBoundsError):
        assert words[0]


def test_objects_out_of_bounds():
    items = [1, 2, 3]
    owner = objects.List(id(items))
    assert memory.object_at(owner.items[1]) == 2
    with pytest.raises(memory.OutOfBoundsError):
        owner.items[owner.allocated]
    before = owner.items
    items.extend(range(100_000))
    with pytest.raises(memory.OutOfBoundsError):
        before[0]  # the list keeps them elsewhere now
    for address in (0, 8, 1 << 50, -8):
        with pytest.raises(memory.OutOfBoundsError):
            assert objects.List(address).length
    with pytest.raises(memory.OutOfBoundsError):
        Array[int](id(items))[6]


def test_objects_are_where_they_are_thought_to_be(monkeypatch):
    objects.check_objects()
    kinds = objects.List, objects.Tuple, objects.NDArray, objects.Ufunc, objects.Object, objects.Scalar, objects.Type
    for kind in kinds:
        for field in vars(kind).values():
            if isinstance(field, structs.Field) and field.name not in ("identity", "reserved", "functions", "data"):
                monkeypatch.setattr(field, "offset", field.offset + 4)
                with pytest.raises((ImportError, memory.OutOfBoundsError)):
                    objects.check_objects()
                monkeypatch.undo()


def next_to(address):
    return address + 8


def length_next_to(address):
    return List(next_to(address)).length


def test_what_has_a_field_is_computed_once():
    machine = jit.target_machine(0)
    text, _ = frontend.lower(length_next_to, ("int64",), {}, jit.SYMBOL, machine)
    assert text.count("call ") == 1


def after_a_return(address, number):
    length = List(address).length
    if number == length:
        return number
    return List(address).length - length


def test_what_is_known_before_a_jump_is_known_behind_it():
    """An address is one pointer, and a variable is not loaded again, where control comes from one place only."""
    text, _ = frontend.lower(after_a_return, ("int64", "int64"), {}, jit.SYMBOL, jit.target_machine(0))
    assert text.count("inttoptr") == 1
    assert text.count(" = load ") == 3  # two lengths, and the result


# References ----------------------------------------------------------------------------------------------------------


def last_of(self: objects.NDArray, args: Array[objects.Object], nargs: int) -> int:
    """Return the last argument; of two, drop the reference that the first, a list, has to its item."""
    last = args[nargs - 1]
    incref(last)
    incref(last)
    decref(last)
    if nargs == 2:
        items = List(args[0])
        items.length = 0
        decref(items.items[0])
    return last


def test_references_are_counted_in_place():
    function = load(last_of, None)
    value = object()
    before = sys.getrefcount(value)
    assert function(value) is value
    assert sys.getrefcount(value) == before
    assert function(None) is None
    things = [{1, 2}]
    gone = weakref.ref(things[0])
    assert function(things, value) is value
    assert (things, gone()) == ([], None)
    assert sys.getrefcount(value) == before


@pytest.mark.skipif(sys.version_info < (3, 12), reason="every object is mortal")
def test_the_count_of_an_immortal_object_stays():
    before = sys.getrefcount(None)
    function = load(last_of, None)
    assert [function(None) for _ in range(100)] == [None] * 100
    assert sys.getrefcount(None) == before
