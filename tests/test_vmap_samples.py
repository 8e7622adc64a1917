"""Each op's samples as items of a batch: value and gradient are those of the op on each item."""

from __future__ import annotations

import numpy as np
import pytest

from tapegrad.ops.table.op import op_table
from tapegrad.program.batch import batch_of
from tapegrad.program.fuse import Refused, fuse
from tapegrad.program.trace import TracingError, trace
from tapegrad.testing.operands import operands_of
from tests.test_fuse import assert_near, call, eager, value_and_gradient
from tests.tiers import mostly_full

ITEMS = 11


@pytest.mark.parametrize("name", mostly_full(sorted(op_table), 6))
def test_samples(name: str) -> None:
    op, rng = op_table[name], np.random.default_rng(5)
    reasons, count = set(), 0
    for sample in op.samples:
        function, arrays = value_and_gradient(op, sample, operands_of(op, sample, np.float64, rng))
        batch = [
            np.stack([own * (1 - k / 64) if own.dtype.kind == "f" else own for k in range(ITEMS)]) for own in arrays
        ]
        try:
            program, captured = trace(function, arrays)
            assert not captured
            whole = batch_of([program], [True] * len(arrays)).whole(ITEMS)
            code = fuse(whole)
        except (TracingError, Refused, RuntimeError, ValueError, TypeError, NotImplementedError) as error:
            reasons.add(str(error))
            continue
        if program.guards:
            reasons.add("it looks at values")
            continue
        with np.errstate(all="ignore"):
            expected = [eager(function, [own[k] for own in batch]) for k in range(ITEMS)]
            assert_near(call(whole, code, batch), [np.stack(own) for own in zip(*expected, strict=True)])
        count += 1
    if not count:
        pytest.skip("; ".join(sorted(reasons))[:200])
