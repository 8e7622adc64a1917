"""Fixtures that several files of tests share, and how many programs hypothesis draws."""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

import tapegrad
from tapegrad.forward import prepared
from tapegrad.ops.table.loading import load_all
from tapegrad.ops.table.op import op_table
from tapegrad.program import run
from tapegrad.runtime import blocking, pool
from tapegrad.sweep import leaf_grads, workspace

load_all()  # tests are made from the whole table, in the same order in all workers

# Assertions of the helpers say as much as those of the tests.
pytest.register_assert_rewrite("tests.cases", "tests.checks", "tests.strategies")

# Kernels are compiled when a program first needs them, so the time of one example says nothing.
settings.register_profile(
    "default", deadline=None, report_multiple_bugs=False, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

if os.environ.get("TAPEGRAD_TEST_AS_LARGE"):
    # Arrays of 8 elements are treated as large: pooled, gone through in blocks, and shared out among the threads.
    pool.THRESHOLD = leaf_grads.THRESHOLD = workspace.SHARED_WORK = 1
    prepared._MANY_OF_OTHERS = 2  # a number is none of many
    prepared._MANY.clear()
    blocking.set_block_size(2)


def pytest_collection_modifyitems(items) -> None:
    """Begin with the tests that take long by themselves."""
    items.sort(key=lambda item: item.get_closest_marker("first") is None)


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over the tests themselves: each of its walks over them would take a second."""
    gc.collect()
    gc.freeze()
    gc.get_freeze_count = lambda: 1  # which walks over them, too; `tapegrad.runtime.garbage` asks


@pytest.fixture(scope="module", autouse=True)
def _older_objects_are_passed_over():
    """Let the garbage collector pass over what the tests of other files have left, such as programs."""
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _table_is_that_of_the_library():
    """Take the ops that tests define out of the table, from which other tests draw."""
    before = set(op_table)
    yield
    for name in set(op_table) - before:
        del op_table[name]


@pytest.fixture(scope="session", autouse=True)
def _programs_are_lowered():
    """Let each test make machine code itself: what an earlier run has left tells nothing of today's lowering."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "remembered", lambda digest: None)
        patch.setattr(run, "remember", lambda digest, code: None)
        yield


@pytest.fixture(params=["tapegrad", "torch"])
def T(request):
    """Run a test on tapegrad and, where it is installed, on PyTorch with our default dtype: both must pass."""
    lib = pytest.importorskip(request.param)
    if lib is tapegrad:
        yield lib
    else:
        before = lib.get_default_dtype()
        lib.set_default_dtype(lib.float64)
        yield lib
        lib.set_default_dtype(before)
