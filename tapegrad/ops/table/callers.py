"""The functions that users call: they take PyTorch's names of arguments, and NumPy's.

CPython calls a function with named parameters in half the time of one with ``*args`` and ``**kwargs``. So each is a
template, made for a number of parameters, whose copy gets the names and the defaults of the function that binds the
arguments. Other names are further parameters behind those: a call without them pays a default for each.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, Final, TypeVar

from tapegrad.errors import check_bool
from tapegrad.recording.plan_cache import PlanCache

F = TypeVar("F", bound=Callable[..., Any])
Caller = Callable[..., Any]

#: NumPy's names of our parameters.
NUMPY_NAMES: Final = {"dim": ("axis",), "dims": ("axis",), "keepdim": ("keepdims",), "correction": ("ddof",)}

#: Those that PyTorch's functions take where they are not the ones of its documentation, which are ours.
PYTORCH_NAMES: Final = {
    "A": ("input",), "L": ("input2",), "tau": ("input2",), "tensor1": ("tensor",), "tensor2": ("other",),
    "indices_or_sections": ("sections", "indices"),
}  # fmt: skip

#: Those of PyTorch's past, which say the same in other words: see `reduction_of`.
OLDER_NAMES: Final = {"reduction": ("size_average", "reduce")}

_OTHER_NAMES: Final = {**NUMPY_NAMES, **PYTORCH_NAMES, **OLDER_NAMES}


class missing:  # noqa: N801  # a value
    """Stands for an argument that is not given. It is a type, as keys of compiled code can hold that."""


def other_names(function: Callable[..., Any]) -> dict[str, str]:
    """Return the names of parameters that a public function takes beside ours, and ours of each.

    >>> import tapegrad as tg
    >>> other_names(tg.amax), other_names(tg.det)
    ({'axis': 'dim', 'keepdims': 'keepdim'}, {'input': 'A'})
    """
    signature = inspect.unwrap(function)
    parameters = _Parameters(signature)
    return {} if parameters.any and signature is function else parameters.others


def numpy_names(function: Callable[..., Any]) -> dict[str, str]:
    """Return NumPy's names of parameters that a public function takes, and ours of each.

    >>> import tapegrad as tg
    >>> numpy_names(tg.linalg.norm)
    {'axis': 'dim', 'keepdims': 'keepdim'}
    """
    return {theirs: ours for theirs, ours in other_names(function).items() if ours in NUMPY_NAMES}


def reduction_of(older: Sequence[bool | None], stacklevel: int) -> str:
    """Return how a loss is reduced by `size_average` and `reduce`, as in PyTorch's past, and warn as PyTorch does."""
    mean, every = (value is None or value for value in older)
    reduction = ("mean" if mean else "sum") if every else "none"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
        UserWarning,
        stacklevel=stacklevel + 1,
    )
    return reduction


