"""More ways to call what is public: options, and forms of arguments, that the generators of `calls` leave out."""

from __future__ import annotations

import math

from tests.fuzz.calls import NUMBERS, Draw, Generator, Value, floating, real, with_dims


def _small(value: Value) -> bool:
    return math.prod(value.shape) < 1000


def _finite(x: Value) -> str:
    """Return the text of a value without nan and large numbers."""
    return f"m.where({x.name} == {x.name}, {x.name}, 0.5).clamp(-2, 2)"


# Operators -----------------------------------------------------------------------------------------------------------


def sign(draw: Draw, name: str) -> str | None:
    x = draw.one((lambda value: value.kind in "bi") if name == "~" else lambda value: value.kind != "b")
    if x is None:
        return None
    return f"abs({x.name})" if name == "abs" else f"{name}{x.name}"


def bitwise(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: value.kind in "bi")
    if x is None:
        return None
    y = draw.one(lambda value: value.kind in "bi" and draw.beside(x)(value))
    other = y.name if y is not None and draw.rng.random() < 0.8 else draw.rng.choice(["True", "1"])
    return f"{x.name} {name} {other}"


def at(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: floating(value) and with_dims(value) and _small(value))
    if x is None or not x.shape or math.prod(x.shape) > 1000:
        return None
    inner = x.shape[-1]
    y = draw.one(lambda value: value.dtype == x.dtype and _small(value) and inner in value.shape[-2:][:1])
    return f"{x.name} {name} {x.name}.mT" if y is None else f"{x.name} {name} {y.name}"


def numbers_first(draw: Draw, name: str) -> str | None:
    x = draw.one()
    number = draw.rng.choice(NUMBERS)
    return None if x is None else f"m.pow({number!r}, {x.name})"


def iterated(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: with_dims(value) and 0 < value.shape[0] < 10)
    if x is None or not x.shape or not 0 < x.shape[0] < 10:
        return None
    return {"sum": f"sum({x.name})", "list": f"m.stack([*{x.name}], -1)", "len": f"len({x.name}) * {x.name}"}[name]


# Reductions ----------------------------------------------------------------------------------------------------------


def to_dtype(draw: Draw, name: str) -> str | None:
    x = draw.one(real if "softmax" in name else lambda value: True)
    if x is None or math.prod(x.shape) > math.isqrt(draw.most):
        return None
    dtypes = ["complex64", "complex128"] if x.kind == "c" else ["float32", "float64"]
    dtype = f"dtype=m.{draw.rng.choice(dtypes)}"
    if name in ("cumsum", "softmax", "log_softmax") or draw.rng.random() < 0.5:
        return draw.call(name, x, str(draw.dim(x)), dtype)
    return draw.call(name, x, dtype)


def axes(draw: Draw, name: str) -> str | None:
    """With NumPy's names of arguments, lists of dimensions, or arguments by position."""
    x = draw.one(lambda value: value.kind in "fi" and _small(value))
    if x is None or (name == "prod" and math.prod(x.shape) > 1000):
        return None
    dim, several = draw.dim(x), name in ("sum", "mean", "amax", "amin")
    ways = [f"axis={dim}", f"{dim}", f"{dim}, True", f"{dim}, keepdim=True"]
    ways += [f"axis={dim}, keepdims=True"] if name not in ("argmax", "argmin") else []
    ways += [f"[{dim}]", f"({dim},)", "()"] if several else []
    ways += ["None, True", "dim=None"] if name in ("sum", "mean") else []
    return draw.call(name, x, draw.rng.choice(ways))


def spread(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: floating(value) and math.prod(value.shape) > 1)
    if x is None:
        return None
    dims = [str(draw.dim(x)), "None", repr(tuple(range(len(x.shape))))]
    options = [f"dim={draw.rng.choice(dims)}", f"keepdim={draw.rng.random() < 0.5}"]
    return draw.call(name, x, *options, f"correction={draw.rng.choice([0, 1, 2, 0.5])}")


def extreme(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: value.kind in "fi")
    if x is None:
        return None
    if draw.rng.random() < 0.3:
        y = draw.one(draw.beside(x))
        return None if y is None else f"{x.name}.{name}(other={y.name})"
    ways = [f"{draw.dim(x)}, True", f"{draw.dim(x)}, keepdim=True"]
    return draw.call(name, x, draw.rng.choice(ways)) + draw.rng.choice([".values", "[0]", ".indices", "[1]"])


