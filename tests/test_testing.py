"""`tapegrad.testing`: right functions pass, wrong ones are noticed, the report says where; as PyTorch."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad import autograd
from tapegrad.ops.table.composites import composites
from tapegrad.ops.table.elementwise import unary
from tapegrad.ops.table.op import op_table, xp
from tapegrad.testing import GradcheckError, gradcheck, gradgradcheck, jvpcheck, samples, tensors

X = np.array([[0.5, 2.0], [1.0, -1.5]])
Z = np.array([1.0 + 2.0j, 0.5 - 1.0j])


def real(array: Any = X) -> tg.Tensor:
    return tg.tensor(array, dtype=tg.float64, requires_grad=True)


def complex_(array: Any = Z) -> tg.Tensor:
    return tg.tensor(array, dtype=tg.complex128, requires_grad=True)


# The same functions on both libraries: the function, its inputs as arrays.
RIGHT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "one": (lambda x: x.sin() * x, (X,)),
    "0-d": (lambda x: x.exp(), (0.7,)),
    "empty": (lambda x: x.sin(), (np.zeros((0, 2)),)),
    "identity": (lambda x: x, (X,)),
    "several": (lambda x, y: (x.sin() @ y, x.sum(), y.argmax()), (X, X.T)),
    "complex": (lambda z: z * z.exp() + z.conj(), (Z,)),
    "complex to real": (lambda z: (z.abs(), z.real * z.imag), (Z,)),
    "real to complex": (lambda x, z: x[0] * z, (X, Z)),
    "constant among outputs": (lambda x: (x.detach(), x**3), (X,)),
    "linear": (lambda x: 2 * x, (X,)),
    "integers": (lambda x: x.argmax(), (X,)),
}
WRONG: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "detached factor": (lambda x: x.sin() * x.detach(), (X,)),
    "detached": (lambda x: x.detach() * 2, (X,)),
    "detached second": (lambda x, y: (x * y, x.detach() * y), (X, X)),
    "detached 0-d": (lambda x: x * x.detach(), (0.7,)),
    "detached complex": (lambda z: z * z.detach(), (Z,)),
    "kink": (lambda x: (x - 0.5).relu(), (X,)),
    "complex abs": (lambda z: z.detach().abs() * z.abs(), (Z,)),
}


def on_torch(arrays: tuple[Any, ...]) -> list[Any]:
    torch = pytest.importorskip("torch")
    return [
        torch.tensor(array, requires_grad=True, dtype=getattr(torch, np.asarray(array).dtype.name)) for array in arrays
    ]


def on_tapegrad(arrays: tuple[Any, ...]) -> list[tg.Tensor]:
    return [tg.tensor(array, requires_grad=True) for array in map(np.asarray, arrays)]


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck, jvpcheck])
@pytest.mark.parametrize("name", RIGHT)
def test_right_functions_pass(name: str, check: Any) -> None:
    function, arrays = RIGHT[name]
    assert check(function, on_tapegrad(arrays)) is True


@pytest.mark.parametrize("name", [name for name in RIGHT if name != "empty"])
def test_right_functions_pass_on_torch(name: str) -> None:
    function, arrays = RIGHT[name]
    inputs = on_torch(arrays)
    assert pytest.importorskip("torch").autograd.gradcheck(function, inputs)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_functions_fail_as_on_torch(name: str) -> None:
    function, arrays = WRONG[name]
    with pytest.raises(GradcheckError) as ours:
        gradcheck(function, on_tapegrad(arrays))
    assert gradcheck(function, on_tapegrad(arrays), raise_exception=False) is False
    inputs = on_torch(arrays)
    with pytest.raises(RuntimeError) as theirs:
        pytest.importorskip("torch").autograd.gradcheck(function, inputs)
    assert type(theirs.value).__name__ == type(ours.value).__name__
    beginning = str(theirs.value).split("\n")[0]
    assert str(ours.value).startswith(beginning)


@pytest.mark.parametrize("arguments", [(X,), (1,)])
def test_errors_of_arguments_as_on_torch(arguments: Any) -> None:
    torch = pytest.importorskip("torch")
    messages = []
    for library in (tg, torch):
        inputs = [library.tensor(own) for own in arguments]
        with pytest.raises(ValueError, match="expects at least one") as error:
            library.autograd.gradcheck(lambda x: x * 2, inputs)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_low_precision_warns_as_on_torch() -> None:
    torch = pytest.importorskip("torch")
    messages = []
    for library in (tg, torch):
        x = library.tensor([1.0], dtype=library.float32, requires_grad=True)
        with pytest.warns(UserWarning, match="not a double precision") as warned:
            assert library.autograd.gradcheck(lambda x: x * 2, x, eps=1e-2, atol=1e-2)
        assert warned[0].filename == __file__ or library is torch
        messages.append(str(warned[0].message))
    assert messages[0].split(" is ")[0] == "Input #0 requires gradient and"
    assert messages[0] == messages[1]


def test_the_report_says_where_and_by_how_much() -> None:
    x, y = real(), real([3.0])

    def function(x: tg.Tensor, y: tg.Tensor) -> tuple[tg.Tensor, ...]:
        return x.sum(), tg.stack([x[0, 0] * y, x[1, 0] * y.detach()])

    with pytest.raises(GradcheckError) as error:
        gradcheck(function, (x, y))
    place = "element [1, 0] of output 1, differentiated by element [0] of input 1"
    assert re.sub(r"2\.00000\d+|1\.0000000\d*|0\.99999\d+", "1", str(error.value)).splitlines()[-3:] == [
        f"1 of 2 numbers differ, the largest difference is that of {place}:",
        "finite differences give 1, backward gives 0 (ratio 0.0);",
        "they differ by 1, 0.00101 is allowed.",
    ]


def test_the_report_of_what_jumps_says_so() -> None:
    with pytest.raises(GradcheckError, match=r"uncertain there, by .*: the function may jump or have a kink near"):
        gradcheck(lambda x: x * (x > 0), real([3e-7]))


def test_a_tensor_that_is_several_inputs() -> None:
    x = real()
    assert gradcheck(lambda x, y: x * y.sin(), (x, x))


def test_inputs_that_are_results_and_arguments_that_are_no_tensors() -> None:
    x = real()
    assert gradcheck(lambda x, power, y: x**power * y, (x * 2.0, 2, tg.ones(2)))
    assert x.grad is None


def test_a_backward_pass_that_varies() -> None:
    def function(x: tg.Tensor) -> tg.Tensor:
        inner = x * 1.0
        inner.register_hook(lambda gradient: gradient + 1e-9 * next(noise))
        return inner.sin()

    noise = iter(range(10**6))
    with pytest.raises(
        GradcheckError, match=r"^Backward is not reentrant, .*nondeterminism was 0.0; .* differ by 1e-09"
    ):
        gradcheck(function, real())
    noise = iter(range(10**6))
    assert gradcheck(function, real(), nondet_tol=1e-8)


def test_numbers_that_are_not_finite_differ() -> None:
    with (
        np.errstate(all="ignore"),
        pytest.raises(GradcheckError, match=r"finite differences give nan, .*\n.*\n.* uncertain there, by nan"),
    ):
        gradcheck(lambda x: x.sqrt(), real([1.0, -1.0]))


def test_functions_that_return_no_tensor() -> None:
    with pytest.raises(TypeError, match=r"gradcheck expects a function that returns .* but output 1 is a float"):
        gradcheck(lambda x: (x, 1.0), real())


# Wrong rules ------------------------------------------------------------------------------------------------------


@pytest.fixture
def sine() -> Iterator[Callable[..., Any]]:
    """Make an op that computes a sine of a rule for its derivative."""

    def make(rule: Callable[..., Any]) -> Any:
        return unary("wrong", np.sin, rule, doc="", names=None)

    yield make
    del op_table["wrong"], xp.wrong


WRONG_RULES: dict[str, tuple[Callable[..., Any], str]] = {
    "sign": (lambda ct, x: -ct * xp.cos(x), r"4 of 16 numbers .*\(ratio -1\.0\)"),
    "factor": (lambda ct, x: ct * xp.cos(x) * 1.01, r"4 of 16 numbers .*\(ratio 1\.01\)"),
    "one element": (lambda ct, x: xp.where(x > 1.5, 0.0, ct * xp.cos(x)), r"1 of 16 .*element \[0, 1\] of output 0"),
    "no cotangent": (lambda ct, x: xp.cos(x) + ct * 0.0, "Jacobian mismatch"),
    "square of the cotangent": (lambda ct, x: ct * ct * xp.cos(x), "backward not multiplied by grad_output"),
}


def test_the_right_rule_passes(sine: Any) -> None:
    function = sine(lambda ct, x: ct * xp.cos(x))
    assert gradcheck(function, real())
    assert gradgradcheck(function, real())


@pytest.mark.parametrize("name", WRONG_RULES)
def test_wrong_rules_are_noticed(sine: Any, name: str) -> None:
    rule, words = WRONG_RULES[name]
    with pytest.raises(GradcheckError, match=f"(?s){words}"):
        gradcheck(sine(rule), real())


def test_a_rule_without_cotangent_is_noticed_at_one_element(sine: Any) -> None:
    with pytest.raises(
        GradcheckError, match=r"^backward not multiplied by grad_output\.\n.*\nthe checked Jacobians give"
    ):
        gradcheck(sine(lambda ct, x: xp.cos(x) + ct * 0.0), real(0.5))


def test_a_missing_conjugate_is_noticed(sine: Any) -> None:
    words = r"^While considering the imaginary part of complex outputs only, Jacobian mismatch for output 0 with"
    with pytest.raises(GradcheckError, match=words):
        gradcheck(sine(lambda ct, x: ct * xp.cos(x)), complex_())
    assert gradcheck(tg.sin, complex_())


def test_wrong_second_derivatives_are_noticed() -> None:
    def function(x: tg.Tensor) -> tg.Tensor:
        inner = x * 1.0
        inner.register_hook(lambda gradient: 0.5 * gradient + 0.5 * gradient.detach())
        return inner**3

    assert gradcheck(function, real())
    with pytest.raises(
        GradcheckError, match=r"of the gradient with respect to input 0, differentiated by .* of input 0"
    ):
        gradgradcheck(function, real())
    assert gradgradcheck(function, real(), raise_exception=False) is False


# gradgradcheck ----------------------------------------------------------------------------------------------------


def test_given_cotangents() -> None:
    assert gradgradcheck(lambda x: x**3, real(), real())
    assert gradgradcheck(lambda x: (x**3, x.sum()), real(), (tg.ones(2, 2).double(), tg.tensor(2.0).double()))
    with pytest.raises(ValueError, match="2 grad_outputs for 1 outputs"):
        gradgradcheck(lambda x: x**3, real(), (real(), real()))


def test_second_derivatives_of_torch() -> None:
    torch = pytest.importorskip("torch")

    def function(x: Any) -> Any:
        return x**2 * x.detach()

    messages = []
    for library, inputs in ((tg, on_tapegrad((X,))), (torch, on_torch((X,)))):
        with pytest.raises(RuntimeError) as error:
            library.autograd.gradgradcheck(function, inputs)
        messages.append(str(error.value).split("\n")[0])
    assert messages[0] == messages[1]


# jvpcheck ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRONG)
def test_wrong_tangents_fail_as_on_torch(name: str) -> None:
    function, arrays = WRONG[name]
    with pytest.raises(GradcheckError) as ours:
        jvpcheck(function, on_tapegrad(arrays))
    assert jvpcheck(function, on_tapegrad(arrays), raise_exception=False) is False
    inputs = on_torch(arrays)
    with pytest.raises(RuntimeError) as theirs:
        pytest.importorskip("torch").autograd.gradcheck(
            function, inputs, check_forward_ad=True, check_backward_ad=False
        )
    beginning = str(theirs.value).split("\n")[0].replace("imaginary part", "real part")
    assert str(ours.value).startswith(beginning)


def test_given_tangents() -> None:
    x, z = real(), complex_()
    assert jvpcheck(lambda x, z: (x.sin(), z * z.conj() * x.sum()), (x, z), (tg.ones(2, 2), tg.ones(2)))
    with pytest.raises(
        GradcheckError, match=r"^Tangent mismatch for output 1,\n(?s:.*)2 of 2 .* element \[0\] of output 1:"
    ):
        jvpcheck(lambda x, z: (x.sin(), z * z.detach()), (x, z), (tg.ones(2, 2), tg.ones(2)))
    with pytest.raises(ValueError, match=r"of shapes \[\[2, 2\], \[2\]\], but got \[\[3\], 'int'\]"):
        jvpcheck(lambda x, z: x, (x, z), (tg.ones(3), 1))


def test_detached_functions_with_given_tangents() -> None:
    assert jvpcheck(lambda x: x.argmax(), real(), tg.ones(2, 2))
    with pytest.raises(GradcheckError, match=r"^Numerical gradient for function expected to be zero: .* are up to 2"):
        jvpcheck(lambda x: x.detach() * 2, real(), tg.ones(2, 2))


def test_tangents_of_wrong_rules(sine: Any) -> None:
    with pytest.raises(GradcheckError, match=r"4 of 16 numbers differ"):
        jvpcheck(sine(lambda ct, x: ct * xp.cos(x) * 1.01), real())


# Strategies -------------------------------------------------------------------------------------------------------


@given(tensors(), tensors(shape=(2, 3), dtype=st.sampled_from([np.float32, np.complex64, np.int16, np.bool_])))
def test_drawn_tensors(x: tg.Tensor, y: tg.Tensor) -> None:
    assert (x.dtype, x.requires_grad, x.is_leaf) == (np.float64, True, True)
    assert y.shape == (2, 3)
    assert y.requires_grad == (y.dtype.kind in "fc")
    assert not x.numel() or abs(x.detach().numpy()).max() <= 10


@given(tensors(shape=3, elements=st.just(0.5), requires_grad=False))
def test_drawn_tensors_of_given_elements(x: tg.Tensor) -> None:
    assert x.tolist() == [0.5] * 3
    assert not x.requires_grad


@given(st.data())
def test_samples_of_every_op(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted({*op_table, *composites})))
    sample = data.draw(samples(name))
    with np.errstate(all="ignore"):
        out = sample(*sample.operands)
    assert isinstance(out, tg.Tensor)
    assert name in repr(sample)


@pytest.mark.parametrize(
    "name",
    ["sin", "mul", "logsumexp", "matmul", "getitem", "reshape", "cat", "solve", "expand", "addmm", "pairwise_distance"],
)
@given(data=st.data())
@settings(max_examples=5)
def test_samples_pass_the_checks(name: str, data: st.DataObject) -> None:
    sample = data.draw(samples(name, st.sampled_from([np.float64, np.complex128])))
    for check in (gradcheck, gradgradcheck, jvpcheck):
        assert check(sample, sample.operands)


def test_samples_of_no_op() -> None:
    with pytest.raises(ValueError, match=r"samples\(\) got 'sine', which is no op of the op table"):
        samples("sine")


def test_without_hypothesis() -> None:
    program = """
