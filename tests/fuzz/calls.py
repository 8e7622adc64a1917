"""How each public function and method is called: a generator of arguments for each kind of them.

A generator takes what was computed so far and returns the text of a call, in which ``m`` is the module, ``F`` its
``nn.functional`` and ``v0``, ``v1``, ... are values; or None if there is no value to call it with.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tapegrad as tg
from tapegrad.ops.table.loading import load_all
from tapegrad.ops.table.public import TOP, registry
from tests.fuzz import shapes, windows
from tests.fuzz.chosen_calls import CHOSEN
from tests.fuzz.matrices import TEXTS, linear_algebra
from tests.fuzz.transforms import FREQUENCIES, TRANSFORMS, frequencies, transform

NUMBERS = (0, 1, 2, 3, -1, -2, 0.0, 0.5, 1.0, 2.0, -1.5, 1e-3)


@dataclass(frozen=True)
class Value:
    """What is known of a value: it may be the operand of a call."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def kind(self) -> str:
        """Return "b", "i" (of unsigned numbers, too), "f" or "c"."""
        return {"bool": "b", "float": "f", "complex": "c"}.get(self.dtype.rstrip("0123456789"), "i")


class Draw:
    """Random choices among the values of a program; no result has more than `most` elements."""

    def __init__(self, rng: random.Random, values: Mapping[str, Value], most: int) -> None:
        self.rng, self.values, self.most = rng, values, most

    def one(self, fits: Callable[[Value], bool] = lambda value: True) -> Value | None:
        """Return a value that fits, a late one rather than an early one; sometimes one that does not fit."""
        known = list(self.values.values())
        chosen = [value for value in known if fits(value)]
        if self.rng.random() < 0.03:
            chosen = [value for value in known if math.prod(value.shape) < 100]
        if not chosen:
            return None
        return chosen[max(self.rng.randrange(len(chosen)) for _ in range(2))]

    def beside(self, first: Value) -> Callable[[Value], bool]:
        """Return whether a value broadcasts with another, to a size that is not too large."""

        def fits(other: Value) -> bool:
            pairs = list(itertools.zip_longest(reversed(first.shape), reversed(other.shape), fillvalue=1))
            return all(a == b or 1 in (a, b) for a, b in pairs) and math.prod(map(max, pairs)) <= self.most

        return fits

    def times(self, x: Value) -> Callable[[Value], bool]:
        """Return whether a matrix product with a value is not too large."""

        def fits(y: Value) -> bool:
            rows, columns = math.prod(x.shape[-2:-1]), math.prod(y.shape[-1:]) if len(y.shape) > 1 else 1
            pairs = itertools.zip_longest(reversed(x.shape[:-2]), reversed(y.shape[:-2]), fillvalue=1)
            size = math.prod(map(max, pairs)) * rows * columns
            return size <= self.most and size * x.shape[-1] <= 100 * self.most

        return fits

    def dim(self, value: Value, extra: int = 0) -> int:
        """Return a dimension of a value, rarely one that it does not have."""
        ndim = len(value.shape) + extra
        if self.rng.random() < 0.02:
            return self.rng.choice([ndim, -ndim - 1, 7])
        return self.rng.randrange(-ndim, ndim) if ndim else self.rng.choice([0, -1])

    def call(self, name: str, first: Value, *rest: str) -> str:
        """Return the text of a call, as a function or as a method."""
        is_method = hasattr(tg.Tensor, name)
        is_function = hasattr(tg, name) and not name.endswith("_")  # of those that write, PyTorch has only some
        if is_method and (self.rng.random() < 0.4 or not is_function or name in METHODS_ONLY):
            return f"{first.name}.{name}({', '.join(rest)})"
        return f"m.{name}({', '.join((first.name, *rest))})"


METHODS_ONLY = ("expand", "expand_as", "view", "view_as", "reshape_as", "contiguous", "sum_to_size")


def real(value: Value) -> bool:
    return value.kind == "f"


def floating(value: Value) -> bool:
    return value.kind in "fc"


def with_dims(value: Value) -> bool:
    return len(value.shape) > 0


# Generators ----------------------------------------------------------------------------------------------------------


def unary(draw: Draw, name: str) -> str | None:
    x = draw.one(floating if draw.rng.random() < 0.85 else lambda value: True)
    if x is None:
        return None
    # PyTorch's conjugates are views that conjugate when they are read, and are written to as views.
    return draw.call(name, x) + (".clone()" if name == "conj" else "")


def binary(draw: Draw, name: str) -> str | None:
    x = draw.one()
    if x is None:
        return None
    y = draw.one(draw.beside(x))
    if y is None or draw.rng.random() < 0.25:
        return draw.call(name, x, repr(draw.rng.choice(NUMBERS)))
    return draw.call(name, x, y.name)


def with_tensor(draw: Draw, name: str) -> str | None:
    """Of two tensors, with which PyTorch takes no numbers."""
    x = draw.one()
    y = x and draw.one(draw.beside(x))
    return draw.call(name, x, y.name) if x and y else None


def of_three(draw: Draw, name: str) -> str | None:
    x = draw.one(floating)
    y = x and draw.one(lambda value: value.dtype == x.dtype and draw.beside(x)(value))
    z = y and draw.one(lambda value: value.dtype == x.dtype and draw.beside(x)(value) and draw.beside(y)(value))
    if not (x and y and z):
        return None
    value = [f"value={draw.rng.choice(NUMBERS)!r}"] if name != "lerp" and draw.rng.random() < 0.5 else []
    return draw.call(name, x, y.name, z.name, *value)


