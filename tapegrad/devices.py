"""Devices, for programs that name them: there is one, the CPU."""

from __future__ import annotations

import re
from typing import Any, Final

_NAMES: Final = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
_ONLY: Final = "tapegrad computes on the CPU only"


class device:  # noqa: N801  # PyTorch's name
    """Where a tensor's memory is. Any device of PyTorch has a name; tensors are on the CPU.

    Parameters
    ----------
    type : str or device
        As ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    index : int, optional

    Attributes
    ----------
    type : str
    index : int or None

    Raises
    ------
    RuntimeError
        If there is no device of that name.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.device("cuda" if tg.cuda.is_available() else "cpu")
    device(type='cpu')
    """

    __slots__ = ("index", "type")
    type: str
    index: Any

    def __init__(self, type: str | device | int, index: int | None = None) -> None:
        if isinstance(type, device):
            index = type.index
            type = type.type
        elif isinstance(type, int):
            raise RuntimeError(f"Cannot access accelerator device when none is available. {_ONLY}")
        elif not isinstance(type, str):
            raise TypeError(
                f"device() received an invalid combination of arguments - got ({type.__class__.__name__}); it takes a "
                "name, such as 'cpu'"
            )
        kind, colon, digits = type.partition(":")
        if kind not in _NAMES:
            raise RuntimeError(f"Expected one of {', '.join(_NAMES)} device type at start of device string: {kind}")
        if colon:
            if not re.fullmatch("0|[1-9][0-9]*", digits):
                raise RuntimeError(f"Invalid device string: {type!r}")
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            index = int(digits)
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"attribute {name!r} of a device is not writable")

    def __repr__(self) -> str:
        number = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{number})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> Any:
        return device, (self.type, self.index)

    def __enter__(self) -> device:
        check_device(self)
        return self

    def __exit__(self, *_: object) -> None: ...


DeviceLike = device | str | int | None
CPU: Final = device("cpu")


def not_here(kind: str) -> Exception:
    """Return the error of a device that there is not, of PyTorch's type."""
    repair = f"{_ONLY}; write device='cpu', or leave it out"
    if kind in ("cuda", "xpu"):
        return AssertionError(f"Torch not compiled with {kind.upper()} enabled. {repair}")
    return NotImplementedError(f"Could not run an operation with arguments from the {kind.upper()!r} backend. {repair}")


def check_device(where: DeviceLike) -> None:
    """Raise unless a device is the CPU.

    Raises
    ------
    AssertionError, NotImplementedError
        If it is another device.
    TypeError
        If it is none.
    """
    if where is None or where is CPU:
        return
    if not isinstance(where, (device, str, int)):
        raise TypeError(f"argument 'device' must be torch.device, not {type(where).__name__}")
    found = device(where)
    if found.type != "cpu":
        raise not_here(found.type)


def is_device(value: object) -> bool:
    """Whether a value names a device, and not a dtype."""
    return isinstance(value, device) or (isinstance(value, str) and value.partition(":")[0] in _NAMES)


def set_default_device(device: DeviceLike) -> None:
    """Accept the CPU as the device of new tensors, which it is.

    Raises
    ------
    AssertionError, NotImplementedError
        If it is another device.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.set_default_device("cpu")
    """
    check_device(device)


def get_default_device() -> device:
    """Return the CPU.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.get_default_device()
    device(type='cpu')
    """
    return CPU
