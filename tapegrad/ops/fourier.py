"""Ops: discrete Fourier transforms, by SciPy. The adjoint of each is another of them, so one rule serves all.

An op transforms any number of dimensions; its public functions of one and of two dimensions bind other arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import TORCH_NAMES, default_dtype, real_dtype
from tapegrad.forward.fourier import prepared_transform, transform
from tapegrad.forward.fourier import resized as resized_array
from tapegrad.ops.casts import cast
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import Bound, ErrorSample, Op, Sample, xp
from tapegrad.ops.table.public import FFT, Names, register
from tapegrad.ops.table.structural import all_dims, operation
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor

Shape = tuple[int, ...]


@operation(
    "resized",
    forward=resized_array,
    vjp=(lambda ct, x_shape: xp.resized(ct, x_shape),),
    family="fourier",
    linear=True,
    attrs=("shape",),
    oracle=lambda x, shape: np.pad(x, [(0, n) for n in shape])[tuple(map(slice, shape))],
    samples=(Sample(((4,),), {"shape": (2,)}), Sample(((2, 3),), {"shape": (3, 2)})),
    errors=(ErrorSample(lambda: xp.resized(None, (2,)), TypeError, "resized"),),
)
def resized(input: Any, shape: Shape) -> Bound:
    """Return a tensor of another shape: dimensions are cut, or get zeros, at their end."""
    return Bound((as_operand(input, "resized", "input", 1),), {"shape": shape})


# Rules -------------------------------------------------------------------------------------------------------------

_OPPOSITE: Final = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


class _Kind(NamedTuple):
    """A kind of transforms.

    Attributes
    ----------
    adjoint : str
        The transform that is its adjoint.
    before, after : float
        The factor of frequencies that stand for two, as half a spectrum has them: of what the adjoint takes, and of
        what it gives.
    of_real : bool
        It takes real numbers only.
    says : str
    value, derivative : str
        The formulas of one dimension with the usual scale.
    """

    adjoint: str
    before: float
    after: float
    of_real: bool
    says: str
    value: str
    derivative: str


_TURN, _BACK = r"e^{-2\pi \mathrm{i} j k/n}", r"e^{2\pi \mathrm{i} j k/n}"
_KINDS: Final = {
    "fft": _Kind("ifftn", 1, 1, False, "Discrete Fourier transform",
        rf"y_k = \sum_j x_j {_TURN}", rf"\bar x_j = \sum_k \bar y_k {_BACK}"),
    "ifft": _Kind("fftn", 1, 1, False, "Inverse discrete Fourier transform",
        rf"y_j = \frac{{1}}{{n}} \sum_k x_k {_BACK}", rf"\bar x_k = \frac{{1}}{{n}} \sum_j \bar y_j {_TURN}"),
    "rfft": _Kind("irfftn", 0.5, 1, True, "Half of the Fourier transform of real numbers: the rest is its conjugate",
        rf"y_k = \sum_j x_j {_TURN}", rf"\bar x_j = \mathrm{{Re}}(\sum_k \bar y_k {_BACK})"),
    "irfft": _Kind("rfftn", 1, 2, False, "Inverse of `{}`: real numbers from half of their Fourier transform",
        rf"y_j = \frac{{1}}{{n}} \sum_k c_k \mathrm{{Re}}(x_k {_BACK})",
        rf"\bar x_k = \frac{{c_k}}{{n}} \sum_j \bar y_j {_TURN}"),
    "hfft": _Kind("ihfftn", 1, 2, False, "Fourier transform, which is real, of half of a Hermitian signal",
        rf"y_k = \sum_j c_j \mathrm{{Re}}(x_j {_TURN})", rf"\bar x_j = c_j \sum_k \bar y_k {_BACK}"),
    "ihfft": _Kind("hfftn", 0.5, 1, True, "Inverse of `{}`: half of the signal of a real spectrum",
        rf"y_j = \frac{{1}}{{n}} \sum_k x_k {_BACK}",
        rf"\bar x_k = \frac{{1}}{{n}} \mathrm{{Re}}(\sum_j \bar y_j {_TURN})"),
}  # fmt: skip
_OF_HALF: Final = " Here c is 1 for the elements 0 and n/2, and 2 for the others."


@functools.lru_cache(maxsize=256)
def _weights(factor: float, length: int, dtype: np.dtype, behind: int) -> np.ndarray:
    """Return the factors of half a spectrum: frequencies 0 and n/2 stand for one, all others for two.

    So many dimensions stand behind that of the spectrum.
    """
    half = length // 2 + 1
    weights = np.full(half, factor, real_dtype(dtype))
    weights[0] = 1
    if length % 2 == 0:
        weights[-1] = 1
    weights.flags.writeable = False
    return weights.reshape((half,) + (1,) * behind)


def _weighted(x: Any, factor: float, s: Shape, dims: Shape) -> Any:
    return x if factor == 1 else x * _weights(factor, s[-1], x.dtype, x.ndim - 1 - dims[-1])


def _rule_of(kind: _Kind) -> Callable[..., Any]:
    def rule(ct: Any, x_shape: Shape, s: Shape, dims: Shape, norm: str, real: bool) -> Any:
        found = getattr(xp, kind.adjoint)(_weighted(ct, kind.before, s, dims), s, dims, _OPPOSITE[norm])
        found = _weighted(found, kind.after, s, dims)
        if real and not kind.of_real:
            found = xp.real(found)
        return found if found.shape == x_shape else xp.resized(found, x_shape)

    return rule


def _oracle_of(name: str) -> Callable[..., Any]:
    """Return the transform of a kind by NumPy, which has those of Hermitian signals for one dimension only."""

    def oracle(x: Any, s: Any = None, dim: Any = None, norm: Any = None) -> Any:
        module: Any = np.fft
        axes = tuple(range(-len(s), 0)) if dim is None and s is not None else dim
        if name == "hfft":
            return module.irfftn(np.conj(x), s, axes, _OPPOSITE[norm or "backward"])
        if name == "ihfft":
            return np.conj(module.rfftn(x, s, axes, _OPPOSITE[norm or "backward"]))
        return getattr(module, f"{name}n")(x, s, axes, norm)

    return oracle


# Arguments ---------------------------------------------------------------------------------------------------------


def _bind(name: str, kind: _Kind, input: Any, s: Any, dim: Any, norm: Any) -> Bound:
    x = as_operand(input, name, "input", 1)
    if x.dtype.kind not in "fc":
        x = cast(x, default_dtype())
    real = x.dtype.kind == "f"
    if kind.of_real and not real:
        found = TORCH_NAMES[x.dtype.name]
        if name.startswith("ihfft") and name != "ihfft":
            raise RuntimeError(
                f"Only supports floating-point dtypes, but found: {found}; {name}() takes no complex numbers"
            )
        valued = "real" if name[-1] == "t" else "real-valued"
        raise RuntimeError(
            f"{name} expects a {valued} input tensor, but got {found}; no complex numbers: take the real part"
        )
    s = s if s is None or isinstance(s, (tuple, list)) else (s,)
    if dim is None:
        if s is not None and len(s) > x.ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {x.ndim} dimensions.")
        dims = tuple(range(x.ndim if s is None else len(s)))
        dims = dims if s is None else tuple(x.ndim - len(s) + k for k in dims)
    else:
        dim = dim if isinstance(dim, (tuple, list)) else (dim,)
        if x.ndim == 0 and dim:
            raise IndexError(f"Dimension specified as {dim[0]} but tensor has no dimensions")
        if len({k % x.ndim for k in dim if -x.ndim <= k < x.ndim}) < len([k for k in dim if -x.ndim <= k < x.ndim]):
            raise RuntimeError(f"FFT dims must be unique; {name}() got {tuple(dim)}")
        dims = all_dims(name, x.ndim, dim)
    if s is not None and len(s) != len(dims):
        raise RuntimeError(f"When given, dim and shape arguments must have the same length; {name}() got {dim} and {s}")
    if not dims and name[0] != "f" and name[:2] != "if":
        raise RuntimeError(f"{name} must transform at least one axis")
    sizes = [x.shape[k] for k in dims]
    if kind.after == 2:
        sizes[-1] = 2 * (sizes[-1] - 1)
    for place, size in enumerate(s or ()):
        if size is not None and (size != -1 or name[-1] == "t"):
            sizes[place] = int(size)
    for size in sizes:
        if size < 1:
            raise RuntimeError(f"Invalid number of data points ({size}) specified; {name}() needs at least 1")
    norm = "backward" if norm is None else norm
    if norm not in _OPPOSITE:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"; use "backward", "ortho" or "forward"')
    return Bound((x,), {"s": tuple(sizes), "dims": dims, "norm": norm, "real": real})


# Functions ---------------------------------------------------------------------------------------------------------

_EXAMPLES: Final = {
    "fft": ("tg.tensor([1.0, 2.0, 1.0, 0.0])", ".abs()", "[4.0, 2.0, 0.0, 2.0]"),
    "ifft": ("tg.tensor([2.0, 1.0, 0.0, 1.0])", ".abs()", "[1.0, 0.5, 0.0, 0.5]"),
    "rfft": ("tg.tensor([1.0, 2.0, 1.0, 0.0])", ".abs()", "[4.0, 2.0, 0.0]"),
    "irfft": ("tg.tensor([2.0, 1.0, 0.0])", "", "[1.0, 0.5, 0.0, 0.5]"),
    "hfft": ("tg.tensor([1.0, 2.0, 1.0])", "", "[6.0, 0.0, -2.0, 0.0]"),
    "ihfft": ("tg.tensor([6.0, 0.0, -2.0, 0.0])", ".abs()", "[1.0, 2.0, 1.0]"),
}
_SAMPLES: Final = (
    Sample(((4,),)),
    Sample(((5,),), {"s": (4,), "norm": "ortho"}),
    Sample(((2, 3),), {"dim": (1, 0), "s": (3, 3)}),
    Sample(((3, 2, 3),), {"dim": (1,), "s": (5,), "norm": "forward"}),
)
_DOC = """{says}, of {dimensions}.

