"""Numbers among the arguments of compiled functions: integers become inputs where they change; keys and text."""

import warnings

import numpy as np
import pytest

import tapegrad as tg


def _counted(function):
    """Return the compiled function, and a list that gets an item at each trace."""
    traces = []

    def traced(*args, **kwargs):
        traces.append(args)
        return function(*args, **kwargs)

    return tg.compile(traced), traces


def test_number_of_a_step_is_an_input_when_it_changes():
    def step(p, grad, count):
        return p - 0.1 / (1 + 0.01 * count) * grad / (1 - 0.9**count)

    compiled, traces = _counted(step)
    p, grad = np.array([1.0, 2.0]), np.array([0.1, -0.2])
    for count in range(1, 20):
        np.testing.assert_allclose(compiled(p, grad, count), step(p, grad, count), rtol=1e-14)
    assert len(traces) == 3  # with a constant, with an input, and with a constant to compare with


def test_compiled_code_serves_the_changing_integer():
    compiled, _ = _counted(lambda x, n: x * n)
    x = tg.tensor([1.0, 2.0])
    for n in range(3):
        compiled(x, n)
    compiled._dispatch.fallback = None  # Python does not come to act
    assert compiled(x, 7).tolist() == [7.0, 14.0]


@pytest.mark.parametrize("where", ["positional", "keyword", "list"])
def test_gradients_by_other_arguments(where):
    function = {
        "positional": lambda x, n: (x**n).sum(),
        "keyword": lambda x, *, n: (x**n).sum(),
        "list": lambda x, ns: (x ** ns[0]).sum(),
    }[where]
    compiled, traces = _counted(function)
    for n in (2, 3, 4, 5):
        x = tg.tensor([1.5, 2.5], requires_grad=True)
        out = compiled(x, n) if where == "positional" else compiled(x, n=n) if where == "keyword" else compiled(x, [n])
        out.backward()
        np.testing.assert_allclose(x.grad.numpy(), n * np.array([1.5, 2.5]) ** (n - 1), rtol=1e-14)
    assert len(traces) == 3


def test_branches_by_an_integer_are_programs():
    compiled, traces = _counted(lambda x, n: x * 2 if n % 2 == 0 else x * n)
    assert [float(compiled(3.0, n)) for n in range(8)] == [6.0, 3.0, 6.0, 9.0, 6.0, 15.0, 6.0, 21.0]
    assert len(traces) <= 5


def test_indices_follow_the_integer():
    compiled, traces = _counted(lambda x, n: x[n] * 2)
    x = np.arange(5.0)
    assert [float(compiled(x, n)) for n in (0, 1, 4, -1)] == [0.0, 2.0, 8.0, 8.0]
    assert len(traces) == 3
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        compiled(x, 7)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x, n: sum((tg.sin(x) for _ in range(n)), x), id="range"),
        pytest.param(lambda x, n: x * {0: 1.0, 1: 2.0, 2: 5.0}[n], id="key of a dict"),
        pytest.param(lambda x, n: x.reshape(1, 6)[:, :n].sum(), id="slice"),
        pytest.param(lambda x, n: x.new_zeros(n + 1).sum() + x, id="shape"),
        pytest.param(lambda x, n: x * float(n), id="float"),
        pytest.param(lambda x, n: x * len("a" * n), id="str"),
    ],
)
def test_integers_that_python_looks_at_are_constants(function):
    compiled, _ = _counted(function)
    x = tg.arange(6.0)
    for n in (0, 1, 2, 1, 0, 2):
        np.testing.assert_array_equal(compiled(x, n).numpy(), function(x, n).numpy())


def test_returned_integer_stays_one():
    compiled = tg.compile(lambda x, n: (x * n, n + 1))
    x, n = tg.tensor(2.0), 0
    for _ in range(4):
        out, n = compiled(x, n)
    assert (float(out), n, type(n)) == (6.0, 4, int)


def test_many_values_of_a_constant_warn_once_and_name_the_line():
    compiled = tg.compile(lambda x, n: sum((tg.sin(x) for _ in range(n)), x))  # here
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(20):
            compiled(1.0, n)
    assert len(caught) == 1
    assert "16 values of an integer argument" in str(caught[0].message)
    assert "# here" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_integers_beyond_64_bits_and_bools_are_constants():
    compiled, traces = _counted(lambda x, n: x * n)
    assert [float(compiled(1.0, n)) for n in (2**70, 2**71, 2**72)] == [2.0**70, 2.0**71, 2.0**72]
    assert [float(compiled(1.0, n)) for n in (True, False)] == [1.0, 0.0]
    assert len(traces) == 5


def test_small_dtypes_are_not_widened():
    compiled = tg.compile(lambda x, n: x * n + n)
    for n in (1, 2, 3):
        assert compiled(tg.ones(2, dtype=tg.float32), n).dtype == tg.float32
        assert compiled(tg.ones(2, dtype=tg.int32), n).dtype == tg.int32
        assert type(compiled(np.ones(2), n)) is np.ndarray


