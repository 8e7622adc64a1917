"""Nested containers, as arguments and results of functions; all else is a leaf.

They are dicts, lists, tuples, named tuples, and records: see `is_record`.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.tensor import Tensor

_TENSORS: Final = {Tensor}
_LEAVES: Final = frozenset((Tensor, np.ndarray, float, int, bool, str, type(None)))


def is_network(own: Any) -> bool:
    """Whether these are the attributes of a module of networks, not of another object with a member of that name."""
    return own.__class__ is dict and "_kinds" in own and "_non_persistent_buffers_set" in own


def is_record(value: Any) -> bool:
    """Whether a value is known by its attributes, and is no module or tensor.

    It is an instance of a dataclass, or of a class in Python that compares what its instances contain and so has no
    hash, as `argparse.Namespace`; or a `types.SimpleNamespace`.
    """
    kind = type(value)
    if kind in _LEAVES or not (hasattr(kind, "__dataclass_fields__") or _is_namespace(kind, value)):
        return False
    return not isinstance(value, Tensor) and not is_network(getattr(value, "__dict__", None))


def _is_namespace(kind: Any, value: Any) -> bool:
    if kind.__hash__ is not None:
        return False
    return kind is types.SimpleNamespace or (kind.__new__ is object.__new__ and hasattr(value, "__dict__"))


def is_container(value: Any) -> bool:
    """Whether a value has children, of which there may be none."""
    return isinstance(value, (dict, tuple, list)) or is_record(value)


def fields_of(record: Any) -> dict[str, Any]:
    """Return the fields of a record that have a value, and its other attributes."""
    own, fields = getattr(record, "__dict__", {}), getattr(type(record), "__dataclass_fields__", {})
    names = [key for key, field in fields.items() if field._field_type.name == "_FIELD"]
    return {**{key: getattr(record, key) for key in names if hasattr(record, key)}, **own}


def flatten(tree: Any) -> list[Any]:
    """Return the leaves of a tree, in order.

    Examples
    --------
    >>> flatten({"a": 1, "b": (2, [3, None])})
    [1, 2, 3, None]
    """
    if not is_container(tree):
        return [tree]
    if is_row(tree):
        return list(tree)
    leaves: list[Any] = []
    _collect(tree, leaves)
    return leaves


def _collect(tree: Any, leaves: list[Any]) -> None:
    if isinstance(tree, dict):
        for child in tree.values():
            _collect(child, leaves)
    elif isinstance(tree, (tuple, list)):
        for child in tree:
            _collect(child, leaves)
    elif is_record(tree):
        _collect(fields_of(tree), leaves)
    else:
        leaves.append(tree)


def rebuild(tree: Any, leaves: Sequence[Any]) -> Any:
    """Return a tree like this one with other leaves.

    Examples
    --------
    >>> rebuild({"a": 1, "b": (2, [3])}, "xyz")
    {'a': 'x', 'b': ('y', ['z'])}
    """
    if is_row(tree):
        return tuple(leaves)
    return _rebuilt(tree, iter(leaves)) if is_container(tree) else leaves[0]


def _rebuilt(tree: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(tree, dict):
        children = {key: _rebuilt(child, leaves) for key, child in tree.items()}
        if type(tree) is dict:
            return children
        twin = copy.copy(tree)  # an OrderedDict, or a dict with a default
        twin.update(children)
        return twin
    if isinstance(tree, (tuple, list)):
        values = [_rebuilt(child, leaves) for child in tree]
        if type(tree) is list:
            return values
        return type(tree)._make(values) if hasattr(tree, "_make") else type(tree)(values)
    if is_record(tree):
        own = fields_of(tree)
        return record_of(type(tree), tuple(own), [_rebuilt(child, leaves) for child in own.values()])
    return next(leaves)


def record_of(kind: type, names: tuple[str, ...], values: Sequence[Any]) -> Any:
    """Return a record with attributes of these names; `__init__` and `__post_init__` have seen its arguments."""
    record = kind() if kind is types.SimpleNamespace else object.__new__(kind)
    for key, value in zip(names, values, strict=True):
        object.__setattr__(record, key, value)
    return record


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return a tree like this one, with the results of a function on its leaves."""
    if not is_container(tree):
        return function(tree)
    return rebuild(tree, [function(leaf) for leaf in flatten(tree)])


def tree_flatten(tree: Any) -> tuple[list[Any], Any]:
    """Return the leaves of a tree, and what `tree_unflatten` needs to put others in their places.

    Examples
    --------
    >>> tree_flatten({"a": 1, "b": (2, 3)})[0]
    [1, 2, 3]
    """
    return flatten(tree), tree_map(lambda leaf: None, tree)