Parameters
----------
input : Tensor or array
{parameters}
norm : "backward", "ortho" or "forward", optional
    How sums are scaled, with n elements: by 1 and, in inverse transforms, by 1/n (the default); by
    :math:`1/\\sqrt n`; by 1/n and, in inverse transforms, by 1.

Returns
-------
Tensor

Raises
------
RuntimeError
    If a size is less than 1, or other arguments do not fit.
IndexError
    If `input` does not have such a dimension.

Notes
-----
{formulas}Derivative: the adjoint transform, which is `{adjoint}` with the opposite scale; the real part of it for real
numbers.

Examples
--------
>>> import tapegrad as tg
>>> tg.fft.{name}({argument}){then}.tolist()
{result}
"""
_SIZE = "n : int, optional\n    Its length is cut, or filled with zeros, to this{}.\ndim : int"
_SIZES = (
    "s : tuple of int, optional\n    Their lengths are cut, or filled with zeros, to these{}; -1 for those they have."
    "\ndim : tuple of int{}"
)
_OF_RESULT = " (the length of the result)"


def _functions(name: str, kind: _Kind) -> None:
    """Make the op of a kind of transforms, and its three functions."""

    def bind(input: Any, s: Any = None, dim: Any = None, norm: Any = None) -> Bound:
        return _bind(f"{name}n", kind, input, s, dim, norm)

    def bind_two(input: Any, s: Any = None, dim: Any = (-2, -1), norm: Any = None) -> Bound:
        return _bind(f"{name}2", kind, input, s, dim, norm)

    def bind_one(input: Any, n: Any = None, dim: Any = -1, norm: Any = None) -> Bound:
        return _bind(name, kind, input, n, dim, norm)

    of_real = kind.of_real
    words = "Only supports floating-point" if name == "ihfft" else f"{name}n expects a real-valued input tensor"
    op = Op(
        name=f"{name}n",
        operands=("x",),
        forward=lambda x, s, dims, norm, real: transform(name, x, s, dims, norm),
        prepare_forward=lambda layouts, attrs: prepared_transform(
            name, layouts[0], attrs["s"], attrs["dims"], attrs["norm"]
        ),
        vjp=(_rule_of(kind),),
        family="fourier",
        attrs=("s", "dims", "norm", "real"),
        linear=True,
        real_only=of_real,
        bind=bind,
        oracle=_oracle_of(name),
        samples=_SAMPLES,
        errors=(
            ErrorSample(lambda: xp_function(np.ones(3), norm="none"), RuntimeError, "Invalid normalization mode"),
            ErrorSample(lambda: xp_function(np.ones(3), s=(0,)), RuntimeError, "Invalid number of data points (0)"),
            ErrorSample(lambda: xp_function(np.ones(3), dim=(1,)), IndexError, "Dimension out of range"),
            ErrorSample(lambda: xp_function(np.ones(3), dim=(0, 0)), RuntimeError, "FFT dims must be unique"),
            *((ErrorSample(lambda: xp_function(np.ones(3) * 1j), RuntimeError, words),) if of_real else ()),
        ),
    )
    call_n = connect(op, 3)
    call_two = connect(op, 3, name=f"{name}2", bind=bind_two)
    call_one = connect(op, 3, name=name, bind=bind_one)

    def one(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        result: Tensor = call_one(input, n, dim, norm)
        return result

    def two(
        input: Any, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
    ) -> Tensor:
        result: Tensor = call_two(input, s, dim, norm)
        return result

    def any_number(
        input: Any, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None
    ) -> Tensor:
        result: Tensor = call_n(input, s, dim, norm)
        return result

    xp_function = any_number
    setattr(xp, op.name, any_number)
    longer = _OF_RESULT if kind.after == 2 else ""
    function: Any
    more = _OF_HALF if "c_" in kind.value else ""
    for end, function, dimensions, parameters in (
        ("", one, "one dimension", _SIZE.format(longer)),
        ("2", two, "two dimensions", _SIZES.format(longer, "")),
        (
            "n",
            any_number,
            "several dimensions",
            _SIZES.format(longer, ", optional\n    Default the last, all without `s`."),
        ),
    ):
        own = f"{name}{end}"
        argument, then, result = _EXAMPLES[name]
        if end == "2":
            argument, result = argument.replace("([", "([[").replace("])", "]])"), f"[{result}]"
        function.__name__ = function.__qualname__ = own
        function.__module__ = FFT
        function.__doc__ = _DOC.format(
            says=kind.says.format(f"{name.replace('i', '', 1)}{end}"), dimensions=dimensions, parameters=parameters,
            formulas="" if end else f":math:`{kind.value}` and\n:math:`{kind.derivative}`.{more}\n\n",
            adjoint=kind.adjoint.removesuffix("n") + end, name=own, then=then, argument=argument, result=result,
        )  # fmt: skip
        function.op = op
        of_numpy = (f"fft.{own}",) if not (name[-4:] == "hfft" and end) else ()
        adapter = {"a": "input"} if not end else {"a": "input", "axes": "dim"}
        register(own, function, Names(namespaces=(FFT,), functions=of_numpy, adapter=adapter))


for _name, _kind in _KINDS.items():
    _functions(_name, _kind)
