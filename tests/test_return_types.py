"""Named results: they print as PyTorch's, and are copied and pickled."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

X, S = [[2.0, 1.0], [1.0, 3.0]], [3.0, 1.0, 2.0]
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "max": lambda T, x, s: x.max(1), "min": lambda T, x, s: x.min(0),
    "sort": lambda T, x, s: s.sort(),
    "topk": lambda T, x, s: s.topk(2),
    "kthvalue": lambda T, x, s: s.kthvalue(2),
    "median": lambda T, x, s: x.median(1),
    "nanmedian": lambda T, x, s: x.nanmedian(1),
    "mode": lambda T, x, s: s.mode(),
    "cummax": lambda T, x, s: s.cummax(0),
    "cummin": lambda T, x, s: s.cummin(0),
    "aminmax": lambda T, x, s: s.aminmax(),
    "frexp": lambda T, x, s: T.frexp(s),
    "linalg_eigh": lambda T, x, s: T.linalg.eigh(T.diag(s)),
    "linalg_slogdet": lambda T, x, s: T.linalg.slogdet(x),
    "linalg_lu": lambda T, x, s: T.linalg.lu(x),
    "linalg_lu_factor": lambda T, x, s: T.linalg.lu_factor(x),
    "linalg_lu_factor_ex": lambda T, x, s: T.linalg.lu_factor_ex(x),
    "linalg_inv_ex": lambda T, x, s: T.linalg.inv_ex(x),
    "linalg_cholesky_ex": lambda T, x, s: T.linalg.cholesky_ex(x),
    "linalg_solve_ex": lambda T, x, s: T.linalg.solve_ex(x, x),
    "linalg_ldl_factor": lambda T, x, s: T.linalg.ldl_factor(x),
    "histogram": lambda T, x, s: T.histogram(s, 2),
    "linalg_svd": lambda T, x, s: T.linalg.svd(T.diag(s)),
    "linalg_qr": lambda T, x, s: T.linalg.qr(x),
    "linalg_lstsq": lambda T, x, s: T.linalg.lstsq(T.eye(2), T.eye(2)),
}  # fmt: skip


def _result(library: Any, name: str) -> Any:
    return CALLS[name](library, library.tensor(X, dtype=library.float32), library.tensor(S, dtype=library.float32))


def _without_dtypes(result: Any) -> str:  # which are shown if they are not the default, of which each has its own
    return re.sub(r", dtype=\S*?\w(?=\))", "", repr(result))


@pytest.mark.parametrize("name", CALLS)
def test_text(name: str) -> None:
    torch = pytest.importorskip("torch")
    expected = _without_dtypes(_result(torch, name))
    assert expected.startswith(f"torch.return_types.{name}(\n")
    assert _without_dtypes(_result(tg, name)).replace("tapegrad", "torch") == expected


@pytest.mark.parametrize("name", CALLS)
def test_copies(name: str) -> None:
    own = _result(tg, name)
    for twin in (copy.copy(own), copy.deepcopy(own), pickle.loads(pickle.dumps(own)), own._replace()):
        assert type(twin) is type(own) is getattr(tg.return_types, name)
        assert own._fields == twin._fields
        for first, second in zip(own, twin, strict=True):
            np.testing.assert_array_equal(first.numpy(), second.numpy())


def test_another_process_loads_them() -> None:
    pickled = [pickle.dumps(_result(tg, name)) for name in ("max", "linalg_lu_factor", "median")]
    text = f"import pickle; print([type(pickle.loads(own)).__name__ for own in {pickled!r}])"
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['max', 'linalg_lu_factor', 'median']"


@pytest.mark.parametrize("name", ["sin", "no_function", "_private", "linalg_inv"])
def test_no_other_names(name: str) -> None:
    with pytest.raises(AttributeError):
        getattr(tg.return_types, name)