import sys
sys.modules["hypothesis"] = None
from tapegrad.testing import gradcheck, jvpcheck
try:
    from tapegrad.testing import tensors
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "need hypothesis: pip install tapegrad[test]" in done.stdout


# The package ------------------------------------------------------------------------------------------------------


def test_the_functions_of_autograd_are_these() -> None:
    assert autograd.gradcheck is gradcheck
    assert autograd.gradgradcheck is gradgradcheck
    with pytest.raises(AttributeError, match=r"module 'tapegrad.autograd' has no attribute 'gradchek'"):
        autograd.gradchek  # type: ignore[attr-defined]  # noqa: B018


def test_import_tapegrad_does_not_load_it() -> None:
    program = "import sys, tapegrad; print([name for name in sys.modules if 'testing' in name and 'tapegrad' in name])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_fast_mode_compares_one_combination() -> None:
    """It needs few calls, and notices a wrong element; of complex numbers too."""
    calls = []

    def right(x: tg.Tensor) -> tg.Tensor:
        calls.append(1)
        return x.sin() * x

    def wrong(x: tg.Tensor) -> tg.Tensor:
        return x[:9].sum() + x[9].detach() ** 2

    x = tg.tensor(np.linspace(0.5, 2.0, 10), requires_grad=True)
    assert gradcheck(right, x, fast_mode=True)
    assert len(calls) < 12
    assert gradgradcheck(right, x, fast_mode=True)
    with pytest.raises(
        GradcheckError, match=r"(?s)Jacobian mismatch for output 0 .*fast_mode=False names the elements"
    ):
        gradcheck(wrong, x, fast_mode=True)
    z = tg.tensor([1 + 2j, 0.5 - 1j], requires_grad=True)
    assert gradcheck(lambda z: (z * z.conj(), z**2), z, fast_mode=True, check_forward_ad=True)
    assert not gradcheck(lambda z: z * z.detach().conj(), z, fast_mode=True, raise_exception=False)


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("no")


