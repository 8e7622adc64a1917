"""The entry of programs: threads that share the work, errors, references, memory, and calls at once."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
import tracemalloc
import weakref
from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler import cache
from tapegrad.program.entry import Input, Output, Variant, make_entry
from tapegrad.runtime import blocking
from tapegrad.runtime import threads as threads_of_the_library
from tapegrad.runtime.memory import INTERPRETS
from tapegrad.tape.layout import layout_of
from tests.machine_code import (
    ONE,
    Pair,
    compiled,
    copies,
    entry_of,
    form,
    is_missed,
    missed,
    numbers,
    of_squares,
    pointers,
)
from tests.several_threads import in_threads

ROOT = Path(tg.__file__).parents[1]
FILES = [
    str(Path(__file__).with_name(name)) for name in ("test_entry.py", "test_entry_trees.py", "test_entry_calls.py")
]


# ---- stages


def of_blocks(n, block, code=None, **options):
    """Return the variant of the sum of squares of n numbers, by blocks, and of twice the numbers."""
    count = -(-n // block)
    text = f"""
define void @f(ptr noalias %inputs, ptr noalias %outputs, ptr noalias %scratch, i64 %stage, i64 %first, i64 %end) {{
  {pointers(1, 2)}
  %is_last = icmp eq i64 %stage, 1
  br i1 %is_last, label %combine, label %blocks
blocks:
  %b = phi i64 [%first, %0], [%nb, %stored]
  %low = mul i64 %b, {block}
  %up = add i64 %low, {block}
  %short = icmp ugt i64 %up, {n}
  %high = select i1 %short, i64 {n}, i64 %up
  br label %turn
turn:
  %i = phi i64 [%low, %blocks], [%next, %turn]
  %sum = phi double [0.0, %blocks], [%more, %turn]
  %xp = getelementptr double, ptr %i0, i64 %i
  %x = load double, ptr %xp
  %square = fmul double %x, %x
  %more = fadd double %sum, %square
  %gp = getelementptr double, ptr %o1, i64 %i
  %twice = fadd double %x, %x
  store double %twice, ptr %gp
  %next = add i64 %i, 1
  %again = icmp ult i64 %next, %high
  br i1 %again, label %turn, label %stored
stored:
  %pp = getelementptr double, ptr %scratch, i64 %b
  store double %more, ptr %pp
  %nb = add i64 %b, 1
  %others = icmp ult i64 %nb, %end
  br i1 %others, label %blocks, label %done
combine:
  %k = phi i64 [0, %0], [%nk, %combine]
  %total = phi double [0.0, %0], [%all, %combine]
  %qp = getelementptr double, ptr %scratch, i64 %k
  %part = load double, ptr %qp
  %all = fadd double %total, %part
  %nk = add i64 %k, 1
  %left = icmp ult i64 %nk, {count}
  br i1 %left, label %combine, label %written
written:
  store double %all, ptr %o0
  br label %done
done:
  ret void
}}"""
    code = code or cache.address_of_ir("blocks", text, lambda: text, "f")
    return Variant(
        code, [Input(np.ndarray, form(n))], [form(), form(n)], scratch=8 * count, stages=[count, 1], **options
    )


@pytest.mark.parametrize("n", [1, 100, 12_345])
def test_bits_do_not_depend_on_the_number_of_threads(n):
    x = np.random.default_rng(n).standard_normal(n)
    call, before, found = entry_of(of_blocks(n, 100)), tg.get_num_threads(), set()
    try:
        for threads in (1, 2, 3, 4):
            tg.set_num_threads(threads)
            for _ in range(5):
                value, twice = call(x)
                np.testing.assert_array_equal(twice, 2 * x)
                found.add(value.hex() if hasattr(value, "hex") else float(value).hex())
    finally:
        tg.set_num_threads(before)
    assert len(found) == 1
    np.testing.assert_allclose(value, (x * x).sum(), rtol=1e-12)


def test_an_error_between_stages_is_raised(monkeypatch):
    """As by a signal's handler; arrays are dropped."""
    call, x = entry_of(of_blocks(1000, 100)), np.ones(1000)
    call(x)
    before = sys.getrefcount(x)
    with monkeypatch.context() as patch:
        patch.setattr(threads_of_the_library, "_Job", lambda *args: 1 / 0)
        patch.setattr(blocking, "division", blocking.division._replace(threads=2))
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                call(x)
    assert sys.getrefcount(x) == before
    assert call(x)[0] == 1000.0


