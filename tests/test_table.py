"""Each op of the op table with each of its samples: forward, kernels, rules, layouts, special values, errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import autograd
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, NotYet, Op, op_table, xp
from tapegrad.ops.table.public import registry
from tests import checks
from tests.cases import Case, cases, grouped, oracle, oracle_of
from tests.torch_programs import WITHOUT_DERIVATIVE, torch

ALL = list(op_table.values())
DIFFERENTIABLE = [op for op in ALL if any(callable(op.rule(number)) for number in range(len(op.operands)))]
ELEMENTWISE = [op for op in DIFFERENTIABLE if op.family in ("unary", "binary", "elementwise")]
CASES, SMOOTH = cases(*ALL), cases(*DIFFERENTIABLE)
# Names, as ops are compared by all of their fields.
OF_ELEMENTS, OF_COMPLEX = {op.name for op in ELEMENTWISE}, {str(case) for case in CASES if case.is_complex()}
BINARY = [op for op in ELEMENTWISE if op.family == "binary" and not any(isinstance(one, NotYet) for one in op.vjp)]
FLOATING = ["float32", "float64", "complex64", "complex128"]
SAMPLES = {"float64": range(99), "float32": (1, 2), "complex128": (1, 2), "complex64": (1,)}
# Not from the samples: every kind of number that a function of real numbers has an opinion about.
EXTREMES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-320, 1e300, -1e300]


def each_case(
    chosen: list[Case], dtypes: Sequence[str] = ("float64",), thin: bool = True, quick: int = 1
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test on cases with dtypes; complex ones where the function takes complex numbers.

    Each pattern of strides in each dtype is a kernel to compile, and float64 has them all; so elementwise rows run in
    other dtypes on fewer samples, if `thin`. See `grouped` for `quick`.
    """
    pairs = (
        (case, dtype)
        for case in chosen
        for dtype in dtypes
        if (np.dtype(dtype).kind != "c" or str(case) in OF_COMPLEX)
        and (not thin or case.op.name not in OF_ELEMENTS or case.number in SAMPLES[dtype])
    )
    return grouped(pairs, quick)


