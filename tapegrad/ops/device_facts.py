"""Facts about a tensor that are the same for all: memory is the CPU's, and elements are dense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.devices import CPU, not_here
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor
from tapegrad.type_info import strided


def _example(used: str, shown: object) -> str:
    return f"\n\nExamples\n--------\n>>> import tapegrad as tg\n>>> tg.ones(2).{used}\n{shown}"


@public(namespaces=(), attribute=True)
def device(input: Tensor) -> Any:
    """Return where the memory is: the CPU.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2).device
    device(type='cpu')
    """
    return CPU


@public(namespaces=(), attribute=True)
def is_cpu(input: Tensor) -> bool:
    """Return True: all tensors are in the memory of the CPU.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2).is_cpu
    True
    """
    return True


@public(namespaces=(), attribute=True)
def is_cuda(input: Tensor) -> bool:
    """Return False: no tensor is in the memory of a GPU.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2).is_cuda
    False
    """
    return False


@public(namespaces=(), attribute=True)
def layout(input: Tensor) -> Any:
    """Return how elements are kept: all tensors are dense, which PyTorch calls strided.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2).layout
    tapegrad.strided
    """
    return strided


def _no(name: str, why: str) -> Callable[..., bool]:
    def call(input: Tensor) -> bool:
        return False

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Return False: {why}.{_example(name, False)}"
    return call


for _name, _why in (
    ("is_sparse", "all tensors are dense"),
    ("is_sparse_csr", "all tensors are dense"),
    ("is_nested", "all tensors are of one shape"),
    ("is_quantized", "there are no quantised tensors"),
    ("is_meta", "all tensors have elements"),
    ("is_mps", "no tensor is in the memory of a GPU"),
    ("is_xpu", "no tensor is in the memory of a GPU"),
    ("is_mkldnn", "memory has NumPy's order"),
):
    public(namespaces=(), attribute=True)(_no(_name, _why))


@public(namespaces=(), method=True)
def get_device(input: Tensor) -> int:
    """Return the number of the GPU: -1, as there is none.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2).get_device()
    -1
    """
    return -1


def _itself(name: str, why: str) -> Callable[..., Tensor]:
    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return input

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Return the tensor itself: {why}.{_example(f'{name}()', 'tensor([1., 1.])')}"
    return call


for _name, _why in (
    ("cpu", "all are in the memory of the CPU"),
    ("pin_memory", "there is no other device that its memory could be pinned for"),
    ("share_memory_", "threads share memory"),
):
    public(namespaces=(), method=True)(_itself(_name, _why))


@public(namespaces=(), method=True)
def is_pinned(input: Tensor) -> bool:
    """Return False: there is no other device that memory could be pinned for.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2).is_pinned()
    False
    """
    return False


@public(namespaces=(), method=True)
def is_shared(input: Tensor) -> bool:
    """Return False: other processes do not see the memory.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2).is_shared()
    False
    """
    return False


@public(namespaces=(), method=True)
def cuda(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Raise PyTorch's error: there is no GPU."""
    raise not_here("cuda")


@public(aliases=("is_neg",), method=True)
def is_conj(input: Tensor) -> bool:
    """Return False: conjugates and negatives are computed at once.

    Parameters
    ----------
    input : Tensor

    Returns
    -------
    bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.tensor([1 + 2j]).conj().is_conj()
    False
    """
    return False
