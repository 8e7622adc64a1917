"""How functions that choose elements are called: by indices, by masks, by rank; see `tests/fuzz/calls.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def _small(draw: Any, kinds: str = "f", least: int = 1) -> Any:
    """Return a value with dimensions and few elements, at least one; None if there is none."""
    x = draw.one(lambda value: value.kind in kinds and len(value.shape) >= least and 0 < math.prod(value.shape) < 100)
    fits = x is not None and x.kind in kinds and len(x.shape) >= least and 0 < math.prod(x.shape) < 100
    return x if fits else None


def _indices(draw: Any, shape: tuple[int, ...], low: int, high: int, distinct: bool = False) -> str:
    """Return the text of a tensor of indices; distinct ones are so along each dimension."""
    count = math.prod(shape)
    if distinct:
        numbers = np.resize(draw.rng.sample(range(low, high), high - low), count)
    else:
        numbers = np.array([draw.rng.randrange(low, high) for _ in range(count)], np.int64)
    return f"m.tensor({numbers.astype(int).reshape(shape).tolist()}, dtype=m.int64)"


def _written(draw: Any, x: Any, name: str, *rest: str) -> str:
    """Return a call of a function, or of the method that writes."""
    if name.endswith("_"):
        return f"{x.name}.{name}({', '.join(rest)})"
    return str(draw.call(name, x, *rest))


def picked(draw: Any, name: str) -> str | None:
    x = _small(draw, "fci")
    if x is None:
        return None
    dim = draw.rng.randrange(len(x.shape))
    shape = list(x.shape)
    shape[dim] = draw.rng.randrange(1, 4)
    return str(draw.call(name, x, *_in_order(name, str(dim), _indices(draw, tuple(shape), 0, x.shape[dim]))))


def _in_order(name: str, dim: str, index: str) -> tuple[str, str]:
    return (index, dim) if name == "take_along_dim" else (dim, index)


def scattered(draw: Any, name: str) -> str | None:
    x = _small(draw)
    if x is None:
        return None
    dim = draw.rng.randrange(len(x.shape))
    plain = name.rstrip("_")
    # To which of several PyTorch writes last is not said.
    index = _indices(draw, x.shape, 0, x.shape[dim])
    if plain == "scatter":
        places = np.argsort(np.random.default_rng(draw.rng.randrange(99)).random(x.shape), axis=dim)
        index = f"m.tensor({places.tolist()}, dtype=m.int64)"
    rest = [str(dim), index, f"{x.name}.detach() * 0.5" if draw.rng.random() < 0.3 else f"{x.name} * 0.5"]
    if plain == "scatter_reduce":
        rest.append(repr(draw.rng.choice(["sum", "mean", "amax", "amin"])))
        rest.append(f"include_self={draw.rng.random() < 0.5}")
    return _written(draw, x, name, *rest)


def slices(draw: Any, name: str) -> str | None:
    x = _small(draw)
    if x is None:
        return None
    dim, plain = draw.rng.randrange(len(x.shape)), name.rstrip("_")
    length = x.shape[dim]
    index = _indices(draw, (length,), 0, length, distinct=plain == "index_copy")
    rest = [str(dim), index]
    if plain == "index_fill":
        rest.append("2.5")
    elif plain != "index_select":
        rest.append(f"{x.name} * 0.5")
    if plain == "index_reduce":
        rest.append(repr(draw.rng.choice(["mean", "amax", "amin"])))
    if plain == "index_add" and draw.rng.random() < 0.3:
        rest.append("alpha=2")
    return _written(draw, x, name, *rest)


def flat(draw: Any, name: str) -> str | None:
    x = _small(draw)
    if x is None:
        return None
    size = math.prod(x.shape)
    if name == "take":
        return str(draw.call(name, x, _indices(draw, (2,), -size, size)))
    if name.startswith("index_put"):
        index = f"({_indices(draw, (2,), 0, x.shape[0])},)"
        return _written(draw, x, name, index, f"{x.name}[:1] * 0.5", "True")
    return _written(draw, x, name, _indices(draw, (size,), 0, size, True), f"{x.name} * 0.5")


def masked(draw: Any, name: str) -> str | None:
    x = _small(draw, "fc", 0)
    if x is None:
        return None
    mask = f"({x.name}.real > 0.5)" if x.kind == "c" else f"({x.name} > 0.5)"
    rest = {"masked_fill": ["-1.5"], "masked_scatter": [f"{x.name} * 0.5"]}.get(name.rstrip("_"), [])
    return _written(draw, x, name, mask, *rest)


def _part(draw: Any) -> str:
    return str(draw.rng.choice([".values", "[0]", ".indices"]))


def ranked(draw: Any, name: str) -> str | None:
    """Of equal elements PyTorch returns any."""
    x = _small(draw)
    if x is None:
        return None
    dim = draw.dim(x)
    places = f"m.arange({math.prod(x.shape)}).reshape({x.shape})"
    distinct = f"({x.name} + {places} * 0.001)" if name != "mode" else x.name
    k = [] if name in ("median", "nanmedian", "mode") else ["1"]
    return f"m.{name}({', '.join([distinct, *k, f'dim={dim}'])})" + (".values" if draw.rng.random() < 0.7 else "[0]")


def whole(draw: Any, name: str) -> str | None:
    x = _small(draw)
    return None if x is None else str(draw.call(name, x))


def scan(draw: Any, name: str) -> str | None:
    x = _small(draw)
    if x is None:
        return None
    rest = _part(draw) if name in ("cummax", "cummin") else ""
    return str(draw.call(name, x, f"dim={draw.dim(x)}")) + rest


def segments(draw: Any, name: str) -> str | None:
    x = _small(draw)
    if x is None:
        return None
    first = draw.rng.randrange(x.shape[0] + 1)
    reduce, initial = draw.rng.choice(["sum", "mean", "max", "min", "prod"]), draw.rng.choice(["", ", initial=0.5"])
    return f"m.{name}({x.name}, '{reduce}', lengths=m.tensor([{first}, 0, {x.shape[0] - first}]){initial})"


def filled(draw: Any, name: str) -> str | None:
    x = _small(draw, "fci")
    return None if x is None else str(draw.call(name, x, draw.rng.choice(["1.5", "-2", "0"])))


def quantile(draw: Any, name: str) -> str | None:
    x = _small(draw)
    if x is None:
        return None
    q = draw.rng.choice(["0.3", "0.5", "1.0", f"m.tensor([0.2, 0.7], dtype=m.{x.dtype})"])
    options = draw.rng.choice(["", ", interpolation='lower'", ", interpolation='midpoint'", ", keepdim=True"])
    return str(draw.call(name, x, f"{q}, dim={draw.dim(x)}{options}"))


def moments(draw: Any, name: str) -> str | None:
    x = _small(draw)
    if x is None or x.shape[-1] < 2:
        return None
    options = draw.rng.choice(["-1", "-1, keepdim=True", "-1, correction=0", "-1, False"])
    return str(draw.call(name, x, options)) + (f"[{draw.rng.randrange(2)}]" if name.endswith("_mean") else "")


def unordered(draw: Any, name: str) -> str | None:
    x = _small(draw)
    if x is None:
        return None
    text = {
        "argsort": f"m.argsort({x.name}, stable=True)", "searchsorted": f"m.searchsorted({x.name}.sort()[0], {x.name})",
        "bucketize": f"m.bucketize({x.name}, m.tensor([-1.0, 0.5, 2.0]))", "aminmax": f"m.aminmax({x.name})[1]",
        "isin": f"m.isin({x.name}, m.tensor([1.0, 0.0]))", "bincount": f"m.bincount(({x.name} > 0).long().ravel())",
        "histc": f"m.histc({x.name}.detach(), 5, -2.3, 2.9)",
        "histogram": f"m.histogram({x.name}.detach(), 4, range=(-2.3, 2.9), density=True)[0]",
        "count_nonzero": f"m.count_nonzero({x.name})", "msort": f"m.msort({x.name})",
    }  # fmt: skip
    return text.get(name) or f"m.{name}({x.name}.detach())"


def embedding(draw: Any, name: str) -> str | None:
    x = _small(draw, "f", 2)
    if x is None or len(x.shape) != 2:
        return None
    options = draw.rng.choice(["", ", padding_idx=0", ", scale_grad_by_freq=True"])
    return f"F.embedding({_indices(draw, (2, 2), 0, x.shape[0])}, {x.name}{options})"


#: Each kind with the names that it serves.
CHOSEN: dict[Callable[[Any, str], str | None], str] = {
    picked: "gather take_along_dim",
    scattered: "scatter scatter_add scatter_reduce scatter_ scatter_add_ scatter_reduce_",
    slices: "index_select index_add index_copy index_fill index_reduce index_add_ index_copy_ index_fill_ "
    "index_reduce_",
    flat: "take put put_ index_put index_put_",
    masked: "masked_fill masked_select masked_scatter masked_fill_ masked_scatter_",
    ranked: "kthvalue median nanmedian mode topk",
    whole: "nansum nanmean",
    scan: "cummax cummin cumprod cumprod_ logcumsumexp",
    quantile: "quantile nanquantile",
    segments: "segment_reduce",
    filled: "fill",
    moments: "std var_mean std_mean",
    unordered: "argsort searchsorted bucketize unique unique_consecutive count_nonzero aminmax msort nonzero "
    "argwhere isin bincount histc histogram",
    embedding: "embedding",
}