def test_a_function_of_integers_alone_returns_tensors():
    compiled = tg.compile(lambda n: tg.ones(3) * n)
    assert [compiled(n).tolist() for n in (1, 2, 3)] == [[1.0] * 3, [2.0] * 3, [3.0] * 3]


def test_a_dict_with_a_default_is_not_asked_by_identity():
    table = {1: 10.0, 2: 20.0}
    compiled = tg.compile(lambda x, n: x * table.get(n, 0.0))
    assert [float(compiled(1.0, n)) for n in (0, 1, 2, 3)] == [0.0, 10.0, 20.0, 0.0]


def test_the_class_of_an_integer_is_asked():
    compiled = tg.compile(lambda x, n: x * n if isinstance(n, int) else x - 100)
    assert [float(compiled(1.0, n)) for n in (1, 2, 3)] == [1.0, 2.0, 3.0]


def test_integers_beyond_64_bits_within_the_function():
    for function in (lambda x, n: x * 2**n, lambda x, n: x * (n * 10**18), lambda x, n: x * (1 << n)):
        compiled = tg.compile(function)
        assert [float(compiled(1.0, n)) for n in (1, 2, 70)] == [float(function(1.0, n)) for n in (1, 2, 70)]


def test_an_integer_shows_its_digits():
    compiled = tg.compile(lambda x, n: (x, f"{n} {n!s} {n!r}"))
    assert [compiled(1.0, n)[1] for n in (1, 2, 3)] == ["1 1 1", "2 2 2", "3 3 3"]


def test_errors_are_those_of_integers():
    compiled = tg.compile(lambda x, n: x * (6 // n))
    assert [float(compiled(1.0, n)) for n in (1, 2, 3)] == [6.0, 3.0, 2.0]
    with pytest.raises(ZeroDivisionError):
        compiled(1.0, 0)
    assert float(compiled(1.0, 6)) == 1.0


def test_slices_are_arguments():
    compiled, traces = _counted(lambda x, part: x[part])
    for part in (slice(0, 2), slice(1, None), slice(0, 2), slice(None, None, 2)):
        np.testing.assert_array_equal(compiled(np.arange(5.0), part), np.arange(5.0)[part])
    assert len(traces) == 3


def test_floats_are_keys_and_text_by_their_value():
    table = {1.0: 10.0, 2.0: 20.0}
    compiled = tg.compile(lambda x, a: (x * table.get(a, 0.0) * (2 if a in {2.0, 3.0} else 1) * round(a), f"{a} {a!s}"))
    for a in (1.0, 2.0, 3.0, 1.0, 2.6):
        value, text = compiled(1.0, a)
        assert float(value) == table.get(a, 0.0) * (2 if a in {2.0, 3.0} else 1) * round(a)
        assert text == f"{a} {a}"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_quotients_by_infinity_and_of_zeros_are_rounded_down(dtype):
    numbers = np.array([-1.0, 1.0, 0.0, -0.0, 0.5, -0.5, 7.0, -7.0, np.inf, -np.inf, np.nan, 3.0], dtype)
    x, y = (own.ravel() for own in np.meshgrid(numbers, numbers))
    for function in (tg.floor_divide, tg.remainder):
        with np.errstate(all="ignore"):
            expected, found = function(tg.tensor(x), tg.tensor(y)).numpy(), tg.compile(function)(x, y)
        np.testing.assert_array_equal(found, expected)
        is_zero = expected == 0
        np.testing.assert_array_equal(np.signbit(found[is_zero]), np.signbit(expected[is_zero]))


def test_what_is_given_up_is_not_tried_again():
    compiled = tg.compile(lambda x: x.sum().item() + 1)
    with pytest.warns(UserWarning, match=r"takes another way in nearly every call.*return loss\.item\(\)"):
        found = [compiled(np.full(2, number)) for number in np.arange(20.0)]
    assert found == [2 * number + 1 for number in range(20)]
    assert compiled._dispatch.variants == ()


def test_functions_are_not_traced_for_ever_for_other_strings():
    compiled, traces = _counted(lambda x, name: x * len(name))
    x = tg.ones(2)
    with pytest.warns(UserWarning, match="traced for 64 values of arguments that are constants"):
        found = [compiled(x, f"epoch {number}").tolist() for number in range(70)]
    assert found == [[6.0 + len(str(number))] * 2 for number in range(70)]
    assert len(compiled.programs) == 64
    assert compiled(tg.ones(3), "other").tolist() == [5.0] * 3  # another kind of call
    assert (len(compiled.programs), len(traces)) == (65, 71)
    assert compiled(x, "epoch 3").tolist() == [7.0] * 2
    assert len(traces) == 71