def _in_our_names(
    call: str, arguments: dict[str, Any], names: Mapping[str, str], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return arguments by our names.

    Raises
    ------
    TypeError
        If one is given by both names, once with another value than its default.
    """
    older = [arguments.pop(name, None) for name in OLDER_NAMES["reduction"] if names.get(name) == "reduction"]
    if older.count(None) < len(older):
        arguments["reduction"] = reduction_of(older, 4)
    for theirs, ours in names.items():
        value = arguments.pop(theirs, missing)
        if value is missing:
            continue
        if arguments.get(ours, missing) is not defaults.get(ours, missing):
            raise TypeError(
                f"{call}() got {ours}={arguments[ours]!r} and {theirs}={value!r}; "
                f"{theirs} is {'NumPy' if ours in NUMPY_NAMES else 'PyTorch'}'s name of {ours}: give one of them"
            )
        arguments[ours] = value
    return arguments


def _others_of(names: tuple[str, ...]) -> dict[str, str]:
    """Return the other names of parameters, with ours of each; not those that a parameter before has."""
    return {
        other: name
        for place, name in enumerate(names)
        for other in _OTHER_NAMES.get(name, ())
        if other not in names[:place]
    }


class _Parameters:
    """The parameters of a function: those by position, those by keyword only, and the defaults."""

    def __init__(self, function: Callable[..., Any]) -> None:
        code = function.__code__
        n_positional, n_names = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
        self.positional, self.by_keyword = code.co_varnames[:n_positional], code.co_varnames[n_positional:n_names]
        values = function.__defaults__ or ()
        self.defaults = {
            **dict(zip(self.positional[len(self.positional) - len(values) :], values, strict=True)),
            **(function.__kwdefaults__ or {}),
        }
        self.others = _others_of(code.co_varnames[:n_names])
        self.any = bool(code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))

    def flags(self) -> tuple[str, ...]:
        """Return the parameters that are True or False."""
        return tuple(name for name, value in self.defaults.items() if isinstance(value, bool))

    def required(self) -> tuple[str, ...]:
        """Return parameters that another name of one may be given for, and those behind, if they have no default."""
        ours = [self.positional.index(name) for name in self.others.values() if name in self.positional]
        first = min(ours, default=len(self.positional))
        return tuple(name for name in self.positional[first:] if name not in self.defaults)


def _others_behind(names: tuple[str, ...]) -> tuple[str, ...]:
    return (*names, *_others_of(names))


_PLACES: Final = [f"a{place}" for place in range(32)]


@functools.cache
def _template(count: int, expression: str) -> Callable[[Any, Any, Any], FunctionType]:
    text = f"lambda call, other, missing: lambda {_listed(range(count))}: {expression}"
    names = {"__name__": __name__, "into": into}  # the module, for who asks whose function it is
    made: Callable[[Any, Any, Any], FunctionType] = eval(compile(text, __file__, "eval"), names)
    return made


def _listed(places: Iterable[int]) -> str:
    return ", ".join([_PLACES[place] for place in places])


def _renamed(
    template: FunctionType,
    name: str,
    positional: tuple[str, ...],
    by_keyword: tuple[str, ...],
    defaults: dict[str, Any],
) -> Caller:
    code = template.__code__.replace(
        co_varnames=(*positional, *by_keyword), co_argcount=len(positional), co_kwonlyargcount=len(by_keyword),
        co_name=name, co_qualname=name,
    )  # fmt: skip
    values = tuple([defaults[one] for one in positional if one in defaults])
    call = FunctionType(code, template.__globals__, name, values, template.__closure__)
    call.__kwdefaults__ = {one: defaults[one] for one in by_keyword if one in defaults}
    return call


# The result written to `out` --------------------------------------------------------------------------------------

OUT: Final = "out"


def into(out: Any, name: str, function: Caller, args: tuple[Any, ...], dtype: int | None = None) -> Any:
    """Write what a function returns to `out`, and return that; `dtype` says which argument is the dtype."""
    from tapegrad.ops.table.out import into as write  # few programs call functions so

    return write(out, name, function, args, dtype)


def dtype_place(names: tuple[str, ...]) -> int | None:
    """Return which of these parameters is the dtype."""
    return names.index("dtype") if "dtype" in names else None


# Ops ---------------------------------------------------------------------------------------------------------------


def caller(plans: PlanCache, signature: Callable[..., Any], operands: tuple[str, ...] = (), name: str = "") -> Caller:
    """Return the function that calls an op, with the parameters of `signature` and their other names.

    It hands over all arguments by position, in the order of `binder`, and so looks at none of them.

    Parameters
    ----------
    plans : PlanCache
        Of the op.
    signature : function
        Takes the operand, or a list of operands, and arguments.
    operands : tuple of str, optional
        The parameters that are operands, if these do not stand first: compiled code gets them first.
    name : str
        Of the function, if `signature` has another.
    """
    name = name or signature.__name__
    parameters = _Parameters(signature)
    if parameters.any:
        return lambda *args, **kwargs: plans.call(*args, **kwargs)
    positional, by_keyword = _others_behind(parameters.positional), _others_behind(parameters.by_keyword)

    def first_call(*args: Any) -> Any:
        result = plans.call(*args)
        (cell,) = template.__closure__ or ()
        cell.cell_contents = plans.call  # compiled by now; to read it each time would take 20 ns
        return result

    names = (*positional, *by_keyword)
    handed_over = _handed_over(names, operands)
    order = [names.index(one) for one in handed_over]
    expression = f"call({_listed(order)})"
    if OUT not in names:
        out = _PLACES[len(names)]
        arguments = f"({_listed(order)},), {dtype_place(handed_over)}"
        expression += f" if {out} is None else into({out}, {name!r}, call, {arguments})"
        names, by_keyword = (*names, OUT), (*by_keyword, OUT)
    template = _template(len(names), expression)(first_call, None, None)
    either = (*parameters.others, *parameters.others.values(), *parameters.required())
    defaults = {**parameters.defaults, **dict.fromkeys(either, missing), OUT: None}
    call = _renamed(template, name, positional, by_keyword, defaults)
    call.__annotations__ = {**signature.__annotations__, "return": "Tensor"}
    return call


def _handed_over(names: tuple[str, ...], operands: tuple[str, ...]) -> tuple[str, ...]:
    return (*operands, *(name for name in names if name not in operands))


def binder(signature: Callable[..., Any], operands: tuple[str, ...] = ()) -> Callable[[F], Callable[..., Any]]:
    """Return what makes a function that binds arguments, which has the parameters of `signature`, take the caller's."""
    parameters = _Parameters(signature)
    names = _handed_over((*_others_behind(parameters.positional), *_others_behind(parameters.by_keyword)), operands)
    theirs = parameters.others.keys()
    flags = set(parameters.flags())

    def decorate(bind: F) -> Callable[..., Any]:
        if parameters.any:
            return lambda *args, **kwargs: bind(
                *args, **_in_our_names(signature.__name__, kwargs, parameters.others, {})
            )
        if names == parameters.positional and not flags:
            return bind

        def bind_given(*args: Any, **kwargs: Any) -> Any:
            named = {name: value for name, value in zip(names, args) if value is not missing}  # noqa: B905  # may be few
            named.update(kwargs)
            for name in flags & named.keys():
                check_bool(signature.__name__.removesuffix("_along"), name, named[name])  # of max_along: users call max
            if not theirs.isdisjoint(named):
                _in_our_names(signature.__name__, named, parameters.others, {})
            return bind(**named)

        return bind_given

    return decorate


# Other functions ----------------------------------------------------------------------------------------------------

_SURPLUS: Final = "/"  # no name, so that it is given by position only


def with_numpy_names(function: F, module: str = "", has_out: bool = False) -> F:
    """Return a function of Python as one that takes other names of its parameters as well, and bools alone as flags.

    A parameter that is given its default counts as not given.

    Parameters
    ----------
    function : callable
    module : str
        Where the result is found under the function's name: pickle looks there.
    has_out : bool
        It takes `out`, too: what the result is written to.
    """
    if not isinstance(function, FunctionType):
        return function
    parameters = _Parameters(function)
    own_names = {*parameters.positional, *parameters.by_keyword}
    theirs = () if parameters.others.keys() <= own_names else tuple(parameters.others)
    further = (OUT,) if has_out and OUT not in own_names else ()
    flags = parameters.flags()
    if parameters.any or not (theirs or further):
        return function  # it has none, or takes them already
    required = parameters.required() if theirs else ()
    positional = (*parameters.positional, _SURPLUS, *theirs)
    names = (*positional, *parameters.by_keyword, *further)

    def other(*values: Any) -> Any:
        given = dict(zip(names, values, strict=True))
        out = given.pop(OUT) if further else None
        if out is not None:
            return into(out, function.__name__, other, (*values[:-1], None), dtype_place(names))
        if given.pop(_SURPLUS) is not None:
            return function(*values[: len(parameters.positional) + 1])  # raises Python's error
        for name in flags:
            check_bool(function.__name__, name, given[name])
        given = {
            name: value for name, value in given.items()
            if value is not missing and (value is not None or name not in theirs)
        }  # fmt: skip
        return function(**_in_our_names(function.__name__, given, parameters.others, parameters.defaults))

    own = [place for place, name in enumerate(names) if name != _SURPLUS and name not in (*theirs, *further)]
    tests = [f"a{names.index(name)} is None" for name in (_SURPLUS, *theirs, *further)]
    tests += [f"a{names.index(name)} is not missing" for name in required]
    tests += [f"(a{place} is True or a{place} is False)" for place in map(names.index, flags)]
    expression = f"call({_listed(own)}) if {' and '.join(tests)} else other({_listed(range(len(names)))})"
    code = function.__code__.replace(co_argcount=len(own), co_kwonlyargcount=0)
    by_position = FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
    template = _template(len(names), expression)(by_position, other, missing)
    defaults = {
        **parameters.defaults, **dict.fromkeys(required, missing),
        **dict.fromkeys((_SURPLUS, *theirs, *further), None),
    }  # fmt: skip
    call = _renamed(template, function.__name__, positional, (*parameters.by_keyword, *further), defaults)
    functools.update_wrapper(call, function)
    call.__module__ = module or function.__module__
    return call  # type: ignore[return-value]
