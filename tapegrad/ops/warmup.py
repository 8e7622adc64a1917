"""Compile ahead of time: every op's kernels, and the machinery that they run in, into the cache.

What is compiled is what small programs need that are made of the op table: each op with each of its samples, on
contiguous, strided and broadcast operands and on Python numbers, for each choice of operands that want a gradient.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tapegrad.compiler import cache, drafts, files
from tapegrad.kernels.elementwise import ARITHMETIC, SHORT, elementwise_step
from tapegrad.modes import enable_grad
from tapegrad.ops.creation import from_numpy, tensor
from tapegrad.ops.table.loading import load_all
from tapegrad.ops.table.op import NotYet, Op, Sample, op_table, xp
from tapegrad.recording.plan import alive
from tapegrad.runtime import blocking
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor, from_array

__all__ = ["Warmup", "warmup"]


_DTYPES = ("float64", "float32", "complex128", "complex64")


class Warmup(NamedTuple):
    """What a warmup did.

    Attributes
    ----------
    compiled, found : int
        How many functions it compiled, and how many were in the cache before.
    folder : str
        Where the cache is.
    nbytes : int
        How large the cache is, with all that is in it.
    seconds : float
    """

    compiled: int
    found: int
    folder: str
    nbytes: int
    seconds: float


def warmup(
    ops: Sequence[str] | None = None,
    dtypes: Sequence[Any] = _DTYPES,
    *,
    processes: int = 1,
    progress: Callable[[int, int, str], object] | None = None,
) -> Warmup:
    """Compile ahead of time, into the cache, what programs would compile when they first need it.

    For images and clusters: a process that finds its kernels in the cache compiles nothing and does not import Numba.

    Parameters
    ----------
    ops : sequence of str, optional
        Names of operations, as they stand on a tape; default all. What records and sweeps is always compiled.
    dtypes : sequence of dtype
        Of the operands; default all, complex ones where an operation takes them.
    processes : int
        How many compile at a time. More than one are started anew, so a script needs ``if __name__ == "__main__"``.
    progress : callable, optional
        Called with how much is done, how much there is, and what was done last.

    Returns
    -------
    Warmup
        How many functions it compiled and how many it found, where the cache is, its bytes, and the seconds it took.

    Raises
    ------
    OSError
        If the cache cannot be written to.
    ValueError
        If there is no operation of a name, or a dtype is none of those.

    Notes
    -----
    Left to the program are mixed dtypes, and arrays of integers and truth values beside floating ones. A process does
    not compile again what it has compiled for another cache: then call this in a new one.

    Examples
    --------
    >>> import tapegrad as tg
    >>> done = tg.warmup(["neg"], ["float64"])
    >>> again = tg.warmup(["neg"], ["float64"])
    >>> again.compiled
    0
    """
    begin = time.perf_counter()
    tasks = list(itertools.product(_names(ops), _dtypes(dtypes)))
    folder = _writable_folder()
    before = files.kept(folder)
    had = cache.known() if processes == 1 else frozenset()
    used: set[str] = set()
    for count, (task, keys) in enumerate(_done(tasks, processes), 1):
        used |= keys
        if progress is not None:
            progress(count, len(tasks), " ".join(task))
    after = files.kept(folder)
    new = used - had - before.keys()
    if not new <= after.keys():
        raise OSError(f"{len(new - after.keys())} of {len(new)} functions could not be written to {folder}")
    seconds = time.perf_counter() - begin
    return Warmup(len(new), len(used & before.keys()), folder, sum(after.values()), seconds)


_MANY_ROWS = 128  # so many that forwards are ours too
_MACHINERY = "the machinery"  # a task like an operation


def _names(ops: Sequence[str] | None) -> list[str]:
    if ops is None or not op_table.keys() >= set(ops):
        load_all()
    unknown = sorted(set(ops or ()) - op_table.keys())
    if unknown:
        raise ValueError(f"there is no operation {', '.join(unknown)}; there are {', '.join(sorted(op_table))}")
    return [_MACHINERY, *(op_table if ops is None else dict.fromkeys(ops))]


def _dtypes(dtypes: Sequence[Any]) -> list[str]:
    names = list(dict.fromkeys(np.dtype(dtype).name for dtype in dtypes))
    wrong = [name for name in names if name not in _DTYPES]
    if wrong or not names:
        raise ValueError(f"dtypes must be of {', '.join(_DTYPES)}, not {', '.join(wrong) or 'none'}")
    return names


def _writable_folder() -> str:
    import tempfile  # here and below: who only imports tapegrad needs none of it, and it takes 20 ms

    folder = files.folder()
    if folder is None:
        raise OSError("there is no folder for the cache that can be made and is safe to use; set TAPEGRAD_CACHE_DIR")
    try:
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise OSError(f"the cache {folder} cannot be written to: {error}") from None


def _done(tasks: list[tuple[str, str]], processes: int) -> Iterator[tuple[tuple[str, str], frozenset[str]]]:
    """Yield each task when it is done, with the keys of the functions that its process knows then."""
    if processes == 1:
        for task in tasks:
            yield task, _do(task)
        return
    import multiprocessing
    import signal
    from concurrent.futures import ProcessPoolExecutor, as_completed

    # Ctrl-C is for this process, which then waits for what is being compiled and for nothing else.
    pool = ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
    )
    try:
        # The machinery first, and alone: the others would all compile it too.
        yield tasks[0], pool.submit(_do, tasks[0]).result()
        running = {pool.submit(_do, task): task for task in tasks[1:]}
        for future in as_completed(running):
            yield running[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _do(task: tuple[str, str]) -> frozenset[str]:
    """Compile what an operation needs for a dtype, and return the keys of all that this process knows by then."""
    name, dtype = task
    with enable_grad(), np.errstate(all="ignore"):
        if name == _MACHINERY:
            _run_machinery(np.dtype(dtype))
        else:
            op = op_table[name]
            for sample in op.samples if not (op.real_only and np.dtype(dtype).kind == "c") else ():
                for one in _sizes(op, sample):
                    _run_sample(op, one, np.dtype(dtype))
        for plan in alive():
            plan.complete()
    drafts.finish()  # whose code is what the cache keeps
    return cache.known()


def _run_machinery(dtype: np.dtype) -> None:
    """Record and sweep, over small arrays and over large ones, which are gone through in blocks and summed in parts."""
    from tapegrad.autograd import grad  # at call time: it stands above all operations
    from tapegrad.program import entry

    x = from_array(np.ones(())).requires_grad_()
    grad(xp.mul(x, x), x)
    grad(xp.mul(x, x), x, create_graph=True)
    grad(xp.mul(x, x), x, from_array(np.ones(1)), is_grads_batched=True)
    tensor(np.ones(()), requires_grad=True).detach()
    from_numpy(np.ones(()))
    _run_function(x)
    entry.load_all()
    for length in (2, blocking.ENOUGH_BLOCKS * blocking.division.block or 2):
        x, y = from_array(np.ones(length, dtype)).requires_grad_(), from_array(np.ones((), dtype)).requires_grad_()
        xp.sum(xp.mul(xp.mul(x, y), x)).backward(from_array(np.ones((), dtype)))
    if dtype.kind == "f":
        _run_optimizers(dtype)


def _run_function(x: Tensor) -> None:
    """Call a function of a user's, and go back over it."""
    from tapegrad.autograd import Function  # at call time, as above

    class Copy(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, ct: Tensor) -> Tensor:
            return ct

    for _ in range(2):
        Copy.apply(x).backward()


