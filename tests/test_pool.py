"""The memory pool: buffers come back exactly when nothing refers to them, within the limit, whoever asks."""

import mmap
import os
import time

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.runtime import pool
from tests.several_threads import in_threads

SIZE = 1 << 18  # bytes, a multiple of a page

pytestmark = pytest.mark.skipif("TAPEGRAD_TEST_AS_LARGE" in os.environ, reason="arrays of all sizes are in the pool")


@pytest.fixture(autouse=True)
def _empty_pool():
    """Begin and end with nothing idle, and with the usual limit even where the pool is switched off."""
    before = pool._sizes["limit"]
    tg.set_cache_limit(1 << 29)
    tg.empty_cache()
    yield
    tg.empty_cache()
    tg.set_cache_limit(before)


def array(nbytes=SIZE, dtype=np.float64):
    dtype = np.dtype(dtype)
    return pool.empty((nbytes // dtype.itemsize,), dtype)


def test_a_buffer_comes_back_when_its_last_view_dies():
    before = tg.memory_allocated()
    own = array()
    assert tg.memory_allocated() == before + SIZE
    own[:] = 7.0
    view = own[1:].reshape(-1, 1).T[:, 1:]
    del own
    assert tg.memory_allocated() == before + SIZE, "a view is alive"
    other = array()
    other[:] = 1.0
    assert (view == 7.0).all(), "nobody else got its memory"
    address = view.ctypes.data
    del view
    assert tg.memory_allocated() == before + SIZE
    assert tg.memory_reserved() == before + 2 * SIZE
    again = array()
    assert abs(again.ctypes.data - address) < SIZE, "the same memory again"


def test_arrays_are_aligned_writable_and_of_any_dtype():
    for dtype in (np.float32, np.float64, np.complex128, np.bool_):
        own = pool.empty((3, 50_000), np.dtype(dtype))
        assert own.ctypes.data % 64 == 0
        assert own.flags.writeable
        assert own.flags.c_contiguous
        assert own.flags.aligned
        assert own.dtype == dtype
    assert pool.empty((3,), np.dtype(np.float64)).flags.owndata, "small ones are the allocator's"
    assert pool.empty((0, 5), np.dtype(np.float64)).shape == (0, 5)


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="Linux only")
def test_large_buffers_begin_at_huge_pages_and_go_back_to_the_system():
    def mapped():
        with open("/proc/self/maps") as lines:
            ranges = [[int(part, 16) for part in line.split()[0].split("-")] for line in lines]
        return lambda address: any(first <= address < end for first, end in ranges)

    for nbytes in (2**21, 8_000_000, 2**24 + 4096):
        own = array(nbytes)
        first, last = own.ctypes.data, own.ctypes.data + own.nbytes - 1
        assert first % 2**21 == 0
        own[:] = 1.0
        assert own.sum() == own.size
        assert mapped()(first)
        assert mapped()(last)
        del own
        tg.empty_cache()
        assert not mapped()(first)


def test_results_and_gradients_are_in_the_pool():
    x = tg.full((SIZE // 8,), 2.0, requires_grad=True)
    (x * x).sum().backward()  # the first result makes the plan
    before = tg.memory_allocated()
    y = x * x
    assert tg.memory_allocated() == before + SIZE
    x.grad = None
    assert tg.memory_allocated() == before
    y.sum().backward()
    assert tg.memory_allocated() == before + SIZE, "the gradient; the sweep's own memory is not counted"
    del y
    assert tg.memory_allocated() == before
    (x * x).sum().backward()
    assert (x.grad.numpy() == 8.0).all(), "a gradient in the pool is added to"
    kept = x.grad.numpy()
    x.grad = None
    for _ in range(3):
        z = x * 3.0
    assert (kept == 8.0).all()
    assert (z.detach().numpy() == 6.0).all()


def test_single_precision_gradients_are_added_to_in_place():
    x = tg.ones(SIZE // 4, dtype=tg.float32, requires_grad=True)
    (x * 2.0).sum().backward()
    address = x.grad.numpy().ctypes.data
    (x * 2.0).sum().backward()
    assert x.grad.numpy().ctypes.data == address
    assert (x.grad.numpy() == 4.0).all()


def test_first_results_of_a_kind_are_in_the_pool():
    x = tg.full((SIZE // 8 + 1024,), 2.0)
    before = tg.memory_allocated()
    y = x * x  # NumPy computes what a plan is made from
    assert tg.memory_allocated() == before + SIZE + 8192
    z = x.reshape(2, -1).T + x.reshape(2, -1).T
    assert z.numpy().flags.f_contiguous, "NumPy chooses the order"
    del y, z
    assert tg.memory_allocated() == before


def test_it_never_holds_more_than_was_in_use_at_once():
    before = tg.memory_allocated()
    small = [array() for _ in range(6)]
    most = tg.memory_reserved()
    del small
    assert tg.memory_reserved() == most
    large = array(4 * SIZE)
    assert tg.memory_reserved() <= most, "idle buffers of another size make room"
    assert tg.memory_allocated() == before + 4 * SIZE
    del large
    more = [array(2 * SIZE) for _ in range(5)]
    assert tg.memory_reserved() == before + 10 * SIZE, "a new peak, and nothing idle"
    del more


def test_empty_cache_gives_back_what_is_idle():
    kept = array()
    idle = array()
    del idle
    assert tg.memory_reserved() > tg.memory_allocated()
    tg.empty_cache()
    assert tg.memory_reserved() == tg.memory_allocated() >= kept.nbytes


def test_the_limit_counts_what_is_in_use():
    tg.set_cache_limit(tg.memory_allocated() + 2 * SIZE)
    first, second, third = array(), array(), array()
    assert not first.flags.owndata
    assert not second.flags.owndata
    assert third.flags.owndata, "beyond the limit"
    del first, second
    tg.set_cache_limit(0)
    assert tg.memory_reserved() == tg.memory_allocated()
    assert array().flags.owndata
    x = tg.ones(SIZE // 8, requires_grad=True)
    (x * x * x).sum().backward()
    assert (x.grad.numpy() == 3.0).all()
    with pytest.raises(ValueError, match="-1"):
        tg.set_cache_limit(-1)


def test_lowering_the_limit_leaves_arrays_alone():
    own = array()
    own[:] = 3.0
    tg.set_cache_limit(0)
    others = [np.ones(SIZE // 8) for _ in range(4)]
    assert (own == 3.0).all()
    assert len(others) == 4


def test_threads_never_share_a_buffer():
    errors = []

    def work(number):
        rng = np.random.default_rng(number)
        kept = []
        for turn in range(300):
            own = array(SIZE * int(rng.integers(1, 4)))
            own[::512] = number * 1000 + turn
            kept.append((own, number * 1000 + turn))
            if len(kept) > 5:
                old, value = kept.pop(int(rng.integers(len(kept))))
                if not (old[::512] == value).all():
                    errors.append((number, turn))

    in_threads(4, work)
    assert not errors
    tg.empty_cache()
    assert tg.memory_reserved() == tg.memory_allocated()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_process_goes_on_with_its_copy():
    own = array()
    own[:] = 1.0
    with pool._lock:
        child = os.fork()
        if child == 0:
            try:
                other = array()
                other[:] = 2.0
                os._exit(0 if (own == 1.0).all() and tg.memory_allocated() >= 2 * SIZE else 1)
            finally:
                os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert (own == 1.0).all()


def test_the_size_that_was_not_used_for_longest_goes_first():
    before = tg.memory_allocated()  # of other tests
    first, second = array(2 * SIZE), array(3 * SIZE)
    del first, second
    tg.memory_reserved()  # both are idle, in the order in which they died
    again = array(2 * SIZE)
    del again
    assert tg.memory_reserved() == before + 5 * SIZE
    tg.set_cache_limit(before + 2 * SIZE)
    assert {size: len(buffers) for size, buffers in pool._idle.items() if buffers} == {2 * SIZE: 1}


def idle():
    tg.memory_reserved()  # takes back what has died
    return {size: len(buffers) for size, buffers in pool._idle.items() if buffers}


def test_using_a_size_again_is_use():
    before = tg.memory_allocated()
    arrays = [array(2 * SIZE), array(2 * SIZE), array(3 * SIZE)]
    while arrays:
        del arrays[0]
        tg.memory_reserved()
    again = array(2 * SIZE)
    tg.set_cache_limit(before + 4 * SIZE)
    assert idle() == {2 * SIZE: 1}, "the other buffer of the size in use stays"
    del again


def test_giving_a_buffer_back_is_use():
    before = tg.memory_allocated()
    first, second, other = array(2 * SIZE), array(2 * SIZE), array(3 * SIZE)
    del first
    tg.memory_reserved()
    del other
    tg.memory_reserved()
    del second
    assert idle() == {2 * SIZE: 2, 3 * SIZE: 1}
    tg.set_cache_limit(before + 4 * SIZE)
    assert idle() == {2 * SIZE: 2}


def test_the_pool_keeps_what_was_once_in_use():
    before = tg.memory_allocated()
    arrays = [array() for _ in range(4)]
    arrays.clear()
    arrays = [array(SIZE + 4096)]
    assert 3 * SIZE < tg.memory_reserved() - before <= 4 * SIZE, "one more size, and no more memory"
    assert pool._sizes["peak"] == before + 4 * SIZE
    del arrays[:]
    assert tg.memory_reserved() - before <= 4 * SIZE


def test_two_threads_never_get_one_buffer(monkeypatch):
    collect = pool._collect
    monkeypatch.setattr(pool, "_collect", lambda: (collect(), time.sleep(1e-4)))
    clashes = []

    def work(number):
        for _ in range(50):
            own = array()
            own[:] = number
            time.sleep(1e-5)
            if not (own == number).all():
                clashes.append(number)
            del own

    in_threads(4, work)
    assert clashes == []
    tg.empty_cache()
    assert pool._sizes["lent"] == sum(note.buffer.size for note in pool._lent.values())
