"""Promotion: the dtype in which an elementwise operation is computed, and the forward that computes in it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tapegrad.dtypes import TORCH_NAMES, default_dtype
from tapegrad.forward import rowwise
from tapegrad.forward.powers import Power, check_exponent
from tapegrad.tape.layout import Layout


def promote(layouts: Sequence[Layout]) -> np.dtype:
    """Return the dtype in which PyTorch computes an elementwise operation of these operands.

    A tensor without dimensions does not promote one with dimensions of the same kind (bool, integer, real, complex),
    and a Python number promotes neither; a number of a higher kind gives the default dtype of that kind.
    """
    ranks = tuple((0 if layout.weak else 1 if layout.ndim == 0 else 2, layout.dtype) for layout in layouts)
    return _promote(ranks, default_dtype())


@functools.lru_cache(maxsize=1024)
def _promote(ranks: tuple[tuple[int, np.dtype], ...], default: np.dtype) -> np.dtype:
    result: np.dtype | None = None
    for priority in (2, 1, 0):
        dtypes = [dtype for rank, dtype in ranks if rank == priority]
        if not dtypes:
            continue
        dtype = common_dtype(dtypes)
        if priority == 0 and dtype.kind in "fc":
            dtype = np.result_type(default, np.complex64) if dtype.kind == "c" else default
        if result is None:
            result = dtype
        elif _kind(dtype) > _kind(result):
            # A higher kind wins; a complex number beside a real tensor keeps the tensor's precision.
            result = np.result_type(result, np.complex64) if dtype.kind == "c" and result.kind == "f" else dtype
    assert result is not None  # every operation has an operand
    return result


def common_dtype(dtypes: Iterable[np.dtype]) -> np.dtype:
    """Return the dtype that holds elements of all dtypes, as PyTorch joins them: integers do not widen reals."""
    joined = list(dtypes)
    return np.result_type(*([dtype for dtype in joined if dtype.kind in "fc"] or joined))


def _kind(dtype: np.dtype) -> int:
    return "biufc".replace("iu", "i").index("i" if dtype.kind == "u" else dtype.kind)


def no_bools(message: str, two: str = "") -> Callable[[tuple[Layout, ...]], None]:
    """Return the check of an op that takes no bools; `two` is the message where all operands are.

    Without a `message` it takes some bools, but not bools only.
    """

    def check(layouts: tuple[Layout, ...]) -> None:
        bools = [layout for layout in layouts if layout.dtype.kind == "b"]
        text = two if two and len(bools) == len(layouts) else message
        if bools and text:
            raise NotImplementedError(text) if "not implemented" in text else RuntimeError(text)

    return check


def only_floats(call: str, *names: str) -> Callable[[tuple[Layout, ...]], None]:
    """Return the check of an op that does not compute with integers or bools; nor with numbers, if it has `names`."""
    of_numbers = no_numbers(call, *names) if names else None

    def check(layouts: tuple[Layout, ...]) -> None:
        if of_numbers is not None:
            of_numbers(layouts)
        dtype = promote(layouts)
        if dtype.kind not in "fc":
            raise NotImplementedError(f"{call} not implemented for dtype {dtype}; convert with .to(...) first")

    check.refuses_numbers = bool(names)  # type: ignore[attr-defined]
    return check


def one_dtype(check: Callable[..., None], first: Callable[..., None] | None = None) -> Callable[..., None]:
    """Return the check of an op, after a first one: `check` gets the dtypes of all operands but Python numbers."""

    def checked(layouts: tuple[Layout, ...]) -> None:
        if first is not None:
            first(layouts)
        check(*[layout.dtype for layout in layouts if not layout.weak])

    return checked


def check_same(words: str, *dtypes: np.dtype) -> None:
    """Raise PyTorch's error, with its names of the dtypes in these words, if the dtypes differ."""
    if any(dtype != dtypes[0] for dtype in dtypes):
        names = [TORCH_NAMES.get(dtype.name, dtype.name) for dtype in dtypes]
        raise RuntimeError(f"{words.format(*names)}; this function does not promote: convert one with .to(...)")


