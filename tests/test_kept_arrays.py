"""Small results of compiled functions: an array that nobody has any more is given out again, and no other one."""

import weakref

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.program.templates import KEPT
from tapegrad.runtime.memory import INTERPRETS
from tests.several_threads import in_threads

X = np.arange(3.0)


@pytest.fixture
def double():
    function = tg.compile(lambda x: (2 * x, x.sum()))
    for x in (X, tg.tensor(X)):
        function(x), function(x)
    return function


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.skipif(INTERPRETS, reason="the interpreter holds arrays")
def test_what_nobody_has_is_given_out_again(double):
    places = {address(double(X)[0]) for _ in range(10)}
    assert len(places) <= 2
    places.clear()
    for _ in range(10):
        result = double(X)[0]  # while the one before is still there
        places.add(address(result))
    assert len(places) <= 3


HOLDS = {"array": lambda a: a, "view": lambda a: a[1:], "buffer": memoryview, "turned": lambda a: a.T.reshape(-1)}


@pytest.mark.parametrize("hold", HOLDS.values(), ids=HOLDS)
@pytest.mark.parametrize("kind", [np.asarray, tg.tensor])
def test_what_somebody_has_stays(double, hold, kind):
    held = [hold(np.asarray(double(kind(number * X))[0])) for number in range(6)]
    double(kind(X))
    for number, own in enumerate(held):
        np.testing.assert_array_equal(np.asarray(own), hold(2.0 * number * X))


def test_tensors_stay(double):
    held = [double(tg.tensor(number * X))[0] for number in range(6)]
    views = [double(tg.tensor(number * X))[0][1:] for number in range(6)]
    for number in range(6):
        assert held[number].tolist() == (2 * number * X).tolist()
        assert views[number].tolist() == (2 * number * X)[1:].tolist()


def change_flag(a):
    a.flags.writeable = False


def change_shape(a):
    a.shape = (3, 1)


def change_dtype(a):
    a.dtype = np.int64


def change_size(a):
    a.resize(2, refcheck=False)


@pytest.mark.filterwarnings("ignore:Setting the :DeprecationWarning")  # of a dtype, from NumPy 2.5 on
@pytest.mark.parametrize("change", [change_flag, change_shape, change_dtype, change_size])
@pytest.mark.skipif(INTERPRETS, reason="the interpreter holds arrays")
def test_what_somebody_has_changed_is_not_given_out(double, change):
    for _ in range(4):
        change(double(X)[0])
        result = double(X)[0]
        assert (result.shape, result.dtype, result.flags.writeable) == ((3,), np.float64, True)
        assert result.tolist() == [0.0, 2.0, 4.0]


def test_what_somebody_watches_is_not_given_out(double):
    for _ in range(4):
        watched = weakref.ref(double(X)[0])
        result = double(X)[0]
        assert watched() is not result


def test_versions_of_tensors_are_their_own(double):
    """A write to a result that died is none to a result in the same memory, which an entry has saved."""
    t = tg.tensor(X, requires_grad=True)
    for _ in range(5):
        result = double(X)[0]
        own = tg.from_numpy(result)
        loss = (t * own).sum()
        loss.backward()
        own += 1.0
        del result, own, loss
    assert t.grad.tolist() == [0.0, 10.0, 20.0]


def test_large_results_are_not_kept():
    function = tg.compile(lambda x: 2 * x)
    x = np.ones(KEPT // 8 + 1)
    held = [function(x) for _ in range(5)]
    assert len({address(own) for own in held}) == 5


def test_threads_have_their_own(double):
    wrong = []

    def use(number):
        for _ in range(3000):
            results = [double(number * X)[0] for _ in range(3)]
            if any(own.tolist() != (2 * number * X).tolist() for own in results):
                wrong.append(number)

    in_threads(4, use)
    assert not wrong