def test_threads_call_one_entry_with_stages():
    call, wrong = entry_of(of_blocks(5000, 100)), []

    def work(number):
        x = np.full(5000, float(number))
        wrong.extend(number for _ in range(50) if call(x)[0] != 5000 * number * number)

    in_threads(4, work)
    assert not wrong


# ---- errors, references, threads


def test_errors_of_the_fallback_are_raised():
    def fallback(*args):
        raise ValueError(f"{len(args)} arguments")

    call = entry_of(of_squares(3), fallback=fallback)
    for _ in range(3):
        with pytest.raises(ValueError, match=r"^2 arguments$"):
            call(1, 2)
        assert call(np.ones(3))[0] == 3.0
    with pytest.raises(TypeError, match="keyword"):
        call(x=1)


def test_memory_errors_are_raised(monkeypatch):
    """The array cannot be made, the others are dropped."""
    n = 1 << 46
    variant = Variant(compiled("ret void"), [Input(np.ndarray, form(3))], [form(2), form(), form(n)])
    call = entry_of(variant)
    x = np.ones(3)
    before = sys.getrefcount(x)
    for _ in range(3):
        with pytest.raises(MemoryError):
            call(x)
    assert sys.getrefcount(x) == before
    with pytest.raises(MemoryError):
        entry_of(Variant(compiled("ret void"), [Input(np.ndarray, form(3))], [form(2)], scratch=8 * n))(x)


def test_no_reference_is_lost_or_kept():
    flag = np.array(True)
    inputs = [Input(np.ndarray, form(3)), Input(tg.Tensor, form()), Input(float, form()), Input(int, layout_of(1))]
    outputs, sizes = [form(3), form(), form(), form(dtype=np.int64)], [24, 8, 8, 8]
    guarded = Variant(
        copies([*sizes, 1]), [*inputs, Input(np.ndarray, form(dtype=bool))], outputs, guards=[flag], as_tensors=True
    )
    call = entry_of(guarded)
    x, t, number, integer = np.ones(3), tg.tensor(2.0), 3.5, 10**12
    things = [
        x,
        t,
        t._data,
        t._layout,
        number,
        integer,
        flag,
        x.dtype,
        layout_of(np.float64(1)),
        form(3),
        call,
        guarded,
    ]
    things += [guarded.held, float, np.float64, tg.Tensor, missed]
    tree = {"a": [Output(0), Pair(Output(0), [])], "b": (None, t)}
    trees = entry_of(numbers(1, [[ONE, (3, "word")]], result=tree, keywords={"more": {"key": 10**12}}))
    things += [trees, t]
    cases = [
        lambda: trees([np.float64(1), (3, "word")], more={"key": 10**12}),
        lambda: trees([np.float64(1), (3, "wor" + "d" * len(things[:1]))], more={"key": 10**12}),
        lambda: trees([np.float64(1), (4, "word")], more={"key": 10**12}),
        lambda: trees([np.float64(1), (3, "word")], more={"other": 10**12}),
        lambda: call(x, t, number, integer, flag),
        lambda: call(x, t, number, integer, np.array(False)),
        lambda: call(x, t, number, 1.0, flag),
        lambda: call(x, t, number, 10**30, flag),
        lambda: call(x, t, number),
        lambda: call(x, t, number, integer, flag=flag),
    ]
    for case in cases:
        for _ in range(3):  # variants keep up to two arrays of each output
            case()
        gc.collect()
        before = [sys.getrefcount(thing) for thing in things]
        for _ in range(50):
            case()
        gc.collect()
        assert [sys.getrefcount(thing) for thing in things] == before
    results, fresh = cases[4](), tuple([tg.zeros(3) for _ in range(4)])
    for some in (results, fresh):
        counts = [(sys.getrefcount(one), sys.getrefcount(one._data)) for one in some]
        if some is results:  # the variant keeps the first one, which is no number: see test_kept_arrays.py
            counts[0] = (counts[0][0], counts[0][1] - 1)
        assert counts == [(sys.getrefcount(one), sys.getrefcount(one._data)) for one in fresh]


