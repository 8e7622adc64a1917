"""Each public operation beside PyTorch's of the same name: forward and backward, of samples from small to large."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from bench.table import Table, ratio, seconds
from bench.timing import Run, interleaved, once, quiet_collector
from bench.tools import installed

GROWTH = 64  # elements of a result for each of its operand, from which on no larger operand is tried
LONGEST = 0.1  # seconds of a call that is timed; combinations of all elements take more
# What tools say of operands that a sample was not made for.
REFUSALS = (TypeError, ValueError, RuntimeError, IndexError, AttributeError, AssertionError)
SIZES = (1, 100, 10_000)  # elements of the largest operand; the first stands for a sample as it is
HEAD = """# Operations

Forward and backward of each public operation beside PyTorch's function of the same name, slowest first: one thread,
float64, called as a sample of the op table says. A ratio above 1 says how many times as long PyTorch takes. The
smallest operands are those of the sample, numbers where it has no dimensions; then its lengths are multiplied until the
largest operand has about 100 and 10,000 elements, where the operation takes that. Results are compared before anything
is timed.

What is below 1 belongs to a few kinds. Factorisations and their solutions are LAPACK's: OpenBLAS here, MKL in PyTorch.
With 100 rows, products take the same time in both, LU and Cholesky factors too, but triangular systems 1.8 times as
long in OpenBLAS, solved with rows (2.7 with columns), QR and eigenvalues 1.3 to 1.5 times. Functions of SciPy (Bessel
and gamma functions) go number by number. Some rules are a chain of operations of NumPy (pooling, sampling of grids,
losses of margins), which costs some microseconds on few elements and a pass over memory each on many.

```sh
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m bench --ops --report docs/benchmarks
```
"""


class Subject(NamedTuple):
    """An operation: its name, the row of the op table or a composite, and the function of each tool."""

    name: str
    made: Any
    ours: Callable[..., Any]
    theirs: Callable[..., Any]


def subjects(names: Sequence[str]) -> Iterator[Subject]:
    """Yield the operations that PyTorch has, too, under the first of their names; all or those with these names."""
    import torch

    from tapegrad.ops.table.composites import composites
    from tapegrad.ops.table.loading import load_all
    from tapegrad.ops.table.public import registry

    load_all()
    for one in sorted(registry, key=attrgetter("name")):
        made = getattr(one.function, "op", None) or composites.get(one.name)
        if made is None or not one.names.namespaces:
            continue
        path = [*one.names.namespaces[0].split(".")[1:], one.name]
        if names and not {one.name, ".".join(path)} & set(names):
            continue
        try:
            yield Subject(".".join(path), made, one.function, attrgetter(".".join(path))(torch))
        except AttributeError:  # one of NumPy's or SciPy's
            continue


def scaled(sample: Any, size: int) -> Any | None:
    """Return a sample whose largest operand has about so many elements; None where that has no sense."""
    if size == 1:
        return sample
    elements = max(map(math.prod, sample.shapes))
    dims = max(sum(length > 1 for length in shape) for shape in sample.shapes)
    if not elements or not dims or any(isinstance(value, np.ndarray) for value in sample.values or ()):
        return None
    factor = int((size / elements) ** (1 / dims))
    if factor < 2:
        return None
    shapes = tuple(tuple(n * factor if n > 1 else n for n in shape) for shape in sample.shapes)
    return sample._replace(shapes=shapes)


def _operands(made: Any, sample: Any, own: Callable[[np.ndarray], Any]) -> tuple[list[Any], list[Any]]:
    """Return a tool's operands of a sample, and those of them that want a gradient."""
    from tapegrad.testing.operands import operands_of

    operands, leaves = [], []
    for number, value in enumerate(operands_of(made, sample, np.float64, np.random.default_rng(0))):
        operands.append(own(np.array(value)) if isinstance(value, (np.ndarray, np.generic)) else value)
        wanted = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        if wanted and callable(made.rule(number)):  # there is a derivative
            leaves.append(operands[-1].requires_grad_())
    return operands, leaves


