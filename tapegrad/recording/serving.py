"""Interceptors that serve calls of operations by compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Serving:
    """An interceptor that may serve calls: a trace.

    Attributes
    ----------
    call_traced : callable, or None
        ``call_traced(plans, is_enabled, n_operands, *args)`` computes a call, given the plans of the operation, whether
        calls are recorded, and how many of the arguments are operands: -1 if the first is a list or tuple of them. It
        returns None to leave the call to Python. Compiled code calls it in place of the operation's own table.
    """

    __slots__ = ("call_traced",)

    call_traced: Callable[..., Any] | None
