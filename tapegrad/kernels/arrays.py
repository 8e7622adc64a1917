"""Kernels of functions over arrays that users write: their arguments are made from addresses and lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.compiler.by_numba import type_of
from tapegrad.compiler.elements import read
from tapegrad.compiler.intrinsics import NumbasOwn

#: The dtype of an argument, and how many dimensions it has.
Kind = tuple[str, int]


def array_kernel(function: Callable[..., None], kinds: tuple[Kind, ...]) -> Callable[[int, int, int], int]:
    """Return the kernel that calls a function with its operands and, as the last argument, its target.

    Arrays are contiguous. Operands cannot be written to; one without dimensions is a number. The words of the geometry
    behind the first are the lengths of all arguments.
    """

    @NumbasOwn
    def arguments(typingctx: Any, args: Any, geometry: Any) -> Any:
        """Make the tuple of the arguments."""
        from llvmlite import ir
        from numba.core import cgutils
        from numba.core import types as nb
        from numba.np.arrayobj import make_array, populate_array

        last = len(kinds) - 1
        made = [
            nb.Array(type_of(dtype), ndim, "C", readonly=place < last) if ndim or place == last else type_of(dtype)
            for place, (dtype, ndim) in enumerate(kinds)
        ]
        packed = nb.Tuple(made)

        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            word = ir.IntType(64)
            places, lengths = (builder.inttoptr(value, word.as_pointer()) for value in values)

            def word_at(pointer: Any, index: int) -> Any:
                return builder.load(builder.gep(pointer, [word(index)], source_etype=word), typ=word)

            results, first = [], 1
            for place, ((_, ndim), kind) in enumerate(zip(kinds, made, strict=True)):
                element = kind.dtype if isinstance(kind, nb.Array) else kind
                stored = context.get_data_type(element)
                address = builder.inttoptr(word_at(places, place), stored.as_pointer())
                if not isinstance(kind, nb.Array):
                    results.append(read(builder, str(element), address).one)
                    continue
                shape = [word_at(lengths, first + dim) for dim in range(ndim)]
                first += ndim
                size = word(context.get_abi_sizeof(stored))
                strides = [size] * ndim
                for dim in reversed(range(ndim - 1)):
                    strides[dim] = builder.mul(strides[dim + 1], shape[dim + 1])
                array = make_array(kind)(context, builder)
                populate_array(
                    array,
                    data=address,
                    shape=cgutils.pack_array(builder, shape, word),
                    strides=cgutils.pack_array(builder, strides, word),
                    itemsize=size,
                    meminfo=None,
                )
                results.append(array._getvalue())
            return context.make_tuple(builder, packed, results)

        return packed(args, geometry), codegen

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        function(*arguments(args, geometry))
        return 0

    return kernel


def array_geometry(shapes: Sequence[tuple[int, ...]]) -> list[int]:
    """Return the geometry of a kernel, for arguments of these shapes."""
    return [0, *[length for shape in shapes for length in shape]]
