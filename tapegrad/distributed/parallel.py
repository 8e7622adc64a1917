"""A function of a batch, on workers that each take chunks of it: `data_parallel`."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import dask
import numpy as np
from distributed import Client, Future

from tapegrad.distributed import workers
from tapegrad.func.trees import broadcast, flatten, rebuild, structure, tree_map
from tapegrad.program.program import Program
from tapegrad.tensor import Tensor

REDUCTIONS: Final = ("mean", "sum", "concat")


class Split(NamedTuple):
    """Chunks of an argument that are on the workers; see `split`."""

    futures: tuple[Future[Any], ...]
    lengths: tuple[int, ...]
    examples: tuple[Any, Any]  # the first chunk, and the last, which may be shorter


def split(value: Any, client: Client, chunks: int = 8, dim: int = 0) -> Split:
    """Cut an argument into chunks and bring them to the workers, so that several calls can use them.

    Parameters
    ----------
    value : array_like, or a dict, list or tuple of them
    client : distributed.Client
    chunks : int, default 8
        Into how many; each is one longer than the others at most.
    dim : int, default 0
        The dimension that is cut.

    Returns
    -------
    Split
        Given to a function of `data_parallel` in the argument's place.

    Raises
    ------
    ValueError
        If there are fewer items than chunks, or arrays of different lengths.

    Examples
    --------
    >>> import numpy as np
    >>> from distributed import Client
    >>> import tapegrad as tg
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     x = tg.distributed.split(np.arange(10.0), client, chunks=4)
    ...     total = tg.distributed.data_parallel(lambda x: x.sum(), client, reduce="sum", chunks=4)
    ...     (x.lengths, float(total(x)))
    ((3, 3, 2, 2), 45.0)
    """
    return _split_along(value, client, chunks, dim)


def _split_along(value: Any, client: Client, chunks: int, dims: Any) -> Split:
    """Cut an argument along dimensions, of which there is one for all its arrays, or for each; None leaves it whole."""
    parts = _parts(_plain(value), chunks, dims)
    futures = [_placed(part, client) for part, _ in parts]
    return Split(tuple(futures), tuple(length for _, length in parts), (parts[0][0], parts[-1][0]))


def _placed(value: Any, client: Client) -> Future[Any]:
    """Bring arrays to a worker, from which others get them.

    They stand in a task, which another worker can do again. What is scattered is lost with its worker.
    """
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        return client.submit(workers.hold, value, pure=False)


def _parts(value: Any, chunks: int, dims: Any) -> list[tuple[Any, int]]:
    leaves, along = [np.asarray(leaf) for leaf in flatten(value)], broadcast(dims, value)
    if along is None:
        raise ValueError(f"in_dims must be like the arguments, {structure(value)}, but has {structure(dims)}")
    cut = [(leaf, dim) for leaf, dim in zip(leaves, along, strict=True) if dim is not None]
    lengths = {leaf.shape[dim] if leaf.ndim > max(dim, -dim - 1) else None for leaf, dim in cut}
    if len(lengths) != 1 or None in lengths:
        shapes = ", ".join(f"{leaf.shape} along {dim}" for leaf, dim in cut)
        raise ValueError(f"arrays of a batch have the same length where they are cut, but got shapes {shapes}")
    length = next(own for own in lengths if own is not None)
    if length < chunks:
        raise ValueError(f"{length} items cannot be split into {chunks} chunks; give chunks=")
    columns = [
        [leaf] * chunks if dim is None else np.array_split(leaf, chunks, axis=dim)
        for leaf, dim in zip(leaves, along, strict=True)
    ]
    counts = [len(own) for own in np.array_split(np.empty(length), chunks)]
    return [
        (rebuild(value, [np.ascontiguousarray(column[i]) for column in columns]), count)
        for i, count in enumerate(counts)
    ]


def _plain(value: Any) -> Any:
    """Return arguments without tensors."""

    def plain(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            if leaf.requires_grad:
                raise ValueError(
                    "data_parallel() takes tensors that require no grad: no graph leads through other processes. Take "
                    "the gradient inside, e.g. data_parallel(func.value_and_grad(loss), client), and give x.detach()"
                )
            return leaf.numpy()
        return leaf

    return tree_map(plain, value)


def data_parallel(
    function: Callable[..., Any],
    client: Client,
    in_dims: int | Sequence[Any] = 0,
    *,
    chunks: int = 8,
    reduce: str = "mean",
) -> DataParallel:
    """Compile a function of a batch, and run it for chunks of the batch on the workers of a cluster.

    Parameters
    ----------
    function : callable
        Takes and returns arrays, and dicts, lists and tuples of them: e.g. ``func.value_and_grad(loss)``, or
        ``func.vmap(f)``. It is traced here, once for each length of chunks; workers get the program as data and
        compile it once.
    client : distributed.Client
    in_dims : int or sequence, default 0
        For each argument the dimension that is cut, None for one that all chunks get whole, e.g. parameters. In the
        place of a number may stand a container like the argument, as for `tapegrad.func.vmap`.
    chunks : int, default 8
        Into how many parts a batch is cut. Results depend on it in their last bits, not on the number of workers.
    reduce : {"mean", "sum", "concat"}, default "mean"
        What becomes of the chunks' results: their mean by the number of items, which is right for a function that is
        itself a mean over the batch; their sum; or arrays that stand one after the other along dimension 0.

    Returns
    -------
    callable
        Takes the arguments of `function`, or what `split` returns in place of one that is cut, and returns arrays.

    Raises
    ------
    ValueError
        If `in_dims` or `reduce` is another one; in a call, if a batch does not fit, or a tensor requires grad.

    Notes
    -----
    Sums are a binary tree over the chunks in their order: the same bits for the same chunks on any number of workers.
    If a worker dies, its tasks are done again by others.

    Examples
    --------
    >>> import numpy as np
    >>> from distributed import Client
    >>> import tapegrad as tg
    >>> def loss(w, x, y):
    ...     return ((x @ w - y) ** 2).mean()
    >>> x, w = np.arange(12.0).reshape(6, 2) / 12, np.array([1.0, -1.0])
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     step = tg.distributed.data_parallel(tg.func.value_and_grad(loss), client, (None, 0, 0), chunks=3)
    ...     value, slope = step(w, x, np.zeros(6))
    >>> np.allclose(slope, tg.func.grad(loss)(w, x, np.zeros(6)))
    True
    """
    if reduce not in REDUCTIONS:
        raise ValueError(f"reduce is one of {', '.join(REDUCTIONS)}, but got {reduce!r}")
    if chunks < 1:
        raise ValueError(f"chunks is 1 or more, but got {chunks}")
    return DataParallel(function, client, in_dims, chunks, reduce)


class DataParallel:
    """A function whose calls are spread over workers; see `data_parallel`."""

    def __init__(self, function: Callable[..., Any], client: Client, in_dims: Any, chunks: int, reduce: str) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.client = client
        self.in_dims = in_dims
        self.chunks = chunks
        self.reduce = reduce
        self._digests: dict[Any, str] = {}  # of the programs that workers have, by the shapes of their arguments

    def __call__(self, *args: Any) -> Any:
        """Return what the function returns for the whole batch."""
        dims = self._dims(len(args))
        given = [self._split(arg, dim) if dim is not None else _plain(arg) for arg, dim in zip(args, dims, strict=True)]
        batch = [arg for arg, dim in zip(given, dims, strict=True) if dim is not None]
        lengths = batch[0].lengths
        if any(other.lengths != lengths for other in batch):
            counts = ", ".join(f"{sum(other.lengths)} in {len(other.lengths)} chunks" for other in batch)
            raise ValueError(f"arguments that are cut have the same items and chunks, but got {counts}")
        digests = {
            length: self._digest([arg.examples[place] if isinstance(arg, Split) else arg for arg in given])
            for length, place in {lengths[-1]: -1, lengths[0]: 0}.items()
        }
        sent = [arg.futures if isinstance(arg, Split) else [_placed(arg, self.client)] * len(lengths) for arg in given]
        is_mean = self.reduce == "mean"
        parts = [
            self.client.submit(workers.run, digests[length], part, length if is_mean else None, pure=False)
            for length, *part in zip(lengths, *sent, strict=True)
        ]
        if self.reduce == "concat":
            found = self.client.gather(parts)
            columns = zip(*map(flatten, found), strict=True)
            return rebuild(found[0], [np.concatenate(column) for column in columns])
        while len(parts) > 1:  # a level of the tree
            pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
            parts = [self.client.submit(workers.add, *pair, pure=False) if len(pair) > 1 else pair[0] for pair in pairs]
        total = sum(lengths)
        return tree_map(lambda leaf: leaf / total if is_mean else leaf, parts[0].result())

    def _dims(self, count: int) -> list[Any]:
        """Return how each argument is cut: None for one that is not."""
        dims: list[Any] = [self.in_dims] * count if isinstance(self.in_dims, int) else list(self.in_dims)
        if len(dims) != count:
            raise ValueError(f"in_dims has {len(dims)} entries, but there are {count} arguments")
        dims = [None if all(own is None for own in flatten(dim)) else dim for dim in dims]
        if all(dim is None for dim in dims):
            raise ValueError("in_dims is None for each argument, so there is no batch to split")
        return dims

    def _split(self, arg: Any, dims: Any) -> Split:
        return arg if isinstance(arg, Split) else _split_along(arg, self.client, self.chunks, dims)

    def _digest(self, arguments: list[Any]) -> str:
        """Return the name of the program for such arguments; bring it to the workers if they do not have it."""
        leaves = [leaf if isinstance(leaf, (int, str)) else np.asarray(leaf) for leaf in flatten(arguments)]
        kinds = [(leaf.shape, leaf.dtype.str) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
        key = (structure(arguments), *kinds)
        if key not in self._digests:
            text = Program.trace(self.function, *arguments).text()
            digest = hashlib.sha256(text.encode()).hexdigest()
            self.client.register_plugin(workers.Programs(digest, text))
            self._digests[key] = digest
        return self._digests[key]