# Shapes --------------------------------------------------------------------------------------------------------------


def moved(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: len(value.shape) >= 2)
    if x is None or len(x.shape) < 2:
        return None
    ndim = len(x.shape)
    some = draw.rng.sample(range(-ndim, 0), 2)
    others = draw.rng.sample(range(ndim), 2)
    order = draw.rng.sample(range(ndim), ndim)
    texts = {
        "movedim": f"{tuple(some)}, {tuple(others)}",
        "permute": draw.rng.choice([f"{order}", f"dims={tuple(order)}"]),
        "flip": draw.rng.choice([f"{some}", f"dims={tuple(some)}", "[]"]),
        "flatten": f"{min(others)}, {max(others)}",
        "diagonal": f"{draw.rng.choice([0, 1, -1])}, {some[0]}, {some[1]}",
        "transpose": f"dim0={some[0]}, dim1={others[0]}",
    }
    return draw.call(name, x, texts[name])


def method_of_sizes(draw: Draw, name: str) -> str | None:
    """With the sizes, or dimensions, as so many arguments."""
    x = draw.one(lambda value: with_dims(value) and _small(value))
    if x is None or not x.shape:
        return None
    ndim, size = len(x.shape), math.prod(x.shape)
    order = draw.rng.sample(range(ndim), ndim)
    kept = [-1 if draw.rng.random() < 0.5 else length for length in x.shape]
    texts = {
        "reshape": draw.rng.choice([f"{size}", "-1, 1", f"1, {size}, 1"]),
        "view": draw.rng.choice([f"{size}", "1, -1"]),
        "permute": str(order)[1:-1],
        "expand": f"2, {str(kept)[1:-1]}" if draw.rng.random() < 0.5 else str(kept)[1:-1],
        "sum_to_size": str([1] * ndim)[1:-1],
        "squeeze": draw.rng.choice([f"({order[0]},)", f"dim={order[0] - ndim}", f"{tuple(order)}"]),
        "unsqueeze": f"dim={order[0]}",
    }
    return f"{x.name}.{name}({texts[name]})"


def joined(draw: Draw, name: str) -> str | None:
    """Of several dtypes, along any dimension."""
    x = draw.one(lambda value: with_dims(value) and _small(value))
    if x is None or not x.shape or 3 * math.prod(x.shape) > draw.most:
        return None
    others = [draw.one(lambda value: value.shape == x.shape) for _ in range(draw.rng.randrange(3))]
    names = [x.name, *(other.name for other in others if other is not None and other.shape == x.shape)]
    draw.rng.shuffle(names)
    listed = f"[{', '.join(names)}]" if draw.rng.random() < 0.7 else f"({', '.join(names)},)"
    return f"m.{name}({listed}, {draw.rng.choice(['dim=', 'axis=', ''])}{draw.dim(x, name == 'stack')})"


# Choosing ------------------------------------------------------------------------------------------------------------


def chosen(draw: Draw, name: str) -> str | None:
    x = draw.one()
    if x is None:
        return None
    number, other = (repr(draw.rng.choice(NUMBERS)) for _ in range(2))
    y = draw.one(draw.beside(x))
    condition = f"{x.name} != 0" if y is None else f"{y.name} != 0"
    return (
        f"m.where({condition}, {draw.rng.choice([f'{number}, {x.name}', f'{x.name}, {number}', f'{number}, {other}'])})"
    )


def bounded(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: value.kind != "c")
    if x is None:
        return None
    y = draw.one(lambda value: value.kind != "c" and draw.beside(x)(value))
    bound = repr(draw.rng.choice(NUMBERS)) if y is None or draw.rng.random() < 0.5 else y.name
    return draw.call(name, x, f"{draw.rng.choice(['min', 'max'])}={bound}")


