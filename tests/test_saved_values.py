"""What is written to after a call makes backward raise as in PyTorch: the samples of each function that both have."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pytest

import tapegrad as tg
from tests.tiers import mostly_full

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
opinfo = pytest.importorskip("tests.opinfo", reason="expecttest is not installed, which PyTorch's samples need")

FEW: Final = 2  # samples of a function
# Functions that save other values than in PyTorch, as semantics.md says: "more" raises an error where PyTorch does not.
MORE_OPERANDS: Final = frozenset({
    "kron", "ldexp", "linalg.vander", "polar", "reciprocal", "special.ndtr",
    *[f"nn.functional.{name}" for name in (
        "cosine_embedding_loss", "cross_entropy", "gaussian_nll_loss", "hinge_embedding_loss", "kl_div", "l1_loss",
        "linear_cross_entropy", "margin_ranking_loss", "poisson_nll_loss", "scaled_dot_product_attention",
        "smooth_l1_loss", "tanhshrink",
    )],
})  # fmt: skip
MORE_RESULTS: Final = frozenset({"erfinv", "linalg.vander", "nn.functional.linear_cross_entropy"})
FEWER_RESULTS: Final = frozenset({
    "cholesky_inverse", "index_reduce", "ldexp", "linalg.householder_product", "linalg.lu", "linalg.lu_solve",
    "masked.prod", "nn.functional.ctc_loss", "ormqr", "polar", "prod", "reciprocal", "scatter_reduce", "sgn",
    "special.i1", "special.log_ndtr",
})  # fmt: skip
SHARED: Final = [op for op in opinfo.infos() if torch.float64 in op.dtypes and opinfo.ours(op) is not None]


def _raises(m: Any, function: Callable[..., Any], args: Any, kwargs: Any, of_results: bool, place: int) -> bool | None:
    """Whether backward raises after one operand or result was written to; None if that cannot be asked."""
    operands = []

    def results(value: Any) -> Any:
        if isinstance(value, m.Tensor) and value.is_floating_point():
            operands.append(value.detach().clone().requires_grad_(True) * 1)
            return operands[-1]
        if isinstance(value, (list, tuple)):
            items = [results(one) for one in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        return value

    args, kwargs = results(list(args)), {name: results(one) for name, one in kwargs.items()}
    try:
        outs = [out for out in opinfo.results_of(function(*args, **kwargs)) if getattr(out, "requires_grad", False)]
        written = (outs if of_results else operands)[place]
        if not outs or not written.numel() or any(out is one for out in outs for one in operands):
            return None
        with m.no_grad():
            written.mul_(1.0)
    except Exception:  # of what is expanded, or a view that may not be written to
        return None
    try:
        sum((m.real(out) if out.is_complex() else out).sum() for out in outs).backward()
    except RuntimeError as error:
        return True if "modified by an inplace operation" in str(error) else None
    return False


def _differences(op: Any) -> Iterator[str]:
    function = opinfo.ours(op)
    for number, sample in enumerate(op.sample_inputs("cpu", torch.float64, requires_grad=False)):
        if number == FEW:
            return
        args = (sample.input, *sample.args)
        own, named = opinfo.converted(args, []), opinfo.converted(sample.kwargs, [])
        for of_results, place in [(kind, place) for kind in (False, True) for place in range(4)]:
            wanted = _raises(torch, op, args, sample.kwargs, of_results, place)
            found = None if wanted is None else _raises(tg, function, own, named, of_results, place)
            if found is None or found == wanted or not (found or of_results):
                continue
            declared = (MORE_RESULTS if found else FEWER_RESULTS) if of_results else MORE_OPERANDS
            if op.name not in declared:
                kind = "result" if of_results else "operand"
                yield f"sample {number}, {kind} {place}: raises here {found}, in PyTorch {wanted}"


@pytest.mark.parametrize("op", mostly_full(SHARED, 8), ids=opinfo.title)
def test_writes_after_a_call(op: Any) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = list(_differences(op))
    assert not found, "\n".join(found)