def check_mixed(input: np.dtype, *parameters: np.dtype) -> None:
    """Raise PyTorch's error if the parameters of a norm do not have the dtype of its input."""
    single = all(dtype == np.float32 for dtype in parameters)
    what = "all inputs must share same datatype" if single else "expect parameter to have scalar type of Float"
    check_same(f"mixed dtype (CPU): {what}. It got {', '.join(['{}'] * (1 + len(parameters)))}", input, *parameters)


def no_numbers(call: str, *names: str) -> Callable[[tuple[Layout, ...]], None]:
    """Return the check of an op whose operands are tensors and arrays, not Python numbers."""

    def check(layouts: tuple[Layout, ...]) -> None:
        for position, (name, layout) in enumerate(zip(names, layouts, strict=True), 1):
            if layout.weak:
                kind = {"b": "bool", "i": "int", "f": "float", "c": "complex"}[layout.dtype.kind]
                raise TypeError(
                    f"{call}(): argument '{name}' (position {position}) must be Tensor, not {kind}; "
                    f"make it one with tapegrad.tensor(...)"
                )

    check.refuses_numbers = True  # type: ignore[attr-defined]
    return check


_OF_BOOLS: dict[Any, Callable[..., Any]] = {np.sign: np.array}  # functions that NumPy lacks for bools


def forward_for(
    function: Callable[..., Any],
    scalar: Callable[..., Any] | None,
    to_float: bool,
    promoted: tuple[int, ...] | None = None,
) -> Callable[[tuple[Layout, ...], dict[str, Any]], Callable[..., Any]]:
    """Return `Op.prepare_forward`: the function, with casts where PyTorch does not promote as NumPy does.

    Parameters
    ----------
    function : callable
        On arrays; if it has ``of(dtype)``, that is called for the function.
    scalar : callable, optional
        An operator that does the same, and is faster on scalar objects.
    to_float : bool
        Integers are converted to the default dtype.
    promoted : tuple of int, optional
        Indices of the operands that are converted to a common dtype; default all (a condition is not).
    """

    def choose(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
        chosen = promoted or tuple(range(len(layouts)))
        common = promote([layouts[number] for number in chosen])
        if to_float and common.kind in "biu":
            common = default_dtype()
        numbers = all(layouts[number].weak for number in chosen)  # without a tensor, whose dtype they would take
        # A number that a tensor's integers cannot hold wraps around, as it does in PyTorch; NumPy would raise.
        narrow = common.kind in "iu" and common.itemsize < 8
        cast = [
            number in chosen and layout.dtype != common and (numbers or narrow or not layout.weak)
            for number, layout in enumerate(layouts)
        ]
        chosen_function = function.of(common) if hasattr(function, "of") else function
        if common.kind == "b":
            chosen_function = _OF_BOOLS.get(chosen_function, chosen_function)
        if any(cast):
            is_unsigned_power = isinstance(function, Power) and common.kind == "u"

            def with_casts(*values: Any) -> Any:
                if is_unsigned_power:
                    check_exponent(*values)
                pairs = zip(values, cast, strict=True)
                return chosen_function(
                    *(np.asarray(value).astype(common) if is_cast else value for value, is_cast in pairs)
                )

            return with_casts
        if isinstance(function, Power) and layouts[0].weak and common.kind == "c":
            return function
        if scalar is not None and len(layouts) == 2 and all(layout.ndim == 0 for layout in layouts):
            # Scalar objects multiply in 40 ns, arrays without dimensions in 280.
            arrays = [not layout.inline for layout in layouts]
            if arrays == [False, False]:
                return scalar
            if arrays == [False, True]:
                return lambda x, y: scalar(x, y[()])
            if arrays == [True, False]:
                return lambda x, y: scalar(x[()], y)
            return lambda x, y: scalar(x[()], y[()])
        return rowwise.elementwise(chosen_function, layouts) if len(layouts) == 2 else chosen_function

    return choose
