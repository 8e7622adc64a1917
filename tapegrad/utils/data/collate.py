"""How items become a batch: tensors are stacked, in containers of any depth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tapegrad.ops.creation import as_tensor, tensor
from tapegrad.ops.table.op import xp
from tapegrad.tensor import Tensor
from tapegrad.utils.data.dataset import Subset, TensorDataset

_WRONG = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _like(container: Any, items: Any) -> Any:
    """Return a container of the type of another; a plain one if its type does not take the items."""
    plain = dict if isinstance(container, Mapping) else list
    if hasattr(container, "_fields"):  # a named tuple
        return type(container)(*items)
    try:
        return type(container)(items)
    except TypeError:
        return plain(items)


def default_collate(batch: Sequence[Any]) -> Any:
    """Return a batch made of items: the collate function of loaders.

    Parameters
    ----------
    batch : sequence
        Tensors and arrays of one shape, which are stacked; numbers; strings, which stay a list; or tuples, lists and
        dicts of such, which become one container of batches.

    Raises
    ------
    RuntimeError
        If lists are of different lengths, or tensors of different shapes.
    TypeError
        If the items are of another type.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.utils.data import default_collate
    >>> default_collate([(tg.ones(2), 3), (tg.zeros(2), 4)])
    [tensor([[1., 1.],
            [0., 0.]]), tensor([3, 4])]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return xp.stack(tuple(batch))
    if isinstance(first, (np.ndarray, np.generic)):
        if first.dtype.kind in "SUO":
            raise TypeError(_WRONG.format(first.dtype))
        arrays = [as_tensor(np.asarray(item)) for item in batch]
        return xp.stack(tuple(arrays))
    if isinstance(first, float):
        return tensor(list(batch), dtype=np.float64)
    if isinstance(first, int):
        return tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([item[key] for item in batch]) for key in first})
    if isinstance(first, Sequence):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [default_collate(items) for items in zip(*batch, strict=True)]
        return parts if type(first) is tuple else _like(first, parts)
    raise TypeError(_WRONG.format(type(first)))


def default_convert(data: Any) -> Any:
    """Return an item with tensors in place of arrays, in containers of any depth; for loaders without batches.

    Examples
    --------
    >>> import numpy as np
    >>> from tapegrad.utils.data import default_convert
    >>> default_convert({"a": np.zeros(2), "b": "x"})
    {'a': tensor([0., 0.]), 'b': 'x'}
    """
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in "SUO" else as_tensor(np.asarray(data))
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(item) for key, item in data.items()})
    if type(data) is tuple:
        return [default_convert(item) for item in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like(data, [default_convert(item) for item in data])
    return data


Collate = Callable[[Any], Any]


def rows_of(dataset: Any) -> Callable[[Sequence[int]], list[Tensor]] | None:
    """Return what gives the batch of some indices at once, as `default_collate` makes it of items; else None.

    Rows of tensors, of which the items of a `TensorDataset` are made, need not be taken one by one and stacked.
    """
    if dataset.__class__ is TensorDataset and all(one.__class__ is Tensor for one in dataset.tensors):
        return lambda indices: [tensor[np.array(indices)] for tensor in dataset.tensors]
    if dataset.__class__ is Subset:
        rows = rows_of(dataset.dataset)
        if rows is not None:
            return lambda indices: rows([int(dataset.indices[index]) for index in indices])
    return None
