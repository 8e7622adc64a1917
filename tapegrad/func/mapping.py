"""`vmap`: a function of one item, over the items of a batch: by a program of one item, or by a call for each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.func.level import of_compiled
from tapegrad.func.trees import broadcast, flatten, rebuild, structure
from tapegrad.ops.creation import as_tensor
from tapegrad.ops.generators import default_generator
from tapegrad.ops.table import functions as ops
from tapegrad.tensor import Tensor

InDims = int | tuple[Any, ...]
_FEW: Final = 8  # items, which a trace writes down one after the other
_SOME: Final = 20  # items, for which no machine code is made
_LATER: Final = 4096  # items of calls of this process: before, programs are not imported for them

#: How many items calls outside of programs have had.
counts: Final = {"items": 0}


@of_compiled
def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Return the function that maps a function over a dimension of its arguments.

    Parameters
    ----------
    func : callable
        A function of one item, that returns tensors, or a dict, list, tuple or named tuple of them.
    in_dims : int or nested containers
        The dimension over which each argument is mapped; None for an argument that every item gets whole. One integer
        applies to all arguments. A tuple has an entry for each argument, which may have the argument's structure.
    out_dims : int or nested containers
        The dimension of each result along which the items are stacked; None for a result that does not depend on the
        item.
    randomness : {"error", "same", "different"}
        Whether the function may draw random numbers, and whether all items get the same ones.
    chunk_size : int, optional
        Has no effect: memory holds only the results of all items.

    Returns
    -------
    callable
        Takes the batches as positional arguments; keyword arguments are not mapped.

    Raises
    ------
    ValueError
        From the function that is returned: if dimensions do not fit the arguments or the results.
    RuntimeError
        If the function draws random numbers though `randomness` is "error".

    Notes
    -----
    In a compiled function, and in calls with many items, the function is traced for one item, and its program runs for
    all items as machine code: see `tapegrad.compile`. Side effects, e.g. printing, then happen once. If the function
    branches on values, it is traced for one item of each branch. In calls with few items, or if tracing fails, the
    function is called for each item.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> tg.func.vmap(tg.dot)(x, x)
    tensor([ 5., 25.])
    >>> tg.func.vmap(tg.func.grad(lambda w, x: tg.sigmoid(w.dot(x))), in_dims=(None, 0))(tg.zeros(2), x)
    tensor([[0.2500, 0.5000],
            [0.7500, 1.0000]])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        batch = _Batch(func, in_dims, args)
        is_traced = modes.is_traced()
        if batch.size > (_FEW if is_traced else _SOME):
            found = batch.mapped(func, kwargs) if is_traced else batch.mapped_at_once(func, kwargs, randomness)
            if found is not None:
                return _placed(batch.name, out_dims, found)
        items = batch.items() if batch.size else iter([batch.empty_item()])
        outputs = []
        source = default_generator.numpy.bit_generator
        state = source.state
        for number, item in enumerate(items):
            if randomness == "same":
                source.state = state
            outputs.append(func(*item, **kwargs))
            if randomness == "error" and number == 0 and source.state != state:
                raise RuntimeError(
                    "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
                    "'different' randomness flags on vmap or perform the randomness operation out of vmap"
                )
        return _joined(batch.name, out_dims, outputs, batch.size)

    return wrapper


class _Batch:
    """The arguments of a mapped function, and along which dimension each is cut into items."""

    def __init__(self, func: Callable[..., Any], in_dims: Any, args: tuple[Any, ...]) -> None:
        self.name = getattr(func, "__name__", repr(func))
        self.args, self.leaves = args, flatten(args)
        where = f"vmap({self.name}, in_dims={in_dims}, ...)(<inputs>)"
        if not isinstance(in_dims, (int, tuple)):
            raise ValueError(
                f"{where}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of "
                f"inputs, got: {type(in_dims)}."
            )
        if not args:
            raise ValueError(
                f"vmap({self.name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to "
                f"vmap over a function with no inputs. The latter is unsupported."
            )
        dims = broadcast(in_dims, args)
        if dims is None:
            raise ValueError(
                f"{where}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
                f"{structure(in_dims)} but inputs has structure {structure(args)}."
            )
        self.dims = [_checked(where, dim, leaf) for dim, leaf in zip(dims, self.leaves, strict=True)]
        sizes = [leaf.shape[dim] for leaf, dim in zip(self.leaves, self.dims, strict=True) if dim is not None]
        if not sizes:
            raise ValueError("vmap: Expected at least one Tensor to vmap over")
        if len(set(sizes)) > 1:
            raise ValueError(
                f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
                f"mapped dimension"
            )
        self.size: int = sizes[0]

    def items(self) -> Iterator[Any]:
        """Yield the arguments for each item."""
        parts = [[leaf] * self.size if dim is None else _cut(leaf, dim)
                 for leaf, dim in zip(self.leaves, self.dims, strict=True)]  # fmt: skip
        for leaves in zip(*parts, strict=True):
            yield rebuild(self.args, leaves)

    def mapped(self, func: Callable[..., Any], kwargs: dict[str, Any], in_program: bool = True) -> Any:
        """Return what the function returns for all items, with these along the first dimension; see `mapped`."""
        from tapegrad.program.mapped import mapped  # at call time: programs import this package

        places = [place for place, dim in enumerate(self.dims) if dim is not None]
        operands = [_moved(as_tensor(self.leaves[place]), self.dims[place] or 0, 0) for place in places]

        def call(*items: Tensor) -> Any:
            leaves = list(self.leaves)
            for place, item in zip(places, items, strict=True):
                leaves[place] = item
            return func(*rebuild(self.args, leaves), **kwargs)

        return mapped(func, call, operands, in_program)

    def mapped_at_once(self, func: Callable[..., Any], kwargs: dict[str, Any], randomness: str) -> Any:
        """Do the same outside of programs; None if the function is to be called for each item."""
        if randomness != "error" or modes.interceptor() is not None:
            return None
        counts["items"] += self.size
        if counts["items"] <= _LATER:
            return None
        found = self.mapped(func, kwargs, in_program=False)
        if found is None or not any(isinstance(leaf, np.ndarray) for leaf in self.leaves):
            return found
        kinds = [isinstance(leaf, Tensor) for leaf in flatten(func(*next(self.items()), **kwargs))]
        leaves = [
            own if is_tensor or not isinstance(own, Tensor) else own.numpy()
            for own, is_tensor in zip(flatten(found), kinds, strict=True)
        ]
        return rebuild(found, leaves)

    def empty_item(self) -> Any:
        """Return zeros of an item's shape, for a batch without items, whose results have a shape too."""
        leaves = [leaf if dim is None else ops.zeros(leaf.shape[:dim] + leaf.shape[dim + 1 :], dtype=leaf.dtype)
                  for leaf, dim in zip(self.leaves, self.dims, strict=True)]  # fmt: skip
        return rebuild(self.args, leaves)


