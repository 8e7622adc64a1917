"""Values of the formulas of the reference: a reader of the LaTeX that docs/extensions/formulas.py writes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.special

import tapegrad as tg

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{rf"\{name}": getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "log")},
    r"\sigma": scipy.special.expit,
    r"\psi": scipy.special.digamma,
    r"\psi'": lambda x: scipy.special.polygamma(1, x),
    r"\Gamma": scipy.special.gamma,
    r"\zeta": scipy.special.zeta,
    r"\log\Gamma": scipy.special.gammaln,
    "ABS": np.abs,
    "FLOOR": np.floor,
    "sgn": np.sign,
    "trunc": np.trunc,
    "Re": np.real,
    "Im": np.imag,
    "round": np.round,
    r"\gcd": np.gcd,
    "Ai'": lambda x: scipy.special.airy(x)[1],
}
BESSEL = {"J": scipy.special.jv, "Y": scipy.special.yv, "I": scipy.special.iv, "K": scipy.special.kv}
RELATIONS = {
    "<": np.less,
    ">": np.greater,
    "=": np.equal,
    r"\le": np.less_equal,
    r"\ge": np.greater_equal,
    r"\ne": np.not_equal,
}
TOKEN = re.compile(
    r"\\operatorname\{[\w\\]+\}'?|\\mathit\{[\w\\]+\}|\\bar\{\\?\w+\}|\\log\\Gamma|\\psi'|\\text\{[^}]*\}|\\[a-zA-Z]+|\\\\|[A-Z]{3,}|\d+(?:\.\d+)?|\S"
)
_SPELT = {
    r"\left|": "ABS(", r"\right|": ")", r"\left\lfloor": "FLOOR(", r"\right\rfloor": ")", r"\left": "",
    r"\right": "", r"\,": " ", r"\cdot": " ", r"\tfrac": r"\frac",
}  # fmt: skip


def evaluate(text: str, known: Mapping[str, Any]) -> Any:
    """Return the value of a formula; `known` has the values of its letters."""
    for written, meant in _SPELT.items():
        text = text.replace(written, meant)
    reader = Reader(TOKEN.findall(text), known)
    value = reader.sum()
    assert reader.next is None, f"{text}: {reader.tokens} are left"
    return value


class Reader:
    def __init__(self, tokens: list[str], known: Mapping[str, Any]) -> None:
        self.tokens, self.known = tokens, known

    @property
    def next(self) -> str | None:
        return self.tokens[0] if self.tokens else None

    def take(self, expected: str | None = None) -> str:
        token = self.tokens.pop(0)
        assert expected in (None, token), f"{token} in place of {expected}"
        return token

    def sum(self) -> Any:
        value = self.product()
        while self.next in ("+", "-"):
            value = value + self.product() if self.take() == "+" else value - self.product()
        return value

    def product(self) -> Any:
        sign = 1
        while self.next == "-":
            self.take()
            sign = -sign
        value = sign
        while self.next not in (
            None,
            "+",
            "-",
            ")",
            "}",
            ",",
            "]",
            "&",
            r"\\",
            "/",
            r"\end",
            r"\bmod",
            r"\rfloor",
            r"\wedge",
            r"\vee",
            *RELATIONS,
        ) and not (self.next or "").startswith(r"\text"):
            value = value * self.power()
        if self.next == "/":
            self.take()
            value = value / self.product()
        return value

    def power(self) -> Any:
        value = self.part()
        while self.next == "^":
            self.take()
            if self.next == "*":
                self.take()
                value = np.conj(value)
            else:
                value = value ** self.part()
        return value

    def between(self, left: str, right: str) -> Any:
        self.take(left)
        value = self.sum()
        self.take(right)
        return value

    def part(self) -> Any:
        token = self.take()
        if token in "({":
            self.tokens.insert(0, token)
            return self.between(token, ")" if token == "(" else "}")
        if token == "e" and self.next == "^":
            self.take("^")
            return np.exp(self.part())
        if token in BESSEL and token not in self.known:
            self.take("_")
            return BESSEL[token](self.part(), self.between("(", ")"))
        if token == r"\frac":
            return self.part() / self.part()
        if token == r"\sqrt":
            return np.sqrt(self.part())
        if token == r"\begin":
            return self.cases()
        name = (
            token.removeprefix(r"\operatorname{").replace("}", "").replace(r"\_", "_")
            if "operatorname" in token
            else token
        )
        if name in FUNCTIONS or "operatorname" in token:
            return self.call(FUNCTIONS.get(name) or _ours(name))
        constants = {r"\pi": math.pi, r"\infty": math.inf}
        return constants[token] if token in constants else float(token) if token[0].isdigit() else self.known[token]

    def call(self, function: Callable[..., Any]) -> Any:
        if self.next != "(":
            return function(self.power())
        self.take("(")
        arguments = [self.sum()]
        while self.next == ",":
            self.take()
            arguments.append(self.sum())
        self.take(")")
        return function(*arguments)

    def cases(self) -> Any:
        for token in "{cases}":
            self.take(token)
        choices = []
        while self.next != r"\end":
            value = self.sum()
            self.take("&")
            choices.append((self.condition(), value))
            if self.next == r"\\":
                self.take()
        for token in (r"\end", *"{cases}"):
            self.take(token)
        found = choices.pop()[1]
        for holds, value in reversed(choices):
            found = np.where(holds, value, found)
        return found

    def condition(self) -> Any:
        if (self.next or "").startswith(r"\text{else"):
            self.take()
            return True
        value = self.question()
        while self.next in (r"\wedge", r"\vee"):
            value = value & self.question() if self.take() == r"\wedge" else value | self.question()
        return value

    def question(self) -> Any:
        left = self.sum()
        if (self.next or "").startswith(r"\text"):
            return ~np.isnan(left) if "not" in self.take() else np.isnan(left)
        return RELATIONS[self.take()](left, self.sum())


def _ours(name: str) -> Callable[..., Any]:
    spaces = (tg, tg.special, tg.nn.functional)
    function = next(getattr(space, name) for space in spaces if hasattr(space, name))
    return lambda *values: function(*map(tg.tensor, values)).numpy()
