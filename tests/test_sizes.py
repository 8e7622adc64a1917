"""Sizes: data and gradients are replaced, and arrays are handed out, and no sweep reads or writes past an end."""

import pickle
import weakref

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.tensor import _rebuilt

SMALL, LARGE = 3, 500_000


def ones(*shape):
    return tg.ones(*shape, requires_grad=True)


# `data` or `grad` of another shape -------------------------------------------------------------------------------
# Each returns the tensors whose gradients must be as before, and the call that must raise.


def grown_with_gradient():
    x = ones(SMALL)
    (x * 2).sum().backward()
    x.data = tg.ones(LARGE)
    return x, (x * 2).sum(), (3, LARGE), lambda y: y.backward()


def shrunk_after_the_graph():
    x = ones(LARGE)
    y = (x * x).sum()
    x.data = tg.ones(SMALL)
    return x, y, (LARGE, SMALL), lambda y: y.backward()


def shrunk_before_grad():
    x = ones(LARGE)
    y = (x * x).sum()
    x.data = tg.ones(SMALL)
    return x, y, (LARGE, SMALL), lambda y: tg.autograd.grad(y, x)


def shrunk_before_recorded_grad():
    x = ones(LARGE)
    y = (x * x).sum()
    x.data = tg.ones(SMALL)
    return x, y, (LARGE, SMALL), lambda y: tg.autograd.grad(y, x, create_graph=True, allow_unused=True)


def shrunk_leaf_with_hook():
    x = ones(LARGE)
    x.register_hook(lambda g: g * 2)
    y = (x * x).sum()
    x.data = tg.ones(SMALL)
    return x, y, (LARGE, SMALL), lambda y: y.backward()


def root_of_another_size():
    x = ones(LARGE)
    y = tg.exp(x)
    y.data = tg.ones(SMALL)
    return x, y, (LARGE, SMALL), lambda y: y.backward(tg.ones(SMALL))


def result_of_another_size():
    x = ones(SMALL)
    y = tg.exp(x)
    y.data = tg.ones(LARGE)
    return x, (y * 2).sum(), (SMALL, LARGE), lambda y: y.backward()


def gradient_of_another_size():
    x = ones(LARGE)
    x.grad = tg.zeros(LARGE)
    x.grad.data = tg.zeros(SMALL)
    return x, (x * 2).sum(), (SMALL, LARGE), lambda y: y.backward()


def gradient_of_a_leaf_root():
    x = ones(1)
    x.grad = tg.zeros(1)
    x.grad.data = tg.zeros(SMALL)
    return x, x, None, lambda y: y.backward()


def gradient_of_a_result():
    x = ones(LARGE)
    y = x * 2
    y.retain_grad()
    y.grad = tg.zeros(LARGE)
    y.grad.data = tg.zeros(SMALL)
    return x, y.sum(), (SMALL, LARGE), lambda root, alive=y: root.backward()


def as_many_elements():
    x = ones(2, 3)
    (x * 2).sum().backward()
    x.data = tg.ones(3, 2)
    return x, (x * 2).sum(), (3, 2), lambda y: y.backward()


def a_dimension_more():
    x = ones(SMALL)
    (x * 2).sum().backward()
    x.data = tg.ones(2, SMALL)
    return x, (x * 2).sum(), None, lambda y: y.backward()


