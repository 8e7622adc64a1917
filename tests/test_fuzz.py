"""Random programs over everything public, here and on PyTorch; `python -m tests.fuzz` runs for longer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tests.fuzz.found import EXPLAINED, FOUND
from tests.tiers import mostly_full
from tests.torch_programs import torch

pytestmark = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
PROGRAMS = 80  # of each part: the same ones on any machine


@pytest.fixture(autouse=True)
def _as_torch() -> Iterator[None]:
    tg.set_default_dtype("float32")
    yield
    tg.set_default_dtype("float64")


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.full) for part in (1, 2, 3))])
def test_programs(part: int) -> None:
    from tests.fuzz.programs import draw, minimised

    counts: Counter[str] = Counter()
    first = 1_000_000 * (part + 1)
    for seed in range(first, first + PROGRAMS):
        program, mismatch = draw(torch, seed, counts)
        if mismatch is not None:
            program, mismatch = minimised(torch, program, mismatch)
            pytest.fail(f"seed {seed}: {mismatch.text}\n\n{program.text()}")
    assert counts


@pytest.mark.parametrize(
    "lines", mostly_full([pytest.param(lines, id=name) for name, lines in (FOUND | EXPLAINED).items()], 3)
)
def test_found(lines: list[str]) -> None:
    from tests.fuzz.programs import Program, check

    mismatch = check(torch, lines)
    if mismatch is not None:
        pytest.fail(f"{mismatch.text}\n\n{Program(lines).text()}")


def test_a_wrong_gradient_that_pytorch_refuses_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.fuzz.programs import check

    softplus = tg.nn.functional.softplus
    monkeypatch.setattr(tg.nn.functional, "softplus", lambda x, beta: softplus(x, beta=beta) + 0.1 * (x - x.detach()))
    mismatch = check(torch, EXPLAINED["PyTorch saved what is written to"])
    assert mismatch is not None
    assert mismatch.kind == "gradient"


def test_a_wrong_gradient_whose_derivative_pytorch_lacks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.fuzz.programs import check

    cdist = tg.cdist
    lines = [
        "v0 = m.tensor(data(1, (2, 3), 'float64', 'normal'), requires_grad=True)",
        "v1 = m.cdist(v0, v0 * 0.5 + 1)",
    ]
    assert check(torch, lines) is None
    monkeypatch.setattr(tg, "cdist", lambda x, y: cdist(x, y) + 0.1 * (x - x.detach()).sum())
    mismatch = check(torch, lines)
    assert mismatch is not None
    assert mismatch.kind == "gradient"


@pytest.mark.parametrize(
    ("size", "first"), [pytest.param(3, 0, id="all a little"), pytest.param(40_000, 39_997, id="the last of many")]
)
def test_a_wrong_gradient_in_single_precision_alone_is_found(
    monkeypatch: pytest.MonkeyPatch, size: int, first: int
) -> None:
    from tests.fuzz.programs import check

    tanh = tg.tanh

    def wrong(x: tg.Tensor) -> tg.Tensor:
        is_wrong = tg.arange(size) >= first if x.dtype == tg.float32 else tg.zeros(size) > 0
        return tanh(x) + 0.004 * tg.where(is_wrong, x - x.detach(), 0.0)

    lines = [f"v0 = m.tensor(data(1, ({size},), 'float32', 'normal'), requires_grad=True)", "v1 = m.tanh(v0)"]
    assert check(torch, lines) is None
    monkeypatch.setattr(tg, "tanh", wrong)
    mismatch = check(torch, lines)
    assert mismatch is not None
    assert mismatch.kind == "gradient"


def test_a_wrong_sum_of_infinite_numbers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.fuzz.programs import check

    add = tg.add
    lines = ["v0 = m.full((2,), float('inf'))", "v1 = m.add(v0, v0)"]
    assert check(torch, lines) is None
    monkeypatch.setattr(tg, "add", lambda x, y: -add(x, y))
    assert check(torch, lines) is not None
    monkeypatch.setattr(tg, "add", lambda x, y: tg.full((2,), 3.0 + 0j))
    assert check(torch, ["v0 = m.full((2,), complex(float('inf'), 1.0))", "v1 = m.add(v0, v0)"]) is not None


def test_a_zero_of_another_sign_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.fuzz.programs import check

    sin = tg.sin
    lines = ["v0 = m.zeros(2)", "v1 = m.sin(v0)", "v2 = 1 / v1"]
    assert check(torch, lines) is None
    monkeypatch.setattr(tg, "sin", lambda x: -sin(x))
    assert check(torch, lines) is not None


def test_everything_public_is_called() -> None:
    from tests.fuzz import calls

    called = {name for _, name in calls.calls()} | set(calls.NOT_CALLED)
    assert calls.public(torch) - called == set(), "say in tests/fuzz/calls.py how it is called, or why not"


def test_a_wrong_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tester is tested: a wrong function is found, and the program minimised to two lines."""
    from tests.fuzz.programs import Program, check, minimised

    lines = ["v0 = m.tensor(data(1, (3,), 'float64'), requires_grad=True)", "v1 = m.cos(v0)", "v2 = m.sin(v0)"]
    assert check(torch, lines) is None
    monkeypatch.setattr(tg, "sin", lambda x: tg.cos(x))
    mismatch = check(torch, lines)
    assert mismatch is not None
    program, mismatch = minimised(torch, Program(lines), mismatch)
    assert program.lines == [lines[0], lines[2]]
    assert mismatch.kind == "value"


