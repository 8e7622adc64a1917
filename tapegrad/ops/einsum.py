"""Sums of products after Einstein, made of rows: two operands at a time, as products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tapegrad.ops.arithmetic import mul
from tapegrad.ops.broadcasting import contiguous
from tapegrad.ops.diagonals import diagonal
from tapegrad.ops.linalg import matmul
from tapegrad.ops.movement import reshape
from tapegrad.ops.permutations import permute
from tapegrad.ops.reductions import sum
from tapegrad.ops.subscripts import LETTERS, Label, Labels, Shape, from_lists, read
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import public
from tapegrad.runtime import state
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor

Move = Callable[[Tensor], Tensor]

_recipes: dict[Any, _Recipe] = {}
_MAX_RECIPES = 1024
state.register("ops.einsum: recipes", lambda: len(_recipes), _recipes.clear)


@public()
@composite(
    (
        Sample(((2, 3), (3, 4)), {"equation": "ij,jk->ik"}),
        Sample(((3, 3),), {"equation": "ii->i"}),
        Sample(((2, 2, 3), (2, 3, 2), (2,)), {"equation": "bij,bjk,k->bi"}),
        Sample(((2, 3),), {"equation": "ij->"}),
        Sample(((2, 3), (3,)), {"equation": "...i,i"}),
    ),
    lambda *operands, equation: np.einsum(equation, *operands),
    call=lambda function, *operands, equation: function(equation, *operands),
)  # fmt: skip
def einsum(equation: Any, *operands: Any) -> Tensor:
    r"""Sum products of elements over labels of dimensions, as Einstein wrote it.

    Parameters
    ----------
    equation : str
        A label a dimension, a letter, for each operand; then ``->`` and the labels of the result, over all others being
        summed. Without ``->``, the labels that appear once, in the order of the alphabet. A label that an operand has
        twice takes the diagonal. An ellipsis ``...`` stands for all further dimensions, which broadcast; the result has
        them first, or where it names them. Instead of an equation, each operand may be followed by a list of numbers
        from 0 to 51, and ``...``, and the last one by the result's.
    *operands : Tensor or array
        Or one list of them.

    Raises
    ------
    RuntimeError
        If the equation is none or does not fit the operands, or if products of matrices meet different dtypes.
    ValueError
        If there is no equation and no list, or no operand.

    Notes
    -----
    Three and more operands are taken in the order that `numpy.einsum_path` finds for their shapes (D. G. A. Smith and
    J. Gray, "opt_einsum", Journal of Open Source Software 3, 2018). The derivative by an operand is an
    `einsum` of the cotangent and the other operands: of ``"ij,jk->ik"`` :math:`\bar X = \bar Z Y^H` and
    :math:`\bar Y = X^H \bar Z`, which are ``"ik,jk->ij"`` and ``"ij,ik->jk"``.

    Examples
    --------
    >>> import tapegrad as tg
    >>> A, x = tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([5.0, 6.0])
    >>> tg.einsum("ij,j->i", A, x)
    tensor([17., 39.])
    >>> tg.einsum("ii", A)
    tensor(5.)
    """
    if not isinstance(equation, str):
        equation, given = from_lists([equation, *operands])
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        given = list(operands[0])
    else:
        given = list(operands)
    if not given:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            f"subscripts list; got {equation!r} alone"
        )
    tensors = [as_operand(operand, "einsum", "operands", place) for place, operand in enumerate(given, 2)]
    key = equation, *(tensor._layout.shape for tensor in tensors)
    recipe = _recipes.get(key)
    if recipe is None:
        recipe = state.put(_recipes, key, _recipe(equation, key[1:]), _MAX_RECIPES)
    return recipe(tensors)


class _Recipe(NamedTuple):
    """How operands of certain shapes become the result: each is prepared, pairs are contracted, the rest is moved."""

    prepare: tuple[Sequence[Move], ...]
    pairs: tuple[_Pair, ...]
    finish: Sequence[Move]

    def __call__(self, tensors: Sequence[Tensor]) -> Tensor:
        values = [_moved(tensor, moves) for tensor, moves in zip(tensors, self.prepare, strict=True)]
        for pair in self.pairs:
            right, left = values.pop(pair.second), values.pop(pair.first)
            values.append(pair(left, right))
        return _moved(values[0], self.finish)


class _Pair(NamedTuple):
    """Two operands' places, the first one's less, how each is moved, and how the result is moved."""

    first: int
    second: int
    left: Sequence[Move]
    right: Sequence[Move]
    product: Callable[[Tensor, Tensor], Tensor]
    result: Sequence[Move]

    def __call__(self, left: Tensor, right: Tensor) -> Tensor:
        return _moved(self.product(_moved(left, self.left), _moved(right, self.right)), self.result)


def _moved(tensor: Tensor, moves: Sequence[Move]) -> Tensor:
    for move in moves:
        tensor = move(tensor)
    return tensor


def _recipe(equation: str, shapes: Sequence[Shape]) -> _Recipe:
    subscripts = read(equation, shapes)
    lengths = subscripts.lengths
    prepare, terms = [], []
    for own, shape in zip(subscripts.operands, shapes, strict=True):
        own_moves, labels = _prepared(own, shape, lengths)
        prepare.append(own_moves)
        terms.append(labels)
    pairs = []
    for first, second in _path(terms, subscripts.result, lengths):
        right, left = terms.pop(second), terms.pop(first)
        last = not terms
        wanted = set(subscripts.result).union(*terms)
        moves, labels = _pair(left, right, wanted, subscripts.result if last else (), lengths)
        pairs.append(_Pair(first, second, *moves))
        terms.append(labels)
    return _Recipe(tuple(prepare), tuple(pairs), _arranged(terms[0], subscripts.result))


def _prepared(labels: Labels, shape: Shape, lengths: dict[Label, int]) -> tuple[Sequence[Move], Labels]:
    """Return how an operand gets each label once, and only those along which it is not stretched."""
    moves: list[Move] = []
    own, sizes = list(labels), list(shape)
    for label in dict.fromkeys(labels):
        while own.count(label) > 1:
            first = own.index(label)
            second = own.index(label, first + 1)
            moves.append(lambda x, first=first, second=second: diagonal(x, 0, first, second))  # type: ignore[misc]
            length = sizes[first]
            for place in (second, first):
                del own[place], sizes[place]
            own.append(label)
            sizes.append(length)
    kept = [place for place, label in enumerate(own) if sizes[place] == lengths[label]]
    if len(kept) < len(own):
        moves.append(_reshape(tuple(sizes[place] for place in kept)))
    return moves, tuple(own[place] for place in kept)


def _path(terms: Sequence[Labels], result: Labels, lengths: dict[Label, int]) -> list[tuple[int, int]]:
    """Return the positions of the operands to contract, pair by pair; each result is appended to the operands."""
    steps: Sequence[Sequence[int]] = [range(len(terms))]
    if len(terms) > 2 and len(lengths) <= len(LETTERS):
        letters = dict(zip(lengths, LETTERS, strict=False))
        spelled = ["".join(letters[label] for label in term) for term in (*terms, result)]
        shapes = [np.broadcast_to(np.empty(()), tuple(lengths[label] for label in term)) for term in terms]
        steps = np.einsum_path(f"{','.join(spelled[:-1])}->{spelled[-1]}", *shapes, optimize="greedy")[0][1:]
    pairs = []
    count = len(terms)
    for step in steps:  # of two places, or of more where no order is better than another
        places = sorted(step)
        while len(places) > 1:
            first, second, *rest = places
            pairs.append((first, second))
            count -= 1
            places = [*(place - 2 for place in rest), count - 1] if rest else []
    return pairs


def _pair(
    left: Labels, right: Labels, wanted: set[Label], result: Labels, lengths: dict[Label, int]
) -> tuple[tuple[Sequence[Move], Sequence[Move], Callable[[Tensor, Tensor], Tensor], Sequence[Move]], Labels]:
    """Return how two operands are contracted, and the labels of the result; `wanted` are those needed later."""
    left_moves, left = _summed(left, wanted.union(right))
    right_moves, right = _summed(right, wanted.union(left))
    both = [label for label in left if label in right]
    inner = tuple(label for label in both if label not in wanted)
    if not inner:
        labels = result or tuple(dict.fromkeys((*left, *right)))
        left_moves += _spread(left, labels, lengths)
        right_moves += _spread(right, labels, lengths)
        return (left_moves, right_moves, mul, ()), labels
    batch = tuple(label for label in both if label in wanted)
    rows = tuple(label for label in left if label not in both)
    columns = tuple(label for label in right if label not in both)
    left_moves += _matrices(left, batch, rows, inner, lengths)
    right_moves += _matrices(right, batch, inner, columns, lengths)
    labels = (*batch, *rows, *columns)
    whole = len(rows) == len(columns) == 1 and len(batch) < 2
    out = [] if whole else [_reshape(tuple(lengths[label] for label in labels))]
    return (left_moves, right_moves, matmul, out), labels


def _summed(labels: Labels, wanted: set[Label]) -> tuple[list[Move], Labels]:
    """Return how to sum over labels that nothing else has."""
    dims = tuple(place for place, label in enumerate(labels) if label not in wanted)
    kept = tuple(label for label in labels if label in wanted)
    return [lambda x: sum(x, dims)] if dims else [], kept


def _arranged(labels: Labels, result: Labels) -> list[Move]:
    """Return how to sum over all but the result's labels and to bring these into its order."""
    moves, labels = _summed(labels, set(result))
    return moves + _permute(labels, result)


