"""Known differences from PyTorch, in one place: each is explained in docs/semantics.md or docs/kinks.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.trace import culprits

#: Calls that only tapegrad refuses, by the words of the refusal, with the reason. A program ends there.
REFUSED = {
    r"clamp not implemented for 'Bool'": "PyTorch looks at the dtype only if there are elements",
    r"Integers to negative integer powers": "NumPy shows through; PyTorch gives 0",
    r"Dimension out of range.*; (cat|stack) got": "PyTorch joins tensors of shape (0,) along any dimension",
}

#: Calls that only PyTorch refuses, by the words of the refusal, with the reason.
ACCEPTED = {
    r"must be Tensor, not (int|float|bool)": "a number is an operand of every elementwise function",
    r"received an invalid combination of arguments": "numbers and arrays stand where PyTorch wants tensors",
    r"not implemented for '": "PyTorch has no loop for the dtype",
    r"expected (m1 and m2|both vectors|scalar type)": "integers are multiplied as matrices",
    r"derivative for .* is not implemented": "here it is",
    r"Negation, the `-` operator": "in a derivative of PyTorch's",
    r"Subtraction, the `-` operator": "in a derivative of PyTorch's",
    r"can only be created for|ZeroTensor|_efficientzerotensor": "an inner matter of PyTorch",
    r"expected (a )?[Tt]ensor": "PyTorch wants tensors",
    r"view size is not compatible": "NumPy finds a view where PyTorch finds none",
    r"some elements of the input tensor and the written-to tensor": "what is written over is copied first",
    r"Integers to negative integer powers": "there is no element",
    r"value cannot be converted to type": "a real number, cut to an integer",
    r"(Half|BFloat16)": "there is no such dtype here",
    r"Boolean inputs not supported": "in a call that needs none",
    r"not supported for complex|does not support complex|not supported on complex": "the function has a meaning",
}

#: Calls whose values differ, by the text of the line, with what is seen and the reason. They are left out.
VALUES: dict[str, Callable[[np.ndarray, np.ndarray], bool]] = {
    # The sign of nan is nan, as in NumPy; PyTorch has 0.
    r"\b(sgn|sign)\(": lambda ours, theirs: bool(np.isnan(ours).any()),
    # On a branch cut the sign of a zero decides, and products with complex numbers lose it.
    r"\ba(sin|cos|tan)h?\(": lambda ours, theirs: ours.dtype.kind == "c",
    # A complex nan to the power 0 is 1, as in NumPy; PyTorch has nan.
    r"pow|\*\*": lambda ours, theirs: ours.dtype.kind == "c" and bool(np.isnan(theirs).any()),
    # The imaginary part of a logarithm is within pi; PyTorch's, where one operand is much larger, is that operand's.
    r"\blogaddexp\(": lambda ours, theirs: ours.dtype.kind == "c",
}


def known_value(line: str, ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether a value is one of which a difference is known."""
    return any(re.search(pattern, line) and sees(ours, theirs) for pattern, sees in VALUES.items())


Operands = list[np.ndarray]


def _any(holds: Callable[[np.ndarray], np.ndarray]) -> Callable[[Operands, str], bool]:
    def sees(operands: Operands, line: str) -> bool:
        with np.errstate(all="ignore"):
            return any(bool(np.any(holds(values))) for values in operands)

    return sees


def _zero(operands: Operands, line: str) -> bool:
    """Whether an operand, or a number in the line, is zero somewhere."""
    numbers = re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?", line.split(" = ")[-1])
    return any(bool((values == 0).any()) for values in operands) or any(float(number) == 0 for number in numbers)


_nan = _any(np.isnan)

#: Calls whose derivatives differ, by the text of the line, where its operands are as said; see docs/kinks.md.
GRADIENTS: dict[str, tuple[Callable[[Operands, str], bool], str]] = {
    r"pow|\*\*": (_zero, "second derivatives at base 0, where PyTorch's masks hide values but not slopes"),
    r"acosh": (_any(lambda x: x < 1), "below 1, where the function is nan, PyTorch has numbers"),
    r"\babs": (_nan, "of nan; PyTorch has 0"),
    r"atan2": (_zero, "second derivatives at the origin"),
    r"\b(amax|amin|max|min)\(": (_nan, "of nan; PyTorch gives nan to all elements"),
}


def known_gradient(torch: Any, lines: list[str]) -> bool:
    """Whether gradients differ because of lines alone whose own derivatives are known to differ."""
    found = culprits(torch, lines)
    return bool(found) and all(
        any(
            re.search(pattern, culprit.line) and sees(list(culprit.operands.values()), culprit.line)
            for pattern, (sees, _) in GRADIENTS.items()
        )
        for culprit in found
    )


def refused(message: str) -> bool:
    """Whether an error that only tapegrad raises is known."""
    return any(re.search(pattern, message) for pattern in REFUSED)


def accepted(message: str) -> bool:
    """Whether an error that only PyTorch raises is known."""
    return any(re.search(pattern, message) for pattern in ACCEPTED)
