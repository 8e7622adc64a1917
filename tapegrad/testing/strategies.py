"""Hypothesis strategies: tensors, and samples of any op of the op table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tapegrad.ops.table.composites import Composite, composites
from tapegrad.ops.table.loading import load_all
from tapegrad.ops.table.op import Op, op_table
from tapegrad.ops.table.scope import PAGE
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor
from tapegrad.testing.calls import leaf
from tapegrad.testing.operands import draw, operands_of

try:
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as of_numpy
except ImportError as error:
    raise ImportError(
        "the strategies of tapegrad.testing need hypothesis: pip install tapegrad[test], or pip install hypothesis"
    ) from error

__all__ = ["MOVES", "OpSample", "samples", "tensors"]

Strategy = st.SearchStrategy[Any]


class OpSample(NamedTuple):
    """A call of an op: calling it with `operands` applies the op, with the attributes `attrs`.

    So it is a function that `gradcheck` and its kin take: ``gradcheck(sample, sample.operands)``.
    """

    op: str
    operands: tuple[Any, ...]
    attrs: Mapping[str, Any]

    def __call__(self, *operands: Any) -> Any:
        """Apply the op; several floating results are put into one vector."""
        return _found(self.op).called(operands, self.attrs)


def tensors(
    shape: Any = None, dtype: Any = np.float64, elements: Strategy | None = None, requires_grad: bool = True
) -> st.SearchStrategy[Tensor]:
    """Return a strategy that draws tensors.

    Parameters
    ----------
    shape : int, tuple of int, or strategy, optional
        By default up to three dimensions of up to four elements.
    dtype : dtype or strategy
    elements : strategy, optional
        Of the numbers; by default those of a magnitude of at most 10.
    requires_grad : bool
        Tensors of floating and complex dtypes require grad.

    Returns
    -------
    hypothesis.strategies.SearchStrategy

    Examples
    --------
    >>> from hypothesis import given
    >>> from tapegrad.testing import gradcheck, tensors
    >>> @given(tensors(shape=3))
    ... def test_product(x):
    ...     gradcheck(lambda x: x * x.sin(), x)
    >>> test_product()
    """
    shapes = of_numpy.array_shapes(min_dims=0, max_dims=3, max_side=4) if shape is None else _strategy(shape)

    def of_dtype(chosen: Any) -> st.SearchStrategy[Tensor]:
        chosen = np.dtype(chosen)
        numbers = _elements(chosen) if elements is None else elements
        wanted = requires_grad and chosen.kind in "fc"
        return of_numpy.arrays(chosen, shapes, elements=numbers).map(lambda array: leaf(array, wanted))

    return _strategy(dtype).flatmap(of_dtype)


def samples(op_name: str, dtype: Any = np.float64, requires_grad: bool = True) -> st.SearchStrategy[OpSample]:
    """Return a strategy that draws calls of an op: operands of its domain, and attributes, as its tests use them.

    Parameters
    ----------
    op_name : str
        An op, or a function that is made of ops, as docs/reference/ops.md lists them.
    dtype : dtype or strategy
        Of the operands that are floating; complex ones suit ops that have a complex derivative.
    requires_grad : bool
        Operands that the op has a derivative by require grad.

    Returns
    -------
    hypothesis.strategies.SearchStrategy

    Raises
    ------
    ValueError
        If there is no such op.

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> from tapegrad.testing import gradcheck, samples
    >>> @settings(deadline=None)  # the first call may compile
    ... @given(samples("logaddexp"))
    ... def test_logaddexp(sample):
    ...     gradcheck(sample, sample.operands)
    >>> test_logaddexp()
    """
    load_all()
    if op_name not in op_table and op_name not in composites:
        raise ValueError(f"samples() got {op_name!r}, which is no op of the op table: {PAGE} lists the ops.")
    op = _found(op_name)

    @st.composite
    def drawn(choose: Callable[[Strategy], Any]) -> OpSample:
        operands, attrs = _operands(choose, op, np.dtype(choose(_strategy(dtype))))
        wanted = [requires_grad and callable(op.rule(number)) for number in range(len(operands))]
        leaves = [
            leaf(value, differentiable and value.dtype.kind in "fc") if isinstance(value, np.ndarray) else value
            for value, differentiable in zip(operands, wanted, strict=True)
        ]
        return OpSample(op_name, tuple(leaves), attrs)

    return drawn()


def _found(name: str) -> Op | Composite:
    return op_table[name] if name in op_table else composites[name]


def _operands(
    choose: Callable[[Strategy], Any], op: Op | Composite, dtype: np.dtype[Any]
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Choose operands and attributes: those of a sample, of other shapes where any will do."""
    sample = choose(st.sampled_from(op.samples))
    rng = np.random.default_rng(choose(st.integers(0, 2**16)))
    if op.name in MOVES and choose(st.booleans()):
        shape = choose(of_numpy.array_shapes(max_dims=3, max_side=4))
        return (draw(shape, op.domain, dtype, rng),), choose(MOVES[op.name](shape))
    if isinstance(op, Op) and op.family in ("unary", "binary") and sample.values is None and choose(st.booleans()):
        count = len(sample.shapes)
        shapes = choose(of_numpy.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, max_side=4)).input_shapes
        sample = sample._replace(shapes=shapes)
    return operands_of(op, sample, dtype, rng), sample.attrs


def _strategy(value: Any) -> Strategy:
    return value if isinstance(value, st.SearchStrategy) else st.just(value)


def _elements(dtype: np.dtype[Any]) -> Strategy:
    least = 0 if dtype.kind == "u" else -10
    return of_numpy.from_dtype(dtype, min_value=least, max_value=10, max_magnitude=10, allow_nan=False)


def _shapes_of_size(shape: tuple[int, ...]) -> Strategy:
    size = int(np.prod(shape))
    some = [
        own for own in (size, (size,), (1, size), (size, 1), (2, -1), (-1, 3), (3, 1, -1)) if size and size % 6 == 0
    ]
    return st.sampled_from([shape, (-1,) if size else shape, *some]).map(lambda own: {"shape": own})


def _items(length: int) -> Strategy:
    places = st.integers(-length, length - 1) if length else st.nothing()
    return st.one_of(st.slices(length), places, st.just(slice(None)))


#: Attributes of ops that move elements, for any shape with dimensions.
MOVES: dict[str, Callable[[tuple[int, ...]], Strategy]] = {
    "reshape": _shapes_of_size,
    "permute": lambda shape: st.permutations(range(len(shape))).map(lambda dims: {"dims": tuple(dims)}),
    "flip": lambda shape: st.sets(st.sampled_from(range(len(shape))), min_size=1).map(
        lambda dims: {"dims": tuple(sorted(dims))}
    ),
    "expand": lambda shape: st.sampled_from([(2, *shape), (1, 3, *shape), shape]).map(lambda size: {"size": size}),
    "getitem": lambda shape: st.tuples(*map(_items, shape)).map(lambda key: {"key": key}),
    "clone": lambda shape: st.just({}),
}
