"""Tensors that a compiled function finds by names: other ones may stand there in the next call, or none, or more."""

from __future__ import annotations

import re
import sys
import types
from collections import defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.program import standing
from tapegrad.program.names import Names
from tapegrad.program.standing import Standing
from tapegrad.program.values import Values
from tapegrad.program.watched import Watched
from tapegrad.runtime.memory import INTERPRETS

ONE, TWO, THREE = (tg.tensor(np.array(own)) for own in ([1.0, 2.0, -1.0], [0.5, -0.2, 0.3], [2.0, 4.0, 8.0]))
Pair = namedtuple("Pair", "first second")

MORE = {"first": ONE}

#: A function of the next argument is made first; what follows changes what it finds.
Program = Iterator[Any]


class Box:
    """An object with attributes."""

    shared: Any = ONE
    level: float

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def scaled(self, x: Any) -> Any:
        return self.helped(x) * self.shared

    def helped(self, x: Any) -> Any:
        return x + self.doubled

    @property
    def doubled(self) -> Any:
        return self.inner * 2.0


class Slotted:
    __slots__ = ("__private", "inner")

    def keep(self, value: Any) -> None:
        self.__private = value

    def kept(self) -> Any:
        return self.__private


def elements_of_a_list() -> Program:
    held = [ONE]
    yield lambda x: sum((x * own for own in held), x)
    held.append(TWO)
    yield
    held.pop(0)
    yield
    held[0] = THREE
    yield
    held.clear()
    yield


def a_key_that_appears() -> Program:
    held = {"first": ONE}
    yield lambda x: x * held["first"] + held.get("second", 0.0)
    held["second"] = TWO
    yield
    held["second"] = THREE
    yield
    del held["second"]
    yield


def an_empty_dict() -> Program:
    held: dict[str, Any] = {}
    yield lambda x: x * 2.0 if held.get("state") is None else x * held["state"]
    held["state"] = ONE
    yield
    held["state"] = None
    yield


def a_variable_that_is_none() -> Program:
    state = None
    yield lambda x: x * 2.0 if state is None else x * state
    state = ONE
    yield
    state = TWO
    yield


def an_attribute_that_is_none() -> Program:
    box = Box(inner=None)
    yield lambda x: x * 2.0 if box.inner is None else x * box.inner
    box.inner = ONE
    yield
    box.inner = None
    yield


def containers_of_many_kinds() -> Program:
    queue, groups = deque([ONE]), defaultdict(list, q=[ONE])
    pairs, deep = [Pair(ONE, TWO)], {1: {2: {3: [ONE]}}}
    yield lambda x: x * queue[0] + groups["q"][0] * 2.0 + pairs[0].first * pairs[0].second + deep[1][2][3][0]
    queue[0] = TWO
    yield
    queue.appendleft(THREE)
    yield
    groups["q"][0] = THREE
    yield
    pairs[0] = Pair(THREE, ONE)
    yield
    deep[1][2][3] = [THREE]
    yield


def a_container_with_two_names() -> Program:
    held = [ONE]
    one, two = Box(inner=held), Box(inner=held)
    yield lambda x: x * one.inner[0] + two.inner[0]
    two.inner = [TWO]
    yield
    one.inner = [THREE]
    yield


def slots() -> Program:
    slotted = Slotted()
    slotted.inner = ONE
    slotted.keep(TWO)
    yield lambda x: x * slotted.inner + slotted.kept()
    slotted.inner = TWO
    yield
    slotted.keep(THREE)
    yield


def methods_and_classes() -> Program:
    box = Box(inner=ONE)
    yield box.scaled
    box.inner = TWO
    yield
    Box.shared = THREE
    yield
    Box.shared = ONE
    yield


def defaults() -> Program:
    def scaled(x: Any, factor: Any = ONE, *, others: Any = MORE) -> Any:
        return x * factor + others["first"]

    yield lambda x: scaled(x)
    scaled.__kwdefaults__["others"]["first"] = TWO
    yield
    scaled.__defaults__ = (THREE,)
    yield


