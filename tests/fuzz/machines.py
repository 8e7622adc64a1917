"""What runs the lines of a program: a module as it is, with copies of what is saved, or with errors of rounding."""

from __future__ import annotations

import functools
import re
import types
from typing import Any

import numpy as np

import tapegrad as tg
from tests.fuzz import overwritten, prelude
from tests.fuzz.compare import array

Results = dict[str, Any]


@functools.lru_cache(maxsize=64)  # a line runs on both modules, and again when a program is minimised
def _compiled(line: str) -> types.CodeType:
    return compile(line, "<program>", "exec")


class Machine:
    """One module that runs lines."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.space: dict[str, Any] = prelude.space(module)

    def run(self, line: str) -> Exception | None:
        """Run a line, and return what it raised."""
        try:
            exec(_compiled(line), self.space)
        except Exception as error:
            return error.with_traceback(None)  # which holds this frame
        return None

    def values(self) -> Results:
        """Return all values by name."""
        return {name: value for name, value in self.space.items() if re.fullmatch(r"v\d+", name)}

    def gradients(self, orders: int = 2) -> Results | Exception:
        """Return the gradients of all results by all leaves, of the first orders."""
        tensors = [value for value in self.values().values() if isinstance(value, self.module.Tensor)]
        leaves = list({id(value): value for value in tensors if value.requires_grad and value.is_leaf}.values())
        try:
            found = prelude.gradients(self.module, tensors, leaves, orders)
        except Exception as error:
            return error.with_traceback(None)
        return {f"{order} gradient {number}": value for order, own in found.items() for number, value in enumerate(own)}

    def makes_new_memory(self, line: str) -> bool:
        """Whether the result of a line that ran is a tensor, no leaf, that shares memory with no operand."""
        name, _, expression = line.partition(" = ")
        result = self.space.get(name)
        operands = [self.space[operand] for operand in overwritten.operands(expression) if operand in self.space]
        tensors = [operand for operand in operands if isinstance(operand, self.module.Tensor)]
        if not isinstance(result, self.module.Tensor) or not tensors or (result.requires_grad and result.is_leaf):
            return False
        if self.module is tg:
            return all(result is not own and not np.may_share_memory(array(result), array(own)) for own in tensors)
        storage = result.untyped_storage().data_ptr()
        shares = storage in [own.untyped_storage().data_ptr() for own in tensors]
        return not (shares if storage else result._is_view()) and all(result is not own for own in tensors)


class Copying(Machine):
    """A module that saves copies, which no write changes: PyTorch of all operands, tapegrad where the two differ."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.space["copy_of"] = lambda value: value.clone() if isinstance(value, module.Tensor) else value

    def run(self, line: str) -> Exception | None:
        """Run a line, and then with copies."""
        error = super().run(line if self.module is tg else overwritten.written_elsewhere(line))
        if error is None and self.makes_new_memory(line) and (self.module is not tg or overwritten.saves_others(line)):
            error = super().run(overwritten.copied(line))
        return error


class Rounding(Machine):
    """A module that makes an error of rounding in each operand: so results are scattered as far as rounding may be."""

    EPS = 1e-7
    SHIFT = 1e-15

    def __init__(self, module: Any, seed: int) -> None:
        super().__init__(module)
        self.rng = np.random.default_rng(seed)
        self.space |= {"rounded": self._rounded, "shifted": self._shifted}

    def run(self, line: str) -> Exception | None:
        """Run a line, and then with rounded operands; what writes has them at once."""
        if " = " not in line:
            target, call = line.split(".", 1)
            call = re.sub(overwritten.NAME, r"rounded(\g<0>)", call)
            return super().run(f"{target}.{call}")
        error = super().run(line)
        if error is None and self.makes_new_memory(line):
            error = super().run(overwritten.replaced(line, "rounded({})"))
            if error is None and "log_softmax" in line:
                name = line.split(" = ")[0]
                error = super().run(f"{name} = shifted({name})")
        return error

    def _shifted(self, value: Any) -> Any:
        """Return a logarithm of 1 plus something: what is added to 1 is rounded as 1 is."""
        if array(value).dtype != np.float64:
            return value
        return value + self.module.tensor(np.asarray(self.SHIFT * self.rng.normal(size=tuple(value.shape))))

    def _rounded(self, value: Any) -> Any:
        if not isinstance(value, self.module.Tensor) or not (value.is_floating_point() or value.is_complex()):
            return value
        noise = 1 + self.EPS * self.rng.normal(size=tuple(value.shape))
        return value * self.module.tensor(np.asarray(noise).astype(array(value).real.dtype))
