"""The entry of programs: which arguments machine code gets, what comes back, and what is left to Python."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import modes
from tapegrad.compiler import cache
from tapegrad.program.entry import Input, Output, Variant, make_entry
from tapegrad.runtime import blocking
from tapegrad.runtime import threads as threads_of_the_library
from tapegrad.runtime.memory import INTERPRETS
from tapegrad.tape.layout import contiguous_layout, layout_of

ROOT = Path(tg.__file__).parents[1]
MISSED = "Python was called"

HEAD = "define void @f(ptr noalias %inputs, ptr noalias %outputs, ptr noalias %scratch)"


def compiled(body):
    """Return the address of the machine code of a function with this body."""
    text = f"{HEAD} {{\n{body}\n}}\ndeclare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
    return cache.address_of_ir("test", text, lambda: text, "f")


def pointers(inputs, outputs):
    """Return the text that loads the first pointers of both tables, as %i0, ... and %o0, ..."""
    lines = []
    for kind, table, count in (("i", "inputs", inputs), ("o", "outputs", outputs)):
        for number in range(count):
            lines += [
                f"%{kind}p{number} = getelementptr ptr, ptr %{table}, i64 {number}",
                f"%{kind}{number} = load ptr, ptr %{kind}p{number}",
            ]
    return "\n".join(lines)


def copies(sizes):
    """Return machine code that copies each input, of so many bytes, to the output of its number."""
    lines = [pointers(len(sizes), len(sizes))]
    for number, size in enumerate(sizes):
        lines.append(f"call void @llvm.memcpy.p0.p0.i64(ptr %o{number}, ptr %i{number}, i64 {size}, i1 false)")
    return compiled("\n".join([*lines, "ret void"]))


def squares(n):
    """Return machine code of the sum of squares of n numbers, and its gradient; scratch holds the squares."""
    return compiled(f"""
  {pointers(1, 2)}
  br label %first
first:
  %i = phi i64 [0, %0], [%next, %first]
  %xp = getelementptr double, ptr %i0, i64 %i
  %x = load double, ptr %xp
  %sp = getelementptr double, ptr %scratch, i64 %i
  %square = fmul double %x, %x
  store double %square, ptr %sp
  %gp = getelementptr double, ptr %o1, i64 %i
  %twice = fadd double %x, %x
  store double %twice, ptr %gp
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {n}
  br i1 %more, label %first, label %second
second:
  %j = phi i64 [0, %first], [%after, %second]
  %sum = phi double [0.0, %first], [%total, %second]
  %tp = getelementptr double, ptr %scratch, i64 %j
  %term = load double, ptr %tp
  %total = fadd double %sum, %term
  %after = add i64 %j, 1
  %again = icmp ult i64 %after, {n}
  br i1 %again, label %second, label %end
end:
  store double %total, ptr %o0
  ret void
