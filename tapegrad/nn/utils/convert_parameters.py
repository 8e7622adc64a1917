"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from tapegrad.ops.concat import cat
from tapegrad.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return all elements of parameters as one vector; it is recorded.

    Parameters
    ----------
    parameters : iterable of Tensor

    Returns
    -------
    Tensor, (n,)

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.utils.parameters_to_vector([tg.ones(2), tg.zeros(1, 1)])
    tensor([1., 1., 0.])
    """
    vector: Tensor = cat([param.reshape(-1) for param in parameters])
    return vector


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let parameters show parts of a vector, in order.

    Parameters
    ----------
    vec : Tensor, (n,)
    parameters : iterable of Tensor

    Raises
    ------
    TypeError
        If `vec` is no tensor.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.zeros(2)
    >>> tg.nn.utils.vector_to_parameters(tg.tensor([1.0, 2.0]), [x])
    >>> x
    tensor([1., 2.])
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__qualname__}")
    start = 0
    for param in parameters:
        end = start + param.numel()
        param.data = vec[start:end].reshape(param.shape).data
        start = end