ZERO, INF = (0.0, 0.0), (float("inf"), float("inf"))


def _is_principled(
    line: str, values: Sequence[Any], ends: tuple[float, float] | None = None, dtype: str = "float64"
) -> bool:
    from tests.fuzz.principles import is_principled
    from tests.fuzz.trace import COTANGENTS, Culprit

    operands = {f"v{number}": np.array(own, dtype) for number, own in enumerate(values)}
    with np.errstate(all="ignore"):
        return is_principled(torch, Culprit(line, operands, set(), ends or COTANGENTS[0]))


def test_a_wrong_slope_beside_nan_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's second derivative is nan at 0, and 0 everywhere else."""
    copysign, line, values = tg.copysign, "v1 = m.copysign(v0, 1.0)", [[0.0, 1.0, -2.0, float("inf")]]
    assert _is_principled(line, values)
    assert _is_principled(line, [0.0])  # of no dimensions
    monkeypatch.setattr(tg, "copysign", lambda x, y: copysign(x, y) + tg.where(x == 0, 0.1 * x**2, 0.0))
    assert not _is_principled(line, values)  # of second order, at 0
    monkeypatch.setattr(tg, "copysign", lambda x, y: copysign(x, y) + tg.where(x == 1, 0.1 * (x - 1), 0.0))
    assert not _is_principled(line, values)  # of first order, where PyTorch's is a number
    monkeypatch.setattr(tg, "copysign", lambda x, y: copysign(x, y) + tg.where(x == 1, (x - 1) ** 0.5, 0.0))
    assert not _is_principled(line, values)  # inf, where PyTorch's is a number


def test_a_wrong_slope_for_cotangents_0_or_inf_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def masked(x: tg.Tensor) -> tg.Tensor:
        y = tg.reciprocal(x)
        if y.requires_grad:
            y.register_hook(lambda ct: tg.where(tg.isfinite(ct), ct, 1.0))
        return y

    assert _is_principled("v1 = m.nan_to_num(v0)", [[1.0, float("inf")]], INF)  # 0, in PyTorch 0 times inf
    assert _is_principled("v1 = m.neg(v0)", [[1.0, 2.0]], INF)
    monkeypatch.setattr(tg, "neg", masked)
    assert not _is_principled("v1 = m.neg(v0)", [[1.0, 2.0]], INF)
    power, line, values = tg.pow, "v2 = m.pow(v0, v1)", [[0.0, 1.0], [0.0, 1.0]]
    assert _is_principled(line, values, ZERO)  # 0, in PyTorch 0 times inf
    monkeypatch.setattr(tg, "pow", lambda x, y: power(x, y) + tg.sqrt(x * 0))
    assert not _is_principled(line, values, ZERO)


def test_a_wrong_slope_where_single_precision_overflows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    atan2, line, values = tg.atan2, "v2 = m.atan2(v0, v1)", [[1e-20, 1.0], [1e-20, 2.0]]
    assert _is_principled(line, values, dtype="float32")  # PyTorch divides by the sum of squares, which is 0
    assert _is_principled("v2 = v0 / v1", [[0.0], [1e-20]], dtype="float32")  # of second order nan, in PyTorch -inf
    monkeypatch.setattr(tg, "atan2", lambda x, y: 1.1 * atan2(x, y) if x.dtype == tg.float32 else atan2(x, y))
    assert not _is_principled(line, values[:1] * 2, dtype="float32")
    monkeypatch.setattr(tg, "atan2", lambda x, y: atan2(x, y) + (x.log() if x.dtype == tg.float32 else 0))
    assert not _is_principled("v2 = m.atan2(v0, v1)", [[0.0], [1.0]], dtype="float32")  # inf, in PyTorch 1


def test_a_wrong_slope_beside_a_nan_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that is nan has no right slope; others have one, and those that are parts of several values."""
    power, line, values = tg.pow, "v1 = m.pow(v0, 0.5)", [[-float("inf"), 2.0]]
    assert _is_principled(line, values)  # 0, in PyTorch nan
    assert _is_principled("v1 = m.pow(v0, 0.5)", [[-float("inf")]])  # of values that are all nan
    monkeypatch.setattr(tg, "pow", lambda x, y: power(x, y) + tg.where(x == 2, 0.1 * (x - x.detach()), 0.0))
    assert not _is_principled(line, values)
    cumsum, line, values = tg.cumsum, "v1 = m.cumsum(v0, 0)", [[1.0, float("nan"), 2.0]]
    monkeypatch.setattr(tg, "cumsum", lambda x, dim: cumsum(x, dim) + 0.1 * (x - x.detach()))
    assert not _is_principled(line, values)


def test_a_wrong_slope_that_is_infinite_in_pytorch_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Second derivatives may be inf on the one side and nan on the other, but not inf and a number."""
    divide, values = tg.div, [[0.0, 1.0], [1e-20, 1.0]]
    assert _is_principled("v2 = m.div(v0, v1)", values, dtype="float32")  # of second order nan, in PyTorch -inf
    monkeypatch.setattr(tg, "div", lambda x, y: divide(x, tg.where(x == 0, y.detach(), y)))
    assert not _is_principled("v2 = m.div(v0, v1)", values, dtype="float32")  # of second order 0, in PyTorch -inf


