"""NumPy's ufuncs on tensors, and their methods: ours of the same meaning, recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.ops.numpy_chains import accumulate_by, reduce_by, write_at
from tapegrad.ops.numpy_parts import SEVERAL, reduceat
from tapegrad.ops.table import functions as ops
from tapegrad.ops.table import public
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.promotion import promote
from tapegrad.tape.layout import FLOAT
from tapegrad.tensor import Tensor

# Our functions of the meaning of a ufunc, by its name, as far as they were called.
_known: dict[str, Callable[..., Any]] = {}
# By ufunc: our function, if it takes the arguments of a plain call as they are; the classes of these, and their dtypes
# where the function does not promote.
_usual: dict[np.ufunc, Callable[..., Any]] = {}
_OF_INTEGERS: Final = frozenset({"maximum", "minimum", "fmax", "fmin"})  # of integers, integers
_ARRAYS: Final = frozenset({Tensor, np.ndarray})
_OPERANDS: Final = frozenset({*_ARRAYS, float, int, np.float64, np.float32, np.int64})


def _function(ufunc: str) -> Callable[..., Any] | None:
    """Return our function of the meaning of a ufunc of NumPy or SciPy: most have its name."""
    found = _known.get(ufunc)
    if found is None:
        places = public.UFUNCS, public.TOP, public.LINALG, public.SPECIAL
        one = next((one for place in places if (one := public.find(place, ufunc))), None)
        if one is not None and callable(one.function):
            found = _known[ufunc] = one.function
    return found


def _of_scipy(name: str) -> Callable[..., Any] | None:
    from tapegrad.ops.numpy_special import SPECIAL  # at call time: most programs have none of these

    return SPECIAL.get(name.removeprefix("_"))  # a function in Python may call a ufunc so: lambertw does


def plain(value: Any) -> Any:
    """Return an argument with arrays in place of tensors."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, (list, tuple)):
        return type(value)(plain(item) for item in value)
    return value


def values(value: Any) -> Any:
    """Return an argument with the data in place of tensors, also of those that require grad."""
    if isinstance(value, Tensor):
        return value._looked_at()
    return type(value)(map(values, value)) if isinstance(value, (list, tuple)) else value


def ndim_of(value: Any) -> int:
    """Return the number of dimensions of an argument, and do not look at a tensor's values."""
    return value.ndim if isinstance(value, Tensor) else np.ndim(values(value))


def array_of(value: Any) -> np.ndarray:
    """Return the `values` of an argument as an array."""
    return np.asarray(values(value))


def no_list(value: Any) -> Any:
    """Return an array in place of a list, or a tensor if it has tensors: NumPy hands over what it was given."""
    if not isinstance(value, (list, tuple)):
        return value
    if next(iter(_tensors(value)), None) is None:
        return np.asarray(value)
    return ops.stack([as_operand(item, "stack", "arrays", 1) for item in map(no_list, value)])