def each_row(found: list[Op]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("op", found, ids=lambda op: op.name)


# The table itself ------------------------------------------------------------------------------------------------


@each_row(ALL)
def test_row_is_tested(op: Op) -> None:
    assert op.samples
    assert callable(getattr(xp, op.name)), "rules and tests find an op's function by its name"
    by_numpy = isinstance(op.forward, np.ufunc) or op.forward.__module__ == "numpy"
    assert by_numpy or oracle_of(op) not in (None, op.forward), "nothing shares no mistake with the forward"
    assert op.errors or op.family in ("unary", "elementwise", "indexing", "movement", "cast")


@each_row([op for op in ALL if op.bilinear])
def test_bilinear(op: Op) -> None:
    for case in cases(op):
        operands = case.operands(np.float64)
        for number, array in enumerate(operands):
            other = checks.random_like(array)
            values = []
            for own in (array, other, 2 * array - 3 * other):
                changed = (*operands[:number], own, *operands[number + 1 :])
                values.append(case.problem(np.float64, changed).value())
            checks.assert_close([values[2]], [2 * values[0] - 3 * values[1]])


# Forward ---------------------------------------------------------------------------------------------------------


@each_case(CASES, FLOATING, thin=False)
def test_forward(case: Case, dtype: str) -> None:
    operands = case.operands(dtype)
    expected = np.asarray(oracle(case.op, operands, case.attrs()))
    problem = case.problem(dtype)
    with tg.no_grad():
        found = [case.op.called(operands, case.attrs())]
    found += [problem(problem.tensors()) for _ in range(2)]  # a new plan, and a known one
    for out in found:
        checks.check_layout(out)
        assert out.dtype == expected.dtype
        checks.assert_close([out.detach().numpy()], [expected], dtype=dtype)
    assert not found[0].requires_grad
    assert found[1].requires_grad == (bool(problem.wanted) and expected.dtype.kind in "fc")


@each_case(CASES, ["int64", "bool"], thin=False)
def test_integers(case: Case, dtype: str) -> None:
    operands = [
        own.astype(dtype) if isinstance(own, np.ndarray) and own.dtype.kind == "f" else own
        for own in case.operands(np.float64)
    ]
    with np.errstate(all="ignore"):
        try:
            out = case.op.called(operands, case.attrs())
        except (TypeError, RuntimeError) as error:
            if re.search(r"dtype|integer|bool", str(error), re.IGNORECASE):
                return  # refused, and the error names the cause
            raise
        # Of the smallest integers NumPy makes float16.
        wide = float if out.is_floating_point() else dtype
        operands = [own.astype(wide) if isinstance(own, np.ndarray) and own.dtype == dtype else own for own in operands]
        expected = np.asarray(oracle(case.op, operands, case.attrs()))
    checks.check_layout(out)
    assert not out.requires_grad
    checks.assert_close([out.numpy().astype(complex)], [expected.astype(complex)])


# Gradients -------------------------------------------------------------------------------------------------------


@each_case(SMOOTH, ["float64", "complex128"], quick=3)
def test_gradient(case: Case, dtype: str) -> None:
    checks.check_gradient(case.problem(dtype))


@each_case(SMOOTH, FLOATING, quick=3)
def test_rule(case: Case, dtype: str) -> None:
    checks.check_rule(case.problem(dtype))


@each_case(SMOOTH, ["float64", "complex128"], quick=3)
def test_second_order(case: Case, dtype: str) -> None:
    checks.check_second(case.problem(dtype))


@pytest.mark.full
@each_case(SMOOTH, ["float64", "complex128"])
def test_third_order(case: Case, dtype: str) -> None:
    if str(case) in checks.WITHOUT_THIRD:
        pytest.skip(checks.WITHOUT_THIRD[str(case)])
    checks.check_third(case.problem(dtype))


@each_case(SMOOTH, ["float32", "complex64"])
def test_precision(case: Case, dtype: str) -> None:
    wide = {"float32": np.float64, "complex64": np.complex128}[dtype]
    problem = case.problem(dtype)
    precise = tuple(
        own.astype(wide) if number in problem.wanted else own for number, own in enumerate(problem.operands)
    )
    checks.check_precision(problem, case.problem(wide, precise))


@each_case(SMOOTH, quick=3)
def test_accumulation(case: Case, dtype: str) -> None:
    checks.check_accumulation(case.problem(dtype))


@each_case(SMOOTH, quick=3)
def test_layouts(case: Case, dtype: str) -> None:
    checks.check_layouts(case.problem(dtype))


@each_case([case for case in SMOOTH if not case.constrained])
def test_stretched(case: Case, dtype: str) -> None:
    checks.check_stretched(case.problem(dtype))


TWICE = [case for case in SMOOTH if len(case.sample.shapes) > 1 and len(set(case.sample.shapes)) == 1]


@each_case([case for case in TWICE if case.op.name != "nextafter"])  # which has a kink there
def test_same_operand_twice(case: Case, dtype: str) -> None:
    problem = case.problem(dtype)
    twice = checks.Problem(lambda x: problem([x] * len(problem.wanted)), (problem.point[0],), (0,))
    checks.check_gradient(twice)
    checks.check_rule(twice)
    checks.check_second(twice)


@each_case(SMOOTH)
def test_some_operands(case: Case, dtype: str) -> None:
    """A gradient does not depend on which other operands want one."""
    problem = case.problem(dtype)
    ct = problem.cotangent()
    expected = checks.by_kernel(problem, ct)
    for number, own in zip(problem.wanted, expected, strict=True):
        alone = checks.Problem(problem.function, problem.operands, (number,))
        checks.assert_close(checks.by_kernel(alone, ct), [own], what=f"gradient of operand {number} alone,")


@each_row(BINARY)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_python_number(op: Op, dtype: str) -> None:
    case = Case(op, 1)
    for number in range(2):
        arrays = case.operands(dtype)
        for value in (2, 2.0, True, np.float64(2.0), np.array(2.0)):
            operands = list(arrays)
            operands[number] = value
            if getattr(op.check_dtypes, "refuses_numbers", False) and type(value) in (int, float, bool):
                with pytest.raises(TypeError, match="must be Tensor, not"):
                    op.called(operands, {})
                continue
            problem = case.problem(dtype, operands)
            problem = checks.Problem(problem.function, problem.operands, (1 - number,))
            operands[number] = np.full(arrays[0].shape, value, dtype)
            full = checks.Problem(problem.function, tuple(operands), (1 - number,))
            assert problem.value().dtype == dtype
            checks.check_rule(problem)
            checks.assert_close([problem.value()], [full.value()])
            ct = problem.cotangent()
            checks.assert_close(checks.by_kernel(problem, ct), checks.by_kernel(full, ct))


@each_row(BINARY)
@pytest.mark.parametrize("dtypes", [("float32", "float64"), ("float64", "float32"), ("float64", "complex64"),
                                    ("int64", "float32"), ("float32", "bool")], ids="-".join)  # fmt: skip
def test_mixed_dtypes(op: Op, dtypes: tuple[str, str]) -> None:
    case = Case(op, 2)
    if "complex64" in dtypes and not case.is_complex():
        pytest.skip("a function of real numbers")
    arrays = case.operands(np.float64)
    operands = [own.astype(dtype) for own, dtype in zip(arrays, dtypes, strict=True)]
    if op.name == "sub" and "bool" in dtypes:
        with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
            op.called(operands, {})
        return
    problem = case.problem(None, operands)
    common = np.result_type(*(dtype for dtype in dtypes if np.dtype(dtype).kind in "fc"))
    common = np.dtype(common if "complex64" not in dtypes else "complex128")
    assert problem.value().dtype == common
    same = case.problem(None, [own.astype(common) for own in operands])
    same = checks.Problem(same.function, same.operands, problem.wanted)
    checks.assert_close([problem.value()], [same.value()])
    checks.check_rule(problem)
    ct = problem.cotangent()
    expected = checks.by_kernel(same, ct)
    expected = [own if like.dtype.kind == "c" else own.real for own, like in zip(expected, problem.point, strict=True)]
    checks.assert_close(checks.by_kernel(problem, ct), expected, dtype=np.float32)


# Points that are special -----------------------------------------------------------------------------------------


SPECIAL = [(op, value) for op in ALL for value in op.special]


@pytest.mark.parametrize(("op", "value"), SPECIAL, ids=[f"{op.name}-{value}" for op, value in SPECIAL])
@pytest.mark.parametrize("shape", [(), (5,)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special(op: Op, value: Any, shape: tuple[int, ...], dtype: str) -> None:
    values = value if isinstance(value, tuple) else (value,)
    expected = op.special[value] if isinstance(value, tuple) else (op.special[value],)
    operands = [np.full(shape, own, dtype) for own in values]
    problem = Case(op, 0).problem(dtype, operands)
    ct = np.ones(shape, dtype)
    with np.errstate(all="ignore"):
        for way in (checks.by_kernel, checks.by_rule):
            checks.assert_close(way(problem, ct), [np.full(shape, own, dtype) for own in expected], what=way.__name__)


def extremes(op: Op, dtype: str) -> tuple[list[np.ndarray], np.ndarray]:
    """Return operands and cotangents: all combinations of all kinds of numbers."""
    with np.errstate(all="ignore"):
        values = np.array(EXTREMES, dtype)
    *operands, ct = (own.ravel() for own in np.meshgrid(*[values] * (len(op.operands) + 1), indexing="ij"))
    like = op.samples[0].values or operands
    masks = [isinstance(own, np.ndarray) and own.dtype == bool for own in like]
    return [own > 0 if mask else own for own, mask in zip(operands, masks, strict=True)], ct


# Where a product overflows, their difference is nan, or, computed by one instruction, infinite.
# The oracle of a density has no digits where its exponent is a difference of such products.
DIFFERENCES_OF_PRODUCTS = (
    "added_multiple", "added_product", "affine", "bce_with_logits", "gamma_density", "hinge", "less_multiple",
    "poisson_nll",
)  # fmt: skip


@each_row(ELEMENTWISE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes(op: Op, dtype: str) -> None:
    """Kernels and rules agree on nan, infinities and zeros, in operands and in cotangents."""
    operands, ct = extremes(op, dtype)
    if op.name in DIFFERENCES_OF_PRODUCTS:
        keep = np.all([~np.isfinite(own) | (abs(own) < 1e30) for own in operands], axis=0)
        operands, ct = [own[keep] for own in operands], ct[keep]
    problem = Case(op, 0).problem(dtype, operands)
    with np.errstate(all="ignore"):
        found = problem.value()
        checks.assert_close([found], [oracle(op, operands, {}).astype(found.dtype)], what="forward")
        checks.check_rule(problem, ct.astype(found.dtype))


# Where a gradient is another one than PyTorch's on purpose, mostly a better one, or a value.
BETTER: dict[str, Callable[..., Any]] = {
    "i0": lambda x: np.isinf(x) | (x < -1e30),  # PyTorch: nan at infinity, and of the derivative where it overflows
    "lgamma": lambda x: x < 0,  # no slope at negative integers, and at -inf
    "digamma": lambda x: x <= 0,  # PyTorch: a number at negative integers
    "abs": lambda x: np.isnan(x),  # PyTorch: slope 0 at nan
    "remainder": lambda x, y: (abs(y) < 1e-300) & (y != 0),  # PyTorch: nan where x / y overflows
    "fmod": lambda x, y: (abs(y) < 1e-300) & (y != 0),  # the same
    "sign": lambda x: np.isnan(x),  # PyTorch: 0
    "clamp": lambda x, low, high: low == high,  # PyTorch: slope 0 in either bound
    "acosh": lambda x: x <= -1,  # PyTorch: a number, though the function is nan
    "logit": lambda x: (x == 0) & np.signbit(x),  # PyTorch: -inf in double precision, inf in single
    "pow": lambda x, y: (x == 0) & np.isnan(y),  # PyTorch: nan, though 0 for all other exponents
    "div": lambda x, y: (x == 0) & (abs(y) < 1e-300),  # ours: nan; see semantics.md
    "copysign": lambda x, y: np.isinf(x),  # PyTorch: nan
    "atan2": lambda x, y: abs(x) + abs(y) < 1e-150,  # PyTorch: 0 where squares underflow
    "selu": np.isnan,  # PyTorch: nan in vectors, a slope in their remainders
}
TAKES_NUMBERS = ("hardshrink", "threshold")  # PyTorch's function: no tensors


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
@each_row(
    [
        op
        for op in ELEMENTWISE
        if op.name not in ("imag", *WITHOUT_DERIVATIVE, *TAKES_NUMBERS) and (not torch or hasattr(torch, op.name))
    ]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes_on_torch(op: Op, dtype: str) -> None:
    """Gradients at kinks and edges are PyTorch's."""
    operands, ct = extremes(op, dtype)
    with np.errstate(all="ignore"):
        keep = ct == 1
        if op.name in BETTER:
            keep &= ~BETTER[op.name](*operands)
        operands, ct = [own[keep] for own in operands], ct[keep]
        problem = Case(op, 0).problem(dtype, operands)
        tensors = [torch.tensor(own, requires_grad=own.dtype.kind == "f") for own in operands]
        out = getattr(torch, op.name)(*tensors)
        checks.assert_close([problem.value()], [out.detach().numpy()], dtype=np.float32)
        expected = torch.autograd.grad(out, [own for own in tensors if own.requires_grad], torch.tensor(ct))
        checks.assert_close(checks.by_kernel(problem, ct), [own.numpy() for own in expected], dtype=np.float32)


@each_case(
    [case for case in SMOOTH if case.op.name not in OF_ELEMENTS and not case.constrained], ["float32", "float64"],
    quick=3,
)  # fmt: skip
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_element_not_finite(case: Case, dtype: str, value: float) -> None:
    """One nan or infinity goes the same way through kernel and rule, and through forward and oracle."""
    operands = list(case.operands(dtype))
    for number, array in enumerate(operands):
        if isinstance(array, np.ndarray) and array.size and array.dtype.kind == "f":
            operands[number] = array.copy("K")
            operands[number][(-1,) * array.ndim] = value
    problem = case.problem(dtype, operands)
    with np.errstate(all="ignore"):
        expected = np.asarray(oracle(case.op, operands, case.attrs()))
        checks.assert_close([problem.value()], [expected], dtype=dtype)
        checks.check_rule(problem)


# What raises -----------------------------------------------------------------------------------------------------


@each_row([op for op in ALL if op.real_only])
def test_complex_is_refused(op: Op) -> None:
    case = Case(op, 0)
    with pytest.raises((TypeError, RuntimeError), match="complex"):
        op.called(case.operands(np.complex128), case.attrs())


ERRORS = [(op, number) for op in ALL for number in range(len(op.errors))]


@pytest.mark.parametrize(("op", "number"), ERRORS, ids=[f"{op.name}-{number}" for op, number in ERRORS])
def test_error(op: Op, number: int) -> None:
    sample = op.errors[number]
    with pytest.raises(sample.error, match=re.escape(sample.words)):
        sample.call()


@each_row([op for op in ALL if any(not callable(op.rule(number)) for number in range(len(op.operands)))])
def test_no_rule(op: Op) -> None:
    case = Case(op, 0)
    for number, rule in enumerate(op.vjp):
        operands = list(case.operands(np.float64))
        if isinstance(operands[number], np.ndarray) and operands[number].dtype.kind == "f":
            operands[number] = checks.leaf(operands[number])
        if isinstance(rule, NotYet):
            with pytest.raises(NotImplementedError, match=f"the derivative for '{op.name}' is not implemented"):
                op.called(operands, case.attrs())
        elif rule is NOT_DIFFERENTIABLE:
            out = op.called(operands, case.attrs())
            assert not out.requires_grad
            with pytest.raises(RuntimeError, match="does not require grad"):
                autograd.backward(out)


def test_errors_name_the_operand_and_its_position() -> None:
    for case in [Case(op, 0) for op in ALL if op.samples and not op.variadic]:
        data = case.operands("float64")
        for number in range(case.op.name == "where", len(data)):  # a condition may be anything true or false
            given: list[Any] = [tg.tensor(value) if isinstance(value, np.ndarray) else value for value in data]
            given[number] = object()
            with pytest.raises(TypeError, match=r"\(position \d+\) must be Tensor, not object") as caught:
                case.op.called(given, case.attrs())
            words = re.match(r"(?:\w+\.)*(\w+)\(\): argument '(\w+)' \(position (\d+)\)", str(caught.value))
            assert words, caught.value
            call, name, position = words.groups()
            public = getattr(tg, call, None) or getattr(xp, call, None)
            names = list(inspect.signature(public).parameters) if callable(public) else []
            # A name that the public function does not have is that of the op that it calls.
            assert int(position) == (names.index(name) if name in names else number) + 1, caught.value


def test_ops_are_described_and_do_not_change() -> None:
    described = {one.function.op.name for one in registry if hasattr(one.function, "op") and one.function.__doc__}
    for op in ALL:
        assert getattr(xp, op.name).__doc__ or op.name in described or getattr(tg, op.name).__doc__, op.name
        for own, field in (
            (op, "name"),
            *[(own, "attrs") for own in op.samples],
            *[(own, "words") for own in op.errors],
        ):
            with pytest.raises(AttributeError):
                setattr(own, field, None)
