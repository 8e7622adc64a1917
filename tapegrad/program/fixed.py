"""A function for arguments of one kind and one way through its branches: what `Program.trace` returns is called so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tapegrad.program.compiled import Compiled
from tapegrad.program.version import Version
from tapegrad.tensor import Tensor

_AGAIN: Final = "trace another one by Program.trace(), or use tapegrad.compile(), which does so by itself"


class Fixed(Compiled):
    """A compiled function that is traced once."""

    def _trace(
        self, tree: Any, leaves: Sequence[Any], places: Sequence[int], inputs: Sequence[Tensor], wanted: Sequence[bool]
    ) -> Version:
        if not self.programs:
            return super()._trace(tree, leaves, places, inputs, wanted)
        program = self.programs[0]
        if len(self._versions) == 1:
            where = "\n".join(dict.fromkeys(guard.where for guard in program.guards))
            raise ValueError(f"a value that Python looked at is another one than in the trace; {_AGAIN}. {where}")
        given = [f"{own._layout}{' that requires grad' if is_wanted else ''}"
                 for own, is_wanted in zip(inputs, wanted, strict=True)]  # fmt: skip
        self._versions.popitem()  # that of these arguments
        head = str(program).splitlines()[0]
        raise ValueError(
            "a program takes arguments of the shapes, dtypes and containers that it was traced with, and the same "
            f"integers and strings, but got {', '.join(given) or 'no arrays'}; {_AGAIN}.\n{head}"
        )
