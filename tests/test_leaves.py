"""Leaves, flags, grad modes, `.grad`, arrays and numbers: each test runs on tapegrad and on PyTorch."""

import copy
import gc
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest

import tapegrad

MODIFIED = r"^one of the variables needed for gradient computation has been modified by an inplace operation: \["


def leaf(T, *values):
    return T.tensor(list(values) if len(values) > 1 else values[0], requires_grad=True)


# Leaves, flags, modes ---------------------------------------------------------------------------------------


def test_what_is_a_leaf(T):
    x = leaf(T, 1.0, 2.0)
    constant = T.tensor([1.0, 2.0])
    with T.no_grad():
        silent, made = x * 2, leaf(T, 1.0)
    for tensor in (x, constant, constant * 2, silent, x.detach(), x.data, (x * 2).detach(), made):
        assert tensor.is_leaf
        assert tensor.grad_fn is None
    assert not (x * 2).is_leaf
    assert made.requires_grad
    (made * 3).backward()
    assert made.grad.tolist() == 3


def test_what_requires_grad(T):
    x, c = leaf(T, 1.0, 2.0), T.tensor([1.0, 2.0])
    assert [t.requires_grad for t in (x + c, c + c, x > 0, x.argmax(), T.zeros_like(x), x.detach(), x.sum())] == [
        True, False, False, False, False, False, True,
    ]  # fmt: skip


def test_methods_in_compiled_code_check_their_arguments():
    T = tapegrad
    x, none = T.tensor([1.0, 2.0]), T.Tensor.__new__(T.Tensor)
    for method in (T.Tensor.detach, T.Tensor.requires_grad_):
        for args in ((), (5,), (none,), (x, True, True)):
            with pytest.raises((TypeError, AttributeError)):
                method(*args)
    assert x.requires_grad_(requires_grad=True) is x
    assert not x.detach().requires_grad
    assert x.detach().requires_grad_(False) is not x
    part = T.nn.Parameter(x.detach())
    assert type(part.detach()) is T.Tensor
    assert part.detach().data_ptr() == x.data_ptr() == x[None][0].detach().data_ptr()
    number = (x * x).sum().detach()
    assert (number.item(), number.requires_grad) == (5, False)


def test_flag_taken_off_after_the_forward(T):
    x, w = leaf(T, 2.0), leaf(T, 3.0)
    y = x * w
    x.requires_grad = False
    y.backward()
    assert x.grad is None
    assert w.grad.tolist() == 2


def test_flag_of_a_result(T):
    y = leaf(T, 2.0) * 3
    assert y.requires_grad_() is y
    assert not y.is_leaf
    with pytest.raises(RuntimeError, match=r"^you can only change requires_grad flags of leaf variables"):
        y.requires_grad = False
    if T is tapegrad:  # deliberate: PyTorch refuses this, though not requires_grad_()
        y.requires_grad = True
        assert y.grad_fn is not None


def test_detach_shares_memory_and_version(T):
    x = leaf(T, 1.0, 2.0)
    y = x * x
    x.detach()[0] = 5.0
    assert x.tolist() == [5, 2]
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_data_shares_memory_but_not_the_version(T):
    x = leaf(T, 1.0, 2.0)
    y = x * x
    x.data[0] = 5.0
    assert x.tolist() == [5, 2]
    y.sum().backward()
    assert x.grad.tolist() == [10, 4]


def test_new_data_is_not_used_by_an_old_graph():
    # Deliberate: PyTorch differentiates at the new data.
    x = leaf(tapegrad, 1.0, 2.0)
    y = x * x
    x.data = tapegrad.tensor([10.0, 20.0])
    y.sum().backward()
    assert x.grad.tolist() == [2, 4]
    assert (x * 1).tolist() == [10, 20]