def test_batched_passes_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tg.tensor([0.5, 2.0], requires_grad=True)
    options = {"check_batched_grad": True, "check_forward_ad": True, "check_batched_forward_grad": True}
    assert gradcheck(lambda x: (x.sin() * x[0], x.sum()), x, **options)
    assert gradgradcheck(lambda x: x.sin() * x[0], x, check_batched_grad=True)
    for wrong, words in ((lambda *_, **__: [tg.ones(2, 2)], "gradient computation .* differs"), (_refuse, "got: no")):
        monkeypatch.setattr("tapegrad.testing.options.grad", wrong)
        with pytest.raises(GradcheckError, match=words):
            gradcheck(tg.sin, x, check_batched_grad=True)
    monkeypatch.setattr("tapegrad.testing.options.vmap", lambda _: lambda *vectors: [tg.ones(2, 2)])
    with pytest.raises(GradcheckError, match=r"batched forward mode: result 0 differs from that of single calls by"):
        gradcheck(tg.sin, x, check_forward_ad=True, check_batched_forward_grad=True)


def test_forward_mode_over_backward_passes() -> None:
    class WrongSecond(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 3 * grad * ctx.saved_tensors[0].detach() ** 2

    x = tg.tensor([0.5, 2.0], requires_grad=True)
    options = {"check_fwd_over_rev": True, "check_rev_over_rev": False}
    assert gradgradcheck(lambda x: x**3, x, **options)
    with pytest.raises(GradcheckError, match="computed with forward mode mismatch"):
        gradgradcheck(WrongSecond.apply, x, **options)


@pytest.mark.parametrize(
    "options",
    [{"check_backward_ad": False}, {"check_batched_forward_grad": True},
     {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True}],
)  # fmt: skip
def test_options_that_do_not_fit(options: dict[str, bool]) -> None:
    torch = pytest.importorskip("torch")
    messages = []
    for library in (tg, torch):
        x = library.tensor([0.5], requires_grad=True, dtype=library.float64)
        with pytest.raises(AssertionError) as error:
            library.autograd.gradcheck(library.sin, x, **options)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_arguments_of_torch() -> None:
    class Wrong(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2 * grad

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return 3 * tangent

    x = tg.tensor([0.5, 2.0], dtype=tg.float64, requires_grad=True)
    assert gradcheck(tg.sin, x, check_forward_ad=True, fast_mode=True, check_undefined_grad=False)
    assert gradgradcheck(tg.sin, x, fast_mode=True, check_batched_grad=True)
    assert gradcheck(Wrong.apply, x)
    with pytest.raises(GradcheckError, match="computed with forward mode mismatch"):
        gradcheck(Wrong.apply, x, check_forward_ad=True)
    assert not gradcheck(Wrong.apply, x, check_forward_ad=True, check_backward_ad=False, raise_exception=False)
