"""The intrinsics, and what compile_function accepts and refuses."""

import ctypes
import math
import os
import subprocess
import sys
from types import SimpleNamespace

import llvmlite.binding as llvm
import numpy as np
import pytest

from tapegrad.compiler import assembly, cache, frontend, jit
from tapegrad.compiler.elements import as_pointer, load, load_at, store, store_at
from tapegrad.compiler.intrinsics import call, call_void, clz, external, memcpy, memset, stack
from tapegrad.compiler.object_files import undefined_symbols

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "float32", "float64", "complex64", "complex128"]
xp = SimpleNamespace()  # a rule's xp, always bound to something else


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    """Keep the kernels of these tests out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield


def c_function(function, *, bind=None):
    """Compile and return a ctypes function of int64."""
    count = function.__code__.co_argcount
    address = cache.address_of("test", function, ("int64",) * count, bind)
    return ctypes.CFUNCTYPE(*[ctypes.c_int64] * (count + 1))(address)


def address(array):
    """Return where an array's elements begin."""
    return array.ctypes.data


def copier(source, target):
    def kernel(a, out, n):
        x, y = as_pointer(a, source), as_pointer(out, target)
        for i in range(n):
            store(y, i, load(x, i))
        return n

    return kernel


def values(dtype):
    """Return nine values that every dtype here can hold, with signs and imaginary parts."""
    numbers = np.array([0, 1, 2, 3, 100, 1, 0, 7, 127])
    if np.dtype(dtype).kind in "ifc":
        numbers = numbers * np.array([1, -1] * 4 + [1])
    if np.dtype(dtype).kind == "c":
        numbers = numbers + 1j * numbers[::-1]
    return numbers.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_load_and_store_keep_values(dtype):
    x = values(dtype)
    out = np.zeros_like(x)
    assert c_function(copier(dtype, dtype))(address(x), address(out), len(x)) == len(x)
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("complex128", "float64"),
        ("complex64", "float32"),
        ("complex128", "float32"),
        ("float64", "complex128"),
        ("float32", "complex128"),
        ("complex128", "complex64"),
        ("float64", "float32"),
        ("int64", "float64"),
        ("bool", "float64"),
        ("float64", "bool"),
        ("int8", "complex64"),
    ],
)
def test_store_casts(source, target):
    x = values(source)
    out = np.zeros(len(x), target)
    c_function(copier(source, target))(address(x), address(out), len(x))
    real = np.dtype(source).kind == "c" and np.dtype(target).kind != "c"
    np.testing.assert_array_equal(out, (x.real if real else x).astype(target))


@pytest.mark.parametrize("dtype", DTYPES)
def test_access_by_byte_offset(dtype):
    def kernel(a, out, n, step):
        for i in range(n):
            store_at(out, (n - 1 - i) * 16, load_at(a, i * step, dtype), dtype)
        return 0

    wide = np.repeat(values(dtype), 3)
    x = wide[::-3]
    out = np.zeros(16 * len(x), "uint8")
    c_function(kernel)(address(x), address(out), len(x), x.strides[0])
    np.testing.assert_array_equal(np.ndarray(len(x), dtype, out, strides=16), x[::-1])


def test_unaligned_addresses():
    raw = np.zeros(8 * 10 + 1, "uint8")
    x = np.ndarray(10, "float64", raw, offset=1)
    x[:] = np.arange(10)
    out = np.zeros(10)
    c_function(copier("float64", "float64"))(raw.ctypes.data + 1, address(out), 10)
    np.testing.assert_array_equal(out, x)


def test_calls_by_address():
    def inner(a, b, c):
        store(as_pointer(a, "int64"), 0, b + 10 * c)
        return b - c

    target = cache.address_of("inner", inner)

    def outer(f, a):
        call_void(f, a, 1, 2)
        return call(f, a + 8, 3, 4)

    out = np.zeros(2, "int64")
    assert c_function(outer)(target, address(out)) == -1
    assert out.tolist() == [21, 43]


@pytest.mark.parametrize("x", [0, 1, 2, 255, 256, 2**62, -1])
def test_clz(x):
    assert c_function(lambda x: clz(x))(x) == 64 - (x & (2**64 - 1)).bit_length()


def test_memory_functions():
    def kernel(a, b, n):
        memcpy(b, a, n)
        memset(a, n)
        return 0

    a, b = np.arange(1, 101, dtype="uint8"), np.zeros(100, "uint8")
    c_function(kernel)(address(a), address(b), 90)
    assert a.tolist() == [0] * 90 + list(range(91, 101))
    assert b.tolist() == [*range(1, 91)] + [0] * 10


def test_stack():
    def kernel(n, out):
        scratch = stack(512)
        p, q = as_pointer(scratch, "int64"), as_pointer(out, "int64")
        for i in range(n):
            store(p, i, i * i)
        for i in range(n):
            store(q, i, load(p, n - 1 - i))
        return scratch % 64

    out = np.zeros(60, "int64")
    assert c_function(kernel)(60, address(out)) == 0
    np.testing.assert_array_equal(out, np.arange(60)[::-1] ** 2)


def elementwise(rule, dtype):
    def kernel(a, b, out, n):
        x, y, z = as_pointer(a, dtype), as_pointer(b, dtype), as_pointer(out, dtype)
        for i in range(n):
            store(z, i, rule(load(x, i), load(y, i)))
        return 0

    return kernel


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_division_is_numpys(dtype):
    parts = [0.0, -0.0, 1.5, -3.0, math.inf, math.nan]
    numbers = np.array([complex(a, b) for a in parts for b in parts], dtype)
    a, b = (m.ravel() for m in np.meshgrid(numbers, numbers))
    out = np.zeros_like(a)
    c_function(elementwise(lambda a, b: a / b, dtype))(address(a), address(b), address(out), len(a))
    with np.errstate(all="ignore"):
        expected = a / b
    np.testing.assert_allclose(out.real, expected.real, rtol=1e-6 if dtype == "complex64" else 1e-14)
    np.testing.assert_allclose(out.imag, expected.imag, rtol=1e-6 if dtype == "complex64" else 1e-14)