def _tensors(value: Any) -> Iterable[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def unsupported(function: str, why: str = "") -> TypeError:
    """Return the error of a function of NumPy that tensors have not, with the nearest that they have."""
    from tapegrad.ops.table.scope import OF_SCIPY, nearest  # long lists, for programs that are about to fail

    name = function.rpartition(".")[2].removeprefix("_")
    if name in OF_SCIPY:
        shown, instead = name, f": {OF_SCIPY[name]}; use"
    else:
        near = "" if why else nearest(name)
        hint = f" (nearest in name is {near})" if near else ""
        shown, instead = function, f"{why and f' {why}'}; use tapegrad's operation of this meaning{hint}, or"
    return TypeError(f"{shown} does not work on tensors{instead} x.detach().numpy() where no gradient is wanted")


def refuse(function: str, **options: Any) -> None:
    """Raise the error of options that a function of NumPy takes, and ours does not, if some are given."""
    absent = (None, False, np._NoValue)
    given = [f"{key}=" for key, value in options.items() if not any(value is one for one in absent)]
    if given:
        raise unsupported(f"np.{function}", f"with {', '.join(given)}")


def array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
    """Call the function that a ufunc, or its reduction, stands for."""
    if method == "__call__" and not kwargs and out is None:
        usual = _usual.get(ufunc)
        if usual is not None and _are_usual(ufunc, inputs):
            return usual(*inputs)
    name = ufunc.__name__
    shown = f"np.{name}" if getattr(np, name, None) is ufunc else name
    if out is not None:
        return _with_out(shown, ufunc, method, inputs, out, kwargs)
    dtype = kwargs.pop("dtype", None)
    function = _function(name) or SEVERAL.get(name) or _of_scipy(name)
    result = None
    if method == "reduce" and (one := public.find(public.REDUCES, name)):
        result = _reduce(one.function, *inputs, **kwargs)
    elif method == "accumulate" and (one := public.find(public.ACCUMULATES, name)):
        result = _accumulate(one.function, *inputs, **kwargs)
    elif method == "reduceat" and (one := public.find(public.REDUCES, name)):
        result = reduceat(shown, one.function, *inputs, **kwargs)
    elif method == "at" and callable(function):
        if not isinstance(inputs[0], Tensor):
            raise unsupported(f"{shown}.at", "of an array")
        return write_at(inputs[0], ufunc, function, inputs[1], *map(no_list, inputs[2:]))
    elif method in _CHAINS and callable(function):
        x = inputs[0] if dtype is None else as_operand(inputs[0], shown, "array", 1).to(dtype)
        result = _CHAINS[method](x, ufunc, function, *inputs[1:], **kwargs)
    elif method in ("__call__", "outer") and not kwargs and callable(function):
        operands = list(map(no_list, inputs))
        if ufunc.signature is not None:
            operands = in_common_dtype(operands)
        if _refuses_numbers(function):
            operands = without_numbers(operands, name in _OF_INTEGERS)
        if method == "outer":
            x, y = (as_operand(value, shown, "x", place) for place, value in enumerate(operands, 1))
            operands = [ops.reshape(x, x.shape + (1,) * y.ndim), y]
        if not _refuses_numbers(function):
            _usual[ufunc] = function
        result = function(*operands)
    if result is not None:
        return result if dtype is None else result.to(dtype)
    what = shown if method == "__call__" else f"{shown}.{method}"
    why = f"with {', '.join(f'{key}=' for key in kwargs)}" if kwargs and callable(function) else ""
    raise unsupported(what, why)


def _are_usual(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> bool:
    """Whether the arguments of a ufunc can be given to our function as they are."""
    if ufunc.signature is None:
        return _OPERANDS.issuperset(map(type, inputs))
    return _ARRAYS.issuperset(map(type, inputs)) and inputs[0].dtype is inputs[-1].dtype


def _refuses_numbers(function: Callable[..., Any]) -> bool:
    return getattr(getattr(getattr(function, "op", None), "check_dtypes", None), "refuses_numbers", False)


def without_numbers(operands: list[Any], keeps_integers: bool = False) -> list[Any]:
    """Return operands with floating arrays in place of Python numbers, which NumPy's functions take everywhere."""
    layouts = [as_operand(value, "ufunc", "x", place)._layout for place, value in enumerate(operands, 1)]
    dtype = promote(layouts if keeps_integers else [*layouts, FLOAT])
    return [np.asarray(value, dtype) if layout.weak else value for value, layout in zip(operands, layouts, strict=True)]


def in_common_dtype(args: Sequence[Any]) -> list[Any]:
    """Return the arguments of a product, its arrays and tensors in one dtype: PyTorch's products do not promote."""
    arrays = [value for value in args if isinstance(value, (Tensor, np.ndarray))]
    if len({value.dtype for value in arrays}) < 2:
        return list(args)
    dtype = promote([as_operand(value, "product", "x", 1)._layout for value in arrays])
    return [
        as_operand(value, "product", "x", 1).to(dtype)
        if isinstance(value, (Tensor, np.ndarray)) and value.dtype != dtype else value
        for value in args
    ]  # fmt: skip


def along(function: Callable[..., Tensor], x: Tensor, axis: Any, **options: Any) -> Tensor:
    """Call a reduction on an axis of NumPy's: for `()` NumPy takes each element by itself, PyTorch all as one."""
    if axis == ():
        return ops.reshape(function(ops.unsqueeze(x, -1), -1, **options), x.shape)
    return function(x, axis, **options)


def reduced(
    x: Any, function: Callable[..., Tensor], axis: Any, keepdims: bool, where: Any = True, initial: Any = None
) -> Tensor:
    """Call a reduction as NumPy does: of the elements that a mask chooses, beginning with a number."""
    name = function.__name__
    one = public.find(public.TOP, name)
    of = one.names.reduces if one else ""
    x = as_operand(x, name, "input", 1)
    if where is not True and name == "mean":
        chosen = np.broadcast_to(plain(where), x.shape).sum(axis, x.dtype, keepdims=keepdims)
        return ops.div(reduced(x, ops.sum, axis, keepdims, where), chosen)
    if where is not True or initial is not None:
        if not of:
            raise unsupported(f"np.{name}", "with where= or initial=")
        identity = getattr(np, of).identity
        identity = initial if identity is None else identity
        if where is not True and identity is None:
            raise ValueError(
                f"reduction operation '{of}' does not have an identity, so to use a where mask one has to specify "
                f"'initial'"
            )
        x = x if where is True else ops.where(where, x, identity)
    result = along(function, x, axis, keepdim=keepdims)
    if initial is not None:
        step = _function(of)
        assert step is not None
        result = step(result, np.asarray(initial, result.dtype))
    return result


def _reduce(
    function: Callable[..., Tensor],
    x: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    **kwargs: Any,
) -> Any:
    result = reduced(x, function, axis, bool(keepdims), **kwargs)
    return result if dtype is None else result.to(dtype)


def _accumulate(function: Callable[..., Any], x: Any, axis: int = 0) -> Any:
    result = function(x, axis)
    return result[0] if isinstance(result, tuple) else result


def _reduceat_by(x: Any, ufunc: np.ufunc, function: Callable[..., Any], indices: Any, axis: int = 0) -> Tensor:
    return reduceat(f"np.{ufunc.__name__}", lambda part, dim: reduce_by(part, ufunc, function, dim), x, indices, axis)


# Methods of ufuncs that are no functions of ours.
_CHAINS: Final[dict[str, Callable[..., Tensor]]] = {
    "reduce": reduce_by, "accumulate": accumulate_by, "reduceat": _reduceat_by,
}  # fmt: skip


def refuse_gradients(shown: str, arguments: Iterable[Any]) -> None:
    """Raise PyTorch's error of a call with ``out=``, if one of its arguments requires grad."""
    if any(tensor.requires_grad for tensor in _tensors([*arguments])):
        raise RuntimeError(
            f"{shown}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            f"arguments requires grad. Leave out= away (array += tensor means out=array: write array = array + tensor)"
        )


def _with_out(shown: str, ufunc: np.ufunc, method: str, inputs: Any, out: Any, kwargs: dict[str, Any]) -> Any:
    refuse_gradients(shown, [*inputs, *out])
    from tapegrad.tape import versions

    arrays = tuple(plain(value) for value in out)
    for array in arrays:
        if array is not None:
            versions.note(array)
    result = getattr(ufunc, method)(*plain(list(inputs)), out=arrays, **_plain_values(kwargs))
    return out[0] if len(out) == 1 else result


def _plain_values(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {key: plain(value) for key, value in kwargs.items()}
