"""Anomaly mode: each test with the fixture T runs on PyTorch too."""

import re
import warnings

import pytest

import tapegrad as tg

pytestmark = pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:invalid value encountered")


def leaf(T, *values):
    return T.tensor(list(values), requires_grad=True)


def told_of(name):
    return pytest.warns(UserWarning, match=f"^Error detected in {name}\\. ")


def raises(words):
    return pytest.raises(RuntimeError, match=words)


def failing(T, forward_inside, how):
    """Return the message of a backward pass that makes a nan, and its warning."""
    x = leaf(T, -1.0, 2.0)
    if not forward_inside:
        y = x.sqrt().sum()
    with how():
        if forward_inside:
            y = x.sqrt().sum()  # the line
        with (
            told_of("SqrtBackward0") as told,
            raises(r"^Function 'SqrtBackward0' returned nan values in its 0th output\.$"),
        ):
            y.backward()
    assert x.grad is None
    return str(told[0].message)


HOW = {
    "detect": lambda T: lambda: T.autograd.detect_anomaly(),
    "set": lambda T: lambda: T.autograd.set_detect_anomaly(True),
}


@pytest.mark.parametrize("how", HOW)
def test_a_nan_is_found_with_its_line(T, how):
    text = failing(T, True, HOW[how](T))
    assert "Traceback of forward call that caused the error:" in text
    assert re.search(r'test_anomaly\.py", line \d+, in failing\n', text)
    text = failing(T, False, HOW[how](T))
    assert "No forward pass information available." in text


def test_the_line_itself_is_shown():
    text = failing(tg, True, HOW["detect"](tg))
    assert "y = x.sqrt().sum()  # the line" in text
    assert text.rstrip().endswith("# the line")  # no line of the library


def test_it_warns_that_it_is_slow(T):
    with pytest.warns(UserWarning, match="^Anomaly Detection has been enabled"):
        T.autograd.detect_anomaly()


def test_modes_end_with_their_blocks(T):
    x = leaf(T, -1.0)
    with T.autograd.detect_anomaly():
        assert T.is_anomaly_enabled()
        with T.autograd.set_detect_anomaly(True, check_nan=False):
            assert not T.is_anomaly_check_nan_enabled()
            x.sqrt().sum().backward()
        assert T.is_anomaly_check_nan_enabled()
        with T.autograd.set_detect_anomaly(False):
            assert not T.is_anomaly_enabled()
            x.sqrt().sum().backward()
        assert T.is_anomaly_enabled()
    assert not T.is_anomaly_enabled()
    x.sqrt().sum().backward()
    T.autograd.set_detect_anomaly(True)
    assert T.is_anomaly_enabled()
    T.autograd.set_detect_anomaly(False)
    assert not T.is_anomaly_enabled()


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_are_those_without(T, create_graph):
    x = T.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)

    def loss():
        values, vectors = T.linalg.eigh(x)
        h = x.exp()
        h.register_hook(lambda g: g * 2)
        return (values * values).sum() + (vectors**4).sum() + (h @ x).cumsum(0).sum()

    (plain,) = T.autograd.grad(loss(), x)
    with T.autograd.set_detect_anomaly(True):
        (checked,) = T.autograd.grad(loss(), x, create_graph=create_graph)
    assert T.allclose(plain, checked)
    assert checked.requires_grad == create_graph
    with T.autograd.set_detect_anomaly(True):
        loss().backward()
    assert T.allclose(x.grad, plain)


def test_errors_of_functions_and_hooks(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * float("nan") if g.tolist()[0] > 0 else 1 / 0

    x = leaf(T, 1.0, 2.0)
    with T.autograd.set_detect_anomaly(True):
        for factor, error in ((1, RuntimeError), (-1, ZeroDivisionError)):
            with (
                pytest.warns(UserWarning, match="^Error detected in FBackward. Traceback") as told,
                pytest.raises(error),
            ):
                (F.apply(x) * factor).sum().backward()
            assert "test_errors_of_functions_and_hooks" in str(told[0].message)


def test_a_write_is_told_with_the_line_that_saved(T):
    x = leaf(T, 1.0, 2.0)
    with T.autograd.set_detect_anomaly(True):
        y = x.exp()
        z = y.sin().sum()
        y.add_(1)
        with told_of("SinBackward0") as told, raises("modified by an inplace operation") as caught:
            z.backward()
    assert "z = y.sin().sum()" in str(told[0].message)
    assert x.grad is None
    if T is tg:
        assert re.search(r"was called here:\n(.*\n)*.*z = y.sin\(\)\.sum\(\)\n", str(caught.value))
        assert re.search(r"last written to here:\n(.*\n)*.*y\.add_\(1\)\n", str(caught.value))


def test_without_it_a_message_tells_of_it():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(
        RuntimeError, match=r"Hint: enable anomaly detection to find the operation .*set_detect_anomaly\(True"
    ):
        y.sum().backward()


def test_it_costs_nothing_when_it_is_off():
    from tapegrad import modes
    from tapegrad.tape import versions

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with tg.autograd.detect_anomaly():
            pass
    assert not modes.mode.value & modes.INTERCEPTORS
    assert versions.on_write is None


def test_set_anomaly_enabled(T):
    T.set_anomaly_enabled(True)
    try:
        assert T.is_anomaly_enabled()
        assert T.is_anomaly_check_nan_enabled()
        with told_of("SqrtBackward0"), raises("^Function 'SqrtBackward0' returned nan values in its 0th output"):
            leaf(T, -1.0).sqrt().sum().backward()
        T.set_anomaly_enabled(True, False)
        assert not T.is_anomaly_check_nan_enabled()
        leaf(T, -1.0).sqrt().sum().backward()
    finally:
        T.set_anomaly_enabled(False)
    assert not T.is_anomaly_enabled()