def operator(draw: Draw, name: str) -> str | None:
    x = draw.one()
    if x is None:
        return None
    y = draw.one(draw.beside(x))
    other = y.name if y is not None and draw.rng.random() < 0.6 else repr(draw.rng.choice(NUMBERS))
    return f"{x.name} {name} {other}" if draw.rng.random() < 0.6 else f"{other} {name} {x.name}"


def bits(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: value.kind in "bi")
    if x is None:
        return None
    y = draw.one(lambda value: value.kind in "bi" and draw.beside(x)(value))
    return draw.call(name, x, y.name if y is not None else "1")


def bits_not(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: value.kind in "bi")
    return None if x is None else draw.call(name, x)


def where(draw: Draw, name: str) -> str | None:
    x = draw.one()
    if x is None:
        return None
    y = draw.one(draw.beside(x))
    condition = draw.one(lambda value: value.kind == "b" and draw.beside(x)(value))
    if y is None or condition is None:
        return f"m.where({x.name} == {x.name}, {x.name}, {draw.rng.choice(NUMBERS)!r})"
    return f"m.where({condition.name}, {x.name}, {y.name})"


def clamp(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: value.kind != "c")
    if x is None:
        return None
    if draw.rng.random() < 0.3:
        low, high = draw.one(draw.beside(x)), draw.one(draw.beside(x))
        if low is not None and high is not None:
            return draw.call(name, x, low.name, high.name if draw.rng.random() < 0.7 else "None")
    bounds = [repr(draw.rng.choice((*NUMBERS, None))) for _ in range(2)]
    return draw.call(name, x, *bounds)


def reduction(draw: Draw, name: str) -> str | None:
    x = draw.one(floating if draw.rng.random() < 0.8 else lambda value: True)
    if x is None:
        return None
    way = draw.rng.random()
    if way < 0.3 and name not in ("logsumexp",):
        return draw.call(name, x)
    keep = draw.rng.choice(["", "keepdim=True", "keepdim=False"])
    if way < 0.5 and name not in ("argmax", "argmin", "max", "min") and len(x.shape) > 1:
        dims = tuple(draw.rng.sample(range(-len(x.shape), 0), 2))
        return draw.call(name, x, f"dim={dims}", *filter(None, [keep]))
    return draw.call(name, x, f"dim={draw.dim(x)}", *filter(None, [keep]))


def product(draw: Draw, name: str) -> str | None:
    x = draw.one(floating if draw.rng.random() < 0.8 else lambda value: True)
    if x is None:
        return None
    most = math.isqrt(draw.most)  # PyTorch's derivatives take the square
    if name == "prod" and (max(x.shape, default=0) > most or math.prod(x.shape) * max(x.shape, default=0) > 10**7):
        return None
    if name == "prod" and math.prod(x.shape) <= most and draw.rng.random() < 0.4:
        return draw.call(name, x)
    keep = ["keepdim=True"] if name == "prod" and draw.rng.random() < 0.3 else []
    return draw.call(name, x, f"dim={draw.dim(x)}", *keep)


def logit(draw: Draw, name: str) -> str | None:
    x = draw.one(real)
    return None if x is None else draw.call(name, x, *draw.rng.choice([[], ["eps=0.1"], ["0.3"], ["None"]]))


def convolution(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: real(value) and len(value.shape) == 2 and 0 < math.prod(value.shape) < 1000)
    if x is None:
        return None
    y = draw.one(lambda value: value.dtype == x.dtype and len(value.shape) == 2 and 0 < math.prod(value.shape) < 20)
    if y is None or len(x.shape) != 2 or len(y.shape) != 2:
        return None
    options = draw.rng.choice(
        ["", ", padding=1", ", stride=2, padding=(1, 0)", ", padding='same'", ", dilation=(1, 2)"]
    )
    return f"F.conv2d({x.name}.reshape(1, 1, *{x.shape}), {y.name}.reshape(1, 1, *{y.shape}){options})"


def variance(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: floating(value) and math.prod(value.shape) > 1)
    if x is None:
        return None
    correction = draw.rng.choice(["", "correction=0", "correction=1"])
    if draw.rng.random() < 0.4:
        return draw.call(name, x, *filter(None, [correction]))
    return draw.call(name, x, f"dim={draw.dim(x)}", *filter(None, [correction]))


def extremum(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: value.kind in "fi")
    if x is None:
        return None
    if draw.rng.random() < 0.25:
        y = draw.one(draw.beside(x))
        return None if y is None else draw.call(name, x, y.name)
    if draw.rng.random() < 0.3:
        return draw.call(name, x)
    return draw.call(name, x, f"dim={draw.dim(x)}") + draw.rng.choice([".values", "[0]", ".indices"])


def sorting(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: value.kind in "fi")
    if x is None:
        return None
    # Of elements that are equal PyTorch keeps the order only where it is asked to.
    options = f"dim={draw.dim(x)}, stable=True, descending={draw.rng.random() < 0.5}"
    return draw.call(name, x, options) + draw.rng.choice([".values", "[0]", ".indices"])


def along(draw: Draw, name: str) -> str | None:
    x = draw.one(real)
    return None if x is None else draw.call(name, x, f"dim={draw.dim(x)}")