def test_no_grad_forms(T):
    x = leaf(T, 2.0)

    @T.no_grad
    def bare():
        return x * x

    @T.no_grad()
    def called():
        return x * x

    @T.no_grad()
    def generator():
        sent = yield x * x
        try:
            yield x * sent
        finally:
            ends.append(T.is_grad_enabled())

    assert [bare().requires_grad, called().requires_grad] == [False, False]
    ends = []
    for end in ("close", "throw"):
        steps = generator()
        assert not next(steps).requires_grad
        assert T.is_grad_enabled()  # while the consumer runs
        assert (steps.send(3.0).item(), T.is_grad_enabled()) == (6, True)
        if end == "close":
            steps.close()
        else:
            with pytest.raises(KeyError):
                steps.throw(KeyError())
    assert (ends, T.is_grad_enabled()) == ([False, False], True)
    with pytest.raises(KeyError), T.no_grad():
        raise KeyError
    assert T.is_grad_enabled()
    with T.no_grad(), T.enable_grad():
        assert (x * x).requires_grad
    with T.set_grad_enabled(False):
        assert not (x * x).requires_grad
    T.set_grad_enabled(False)
    assert not (x * x).requires_grad
    T.set_grad_enabled(True)
    assert (T.enable_grad()(bare)().requires_grad, T.set_grad_enabled(True)(lambda: x * x)().requires_grad) == (
        False, True,
    )  # fmt: skip
    seen = []
    with T.no_grad():
        thread = threading.Thread(target=lambda: seen.append((x * x).requires_grad))
        thread.start()
        thread.join()
    assert seen == [True]


def test_backward_and_grad_under_no_grad(T):
    x = leaf(T, 2.0)
    y, z = x**3, x**3
    with T.no_grad():
        y.backward()
        (slope,) = T.autograd.grad(z, x, create_graph=True)
    assert x.grad.tolist() == 12
    assert T.autograd.grad(slope, x)[0].tolist() == 12


# .grad ------------------------------------------------------------------------------------------------------


def test_grad_is_like_its_tensor(T):
    x = T.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=T.float32).t().requires_grad_()
    unused, flat = leaf(T, 1.0), leaf(T, 1.0)
    assert x.grad is None
    (x * T.tensor(2.0) + flat * 0).sum().backward()
    assert (x.grad.dtype, tuple(x.grad.shape), tuple(x.grad.stride())) == (T.float32, (3, 2), (1, 3))
    assert x.grad.is_leaf
    assert not x.grad.requires_grad
    assert unused.grad is None
    assert flat.grad.tolist() == 0


def test_adding_to_a_gradient_that_a_graph_saved_is_a_write(T):
    x, w = leaf(T, 1.0, 2.0), leaf(T, 3.0, 4.0)
    (x * x).sum().backward()
    y = (x.grad * w).sum()
    before = (x.grad + 0) * w  # of a copy
    (x * x).sum().backward()
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()
    before.sum().backward()
    assert w.grad.tolist() == [2, 4]


@pytest.mark.filterwarnings("ignore:Using backward")
def test_accumulation(T):
    x = leaf(T, 1.0, 2.0)
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    assert x.grad is first
    assert first.tolist() == [4, 8]
    first.zero_()
    (x * x).sum().backward()
    assert x.grad is first
    assert first.tolist() == [2, 4]
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not first
    assert (first.tolist(), x.grad.tolist(), x.grad.requires_grad) == ([2, 4], [4, 8], True)
    x.grad = None
    (x * x).sum().backward()
    first = x.grad
    (x * 1).sum().backward(create_graph=True)  # also where there is no graph
    assert (first.tolist(), x.grad.tolist(), x.grad.requires_grad) == ([2, 4], [3, 5], False)
    own = T.tensor([100.0, 200.0])
    x.grad = own
    (x * x).sum().backward()
    assert x.grad is own
    assert own.tolist() == [102, 204]


