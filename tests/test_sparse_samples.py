"""Each op's samples, and their gradients: what a pattern leaves out is 0 in the Jacobian."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.table.op import Op, Sample, op_table
from tapegrad.program.trace import TracingError, trace
from tapegrad.sparse.patterns import pattern_of
from tapegrad.testing.operands import operands_of
from tests.tiers import mostly_full

UNLIKE = (TracingError, RuntimeError, ValueError, TypeError, NotImplementedError)


def outputs_of(op: Op, sample: Sample, operands: Sequence[Any], leaves: Sequence[tg.Tensor]) -> list[tg.Tensor]:
    """Return an op's floating result, and its gradients, which depend on the leaves again."""
    rest = iter(leaves)
    full = [next(rest) if getattr(own, "dtype", np.dtype(int)).kind == "f" else own for own in operands]
    out = op.called(full, sample.attrs)
    weights = np.linspace(0.5, 1.5, out.numel()).reshape(out.shape)
    found = tg.autograd.grad((out * weights).sum(), leaves, create_graph=True, allow_unused=True)
    return [out, *[own for own in found if own is not None]]


def jacobian_of(outputs: Sequence[tg.Tensor], unknowns: Sequence[tg.Tensor]) -> np.ndarray:
    rows = []
    for own in outputs:
        for seed in np.eye(own.numel()):
            found = [tg.zeros_like(one) for one in unknowns]
            if own.requires_grad:
                found = tg.autograd.grad(
                    own, unknowns, tg.tensor(seed.reshape(own.shape)), retain_graph=True, allow_unused=True,
                    materialize_grads=True,
                )  # fmt: skip
            rows.append(np.concatenate([np.ravel(one.detach().numpy()) for one in found]))
    return np.array(rows).reshape(len(rows), sum(own.numel() for own in unknowns))


@pytest.mark.parametrize("name", mostly_full(sorted(op_table), 4))
def test_samples(name: str) -> None:
    op, rng = op_table[name], np.random.default_rng(5)
    reasons, count = set(), 0
    for sample in op.samples:
        operands = operands_of(op, sample, np.float64, rng)
        arrays = [np.array(own) for own in operands if getattr(own, "dtype", np.dtype(int)).kind == "f"]
        try:
            leaves = [tg.tensor(own, requires_grad=True) for own in arrays]
            outputs = outputs_of(op, sample, operands, leaves)
            call = functools.partial(outputs_of, op, sample, operands)
            program, captured = trace(lambda *leaves, call=call: call(leaves), arrays, [True] * len(arrays))
        except UNLIKE as error:
            reasons.add(str(error))
            continue
        if captured or any(own.is_complex() for own in outputs):
            reasons.add("it has no real inputs and outputs")
            continue
        pattern = pattern_of(program, program.inputs).toarray()
        jacobian = jacobian_of(outputs, leaves)
        assert not np.nan_to_num(jacobian)[~pattern].any(), f"{name} {sample.attrs}\n{program}"
        count += 1
    if not count:
        pytest.skip("; ".join(sorted(reasons))[:200])
