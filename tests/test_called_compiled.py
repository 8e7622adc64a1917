"""Compiled functions as Python sees them: partial functions, which CPython calls without a tuple of arguments."""

import copy
import functools
import inspect
import pickle

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn


def scaled(x: np.ndarray, factor: float = 2.0) -> np.ndarray:
    """Return a multiple."""
    return x * factor


@pytest.fixture
def function():
    return tg.compile(scaled)


def test_it_looks_like_its_function(function):
    assert inspect.signature(function) == inspect.signature(scaled)
    assert (function.__name__, function.__doc__, function.__wrapped__) == ("scaled", scaled.__doc__, scaled)
    assert not inspect.iscoroutinefunction(function)
    assert "Compiled" in repr(function)
    assert (function.func, function.args, function.keywords) == (scaled, (), {})


def test_partial_functions_of_it(function):
    thrice = functools.partial(function, factor=3.0)
    assert thrice(np.ones(2)).tolist() == [3.0, 3.0]
    assert function(np.ones(2)).tolist() == [2.0, 2.0]
    assert len(function.programs) == 2


def test_copies_and_pickles_are_compiled_anew(function):
    function(np.ones(2))
    for own in (copy.copy(function), copy.deepcopy(function), pickle.loads(pickle.dumps(function))):
        assert own.function is scaled
        assert not own.programs
        assert own(np.ones(2), factor=4.0).tolist() == [4.0, 4.0]


def test_a_module_keeps_its_names():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.func, self.args, self.keywords = 1, 2, 3
            self.weight = nn.Parameter(tg.ones(2))

        def forward(self, x):
            return x * self.weight * self.args

    module = tg.compile(Named())
    assert module(tg.ones(2)).tolist() == [2.0, 2.0]
    assert (module.func, module.args, module.keywords) == (1, 2, 3)


def test_methods():
    class Model:
        factor = 3.0

        @tg.compile
        def scaled(self, x):
            return x * self.factor

    assert Model().scaled(np.ones(2)).tolist() == [3.0, 3.0]


def test_arguments_by_name_and_too_many(function):
    assert function(x=np.ones(1), factor=np.float64(5)).tolist() == [5.0]
    with pytest.raises(TypeError, match="positional"):
        function(np.ones(1), 1.0, 2.0)