def indexed(draw: Draw, name: str) -> str | None:
    """With masks, index tensors of several dimensions, and what is computed."""
    x = draw.one(lambda value: with_dims(value) and _small(value) and value.shape[0] > 0)
    if x is None or not x.shape or not x.shape[0]:
        return None
    length = x.shape[0]
    places = [[draw.rng.randrange(-length, length) for _ in range(2)] for _ in range(2)]
    mask = draw.one(
        lambda value: value.kind == "b" and len(value.shape) > 0 and value.shape == x.shape[: len(value.shape)]
    )
    ways = [f"m.tensor({places})", f"m.arange({length}) < {length} / 2", f"{x.name} == {x.name}", "..., None, 0"]
    ways += ["True", "..., False", f"None, {places[0]}", f"True, {places[0]}"]
    ways += [f"{mask.name}", f"~{mask.name}"] if mask is not None else []
    if len(x.shape) > 1 and x.shape[1]:
        columns = [draw.rng.randrange(-x.shape[1], x.shape[1]) for _ in range(2)]
        ways += [
            f"m.tensor({places}), m.tensor({columns})",
            f":, m.tensor({columns})",
            f"[{columns}[0] - {columns}[0]], {columns}",
        ]
        ways += [f"m.arange({length}) > 0, {draw.rng.choice(['0', ':1', '::2', 'None'])}"]
        ways += [f":1, {draw.rng.choice(['True', 'False'])}, {columns[:1]}", f"True, {places[0]}, :1"]
    index = draw.rng.choice(ways)
    if name == "getitem":
        return f"{x.name}[{index}]"
    y = draw.one(lambda value: value.dtype == x.dtype and value.shape in ((), (1,)))
    value = repr(draw.rng.choice(NUMBERS)) if y is None or draw.rng.random() < 0.5 else y.name
    return f"{x.name}.__setitem__(({index},), {value})"


# Networks -------------------------------------------------------------------------------------------------------------


def images(draw: Draw, name: str) -> str | None:
    """Of several images, channels and groups; with a bias; of strides that are zero."""
    x = draw.one(lambda value: floating(value) and len(value.shape) == 2 and 0 < math.prod(value.shape) < 1000)
    if x is None or x.kind not in "fc" or len(x.shape) != 2 or not 0 < math.prod(x.shape) < 1000:
        return None
    y = draw.one(lambda value: value.dtype == x.dtype and len(value.shape) == 2 and 0 < math.prod(value.shape) < 20)
    if y is None or len(y.shape) != 2 or y.dtype != x.dtype:
        return None
    groups = draw.rng.choice([1, 2])
    number = draw.rng.choice(["", "2, ", "3, "])
    image = f"{x.name}.expand({number}2, {str(x.shape)[1:-1]})"
    kernels = f"{y.name}.expand(4, {2 // groups}, {str(y.shape)[1:-1]})"
    scaled = f"({kernels} * m.arange(1, 5).reshape(4, 1, 1, 1))"
    bias = draw.rng.choice(
        ["", f", {y.name}.reshape(-1)[:1].expand(4)", f", bias={x.name}[0, 0] * m.ones(4).type_as({x.name})"]
    )
    options = draw.rng.choice(["", ", stride=2", ", padding=1", ", padding=(0, 1), dilation=2", ", padding='same'"])
    return f"F.conv2d({image}, {scaled}{bias}{options}, groups={groups})"


def affine(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: floating(value) and with_dims(value) and value.shape[-1] < 50 and _small(value))
    if x is None or not x.shape or not floating(x) or math.prod(x.shape) > 1000:
        return None
    weight = draw.one(
        lambda value: value.dtype == x.dtype and value.shape[-1:] == x.shape[-1:] and len(value.shape) == 2
    )
    if weight is None or len(weight.shape) != 2 or weight.dtype != x.dtype:
        return f"F.linear({x.name}, {x.name}.reshape(-1)[: {x.shape[-1]}])"
    bias = draw.rng.choice([f"{weight.name}[:, 0]" if weight.shape[1] else "None", f"bias={weight.name}.sum(1)"])
    return f"F.linear({x.name}, {weight.name}, {bias})"


def sums_of_products(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: floating(value) and len(value.shape) >= 2 and math.prod(value.shape) < 100)
    if x is None or len(x.shape) < 2 or not floating(x) or math.prod(x.shape) > 100:
        return None
    forms = [
        "'...ij->...ji', {0}",
        "'...i,...i', {0}, {0}",
        "'...ij,...kj->...ik', {0}, {0}",
        "'...i,...i,...i->i...', {0}, {0}, {0}",
    ]
    if len(x.shape) == 2:
        forms += ["'ij', {0}", "'ba', {0}", "'ij,kj', {0}, {0}", "'ij,ij,ik->kj', {0}, {0}, {0}", "'ij,kl->', {0}, {0}"]
        forms += ["'ij->j', [{0}]", "' i j , k j -> i k ', {0}, {0}"]
        if x.shape[0] == x.shape[1]:
            forms += ["'ii', {0}", "'ii->i', {0}", "'ij,ji->', {0}, {0}", "'ii,ij->j', {0}, {0}"]
    return f"m.einsum({draw.rng.choice(forms).format(x.name)})"


