"""In-place operation that fills a diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.index_dim import one_number
from tapegrad.ops.setitem import setitem
from tapegrad.ops.table.public import public
from tapegrad.ops.table.write_checks import plain_memory
from tapegrad.tensor import Tensor


def on_diagonal(x: Tensor, wrap: bool) -> tuple[np.ndarray, ...]:
    """Return the indices of the diagonal of a matrix, or of a cube of any number of dimensions.

    Parameters
    ----------
    x : Tensor
    wrap : bool
        Whether the diagonal of a tall matrix begins again below itself, after a row without.

    Raises
    ------
    ValueError
        If there is no diagonal.
    """
    chosen = np.zeros(x.shape, bool)
    np.fill_diagonal(chosen, True, wrap)
    return chosen.nonzero()


@public(namespaces=(), method=True)
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    r"""Write a number to the diagonal, in place; recorded where a gradient is wanted.

    Derivative: with :math:`Y_{ij} = [i = j] c + [i \ne j] X_{ij}`, :math:`\bar X_{ij} = [i \ne j] \bar Y_{ij}`.

    Parameters
    ----------
    fill_value : number, or Tensor of one
    wrap : bool
        Whether the diagonal of a tall matrix begins again below itself, after a row without.

    Raises
    ------
    RuntimeError
        If there is no diagonal.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.zeros(2, 3).fill_diagonal_(5.0)
    tensor([[5., 0., 0.],
            [0., 5., 0.]])
    """
    shape = self._layout.shape
    if (len(shape) == 2 or (shape[2:] and len(set(shape)) == 1)) and fill_value.__class__ in (int, float):
        array = plain_memory(self, fill_value)
        if array is not None:
            np.fill_diagonal(array, fill_value, wrap)
            return self
    try:
        places = on_diagonal(self, wrap)
    except ValueError:
        words = "dimensions must larger than 1" if self.ndim < 2 else "all dimensions of input must be of equal length"
        raise RuntimeError(f"{words}; fill_diagonal_() got shape {list(self.shape)}") from None
    setitem(self, places, one_number("fill_diagonal", self, fill_value, 2))
    return self