def test_real_division_does_not_raise():
    a, b, out = np.array([1.0, -1.0, 0.0, 3.0]), np.array([0.0, 0.0, 0.0, 2.0]), np.zeros(4)

    def halve(a, b):
        a /= b
        return a

    c_function(elementwise(halve, "float64"))(address(a), address(b), address(out), 4)
    np.testing.assert_array_equal(out, [np.inf, -np.inf, np.nan, 1.5])


def square(x):
    return x * x


def test_helpers_namespaces_and_binding():
    space = SimpleNamespace(twice=lambda x: x + x, square=square, pi=3.0)

    def kernel(a, b, c):
        return xp.twice(a) + xp.square(b) + square(c) + (xp.pi > 2)

    assert c_function(kernel, bind={"xp": space})(1, 2, 3) == 2 + 4 + 9 + 1
    assert c_function(kernel, bind={"xp": space, "square": lambda x: 0})(1, 2, 3) == 2 + 4 + 0 + 1


def test_loops_are_vectorised():
    """A vector instruction of four or more doubles stands in the code of a loop over contiguous arrays."""
    kernel = elementwise(lambda a, b: a * b + a, "float64")
    ir, _ = frontend.lower(kernel, ("int64",) * 4, {}, jit.SYMBOL, jit.target_machine())
    code = assembly.assemble(ir, jit.SYMBOL, jit.target_machine())
    assert b"tapegrad_kernel" in code
    if "avx2" not in llvm.get_host_cpu_features() or not llvm.get_host_cpu_features()["avx2"]:
        pytest.skip("looks for AVX instructions")
    module = llvm.parse_assembly(ir)
    machine = jit.target_machine()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    assert any(f"<{width} x double>" in str(module) for width in (4, 8))


def test_code_that_may_raise_is_refused():
    def kernel(a):
        if a > 3:
            raise ValueError("no")
        return a

    with pytest.raises(jit.JitError, match="may raise a Python exception"):
        jit.compile_function(kernel, ("int64",))


def test_undefined_symbol_is_refused():
    foreign = external("no_such_function", 1)

    with pytest.raises(jit.JitError, match="no_such_function"):
        jit.compile_function(lambda x: foreign(x), ("int64",))


def test_libm_is_found_by_name():
    def kernel(a, out):
        store(as_pointer(out, "float64"), 0, math.erf(load(as_pointer(a, "float64"), 0)))
        return 0

    assert undefined_symbols(jit.compile_function(kernel, ("int64", "int64"))) <= {"erf"}
    x, out = np.array([0.5]), np.zeros(1)
    c_function(kernel)(address(x), address(out))
    assert out[0] == pytest.approx(math.erf(0.5), rel=1e-15)


def test_one_symbol():
    code = jit.compile_function(lambda a: a + 1, ("int64",))
    assert undefined_symbols(code) == set()
    assert code.count(b"tapegrad_kernel") == 1


def test_an_intrinsic_is_not_for_python():
    with pytest.raises(TypeError, match=r"load\(\) exists only inside compiled kernels"):
        load(1, 2)


def test_numba_may_be_disabled(tmp_path):
    program = (
        "import numba, tapegrad as tg\n"
        "x = tg.tensor([1.0, 2.0], requires_grad=True)\n"
        "(tg.sin(x) / x).sum().backward()\n"
        "print(x.grad.tolist(), numba.config.DISABLE_JIT)\n"
    )
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "TAPEGRAD_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
    grads = [math.cos(x) / x - math.sin(x) / x**2 for x in (1.0, 2.0)]
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("] 1\n")
    assert eval(done.stdout.rpartition(" ")[0]) == pytest.approx(grads)


def test_an_attribute_is_marked_at_the_function_whatever_its_parameters_say():
    text = (
        'define internal noundef i64 @"a(b)"(ptr noalias captures(none) %"x)", ptr initializes((0, 8)) %1) '
        "local_unnamed_addr #0 {\n"
        "define void @plain() {\ndeclare i64 @other(i64)"
    )
    first, second, third = assembly.marked(text, lambda name: {"a(b)": "alwaysinline"}.get(name, "")).split("\n")
    assert first.endswith("%1) local_unnamed_addr alwaysinline #0 {")
    assert (second, third) == ("define void @plain() {", "declare i64 @other(i64)")


def test_long_modules_of_tiles_repeat_no_long_function():
    """What a long module calls at several places is compiled once; in a short one it is a part of each caller."""

    def code(lines, calls):
        body = "\n".join(f"store volatile i64 {number}, ptr %p" for number in range(lines))
        called = "\n".join("call void @own(ptr %p)" for _ in range(calls))
        ir = (
            f"define void @own(ptr %p) {{\n{body}\nret void\n}}\n"
            f"define i64 @{jit.SYMBOL}(ptr %p) {{\n{called}\nret i64 0\n}}\n"
            f'!{assembly.MARK} = !{{!0}}\n!0 = !{{!"tiles"}}\n'
        )
        return len(assembly.assemble(ir, jit.SYMBOL, jit.target_machine()))

    assert code(2000, 3) < 1.5 * code(2000, 1)
    assert code(1000, 3) > 2.5 * code(1000, 1)