CASES = [
    grown_with_gradient, shrunk_after_the_graph, shrunk_before_grad, shrunk_before_recorded_grad, shrunk_leaf_with_hook,
    root_of_another_size, result_of_another_size, gradient_of_another_size, gradient_of_a_leaf_root,
    gradient_of_a_result, as_many_elements, a_dimension_more,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_another_shape_is_an_error_and_nothing_is_half_done(case):
    x, y, sizes, call = case()
    other = ones(2)
    both = y.sum() + other.sum()
    before = None if x.grad is None else x.grad.tolist()
    words = "" if sizes is None else rf"The size of tensor a \({sizes[0]}\) must match .* b \({sizes[1]}\) at non-sing"
    for root in (y, both, both):  # not "a second time"
        with pytest.raises(RuntimeError, match=words or "(output with|The size)"):
            call(root) if root is y else root.backward()
    assert other.grad is None
    assert (None if x.grad is None else x.grad.tolist()) == before
    (other * 3).sum().backward()
    assert other.grad.tolist() == [3, 3]


def test_a_leaf_goes_on_with_data_of_another_shape():
    x = ones(SMALL)
    seen = []
    x.register_hook(lambda g: seen.append(g.shape))
    (x * 2).sum().backward()
    x.data, x.grad = tg.ones(2, 2), None
    (x * x).sum().backward()
    assert x.grad.tolist() == [[2, 2], [2, 2]]
    assert seen == [(3,), (2, 2)]
    assert (x.is_leaf, x.requires_grad) == (True, True)


def test_a_result_goes_on_with_data_of_another_shape():
    x = ones(SMALL)
    y = x * 2
    y.data = tg.ones(5)
    assert (y.shape, y.grad_fn.name(), len(y.tape())) == ((5,), "MulBackward0", 1)
    y.tape().verify()
    with tg.no_grad():
        assert (y * 2).tolist() == [2] * 5
    assert (y.detach() * 2).tolist() == [2] * 5


def test_data_of_the_same_shape_stay_in_the_graph():
    x = ones(2, 3)
    y = (x * 2).sum()
    x.data = tg.zeros(3, 2).T
    y.backward()
    assert x.grad.tolist() == [[2] * 3] * 2


def test_a_replaced_leaf_that_is_no_more_is_no_error():
    x, z = ones(LARGE), ones(2)
    y = (x * x).sum() + z.sum()
    x.data = tg.ones(SMALL)
    del x
    y.backward()
    assert z.grad.tolist() == [1, 1]


def test_a_hook_that_replaces_data():
    def hook(g):
        g.data = tg.ones(5)

    x = ones(LARGE)
    y = x * 2
    y.register_hook(hook)
    with pytest.raises(
        RuntimeError, match=r"hook 'hook' has changed the size of value: it got \[500000\], returned \[5\]"
    ):
        y.sum().backward()


def test_a_hook_that_replaces_the_data_of_its_leaf():
    x = ones(LARGE)
    x.register_post_accumulate_grad_hook(lambda x: setattr(x, "data", tg.ones(SMALL)))
    (x * 2).sum().backward()
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        (x * 2).sum().backward()
    z = ones(LARGE)
    z.register_hook(lambda g: setattr(z, "data", tg.ones(SMALL)))
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        (z * 2).sum().backward()


@pytest.mark.parametrize("run", [lambda y, x: y.backward(), lambda y, x: y.backward(inputs=[x])])
def test_a_gradient_that_cannot_be_written_to(run):
    x, z = ones(2), ones(2)
    x.grad = tg.from_numpy(np.zeros(2))
    x.grad._data.flags.writeable = False
    y = (x * 2 + z).sum()
    for _ in range(2):
        with pytest.raises(ValueError, match="output array is read-only"):
            run(y, x)
    assert (x.grad.tolist(), z.grad) == ([0, 0], None)
    x.grad = None
    run(y, x)
    assert x.grad.tolist() == [2, 2]


def test_a_gradient_over_a_read_only_array_that_nobody_else_holds():
    x = ones(2)
    array = np.zeros(2)
    array.flags.writeable = False
    x.grad = tg.zeros(2)
    x.grad._data = array
    del array
    with pytest.raises(ValueError, match="output array is read-only"):
        (x * 2).sum().backward()


# Arrays that are handed out --------------------------------------------------------------------------------------


def test_what_is_handed_out_is_a_view(T):
    t = T.arange(6.0)
    for array in (t.numpy(), t.detach().numpy(), np.asarray(t), t.data.numpy()):
        array.shape = (2, 3)
        array[0, 0] += 1
        with pytest.raises(ValueError, match="does not own its data"):
            array.resize((1,), refcheck=False)
    assert tuple(t.shape) == tuple((t + 1).shape) == (6,)
    assert t.tolist() == [4, 1, 2, 3, 4, 5]


def test_what_is_taken_over_is_a_view(T):
    array = np.arange(6.0)
    t = T.from_numpy(array)
    array.shape = (2, 3)
    array[0, 1] = 7
    assert tuple(t.shape) == (6,)
    assert t.tolist() == [0, 7, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="cannot resize"):
        array.resize((1,))


def test_as_tensor_takes_a_view_too():
    array = np.arange(6.0)
    t = tg.as_tensor(array)
    array.shape = (2, 3)
    assert (t + 1).shape == (6,)


@pytest.mark.parametrize(
    "write", ["array[0] = 5", "t.numpy()[0] = 5", "t.detach().add_(1)", "tg.from_numpy(array).add_(1)"]
)
def test_writes_through_what_is_handed_out_are_noticed_as_before(write):
    array = np.ones(3)
    t = tg.from_numpy(array)
    x = ones(3)
    y = (x * t).sum()
    exec(write, {"tg": tg}, {"array": array, "t": t})
    if "add_" in write:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()
    else:
        assert t[0].item() == 5


def test_a_gradient_over_memory_that_a_graph_saved():
    array = np.zeros(3)
    x, z = ones(3), ones(3)
    x.grad = tg.from_numpy(array)
    y = (z * array).sum()
    (x * 2).sum().backward()
    assert array.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_tensor_over_an_array_of_the_users_can_be_written_to():
    array = np.zeros(3)
    t = tg.from_numpy(array)
    x = ones(3)
    t[0] = x[1] * 2
    t += x
    t.sum().backward()
    assert (array.tolist(), x.grad.tolist()) == ([3, 1, 1], [1, 3, 1])


def test_an_array_lives_as_long_as_a_tensor_over_it():
    class Array(np.ndarray):
        pass

    array = np.zeros(3).view(Array)
    watched = weakref.ref(array)
    t = tg.from_numpy(array)
    del array
    t += 1
    assert t.tolist() == [1, 1, 1]
    del t
    assert watched() is None


def test_pickles_of_another_byte_order():
    for array in (np.arange(3.0).astype(">f8"), np.frombuffer(b"\0" + np.arange(3.0).tobytes(), offset=1)):
        x = _rebuilt(array, True)
        (x * x).sum().backward()
        assert x.grad.tolist() == [0, 2, 4]
    assert pickle.loads(pickle.dumps(ones(2))).requires_grad


# Index arrays beside slices and new dimensions ------------------------------------------------------------------------

KEYS = [
    (slice(1, 3), [0, 2]), (slice(None, None, 2), [0, 1]), ([0, 2], slice(1, None)), (None, [0, 2]), ([0, 2], None),
    (slice(None), [2, 0]), (Ellipsis, [2, 0]), (None, slice(1, 3), [0, 2]), ([True, False, True, False], slice(0, 2)),
    (1, [0, 0]), ([1, 2], [0, 0]), (slice(None), [[0, 1], [1, 0]]),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_second_derivatives_of_index_writes(T, key):
    def index(item):
        return T.tensor(item) if isinstance(item, list) else item

    key = tuple(map(index, key))
    x = T.arange(12.0).reshape(4, 3).requires_grad_()
    z = (T.arange(float(x[key].numel())).reshape(x[key].shape) + 1).requires_grad_()
    y = x * 1
    y[key] = z
    y[key] *= 2
    gx, gz = T.autograd.grad((y**3).sum(), (x, z), create_graph=True)
    hx, hz = T.autograd.grad((gx**2).sum() + (gz**2).sum(), (x, z))
    data, value = np.arange(12.0).reshape(4, 3), np.array(z.tolist())
    key = tuple(np.array(item.tolist()) if isinstance(item, T.Tensor) else item for item in key)
    # In the end y is x but at the key, and there twice the value that was written last.
    places = np.full(data.shape, -1)
    places[key] = np.arange(value.size).reshape(value.shape)
    last = np.array([(places == number).any() for number in range(value.size)]).reshape(value.shape)
    np.testing.assert_allclose(gx.tolist(), np.where(places < 0, 3 * data**2, 0))
    np.testing.assert_allclose(hx.tolist(), np.where(places < 0, 36 * data**3, 0))
    if last.all():  # torch adds up for elements written twice, too
        np.testing.assert_allclose(gz.tolist(), 24 * value**2)
        np.testing.assert_allclose(hz.tolist(), 2 * 24 * value**2 * 48 * value)


def test_index_writes_into_large_arrays():
    x = ones(2, 200_000)
    y = x * 1
    y[None, tg.tensor([0, 1])] *= 2
    (g,) = tg.autograd.grad((y * y).sum(), x, create_graph=True)
    (h,) = tg.autograd.grad((g * g).sum(), x)
    assert set(h.numpy().ravel().tolist()) == {128.0}


def test_gathers_with_mixed_keys_have_no_kernel_that_takes_other_sizes():
    from tapegrad.ops.indexing import index_gather

    x = tg.arange(12.0).reshape(4, 3).requires_grad_()
    part = index_gather(x, (np.array([0, 2]),), ((1, 3, None), "array"))
    (part * part).sum().backward()
    assert x.grad.tolist() == [[0] * 3, [6, 0, 10], [12, 0, 16], [0] * 3]