def _spread(labels: Labels, result: Labels, lengths: dict[Label, int]) -> list[Move]:
    """Return how an operand gets the result's labels in their order, stretched along those that it lacks."""
    moves = _permute(labels, tuple(label for label in result if label in labels))
    if len(labels) < len(result):
        moves.append(_reshape(tuple(lengths[label] if label in labels else 1 for label in result)))
    return moves


def _matrices(labels: Labels, batch: Labels, rows: Labels, columns: Labels, lengths: dict[Label, int]) -> list[Move]:
    """Return how an operand becomes a matrix, or a batch of them: by a copy only where its strides force one."""
    turned = labels == (*batch, *columns, *rows)
    order = (batch, columns, rows) if turned else (batch, rows, columns)
    moves = _permute(labels, tuple(label for part in order for label in part))
    own = order if batch else order[1:]
    if any(len(part) != 1 for part in own):
        moves.append(_reshape(tuple(prod(lengths[label] for label in part) for part in own)))
    if turned:
        moves.append(lambda x: permute(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)))
    if len(moves) == 1 and len(labels) > 2:
        moves.append(_for_blas)
    return moves


def _for_blas(x: Tensor) -> Tensor:
    """Copy matrices that neither go row by row nor column by column, which NumPy would multiply without BLAS."""
    strides = x._layout.strides[-2:]
    return x if x.dtype.itemsize in strides else contiguous(x)


def _permute(labels: Labels, order: Labels) -> list[Move]:
    dims = tuple(labels.index(label) for label in order)
    return [] if labels == order else [lambda x: permute(x, dims)]


def _reshape(shape: Shape) -> Move:
    return lambda x: reshape(x, shape)
