"""Switches of PyTorch's backends that programs set or ask for; none has a meaning here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

__all__ = ["accelerator", "cuda", "cudnn", "mps"]

__path__: list[str] = []  # so that import statements look for tapegrad.backends.cudnn: see runtime/module_names.py

_no: Final = staticmethod(lambda: False)
cudnn: Final = SimpleNamespace(enabled=False, benchmark=False, deterministic=False, allow_tf32=False, is_available=_no)
cuda: Final = SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False), is_built=_no)
mps: Final = SimpleNamespace(is_available=_no, is_built=_no)
#: `tapegrad.accelerator`, by which newer programs choose a device.
accelerator: Final = SimpleNamespace(
    is_available=_no, device_count=staticmethod(lambda: 0), current_accelerator=staticmethod(lambda *_, **__: None)
)
