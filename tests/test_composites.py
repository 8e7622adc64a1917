"""Each composite with each of its samples: forward, gradient and second order, PyTorch's, and that it reads no data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import modes
from tapegrad.ops.table import public
from tapegrad.ops.table.composites import composite, composites
from tapegrad.ops.table.gateway import compute
from tapegrad.ops.table.op import Bound, Op, Sample, op_table
from tests import checks
from tests.cases import Case, cases, grouped
from tests.torch_programs import OF_TRIANGLES, torch

CASES: list[Case] = [Case(one, number) for one in composites.values() for number in range(len(one.samples))]  # type: ignore[arg-type]
DTYPES = ("float64", "complex128", "float32", "complex64")
ALL = [(case, dtype) for dtype in DTYPES for case in CASES if dtype[0] == "f" or not case.op.real_only]
each_case = grouped([(case, dtype) for case, dtype in ALL if dtype in DTYPES[:2]], quick=3)
each_in_double = grouped([(case, "float64") for case in CASES], quick=3)


@grouped(ALL)
def test_forward(case: Case, dtype: str) -> None:
    operands = case.operands(dtype)
    assert case.op.oracle is not None
    expected = np.asarray(case.op.oracle(*operands, **case.attrs()))
    problem = case.problem(dtype)
    for out in (case.op.called(operands, case.attrs()), problem(problem.tensors())):
        checks.check_layout(out)
        assert out.dtype == expected.dtype
        checks.assert_close([out.detach().numpy()], [expected], dtype=dtype)
    assert out.requires_grad


@each_case
def test_gradient(case: Case, dtype: str) -> None:
    checks.check_gradient(case.problem(dtype))


@each_case
def test_second_order(case: Case, dtype: str) -> None:
    checks.check_second(case.problem(dtype))


@pytest.mark.full
@each_case
def test_third_order(case: Case, dtype: str) -> None:
    if str(case) in checks.WITHOUT_THIRD:
        pytest.skip(checks.WITHOUT_THIRD[str(case)])
    checks.check_third(case.problem(dtype))


def _index_reduce(x: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True) -> Any:
    if not include_self:  # torch lets elements that do not count have a share where they tie
        x = x.index_fill(dim, index, 1e9)
    return torch.index_reduce(x, dim, index, source, reduce, include_self=include_self)


def _condition(x: Any, p: Any = None) -> Any:
    if p in (None, 2, -2):
        return torch.linalg.cond(x, p)
    return torch.linalg.matrix_norm(x, p) * torch.linalg.matrix_norm(
        torch.linalg.inv(x), p
    )  # its own raises in backward


def _triangular_solve(b: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:
    a = a.mT if transpose else a
    return [torch.linalg.solve_triangular(a, b, upper=upper != transpose, unitriangular=unitriangular)]


# Where torch's function of the same meaning is called otherwise, or takes the arguments in another way.
ON_TORCH: dict[str, Callable[..., Any]] = {
    **OF_TRIANGLES,
    "index_reduce": _index_reduce,
    "functional.unfold": lambda x, **options: torch.nn.functional.unfold(x, **options),
    # Those of these names warn.
    "upsample": lambda x, **options: torch.nn.functional.interpolate(x, **options),
    "upsample_nearest": lambda x, size: torch.nn.functional.interpolate(x, size),
    "upsample_bilinear": lambda x, size: torch.nn.functional.interpolate(x, size, None, "bilinear", True),
    "to": lambda x, dtype: x.to(getattr(torch, dtype)),
    "type": lambda x, dtype: x.type(getattr(torch, dtype)),
    "astype": lambda x, dtype: x.to(getattr(torch, dtype)),
    "type_as": lambda x, other: x.type_as(torch.tensor(other)),
    "as_tensor": lambda x, dtype=None: x if dtype is None else x.to(getattr(torch, dtype)),
    "view": lambda x, size: x.view(size),
    "repeat_interleave": lambda x, repeats, dim=None: torch.repeat_interleave(x, torch.as_tensor(repeats), dim),
    "tensor_split": lambda x, indices_or_sections, dim=0: torch.tensor_split(x, indices_or_sections, dim),
    "hsplit": lambda x, indices_or_sections: torch.hsplit(x, indices_or_sections),
    "vsplit": lambda x, indices_or_sections: torch.vsplit(x, indices_or_sections),
    "dsplit": lambda x, indices_or_sections: torch.dsplit(x, indices_or_sections),
    # PyTorch's own has gradients where elements were replaced.
    "as_strided_scatter": lambda x, src, size, stride: torch.diagonal_scatter(x, src),
    "fftshift": lambda x, dim=None: torch.fft.fftshift(x, dim),
    "ifftshift": lambda x, dim=None: torch.fft.ifftshift(x, dim),
    "sum_to_size": lambda x, size: x.sum_to_size(size),
    "linalg.vander": lambda x, N=None: torch.stack([x**k for k in range(x.shape[-1] if N is None else N)], -1),
    "top.qr": lambda x, some=True: torch.linalg.qr(x, "reduced" if some else "complete"),
    "top.lu": lambda x: torch.linalg.lu_factor(x),
    "triangular_solve": _triangular_solve,
    "top.cross": lambda x, y, dim: torch.cross(x, y, dim=dim),
    "lu_solve": lambda b, LU, pivots: torch.linalg.lu_solve(LU, pivots, b),
    "vander": lambda x, N=None, increasing=False: torch.stack(
        [x**k for k in (range(N or len(x)) if increasing else range((N or len(x)) - 1, -1, -1))], -1
    ),
    # PyTorch's has no gradient by absolute values that are 0.
    "polar": lambda size, turn: torch.complex(size * torch.cos(turn), size * torch.sin(turn)),
    "cond": _condition,
    # Distances whose second derivatives torch does not have.
    "cdist": lambda x, y, p=2.0: torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1),
    "pdist": lambda x, p=2.0: torch.stack(
        [torch.linalg.vector_norm(x[i] - x[j], p) for i in range(len(x)) for j in range(i + 1, len(x))]
    ),
}


# PyTorch has no second derivative of these; the last one's is right to 10 digits.
ONCE_ON_TORCH = ("multi_margin_loss", "multilabel_margin_loss", "scaled_dot_product_attention", "mvlgamma", "ctc_loss",
                 "embedding_bag", "multi_head_attention_forward", "segment_reduce")  # fmt: skip


def on_torch(name: str) -> Callable[..., Any]:
    """Return torch's function of a composite's name: of networks, of tensors, or a method."""
    own_name = name.rpartition(".")[2]  # of two functions of a name
    functional = name in public.functions(public.FUNCTIONAL)
    function = public.functions(public.LINALG).get(own_name)
    linear = composites[name].function in (function, getattr(function, "__wrapped__", None))
    places = (
        (torch.nn.functional,) if functional else (torch.linalg,) if linear else (torch, torch.Tensor, torch.special)
    )
    found: Any = ON_TORCH.get(name) or next(getattr(own, own_name) for own in places if hasattr(own, own_name))
    return found if callable(found) else lambda x: getattr(x, name)  # a property


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
@pytest.mark.filterwarnings("ignore:index_reduce")
@each_in_double
def test_on_torch(case: Case, dtype: str) -> None:
    """The value, its gradients, and those of a function of the gradients are PyTorch's."""
    problem, operands = case.problem(dtype), case.operands(dtype)
    theirs = [torch.tensor(own, requires_grad=k in problem.wanted) if isinstance(own, np.ndarray) else own
              for k, own in enumerate(operands)]  # fmt: skip
    attrs = {key: torch.tensor(own) if isinstance(own, np.ndarray) else own for key, own in case.attrs().items()}
    z, leaves = case.op.called(theirs, attrs, on_torch(case.op.name)), problem.tensors()
    y, others = problem(leaves), [theirs[k] for k in problem.wanted]
    checks.assert_close([y.detach().numpy()], [z.numpy(force=True)])
    if "polynomial" in case.op.name or case.op.name == "ldl_solve":
        return  # PyTorch has no derivatives
    y, z = _scalar(y), _scalar(z)
    for order in (1,) if case.op.name in ONCE_ON_TORCH else (1, 2):
        found = tg.autograd.grad(y, leaves, create_graph=True, allow_unused=True, materialize_grads=True)
        expected = torch.autograd.grad(z, others, create_graph=True, allow_unused=True, materialize_grads=True)
        checks.assert_close(
            [own.detach().numpy() for own in found], [own.numpy(force=True) for own in expected], what=f"order {order}:"
        )
        y, z = sum(map(_scalar, found)), sum(map(_scalar, expected))
        if not (y.requires_grad and z.requires_grad):
            break


