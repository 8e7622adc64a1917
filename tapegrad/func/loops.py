"""`scan`, `while_loop`, `fori_loop`: loops as functions, with JAX's names. In a program they are one operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.func.carried import Carried, Values, length_of, rows_of
from tapegrad.func.level import array_of
from tapegrad.func.trees import flatten, is_like, rebuild, structure
from tapegrad.modes import is_traced, no_grad
from tapegrad.ops.creation import as_tensor
from tapegrad.ops.table import functions as ops
from tapegrad.tensor import Tensor, from_array

_FEW: Final = 4  # turns, which a trace writes down one after the other


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Call a function for each row of some arrays, and carry a value from turn to turn.

    Parameters
    ----------
    f : callable
        Takes the carried value and a row of `xs`; returns the next carried value, of the same structure, shapes and
        dtypes, and a row of results.
    init : tensors, arrays or numbers, or nested containers
        The first carried value.
    xs : tensors or arrays, or nested containers, optional
        Their first dimension are the rows. None: the function gets None.
    length : int, optional
        How many turns there are; needed if there is no `xs`.
    reverse : bool
        Begin with the last row. Results stand in the order of the rows.
    unroll : int or bool
        Changes no result. A compiled loop that is to be unrolled as a whole (True) is traced turn by turn.

    Returns
    -------
    carry : nested containers of tensors
        The last carried value.
    ys : nested containers of tensors
        The rows of results, stacked; None where the function returns None. Both have arrays in place of tensors if
        `init` and `xs` have.

    Raises
    ------
    TypeError
        If the function returns no pair, or a carried value of another structure, shape or dtype.
    ValueError
        If the lengths of `xs` and `length` differ.

    Notes
    -----
    In a compiled function, the turn is traced once, for any number of turns, and becomes a loop; its derivative is a
    loop, too. Elsewhere, the function is called for each turn.

    Examples
    --------
    >>> import numpy as np
    >>> import tapegrad as tg
    >>> tg.func.scan(lambda total, x: (total + x, total * x), 0.0, np.array([1.0, 2.0, 3.0]))
    (np.float64(6.0), array([0., 2., 9.]))
    >>> def last(a):
    ...     return tg.func.scan(lambda x, _: (a * x * (1 - x), None), 0.5, length=1000)[0]
    >>> slope = tg.compile(tg.func.grad(last))
    >>> bool(np.isclose(slope(2.5), tg.func.grad(last)(2.5)))
    True
    """
    rows = Values(xs, "scan", "xs")
    count = length_of(rows, length)
    carry = Carried(init, "scan", "init")
    has_arrays = not carry.has_tensors and not rows.has_tensors

    def turn(value: Any, row: Any) -> tuple[Any, Any]:
        result: Any = f(value, row)
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(
                f"scan: f must return a pair, the next carried value and a row of results (or None), got "
                f"{type(result).__name__} of structure {structure(result)}"
            )
        return result[0], result[1]

    found = None
    if count > _FEW and unroll is not True and is_traced():
        from tapegrad.program.scanned import scanned  # at call time: programs import this package

        found = scanned(turn, carry, rows, count, bool(reverse))
    if found is None:
        found = _turn_by_turn(turn, carry, rows, count, bool(reverse))
    carried, ys = _given(found, has_arrays)
    return carried, ys


def _turn_by_turn(turn: Callable[..., Any], carry: Carried, rows: Values, count: int, reverse: bool) -> tuple[Any, Any]:
    """Return the last carried value and all results of a loop, by calls for each turn."""
    if not count:
        with no_grad():
            _, y = turn(
                carry.tree, rows.with_leaves([ops.zeros(own.shape[1:], dtype=own.dtype) for own in rows.leaves])
            )
        return carry.tree, _stacked([y], 0)
    value, ys = carry.tree, []
    places = range(count - 1, -1, -1) if reverse else range(count)
    columns = rows_of(rows)
    for place in places:
        row = rows.with_leaves([own[place] for own in columns])
        value, y = carry.next(turn, value, row)
        ys.append(y)
        if len(ys) > 1 and not is_like(y, ys[0]):
            raise TypeError(
                f"scan: results of f have structure {structure(ys[0])} in the first turn, and {structure(y)} in turn "
                f"{len(ys) - 1}; return the same containers in every turn"
            )
    if reverse:
        ys.reverse()
    return value, _stacked(ys, count)


