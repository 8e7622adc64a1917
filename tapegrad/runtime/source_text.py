"""Functions that are made of text: what reads the source of functions, as the kernel compiler does, finds it."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from typing import Any

__all__ = ["evaluated"]


def evaluated(text: str, names: Mapping[str, Any]) -> Any:
    r"""Return the value of an expression; functions in it have a file, which `linecache` knows.

    Examples
    --------
    >>> import inspect
    >>> inspect.getsource(evaluated("lambda x: x + one", {"one": 1}))
    'lambda x: x + one\n'
    """
    path = f"<{text}>"
    linecache.cache[path] = len(text), None, [text + "\n"], path
    return eval(compile(text, path, "eval", dont_inherit=True), {"__name__": __name__, **names})