def _scalar(y: Any) -> Any:
    """Return a number that all elements have a part in, with a slope that changes."""
    y = (y.real if np.dtype(str(y.dtype).removeprefix("torch.")).kind == "c" else y).reshape((-1,))
    return (y * y * y).sum() + (y[1:] * y[:-1]).sum()


# What is computed must not hang on the numbers: a program that was traced is run again with others.
NUMBERS = (0.0, 1.0, -2.0, np.nan, np.inf)


def program_of(function: Callable[[list[tg.Tensor]], Any], operands: list[np.ndarray]) -> str:
    """Return the operations that a function of tensors consists of: op, attributes, and where each operand is from."""
    tg.manual_seed(0)
    leaves = [checks.leaf(array) for array in operands]
    sources = {id(one): f"operand {number}" for number, one in enumerate(leaves)}
    kept, program = [], []

    def note(op: Op, bound: Bound) -> Any:
        operands = [sources.get(id(own)) or np.asarray(own._data).tolist() for own in bound.operands]
        program.append((op.name, bound.attrs, operands, [array.tolist() for array in bound.index_arrays]))
        with np.errstate(all="ignore"):
            out = compute(op, bound)[0]
        for one in out if isinstance(out, tuple) else (out,):
            sources[id(one)] = f"result {len(sources)}"
        kept.append((out, bound))  # so that no id is used again
        return out

    with modes.intercept(note):
        function(leaves)
    return repr(program)