def test_pytorch_is_not_asked_for_what_takes_it_minutes() -> None:
    from tests.fuzz.trace import COTANGENTS, Culprit, derivatives

    few, many = (Culprit("v1 = m.digamma(v0)", {"v0": np.array([own])}, set()) for own in (-1e3, -1e12))
    assert derivatives(torch, few, COTANGENTS[0]) is not None
    assert derivatives(torch, many, COTANGENTS[0]) is None  # it would add up 1e12 terms


def _is_right(line: str, values: Sequence[Any], dtype: str = "float64") -> bool:
    from tests.fuzz.principles import is_right
    from tests.fuzz.trace import Culprit

    operands = {f"v{number}": np.array(own, dtype) for number, own in enumerate(values)}
    with np.errstate(all="ignore"):
        return is_right(torch, Culprit(line, operands, set()))


def test_a_wrong_slope_where_pytorch_loses_digits_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    copysign, line, values = tg.copysign, "v1 = m.copysign(v0, 1.0)", [[3.3610597e-17, 2.0]]
    assert _is_right(line, values)  # of second order 0, in PyTorch errors of rounding divided by the number
    monkeypatch.setattr(tg, "copysign", lambda x, y: copysign(x, y) + 0.05 * (x - x.detach()) ** 2)
    assert not _is_right(line, values)
    prod, line, values = tg.prod, "v1 = m.prod(v0)", [[1e-10, 3.0, 2.0]]
    assert _is_right(line, values, "float32")  # of second order 2.5, in PyTorch 2048
    monkeypatch.setattr(tg, "prod", lambda x: prod(x) + 0.5 * ((x - x.detach()) ** 2).sum())
    assert not _is_right(line, values, "float32")
    atan2, line, values = tg.atan2, "v2 = m.atan2(v0, v1)", [[1e-170], [1e-170]]
    assert _is_right(line, values)  # 5e169, in PyTorch 0
    monkeypatch.setattr(tg, "atan2", lambda x, y: 1.1 * atan2(x, y))
    assert not _is_right(line, values)


def test_a_wrong_gradient_where_pytorch_underflows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of log1p PyTorch divides by a square, which overflows; that alone is seen where large slopes multiply it."""
    from tests.fuzz.programs import check

    log1p = tg.log1p
    lines = [
        "v0 = m.tensor([400.0 + 1j, 1.0 + 0j], dtype=m.complex128, requires_grad=True)",
        "v1 = m.exp(v0)",
        "v2 = m.log1p(v1)",
    ]
    assert check(torch, lines) is None
    monkeypatch.setattr(tg, "log1p", lambda x: log1p(x) + 0.1 * ((x - x.detach()) / x.detach()) ** 2)
    mismatch = check(torch, lines)
    assert mismatch is not None
    assert mismatch.kind == "gradient"


def test_a_wrong_slope_where_much_cancels_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Second derivatives of a small distance add up to 0, but for rounding of 1e6; beside it PyTorch has nan."""
    from tests.fuzz.programs import check

    distance, line, values = (
        tg.nn.functional.pairwise_distance,
        "v1 = F.pairwise_distance(v0, v0 * 0.5 + 1)",
        [[[2.0] * 3] * 2],
    )
    assert _is_right(line, values, "float32")
    lines = [
        "v0 = m.full_like(m.zeros((2, 3)), 2, dtype=m.float32, requires_grad=True)",
        "v1 = m.pow(0.0, v0)",
        "v2 = F.pairwise_distance(v0, v0 * 0.5 + 1)",
    ]
    assert check(torch, lines) is None
    monkeypatch.setattr(
        tg.nn.functional, "pairwise_distance", lambda x, y: distance(x, y) + ((x - x.detach()) ** 2).sum(-1)
    )
    assert not _is_right(line, values, "float32")


def test_a_wrong_gradient_of_coefficients_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding decides whether the coefficient of collinear rows is cut off at 1; of no others."""
    from tests.fuzz.programs import check

    corrcoef = tg.corrcoef
    monkeypatch.setattr(tg, "corrcoef", lambda x: corrcoef(x) + 0.1 * (x - x.detach()).sum())
    rows = "v0 = m.tensor([[1.0, 2.0, 4.0], [2.0, 1.0, 3.0], {}], requires_grad=True)"
    assert check(torch, [rows.format([2.0, 4.0, 8.0]), "v1 = m.corrcoef(v0)"]) is None
    assert check(torch, [rows.format([2.0, 5.0, 1.0]), "v1 = m.corrcoef(v0)"]) is not None
