"""Elementary functions: our ufuncs beside NumPy's, SciPy's and PyTorch's, and which of them computes forward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from bench.table import Table, ratio
from bench.timing import Run, interleaved
from bench.tools import installed

SIZES, QUICK_SIZES = (100, 10_000), (10,)
DTYPES = ("float64", "float32")
BETWEEN = {"log": (0.1, 3), "log1p": (0.1, 3), "sqrt": (0.1, 3), "rsqrt": (0.1, 3), "logit": (0.1, 0.9)}
BETWEEN |= dict.fromkeys(("gammainc", "gammaincc", "gamma_density"), (0.1, 3))


WITHOUT_TORCH = ("trigamma", "bessel_i2", "bessel_i2e", "gamma_density")  # a case of its polygamma; not in PyTorch


def functions() -> dict[str, Any]:
    """Return the forwards that are functions of `vmath` or another's, by name."""
    from tapegrad.forward.ufuncs import Function
    from tapegrad.ops.table.loading import load_all
    from tapegrad.ops.table.op import op_table

    load_all()

    return {name: op.forward for name, op in op_table.items() if type(op.forward) is Function and op.fx is None}


def _of_torch(name: str, operands: Sequence[np.ndarray], out: np.ndarray) -> Run:
    import torch

    tensors, result = map(torch.from_numpy, operands), torch.from_numpy(out)
    if name == "softplus":
        return partial(torch.nn.functional.softplus, *tensors)
    return partial(getattr(torch, name, None) or getattr(torch.special, name), *tensors, out=result)


def _of_other(function: Callable[..., Any], operands: Sequence[np.ndarray], out: np.ndarray) -> Run:
    return partial(function, *operands, out=out) if isinstance(function, np.ufunc) else partial(function, *operands)


def tables(rounds: int, quick: bool) -> list[Table]:
    """Elementary functions of vectors: our own, NumPy's or SciPy's, and torch's."""
    sizes = QUICK_SIZES if quick else SIZES
    columns = [f"{tool}, {size}" for size in sizes for tool in ("other", "ours", "torch", "other / ours")]
    table = Table(
        "functions: ns an element, medians; by number of elements", ("function", "dtype", *columns, "forward")
    )
    rng = np.random.default_rng(1)
    for name, function in functions().items():
        for dtype in DTYPES:
            ours, cells = function.ufunc(dtype), []
            for size in sizes:
                drawn = rng.uniform(*BETWEEN.get(name, (-3, 3)), (ours.nin, size)).astype(dtype)
                operands, out = list(drawn), np.empty_like(drawn[0])
                runs: dict[str, Run] = {"other": _of_other(function.other, operands, out)}
                runs["ours"] = partial(ours, *operands, out=out)
                if installed("torch") and name not in WITHOUT_TORCH:
                    runs["torch"] = _of_torch(name, operands, out)
                times = interleaved(runs, rounds, at_least=0.001)
                medians = {tool: float(np.median(own)) / size * 1e9 for tool, own in times.items()}
                cells += [f"{medians[tool]:.2f}" if tool in medians else "-" for tool in ("other", "ours", "torch")]
                cells.append(ratio(float(np.median(times["other"] / times["ours"]))))
            table.rows.append((name, dtype, *cells, "ours" if function.of(np.dtype(dtype)) is ours else "other"))
    table.notes.append("other: NumPy's ufunc of that name, SciPy's, or an expression where there is none.")
    return [table]