def product_and_sum(draw: Draw, name: str) -> str | None:
    x = draw.one(lambda value: floating(value) and len(value.shape) == 2 and math.prod(value.shape) < 1000)
    if x is None or len(x.shape) != 2 or not floating(x) or math.prod(x.shape) > 1000:
        return None
    options = draw.rng.choice(["", ", beta=0.5, alpha=2", ", beta=-1", ", alpha=0"])
    return f"m.addmm({x.name} @ {x.name}.mT, {x.name}, {x.name}.mT{options})"


# Losses --------------------------------------------------------------------------------------------------------------


def losses(draw: Draw, name: str) -> str | None:
    """With weights, classes that are ignored, probabilities, further dimensions, or one item."""
    x = draw.one(lambda value: real(value) and 1 <= len(value.shape) <= 4 and 0 < math.prod(value.shape) < 100)
    if x is None or x.kind != "f" or not 1 <= len(x.shape) <= 4 or not 0 < math.prod(x.shape) < 100:
        return None
    how = f", reduction='{draw.rng.choice(['mean', 'sum', 'none'])}'"
    if name == "mse_loss":
        y = draw.one(lambda value: real(value) and draw.beside(x)(value))
        return None if y is None else f"F.mse_loss({x.name}, {y.name}{how})"
    where = 1 if len(x.shape) > 1 else 0
    classes, shape = x.shape[where], (*x.shape[:where], *x.shape[where + 1 :])
    numbers = [draw.rng.randrange(classes) for _ in range(math.prod(shape))]
    target = f"m.tensor({numbers}, dtype=m.int64).reshape({shape})"
    if name == "cross_entropy" and draw.rng.random() < 0.3:
        target = f"F.softmax({x.name}, {where}){draw.rng.choice(['', '.detach()'])}"
    weight = draw.rng.choice(["", f", weight=m.linspace(0.5, 2, {classes}).type_as({x.name})"])
    ignored = draw.rng.choice(["", ", ignore_index=0"]) if "softmax" not in target else ""
    more = draw.rng.choice(["", ", label_smoothing=0.2"]) if name == "cross_entropy" else ""
    return f"F.{name}({x.name}, {target}{weight}{ignored}{how}{more})"


# New tensors ---------------------------------------------------------------------------------------------------------


def created(draw: Draw, name: str) -> str | None:
    dtype = f"dtype=m.{draw.rng.choice(['float64', 'float32', 'complex64', 'int64', 'uint8'])}"
    flag = draw.rng.choice(["", ", requires_grad=True"]) if "float" in dtype or "complex" in dtype else ""
    ranges = [
        "m.arange(4)",
        "m.arange(2.5)",
        "m.arange(5, 1, -1.5)",
        f"m.arange(0, 2, {dtype.replace('complex', 'float')}{flag})",
    ]
    texts = {
        "zeros": f"m.zeros(2, 3, {dtype}{flag})", "ones": f"m.ones([2, 3], {dtype}{flag})",
        "full": f"m.full((2, 3), 1, {dtype}{flag})", "eye": f"m.eye(3, {dtype}{flag})",
        "arange": draw.rng.choice(ranges), "linspace": f"m.linspace(0, 3, 4, {dtype}{flag})",
        "logspace": "m.logspace(0, 2, 3, base=2)",
        "tensor": f"m.tensor([[0, 1], [1, 1]], {dtype}{flag})", "as_tensor": f"m.as_tensor([0, 1], {dtype})",
    }  # fmt: skip
    return texts[name]


def created_like(draw: Draw, name: str) -> str | None:
    x = draw.one()
    if x is None:
        return None
    flag = draw.rng.choice(["", ", requires_grad=True"])
    dtype = f"dtype=m.{draw.rng.choice(['float64', 'float32', 'complex128'])}{flag}"
    if name.startswith("new"):
        first = {"new_full": "(2, 3), 2", "new_tensor": "[1, 0]"}.get(name, draw.rng.choice(["2, 3", "(3,)", "()"]))
        return f"{x.name}.{name}({first}, {dtype})"
    return f"m.{name}({x.name}, {'2, ' if name == 'full_like' else ''}{dtype})"


