"""Ufuncs of our own: ufuncs in all that NumPy promises, made at first use, and the same bits for every layout."""

from __future__ import annotations

import itertools
import subprocess
import sys
import warnings

import numpy as np
import pytest
from numpy.lib import introspect

import tapegrad as tg
from tapegrad.forward import ufuncs
from tapegrad.forward.ufuncs import Function
from tapegrad.ops.table.op import op_table, xp
from tests.cases import oracle

_ALL = {name: op for name, op in op_table.items() if isinstance(op.forward, Function) and op.formula is not None}
OURS, _OF_TWO = ({name: op.forward for name, op in _ALL.items() if len(op.operands) == n} for n in (1, 2))
OF_TWO = {name: forward for name, forward in _OF_TWO.items() if isinstance(forward.other, np.ufunc)}
each = pytest.mark.parametrize(("name", "dtype"), [*itertools.product(OURS, ["float64", "float32"])])


def ufunc_of(name: str, dtype: str) -> np.ufunc:
    made = OURS[name].ufunc(dtype)
    assert isinstance(made, np.ufunc)
    return made


def data(name: str, dtype: str, n: int = 1000) -> np.ndarray:
    low = {"log": 0.01, "log1p": -0.99, "sqrt": 0.01, "rsqrt": 0.01, "logit": 0.01, "erfinv": -0.99}.get(name, -9)
    high = {"logit": 0.99, "erfinv": 0.99}.get(name, 9)
    return np.random.default_rng(3).uniform(low, high, n).astype(dtype)


def test_there_are_some() -> None:
    names = (
        "exp expm1 log log1p sqrt sin cos tan sinh cosh tanh sigmoid softplus erf rsqrt logit gelu silu sinc trigamma"
    )
    assert set(OURS) >= set(names.split())
    assert set(OF_TWO) == {"atan2", "hypot", "nextafter"}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", OF_TWO)
def test_of_two_operands(name: str, dtype: str) -> None:
    """They are precise, NumPy's at special points, and the same bits for all layouts."""
    ufunc, other = OF_TWO[name].ufunc(dtype), OF_TWO[name].other
    rng, info = np.random.default_rng(4), np.finfo(dtype)
    x, y = (np.ldexp(rng.uniform(-1, 1, 3000), rng.integers(-30, 30, 3000)).astype(dtype) for _ in range(2))
    out = ufunc(x, y)
    precise = other(x.astype(np.longdouble), y.astype(np.longdouble))
    assert np.all(abs(out - precise) <= 1.5 * info.eps * abs(precise))
    np.testing.assert_array_equal(ufunc(x[::-3], y[::-3]), out[::-3])
    np.testing.assert_array_equal(ufunc(x[5:], y[5:]), out[5:])
    np.testing.assert_array_equal(ufunc(x, y[7]), ufunc(x, np.full_like(y, y[7])))
    big, tiny, least = info.max, info.tiny, info.smallest_subnormal
    points = [0, 1, np.inf, big, 0.7 * big, 1e-3 * big, tiny, 3 * tiny, least, 2 * least, 3.3]
    special = np.array([*points, *(-point for point in points), np.nan], dtype)
    a, b = np.meshgrid(special, special)
    with np.errstate(all="ignore"):
        out, expected = ufunc(a, b), other(a, b)
        np.testing.assert_array_equal(ufunc(a.ravel(), b.ravel()), out.ravel())
    np.testing.assert_allclose(out, expected, rtol=2 * info.eps, atol=least)
    np.testing.assert_array_equal(np.signbit(out)[out == out], np.signbit(expected)[out == out])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
def test_divisions(name: str, dtype: str) -> None:
    """They are NumPy's to the last bit, also where a quotient is rounded up to an integer, large, or not finite."""
    rng = np.random.default_rng(4)
    points = np.array([0, np.inf, np.nan, 1, 3, 0.1, 2.5, 1e-40, np.finfo(dtype).max], dtype)
    a, b = np.meshgrid(*[np.concatenate([points, -points])] * 2)
    sizes = [rng.standard_normal(20_000) * 10.0 ** rng.integers(-5, 6, 20_000) for _ in range(2)]
    x = np.concatenate([a.ravel(), sizes[0], np.arange(-5000, 5000) * 0.1, rng.integers(-50, 50, 2000)]).astype(dtype)
    y = np.concatenate([b.ravel(), sizes[1], np.full(10_000, 0.1), rng.integers(-5, 5, 2000)]).astype(dtype)
    with np.errstate(all="ignore"):
        out, expected = op_table[name].forward(x, y), getattr(np, name)(x, y)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(np.signbit(out)[out == out], np.signbit(expected)[out == out])