def variables_of_a_forward() -> Program:
    class Scaled(tg.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * factor

    factor = ONE
    network = tg.nn.Sequential(Scaled(), tg.nn.Tanh())
    yield lambda x: network(x)
    factor = TWO
    yield


def hooks_in_a_list() -> Program:
    hooks: list[Any] = []

    def slope(x: Any) -> Any:
        x = x.detach().requires_grad_()
        y = x * x
        for hook in hooks:
            y.register_hook(hook)
        (y**2).sum().backward()
        return x.grad

    yield slope
    hooks.append(lambda ct: ct * 2.0)
    yield
    hooks.clear()
    yield


def network(scale: float) -> Any:
    layer = tg.nn.Linear(3, 3).double()
    with tg.no_grad():
        layer.weight.fill_(scale)
        layer.bias.zero_()
    return layer


def networks_in_variables_and_dicts() -> Program:
    one, held = network(0.1), {"two": network(0.2)}
    yield lambda x: (one(x) + held["two"](x)).detach()
    one = network(0.3)
    yield
    held["two"] = network(0.4)
    yield
    one = tg.nn.Sequential(network(0.5), tg.nn.Tanh())
    yield


def networks_in_a_list() -> Program:
    layers = [network(0.1 * k) for k in (1, 2, 3)]

    def function(x: Any) -> Any:
        for layer in layers:
            x = tg.tanh(layer(x))
        return x.detach()

    yield function
    layers.pop()
    yield
    layers.append(network(0.7))
    yield
    layers.reverse()
    yield


def numbers_in_variables() -> Program:
    global SCALE
    SCALE, factor, shift, word = 2.0, 3.0, np.ones(3), "sin"

    def helped(x: Any) -> Any:
        return x * SCALE

    yield lambda x: (tg.sin(x) if word == "sin" else tg.cos(x)) * helped(x) + factor * shift
    SCALE = 5.0
    yield
    factor = 4.0
    yield
    shift = np.zeros(3)
    yield
    word = "cos"
    yield
    SCALE = 2.0
    yield


def numbers_in_containers() -> Program:
    rates, options, pair = [0.1, 0.5], {"lr": 0.1, "w": ONE, "deep": {"k": 2}}, (2.0, [3.0])
    yield lambda x: x * rates[1] + options["w"] * options["lr"] * options["deep"]["k"] + pair[0] * pair[1][0]
    rates[1] = 0.7
    yield
    options["lr"] = 0.9
    yield
    options["deep"]["k"] = 5
    yield
    pair[1][0] = 7.0
    yield
    options["w"] = TWO
    yield


def numbers_in_objects() -> Program:
    class Model:
        power = 2

        def __init__(self) -> None:
            self.scale, self.box = 2.0, Box(inner=1.5, unread=0)

        def __call__(self, x: Any) -> Any:
            return self.scaled(x) ** self.power + self.box.inner + self.of_class(x) + self.plain(x)

        def scaled(self, x: Any) -> Any:
            return x * self.scale

        @classmethod
        def of_class(cls, x: Any) -> Any:
            return x * cls.power

        @staticmethod
        def plain(x: Any) -> Any:
            return x + Box.level

    Box.level = 0.5
    model = Model()
    yield model
    model.scale = 3.0
    yield
    model.box.inner = 0.25
    yield
    Model.power = 3
    yield
    Box.level = 1.5
    yield
    model.box = Box(inner=9.0)
    yield


def numbers_in_a_forward() -> Program:
    class Scaled(tg.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * factor + self.inner(x)

    class Inner(tg.nn.Module):
        def forward(self, x: Any) -> Any:
            return x + shift

    factor, shift, network = 2.0, 1.0, Scaled()
    network.inner = Inner()
    yield lambda x: network(x)
    factor = 3.0
    yield
    shift = 4.0
    yield


PROGRAMS = [
    numbers_in_variables, numbers_in_containers, numbers_in_objects, numbers_in_a_forward,
    elements_of_a_list, a_key_that_appears, an_empty_dict, a_variable_that_is_none, an_attribute_that_is_none,
    containers_of_many_kinds, a_container_with_two_names, slots, methods_and_classes, defaults, variables_of_a_forward,
    hooks_in_a_list, networks_in_variables_and_dicts, networks_in_a_list,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda own: own.__name__)
def test_what_stands_behind_names_changes_between_calls(program: Callable[[], Program]) -> None:
    changes = program()
    function = next(changes)
    compiled = tg.compile(function)
    for _ in (0, *changes):
        for _ in range(3):
            np.testing.assert_allclose(np.asarray(compiled(ONE)), np.asarray(function(ONE)), rtol=1e-12)
    assert compiled.programs


def test_long_lists_are_compared_by_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of 300 numbers took 70 microseconds in each call."""
    times = [0.01 * k for k in range(300)]

    def function(x: Any) -> Any:
        return sum(x * t for t in times)

    compiled = tg.compile(function)
    compiled(ONE)
    with monkeypatch.context() as patch:
        patch.setattr(Watched, "holds", lambda self: pytest.fail("asked for in Python"))
        np.testing.assert_allclose(compiled(TWO), np.asarray(function(TWO)))
    times[7:9] = [float(str(own)) for own in times[7:9]]  # equal ones
    np.testing.assert_allclose(compiled(TWO), np.asarray(function(TWO)))
    assert len(compiled.programs) == 1
    for change in (lambda: times.append(3.0), lambda: times.pop(0), lambda: times.__setitem__(2, 5.0), times.clear):
        change()
        np.testing.assert_allclose(compiled(TWO), np.asarray(function(TWO)))


class Counts:
    """Its attributes stand in the class at first."""

    number, scale, last = 0, 2.0, None

    def step(self, x: Any) -> Any:
        self.number += 1
        self.last = x * self.scale
        return self.last


class CountsInForward(tg.nn.Module):
    number, scale = 0, 2.0

    def forward(self, x: Any) -> Any:
        self.number += 1
        return x * self.scale


@pytest.mark.parametrize("kind", [Counts, CountsInForward])
@pytest.mark.filterwarnings("ignore:step is not compiled")
def test_attributes_that_objects_get_in_place_of_their_class(kind: Any) -> None:
    """The first call wrote the number into the object, and later ones left it so; a new scale was not seen."""
    own = kind()
    compiled = tg.compile(own.step if kind is Counts else own)
    for number in range(1, 7):
        if number == 4:
            own.scale = 5.0
        np.testing.assert_allclose(np.asarray(compiled(ONE)), np.asarray(ONE) * (2.0 if number < 4 else 5.0))
        assert own.number == number
    del own.scale
    np.testing.assert_allclose(np.asarray(compiled(ONE)), np.asarray(ONE) * 2.0)


def test_lists_that_the_function_does_not_read_may_grow() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.weight, self.losses = ONE, list[float]()

        def step(self, x: Any) -> Any:
            return (x * self.weight).sum()

    trainer = Trainer()
    compiled = tg.compile(trainer.step)
    for _ in range(5):
        trainer.losses.append(float(compiled(TWO)))
    assert len(compiled.programs) == 1


def test_functions_of_the_library_ask_for_nothing_in_a_call() -> None:
    """A check by Python takes a third of a microsecond, which is more than a call; one that is compiled, 30 ns."""
    functions = Pair(tg.exp, tg.func.value_and_grad(lambda x: tg.stack([x, x.sin()]).logsumexp()))

    def function(x: Any) -> Any:
        return functions.second(functions.first(x))

    assert Names(function).checks(()) == []
    assert [type(check) for check in Values(function).unchanged()] == [Standing]


def test_what_is_not_read_may_change() -> None:
    """Names of code decide."""
    traces, box = [], Box(scale=2.0, unread=0)

    def function(x: Any) -> Any:
        traces.append(1)
        return x * box.scale

    compiled = tg.compile(function)
    for turn in range(5):
        box.unread = turn
        np.testing.assert_array_equal(compiled(ONE), ONE * 2.0)
    assert len(compiled.programs) == len(traces) == 1


def test_a_long_chain_of_objects_is_followed() -> None:
    chain = Box(next=None, weight=1.0)
    for weight in range(900):
        chain = Box(next=chain, weight=float(weight))

    def function(x: Any) -> Any:
        return x * chain.weight + chain.next.weight

    compiled = tg.compile(function)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(ONE), function(ONE))
        chain.next.weight += 1.0


def test_a_function_that_catches_the_error_of_a_factorisation() -> None:
    def safe(x: Any) -> Any:
        try:
            return tg.linalg.cholesky(x)
        except tg.linalg.LinAlgError:
            return x * 0.0 - 1.0

    good, bad = np.array([[4.0, 1.0], [1.0, 3.0]]), -np.eye(2)
    for matrices in ((good, bad, good), (bad, good, bad)):
        compiled = tg.compile(safe)
        for matrix in matrices:
            np.testing.assert_allclose(compiled(matrix), np.asarray(safe(tg.tensor(matrix))), rtol=1e-12)


class Owner:
    """An object with a method that is compiled."""

    def __init__(self, weight: Any) -> None:
        self.weight, self.calls = weight, 0

    @tg.compile
    def scaled(self, x: Any) -> Any:
        return x * self.weight

    @tg.compile
    def added(self, x: Any) -> Any:
        self.weight = self.weight + x
        return self.weight * 2.0


@pytest.mark.parametrize("make", [float, lambda factor: np.full(3, factor)], ids=["numbers", "arrays"])
def test_attributes_of_objects_among_arguments_are_compared(make: Callable[[float], Any]) -> None:
    """Those of the object whose method it is, too, and of what a function hands on."""
    handed = tg.compile(lambda parts, x: (lambda own: own.weight * x)(parts["owner"]))
    for function in (lambda own: own.scaled(TWO), lambda own: handed({"owner": own}, TWO)):
        owner = Owner(make(1.0))
        for factor in (1.0, 2.0, 3.0):
            owner.weight = make(factor)
            np.testing.assert_array_equal(function(owner), factor * TWO)
        np.testing.assert_array_equal(function(Owner(make(5.0))), 5.0 * TWO)


def test_another_object_may_stand_where_one_stood() -> None:
    box, square = [Owner(2.0)], np.square
    kept = Box(act=lambda x: x * 3.0)

    def function(x: Any) -> Any:
        return kept.act(square(box[0].weight * x))

    compiled = tg.compile(function)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(TWO), function(TWO))
    box[0] = Owner(4.0)
    np.testing.assert_array_equal(compiled(TWO), function(TWO))
    square = np.abs
    np.testing.assert_array_equal(compiled(TWO), function(TWO))
    kept.act = lambda x: x + 1.0
    np.testing.assert_array_equal(compiled(TWO), function(TWO))
    assert len(compiled.programs) == 4


def test_arrays_that_a_method_replaces_are_replaced_once_in_each_call() -> None:
    owner = Owner(np.zeros(2))
    with pytest.warns(UserWarning, match="it changes what it looks at"):
        found = [owner.added(np.ones(2)).tolist() for _ in range(4)]
    assert found == [[2.0, 2.0], [4.0, 4.0], [6.0, 6.0], [8.0, 8.0]]


def test_names_of_modules_and_optimizers_in_other_objects() -> None:
    owner = Owner(2.0)
    owner.param_groups, owner._kinds = ["wing", "tail"], 3  # type: ignore[attr-defined]
    np.testing.assert_array_equal(tg.compile(lambda x: x * owner.weight)(TWO), 2.0 * TWO)


def test_attributes_of_namespaces_are_compared() -> None:
    options = types.SimpleNamespace(scale=2.0, inner=types.SimpleNamespace(shift=np.ones(3)))
    compiled = tg.compile(lambda x: x * options.scale + options.inner.shift)
    np.testing.assert_array_equal(compiled(TWO), TWO * 2.0 + 1.0)
    options.scale = 3.0
    np.testing.assert_array_equal(compiled(TWO), TWO * 3.0 + 1.0)
    options.inner = types.SimpleNamespace(shift=np.zeros(3))
    np.testing.assert_array_equal(compiled(TWO), TWO * 3.0)


def test_caches_of_pythons_own_functions_are_not_looked_at() -> None:
    """They may have changed when the function is called again, or while it is compiled."""

    def function(x: Any, name: str) -> Any:
        return x * float(re.sub("[a-z]*", "", name))

    compiled = tg.compile(function)
    function(TWO, "times2.5")
    for number in range(4):
        np.testing.assert_array_equal(compiled(TWO, "times2.5"), TWO * 2.5)
        re.compile(f"{number}+")
    assert len(compiled.programs) == 1


def test_objects_that_are_handed_on_are_compared() -> None:
    options = Box(scale=2.0)

    def scaled(own: Any, x: Any) -> Any:
        return x * own.scale

    compiled = tg.compile(lambda x: scaled(options, x))
    for factor in (2.0, 3.0):
        options.scale = factor
        np.testing.assert_array_equal(compiled(TWO), factor * TWO)


class Sorted(dict):
    """A dict that shows its keys in order."""

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(self.keys()))


NOTHING: Any = None


class Settings:
    """What a function reads through its class."""

    weight: Any = None


@pytest.mark.parametrize("place", ["table", "shown", "queue", "variable", "class"])
def test_tensors_appear_where_none_were(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are noticed in dicts, of which many are asked at once, in other containers and behind names of None."""

    table: dict[str, Any] = {"b": 1.0, "a": None}
    shown: dict[str, Any] = Sorted(table)
    queue: deque[Any] = deque(table.values())

    def function(x: Any) -> Any:
        found = [*table.values(), *shown.values(), *queue, NOTHING, Settings.weight]
        return x + sum(own for own in found if own is not None)

    compiled = tg.compile(function)
    assert [float(compiled(2.0)) for _ in range(3)] == [5.0, 5.0, 5.0]
    for value in (tg.tensor(3.0), tg.tensor(4.0), None, tg.tensor(5.0)):
        if place == "table":
            table["a"] = value
        elif place == "shown":
            shown["a"] = value
        elif place == "queue":
            queue[1] = value
        elif place == "class":
            monkeypatch.setattr(Settings, "weight", value)
        else:
            monkeypatch.setitem(globals(), "NOTHING", value)
        expected = 5.0 + (0.0 if value is None else value.item())
        assert [float(compiled(2.0)) for _ in range(3)] == [expected] * 3


def test_dicts_are_compared_by_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other keys that are equal are the same."""
    calls = []
    monkeypatch.setattr(standing, "_have_kinds", lambda pairs, own=standing._have_kinds: calls.append(1) or own(pairs))
    tables: list[Any] = [{"one": 1.0, "two": "text"}, Sorted(b=1, a=2), {}]
    (check,) = standing.kinds_checked([(own, standing.kinds_in(own)) for own in tables])
    assert check()
    assert not calls
    del tables[0]["two"]
    assert not check()
    tables[0]["two ".strip()] = "another"
    assert check()
    assert len(calls) == 2
    tables[2]["more"] = 1
    assert not check()
    del tables[2]["more"]
    assert check()
    tables[0]["one"] = 1
    assert not check()


@pytest.mark.skipif(INTERPRETS, reason="compiled functions run in Python")
def test_functions_of_large_libraries_in_a_branch_that_is_not_taken() -> None:
    """Their modules have hundreds of names, which are asked for in each call, in compiled code."""
    library = types.ModuleType("library")
    space = {f"table_{number}": {f"key_{k}": k for k in range(100)} for number in range(100)}
    names = ", ".join(space)
    exec(f"def draw(x):\n    return [{names}]\n", vars(library) | space, made := {})
    library.draw = made["draw"]  # type: ignore[attr-defined]
    is_asked = False

    def function(x: Any) -> Any:
        if is_asked:
            library.draw(x)
        return x * 2.0

    compiled, x = tg.compile(function), np.ones(3)
    compiled(x)
    compiled(x)
    calls = 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        compiled(x)
    finally:
        sys.setprofile(None)
    assert calls < 10
