"""How functions of shapes are called: the arguments behind the tensor, and what is taken of the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from tapegrad.ops.copies import VIEWS

if TYPE_CHECKING:
    from tests.fuzz.calls import Draw, Value

Arguments = Callable[["Draw", "Value"], list[str]]


def _dim(draw: Draw, x: Value) -> str:
    return str(draw.dim(x))


def _steps(draw: Draw, x: Value) -> list[str]:
    return [str(draw.rng.randrange(-3, 4)), *draw.rng.choice([[], [_dim(draw, x)]])]


def _matrix_dims(draw: Draw, x: Value) -> str:
    return repr(tuple(draw.rng.sample(range(len(x.shape)), 2))) if len(x.shape) > 1 else "(0, 1)"


def _length(draw: Draw, x: Value, dim: int) -> int:
    return x.shape[dim] if -len(x.shape) <= dim < len(x.shape) else 1


def _split(draw: Draw, x: Value) -> list[str]:
    return [str(draw.rng.randrange(1, 4)), _dim(draw, x)]


def _sizes(draw: Draw, x: Value) -> list[str]:
    dim = draw.dim(x)
    first = draw.rng.randrange(_length(draw, x, dim) + 1)
    return [repr([first, _length(draw, x, dim) - first]), str(dim)]


def _narrow(draw: Draw, x: Value) -> list[str]:
    dim = draw.dim(x)
    length = _length(draw, x, dim)
    start = draw.rng.randrange(length + 1)
    return [str(dim), str(start), str(draw.rng.randrange(length - start + 1))]


def _select(draw: Draw, x: Value) -> list[str]:
    dim = draw.dim(x)
    return [str(dim), str(draw.rng.randrange(-_length(draw, x, dim), max(_length(draw, x, dim), 1)))]


def _unfold(draw: Draw, x: Value) -> list[str]:
    dim = draw.dim(x)
    return [str(dim), str(min(_length(draw, x, dim), draw.rng.randrange(1, 4))), str(draw.rng.randrange(1, 3))]


def _pads(draw: Draw, x: Value) -> list[str]:
    count = draw.rng.randrange(min(len(x.shape), 2) + 1)
    return [repr([draw.rng.randrange(-1, 3) for _ in range(2 * count)]), *draw.rng.choice([[], ["value=1.5"]])]


def _unflatten(draw: Draw, x: Value) -> list[str]:
    return [_dim(draw, x), draw.rng.choice(["(-1, 1)", "(1, -1)", "(-1, 2)", "(3, -1)"])]


def _offset(draw: Draw, x: Value) -> list[str]:
    return draw.rng.choice([[], [str(draw.rng.randrange(-2, 3))]])


def _nothing(draw: Draw, x: Value) -> list[str]:
    return []


#: The arguments of each, and whether the result is a tuple or a view of which PyTorch lets nothing be written to.
SHAPES: dict[str, tuple[Arguments, str]] = {
    **dict.fromkeys(("split", "unsafe_split", "chunk", "unsafe_chunk"), (_split, "[0].clone()")),
    "tensor_split": (_split, "[-1].clone()"),
    "split_with_sizes": (_sizes, "[1].clone()"),
    "hsplit": (lambda draw, x: ["[1, 2]"], "[1].clone()"),
    "vsplit": (lambda draw, x: ["[1]"], "[0].clone()"),
    "dsplit": (lambda draw, x: ["[1]"], "[1].clone()"),
    "unbind": (lambda draw, x: [_dim(draw, x)], "[-1].clone()"),
    "narrow": (_narrow, ""),
    "select": (_select, ""),
    "unfold": (_unfold, ".clone()"),
    "unflatten": (_unflatten, ""),
    "roll": (_steps, ""),
    "rot90": (lambda draw, x: [str(draw.rng.randrange(-2, 5)), _matrix_dims(draw, x)], ""),
    **dict.fromkeys(("fliplr", "flipud", "atleast_1d", "atleast_2d", "atleast_3d"), (_nothing, "")),
    **dict.fromkeys(("conj_physical", "resolve_conj", "resolve_neg"), (_nothing, ".clone()")),
    "repeat": (lambda draw, x: [repr([1, *[draw.rng.randrange(1, 3) for _ in x.shape]])], ""),
    "tile": (lambda draw, x: [repr((draw.rng.randrange(1, 3), draw.rng.randrange(1, 3)))], ""),
    "repeat_interleave": (lambda draw, x: ["2", *draw.rng.choice([[], [_dim(draw, x)]])], ""),
    **dict.fromkeys(("tril", "triu"), (_offset, "")),
    **dict.fromkeys(("diag", "diagflat", "diag_embed"), (_offset, "")),
    "diff": (lambda draw, x: [str(draw.rng.randrange(3)), _dim(draw, x)], ""),
    **dict.fromkeys(("trapezoid", "trapz", "cumulative_trapezoid"), (lambda draw, x: [f"dim={_dim(draw, x)}"], "")),
    "gradient": (lambda draw, x: draw.rng.choice([[], ["spacing=0.5"], [f"dim={_dim(draw, x)}"]]), "[0]"),
    "constant_pad_nd": (_pads, ""),
    "angle": (_nothing, ""),
    "combinations": (lambda draw, x: draw.rng.choice([[], ["r=3"], ["r=2, with_replacement=True"]]), ""),
}  # fmt: skip
METHODS_ONLY = ("repeat", "unfold")


def of_shape(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: math.prod(value.shape) * 16 <= draw.most)
    if x is None or math.prod(x.shape) * 16 > draw.most:
        return None
    if name == "angle" and x.kind == "c":  # PyTorch's second derivative is nan at the origin
        return None
    if name == "diagflat" and math.prod(x.shape) ** 2 > draw.most:
        return None
    if name in ("diag", "diag_embed") and math.prod(x.shape) * (x.shape or (1,))[-1] > draw.most / 4:
        return None
    if name == "combinations" and math.prod(x.shape) ** 3 > draw.most:
        return None
    arguments, taken = SHAPES[name]
    rest = arguments(draw, x)
    return (f"{x.name}.{name}({', '.join(rest)})" if name in METHODS_ONLY else draw.call(name, x, *rest)) + taken


def several(draw: Draw, name: str) -> str | None:
    """Of two tensors that fit."""
    x = draw.one(lambda value: len(value.shape) <= (1 if name in ("meshgrid", "cartesian_prod") else 2))
    if x is None or math.prod(x.shape) ** 2 > draw.most:
        return None
    both = f"{x.name}, {x.name} * 2"
    if name == "meshgrid":
        return f"m.meshgrid({both}, indexing='{draw.rng.choice(['ij', 'xy'])}')[1].clone()"
    if name == "broadcast_tensors":
        return f"m.broadcast_tensors({both})[0].clone()"
    return f"m.{name}({both})" if name in ("block_diag", "cartesian_prod") else f"m.{name}([{both}])"


def replaced(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: len(value.shape) >= 2 and value.kind == "f")
    if x is None or len(x.shape) < 2 or x.kind != "f":
        return None
    if name == "select_scatter":
        dim, index = _select(draw, x)
        return draw.call(name, x, f"{x.name}.select({dim}, {index}) * 2", dim, index)
    if name == "slice_scatter":
        return draw.call(name, x, f"{x.name}[::2] * 2", "0", "None", "None", "2")
    return draw.call(name, x, f"{x.name}.diagonal() * 2")


def of_complex(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: value.kind == ("c" if name == "view_as_real" else "f"))
    if x is None or 0 in x.shape:
        return None
    if name == "view_as_real":
        return f"m.view_as_real({x.name}).clone()"
    if name == "view_as_complex":
        return f"m.view_as_complex(m.stack([{x.name}, {x.name} * 2], -1)).clone()"
    # PyTorch's slopes of polar are those of absolute values that are not negative.
    return f"m.{name}({x.name}.abs(), {x.name} * 2)"


def image(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: 0 < math.prod(value.shape) < 200)
    if x is None or not 0 < math.prod(x.shape) < 200:
        return None
    if name == "pad":
        return f"F.pad({x.name}, {', '.join(_pads(draw, x))})"
    if name == "channel_shuffle":
        return f"F.channel_shuffle(m.stack([{x.name}.reshape(1, -1)] * 4, 1), 2)"
    size = "(4, 1, -1)" if name == "pixel_shuffle" else "(1, 2, -1)"
    return f"F.{name}(m.cat([{x.name}.reshape(-1)] * 4).reshape{size}, 2)"


KINDS = {
    of_shape: " ".join(SHAPES),
    several: "meshgrid broadcast_tensors block_diag cartesian_prod hstack vstack row_stack dstack column_stack",
    replaced: "select_scatter slice_scatter diagonal_scatter",
    of_complex: "complex polar view_as_real view_as_complex",
    image: "pad pixel_shuffle pixel_unshuffle channel_shuffle",
}
NOT_CALLED = {
    "unsafe_split_with_sizes": "as split_with_sizes",
    **dict.fromkeys(
        ("as_strided", "as_strided_scatter"), "PyTorch's reads memory, and has gradients where was replaced"
    ),
    **dict.fromkeys(("tril_indices", "triu_indices", "one_hot"), "no gradient: tested where they stand"),
    "fft": "a module",
    **dict.fromkeys(["alias_copy", *(f"{one.__name__}_copy" for one in VIEWS)], "functions that are called, in copies"),
}