def test_a_length_that_overflows() -> None:
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        tg.hypot(tg.tensor([1e308, 1.7e308]), tg.tensor([0.0, 1.7e308]))
    with np.errstate(all="raise", under="ignore"):  # NumPy's loops for some CPUs say that 0 underflows
        assert tg.hypot(tg.tensor([np.inf, np.nan]), tg.tensor([1.0, 2.0])).tolist()[0] == np.inf
        tg.atan2(tg.tensor([0.0, 1e308, 1e-308]), tg.tensor([0.0, -1e308, 1e308]))


@each
def test_is_a_ufunc(name: str, dtype: str) -> None:
    ufunc = ufunc_of(name, dtype)
    assert (ufunc.__name__, ufunc.nin, ufunc.nout, ufunc.identity) == (name, 1, 1, None)
    x = data(name, dtype, 24)
    expected = oracle(op_table[name], [x], {})
    out = ufunc(x)
    assert out.dtype == dtype
    lost = np.finfo(dtype).eps * {"gelu": 2, "gelu_tanh": 9, "erfinv": 9}.get(name, 0)  # near 1
    steep = {"ndtr": 100, "erfinv": 100, "log_ndtr": 100}.get(name, 30)  # what is rounded is multiplied by a square
    np.testing.assert_allclose(out, expected, rtol=steep * np.finfo(dtype).eps, atol=lost)
    single = ufunc(x[0])
    assert type(single) is x.dtype.type
    assert single == out[0]
    assert type(ufunc(x[0].reshape(()))) is x.dtype.type
    assert ufunc(np.empty((0, 3), dtype)).shape == (0, 3)
    masked = np.full(24, 7, dtype)
    assert ufunc(x, out=masked, where=x > 1) is masked
    np.testing.assert_array_equal(masked, np.where(x > 1, out, 7))
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
    x = data(name, dtype)
    expected = ufunc(x)
    for first in (0, 1, 7):
        for length in (1, 2, 5, 8, 9, 17, 127, 255, 256, 257, 700):
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


def told(function: np.ufunc, x: np.ndarray) -> set[str]:
    """Return the errors that NumPy notices while a ufunc computes, in its words."""
    found = set()
    for kind in ("invalid", "divide", "over", "under"):
        message = ""
        with np.errstate(all="ignore"), np.errstate(**{kind: "raise"}):
            try:
                function(x)
            except FloatingPointError as error:
                message = str(error)
        if message:
            found.add(message.partition(" encountered in")[0])
    return found


@each
def test_float_errors(name: str, dtype: str) -> None:
    """NumPy hears of the errors that it would find itself, wherever the number stands, and of nothing else."""
    ufunc = ufunc_of(name, dtype)
    info = np.finfo(dtype)
    inf, large = np.inf, 0.9 * info.max
    quiet = [np.nan, 0.0, -0.0, 1.0, 0.5, 3.0, *{"log": [1e-300, inf], "sqrt": [large, inf]}.get(name, [])]
    if name in ("sin", "cos", "tan", "tanh", "erf", "sigmoid", "softplus"):
        quiet += [large, -large, info.tiny, -info.tiny, info.smallest_subnormal, 1e3, -1e3]
    with np.errstate(all="ignore"):
        if name not in ("log", "sqrt") and not np.isnan(ufunc(np.array(inf, dtype))):
            quiet.append(inf)
    if name == "logit":
        quiet = [np.nan, 0.5, 0.25]
    subnormal = -740.0 if dtype == "float64" else -100.0  # its exponential; what rounds to 0 is no error
    wrong = {
        "exp": [1e3, subnormal], "expm1": [1e3], "sinh": [1e3, -1e3], "cosh": [1e3, -1e3],
        "log": [0.0, -0.0, -1.0, -inf], "log1p": [-1.0, -1.5, -inf], "sqrt": [-1.0, -inf],
        "sin": [inf, -inf], "cos": [inf, -inf], "tan": [inf, -inf],
        "rsqrt": [0.0, -1.0, -inf], "logit": [0.0, 1.0, -1.0, 2.0, inf],
    }.get(name, [])  # fmt: skip
    with np.errstate(all="ignore"):
        calm = np.array(quiet, dtype)
        calm = calm[(calm != 0) | (name not in ("log", "rsqrt"))]
    for n in (1, 2, 40, 300):
        assert told(ufunc, np.resize(calm, n)) == told(ufunc, np.resize(calm, 2 * n)[::2]) == set()
    for bad in wrong:
        expected = told(OURS[name].other, np.array([bad], dtype))
        assert len(expected) == 1
        for n, place in ((1, 0), (40, 39), (300, 7), (700, 600)):
            x = np.resize(calm, n)
            x[place] = bad
            assert told(ufunc, x) == told(ufunc, np.repeat(x, 2)[::2]) == expected
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        ufunc(np.array([inf, -inf, *wrong], dtype))


