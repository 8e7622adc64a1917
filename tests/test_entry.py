"""The entry of programs: which arguments machine code gets, what comes back, and what is left to Python."""

import pickle
import threading

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import modes
from tapegrad.program.entry import Input, Output, Variant, make_entry
from tapegrad.tape.layout import layout_of
from tests.machine_code import MISSED, compiled, copies, entry_of, form, is_missed, missed, of_squares

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
    "a subclass": lambda: (np.ones(3).view(Array),),
    "a masked array": lambda: (np.ma.ones(3),),
}
UNFIT_TENSORS = {
    "an array": lambda: (np.ones(3),),
    "of two": lambda: (tg.ones(2),),
    "of float32": lambda: (tg.ones(3, dtype=tg.float32),),
    "with gradient": lambda: (tg.ones(3, requires_grad=True),),
    "a tensor's subclass": lambda: (tg.nn.Parameter(tg.ones(3), requires_grad=False),),
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


STRIDED = {
    "every second": lambda: np.arange(6.0)[::2],
    "backwards": lambda: np.arange(3.0)[::-1],
    "broadcast": lambda: np.broadcast_to(3.0, 3),
    "misaligned": misaligned,
    "read-only": lambda: np.broadcast_to(np.arange(3.0), (1, 3))[0],
}


@pytest.mark.parametrize("what", STRIDED)
@pytest.mark.parametrize("as_tensors", [False, True], ids=["arrays", "tensors"])
def test_arrays_with_other_strides_are_copied(what, as_tensors):
    array = STRIDED[what]()
    before = array.copy()
    if as_tensors and not array.flags.aligned:
        pytest.skip("tensors are aligned")
    given = tg.from_numpy(array) if as_tensors and array.flags.writeable else array
    call = entry_of(of_squares(3, as_tensors=as_tensors and given is not array))
    for _ in range(2):
        value, gradient = call(given)
        assert float(value) == (before**2).sum()
        np.testing.assert_array_equal(gradient, 2 * before)
        np.testing.assert_array_equal(array, before)


def test_strided_arrays_among_others():
    """Each is copied by itself; what another call holds stays as it is."""
    function = tg.compile(lambda pair, *, y: (pair[0] @ pair[1]).sum() + (pair[1] * y).sum())
    rng = np.random.default_rng(0)
    whole = rng.normal(size=(8, 8))
    for _ in range(3):
        for a, b, y in (
            (whole[:3, :4], whole[4:8, :3], whole[0, :3]),
            (whole.T[:3, :4], whole[::2, ::3], np.broadcast_to(2.0, 3)),
            (np.asfortranarray(whole[:3, :4]), whole[4:, 5:].copy(), whole[:3, 2]),
        ):
            np.testing.assert_allclose(function((a, b), y=y), (a @ b).sum() + (b * y).sum())


def test_writes_to_strided_arguments():
    """They go to the argument, and not to a copy of it."""

    def step(x, y):
        x.mul_(2.0)
        return (x * y).sum()

    compiled = tg.compile(step)
    for _ in range(3):
        for function in (step, compiled):
            base, y = tg.arange(6.0), tg.arange(6.0)[::2]
            assert function(base[::2], y).item() == 40.0
            assert base.tolist() == [0.0, 1.0, 4.0, 3.0, 8.0, 5.0]


def test_arrays_of_other_dtype_objects_are_served():
    """An array that another process sent has a dtype of its own, which equals NumPy's."""
    sent = pickle.loads(pickle.dumps(np.ones(3)))
    assert sent.dtype is not np.dtype(np.float64)
    call = entry_of(of_squares(3))
    assert not is_missed(call(np.ones(3)))
    assert not is_missed(call(sent))


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