""")


def form(*shape, dtype=np.float64):
    return contiguous_layout(shape, np.dtype(dtype))


def of_squares(n, **options):
    """Return the variant for an array, or a tensor, of n numbers."""
    kind = tg.Tensor if options.get("as_tensors") else np.ndarray
    return Variant(squares(n), [Input(kind, form(n))], [form(), form(n)], scratch=8 * n, **options)


def missed(*args, **kwargs):
    return MISSED, args, kwargs


def entry_of(*variants, fallback=missed):
    return make_entry(fallback, variants)[0]


def is_missed(out):
    return isinstance(out, tuple) and isinstance(out[0], str) and out[0] == MISSED


# ---- results


@pytest.mark.parametrize("n", [1, 3, 400, 600, 20_000])  # memory on the stack, kept by the variant, from the pool
@pytest.mark.parametrize("is_long", [False, True])
def test_value_and_gradient_of_an_array(n, is_long):
    x = np.random.default_rng(n).standard_normal(n)
    call = entry_of(of_squares(n, is_long=is_long))
    for _ in range(3):
        value, gradient = call(x)
        assert type(value) is np.float64
        np.testing.assert_allclose(value, (x * x).sum(), rtol=1e-12)
        assert type(gradient) is np.ndarray
        np.testing.assert_array_equal(gradient, 2 * x)
        assert gradient.flags.c_contiguous
        assert gradient.flags.writeable
        assert gradient.flags.aligned
        x = x + 1


def test_tensors_come_back_where_tensors_went_in():
    x = tg.tensor([1.0, 2.0, 3.0])
    value, gradient = entry_of(of_squares(3, as_tensors=True))(x)
    assert type(value) is type(gradient) is tg.Tensor
    assert value.item() == 14.0
    assert gradient.tolist() == [2.0, 4.0, 6.0]
    assert not value.requires_grad
    assert gradient.is_leaf
    weight = tg.ones(3, requires_grad=True)
    (value * (gradient * weight).sum()).backward()  # they are operands like any other
    assert weight.grad.tolist() == [28.0, 56.0, 84.0]


EVERY = ["float64", "float32", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (1, 1, 2), (0,), (2, 0)])
@pytest.mark.parametrize("as_tensors", [False, True])
def test_every_dtype_and_shape(dtype, shape, as_tensors):
    values = (np.random.default_rng(0).standard_normal(shape) * 3).astype(dtype)
    data = np.asarray(values)
    layout = layout_of(data)
    code = copies([layout.nbytes])
    kind = tg.Tensor if as_tensors else np.ndarray
    call = entry_of(Variant(code, [Input(kind, layout)], [layout], as_tensors=as_tensors, result=Output(0)))
    arguments = [tg.from_numpy(data)] if as_tensors else [data]
    if not shape:
        arguments.append(tg.from_numpy(data) + tg.zeros((), dtype=data.dtype) if as_tensors else data[()])
    for argument in arguments:
        out = call(argument)
        assert type(out) is (tg.Tensor if as_tensors else np.ndarray if shape else data.dtype.type)
        if as_tensors:
            assert out._layout is layout_of(out._data)
            out = out.numpy()
        assert out.dtype == data.dtype
        assert out.shape == shape
        np.testing.assert_array_equal(out, data)


@pytest.mark.parametrize(
    ("number", "other"), [(2.5, 2), (1.5 - 2j, 1.0), (-7, 7.0), (2**63 - 1, 2**63), (True, 1), (2.5, np.float64(2.5))]
)
def test_python_numbers(number, other):
    layout = layout_of(number)
    call = entry_of(Variant(copies([layout.nbytes]), [Input(type(number), layout)], [layout], result=Output(0)))
    assert call(number) == number
    assert call(number).dtype == layout.dtype
    assert is_missed(call(other))
    assert is_missed(call(np.array(number)))


def test_no_output_one_and_several():
    two = [Input(np.ndarray, form(1))] * 2
    code = copies([8, 8])
    x, y = np.array([3.0]), np.array([4.0])
    assert [own.tolist() for own in entry_of(Variant(code, two, [form(1)] * 2))(x, y)] == [[3.0], [4.0]]
    one = copies([8])
    assert entry_of(Variant(one, two[:1], [form(1)]))(x)[0].tolist() == [3.0]
    assert entry_of(Variant(one, two[:1], [form(1)], result=Output(0)))(x).tolist() == [3.0]
    assert entry_of(Variant(compiled("ret void"), two, []))(x, y) == ()
    assert entry_of(Variant(compiled("ret void"), [], []))() == ()


def test_many_inputs_and_outputs():
    """Their addresses have no room on the stack."""
    count = 300
    inputs, outputs = [Input(np.ndarray, form(2))] * count, [form(2)] * count
    call = entry_of(Variant(copies([16] * count), inputs, outputs))
    xs = [np.array([number, -number], float) for number in range(count)]
    for _ in range(3):
        for x, y in zip(xs, call(*xs), strict=True):
            np.testing.assert_array_equal(x, y)
    assert is_missed(call(*xs[:-1]))
    assert is_missed(call(*xs[:-1], xs[0][:1]))


def test_arguments_may_be_the_same_object_and_are_not_written_to():
    x = np.array([1.0, 2.0])
    x.flags.writeable = False
    call = entry_of(Variant(copies([16, 16]), [Input(np.ndarray, form(2))] * 2, [form(2)] * 2))
    one, other = call(x, x)
    one += 1
    assert (one.tolist(), other.tolist(), x.tolist()) == ([2.0, 3.0], [1.0, 2.0], [1.0, 2.0])


# ---- containers, keywords, constants, tensors from outside


class Pair(NamedTuple):
    first: object
    second: object


def numbers(count, arguments, result=None, **options):
    """Return the variant that returns copies of so many numbers."""
    return Variant(copies([8] * count), arguments, [form()] * count, result=result, **options)


ONE = Input(np.ndarray, form())


def test_containers():
    call = entry_of(numbers(6, [[ONE, ONE], {"a": ONE, "b": (ONE, [ONE])}, Pair(ONE, ())]))
    a, b, c, d, e, f = map(np.float64, range(6))
    for _ in range(2):
        assert call([a, b], {"a": c, "b": (d, [e])}, Pair(f, ())) == (0, 1, 2, 3, 4, 5)
    for args in (
        ((a, b), {"a": c, "b": (d, [e])}, Pair(f, ())),
        ([a], {"a": c, "b": (d, [e])}, Pair(f, ())),
        ([a, b, c], {"a": c, "b": (d, [e])}, Pair(f, ())),
        ([a, b], {"b": (d, [e]), "a": c}, Pair(f, ())),
        ([a, b], {"a": c}, Pair(f, ())),
        ([a, b], {}, Pair(f, ())),
        ([a, b], {"a": c, "c": (d, [e])}, Pair(f, ())),
        ([a, b], {"a": c, "b": (d, [e]), "c": f}, Pair(f, ())),
        ([a, b], {"a": c, "b": (d, (e,))}, Pair(f, ())),
        ([a, b], {"a": c, "b": (d, [e])}, (f, ())),
        ([a, b], {"a": c, "b": (d, [e])}, Pair(f, [])),
        ([a, b], {"a": c, "b": (d, [e])}, Pair(f, (a,))),
        ([a, b], OrderedDict({"a": c, "b": (d, [e])}), Pair(f, ())),
        ([a, "b"], {"a": c, "b": (d, [e])}, Pair(f, ())),
        ([a, b], {1: c, "b": (d, [e])}, Pair(f, ())),
        ([a, b], None, Pair(f, ())),
    ):
        assert is_missed(call(*args)), args


def test_keys_are_compared_not_their_identity():
    call = entry_of(numbers(1, [{"a long key, which is no name": ONE}]))
    assert call({"a long key, which is {} name".format("no"): np.float64(3)}) == (3,)


def test_results_in_containers():
    flag = object()
    tree = {"list": [Output(1), None], "pair": Pair(Output(0), (Output(2), flag)), "again": Output(0), 7: {}, "": []}
    call = entry_of(numbers(3, [ONE, ONE, ONE], tree))
    for _ in range(3):
        out = call(*map(np.float64, range(3)))
        assert out == {"list": [1, None], "pair": (0, (2, flag)), "again": 0, 7: {}, "": []}
        assert type(out["pair"]) is Pair
        assert out["pair"].second[1] is flag
        out["list"].append(1)
    assert entry_of(numbers(1, [ONE], 5))(np.float64(1)) == 5
    assert entry_of(numbers(0, [], [Pair(1, 2)]))() == [(1, 2)]


def test_unknown_containers_are_refused():
    for kind in (OrderedDict, type("Own", (list,), {}), type("Other", (tuple,), {})):
        with pytest.raises(TypeError, match=f"does not look into a {kind.__name__}"):
            numbers(1, [kind()])
        with pytest.raises(TypeError, match=f"does not look into a {kind.__name__}"):
            numbers(1, [ONE], kind())


def test_keywords():
    call = entry_of(numbers(3, [ONE], keywords={"scale": ONE, "shift": (ONE,)}))
    a, b, c = map(np.float64, range(3))
    assert call(a, scale=b, shift=(c,)) == (0, 1, 2)
    assert call(a, **{"sca{}".format("le"): b, "shift": (c,)}) == (0, 1, 2)
    for out in (
        call(a, b, (c,)),
        call(a, scale=b),
        call(scale=b, shift=(c,)),
        call(a, shift=(c,), scale=b),
        call(a, scale=b, shift=(c,), more=c),
        call(a, scale=b, other=(c,)),
    ):
        assert is_missed(out)
    assert call(a, scale=b, other=c) == (MISSED, (a,), {"scale": b, "other": c})


def test_constants_must_be_the_same():
    function, array = len, np.zeros(2)
    for constant, others in (
        (3, (4, 3.0, True, 2**70, None)),
        (2**70, (2**70 + 1, 0)),
        (-1, (2**64 - 1, 1)),
        (True, (False, 1, None)),
        (None, (0, False, ())),
        ("mean", ("sum", b"mean", None, "")),
        (function, (max, None)),
        (array, (np.zeros(2),)),
        (np.float32, (np.float64, np.dtype(np.float32))),
    ):
        call = entry_of(numbers(1, [ONE, constant]))
        assert call(np.float64(5), constant) == (5,)
        for other in others:
            assert is_missed(call(np.float64(5), other)), (constant, other)
    call = entry_of(numbers(1, [ONE, 10**6, "a word of text"]))
    assert call(np.float64(5), int("1000000"), "a word of {}".format("text")) == (5,)


def test_tensors_from_outside_are_read_in_every_call():
    weight, bias = tg.nn.Parameter(tg.tensor(2.0)), tg.tensor([1.0])
    variant = Variant(
        copies([8, 8, 8]),
        [Input(tg.Tensor, form())],
        [form(), form(), form(1)],
        captured=[(weight, form()), (bias, form(1))],
        as_tensors=True,
    )
    call = entry_of(variant)
    x = tg.tensor(5.0)
    assert is_missed(call(x))
    with tg.no_grad():
        assert [out.tolist() for out in call(x)] == [5.0, 2.0, [1.0]]
        weight.mul_(2)
        bias.data = tg.tensor([7.0])
        assert [out.tolist() for out in call(x)] == [5.0, 4.0, [7.0]]
        bias.data = tg.tensor([7.0, 8.0])
        assert is_missed(call(x))
    bias.data = tg.tensor([9.0])
    weight.requires_grad_(False)
    assert [out.tolist() for out in call(x)] == [5.0, 4.0, [9.0]]
    bias.requires_grad_()
    assert is_missed(call(x))


# ---- what is left to Python


class Array(np.ndarray):
    pass


def misaligned():
    return np.zeros(33, np.uint8)[1:].view(np.float64)[:3]


UNFIT = {
    "nothing": lambda: (),
    "too many": lambda: (np.ones(3), np.ones(3)),
    "a list": lambda: ([1.0, 2.0, 3.0],),
    "a number": lambda: (1.0,),
    "None": lambda: (None,),
    "a tensor": lambda: (tg.ones(3),),
    "a scalar": lambda: (np.float64(1),),
    "shorter": lambda: (np.ones(2),),
    "longer": lambda: (np.ones(4),),
    "two dimensions": lambda: (np.ones((3, 1)),),
    "no dimensions": lambda: (np.array(1.0),),
    "float32": lambda: (np.ones(3, np.float32),),
    "int64": lambda: (np.ones(3, np.int64),),
    "objects": lambda: (np.ones(3, object),),
    "the other byte order": lambda: (np.ones(3, ">f8"),),
    "every second": lambda: (np.ones(6)[::2],),
    "backwards": lambda: (np.ones(3)[::-1],),
    "broadcast": lambda: (np.broadcast_to(1.0, 3),),
    "misaligned": lambda: (misaligned(),),
    "a subclass": lambda: (np.ones(3).view(Array),),
    "a masked array": lambda: (np.ma.ones(3),),
}
UNFIT_TENSORS = {
    "an array": lambda: (np.ones(3),),
    "of two": lambda: (tg.ones(2),),
    "of float32": lambda: (tg.ones(3, dtype=tg.float32),),
    "with gradient": lambda: (tg.ones(3, requires_grad=True),),
    "a tensor's subclass": lambda: (tg.nn.Parameter(tg.ones(3), requires_grad=False),),
    "strided": lambda: (tg.ones(6)[::2],),
    "computed": lambda: (tg.ones(3, requires_grad=True) * 2,),
}


@pytest.mark.parametrize("what", UNFIT)
def test_other_arguments_go_to_python(what):
    args = UNFIT[what]()
    out = entry_of(of_squares(3))(*args)
    assert is_missed(out)
    assert out[2] == {}
    assert len(out[1]) == len(args)
    assert all(one is other for one, other in zip(out[1], args, strict=True))


@pytest.mark.parametrize("what", UNFIT_TENSORS)
def test_other_tensors_go_to_python(what):
    call = entry_of(of_squares(3, as_tensors=True))
    assert not is_missed(call(tg.ones(3)))
    assert is_missed(call(*UNFIT_TENSORS[what]()))


def test_keywords_go_to_python():
    call, x = entry_of(of_squares(3)), np.ones(3)
    assert call(x=x) == (MISSED, (), {"x": x})
    assert call(x, flag=1) == (MISSED, (x,), {"flag": 1})
    assert not is_missed(call(x))


def test_without_gradients_tensors_that_require_grad_are_served():
    call, x = entry_of(of_squares(3, as_tensors=True)), tg.ones(3, requires_grad=True)
    assert is_missed(call(x))
    with tg.no_grad():
        value, gradient = call(x)
        assert value.item() == 3.0
        assert not value.requires_grad
        assert not gradient.requires_grad
        with tg.enable_grad():
            assert is_missed(call(x))
            assert not is_missed(call(x.detach()))
    with tg.inference_mode():
        assert is_missed(call(x))
    assert is_missed(call(x))


def test_no_grad_of_another_thread_changes_nothing():
    call, x = entry_of(of_squares(3, as_tensors=True)), tg.ones(3, requires_grad=True)
    inside, done = threading.Event(), threading.Event()

    def other():
        with tg.no_grad():
            inside.set()
            done.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    try:
        assert is_missed(call(x))
        assert not is_missed(call(x.detach()))
    finally:
        done.set()
        thread.join()


def test_intercepted_operations_go_to_python():
    call, arrays = entry_of(of_squares(3, as_tensors=True)), entry_of(of_squares(3))
    with modes.intercept(lambda op, bound: pytest.fail("no operation is called")):
        assert is_missed(call(tg.ones(3)))
        assert is_missed(arrays(np.ones(3)))
    assert not is_missed(arrays(np.ones(3)))


def test_a_stale_view_goes_to_python():
    """Its base was written to with a gradient, so it wants one too; its layout does not say so yet."""
    call = entry_of(of_squares(3, as_tensors=True))
    base = tg.ones(2, 3)
    view = base[0]
    assert not is_missed(call(view))
    base.mul_(tg.ones(3, requires_grad=True))
    assert is_missed(call(view))
    assert view.requires_grad
    assert is_missed(call(view))
    assert not is_missed(call(tg.ones(3)))


def test_a_tensor_without_data_goes_to_python():
    x = tg.ones(3)
    del x._data
    assert is_missed(entry_of(of_squares(3, as_tensors=True))(x))


@pytest.mark.parametrize("is_long", [False, True])
def test_guards(is_long):
    """The values behind the outputs are compared bit by bit."""
    layouts = [form(2), form(3, dtype=bool), form(3, dtype=np.float32), form()]
    code = copies([layout.nbytes for layout in layouts])
    outcomes = [np.array([True, False, True]), np.array([1, -0.0, np.nan], np.float32), np.array(2.5)]
    inputs = [Input(np.ndarray, layout) for layout in layouts]
    call = entry_of(Variant(code, inputs, [form(2)], guards=outcomes, result=Output(0), is_long=is_long))
    x = np.array([5.0, 6.0])
    for _ in range(2):
        assert call(x, *outcomes).tolist() == [5.0, 6.0]
        for changed in range(3):
            for place in np.ndindex(outcomes[changed].shape):
                others = [own.copy() for own in outcomes]
                others[changed][place] = not others[changed][place] if changed == 0 else 0.0
                assert is_missed(call(x, *others))


def test_variants_are_tried_in_order():
    def guarded(outcome):
        """Twice the number, or the number, by the truth value that it comes with."""
        return Variant(
            copies([8, 1]), [Input(np.ndarray, form()), Input(np.ndarray, form(dtype=bool))],
            [form()], guards=[np.array(outcome)], result=Output(0),
        )  # fmt: skip

    call, dispatch = make_entry(missed, [guarded(True)])
    one, yes, no = np.float64(3), np.bool_(True), np.bool_(False)
    assert call(one, yes) == 3.0
    assert is_missed(call(one, no))
    dispatch.variants += (guarded(False), of_squares(3), of_squares(4))
    assert call(one, yes) == call(one, no) == 3.0
    assert call(np.ones(3))[0] == 3.0
    assert call(np.ones(4))[0] == 4.0
    assert is_missed(call(np.ones(5)))
    dispatch.variants = dispatch.variants[:1]
    assert is_missed(call(np.ones(3)))


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

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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
    trees = entry_of(numbers(1, [[ONE, (3, "word")]], tree, keywords={"more": {"key": 10**12}}))
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
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-x", "-p", "no:cacheprovider", __file__, "-k", names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-3000:]
