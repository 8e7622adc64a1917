"""A function for arguments of one kind and one way through its branches: what `Program.trace` returns is called so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tapegrad.func.trees import flatten, rebuild
from tapegrad.program.compiled import Compiled
from tapegrad.program.effects import Outside
from tapegrad.program.given import Given
from tapegrad.program.program import Program
from tapegrad.program.replay import replay
from tapegrad.program.signature import Slot, signature_of
from tapegrad.program.version import Version
from tapegrad.tensor import Tensor

_AGAIN: Final = "trace another one by Program.trace(), or use tapegrad.compile(), which does so by itself"


class Fixed(Compiled):
    """A compiled function that is traced once."""

    _may_count = False

    def _trace(self, given: Given) -> Version:
        if not self.programs:
            return super()._trace(given)
        program = self.programs[0]
        if len(self._versions) == 1:
            raise _of_branch(program)
        self._versions.popitem()  # that of these arguments
        raise _of_arguments(program, given.inputs, given.wanted)

    def _with_integers(self, given: Given) -> Given:
        return given


class _Called(Fixed):
    """A program that was traced before, called like its function."""

    def __init__(self, program: Program) -> None:
        super().__init__(_Function(program))
        self._program = program

    def _trace(self, given: Given) -> Version:
        if self.programs:
            return super()._trace(given)
        program, own = self._program, self._program.signature
        assert own is not None
        found = signature_of(self.function, (given.without_inputs()[0], given.places), (None, ()), given.wanted, ())
        if repr(found.arguments) != repr(own.arguments) or not _fits(program, given.inputs, given.wanted):
            self._versions.clear()
            raise _of_arguments(program, given.inputs, given.wanted)
        result = flatten(own.result)
        outputs = [place for place, leaf in enumerate(result) if isinstance(leaf, Slot)]
        kept = rebuild(own.result, [None if isinstance(leaf, Slot) else leaf for leaf in result])
        return Version(program, Outside(own.captured), kept, outputs)

    def _give_up(self, key: Any, versions: list[Version]) -> None:
        del self._versions[key]
        raise _of_branch(self._program)


class _Function:
    """A program in place of its function: its operations, as a part of another program, or where it is not fused."""

    def __init__(self, program: Program) -> None:
        assert program.signature is not None
        self.program, self.signature = program, program.signature
        self.__name__ = self.signature.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns, as tensors."""
        program, own = self.program, self.signature
        leaves, templates = flatten((args, kwargs)), flatten(own.arguments)
        if len(leaves) != len(templates):
            raise _of_arguments(program, [], [])
        inputs = [leaf for leaf, template in zip(leaves, templates, strict=True) if isinstance(template, Slot)]
        wanted = [leaf.requires_grad for leaf in inputs]
        if not _fits(program, inputs, wanted):
            raise _of_arguments(program, inputs, wanted)
        outputs, values = replay(program, [*inputs, *own.captured])
        if not program.holds(values):
            raise _of_branch(program)
        return rebuild(own.result, [outputs[leaf.number] if isinstance(leaf, Slot) else leaf
                                    for leaf in flatten(own.result)])  # fmt: skip


def called(program: Program) -> Any:
    """Return what calls a program like the function that it was traced from.

    Raises
    ------
    TypeError
        If it is only a part of what a function does.
    """
    if program.signature is None:
        raise TypeError("this program is a part of a compiled function; call that, or make one by Program.trace()")
    return _Called(program)


def _fits(program: Program, inputs: Sequence[Tensor], wanted: Sequence[bool]) -> bool:
    """Whether a program was traced for inputs of these layouts; a gradient that it does not have is not wanted."""
    own = program.signature
    assert own is not None
    layouts = [program.layouts[number] for number in program.inputs[: len(own.wanted)]]
    return len(inputs) == len(layouts) and all(
        (given.shape, given.dtype) == (layout.shape, layout.dtype) and (there or not asked)
        for given, layout, there, asked in zip(inputs, layouts, own.wanted, wanted, strict=True)
    )


def _of_branch(program: Program) -> ValueError:
    where = "\n".join(dict.fromkeys(guard.where for guard in program.guards))
    return ValueError(f"a value that Python looked at is another one than in the trace; {_AGAIN}. {where}")


def _of_arguments(program: Program, inputs: Sequence[Tensor], wanted: Sequence[bool]) -> ValueError:
    given = [f"{own._layout}{' that requires grad' if is_wanted else ''}"
             for own, is_wanted in zip(inputs, wanted, strict=True)]  # fmt: skip
    head = str(program).splitlines()[0]
    return ValueError(
        "a program takes arguments of the shapes, dtypes and containers that it was traced with, and the same "
        f"integers and strings, but got {', '.join(given) or 'no arrays'}; {_AGAIN}.\n{head}"
    )