@pytest.mark.skipif(INTERPRETS, reason="the interpreter notes where memory is")
@pytest.mark.parametrize("n", [3, 600, 20_000])
def test_no_memory_is_kept(n):
    call, x = entry_of(of_squares(n)), np.ones(n)
    tensors, t = entry_of(of_squares(n, as_tensors=True)), tg.ones(n)

    def use():
        for _ in range(200):
            call(x), call(x[1:]), tensors(t), tensors(x)

    use()
    tracemalloc.start()
    try:
        use()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        use()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 8000  # an object for each call would be more
    finally:
        tracemalloc.stop()


def test_a_cycle_through_the_fallback_is_collected():
    class Function:
        def __init__(self):
            self.call, self.dispatch = make_entry(self.fallback, [of_squares(3)])

        def fallback(self, *args):
            return len(args)

    function = Function()
    died = weakref.ref(function)
    assert function.call(1, 2) == 2
    del function
    gc.collect()
    assert died() is None or INTERPRETS


@pytest.mark.parametrize("is_long", [False, True])
def test_variants_that_are_removed_during_a_call_live_to_its_end(is_long):
    outs = []

    @ctypes.CFUNCTYPE(None, *[ctypes.POINTER(ctypes.c_void_p)] * 3)
    def code(inputs, outputs, scratch):
        dispatch.variants, dispatch.fallback = (), missed
        gc.collect()
        outs.append(call(1))

    address = ctypes.cast(code, ctypes.c_void_p).value
    variant = Variant(address, [Input(np.ndarray, form(3))], [form(600)] * 2, scratch=5000, is_long=is_long)
    call, dispatch = make_entry(lambda *args: None, [variant])
    died = weakref.ref(variant.data)
    del variant
    assert [one.shape for one in call(np.ones(3))] == [(600,)] * 2
    assert len(outs) == 1
    assert is_missed(outs[0])
    assert died() is None
    assert is_missed(call(np.ones(3)))


@pytest.mark.parametrize("is_long", [False, True])
def test_threads_call_one_entry_at_once(is_long):
    n, count = 700, 4  # scratch memory that the variant keeps
    call, dispatch = make_entry(missed, [of_squares(n, is_long=is_long)])
    wrong, start = [], threading.Barrier(count + 1)

    def work(number):
        x = np.full(n, float(number))
        start.wait()
        for _ in range(30 if INTERPRETS else 2000):
            value, gradient = call(x)
            if value != n * number * number or (gradient != 2.0 * number).any():
                wrong.append((number, value))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    start.wait()
    for _ in range(200):
        dispatch.variants = (of_squares(n, is_long=is_long),)
    for thread in threads:
        thread.join()
    assert not wrong


def test_calls_go_deep():
    """A compiled function may call itself while it is traced."""
    depth = []

    def fallback(level):
        depth.append(level)
        return call(level - 1) if level else np.float64(0)

    call = entry_of(of_squares(3), fallback=fallback)
    assert call(100) == 0.0
    assert len(depth) == 101
    with pytest.raises(RecursionError):
        call(10**6)


@pytest.mark.skipif(INTERPRETS, reason="it is on")
def test_the_interpreter_checks_every_access():
    environment = os.environ | {"TAPEGRAD_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    names = (
        "value_and_gradient or comes_back or every_dtype or guards or python_numbers or many_inputs or containers "
        "or keywords or constants or outside or bits_do_not"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-x", "-p", "no:cacheprovider", *FILES, "-k", names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-3000:]
