"""The arguments of one call of a compiled function: which of their leaves are inputs of its program."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.dtypes import default_dtype
from tapegrad.func.trees import flatten, is_container, rebuild, structure
from tapegrad.ops.creation import as_tensor
from tapegrad.tensor import Tensor

VALUES: Final = (Tensor, np.ndarray, np.generic, float, complex)


class Given:
    """The arguments of one call.

    Attributes
    ----------
    tree : tuple
        Positional arguments, and a dict of those with names.
    leaves : list
    structure : object
        What the containers are.
    places : list of int
        Which leaves are inputs.
    has_arrays : bool
        Whether no leaf is a tensor, but some are arrays or numbers: then the results are arrays.
    inputs : list of Tensor
    wanted : list of bool
        Which inputs require grad.
    integers : list of int
        Which leaves are integers and inputs.
    foreign : list of int
        Which leaves are arrays that no tensor can show: not aligned, or of another byte order.
    """

    __slots__ = ("foreign", "has_arrays", "inputs", "integers", "leaves", "places", "structure", "tree", "wanted")
    inputs: list[Tensor]
    wanted: list[bool]

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], integers: Sequence[int] = ()) -> None:
        is_flat = not kwargs and not any(map(is_container, args))
        self.tree = args, kwargs
        self.leaves = list(args) if is_flat else flatten(self.tree)
        self.structure: Hashable = len(args) if is_flat else structure(self.tree)
        values = [place for place, leaf in enumerate(self.leaves) if isinstance(leaf, VALUES)]
        self.places, self.integers = sorted([*values, *integers]), list(integers)
        arrays = [place for place in values if isinstance(self.leaves[place], np.ndarray)]
        self.foreign = [
            place for place in arrays if not self.leaves[place].dtype.isnative or not self.leaves[place].flags.aligned
        ]
        self.has_arrays = bool(values) and not any(isinstance(self.leaves[own], Tensor) for own in values)

    def called_with_copies(self, function: Callable[..., Any]) -> Any:
        """Call a function with copies of those arrays; what it writes to them is written to the arrays."""
        leaves, places = list(self.leaves), self.foreign
        for place in places:
            leaves[place] = leaves[place].astype(leaves[place].dtype.newbyteorder("="))
        args, kwargs = rebuild(self.tree, leaves)
        try:
            return function(*args, **kwargs)
        finally:
            for own, copy in [(self.leaves[place], leaves[place]) for place in places]:
                if own.astype(copy.dtype).tobytes() != copy.tobytes():
                    own[...] = copy

    def read(self) -> Given:
        """Make the inputs tensors."""
        self.inputs = [as_tensor(self.leaves[place]) for place in self.places]
        is_recorded = modes.is_grad_enabled()
        self.wanted = [own.requires_grad and is_recorded for own in self.inputs]
        return self

    def with_integers(self, integers: Sequence[int]) -> Given:
        """Return the same call with certain integers as inputs, and no others."""
        return Given(*self.tree, integers).read()

    def key(self) -> Hashable:
        """Return what calls that one program may serve have in common.

        Raises
        ------
        TypeError
            When it is hashed, if a leaf that is no input cannot be.
        """
        places = set(self.places)
        return (
            self.structure,
            tuple(self.places),
            tuple([(own.shape, own.dtype) for own in self.inputs]),
            tuple(self.wanted),
            tuple([_known_by(leaf) for place, leaf in enumerate(self.leaves) if place not in places]),
            default_dtype(),
        )

    def unhashable(self) -> str:
        """Return what is wrong with a leaf that cannot be hashed."""
        kinds = {type(leaf).__name__ for leaf in self.leaves if type(leaf).__hash__ is None}
        return (
            f"got an argument of class {', '.join(sorted(kinds))}, which is no number, array or tensor, and not "
            "hashable: it cannot be a part of the signature; give its parts as arguments"
        )

    def without_inputs(self) -> tuple[Any, list[Any]]:
        """Return the arguments and their leaves with None in place of each input."""
        places = set(self.places)
        others = [None if place in places else leaf for place, leaf in enumerate(self.leaves)]
        return rebuild(self.tree, others), others

    def of_python(self) -> list[int]:
        """Return which inputs are numbers of Python."""
        return [number for number, place in enumerate(self.places) if type(self.leaves[place]) in (int, float, complex)]

    def with_tensors(self) -> Any:
        """Return the arguments with a tensor in place of each array, number and tensor."""
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, self.inputs, strict=True):
            leaves[place] = leaves[place] if place in self.integers else tensor
        return rebuild(self.tree, leaves)


def _known_by(leaf: Any) -> Hashable:
    """Return the class and the value of a leaf that is no input."""
    # Python 3.11 does not hash slices.
    return leaf.__class__, (leaf.start, leaf.stop, leaf.step) if isinstance(leaf, slice) else leaf