def test_deepcopy_and_pickle_of_leaves(T):
    x = leaf(T, 1.0, 2.0)
    (x * x).sum().backward()
    twin = copy.deepcopy(x)
    assert (twin.tolist(), twin.requires_grad, twin.grad.tolist()) == ([1, 2], True, [2, 4])
    (twin * 3).sum().backward()
    assert (x.grad.tolist(), twin.grad.tolist()) == ([2, 4], [5, 7])
    again = pickle.loads(pickle.dumps(x))
    assert (again.tolist(), again.requires_grad, again.grad) == ([1, 2], True, None)
    assert copy.deepcopy({"a": x, "b": x})["a"].tolist() == [1, 2]
    with pytest.raises(RuntimeError, match=r"^Only Tensors created explicitly by the user \(graph leaves\) support"):
        copy.deepcopy(x * 2)


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64", "bool"])
def test_tensors_have_the_dtype_object_that_stands_for_a_dtype(dtype):
    """Layouts are found by equal dtypes: the first array of a layout must not give all others its dtype object."""
    array = pickle.loads(pickle.dumps(np.ones((2, 5, 3), dtype)))
    assert array.dtype is not np.dtype(dtype)
    T = tapegrad
    for x in (T.tensor(array), T.from_numpy(array), T.as_tensor(array), T.tensor(np.ones((2, 5, 3), dtype))):
        assert x.dtype is np.dtype(dtype)
        assert x.to(np.dtype(dtype)) is x
    assert T.from_numpy(np.ones(3, np.longlong)).long().dtype is T.int64


# Arrays and numbers -------------------------------------------------------------------------------------------------


def test_numpy_shares_memory(T):
    array = np.array([1.0, 2.0])
    x = T.from_numpy(array)
    array[0] = 5
    assert x.tolist() == [5, 2]
    assert np.shares_memory(x.numpy(), array)
    x.requires_grad_()
    assert np.shares_memory(x.detach().numpy(), array)
    with pytest.raises(RuntimeError, match=r"^Can't call numpy\(\) on Tensor that requires grad. Use tensor.detach"):
        x.numpy()
    scalar = (x * x).sum().detach()
    scalar.numpy()[()] = 4
    assert scalar.item() == 4


def test_numbers_of_tensors(T):
    x = leaf(T, 1.0, 2.0)
    assert isinstance(x.sum().item(), float)
    assert (len(x), [part.item() for part in x], 2.0 in x, 3.0 in x) == (2, [1, 2], True, False)
    one = T.tensor([[3]])
    assert (float(one), int(one), bool(one), one.tolist(), range(4)[one]) == (3, 3, True, [[3]], 3)
    total = sum(part * part for part in x)
    total.backward()
    assert x.grad.tolist() == [2, 4]
    with pytest.raises(RuntimeError, match=r"^a Tensor with 2 elements cannot be converted to Scalar"):
        x.item()
    with pytest.raises(RuntimeError, match=r"^Boolean value of Tensor with more than one value is ambiguous"):
        bool(x)
    with pytest.raises(TypeError, match=r"^len.. of a 0-d tensor"):
        len(total)
    with pytest.raises(TypeError, match=r"^iteration over a 0-d tensor"):
        iter(total)
    with pytest.raises((RuntimeError, ValueError) if T is not tapegrad else RuntimeError):
        float(x)


class Subclass(np.ndarray):
    """An array that is no plain one."""


