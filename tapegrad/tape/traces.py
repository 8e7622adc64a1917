"""Where operations and writes stand in the user's program: what anomaly mode notes and tells.

Nothing is noted while the mode is off: `note_call` is called by an interceptor, and `versions.on_write` is None.
"""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from tapegrad import errors
from tapegrad.runtime import state
from tapegrad.tape.entries import TapeNode
from tapegrad.tape.graph import name_of
from tapegrad.tape.hooks import hooks_of, node_hooks
from tapegrad.tape.versions import owner_of

if TYPE_CHECKING:
    from tapegrad.tensor import Tensor

KEY: Final = "traceback_"  # of the metadata of a node, as in PyTorch
HERE: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep
_LIBRARIES: Final = os.path.dirname(os.__file__) + os.sep
_writes: Final[dict[int, tuple[weakref.ref[np.ndarray], list[str]]]] = {}
state.register("tape.traces: arrays whose last write was noted", lambda: len(_writes), _writes.clear)


def stack() -> list[str]:
    """Return the lines of the user's program that led here, the innermost last, without those of this library."""
    import traceback  # at call time: it takes 2 ms

    frames = traceback.extract_stack(sys._getframe(1))
    while frames and frames[-1].filename.startswith(HERE):
        frames.pop()
    return traceback.format_list(frames)


def line_of_user() -> str:
    """Return the innermost line of the user's program, without those of installed libraries."""
    import traceback

    frames = [entry for entry in traceback.extract_stack(sys._getframe(1)) if not entry.filename.startswith(HERE)]
    entry = [
        frame for frame in frames if not frame.filename.startswith(_LIBRARIES) and "site-packages" not in frame.filename
    ]
    return traceback.format_list((entry or frames)[-1:])[0].strip() if frames else ""


def note_call(node: TapeNode) -> None:
    """Note where the operation of a new entry is called."""
    hooks_of(node).metadata[KEY] = stack()


def note_write(array: np.ndarray) -> None:
    """Note where an array is written to."""
    owner = owner_of(array)
    key = id(owner)
    _writes[key] = weakref.ref(owner, lambda _: _writes.pop(key, None)), stack()


def called_at(node: TapeNode) -> str:
    """Return where the operation of an entry was called; "" if that was not noted."""
    hooks = node_hooks(node)
    return "" if hooks is None else "".join(hooks.metadata.get(KEY, ()))


def written_at(array: np.ndarray) -> str:
    """Return where an array was last written to; "" if that was not noted."""
    owner = owner_of(array)
    reference, lines = _writes.get(id(owner), (lambda: None, []))
    return "".join(lines) if reference() is owner else ""


def warn_of(node: TapeNode) -> None:
    """Tell where the operation was called whose derivative failed."""
    name, lines = name_of(node), called_at(node)
    told = f"Traceback of forward call that caused the error:\n{lines}" if lines else (
        "No forward pass information available. Enable detect anomaly during forward pass for more information."
    )  # fmt: skip
    warnings.warn(f"Error detected in {name}. {told}", UserWarning, stacklevel=2)


def modified(node: TapeNode, array: np.ndarray, saver: str | None, version: int, expected: int) -> RuntimeError:
    """Return the error of a residual that was written to after the entry saved it; `saver` names what computed it."""
    called = called_at(node)
    if called:
        warn_of(node)
    return errors.modified(str(array.dtype), array.shape, saver, version, expected, called, written_at(array))


def checked(node: TapeNode, check_nan: bool, visit: Callable[[], Sequence[tuple[int, Tensor]]]) -> None:
    """Visit an entry in a backward pass; tell where its operation was called if that raises, or makes a nan."""
    name = name_of(node)
    try:
        for operand, value in visit():
            if check_nan and np.isnan(value._data).any():
                raise RuntimeError(f"Function '{name}' returned nan values in its {operand}th output.")
    except Exception:
        warn_of(node)
        raise