def _checked(where: str, dim: Any, leaf: Any) -> int | None:
    """Return the dimension of a leaf that is mapped, counted from the front."""
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(
            f"{where}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
        )
    if not isinstance(leaf, (Tensor, np.ndarray)):
        raise ValueError(
            f"{where}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
            f"non-Tensor arguments, please use None as the respective in_dim"
        )
    if not -leaf.ndim <= dim < leaf.ndim:
        raise ValueError(
            f"{where}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {leaf.ndim} so "
            f"expected in_dim to satisfy -{leaf.ndim} <= in_dim < {leaf.ndim}."
        )
    return dim % leaf.ndim


def _cut(leaf: Any, dim: int) -> Sequence[Any]:
    return ops.unbind(leaf, dim) if isinstance(leaf, Tensor) else list(np.moveaxis(leaf, dim, 0))


def _moved(tensor: Tensor, source: int, target: int) -> Tensor:
    return tensor if source == target else ops.movedim(tensor, source, target)


def _placed(name: str, out_dims: Any, output: Any) -> Any:
    """Return results with the items along the first dimension as they were asked for."""
    dims, leaves = _dims_of(name, out_dims, output), flatten(output)
    for place, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if isinstance(leaf, Tensor):
            leaves[place] = ops.select(leaf, 0, 0) if dim is None else _moved(leaf, 0, dim)
        elif isinstance(leaf, np.ndarray):
            leaves[place] = leaf[0] if dim is None else np.moveaxis(leaf, 0, dim)
        elif dim is not None:
            raise _no_tensor(name, leaf)
    return rebuild(output, leaves)


def _dims_of(name: str, out_dims: Any, output: Any) -> list[Any]:
    """Return where the items shall stand in each leaf of what the function returned."""
    where = f"vmap({name}, ..., out_dims={out_dims})(<inputs>)"
    if any(not isinstance(dim, int) and dim is not None for dim in flatten(out_dims)):
        raise ValueError(
            f"{where}: `out_dims` must be an int, None or a python collection of ints representing where in the "
            f"outputs the vmapped dimension should appear."
        )
    dims = broadcast(out_dims, output)
    if dims is None:
        raise ValueError(
            f"{where}: out_dims is not compatible with the structure of `outputs`. out_dims has structure "
            f"{structure(out_dims)} but outputs has structure {structure(output)}."
        )
    return dims


def _joined(name: str, out_dims: Any, outputs: list[Any], size: int) -> Any:
    """Return the results of all items, joined along the dimensions that were asked for."""
    dims = _dims_of(name, out_dims, outputs[0])
    columns = zip(*map(flatten, outputs), strict=True)
    return rebuild(outputs[0], [_stacked(name, values, dim, size) for values, dim in zip(columns, dims, strict=True)])


def _no_tensor(name: str, value: Any) -> ValueError:
    return ValueError(
        f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(value)}. Did you mean to set "
        f"out_dims= to None for output?"
    )


def _stacked(name: str, values: Sequence[Any], dim: int | None, size: int) -> Any:
    if dim is None:
        return values[0]
    for value in values:
        if not isinstance(value, (Tensor, np.ndarray, np.generic)):
            raise _no_tensor(name, value)
    if all(isinstance(value, Tensor) for value in values):
        joined = ops.stack(values, dim)
        return joined if size else ops.narrow(joined, dim, 0, 0)
    return np.stack([value.numpy() if isinstance(value, Tensor) else value for value in values], dim)
