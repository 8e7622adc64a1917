"""Dtypes of `out`: PyTorch's samples, written to tensors of each dtype, by both libraries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tests.tiers import mostly_full

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
opinfo = pytest.importorskip("tests.opinfo", reason="expecttest is not installed, which PyTorch's samples need")

KINDS = ("float64", "float32", "int64", "int32", "uint8", "bool", "complex128")
INPUTS = (torch.float64, torch.int64, torch.complex128)
# What differs, with the reason.
DIFFERENT = {
    "cholesky": "of linalg here, which takes the dtype of the result only",
    "diff": "PyTorch's last subtraction writes to out",
    "linalg.eig": "the words of both results are the same",
    "linalg.lstsq": "the words of all results are the same",
    "logsumexp": "PyTorch leaves out the imaginary parts",
    "lu": "of linalg here, which takes the dtype of the result only",
    "matmul": "products of vectors have other words in PyTorch",
    "max": "PyTorch's words for all elements are of its checks of itself",
    "min": "PyTorch's words for all elements are of its checks of itself",
    "nonzero": "the indices may be several tensors, which may be written to, too",
    "norm": "of several functions, each with its words, in PyTorch",
    "linalg.norm": "of several functions, each with its words, in PyTorch",
    "frexp": "PyTorch names the result",
    "kthvalue": "PyTorch names the result",
    "mode": "PyTorch names the result",
    "cummax": "PyTorch's words of two results are its ops' own",
    "cummin": "PyTorch's words of two results are its ops' own",
    "histogram": "PyTorch names the result",
    "ldexp": "computed as a product of a power",
    "mvlgamma": "PyTorch puts the name first",
    "diag": "PyTorch has two messages",
    "fft.ifft": "PyTorch has two messages",
    "fft.ihfft": "PyTorch has two messages",
    "linalg.eigvals": "PyTorch calls the result eigenvalues",
    "mean": "PyTorch has two messages",
    "cumsum": "bools are summed, too",
    "cumprod": "bools are multiplied, too",
}
SAME_TYPE = {"diff", "logsumexp", "lu", "cholesky", "nonzero", "cumsum", "cumprod"}  # of these not even that


def outcome(function: Any, args: Any, kwargs: Any, out: Any) -> tuple[str, list[str]]:
    """Return how a call ends: the error's type and first words."""
    try:
        function(*args, **kwargs, out=out)
    except Exception as error:
        return type(error).__name__, opinfo.first_words(str(error))
    return "", []


def outs(m: Any, result: Any, kinds: list[str]) -> Any:
    """Return empty tensors of these dtypes for the results."""
    some = [m.empty(tuple(one.shape), dtype=getattr(m, kind)) for one, kind in zip(parts(result), kinds, strict=True)]
    return tuple(some) if isinstance(result, tuple) else some if isinstance(result, list) else some[0]


def parts(result: Any) -> Any:
    """Return the results in a sequence."""
    return result if isinstance(result, (tuple, list)) else (result,)


def differences(op: Any, inputs: Any, kinds_of_out: Any) -> Iterator[str]:
    """Yield what differs for the first sample of each dtype."""
    function = opinfo.ours(op)
    for dtype in inputs:
        samples = op.sample_inputs("cpu", dtype, requires_grad=False) if dtype in op.dtypes else ()
        sample = next((one for one in samples if getattr(one.input, "ndim", 1)), None)
        if sample is None:
            continue
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        result = op(*args, **kwargs)
        for number, one in enumerate(parts(result)):
            for kind in kinds_of_out:
                kinds = [str(each.dtype).removeprefix("torch.") for each in parts(result)]
                kinds[number] = kind
                expected = outcome(op.op, args, kwargs, outs(torch, result, kinds))
                own_args, own_kwargs = opinfo.converted(args, []), opinfo.converted(kwargs, [])
                own = outcome(function, own_args, own_kwargs, outs(tg, result, kinds))
                if own[0] != expected[0] or (own[1] != expected[1] and op.name not in DIFFERENT):
                    yield f"{op.name} of {dtype} writes {one.dtype} to {kind}: {own}, PyTorch {expected}"


OPS = [
    op for op in opinfo.op_db
    if op.supports_out and opinfo.ours(op) is not None and op.name not in opinfo.NOT_COMPARED
    and not op.name.startswith("nn.functional.") and op.name not in {*SAME_TYPE, "equal", "histogramdd"}
]  # fmt: skip


@pytest.mark.parametrize("op", mostly_full(OPS, 3), ids=opinfo.title)
def test_as_torch(op: Any) -> None:
    """A function takes the dtypes of `out` that PyTorch's takes, and refuses the others in its words."""
    _compare(op, INPUTS[:1], KINDS[1:3])


@pytest.mark.full
@pytest.mark.parametrize("op", OPS, ids=opinfo.title)
def test_more_dtypes(op: Any) -> None:
    """The same for more dtypes."""
    _compare(op, INPUTS, KINDS)


def _compare(op: Any, inputs: Any, kinds: Any) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        default = tg.get_default_dtype()
        tg.set_default_dtype(tg.float32)  # as in PyTorch
        try:
            found = list(differences(op, inputs, kinds))
        finally:
            tg.set_default_dtype(default)
    assert not found, "\n".join(found[:9])
