"""Nested containers, as arguments and results of functions: dicts, lists, tuples, named tuples; all else is a leaf."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tapegrad.tensor import Tensor

_TENSORS: Final = {Tensor}


def flatten(tree: Any) -> list[Any]:
    """Return the leaves of a tree, in order.

    Examples
    --------
    >>> flatten({"a": 1, "b": (2, [3, None])})
    [1, 2, 3, None]
    """
    if not isinstance(tree, (dict, tuple, list)):
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
    return _rebuilt(tree, iter(leaves)) if isinstance(tree, (dict, tuple, list)) else leaves[0]


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
    return next(leaves)


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return a tree like this one, with the results of a function on its leaves."""
    if not isinstance(tree, (dict, tuple, list)):
        return function(tree)
    return rebuild(tree, [function(leaf) for leaf in flatten(tree)])


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
    return not isinstance(other, (dict, tuple, list))


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
    else:
        leaves.append(tree)


def broadcast(prefix: Any, tree: Any) -> list[Any] | None:
    """Return a leaf of a prefix of a tree for each leaf of the tree; None if it is no prefix.

    Examples
    --------
    >>> broadcast((0, None), (1, [2, 3]))
    [0, None, None]
    """
    if not isinstance(prefix, (dict, tuple, list)):
        return [prefix] * len(flatten(tree))
    if type(prefix) is not type(tree) or len(prefix) != len(tree):
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
