"""Sequences of unlike lengths: padded to one length, or packed, all first steps first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad import modes
from tapegrad.ops.concat import cat, stack
from tapegrad.ops.creation import from_numpy
from tapegrad.ops.fill import full
from tapegrad.tensor import Tensor, from_array


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Sequences of unlike lengths, step by step: the first steps of all, then the second of those that have one, ...

    Attributes
    ----------
    data : Tensor, (total length, ...)
    batch_sizes : Tensor, (steps,)
        How many sequences have each step.
    sorted_indices, unsorted_indices : Tensor or None
        The order in which they stand, longest first, and the way back.

    Examples
    --------
    >>> import tapegrad as tg
    >>> packed = tg.nn.utils.rnn.pack_sequence([tg.tensor([1.0, 2.0, 3.0]), tg.tensor([4.0])])
    >>> packed.data, packed.batch_sizes
    (tensor([1., 4., 2., 3.]), tensor([2, 1, 1]))
    """

    __slots__ = ()

    def __new__(  # noqa: D102
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> PackedSequence:
        if unsorted_indices is None and sorted_indices is not None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            data, batch_sizes = data
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Convert the data, as `Tensor.to` does."""
        return self._replace(data=self.data.to(*args, **kwargs))

    def double(self) -> PackedSequence:
        """Convert the data to float64."""
        return self.to("float64")

    def float(self) -> PackedSequence:
        """Convert the data to float32."""
        return self.to("float32")

    def cpu(self) -> PackedSequence:
        """Return the same: it is on the CPU."""
        return self


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the permutation that undoes one.

    Parameters
    ----------
    permutation : Tensor or None

    Returns
    -------
    Tensor or None

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.nn.utils.rnn import invert_permutation
    >>> invert_permutation(tg.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else from_numpy(np.argsort(permutation.numpy()))


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack sequences that stand in one tensor, padded at their ends.

    Parameters
    ----------
    input : Tensor, (steps, n, ...)
    lengths : Tensor or sequence of int, (n,)
    batch_first : bool
        Whether `input` is (n, steps, ...).
    enforce_sorted : bool
        Whether the lengths fall already; otherwise they are sorted.

    Returns
    -------
    PackedSequence

    Raises
    ------
    RuntimeError
        If a length is not positive, or they do not fall though they should.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.nn.utils.rnn import pack_padded_sequence
    >>> x = tg.tensor([[1.0, 2.0], [3.0, 0.0]])
    >>> pack_padded_sequence(x, [2, 1], batch_first=True).data
    tensor([1., 3., 2.])
    """
    sizes = np.asarray(lengths._looked_at() if isinstance(lengths, Tensor) else lengths, np.int64)
    x, order = input.transpose(0, 1) if batch_first else input, None
    if not enforce_sorted:
        order = from_numpy(np.argsort(-sizes, stable=True))
        sizes, x = sizes[order.numpy()], x.index_select(1, order)
    if sizes.shape != x.shape[1:2]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {sizes.size} (batch_size={x.shape[1]})"
        )
    if sizes.size and sizes.min() <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if (np.diff(sizes) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    counts = (sizes[:, None] > np.arange(sizes[0])).sum(0)
    data = cat([x[step, :count] for step, count in enumerate(counts.tolist())])
    return PackedSequence(data, from_numpy(counts), order, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return packed sequences in one tensor, padded at their ends, and their lengths.

    Parameters
    ----------
    sequence : PackedSequence
    batch_first : bool
        Whether to return (n, steps, ...).
    padding_value : float
    total_length : int, optional
        The number of steps; default the longest length.

    Returns
    -------
    tuple of Tensor
        (steps, n, ...) and (n,).

    Raises
    ------
    ValueError
        If `total_length` is less than the longest length.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> pad_packed_sequence(pack_sequence([tg.tensor([1.0, 2.0]), tg.tensor([3.0])]), batch_first=True)
    (tensor([[1., 2.],
            [3., 0.]]), tensor([2, 1]))
    """
    data, batch_sizes, _, back = sequence
    counts = batch_sizes.numpy()
    steps = total_length if total_length is not None else len(counts)
    if steps < len(counts):
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {len(counts)}"
        )
    n, rest = int(counts[0]), data.shape[1:]
    places = np.full((steps, n), len(data))  # where each step stands in the data; behind them the padding
    start = 0
    for step, count in enumerate(counts.tolist()):
        places[step, :count] = np.arange(start, start + count)
        start += count
    padding = full((1, *rest), padding_value, dtype=data.dtype)
    lengths = from_numpy((counts[:, None] > np.arange(n)).sum(0))
    padded = cat([data, padding])[from_numpy(places)]
    if back is not None:
        padded, lengths = padded.index_select(1, back), lengths[back]
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_sequence(
    sequences: Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Stack sequences of unlike lengths; shorter ones are padded.

    Parameters
    ----------
    sequences : iterable of Tensor, (steps, ...)
    batch_first : bool
        Whether to return (n, steps, ...), not (steps, n, ...).
    padding_value : float
    padding_side : {"right", "left"}

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If there is none, or `sequences` is no iterable.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.nn.utils.rnn import pad_sequence
    >>> pad_sequence([tg.ones(2), tg.ones(1)], batch_first=True)
    tensor([[1., 1.],
            [1., 0.]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    several = list(sequences.unbind(0) if isinstance(sequences, Tensor) else sequences)
    if not several:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("right", "left"):
        raise RuntimeError(f"padding_side should be one of 'right' or 'left', but got {padding_side}")
    longest = max(len(own) for own in several)

    layout = several[0]._layout
    if not modes.mode.value and all(
        own.__class__ is Tensor and own._node is None and own._layout.dtype is layout.dtype
        and own._layout.shape[1:] == layout.shape[1:] for own in several
    ):  # fmt: skip
        whole = np.full((len(several), longest, *layout.shape[1:]), padding_value, layout.dtype)
        for row, own in zip(whole, several, strict=True):
            first = 0 if padding_side == "right" else longest - len(own)
            row[first : first + len(own)] = own._data
        return from_array(whole if batch_first else np.ascontiguousarray(whole.swapaxes(0, 1)))

    def padded(own: Tensor) -> Tensor:
        padding = full((longest - len(own), *own.shape[1:]), padding_value, dtype=own.dtype)
        whole: Tensor = cat([own, padding] if padding_side == "right" else [padding, own])
        return whole

    result: Tensor = stack([padded(own) for own in several], 0 if batch_first else 1)
    return result


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """Return the sequences that `pad_sequence` stacked.

    Parameters
    ----------
    padded_sequences : Tensor
    lengths : Tensor or sequence of int
    batch_first : bool

    Returns
    -------
    list of Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.nn.utils.rnn import unpad_sequence
    >>> unpad_sequence(tg.eye(2), [2, 1], batch_first=True)
    [tensor([1., 0.]), tensor([0.])]
    """
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [own[: int(length)] for own, length in zip(x, lengths, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of unlike lengths.

    Parameters
    ----------
    sequences : sequence of Tensor, (steps, ...)
    enforce_sorted : bool
        Whether the lengths fall already; otherwise they are sorted.

    Returns
    -------
    PackedSequence

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.nn.utils.rnn import pack_sequence
    >>> pack_sequence([tg.tensor([1.0, 2.0]), tg.tensor([3.0])]).data
    tensor([1., 3., 2.])
    """
    return pack_padded_sequence(pad_sequence(sequences), [len(own) for own in sequences], False, enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences that `pack_sequence` packed.

    Parameters
    ----------
    packed_sequences : PackedSequence

    Returns
    -------
    list of Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> unpack_sequence(pack_sequence([tg.tensor([1.0, 2.0]), tg.tensor([3.0])]))
    [tensor([1., 2.]), tensor([3.])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