def tree_unflatten(leaves: Any, treespec: Any) -> Any:
    """Return the tree with these leaves.

    Examples
    --------
    >>> leaves, spec = tree_flatten({"a": 1, "b": (2, 3)})
    >>> tree_unflatten([-leaf for leaf in leaves], spec)
    {'a': -1, 'b': (-2, -3)}
    """
    return rebuild(treespec, list(leaves))


tree_leaves = flatten


def structure(tree: Any) -> str:
    """Return how messages show a tree without its leaves.

    Examples
    --------
    >>> structure({"a": 1, "b": (2, [3])})
    "{'a': *, 'b': (*, [*])}"
    """
    if isinstance(tree, dict):
        children = ", ".join(f"{key!r}: {structure(child)}" for key, child in tree.items())
        return f"{{{children}}}"
    if isinstance(tree, (tuple, list)):
        children = ", ".join(map(structure, tree))
        if isinstance(tree, list):
            return f"[{children}]"
        name = type(tree).__name__ if hasattr(tree, "_fields") else ""
        return f"{name}({children}{',' * (len(tree) == 1)})"
    if is_record(tree):
        children = ", ".join(f"{key}={structure(child)}" for key, child in fields_of(tree).items())
        return f"{type(tree).__qualname__}({children})"
    return "*"


def leaf_names(tree: Any, name: str) -> list[str]:
    """Return how messages call the leaves of a tree, which is called by a name itself.

    Examples
    --------
    >>> leaf_names({"a": 1, "b": (2, [3])}, "carry")
    ["carry['a']", "carry['b'][0]", "carry['b'][1][0]"]
    """
    if isinstance(tree, dict):
        return [leaf for key, child in tree.items() for leaf in leaf_names(child, f"{name}[{key!r}]")]
    if isinstance(tree, (tuple, list)):
        keys = (
            [f".{field}" for field in tree._fields]
            if hasattr(tree, "_fields")
            else [f"[{k}]" for k in range(len(tree))]
        )
        return [leaf for key, child in zip(keys, tree, strict=True) for leaf in leaf_names(child, f"{name}{key}")]
    if is_record(tree):
        return [leaf for key, child in fields_of(tree).items() for leaf in leaf_names(child, f"{name}.{key}")]
    return [name]


def is_like(tree: Any, other: Any) -> bool:
    """Whether two trees have one structure; the order of keys does not count."""
    if is_row(tree) and is_row(other):
        return len(tree) == len(other)
    if isinstance(tree, dict):
        if not isinstance(other, dict) or tree.keys() != other.keys():
            return False
        return all(is_like(child, other[key]) for key, child in tree.items())
    if isinstance(tree, (tuple, list)):
        return type(tree) is type(other) and len(tree) == len(other) and all(map(is_like, tree, other))
    if is_record(tree):
        return type(tree) is type(other) and is_like(fields_of(tree), fields_of(other))
    return not is_container(other)


def flatten_like(tree: Any, other: Any) -> list[Any]:
    """Return the leaves of a tree in the order of another one of its structure."""
    if is_row(tree) and is_row(other):
        return list(tree)
    leaves: list[Any] = []
    _collect_like(tree, other, leaves)
    return leaves


def is_row(tree: Any) -> bool:
    """Whether a tree is a tuple of tensors, as the arguments of nearly all functions."""
    return tree.__class__ is tuple and set(map(type, tree)) <= _TENSORS


def _collect_like(tree: Any, other: Any, leaves: list[Any]) -> None:
    if isinstance(other, dict):
        for key, child in other.items():
            _collect_like(tree[key], child, leaves)
    elif isinstance(other, (tuple, list)):
        for pair in zip(tree, other, strict=True):
            _collect_like(*pair, leaves)
    elif is_record(other):
        _collect_like(fields_of(tree), fields_of(other), leaves)
    else:
        leaves.append(tree)


def broadcast(prefix: Any, tree: Any) -> list[Any] | None:
    """Return a leaf of a prefix of a tree for each leaf of the tree; None if it is no prefix.

    Examples
    --------
    >>> broadcast((0, None), (1, [2, 3]))
    [0, None, None]
    """
    if not is_container(prefix):
        return [prefix] * len(flatten(tree))
    if type(prefix) is not type(tree):
        return None
    if is_record(prefix):
        return broadcast(fields_of(prefix), fields_of(tree))
    if len(prefix) != len(tree):
        return None
    pairs: list[tuple[Any, Any]]
    if isinstance(prefix, dict) and isinstance(tree, dict):
        if prefix.keys() != tree.keys():
            return None
        pairs = [(prefix[key], child) for key, child in tree.items()]
    else:
        pairs = list(zip(prefix, tree, strict=True))
    parts = [broadcast(*pair) for pair in pairs]
    return None if any(leaves is None for leaves in parts) else [leaf for leaves in parts for leaf in leaves or ()]
