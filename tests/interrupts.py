"""Raise KeyboardInterrupt at the n-th moment at which CPython would call a signal's handler.

CPython calls handlers when a function begins, after a call, and at a jump back. So statements without a call cannot be
torn apart, and the library relies on it.
"""

import dis
import sys
from contextlib import contextmanager

import tapegrad

_FOLDER = tapegrad.__path__[0]
_CALLS = {code for name, code in dis.opmap.items() if name.startswith(("CALL", "JUMP_BACKWARD", "RESUME"))}


class Moments:
    """How many moments have been passed, and at which an exception is raised."""

    def __init__(self, number, files):
        self.number, self.files = number, tuple(f"{_FOLDER}/{file}" for file in files)
        self.passed = 0
        self.last = {}

    def trace(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(self.files):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            before = self.last.get(id(frame))
            self.last[id(frame)] = frame.f_code.co_code[frame.f_lasti]
            if before in _CALLS:
                self.passed += 1
                if self.passed == self.number:
                    raise KeyboardInterrupt
        else:  # a call that raises is no such moment
            self.last.pop(id(frame), None)
        return self.trace


@contextmanager
def interrupt(number, files):
    """Interrupt what runs in these files of the package at the moment with this number, counted from 1."""
    moments = Moments(number, files)
    before = sys.gettrace()
    sys.settrace(moments.trace)
    try:
        yield moments
    finally:
        sys.settrace(before)