def reshape(draw: Draw, name: str) -> str | None:
    x = draw.one()
    if x is None:
        return None
    size = math.prod(x.shape)
    shapes = [(-1,), (size,), (1, size), (size, 1), tuple(reversed(x.shape)), (2, -1), (-1, 3), x.shape]
    shapes += [(divisor, size // divisor) for divisor in (2, 3, 4) if size % divisor == 0]
    return draw.call(name, x, repr(draw.rng.choice(shapes)))


def shaped_as(draw: Draw, name: str) -> str | None:
    x = draw.one()
    if x is None:
        return None
    if name in ("expand_as",):
        y = draw.one(lambda value: draw.beside(x)(value) and len(value.shape) >= len(x.shape))
    else:
        y = draw.one(lambda value: math.prod(value.shape) == math.prod(x.shape))
    return None if y is None else draw.call(name, x, y.name)


def flatten(draw: Draw, name: str) -> str | None:
    x = draw.one()
    if x is None:
        return None
    return draw.call(name, x) if draw.rng.random() < 0.5 else draw.call(name, x, str(draw.dim(x)))


def plain(draw: Draw, name: str) -> str | None:
    x = draw.one()
    return None if x is None else draw.call(name, x)


def matrix_t(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: len(value.shape) <= 2)
    return None if x is None else draw.call(name, x)


def two_dims(draw: Draw, name: str) -> str | None:
    x = draw.one(with_dims)
    return None if x is None else draw.call(name, x, str(draw.dim(x)), str(draw.dim(x)))


def permute(draw: Draw, name: str) -> str | None:
    x = draw.one(with_dims)
    if x is None:
        return None
    dims = list(range(len(x.shape)))
    draw.rng.shuffle(dims)
    return draw.call(name, x, repr(tuple(dims)))


def one_dim(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: len(value.shape) < 5)
    return None if x is None else draw.call(name, x, str(draw.dim(x, name == "unsqueeze")))


def squeeze(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: 1 in value.shape)
    if x is None:
        return None
    return draw.call(name, x) if draw.rng.random() < 0.5 else draw.call(name, x, str(draw.dim(x)))


def expand(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: math.prod(value.shape) < 1000 and len(value.shape) < 4)
    if x is None:
        return None
    size = [length if length != 1 else draw.rng.choice([1, 2, 3]) for length in x.shape]
    if draw.rng.random() < 0.3:
        size.insert(0, 2)
    return draw.call(name, x, repr(tuple(size)))


def sum_to_size(draw: Draw, name: str) -> str | None:
    x = draw.one(floating)
    if x is None:
        return None
    size = [draw.rng.choice([1, length]) for length in x.shape]
    start = draw.rng.randrange(len(size) + 1)
    return None if start == len(size) else draw.call(name, x, repr(tuple(size[start:])))


def flip(draw: Draw, name: str) -> str | None:
    x = draw.one()
    return None if x is None else draw.call(name, x, repr((draw.dim(x),) if draw.rng.random() < 0.9 else ()))


def diagonal(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: len(value.shape) >= 2)
    return None if x is None else draw.call(name, x, str(draw.rng.choice([0, 0, 1, -1, 5])))


def join(draw: Draw, name: str) -> str | None:
    x = draw.one(with_dims if name != "stack" else lambda value: True)
    if x is None:
        return None
    if 3 * math.prod(x.shape) > draw.most:
        return None
    if name == "stack":
        others = [draw.one(lambda value: value.shape == x.shape) for _ in range(2)]
        dim = draw.dim(x, 1)
    else:
        dim = draw.dim(x)
        others = [draw.one(lambda value: len(value.shape) == len(x.shape) and value.shape[1:] == x.shape[1:])]
        dim = 0 if draw.rng.random() < 0.7 else dim
    names = [x.name, *(other.name for other in others if other is not None)]
    draw.rng.shuffle(names)
    return f"m.{name}([{', '.join(names)}], {dim})"


def subscript(draw: Draw, x: Value) -> str:
    """Return the text of an index."""
    items, kinds = [], 0
    for length in x.shape:
        way = draw.rng.random()
        if way < 0.25:
            items.append(str(draw.rng.randrange(-length, length) if length else 0))
        elif way < 0.6:
            start, stop = (draw.rng.choice([None, *range(-length - 1, length + 2)]) for _ in range(2))
            step = draw.rng.choice(["", "", ":2", ":1", ":3"])
            items.append(f"{'' if start is None else start}:{'' if stop is None else stop}{step}")
        elif way < 0.75 and length and kinds < 2:
            kinds += 1
            items.append(repr([draw.rng.randrange(-length, length) for _ in range(2)]))
        elif way < 0.8:
            items.append("...")
            break
        else:
            items.append(":")
    items = items[: draw.rng.randrange(len(items) + 1)] or ["..."]
    if draw.rng.random() < 0.15:
        items.insert(draw.rng.randrange(len(items) + 1), "None")
    if draw.rng.random() < 0.02:
        items.append("9")
    lists = [place for place, item in enumerate(items) if item.startswith("[")]
    kinds_of_item = "".join("a" if item[0] == "[" else "i" if item.lstrip("-").isdigit() else "." for item in items)
    if lists and re.search(r"[ai]\.+[ai]", kinds_of_item):  # NumPy takes an integer beside an array for an array, too
        items = [":" if item.lstrip("-").isdigit() else item for item in items]
    if lists and draw.rng.random() < 0.5:  # a lone list is an index in both; of several, tensors too
        items[lists[0]] = f"m.tensor({items[lists[0]]})"
    return ", ".join(items) if len(items) > 1 or not items[0].startswith("[") else f"{items[0]},"


def getitem(draw: Draw, name: str) -> str | None:
    x = draw.one(with_dims)
    if x is None:
        return None
    mask = draw.one(lambda value: value.kind == "b" and value.shape == x.shape[: len(value.shape)])
    if mask is not None and draw.rng.random() < 0.2:
        return f"{x.name}[{mask.name}]"
    return f"{x.name}[{subscript(draw, x)}]"


def matmul(draw: Draw, name: str) -> str | None:
    ndim = {"mm": 2, "bmm": 3, "dot": 1, "mv": 2}.get(name)
    x = draw.one(lambda value: floating(value) and (len(value.shape) == ndim if ndim else with_dims(value)))
    if x is None or not x.shape:
        return None
    other = {"mv": 1}.get(name, ndim)

    def fits(value: Value) -> bool:
        if value.dtype != x.dtype or not value.shape or (other and len(value.shape) != other):
            return False
        inner = value.shape[-2] if len(value.shape) > 1 else value.shape[0]
        return inner == x.shape[-1] and draw.times(x)(value)

    y = draw.one(fits)
    if y is None or not y.shape:
        square = len(x.shape) > 1 and name == "matmul" and math.prod(x.shape) * x.shape[-2] <= draw.most
        return f"m.matmul({x.name}, {x.name}.mT)" if square else None
    return draw.call(name, x, y.name)


def outer(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: len(value.shape) == 1 and value.shape[0] < 100)
    y = draw.one(lambda value: len(value.shape) == 1 and value.shape[0] < 100)
    return None if x is None or y is None else draw.call(name, x, y.name)


def addmm(draw: Draw, name: str) -> str | None:
    a = draw.one(lambda value: floating(value) and len(value.shape) == 2)
    if a is None or len(a.shape) != 2 or math.prod(a.shape) * a.shape[0] > draw.most:
        return None
    c = draw.one(lambda value: value.dtype == a.dtype and value.shape in ((), (a.shape[0],), (a.shape[0], 1)))
    first = c.name if c is not None else f"{a.name}[0, 0]"
    options = draw.rng.choice(["", ", beta=2", ", alpha=0.5", ", beta=0"])
    if a.kind != "f":
        options = ""
    return f"m.addmm({first}, {a.name}, {a.name}.mT{options})"


def einsum(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: floating(value) and 1 <= len(value.shape) <= 3)
    if x is None or not 1 <= len(x.shape) <= 3 or math.prod(x.shape) > 1000:
        return None
    letters = "ijk"[: len(x.shape)]
    y = draw.one(lambda value: value.dtype == x.dtype and value.shape[:1] == x.shape[-1:] and len(value.shape) <= 2)
    if y is None or not y.shape or math.prod(y.shape) * math.prod(x.shape) > draw.most or draw.rng.random() < 0.3:
        result = "".join(draw.rng.sample(letters, draw.rng.randrange(len(letters) + 1)))
        return f"m.einsum('{letters}->{result}', {x.name})"
    others = letters[-1] + "l"[: len(y.shape) - 1]
    every = "".join(dict.fromkeys(letters + others))
    result = "".join(draw.rng.sample(every, draw.rng.randrange(len(every) + 1)))
    return f"m.einsum('{letters},{others}->{result}', {x.name}, {y.name})"


def like(draw: Draw, name: str) -> str | None:
    x = draw.one()
    if x is None:
        return None
    rest = [repr(draw.rng.choice(NUMBERS))] if name == "full_like" else []
    return f"m.{name}({', '.join([x.name, *rest])})"


def created(draw: Draw, name: str) -> str | None:
    pick = draw.rng.choice
    sizes = pick([(), (3,), (2, 3), (0, 2)])
    texts = {
        "zeros": f"m.zeros({sizes})", "ones": f"m.ones({sizes})", "full": f"m.full({sizes}, {pick(NUMBERS)!r})",
        "eye": f"m.eye({pick([0, 1, 3])}, {pick([1, 2])})",
        "arange": f"m.arange({pick([0, 3, 5])}, {pick([6, 7.5])}, {pick([1, 2, 0.5])})",
        "linspace": f"m.linspace({pick([0, -1.0])}, {pick([1, 2.5])}, {pick([0, 1, 5])})",
        "logspace": f"m.logspace(0, 1, {pick([1, 4])})",
        "tensor": f"m.tensor({pick([1, 2.5, [1, 2], [[1.0, 2.0]], True, 1j, []])!r})",
        "as_tensor": f"m.as_tensor({pick([1, 2.5, [1, 2]])!r})",
    }  # fmt: skip
    return texts[name]


def created_as(draw: Draw, name: str) -> str | None:
    x = draw.one()
    rest = {"new_full": "(2, 2), 3", "new_tensor": "[1.0, 2.0]"}.get(name, "(2, 3)")
    return None if x is None else f"{x.name}.{name}({rest})"


def cast(draw: Draw, name: str) -> str | None:
    whole = name in ("long", "int", "short", "char", "byte")
    x = draw.one(
        lambda value: value.kind in "bi" or (not whole and (value.kind == "f" or name[0] == "c" or name == "bool"))
    )
    if x is None or (whole and x.kind in "fc"):  # undefined for what is not finite or too large
        return None
    if name == "to":
        return f"{x.name}.to(m.{draw.rng.choice(['float32', 'float64', 'complex64', 'complex128'])})"
    if name == "type_as":
        y = draw.one(floating)
        return None if y is None else f"{x.name}.type_as({y.name})"
    return f"{x.name}.{name}()"


def attribute(draw: Draw, name: str) -> str | None:
    fits = {"imag": lambda value: value.kind == "c", "H": lambda value: len(value.shape) == 2}.get(name, with_dims)
    x = draw.one(fits)
    return None if x is None else f"{x.name}.{name}{'.clone()' if 'H' in name else ''}"


def pair(draw: Draw, name: str) -> str | None:
    x = draw.one()
    if x is None:
        return None
    y = draw.one(lambda value: value.shape == x.shape and value.dtype == x.dtype)
    return None if y is None else f"m.{name}({x.name}, {y.name})"


def _has_two_operands(name: str) -> bool:
    op = getattr(getattr(tg.Tensor, name, None), "op", None)
    return op is not None and op.family == "binary"


def written(draw: Draw, name: str) -> str | None:
    x = draw.one(floating if draw.rng.random() < 0.8 else lambda value: True)
    if x is None:
        return None
    one = draw.one(draw.beside(x))
    y = one.name if one is not None and draw.rng.random() < 0.5 else repr(draw.rng.choice(NUMBERS))
    if name in (
        "add_",
        "sub_",
        "mul_",
        "div_",
        "pow_",
        "subtract_",
        "multiply_",
        "divide_",
        "true_divide_",
    ) or _has_two_operands(name[:-1]):
        return f"{x.name}.{name}({y})"
    if name == "clamp_":
        return f"{x.name}.clamp_({draw.rng.choice(NUMBERS)!r})"
    if name == "copy_":
        return None if one is None else f"{x.name}.copy_({one.name})"
    if name in ("fill_", "fill_diagonal_"):
        return f"{x.name}.{name}({draw.rng.choice(NUMBERS)!r})"
    if name == "polygamma_":
        return f"{x.name}.polygamma_({draw.rng.randrange(3)})"
    if name == "setitem":
        return None if not x.shape else f"{x.name}.__setitem__(({subscript(draw, x)},), {y})".replace(",,", ",")
    return f"{x.name}.{name}()"


def augmented(draw: Draw, name: str) -> str | None:
    x = draw.one(floating)
    if x is None:
        return None
    one = draw.one(draw.beside(x))
    y = one.name if one is not None and draw.rng.random() < 0.5 else repr(draw.rng.choice(NUMBERS))
    return f"{x.name}.__i{name}__({y})"


def loss(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: real(value) and len(value.shape) == 2 and value.shape[0] < 50)
    if x is None or len(x.shape) != 2:
        return None
    how = draw.rng.choice(["mean", "sum", "none"])
    if name == "mse_loss":
        return f"F.mse_loss({x.name}, {x.name} * 0.5 + 1, reduction='{how}')"
    items, classes = x.shape
    if name == "linear_cross_entropy":
        return (
            f"F.{name}({x.name}, {x.name} * 0.5, m.arange({items}), reduction='{how}')" if items and classes else None
        )
    target = [draw.rng.randrange(max(classes, 1)) for _ in range(items)]
    more = draw.rng.choice(["", ", label_smoothing=0.1"]) if name == "cross_entropy" else ""
    return f"F.{name}({x.name}, m.tensor({target}, dtype=m.int64), reduction='{how}'{more})"


def loss_of_numbers(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: real(value) and math.prod(value.shape) > 0)
    how = draw.rng.choice(["mean", "sum", "none"])
    return (
        None
        if x is None
        else (f"F.{name}(m.sigmoid({x.name}), ({x.name} * 2 > 1).type_as({x.name} * 1.0), reduction='{how}')")
    )


def loss_of_rows(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: real(value) and len(value.shape) == 2 and math.prod(value.shape) > 0)
    return None if x is None else f"F.{name}({x.name}, ({x.name} > 0) * 1.0)"


def loss_of_variances(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: real(value) and math.prod(value.shape) > 0)
    return None if x is None else f"F.{name}({x.name}, {x.name} * 0.5, m.exp({x.name}))"


def softplus(draw: Draw, name: str) -> str | None:
    x = draw.one(real)
    if x is None:
        return None
    options = draw.rng.choice(["", ", beta=0.5", ", beta=2", ", beta=2, threshold=3", ", threshold=0.7"])
    return f"F.softplus({x.name}{options})"


def linear(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: floating(value) and with_dims(value) and value.shape[-1] < 50)
    if x is None or not x.shape:
        return None

    def fits(value: Value) -> bool:
        alike = value.dtype == x.dtype and len(value.shape) == 2 and value.shape[1] == x.shape[-1]
        return alike and math.prod(x.shape[:-1]) * value.shape[0] <= draw.most

    weight = draw.one(fits)
    return None if weight is None else f"F.linear({x.name}, {weight.name})"


def functional(draw: Draw, name: str) -> str | None:
    x = draw.one(real)
    return None if x is None else f"F.{name}({x.name}{', -1' if 'softm' in name else ''})"


def shaped(draw: Draw, name: str) -> str | None:
    x, number = draw.one(real), draw.rng.choice([0.1, 0.5, 2.0])
    if x is None:
        return None
    if name.endswith("_"):
        return f"F.{name}({x.name} * 1.0, {'-0.5, ' if name in BOUNDS else ''}{number})"
    return f"F.{name}({x.name}, {'-0.5, ' if name in BOUNDS else ''}{number})"


BOUNDS = ("hardtanh", "hardtanh_", "threshold", "threshold_")  # functions of two numbers


def activation(draw: Draw, name: str) -> str | None:
    x = draw.one(real)
    return None if x is None else f"F.{name}({x.name}{' * 1.0' if name.endswith('_') else ''})"


def prelu(draw: Draw, name: str) -> str | None:
    x = draw.one(real)
    weight = None if x is None else draw.one(lambda value: value.shape == x.shape[1:2] and value.dtype == x.dtype)
    return None if weight is None or x is None else f"m.{name}({x.name}, {weight.name})"


def glu(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: real(value) and len(value.shape) > 0 and value.shape[-1] % 2 == 0)
    return None if x is None else f"F.{name}({x.name})"


# Functions of networks by the text of a call of a matrix x, in which {n} and {m} are its lengths.
NETWORK: dict[str, str] = {
    "lstm_cell": "m.lstm_cell(x, (x * 0.5, 1 - x), m.cat([x[:1]] * (4 * {m})), m.cat([x[-1:]] * (4 * {m})))[1]",
    "gru_cell": "m.gru_cell(x, 1 - x, m.cat([x[:1]] * (3 * {m})), m.cat([x[-1:]] * (3 * {m})), b_hh=m.cat([x[0]] * 3))",
    "rnn_tanh_cell": "m.rnn_tanh_cell(x, 1 - x, m.cat([x[:1]] * {m}), m.cat([x[-1:]] * {m}), x[0])",
    "rnn_relu_cell": "m.rnn_relu_cell(x, 1 - x, m.cat([x[:1]] * {m}), m.cat([x[-1:]] * {m}), x[0], x[-1])",
    "normalize": "F.normalize(x)",
    "cosine_similarity": "F.cosine_similarity(x, x * 0.5 + 1)",
    "pairwise_distance": "F.pairwise_distance(x, x * 0.5 + 1)",
    "layer_norm": "F.layer_norm(x, ({m},), x[0], x[-1], 0.1)",
    "rms_norm": "F.rms_norm(x, ({m},), x[0], 0.1)",
    "batch_norm": "F.batch_norm(m.cat([x, x * 0.5]), None, None, x[0].clone(), training=True, eps=0.1)",
    "group_norm": "F.group_norm(m.stack([x, x * 0.5]), {n}, eps=0.1)",
    "instance_norm": "F.instance_norm(m.stack([x, x * 0.5], -1), eps=0.1)",
    "local_response_norm": "F.local_response_norm(m.stack([x, x * 0.5], -1), 2)",
    "scaled_dot_product_attention": "F.scaled_dot_product_attention(x, x * 0.5, x + 1, is_causal=True)",
    "bilinear": "F.bilinear(x, x * 0.5, m.stack([x[:1].mT * x[:1]] * 2).reshape(2, {m}, {m}))",
    "margin_ranking_loss": "F.margin_ranking_loss(x, x * 0.5 + 1, (x > 0) * 2.0 - 1, 0.3)",
    "hinge_embedding_loss": "F.hinge_embedding_loss(x, (x > 0) * 2.0 - 1)",
    "soft_margin_loss": "F.soft_margin_loss(x, (x > 0) * 2.0 - 1)",
    "cosine_embedding_loss": "F.cosine_embedding_loss(x, x * 0.5 + 1, (x[:, 0] > 0) * 2 - 1)",
    "triplet_margin_loss": "F.triplet_margin_loss(x, x * 0.5, 1 - x)",
    "triplet_margin_with_distance_loss": "F.triplet_margin_with_distance_loss(x, x * 0.5, 1 - x)",
    "multi_margin_loss": "F.multi_margin_loss(x, m.tensor([0] * {n}))",
    "multilabel_margin_loss": "F.multilabel_margin_loss(x, m.tensor([[0] + [-1] * ({m} - 1)] * {n}))",
    **windows.WINDOWS,
}


def network(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: real(value) and len(value.shape) == 2 and 0 < math.prod(value.shape) < 200)
    if x is None or len(x.shape) != 2 or not math.prod(x.shape):
        return None
    return re.sub(r"\bx\b", x.name, NETWORK[name]).replace("{n}", str(x.shape[0])).replace("{m}", str(x.shape[1]))


Generator = Callable[[Draw, str], str | None]

#: Each kind with the names that it serves.
KINDS: dict[Generator, str] = {
    **CHOSEN,
    unary: "abs absolute acos acosh asin asinh atan atanh conj cos cosh erf exp exp2 expm1 log log10 log1p log2 neg "
    "negative positive real reciprocal relu rsqrt sgn sigmoid sign sin sinh sqrt square tan tanh imag logical_not "
    "deg2rad rad2deg round nan_to_num",
    binary: "add sub subtract mul multiply div divide true_divide pow maximum minimum atan2 hypot logaddexp eq ne lt "
    "le gt ge not_equal less less_equal greater greater_equal logical_and logical_or rsub float_power clamp_min "
    "clamp_max",
    operator: "+ - * / ** == != < <= > >=",
    bits: "bitwise_and bitwise_or bitwise_xor",
    bits_not: "bitwise_not",
    with_tensor: "ldexp",
    of_three: "addcmul addcdiv lerp",
    where: "where",
    clamp: "clamp clip",
    reduction: "sum mean amax amin any all argmax argmin logsumexp",
    product: "prod cumsum",
    logit: "logit",
    linear_algebra: " ".join(TEXTS),
    transform: " ".join(TRANSFORMS),
    frequencies: " ".join(FREQUENCIES),
    convolution: "conv2d",
    variance: "var",
    extremum: "max min",
    sorting: "sort",
    along: "softmax log_softmax",
    reshape: "reshape view",
    shaped_as: "reshape_as view_as expand_as",
    flatten: "flatten",
    plain: "ravel clone contiguous detach",
    matrix_t: "t",
    two_dims: "transpose swapaxes swapdims movedim moveaxis",
    permute: "permute",
    one_dim: "unsqueeze",
    squeeze: "squeeze",
    expand: "expand broadcast_to",
    sum_to_size: "sum_to_size",
    flip: "flip",
    diagonal: "diagonal",
    join: "cat concat concatenate stack",
    getitem: "getitem",
    matmul: "matmul mm bmm mv dot",
    outer: "outer",
    addmm: "addmm",
    einsum: "einsum",
    like: "zeros_like ones_like full_like",
    created: "zeros ones full eye arange linspace logspace tensor as_tensor",
    created_as: "new_zeros new_ones new_full new_tensor",
    cast: "to type_as float double cfloat cdouble long int short char byte bool",
    attribute: "T mT H mH real imag",
    pair: "equal allclose",
    written: "add_ sub_ mul_ div_ subtract_ multiply_ divide_ true_divide_ "
    "pow_ neg_ abs_ clamp_ relu_ square_ reciprocal_ exp_ log_ sqrt_ sin_ cos_ tanh_ "
    "sigmoid_ copy_ fill_ zero_ setitem fill_diagonal_ polygamma_",
    augmented: "add sub mul truediv pow",
    loss: "mse_loss nll_loss cross_entropy linear_cross_entropy",
    loss_of_numbers: "l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div "
    "poisson_nll_loss",
    loss_of_rows: "multilabel_soft_margin_loss",
    loss_of_variances: "gaussian_nll_loss",
    softplus: "softplus",
    linear: "linear",
    **shapes.KINDS,
    functional: "relu sigmoid tanh softmax log_softmax softmin",
    shaped: "leaky_relu leaky_relu_ elu elu_ celu celu_ hardtanh hardtanh_ threshold threshold_ softshrink hardshrink",
    activation: "relu_ relu6 selu selu_ silu mish gelu hardsigmoid hardswish softsign logsigmoid tanhshrink",
    prelu: "prelu",
    glu: "glu",
    network: " ".join(NETWORK),
}

#: Public names that PyTorch has too and that no program calls, with the reason.
NOT_CALLED: dict[str, str] = {
    **shapes.NOT_CALLED,
    **windows.NOT_CALLED,
    **dict.fromkeys(
        ["numel", "broadcast_shapes", "result_type", "promote_types", "can_cast", "typename"], "returns no tensor"
    ),
    **dict.fromkeys(
        ["histogramdd", "frombuffer", "from_dlpack", "nonzero_static"], "tests/test_histograms.py compares it"
    ),
    **dict.fromkeys(
        ["amp", "autocast", "jit", "version", "float16", "bfloat16", "half"], "tests/test_names_of_torch.py compares it"
    ),
    "distributions": "tests/test_distributions.py compares them",
    "masked": "tests/test_opinfo.py compares its functions on PyTorch's samples",
    **dict.fromkeys(["svd_lowrank", "pca_lowrank"], "other numbers for the same seed"),
    **dict.fromkeys(
        [
            "use_deterministic_algorithms",
            "are_deterministic_algorithms_enabled",
            "set_float32_matmul_precision",
            "get_float32_matmul_precision",
        ],
        "a setting",
    ),
    **dict.fromkeys(["lstm", "gru", "rnn_tanh", "rnn_relu"], "of sequences; tests/test_nn_sequences.py compares it"),
    **dict.fromkeys(
        [
            "rand",
            "randn",
            "randint",
            "randperm",
            "rand_like",
            "randn_like",
            "normal",
            "bernoulli",
            "Generator",
            "manual_seed",
            "uniform_",
            "normal_",
            "rrelu",
            "rrelu_",
            "dropout",
            "dropout1d",
            "dropout2d",
            "dropout3d",
            "alpha_dropout",
            "feature_alpha_dropout",
            "feature_dropout",
        ],
        "other numbers for the same seed",
    ),
    **dict.fromkeys(
        [
            "multinomial",
            "poisson",
            "binomial",
            "randint_like",
            "bernoulli_",
            "exponential_",
            "geometric_",
            "log_normal_",
            "cauchy_",
            "random_",
            "gumbel_softmax",
            "seed",
            "initial_seed",
            "get_rng_state",
            "set_rng_state",
            "fractional_max_pool2d",
            "fractional_max_pool3d",
        ],
        "other numbers for the same seed",
    ),
    **dict.fromkeys(
        [
            "BoolTensor",
            "ByteTensor",
            "CharTensor",
            "IntTensor",
            "LongTensor",
            "ShortTensor",
            "Size",
            "accelerator",
            "backends",
            "cuda",
            "distributed",
            "default_generator",
            "device",
            "finfo",
            "get_default_device",
            "get_device",
            "iinfo",
            "is_cpu",
            "is_cuda",
            "is_pinned",
            "is_shared",
            "pin_memory",
            "set_default_device",
            "share_memory_",
            "type",
            "utils",
        ],
        "of devices, types and states; tests/test_devices.py compares it",
    ),
    **dict.fromkeys(
        [
            "cpu",
            "data_ptr",
            "element_size",
            "is_contiguous",
            "is_nonzero",
            "is_same_size",
            "is_signed",
            "is_tensor",
            "itemsize",
            "nbytes",
            "ndimension",
            "nelement",
            "storage_offset",
            "newaxis",
            "unravel_index",
        ],
        "returns no tensor; tests/test_facts.py compares it",
    ),
    **dict.fromkeys(
        [
            "TypedStorage",
            "UntypedStorage",
            "channels_last",
            "channels_last_3d",
            "contiguous_format",
            "is_meta",
            "is_mkldnn",
            "is_mps",
            "is_nested",
            "is_quantized",
            "is_set_to",
            "is_sparse",
            "is_sparse_csr",
            "is_storage",
            "is_xpu",
            "layout",
            "memory_format",
            "preserve_format",
            "set_",
            "set_default_tensor_type",
            "storage",
            "strided",
            "untyped_storage",
        ],
        "of memory, layouts and other devices; tests/test_storages.py compares it",
    ),
    **dict.fromkeys(
        [
            "squeeze_",
            "unsqueeze_",
            "t_",
            "transpose_",
            "swapaxes_",
            "swapdims_",
            "gcd",
            "lcm",
            "gcd_",
            "lcm_",
            "bitwise_left_shift",
            "bitwise_right_shift",
            "bitwise_left_shift_",
            "bitwise_right_shift_",
            "bitwise_and_",
            "bitwise_or_",
            "bitwise_xor_",
            "bitwise_not_",
        ],
        "not drawn yet; tests/test_facts.py compares it",
    ),
    **dict.fromkeys(
        [
            "eq_",
            "ne_",
            "lt_",
            "le_",
            "gt_",
            "ge_",
            "not_equal_",
            "less_",
            "less_equal_",
            "greater_",
            "greater_equal_",
            "logical_and_",
            "logical_or_",
            "logical_xor_",
            "logical_not_",
        ],
        "PyTorch's logic keeps the gradient of what is written over; tests/test_facts.py compares the values",
    ),
    **dict.fromkeys(
        [
            "stft",
            "istft",
            "hann_window",
            "hamming_window",
            "blackman_window",
            "bartlett_window",
            "kaiser_window",
            "multi_head_attention_forward",
            "adjoint",
            "asarray",
            "scalar_tensor",
        ],
        "not drawn yet; tests/test_signals.py, test_heads.py and test_opinfo.py compare it",
    ),
    **dict.fromkeys(["empty", "empty_like", "new_empty"], "no values to compare"),
    **dict.fromkeys(
        [
            *(f"{kind}chebyshev_polynomial_{one}" for kind in ("", "shifted_") for one in "tuvw"),
            "hermite_polynomial_h",
            "hermite_polynomial_he",
            "laguerre_polynomial_l",
            "legendre_polynomial_p",
            "airy_ai",
        ],
        "PyTorch lacks the derivatives; what the table generates compares them with SciPy's",
    ),
    **dict.fromkeys(
        [
            "DoubleTensor",
            "FloatTensor",
            "Tensor",
            "from_numpy",
            "output_nr",
            "random",
            "numpy",
            "data",
            "tolist",
            "item",
            "dim",
            "ndim",
            "numel",
            "size",
            "shape",
            "stride",
            "dtype",
            "is_complex",
            "is_conj",
            "is_neg",
            "is_floating_point",
            "is_leaf",
            "requires_grad",
            "requires_grad_",
            "grad",
            "grad_fn",
            "retain_grad",
            "retains_grad",
            "register_hook",
            "register_post_accumulate_grad_hook",
            "backward",
            "detach_",
        ],
        "used by what runs programs, or tested where it stands",
    ),
    **dict.fromkeys(
        [
            "autograd",
            "linalg",
            "special",
            "nn",
            "optim",
            "func",
            "vmap",
            "load",
            "save",
            "inference_mode",
            "is_inference",
            "is_inference_mode_enabled",
            "is_anomaly_enabled",
            "is_anomaly_check_nan_enabled",
            "set_anomaly_enabled",
            "enable_grad",
            "no_grad",
            "set_grad_enabled",
            "is_grad_enabled",
            "get_default_dtype",
            "set_default_dtype",
            "get_num_threads",
            "set_flush_denormal",
            "set_num_threads",
            "set_printoptions",
        ],
        "a module, a mode, a transform or a setting",
    ),
    **dict.fromkeys(
        [
            "complex128",
            "complex64",
            "float32",
            "float64",
            "int16",
            "int32",
            "int64",
            "int8",
            "uint8",
            "cdouble",
            "cfloat",
            "double",
            "long",
            "e",
            "inf",
            "nan",
            "pi",
        ],
        "a dtype or a constant",
    ),
}


#: The kinds of names that stand nowhere above, by the family of their op.
FAMILIES: dict[str, Generator] = {"unary": unary, "binary": binary, "reduction": reduction, "along": along}


def calls() -> list[tuple[Generator, str]]:
    """Return each kind with each of its names."""
    listed = [(kind, name) for kind, names in KINDS.items() for name in names.split()]
    known = {name for _, name in listed} | set(NOT_CALLED)
    load_all()
    for one in registry:
        kind = FAMILIES.get(one.function.op.family) if hasattr(one.function, "op") else None
        if kind is not None:
            kind = kind if TOP in one.names.namespaces else functional
            listed += [(kind, name) for name in one.all_names() if name not in known]
        if one.names.inplace:
            listed += [(written, f"{name}_") for name in one.all_names() if f"{name}_" not in known]
    return listed


def public(torch: Any) -> set[str]:
    """Return the public names that are in PyTorch too: of the module, of its namespaces and of tensors."""
    functional_names = {name for name in dir(tg.nn.functional) if callable(getattr(tg.nn.functional, name))}
    found = {name for name in tg.__all__ if hasattr(torch, name)}
    for space in ("linalg", "special", "fft"):
        own, other = getattr(tg, space), getattr(torch, space)
        found |= {name for name in dir(own) if hasattr(other, name) and callable(getattr(own, name)) and name.islower()}
    found |= {name for name in functional_names if hasattr(torch.nn.functional, name) and name.islower()}
    found |= {name for name in dir(tg.Tensor) if hasattr(torch.Tensor, name)}
    return {name for name in found if not name.startswith("_") and name != "annotations"}