@pytest.mark.parametrize("wide", [False, True])
def test_choice(wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's loops for AVX-512 are used where they are the faster ones, and no others."""
    monkeypatch.setattr(ufuncs, "has_wide_loop", lambda function, dtype: wide)
    for name, function in OURS.items():
        if function.formula:
            continue  # NumPy has no loop for it
        fresh = Function(name, function.other, function.dtypes, function.errors)
        for dtype in ("float32", "float64"):
            ours = not wide or dtype in function.dtypes
            chosen = fresh.of(np.dtype(dtype))
            assert chosen.__name__ == (name if ours else getattr(np, name).__name__)
            assert (chosen is function.other) == (not ours)
        assert fresh.of(np.dtype("float16")) is function.other


def test_wide_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy says of its own loops for what they are made."""
    double, single = np.dtype("float64"), np.dtype("float32")
    loops = introspect.opt_func_info(func_name="^log1p$")["log1p"]
    assert {"dd", "ff"} <= set(loops), "NumPy writes signatures in another way"
    wide = "AVX512" in loops["dd"]["current"] or loops["dd"]["current"] == "X86_V4"
    assert ufuncs.has_wide_loop(np.log1p, double) == ufuncs.has_wide_loop(np.log1p, single) == wide
    for target, expected in (("AVX512_SKX", True), ("X86_V4", True), ("X86_V3", False), ("baseline(SSE)", False)):
        known = {"log1p": {"dd": {"current": target}, "ff": {"current": "AVX2"}}}
        monkeypatch.setattr(introspect, "opt_func_info", lambda func_name, known=known: known)
        assert ufuncs.has_wide_loop(np.log1p, double) == expected
        assert not ufuncs.has_wide_loop(np.log1p, single)
        assert not ufuncs.has_wide_loop(np.log, double)
        assert not ufuncs.has_wide_loop(OURS["erf"].other, double)


@pytest.mark.parametrize("name", ["sin", "cos", "sigmoid"])
def test_other_dtypes(name: str) -> None:
    for dtype in ("complex128", "complex64", "float16", "longdouble"):
        x = np.linspace(-2, 2, 9).astype(dtype)
        out = OURS[name](x)
        assert out.dtype == x.dtype
        np.testing.assert_allclose(out, oracle(op_table[name], [x], {}), rtol=1e-2 if dtype == "float16" else 1e-6)


def test_tensors_use_them() -> None:
    for name in OURS:
        if "float64" in OURS[name].dtypes:
            x = data(name, "float64", 50)
            function = getattr(xp, name)
            np.testing.assert_array_equal(function(tg.tensor(x)).numpy(), ufunc_of(name, "float64")(x))


CHILD = """
import sys
import tapegrad as tg
assert not {"numba", "llvmlite", "scipy", "numpy.random", "hashlib", "dataclasses"} & set(sys.modules), "at import"
x = tg.tensor([1.0, 2.0])
y = [tg.sin(x), tg.sigmoid(x), tg.erf(x), tg.nn.functional.softplus(x)]
assert not {"numba", "scipy"} & set(sys.modules), "with a warm cache"
"""


def test_import_loads_no_compiler() -> None:
    for name in OURS:
        ufunc_of(name, "float64")  # fills the cache
    subprocess.run([sys.executable, "-c", CHILD], check=True, timeout=120)


def test_functions_of_scipy_are_loaded_without_its_package() -> None:
    """The package takes a third of a second; it can be imported later, and has the same functions."""
    pytest.importorskip("scipy", minversion="1.14", reason="older ones have no such module")
    child = """
import sys
import tapegrad as tg
from tapegrad.forward.scipy import scipy_function
assert tg.special.i0(tg.tensor([1.5])) > 1
assert "scipy.special" not in sys.modules
import scipy.special
assert scipy.special.i0 is scipy_function("i0") and scipy.special.spence is scipy_function("spence")
"""
    subprocess.run([sys.executable, "-c", child], check=True, timeout=120)
