"""Conditions on polynomials of lengths, as few and as cheap as say the same: a template checks them at every call.

What is asked of lengths while a result is worked out comes down to the range in which the value of a polynomial lies.
Many questions are about one polynomial, and many answers follow from others: ``n*m != 0`` from ``n > 1`` and ``m > 1``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

Terms = dict[tuple[str, ...], int]  # a polynomial: the factor of each product of names
_Canonical = tuple[tuple[tuple[str, ...], int], ...]  # one without a number, whose factors have no common divisor
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def plus(terms: Terms, others: Terms) -> Terms:
    """Return the sum of two polynomials."""
    result = dict(terms)
    for names, factor in others.items():
        result[names] = result.get(names, 0) + factor
    return {names: factor for names, factor in result.items() if factor}


def times(terms: Terms, others: Terms) -> Terms:
    """Return the product of two polynomials."""
    result: Terms = {}
    for names, factor in terms.items():
        result = plus(result, {tuple(sorted(names + more)): factor * by for more, by in others.items()})
    return result


def replaced(terms: Terms, values: dict[str, Terms]) -> Terms:
    """Return a polynomial with polynomials in place of some names."""
    if values.keys().isdisjoint(name for names in terms for name in names):
        return {names: factor for names, factor in terms.items() if factor}
    result: Terms = {}
    for names, factor in terms.items():
        product: Terms = {(): factor}
        for name in names:
            product = times(product, values.get(name, {(name,): 1}))
        result = plus(result, product)
    return result


def text(terms: Terms) -> str:
    """Return a polynomial as an expression in Python.

    >>> text({("n", "m"): 8, ("k",): -1, (): 1})
    'n*m*8 + 1 - k'
    """
    parts = ""
    for names, factor in sorted(terms.items(), key=lambda term: term[1] < 0):
        size = str(abs(factor))
        parts += (" - " if factor < 0 else " + ") + "*".join([*names, size] if size != "1" or not names else names)
    return "-" + parts[3:] if parts.startswith(" - ") else parts[3:] or "0"


class _Range:
    """The values that a polynomial may have: from `low` to `high`, without `others`; it is never below `given`."""

    def __init__(self) -> None:
        self.given = self.low = -math.inf
        self.high = math.inf
        self.others: set[int] = set()

    def add(self, relation: str, number: int, divisor: int) -> None:
        """Note that ``divisor * polynomial + number <relation> 0`` holds."""
        relation = _FLIPPED.get(relation, relation) if divisor < 0 else relation
        floor, ceiling = -number // divisor, -(number // divisor)  # of the polynomial where the left side is 0
        if relation in ("==", ">", ">="):
            self.low = max(self.low, floor + 1 if relation == ">" else ceiling)
        if relation in ("==", "<", "<="):
            self.high = min(self.high, ceiling - 1 if relation == "<" else floor)
        if relation == "!=" and floor == ceiling:
            self.others.add(floor)

    def tighten(self, least: float) -> None:
        """Note that the polynomial is at least `least` for other reasons, and move the ends past `others`."""
        self.given = max(self.given, least)
        self.low = max(self.low, self.given)
        while self.low in self.others:
            self.low += 1
        while self.high in self.others:
            self.high -= 1

    def texts(self, polynomial: str) -> Iterator[str]:
        """Yield the conditions as expressions in Python."""
        if self.low == self.high:
            yield f"{polynomial} == {self.low}"
            return
        above = f"{self.low} <= " if self.low > self.given else ""
        below = f" <= {self.high}" if self.high < math.inf else ""
        if above or below:
            yield above + polynomial + below
        yield from (f"{polynomial} != {other}" for other in sorted(self.others) if self.low < other < self.high)


class Conditions:
    """The conditions on lengths that were met while a result was worked out."""

    def __init__(self) -> None:
        self._met: list[tuple[Terms, str]] = []

    def add(self, terms: Terms, relation: str) -> None:
        """Note that a polynomial must have this relation to 0, as it has now."""
        self._met.append((terms, relation))

    def equations(self, names: list[str]) -> dict[str, Terms]:
        """Return what some of these lengths are in terms of others, by the equations between them."""
        values: dict[str, Terms] = {}
        for terms, relation in self._met:
            if relation != "==" or not _names(terms) <= set(names):
                continue
            rest = replaced(terms, values)
            uses = Counter(name for product in rest for name in product)
            for name in reversed(names):
                factor = rest.get((name,), 0)
                if uses[name] == 1 and abs(factor) == 1:
                    value = {product: -other * factor for product, other in rest.items() if product != (name,)}
                    values = {letter: replaced(old, {name: value}) for letter, old in values.items()} | {name: value}
                    break
        return values

    def texts(self, values: dict[str, Terms], least: dict[str, int]) -> Iterator[tuple[set[str], str]]:
        """Yield expressions in Python that say what is left of the conditions, each with the names in it.

        Parameters
        ----------
        values : dict
            The names that others stand for.
        least : dict
            What some lengths cannot be less than.
        """
        ranges: dict[_Canonical, _Range] = {}
        for terms, relation in [*self._met, *(({(name,): 1, (): -low}, "given") for name, low in least.items())]:
            terms = replaced(terms, values)
            if not any(terms):
                continue
            key, divisor, number = _canonical(terms)
            range_ = ranges.setdefault(key, _Range())
            if relation != "given":
                range_.add(relation, number, divisor)
            elif divisor > 0:
                range_.given = max(range_.given, -(number // divisor))
        lows = _lows(ranges)
        for key, range_ in ranges.items():
            if len(key) == 1 and any(
                _bounds(lows, other, more.high, key) <= range_.high for other, more in ranges.items()
            ):
                range_.high = math.inf
            for condition in range_.texts(text(dict(key))):
                yield _names(dict(key)), condition


def _names(terms: Terms) -> set[str]:
    return {name for product in terms for name in product}


def _canonical(terms: Terms) -> tuple[_Canonical, int, int]:
    """Return a polynomial without its number, divided by what its factors have in common; that; and the number."""
    items = sorted((names, factor) for names, factor in terms.items() if names)
    divisor = math.gcd(*(factor for _, factor in items))
    divisor = -divisor if items[0][1] < 0 else divisor
    return tuple((names, factor // divisor) for names, factor in items), divisor, terms.get((), 0)


def _lows(ranges: dict[_Canonical, _Range]) -> dict[str, float]:
    """Return the least values of names, and tighten the ranges of polynomials by them."""
    lows: dict[str, float] = {}
    for key in sorted(ranges, key=lambda key: len(key) + len(key[0][0])):  # single names first
        if len(key) == len(key[0][0]) == 1:
            ranges[key].tighten(-math.inf)
            lows[key[0][0][0]] = ranges[key].low
        elif all(factor > 0 and all(lows.get(name, -1) >= 0 for name in names) for names, factor in key):
            ranges[key].tighten(sum(factor * math.prod([lows[name] for name in names]) for names, factor in key))
        else:
            ranges[key].tighten(-math.inf)
    return lows


def _bounds(lows: dict[str, float], product: _Canonical, high: float, part: _Canonical) -> float:
    """Return the highest value of a part of a product that is at most `high`; infinity if it is no part of it."""
    if len(product) > 1 or len(product[0][0]) <= len(part[0][0]):
        return math.inf
    names, others = Counter(product[0][0]), Counter(part[0][0])
    rest = names - others
    if others - names or any(lows.get(name, 0) < 1 for name in rest):
        return math.inf
    return high // math.prod([lows[name] ** count for name, count in rest.items()])
