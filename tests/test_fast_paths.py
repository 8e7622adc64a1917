"""Fast paths are taken: results would be the same without them, so only these tests see that one is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.forward import fourier
from tapegrad.forward.products import _gemm_kernel_address, _gemv_kernel_address
from tapegrad.ops.table import gateway
from tapegrad.ops.table.op import op_table, xp
from tapegrad.recording.plan import FUSED as FUSED_WORD
from tapegrad.recording.plan import Plan
from tapegrad.recording.plan_cache import PlanCache
from tapegrad.recording.steps import KERNEL
from tapegrad.runtime import pool
from tapegrad.runtime.memory import INTERPRETS
from tapegrad.tape.entries import PLAN_OBJECT
from tests.cases import OF_COUNTS, cases
from tests.checks import is_known, python_functions

# Ops whose rules the sweep calls, all of them. A new op without any kernel belongs here, on a line of its own.
NO_KERNEL = {
    "fftn",
    "hfftn",
    "ifftn",
    "ihfftn",
    "inv",
    "irfftn",
    "recurrence",
    "resized",
    "rfftn",
    # Rules that are one call of a kernel; that of an LSTM serves several results.
    "gru_steps",
    "rnn_tanh_steps",
    "rnn_relu_steps",
    # LAPACK, and SciPy's functions of matrices.
    "cholesky",
    "cholesky_ex",
    "det",
    "ldl_factor_ex",
    "lu_factor_ex",
    "matrix_exp",
    "pinv",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
    # Special functions of SciPy, whose derivatives are others of these.
    "airy_ai",
    "airy_ai_prime",
    "airy_bi",
    "airy_bi_prime",
    "bessel_i2",
    "bessel_i2e",
    "bessel_j2",
    "ellipe",
    "ellipk",
    "sine_integral",
    "beta_derivative",
    "gamma_derivative",
    "iv",
    "ive",
    "j0",
    "j1",
    "jv",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kv",
    "polygamma",
    "y0",
    "y1",
    "trigamma",
    "yv",
    "zeta",
    # The same, of parameters.
    *OF_COUNTS,
    "besselpoly",
    "carlson",
    "elliprc",
    "elliprd",
    "elliprf",
    "elliprg",
    "elliprj",
    "modfresnel_k_imag",
    "modfresnel_k_real",
    "tklmbda",
    "exprel",
    "hyp0f1",
    "hyp1f1",
    "hyp2f1",
    "hyperu",
    "itairy_ai",
    "itairy_ai_left",
    "itairy_bi",
    "itairy_bi_left",
    "log_wright_bessel",
    "pbdv_slope",
    "pbdv_value",
    "pbvv_slope",
    "pbvv_value",
    "wright_bessel",
    "airye_ai",
    "airye_ai_prime",
    "airye_bi",
    "airye_bi_prime",
    "bei",
    "beip",
    "ber",
    "berp",
    "eval_gegenbauer",
    "eval_genlaguerre",
    "eval_jacobi",
    "expn",
    "it2j0",
    "it2k0",
    "it2struve0",
    "it2y0",
    "itj0",
    "itk0",
    "itmodstruve0",
    "itstruve0",
    "ity0",
    "kei",
    "keip",
    "ker",
    "kerp",
    "kv_slope",
    "kve",
    "kve_slope",
    "lpmv",
    "modstruve",
    "pbwa_slope",
    "pbwa_value",
    "struve",
    "voigt_dispersion",
    "voigt_profile",
    "voigt_slope",
}
# Samples of other ops for which a sweep calls rules, and of which operands.
WITHOUT_KERNEL = {
    "amax": {5: (0,), 6: (0,)},  # dimensions that are not next to each other
    "amin": {5: (0,), 6: (0,)},
    "constant_pad_nd": {3: (0,)},  # with a value
    "deviations": {4: (0,), 6: (0,)},  # not contiguous; dimensions apart
    "getitem": {9: (0,), 10: (0,)},  # by a truth value
    "index_gather": {5: (0,), 6: (0,)},  # arrays with a slice between them
    "log_softmax": {4: (0,)},  # not contiguous
    "logsumexp": {4: (0,), 5: (0,)},
    "matmul": {5: (0, 1), 11: (0, 1), 12: (1,)},  # strides that BLAS does not take; no element
    "softmax": {4: (0,)},
    "prod": {5: (0,), 6: (0,)},
    "cumsum": {4: (0,)},
    "cumprod": {4: (0,)},
    "logcumsumexp": {4: (0,)},
    "median_of_all": {1: (0,)},  # nan may be left out
    "gather": {3: (0,)},  # no dimension
    "scatter_add": {2: (2,)},  # fewer indices than elements along another dimension
    "scatter_reduce": {6: (0, 2), 9: (0, 2)},  # the same
    "vector_norm": dict.fromkeys((4, 6, 7, 8, 9, 10), (0,)),  # other orders; dimensions apart
    "euclidean_distances": {1: (0, 1), 2: (0, 1)},  # batches; no element
    "distances_of_pairs": {3: (0,)},  # no pair
    "cross": {2: (0, 1)},  # of several shapes
    **{name: {0: (1,), 1: (1,)} for name in ("ellipeinc", "ellipkinc", "jacobi_amplitude")},  # the parameter's
    "solve": {0: (0, 1), 1: (0, 1), 2: (0, 1), 3: (0, 1), 4: (0, 1), 5: (0, 1), 6: (0, 1), 9: (0, 1)},
    # By the parameter.
    **dict.fromkeys(("gammainc", "gammaincc", "gammaincinv", "gammainccinv"), dict.fromkeys(range(7), (0,))),
    **{name: {0: (0, 1), 1: (0, 1)} for name in ("betainc", "betaincinv")},
}
# Ops of two operands whose cotangents one kernel does not compute: one is the cotangent itself, or has no kernel.
NOT_FUSED = {
    "add",
    "sub",
    "remainder",
    "fmod",
    "gammainc",
    "gammaincc",
    "gammaincinv",
    "gammainccinv",
    "kv",
}
FUSED = {op.name for op in op_table.values() if op.family == "binary" and all(map(callable, op.vjp))} - NOT_FUSED


def plan_of(tensor: tg.Tensor) -> Plan:
    """The plan of the entry of a result, with its steps."""
    node = tensor._node
    assert isinstance(node, list)
    plan: Plan = node[PLAN_OBJECT]
    plan.prepare()
    return plan


def is_fused(plan: Plan) -> bool:
    return bool(plan._words[FUSED_WORD])


def leaf(*shape: int) -> tg.Tensor:
    return tg.tensor(np.linspace(0.5, 1.5, int(np.prod(shape))).reshape(shape), requires_grad=True)


def test_ops_with_kernels_and_fused_kernels() -> None:
    without: dict[str, dict[int, tuple[int, ...]]] = {}
    fused, served = set(), set()
    for case in cases(*op_table.values()):
        problem = case.problem(np.float64)
        out = problem(problem.tensors())
        if isinstance(out._node, list):  # it may have no element, or be an integer
            plan = plan_of(out)
            if set(plan.python_operands) < set(problem.wanted):
                served.add(case.op.name)
            if plan.python_operands:
                without.setdefault(case.op.name, {})[case.number] = plan.python_operands
            if is_fused(plan):
                fused.add(case.op.name)
    assert without.keys() - served == NO_KERNEL
    assert {name: samples for name, samples in without.items() if name in served} == WITHOUT_KERNEL
    assert fused == FUSED


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((4, 3), (3, 5)),
        ((3000, 4), (4, 2)),
        ((2, 4000), (4000, 3)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (4, 5)),
        ((3, 4), (2, 4, 5)),
    ],
    ids=str,
)
def test_products_of_matrices_are_those_of_blas(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    plan = plan_of(leaf(*x) @ leaf(*y))
    assert plan.python_operands == ()
    assert [call.kernel for call in plan._calls] == [_gemm_kernel_address, _gemm_kernel_address]


def test_products_with_vectors_are_gemv() -> None:
    # gemm takes four times as long for a vector.
    assert _gemv_kernel_address in [call.kernel for call in plan_of(leaf(4, 3) @ leaf(3))._calls]
    assert _gemv_kernel_address in [call.kernel for call in plan_of(leaf(4) @ leaf(4, 3))._calls]
    assert _gemv_kernel_address in [call.kernel for call in plan_of(leaf(2, 1, 4) @ leaf(2, 4, 3))._calls]


def test_products_of_transposed_matrices_are_those_of_blas() -> None:
    plan = plan_of(leaf(4, 3).T @ leaf(5, 4).T)
    assert [call.kernel for call in plan._calls] == [_gemm_kernel_address, _gemm_kernel_address]


@pytest.mark.parametrize(
    ("call", "fused"),
    [
        (lambda: leaf(4, 3) * leaf(4, 3), True),
        (lambda: leaf(4, 3) * leaf(4, 1), True),  # one number a row: the kernel sums it
        (lambda: leaf(4, 3) * leaf(3), False),
        (lambda: leaf(4, 3) / leaf(4, 3), True),
        (lambda: leaf(4, 3) + leaf(4, 3), False),  # cotangents that are the result's
        (lambda: leaf(3) * 2.0, False),
    ],
)
def test_one_kernel_for_both_operands(call: Callable[[], tg.Tensor], fused: bool) -> None:
    assert is_fused(plan_of(call())) is fused


SMALL: dict[str, Callable[[], Any]] = {
    "add": lambda: leaf(4, 3) + leaf(4, 3),
    "row": lambda: leaf(4, 3) * leaf(3),
    "column": lambda: leaf(4, 3) * leaf(4, 1),
    "exp": lambda: tg.exp(leaf(4, 3)),
    "pow": lambda: leaf(4, 3) ** 2,
    "sum": lambda: leaf(4, 3).sum(),
    "sum of rows": lambda: leaf(4, 3).sum(1),
    "amax": lambda: tg.amax(leaf(4, 3), 1),
    "matmul": lambda: leaf(4, 3) @ leaf(3, 5),
    "matrix and vector": lambda: leaf(4, 3) @ leaf(3),
    "vector and matrix": lambda: leaf(4) @ leaf(4, 3),
    "vectors": lambda: leaf(4) @ leaf(4),
    "transposed matrix and vector": lambda: leaf(4, 3).T @ leaf(4),
    "matrix and column": lambda: leaf(4, 3) @ leaf(3, 2)[:, 1],
    "bmm": lambda: leaf(2, 3, 4) @ leaf(2, 4, 5),
    "cat": lambda: tg.cat([leaf(4, 3), leaf(2, 3)]),
    "stack": lambda: tg.stack([leaf(4, 3), leaf(4, 3)]),
    "softmax": lambda: tg.softmax(leaf(4, 3), 1),
    "clamp": lambda: tg.clamp(leaf(3), -1, 1),
    "where": lambda: tg.where(tg.tensor([True, False, True]), leaf(3), leaf(3)),
    "where and a number": lambda: tg.where(tg.tensor([True, False, True]), leaf(2, 3), 0),
    "nextafter": lambda: tg.nextafter(leaf(3), leaf(3)),
    "logaddexp2": lambda: tg.logaddexp2(leaf(3), leaf(3)),
}


@pytest.mark.skipif(INTERPRETS, reason="forwards are interpreted too")
@pytest.mark.parametrize("name", SMALL)
def test_small_forwards_are_compiled(name: str) -> None:
    forward = plan_of(SMALL[name]()).forward
    assert isinstance(forward, BuiltinFunctionType), f"{forward} is Python's or a ufunc"


X = leaf(4, 3)
ARRAY, INDEX = np.full((4, 3), 2.0), tg.tensor([2, 0])
# Calls that compiled code finds the plan of, once they were made.
KNOWN: dict[str, Callable[[], Any]] = {
    "two tensors": lambda: X * X,
    "a float": lambda: X * 2.5,
    "a float before": lambda: 2.5 - X,
    "an integer": lambda: X * 3,
    "a number of numpy": lambda: X * np.float64(1.5),
    "an array": lambda: X * ARRAY,
    "an array, by name": lambda: tg.add(X, ARRAY),
    "an array before": lambda: tg.sub(ARRAY, X),
    "a view of an array": lambda: tg.sub(ARRAY[1:], X[1:]),
    "no gradient": lambda: X.detach() * 2.0,
    "unary": lambda: tg.tanh(X),
    "sum": lambda: X.sum(),
    "a dim": lambda: X.sum(1),
    "a negative dim": lambda: X.sum(-2),
    "dims": lambda: X.sum((0, 1)),
    "by name": lambda: X.sum(dim=1, keepdim=True),
    "number index": lambda: X[2],
    "negative index": lambda: X[-1],
    "slice": lambda: X[1:3],
    "stepped slice": lambda: X[::2, 1],
    "new dimension": lambda: X[:, None],
    "dots": lambda: X[..., 0],
    "index tensor": lambda: X[INDEX],
    "index array": lambda: X[INDEX.numpy()],
    "reshape": lambda: X.reshape(2, 6),
    "reshape by a tuple": lambda: X.reshape((3, 4)),
    "permute": lambda: X.permute(1, 0),
    "unsqueeze": lambda: X.unsqueeze(0),
    "expand": lambda: X.expand(2, 4, 3),
    "matmul": lambda: X @ X.T,
    "cat": lambda: tg.cat([X, X]),
    "cat of a tuple": lambda: tg.cat((X, X, X), 1),
    "stack": lambda: tg.stack([X, X], dim=1),
    "max": lambda: tg.max(X, 1),
    "sort": lambda: tg.sort(X),
    "softmax": lambda: tg.softmax(X, 1),
    "where": lambda: tg.where(X > 0.0, X, 0.0),
    "clamp": lambda: X.clamp(-1, 1.5),
    "clamp from below": lambda: X.clamp(min=0),
    "float": lambda: X.float(),
    "long": lambda: X.long(),
    "to": lambda: X.to(tg.float32),
    "to the same dtype": lambda: X.to(X.dtype),
}


@pytest.mark.skipif(INTERPRETS, reason="recording is interpreted")
@pytest.mark.parametrize("mode", [tg.enable_grad, tg.no_grad])
@pytest.mark.parametrize("name", KNOWN)
def test_a_known_call_is_not_looked_at_by_python(name: str, mode: Callable[[], Any]) -> None:
    call = KNOWN[name]
    with mode():
        call()
        call()
        assert is_known(call)


F = tg.nn.functional
WITH_TUPLES: dict[str, Callable[[], Any]] = {
    "fold": lambda: F.fold(leaf(2, 8, 6), (4, 3), 2),
    "conv_transpose1d": lambda: F.conv_transpose1d(leaf(1, 2, 5), leaf(2, 3, 2)),
    "conv_transpose2d": lambda: F.conv_transpose2d(leaf(1, 2, 4, 4), leaf(2, 3, 2, 2)),
    "conv_transpose3d": lambda: F.conv_transpose3d(leaf(1, 1, 2, 2, 2), leaf(1, 1, 2, 2, 2)),
    "local_response_norm": lambda: F.local_response_norm(leaf(1, 4, 3), 3),
    "fractional_max_pool2d": lambda: F.fractional_max_pool2d(leaf(1, 1, 4, 4), 2, 2),
}


@pytest.mark.skipif(INTERPRETS, reason="recording is interpreted")
@pytest.mark.parametrize("name", WITH_TUPLES)
def test_tuples_in_arguments_are_parts_of_keys(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call = WITH_TUPLES[name]
    call()
    call()
    met = []
    monkeypatch.setattr(PlanCache, "insert", lambda plans, plan, *arguments: met.append(plan.op.name))
    call()
    assert not met, f"Python finds the plans of {met} each time"


@pytest.mark.parametrize("name", ["fft", "irfft", "rfft2"])
def test_transforms_go_past_the_checks_of_scipy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tg.ones(4, 6)
    call = getattr(tg.fft, name)
    expected = call(x)
    assert not {"_basic.py", "basic.py", "_backend.py"} & {file for file, _ in python_functions(lambda: call(x))}
    monkeypatch.setattr(fourier, "_compiled", lambda: None)  # as with a SciPy that has other functions
    assert np.allclose(call(tg.ones(4, 6, dtype=tg.float32)), expected)


@pytest.mark.skipif(INTERPRETS, reason="the makers of tensors are interpreted")
@pytest.mark.parametrize("shape", [(), (3,), (4, 3), (2, 3, 4), (2, 1, 3, 2)], ids=str)
@pytest.mark.parametrize("stepped", [False, True])
def test_tensors_over_arrays_of_a_known_layout_are_not_made_by_python(shape: tuple[int, ...], stepped: bool) -> None:
    def array() -> np.ndarray:
        return np.ones(shape)[..., ::2] if stepped and shape else np.ones(shape)

    tg.from_numpy(array()).requires_grad_()
    known, made = array(), []
    seen = python_functions(lambda: made.append(tg.from_numpy(known).requires_grad_()))
    assert not {("creation.py", name) for name in ("_owner", "_borrower", "_leaf")} & seen
    assert made[0].shape == known.shape
    assert made[0].requires_grad


@pytest.mark.parametrize("name", sorted(FUSED))
def test_fused_kernels_run_where_both_operands_want_a_gradient(name: str) -> None:
    x, y = leaf(3, 7), leaf(3, 7)  # of a length of their own: no other test shares the plans
    out = getattr(xp, name)(x * 1.0, y * 1.0)
    plan = plan_of(out)
    single = [call for call in plan._calls if call.plan_word != FUSED_WORD]
    before = [plan._block[call.start + KERNEL] for call in single]
    out.sum().backward()
    assert x.grad is not None
    assert [plan._block[call.start + KERNEL] for call in single] == before == [0, 0]
    kept = getattr(xp, name)(x.detach(), y)
    kept.sum().backward()  # for one operand
    out = getattr(xp, name)(x * 1.0, y * 1.0)
    tg.autograd.grad(out.sum(), x)
    assert all(plan._block[call.start + KERNEL] for call in single)


@pytest.mark.skipif(INTERPRETS, reason="forwards are interpreted too")
@pytest.mark.skipif("TAPEGRAD_TEST_AS_LARGE" in os.environ, reason="arrays of all sizes are large")
@pytest.mark.parametrize("join", [tg.cat, tg.stack])
def test_large_arrays_are_joined_by_numpy(join: Callable[..., tg.Tensor]) -> None:
    half = pool.THRESHOLD // 16
    for size, is_large in ((half, True), (half - 1, False)):
        forward = plan_of(join([leaf(size), leaf(size)])).forward
        assert isinstance(forward, BuiltinFunctionType) is not is_large


@pytest.mark.skipif(INTERPRETS, reason="recording is interpreted")
def test_an_array_at_an_odd_address_is_looked_at_by_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where compiled code has a plan for arrays of its layout."""
    odd = np.zeros(97, np.uint8)[1:].view(np.float64).reshape(4, 3)
    odd[...] = ARRAY
    seen, compute = [], gateway.compute
    monkeypatch.setattr(gateway, "compute", lambda *args, **kw: (seen.append(1), compute(*args, **kw))[1])
    for _ in range(3):
        found = X * ARRAY
    assert len(seen) < 3
    seen.clear()
    assert (X * odd).tolist() == found.tolist()
    assert seen == [1]