def _stacked(ys: Sequence[Any], count: int) -> Any:
    """Return rows as one tree, in which each leaf has all of them."""
    columns: list[Tensor | None] = []
    for leaves in zip(*map(flatten, ys), strict=True):
        if leaves[0] is None:
            columns.append(None)
            continue
        whole = ops.stack([as_tensor(leaf) for leaf in leaves])
        columns.append(whole if count else whole[:0])
    return rebuild(ys[0], columns)


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """Call a function on its own result as long as a condition holds.

    Parameters
    ----------
    cond_fun : callable
        Takes the value; returns a truth value, without dimensions.
    body_fun : callable
        Takes the value; returns the next one, of the same structure, shapes and dtypes.
    init_val : tensors, arrays or numbers, or nested containers

    Returns
    -------
    nested containers of tensors
        The first value for which the condition does not hold; arrays if `init_val` has arrays only.

    Raises
    ------
    TypeError
        If the condition is no truth value without dimensions, or the function returns a value of another structure,
        shape or dtype.

    Notes
    -----
    In a compiled function, condition and function are traced once, and become a loop for any number of turns. Gradients
    go through all turns: what each was given is kept, in room for twice as many turns as there were at most; where a
    call needs more, the function is traced again.

    Examples
    --------
    >>> import tapegrad as tg
    >>> @tg.compile
    ... def root(a):
    ...     return tg.func.while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), a)
    >>> round(float(root(4.0)), 9)
    2.0
    """
    carry = Carried(init_val, "while_loop", "init_val")

    def goes_on(value: Any) -> Tensor:
        flag = cond_fun(value)
        if isinstance(flag, (bool, np.bool_)):
            flag = from_array(np.asarray(flag))
        if isinstance(flag, np.ndarray):
            flag = as_tensor(flag)
        if not isinstance(flag, Tensor) or flag._layout.ndim or flag._layout.dtype.kind != "b":
            shown = (
                flag._layout if isinstance(flag, Tensor) else f"{type(flag).__name__} of structure {structure(flag)}"
            )
            raise TypeError(
                f"while_loop: cond_fun must return a truth value without dimensions, got {shown}; compare, and reduce "
                f"by all() or any()"
            )
        return flag

    found = None
    if is_traced():
        from tapegrad.program.scanned import repeated  # at call time: programs import this package

        found = repeated(goes_on, body_fun, carry)
    if found is None:
        value = carry.tree
        while bool(goes_on(value)):
            value, _ = carry.next(lambda own, _: (body_fun(own), None), value, None)
        found = value
    return _given(found, not carry.has_tensors)


def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *, unroll: int | bool | None = None
) -> Any:
    """Call a function on its own result for each of some integers.

    Parameters
    ----------
    lower, upper : int, or tensor of one
        The integers from `lower` to `upper - 1`; none if `upper` is not larger.
    body_fun : callable
        Takes an integer, as a tensor, and the value; returns the next value, of the same structure, shapes and dtypes.
    init_val : tensors, arrays or numbers, or nested containers
    unroll : int or bool, optional
        As for `scan`.

    Returns
    -------
    nested containers of tensors
        The last value; arrays if `init_val` has arrays only.

    Raises
    ------
    TypeError
        If bounds are no integers, or the function returns a value of another structure, shape or dtype.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.func.fori_loop(0, 5, lambda i, x: x + i, 0.0)
    np.float64(10.0)
    """
    bounds = [_bound(lower, "lower"), _bound(upper, "upper")]
    carry = Carried(init_val, "fori_loop", "init_val")
    is_data = any(isinstance(own, Tensor) and own.is_traced for own in bounds)
    found = None
    if is_traced() and unroll is not True and (is_data or int(bounds[1]) - int(bounds[0]) > _FEW):
        from tapegrad.program.scanned import counted  # at call time: programs import this package

        found = counted(bounds[0], bounds[1], body_fun, carry)
    if found is None:
        value = carry.tree
        for number in range(int(bounds[0]), int(bounds[1])):
            place = from_array(np.array(number))
            value, _ = carry.next(lambda own, at: (body_fun(at, own), None), value, place)
        found = value
    return _given(found, not carry.has_tensors)


def _bound(value: Any, name: str) -> Any:
    kind = value.dtype.kind if isinstance(value, (Tensor, np.ndarray, np.generic)) else ""
    is_integer = isinstance(value, int) or (kind in ("i", "u") and not value.ndim)
    if isinstance(value, bool) or not is_integer:
        shown = value._layout if isinstance(value, Tensor) else repr(value)
        raise TypeError(f"fori_loop: {name} must be an integer, or a tensor of one without dimensions, got {shown}")
    return value if isinstance(value, Tensor) else int(value)


def _given(tree: Any, has_arrays: bool) -> Any:
    """Return a result as users get it: arrays if they gave arrays only."""
    if not has_arrays:
        return tree
    return rebuild(tree, [array_of(leaf) if isinstance(leaf, Tensor) else leaf for leaf in flatten(tree)])
