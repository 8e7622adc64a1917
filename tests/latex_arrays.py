"""Values of formulas with indices, such as sums over elements, and of formulas of matrices: readers of their LaTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.latex import TOKEN, Reader

MATRIX_FUNCTIONS = {
    "triu": np.triu,
    "stril": lambda x: np.tril(x, -1),
    "sym": lambda x: np.triu(x) + np.triu(x, 1).conj().T,
    "herm": lambda x: np.tril(x) + np.tril(x, -1).conj().T,
    "skew": lambda x: x - x.conj().T,
}


def _tokens(text: str) -> list[str]:
    text = re.sub(r"\\bar ?(\\[a-zA-Z]+|\w)", r"\\bar{\1}", text.replace(r"\left|", "ABS(").replace(r"\right|", ")"))
    text = re.sub(r"\\mathrm\{(\w+)\}", r"\\operatorname{\1}", text)
    return TOKEN.findall(text.replace(r"\,", " ").replace(r"\frac12", r"\frac{1}{2}"))


def elements(text: str, index: str, known: Mapping[str, Any]) -> np.ndarray:
    """Return the values of a formula for each value of an index; ``n`` in `known` says how many there are."""
    found = []
    for number in range(known["n"]):
        reader = IndexReader(_tokens(text), {**known, index: number})
        found.append(reader.sum())
        assert reader.next is None, f"{text}: {reader.tokens} are left"
    return np.array(found)


def matrix(text: str, known: Mapping[str, Any]) -> np.ndarray:
    """Return the value of a formula in which a product is that of matrices."""
    reader = MatrixReader(_tokens(text), known)
    value = np.asarray(reader.sum())
    assert reader.next is None, f"{text}: {reader.tokens} are left"
    return value


class IndexReader(Reader):
    """Reads elements of arrays, sums and products over an index, and brackets that are 1 if what they say holds."""

    def part(self) -> Any:
        if self.next in (r"\sum", r"\prod"):
            return self.over(self.take())
        if self.next == "[":
            self.take()
            holds = self.question()
            self.take("]")
            return np.multiply(holds, 1.0)
        if self.next == r"\operatorname{i}":
            self.take()
            return 1j
        if self.next == r"\lfloor":
            self.take()
            value = np.floor(self.sum())
            self.take(r"\rfloor")
            return value
        value = super().part()
        while self.next == "_":
            self.take()
            for place in self.places(np.ndim(value)):
                value = value[place] if 0 <= place < len(value) else np.zeros(np.shape(value)[1:])[()]  # 0 outside
        return value

    def product(self) -> Any:
        value = super().product()
        while self.next == r"\bmod":
            self.take()
            value = value % self.power()
        return value

    def places(self, dims: int) -> list[int]:
        """Read the indices of an element: letters one behind the other, expressions between commas, or one."""
        if self.next != "{":
            return [int(self.part())]
        letters = self.tokens[1 : self.tokens.index("}")]
        if len(letters) == dims > 1 and "," not in letters:
            del self.tokens[: dims + 2]
            return [int(self.known[letter]) for letter in letters]
        self.take("{")
        found = [int(self.sum())]
        while self.next == ",":
            self.take()
            found.append(int(self.sum()))
        self.take("}")
        return found

    def over(self, kind: str) -> Any:
        """Read a sum or product over the index that stands first below it, as far as what stands there holds."""
        self.take("_")
        below = [self.take()]
        while below[0] == "{" and below[-1] != "}":
            below.append(self.take())
        below = below[1:-1] or below
        body, known = list(self.tokens), self.known
        total: Any = 0.0 if kind == r"\sum" else 1.0
        for number in range(known.get("terms", known["n"])):
            self.tokens, self.known = list(body), {**known, below[0]: number}
            value = self.product()
            if self.holds(below):
                total = total + value if kind == r"\sum" else total * value
        self.known = known
        return total

    def holds(self, below: list[str]) -> bool:
        conditions = " ".join(below).split(" , ")
        readers = [IndexReader(one.split(), self.known) for one in conditions if len(one.split()) > 1]
        return all(reader.question() for reader in readers)


class MatrixReader(Reader):
    """Reads products of matrices, elementwise ones where a circle stands, transposes and inverses.

    A quotient of matrices is elementwise, and 0 where it is 0/0. A number beside a matrix in a sum is that multiple of
    the identity.
    """

    def sum(self) -> Any:
        value = self.product()
        while self.next in ("+", "-"):
            sign = 1 if self.take() == "+" else -1
            own = sign * self.product()
            if np.ndim(value) < np.ndim(own):
                value = value * np.eye(len(own))
            elif np.ndim(own) < np.ndim(value):
                own = own * np.eye(len(value))
            value = value + own
        return value

    def product(self) -> Any:
        sign = 1
        while self.next == "-":
            self.take()
            sign = -sign
        value = self.power()
        while self.next not in (None, "+", "-", ")", "}"):
            if self.next == r"\circ":
                self.take()
                value = value * self.power()
            elif self.next == "/":
                self.take()
                divisor = self.power()
                value = value / np.where(divisor == 0, np.where(value == 0, 1, divisor), divisor)
            else:
                factor = self.power()
                value = value @ factor if np.ndim(value) == 2 and np.ndim(factor) else value * factor
        return sign * value

    def power(self) -> Any:
        value = self.part()
        while self.next == "^":
            self.take()
            exponent = self.take()
            if exponent == "{":
                exponent = ""
                while self.next != "}":
                    exponent += self.take()
                self.take("}")
            value = np.linalg.inv(value) if exponent.startswith("-") else value
            value = np.conj(value) if exponent.endswith(("H", "*")) else value
            value = value.T if exponent.endswith(("H", "T")) else value
        return value

    def part(self) -> Any:
        name = re.fullmatch(r"\\operatorname\{(\w+)\}", self.next or "")
        if name:
            self.take()
            return MATRIX_FUNCTIONS[name[1]](self.between("(", ")"))
        return self.known[self.take()] if self.next in self.known else super().part()