def _run_of(tool: str, subject: Subject, sample: Any) -> tuple[Run, np.ndarray]:
    """Return a function that computes forward and backward, and the value that it computes.

    Raises
    ------
    ValueError
        If no gradient flows.
    """
    import torch

    import tapegrad as tg

    own = torch.from_numpy if tool == "torch" else tg.from_numpy
    function, made = subject.theirs if tool == "torch" else subject.ours, subject.made
    operands, leaves = _operands(made, sample, own)
    if made.call is not None and not hasattr(made, "vjp"):  # that of an op calls our function
        call = partial(made.call, function, *operands, **sample.attrs)
    else:
        call = partial(function, *([operands] if made.variadic else operands), **sample.attrs)

    def value() -> Any:
        out = call()
        return next((one for one in (out if isinstance(out, (tuple, list)) else [out]) if one.requires_grad), None)

    first = value()
    if first is None or not leaves or not first.is_floating_point():
        raise ValueError(f"{subject.name}: there is no gradient of real numbers")
    seed = own(np.ones(tuple(first.shape)))

    def run() -> None:
        for leaf in leaves:
            leaf.grad = None
        value().backward(seed)

    run()
    return run, first.detach().numpy()


def _times(subject: Subject, size: int, rounds: int) -> tuple[float, float, bool] | None:
    """Return our time and the ratio of PyTorch's to it, for the first sample that both take at this size.

    The third says whether the result grows so fast that a larger size has no sense, as that of combinations.
    """
    for sample in subject.made.samples:
        chosen = scaled(sample, size)
        if chosen is None:
            continue
        try:
            runs = {tool: _run_of(tool, subject, chosen) for tool in ("tapegrad", "torch")}
        except REFUSALS:
            continue
        (ours, value), (theirs, other) = runs["tapegrad"], runs["torch"]
        if (
            not value.size
            or value.shape != other.shape
            or not np.allclose(value, other, rtol=1e-6, atol=1e-9, equal_nan=True)
        ):
            continue
        if max(once(ours), once(theirs)) > LONGEST:
            return None
        times = interleaved({"tapegrad": ours, "torch": theirs}, rounds, at_least=0.002)
        grows = value.size > GROWTH * max(size, SIZES[1])
        return float(np.median(times["tapegrad"])), float(np.median(times["torch"] / times["tapegrad"])), grows
    return None


def _cells(subject: Subject, sizes: Sequence[int], rounds: int) -> list[tuple[float, float] | None]:
    """Return what `_times` returns for each size; None behind one at which the result grows too fast."""
    cells: list[tuple[float, float] | None] = []
    for size in sizes:
        found = _times(subject, size, rounds)
        cells.append(found and found[:2])
        if found and found[2]:
            break
    return cells + [None] * (len(sizes) - len(cells))


def table(names: Sequence[str], rounds: int, quick: bool) -> Table:
    """Measure operations; the slowest beside PyTorch's come first."""
    sizes = SIZES[:1] if quick else SIZES
    columns = [text for size in sizes for text in (f"tapegrad, {size}", "torch")]
    found = Table("operations: forward and backward; torch's time over ours", ("operation", *columns))
    if not installed("torch"):
        found.notes.append("left out: torch is not installed")
        return found
    import torch

    torch.set_num_threads(1)
    rows, skipped = [], []
    with quiet_collector():
        for subject in subjects(names):
            cells = _cells(subject, sizes, rounds)
            ratios = [cell[1] for cell in cells if cell]
            texts = [text for cell in cells for text in ((seconds(cell[0]), ratio(cell[1])) if cell else ("-", "-"))]
            if ratios:
                rows.append((min(ratios), [subject.name, *texts], ratios))
            else:
                skipped.append(subject.name)
    rows.sort(key=lambda row: row[0])
    found.rows += [texts for _, texts, _ in rows]
    every = [ratio for *_, ratios in rows for ratio in ratios]
    least = sum(one >= 1 for one in every)
    found.notes.append(f"{least} of {len(every)} ratios of {len(rows)} operations are at least 1")
    if skipped:
        found.notes.append(f"not compared (no gradient, random, or other arguments): {', '.join(skipped)}")
    return found
