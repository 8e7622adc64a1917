"""The functions of `tapegrad` itself, for files that call many of them."""

from tapegrad.ops.table import public as _public

__getattr__, __dir__ = _public.contents(_public.TOP, __name__)
__all__ = list(__dir__())