def odd_arrays() -> dict[str, np.ndarray]:
    data = np.arange(24.0)
    frozen = data.copy()
    frozen.flags.writeable = False
    return {
        "0-d": np.array(2.0), "empty": np.zeros((0, 3)), "reversed": data[::-1],
        "every other": data.reshape(4, 6)[:, ::2], "Fortran": np.asfortranarray(data.reshape(4, 6)),
        "broadcast": np.broadcast_to(data[:3], (2, 3)), "frozen": frozen, "float32": data.astype(np.float32),
        "complex": data * 1j, "four": data.reshape(2, 3, 2, 2), "five": data.reshape(2, 3, 2, 1, 2),
        "subclass": data.reshape(4, 6).view(Subclass), "integers": np.arange(3), "bools": np.arange(3) > 1,
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable:UserWarning")
@pytest.mark.parametrize("name", list(odd_arrays()))
def test_tensors_over_odd_arrays_and_their_leaves(name):
    """The first array of a layout goes through Python, the others through compiled code; both give the same."""
    for _ in range(3):
        array = odd_arrays()[name]
        x = tapegrad.from_numpy(array)
        assert (x.shape, x.dtype, x._data.strides) == (array.shape, array.dtype, array.strides)
        assert type(x._data) is np.ndarray
        assert x._data is not array
        assert np.shares_memory(x._data, array) or not array.size
        assert x._data.flags.writeable == array.flags.writeable
        assert not x.requires_grad
        if array.dtype.kind in "fc":
            assert x.requires_grad_() is x
            assert x.requires_grad
            assert x.is_leaf
            (x * 2.0).sum().backward(tapegrad.tensor(np.ones((), array.dtype)))
            np.testing.assert_array_equal(x.grad.numpy(), np.full(array.shape, 2.0))
            x.requires_grad_(False)
            assert not x.requires_grad
        else:
            with pytest.raises(RuntimeError, match="only Tensors of floating point"):
                x.requires_grad_()
        copy = tapegrad.tensor(array, requires_grad=array.dtype.kind in "fc")
        assert not np.shares_memory(copy._data, array)
        assert copy._data.flags.c_contiguous
        np.testing.assert_array_equal(copy.detach().numpy(), np.asarray(array))


def test_arrays_that_no_tensor_can_show():
    swapped, unaligned = np.zeros(3, ">f8"), np.zeros(25, np.uint8)[1:].view(np.float64)
    problems = [(swapped, "byte order"), (unaligned, "not aligned"), (np.array([None] * 3), "dtype object")]
    for _ in range(3):
        tapegrad.from_numpy(np.zeros(3))  # a layout that looks the same
        for array, words in problems:
            with pytest.raises(TypeError, match=words):
                tapegrad.from_numpy(array)
        with pytest.raises(TypeError, match=r"expected np\.ndarray"):
            tapegrad.from_numpy([1.0])
        for make in (tapegrad.tensor, tapegrad.as_tensor, tapegrad.compile(lambda x: x + 0)):
            np.testing.assert_array_equal(make(np.arange(3.0, dtype=">f8")), np.arange(3.0))
        np.testing.assert_array_equal(tapegrad.tensor(unaligned).numpy(), unaligned)
        np.testing.assert_array_equal(tapegrad.as_tensor(unaligned).numpy(), unaligned)
        np.testing.assert_array_equal(tapegrad.compile(lambda x: x + 1)(unaligned), unaligned + 1)
        np.testing.assert_array_equal((tapegrad.ones(3) * unaligned).numpy(), unaligned)


def test_lines_of_layouts_are_told_apart():
    """More layouts than the table has lines; an array that died gives its address to others."""
    for turn in range(3):
        for n in range(1, 700):
            shape = (n, 2) if n % 3 == 0 else (n,)
            array = np.full(shape, float(n), np.float32 if n % 2 else np.float64)
            x = tapegrad.from_numpy(array).requires_grad_()
            assert (x.shape, x.dtype) == (shape, array.dtype)
            assert tapegrad.from_numpy(array.T).shape == shape[::-1]
            if turn and n % 50 == 0:
                (x * x).sum().backward()
                np.testing.assert_array_equal(x.grad.numpy(), 2 * array)
    layout = x._layout
    del x
    gc.collect()  # garbage of other tests holds None thousands of times
    before = sys.getrefcount(None), sys.getrefcount(layout)
    leaves = [tapegrad.from_numpy(array).requires_grad_() for _ in range(1000)]
    assert all(x._layout is layout for x in leaves)
    del leaves
    assert sys.getrefcount(layout) == before[1]
    assert abs(sys.getrefcount(None) - before[0]) < 50


def test_a_leaf_is_freed_with_its_tensor():
    x = tapegrad.from_numpy(np.ones(3)).requires_grad_()
    leaf = weakref.ref(x._node)
    assert x._node.tensor() is x
    del x
    assert leaf() is None


@pytest.mark.filterwarnings("ignore:Using backward")
def test_gradients_that_are_recorded_share_no_memory(T):
    a, b, c = (T.ones(3, requires_grad=True) for _ in range(3))
    given = T.tensor([1.0, 2.0, 3.0])
    (a + b).backward(given, create_graph=True)
    c.sum().backward(create_graph=True)  # of which each element is one number
    (a * 2).sum().backward()
    (c * 3).sum().backward()
    assert [own.tolist() for own in (a.grad, b.grad, c.grad, given)] == [[3, 4, 5], [1, 2, 3], [4, 4, 4], [1, 2, 3]]
    (a * a * a).sum().backward(create_graph=True)
    assert a.grad.grad_fn is not None