def _run_optimizers(dtype: np.dtype) -> None:
    """Make a step of each optimizer that is a formula."""
    from tapegrad import optim  # at call time, as above
    from tapegrad.optim.compiled import FormulaOptimizer

    for kind in [getattr(optim, name) for name in optim.__all__]:
        if isinstance(kind, type) and issubclass(kind, FormulaOptimizer):
            x = from_array(np.ones(2, dtype)).requires_grad_()
            x.grad = from_array(np.ones(2, dtype))
            kind([x]).step()  # type: ignore[call-arg]  # each class has its own defaults


def _sizes(op: Op, sample: Sample) -> Iterator[Sample]:
    """Yield a sample as it is and, where shapes are free, with many rows: long ones, and those with own kernels."""
    yield sample
    free = op.step is elementwise_step or op.family == "reduction"
    if free and sample.values is None and any(len(shape) > 1 for shape in sample.shapes):
        unrolled = op.forward in ARITHMETIC or op.family == "reduction"
        for length in (2 * SHORT, *(range(2, SHORT + 1) if unrolled else ())):
            sizes = {2: _MANY_ROWS, 3: length}
            yield Sample(tuple(tuple(sizes.get(n, n) for n in shape) for shape in sample.shapes), sample.attrs)


def _run_sample(op: Op, sample: Sample, dtype: np.dtype) -> None:
    """Call an op, and go back over it, on all kinds of operands that a sample stands for."""
    first = _operands(op, sample, dtype)
    for operands in _kinds(op, first):
        floating = [n for n, value in enumerate(operands) if isinstance(value, np.ndarray) and value.dtype.kind in "fc"]
        for wanted in _choices(floating):
            if any(isinstance(op.rule(number), NotYet) for number in wanted):
                continue
            tensors = [from_array(value) if isinstance(value, np.ndarray) else value for value in operands]
            for number in wanted:
                tensors[number].requires_grad_()
            try:
                out = op.called(tensors, sample.attrs)
            except (TypeError, RuntimeError):
                if not all(isinstance(value, type(given)) for value, given in zip(operands, first, strict=True)):
                    break  # it takes no Python numbers
                if dtype.kind == "c":
                    return  # NumPy has no such function of complex numbers
                raise
            if out.requires_grad:
                out.backward(from_array(np.ones(out.shape, out.dtype)))


def _operands(op: Op, sample: Sample, dtype: np.dtype) -> list[Any]:
    low, high = op.domain
    operands: list[Any] = []
    for shape, value in zip(sample.shapes, sample.values or (None,) * len(sample.shapes), strict=True):
        if value is None:
            operands.append(np.full(shape, low + 0.6 * (high - low), dtype))
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
            operands.append(value.astype(dtype))
        elif callable(value):
            operands.append(value(shape, dtype, np.random.default_rng(0)))
        else:
            operands.append(value)
    return operands


def _kinds(op: Op, operands: list[Any]) -> Iterator[list[Any]]:
    """Yield operands as they are, with steps between their elements, and with Python numbers for each."""
    yield operands
    arrays = [n for n, value in enumerate(operands) if isinstance(value, np.ndarray) and value.dtype.kind in "fc"]
    if any(operands[number].ndim for number in arrays):
        yield [_spaced(value) if number in arrays else value for number, value in enumerate(operands)]
    if op.step is elementwise_step and len(operands) > 1:
        for number in arrays:
            yield [*operands[:number], 1.5, *operands[number + 1 :]]


def _spaced(array: np.ndarray) -> np.ndarray:
    return np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array


def _choices(numbers: list[int]) -> list[tuple[int, ...]]:
    """Return which operands want a gradient: none, each alone, and all."""
    return list(dict.fromkeys([(), *((number,) for number in numbers), tuple(numbers)]))