def converted(draw: Draw, name: str) -> str | None:
    """To integers, of numbers that they hold; to the dtype of another."""
    x = draw.one(real)
    if x is None or x.kind != "f":
        return None
    if name == "to":
        y = draw.one(lambda value: value.kind in "fc")
        return None if y is None else f"{x.name}.to({y.name}.dtype)"
    return f"{_finite(x)}{'.abs()' if name == 'byte' else ''}.{name}()"


# Options -------------------------------------------------------------------------------------------------------------


def with_factor(draw: Draw, name: str) -> str | None:
    x = draw.one()
    y = x and draw.one(draw.beside(x))
    if x is None:
        return None
    other = y.name if y is not None and draw.rng.random() < 0.7 else repr(draw.rng.choice(NUMBERS))
    return draw.call(name, x, other, f"alpha={draw.rng.choice([2, 0, -1, 0.5])}")


def rounded(draw: Draw, name: str) -> str | None:
    x = draw.one(real)
    if x is None:
        return None
    if name == "round":
        return draw.call(name, x, f"decimals={draw.rng.choice([0, 1, 2, -1])}")
    if name == "nan_to_num":
        return draw.call(
            name, x, *draw.rng.choice([["nan=2.0"], ["0.5", "3.0"], ["posinf=1.0, neginf=-1.0"], ["neginf=0.0"]])
        )
    y = draw.one(lambda value: value.kind in "fi" and draw.beside(x)(value))
    other = y.name if y is not None and draw.rng.random() < 0.6 else repr(draw.rng.choice(NUMBERS))
    return draw.call(name, x, other, f"rounding_mode={draw.rng.choice(['trunc', 'floor', None])!r}")


def remainders(draw: Draw, name: str) -> str | None:
    """Of integers, too, with divisors that are none of them zero."""
    x = draw.one(lambda value: value.kind in "fi")
    if x is None:
        return None
    y = draw.one(lambda value: value.kind == "f" and draw.beside(x)(value))
    other = y.name if y is not None and x.kind == "f" and draw.rng.random() < 0.6 else repr(draw.rng.choice((2, -3, 1)))
    if name in ("%", "//"):
        return f"{x.name} {name} {other}" if draw.rng.random() < 0.7 or x.kind == "i" else f"{other} {name} {x.name}"
    return f"{x.name}.__i{name}__({other})"


# In place ------------------------------------------------------------------------------------------------------------


def written(draw: Draw, name: str) -> str | None:
    x = draw.one(floating)
    if x is None:
        return None
    y = draw.one(draw.beside(x))
    other = repr(draw.rng.choice(NUMBERS)) if y is None or draw.rng.random() < 0.3 else y.name
    if name == "clamp_":
        low = draw.rng.choice(["-1, 1", "min=0.5", "max=0.5", f"max={other}", f"min={other}"])
        return f"{x.name}.clamp_({low})"
    if name in ("add_", "sub_"):
        return f"{x.name}.{name}({other}, alpha={draw.rng.choice([2, 0.5, -1, 0])})"
    return f"{x.name}.{name}({y.name if y is not None and not y.shape else other})"


#: Each kind with the names that it serves.
KINDS: dict[Generator, str] = {
    sign: "- + ~ abs",
    bitwise: "& | ^",
    at: "@",
    numbers_first: "pow",
    iterated: "sum list len",
    to_dtype: "sum mean prod cumsum softmax log_softmax",
    axes: "sum mean prod any all amax amin argmax argmin",
    spread: "var",
    extreme: "max min",
    moved: "movedim permute flip flatten diagonal transpose",
    method_of_sizes: "reshape view permute expand sum_to_size squeeze unsqueeze",
    joined: "cat stack concat",
    chosen: "where",
    bounded: "clamp clip",
    indexed: "getitem setitem",
    images: "conv2d",
    affine: "linear",
    sums_of_products: "einsum",
    product_and_sum: "addmm",
    losses: "mse_loss nll_loss cross_entropy",
    created: "zeros ones full eye arange linspace logspace tensor as_tensor",
    created_like: "zeros_like ones_like full_like new_zeros new_ones new_full new_tensor",
    converted: "to long int short char byte bool",
    written: "clamp_ add_ sub_ fill_",
    with_factor: "add sub subtract rsub",
    rounded: "round nan_to_num div divide",
    remainders: "% // mod floordiv",
}


def calls() -> list[tuple[Generator, str]]:
    """Return each kind with each of its names."""
    return [(kind, name) for kind, names in KINDS.items() for name in names.split()]
