"""Each public operation beside PyTorch's of the same name: forward and backward, of samples from small to large."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from operator import attrgetter
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from bench.table import Table, ratio, seconds
from bench.timing import Run, interleaved, once, quiet_collector
from bench.tools import installed

GROWTH = 64  # elements of a result for each of its operand, from which on no larger operand is tried
LONGEST = 0.1  # seconds of a call that is timed; combinations of all elements take more
# What tools say of operands that a sample was not made for.
REFUSALS = (TypeError, ValueError, RuntimeError, IndexError, AttributeError, AssertionError)
ANY_SIGN = frozenset(
    {"svd", "linalg.svd", "linalg.eig", "svd_lowrank", "pca_lowrank"}
)  # operations whose results are vectors of any sign
SIZES = (1, 100, 10_000)  # elements of the largest operand; the first stands for a sample as it is
HEAD = """# Operations

Forward and backward of each public operation beside PyTorch's function of the same name, slowest first: one thread,
float64, called as a sample of the op table says. A ratio above 1 says how many times as long PyTorch takes. The
smallest operands are those of the sample, numbers where it has no dimensions; then its lengths are multiplied until the
largest operand has about 100 and 10,000 elements, where the operation takes that. Results are compared before anything
is timed.

Factors, solutions, inverses, determinants, eigenvalues and singular values of up to 256 rows are kernels of ours, where
other libraries call OpenBLAS or MKL. With 1 and 100 elements all ratios are at least 2, but for eight operations of
matrices and spectra (1.75 to 2).

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
    """Return a sample whose largest operand has about so many elements; None where that has no sense.

    Arrays that the sample gives, such as indices, are repeated.
    """
    if size == 1:
        return sample
    elements = max(map(math.prod, sample.shapes))
    dims = max(sum(length > 1 for length in shape) for shape in sample.shapes)
    if not elements or not dims:
        return None
    factor = int((size / elements) ** (1 / dims))
    if factor < 2:
        return None
    shapes = tuple(tuple(n * factor if n > 1 else n for n in shape) for shape in sample.shapes)

    def repeated(value: Any) -> Any:
        is_array = isinstance(value, np.ndarray)
        return np.tile(value, [factor if n > 1 else 1 for n in value.shape]) if is_array else value

    attrs = {name: repeated(value) for name, value in sample.attrs.items()}
    return sample._replace(shapes=shapes, attrs=attrs, values=sample.values and (*map(repeated, sample.values),))


class Tool:
    """A library, whose functions are found by name as the op table's `xp` has them."""

    def __init__(self, name: str) -> None:
        import torch

        import tapegrad as tg

        self._places = (torch, torch.nn.functional, torch.special) if name == "torch" else (tg, tg.nn.functional)
        self.is_torch = name == "torch"
        self.own = torch.from_numpy if self.is_torch else tg.from_numpy

    def __getattr__(self, name: str) -> Any:
        return next(getattr(place, name) for place in self._places if hasattr(place, name))

    def converted(self, value: Any) -> Any:
        """Return a tensor in place of an array; any other value as it is."""
        return self.own(np.array(value)) if isinstance(value, (np.ndarray, np.generic)) else value


# What of a sample is given to a function, since a row of the op table stands for several: arguments as the sample
# names them; by position, as our function has them, because PyTorch's names differ; those that have no default.
def _as_named(function: Callable[..., Any], operands: list[Any], attrs: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(operands), attrs


def _by_position(function: Callable[..., Any], operands: list[Any], attrs: dict[str, Any]) -> tuple[Any, ...]:
    bound = inspect.signature(function).bind(*operands, **attrs)
    return bound.args, bound.kwargs


def _required(function: Callable[..., Any], operands: list[Any], attrs: dict[str, Any]) -> tuple[Any, ...]:
    parameters = inspect.signature(function).parameters.values()
    return tuple(operands[: sum(one.default is inspect.Parameter.empty for one in parameters)]), {}


WAYS = (_as_named, _by_position, _required)
# Of several results with a gradient. The first of some, a sign, has none but zero; the last of others is a vector of
# any sign, which is not compared.
RESULTS = (-1, 0)
# The operands that want a gradient: PyTorch has none by weights, labels or parameters of some functions.
LEAVES = (slice(None), slice(1), slice(-1, None))


def _run_of(tool: Tool, subject: Subject, sample: Any, way: Any, wanted: slice, result: int) -> tuple[Run, np.ndarray]:
    """Return a function that computes forward and backward, and the value that it computes.

    Raises
    ------
    ValueError
        If no gradient flows.
    """
    from tapegrad.testing.operands import operands_of

    function, made = subject.theirs if tool.is_torch else subject.ours, subject.made
    values = operands_of(made, sample, np.float64, np.random.default_rng(0))
    operands = [tool.converted(value) for value in values]
    attrs = {name: tool.converted(value) for name, value in sample.attrs.items()}
    leaves = [
        operand
        for number, operand in enumerate(operands)
        if isinstance(values[number], np.ndarray) and values[number].dtype.kind == "f" and callable(made.rule(number))
    ][wanted]
    for leaf in leaves:
        leaf.requires_grad_()
    if way is _as_named and made.call is not None:
        if hasattr(made, "vjp"):  # an op: it calls the public function, by name or of `xp`
            names = {**made.call.__globals__, "xp": tool, function.__name__: function}
            function = FunctionType(made.call.__code__, names, closure=made.call.__closure__)
        else:
            function = partial(made.call, function)
        call = partial(function, *([operands] if made.variadic else operands), **attrs)
    else:
        args, kwargs = way(subject.ours, [operands] if made.variadic else operands, attrs)
        call = partial(function, *args, **kwargs)
        if subject.name.endswith("_"):  # leaves are not written to
            call = lambda: function(args[0].clone(), *args[1:], **kwargs)  # noqa: E731

    def value() -> Any:
        out = call()
        found = [one for one in (out if isinstance(out, (tuple, list)) else [out]) if one.requires_grad]
        return found[result] if found else None

    first = value()
    if first is None or not leaves:
        raise ValueError(f"{subject.name}: there is no gradient")
    seed = tool.converted(np.ones(tuple(first.shape), complex if first.is_complex() else float))

    def run() -> None:
        for leaf in leaves:
            leaf.grad = None
        value().backward(seed)

    run()
    return run, first.detach().resolve_conj().numpy()


def _times(subject: Subject, size: int, rounds: int) -> tuple[float, float, bool] | None:
    """Return our time and the ratio of PyTorch's to it, for the first sample that both take at this size.

    The third says whether the result grows so fast that a larger size has no sense, as that of combinations.
    """
    tools = Tool("tapegrad"), Tool("torch")
    for sample, *how in product(subject.made.samples, WAYS, LEAVES, RESULTS):
        chosen = scaled(sample, size)
        if chosen is None:
            continue
        try:
            (ours, value), (theirs, other) = (_run_of(tool, subject, chosen, *how) for tool in tools)
        except REFUSALS:
            continue
        if subject.name in ANY_SIGN:
            value, other = abs(value), abs(other)
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
    """Return what `_times` returns for each size; None behind one at which the result grows too fast, or if no sample
    is taken as it is.
    """
    cells: list[tuple[float, float] | None] = []
    for size in sizes:
        found = _times(subject, size, rounds)
        cells.append(found and found[:2])
        if not cells[0] or (found and found[2]):
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
