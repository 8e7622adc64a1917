"""Ufuncs of our own: ufuncs in all that NumPy promises, made at first use, and the same bits for every layout."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.row import rows
from tapegrad.ufuncs import Function

OURS = {name: row.forward for name, row in rows.items() if isinstance(row.forward, Function)}
each = pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name, function in OURS.items() for dtype in function.dtypes]
)


def ufunc_of(name: str, dtype: str) -> np.ufunc:
    made = OURS[name].of(np.dtype(dtype))
    assert isinstance(made, np.ufunc)
    return made


def data(dtype: str, n: int = 1000) -> np.ndarray:
    return np.random.default_rng(3).uniform(-9, 9, n).astype(dtype)


def test_there_are_some() -> None:
    assert set(OURS) == {"sin", "cos", "sigmoid", "softplus", "erf"}


@each
def test_is_a_ufunc(name: str, dtype: str) -> None:
    ufunc = ufunc_of(name, dtype)
    assert (ufunc.__name__, ufunc.nin, ufunc.nout, ufunc.identity) == (name, 1, 1, None)
    x = data(dtype, 24)
    expected = rows[name].oracle(x)
    out = ufunc(x)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, expected, rtol=30 * np.finfo(dtype).eps)
    single = ufunc(x[0])
    assert type(single) is x.dtype.type
    assert single == out[0]
    assert type(ufunc(x[0].reshape(()))) is x.dtype.type
    assert ufunc(np.empty((0, 3), dtype)).shape == (0, 3)
    masked = np.full(24, 7, dtype)
    assert ufunc(x, out=masked, where=x > 0) is masked
    np.testing.assert_array_equal(masked, np.where(x > 0, out, 7))
    wide = np.empty((3, 24), dtype)
    ufunc(x, out=wide)
    np.testing.assert_array_equal(wide, np.broadcast_to(out, (3, 24)))
    with pytest.raises(TypeError, match="ufunc"):
        ufunc(x * 1j)
    with pytest.raises(ValueError, match="broadcast"):
        ufunc(x, out=np.empty(5, dtype))


@each
def test_layouts(name: str, dtype: str) -> None:
    ufunc = ufunc_of(name, dtype)
    x = data(dtype)
    expected = ufunc(x)
    for first in (0, 1, 7):
        for length in (1, 2, 5, 8, 9, 17, 127, 128, 129, 300):
            np.testing.assert_array_equal(ufunc(x[first : first + length]), expected[first : first + length])
    for step in (2, 3, -1, -5):
        np.testing.assert_array_equal(ufunc(x[::step]), expected[::step])
        out = np.zeros(len(x), dtype)
        ufunc(x[::step], out=out[::step])
        np.testing.assert_array_equal(out[::step], expected[::step])
    matrix = x[:600].reshape(20, 30)
    np.testing.assert_array_equal(ufunc(matrix.T), expected[:600].reshape(20, 30).T)
    own = x.copy()
    ufunc(own, out=own)
    np.testing.assert_array_equal(own, expected)
    for shift in (1, 3, 200):  # the target lies over the source
        own = x.copy()
        ufunc(own[:-shift], out=own[shift:])
        np.testing.assert_array_equal(own[shift:], expected[:-shift])
        own = x.copy()
        ufunc(own[shift:], out=own[:-shift])
        np.testing.assert_array_equal(own[:-shift], expected[shift:])
    apart = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype)
    assert not apart.flags.aligned
    np.testing.assert_array_equal(ufunc(apart), expected)
    swapped = x.astype(x.dtype.newbyteorder())
    np.testing.assert_array_equal(ufunc(swapped), expected)


@each
def test_float_errors(name: str, dtype: str) -> None:
    """NumPy hears of nan that came from a number, and of nothing else."""
    ufunc = ufunc_of(name, dtype)
    info = np.finfo(dtype)
    quiet = np.array([np.nan, 0.0, -0.0, info.max, -info.max, info.tiny, info.smallest_subnormal, 1e3, -1e3], dtype)
    with np.errstate(all="raise"):
        for n in (1, 2, 40):
            ufunc(np.resize(quiet, n))
            ufunc(np.resize(quiet, 2 * n)[::2])
        if not OURS[name].invalid:
            ufunc(np.full(9, np.inf, dtype))
            return
        for x in (np.full(1, np.inf, dtype), np.resize(np.append(quiet, -np.inf), 40).astype(dtype)):
            for own in (x, np.repeat(x, 2)[::2]):
                with pytest.raises(FloatingPointError, match=f"invalid value encountered in {name}"):
                    ufunc(own)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        assert np.isnan(ufunc(np.array([np.inf], dtype))[0])


@pytest.mark.parametrize("name", ["sin", "cos", "sigmoid"])
def test_other_dtypes(name: str) -> None:
    for dtype in ("complex128", "complex64", "float16", "longdouble"):
        x = np.linspace(-2, 2, 9).astype(dtype)
        out = OURS[name](x)
        assert out.dtype == x.dtype
        np.testing.assert_allclose(out, rows[name].oracle(x), rtol=1e-2 if dtype == "float16" else 1e-6)


def test_tensors_use_them() -> None:
    x = data("float64", 50)
    for name in OURS:
        function = getattr(tg, name, None) or getattr(tg.nn.functional, name)
        np.testing.assert_array_equal(function(tg.tensor(x)).numpy(), ufunc_of(name, "float64")(x))


CHILD = """
import sys
import tapegrad as tg
x = tg.tensor([1.0, 2.0])
assert not {"numba", "llvmlite", "scipy"} & set(sys.modules), "at import"
y = [tg.sin(x), tg.sigmoid(x), tg.erf(x), tg.nn.functional.softplus(x)]
assert not {"numba", "scipy"} & set(sys.modules), "with a warm cache"
"""


def test_import_loads_no_compiler() -> None:
    for name in OURS:
        ufunc_of(name, "float64")  # fills the cache
    subprocess.run([sys.executable, "-c", CHILD], check=True, timeout=120)