@each_in_double
def test_does_not_look_at_numbers(case: Case, dtype: str) -> None:
    problem = case.problem(dtype)
    expected = program_of(problem, problem.point)
    if case.constrained:  # what is invertible still is if it is doubled
        assert program_of(problem, [own * 2 for own in problem.point]) == expected
        return
    for number in NUMBERS:
        assert program_of(problem, [np.full_like(own, number) for own in problem.point]) == expected


@pytest.mark.parametrize("op", op_table.values(), ids=lambda op: op.name)
def test_no_op_looks_at_numbers(op: Op) -> None:
    """Between a call and its op nothing does either."""
    for case in cases(op):
        if not case.constrained:
            problem = case.problem("float64")
            expected = program_of(problem, problem.point)
            for number in NUMBERS:
                assert program_of(problem, [np.full_like(own, number) for own in problem.point]) == expected


@pytest.mark.parametrize(
    "looks",
    [
        lambda x: x * x if x.sum() > 0 else x,
        lambda x: x * float(x.detach().numpy()[0]),
        lambda x: x[x.detach().numpy() > 0],
    ],
)
def test_a_look_at_numbers_is_seen(looks: Callable[[Any], Any]) -> None:
    first, second = (program_of(lambda x: looks(x[0]), [np.array(own)]) for own in ([1.0, 2.0], [-3.0, 2.0]))
    assert first != second


# Files whose public functions have no gradient of their own.
WITHOUT_GRADIENT = (
    "buffers", "creation", "device_facts", "drawing", "facts", "fill", "finding", "frequencies", "generators",
    "histograms", "indices", "inplace_diagonals", "inplace_random", "inplace_shapes", "kernel_op", "legacy_tensors",
    "logic", "positions", "random", "ranges", "settings", "storages", "windows",
)  # fmt: skip


def test_every_public_function_is_an_op_or_a_composite() -> None:
    for one in public.registry:
        names = {one.name.removesuffix("_"), one.function.__name__}
        if one.name == "matrix_rank":  # which is not differentiable
            continue
        known = hasattr(one.function, "op") or one.name in op_table or names & composites.keys()
        assert known or one.file in WITHOUT_GRADIENT, f"{one.name}: add the decorator composite, with samples"


def test_no_composite_is_an_op() -> None:
    functions = [own for one in public.registry for own in (one.function, getattr(one.function, "__wrapped__", None))]
    for name, one in composites.items():
        assert one.function in functions
        assert getattr(op_table.get(name), "call", None) is None


def test_a_composite_needs_samples() -> None:
    for samples in ((), (Sample(((3,),)),)):
        with pytest.raises(ValueError, match="composite square: the name is taken, or there is no sample"):
            composite(samples, np.square)(tg.square)
