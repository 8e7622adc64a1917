"""Which dtypes `out` may have, by function: what a table of PyTorch's words says."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tapegrad.dtypes import TORCH_NAMES
from tapegrad.ops.table.write_checks import can_hold, cast_error
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import dtype_name

#: The dtypes of C++ in PyTorch's messages.
_C_NAMES: Final = {
    "float32": "float", "float64": "double", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
    "int64": "long int", "int32": "int", "int16": "short int", "int8": "signed char", "uint8": "unsigned char",
}  # fmt: skip

#: Functions that compute in the dtype of `out`, unless another one is asked for.
SUMS: Final = frozenset({"sum", "prod", "nansum", "mean", "nanmean", "cumsum", "cumprod"})
CREATING: Final = frozenset({
    "arange", "empty", "eye", "full", "linspace", "logspace", "normal", "ones", "rand", "randint", "randn", "randperm",
    "zeros",
})  # fmt: skip


_FLOATING: Final = "floating point"


class _Words(NamedTuple):
    """What PyTorch says of an `out` of another dtype, and which functions say so.

    Attributes
    ----------
    words : str
        Of the function's `name`, of PyTorch's names of dtypes (`Result`, `Out`), and of those of C++ (`result`, `out`).
    names : str
    exact : bool
        Whether `out` has the dtype of the result; else it may have any that can hold it.
    error : type
    """

    words: str
    names: str
    exact: bool = True
    error: type[Exception] = RuntimeError


_TABLE: Final = (
    _Words(
        "Expected out tensor to have dtype {result}, but got {out} instead",
        "addmm addmv aminmax argmax argmin as_strided_copy baddbmm bmm cholesky cholesky_ex clone cross det diag "
        "diagonal_copy eigh eigvalsh expand_copy frobenius_norm gather index_add index_copy index_reduce inv "
        "inv_ex isin ldl_factor ldl_factor_ex ldl_solve log_softmax lu lu_factor lu_factor_ex lu_solve lu_unpack "
        "matmul mm msort norm permute_copy qr renorm scatter scatter_add scatter_reduce slice_scatter slogdet "
        "softmax solve solve_ex sort split_with_sizes_copy squeeze_copy svd svdvals t_copy take_along_dim topk "
        "transpose_copy triangular_solve tril triu unbind_copy unfold_copy unsqueeze_copy vector_norm view_copy",
    ),
    _Words(
        "Found dtype {Out} but expected {Result}",
        "abs absolute bitwise_not ceil conj_physical fix floor frac ifft ihfft neg negative round sgn sign trunc",
    ),
    _Words("expected scalar_type {Result} but found {Out}", "cummax cummin logcumsumexp"),
    _Words("expected scalar type {Result} but found {Out}", "solve_triangular"),
    _Words("result dtype {Out} does not match input dtype {Result}", "dot vdot"),
    _Words("{name} does not support non-boolean outputs.", "isneginf isposinf signbit"),
    _Words(
        "Expected the dtype for input and out to match, but got {Result} for input's dtype and {Out} for out's dtype.",
        "amax amin",
    ),
    _Words("Expected object of scalar type {Result} but got scalar type {Out} for argument 'out'", "complex polar"),
    _Words("{name}(): self and result must have the same scalar type", "index_select masked_select"),
    _Words("linalg.matrix_norm expected out tensor dtype {Result} but got: {Out}", "matrix_norm nuclear_norm"),
    _Words("self and mat2 must have the same dtype, but got {Result} and {Out}", "addbmm"),
    _Words("addmv input tensors must have the same dtype, but got {Result}, {Result}, and {Out}", "mv"),
    _Words("torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending "
           "on whether out_int32 flag is True, but we got output tensor's dtype {Out}", "bucketize searchsorted"),
    _Words("the output given to {name} has dtype {Out} but the operation's result requires dtype {Result}",
           "float_power"),
    _Words("torch.{name}() expects mantissa and exponent of dtypes {Result}, but got {Out}", "frexp"),
    _Words("{name} is not yet implemented for tensors with different dtypes.", "heaviside"),
    _Words("torch.histogram: input tensor and hist tensor should have the same dtype, but got input {result} and hist "
           "{out}", "histc histogram"),
    _Words("tensordot: Expected the output tensor to have dtype {Result}, but got an output tensor with dtype {Out}",
           "inner tensordot"),
    _Words("output values must be of same type as input", "kthvalue"),
    _Words("multi_dot(): expected out tensor to have dtype {result} but got {out}", "chain_matmul multi_dot"),
    _Words("linalg.{name}: Expected out of dtype{Result} but found {Out}", "vecdot"),
    _Words("Expected tensor for 'values' to have the same type as tensor for argument #2 'self'", "median nanmedian"),
    _Words("expected scalar type '{Result}' but got '{Out}' for values output", "mode"),
    _Words("{name} expects {Result} tensor out, got: {Out}", "multinomial"),
    _Words("{name}: dtype of out: {Out} should be same as input: {Result}", "nan_to_num"),
    _Words("quantile() out tensor must be same dtype as the input tensor", "nanquantile quantile"),
    _Words("Expected self.dtype() == output.dtype() to be true, but got false.", "narrow_copy"),
    _Words("nonzero: Expected out tensor to have scalar type {Result} but got scalar type{Out}", "nonzero"),
    _Words("torch.{name}: Expected input and result to have the same dtype, but input has dtype{Result} and result has "
           "dtype {Out}", "ormqr"),
    _Words("{name}(): self and out expected to have the same dtype, but got self.dtype = {Result} and out.dtype = "
           "{Out}", "take"),
    _Words("Expected out type to be {Result} but got {Out}", "where"),
    _Words("dtype {Result} does not match dtype of out parameter ({Out})", " ".join(CREATING)),
    _Words("{name} only supports bool tensor for result, got: {Out}", "all any"),
    _Words("logsumexp(): Expected floating point type for result tensor, but got: {Out}", "logsumexp", False),
    _Words("torch.cat(): input types can't be cast to the desired output type {Out}",
           "cat column_stack concat concatenate dstack hstack row_stack stack vstack", False, TypeError),
    *[_Words(f"{name} expects a {kind} output tensor, but got {{Out}}", names or name, False) for name, names, kind in (
        ("fft", "", "complex"), ("fftn", "fft2 fftn ifft2 ifftn", "complex"), ("rfft", "", "complex"),
        ("rfftn", "rfft2 rfftn", "complex"), ("ihfftn", "ihfft2 ihfftn", "complex"), ("irfft", "", _FLOATING),
        ("irfftn", "irfft2 irfftn", _FLOATING), ("hfft", "", _FLOATING), ("hfftn", "hfft2 hfftn", _FLOATING),
    )],
    _Words("{name}: Expected result to be safely castable from {Result} dtype, but got result with dtype {Out}",
           "cholesky_inverse cholesky_solve matrix_power tensorinv tensorsolve", False),
    _Words("linalg.{name}: Expected result to be safely castable from {Result} dtype, but got result with dtype {Out}",
           "cond pinv", False),
    _Words("torch.linalg.{name}: Expected result to be safely castable from {Result} dtype, but got result with dtype "
           "{Out}", "eig eigvals householder_product lstsq matrix_rank", False),
)  # fmt: skip


_ROWS: Final = {name: row for row in _TABLE for name in row.names.split()}
#: Each of several results has its own dtype, but for these functions.
_CASTING: Final = frozenset({"eig", "lstsq"})
#: Functions whose results are copied if their operand is complex.
_OF_REAL_NUMBERS: Final = frozenset({"abs", "absolute", "ifft", "ihfft"})


def check_dtype(name: str, out: np.dtype, result: np.dtype, operand: np.dtype | None, number: int | None) -> None:
    """Raise PyTorch's error if a function does not write its result to an `out` of this dtype.

    Parameters
    ----------
    name : str
        Of the function.
    out, result : dtype
    operand : dtype, optional
        Of its first operand.
    number : int, optional
        Of the result, if there are several.
    """
    row = _ROWS.get(name)
    if number is not None and name not in _CASTING and (number or row is None):
        row = _TABLE[0]
    if name in _OF_REAL_NUMBERS and operand is not None and operand.kind == "c":
        row = None
    if out == result or (name in {"all", "any"} and out == np.uint8):
        return
    if row is None or not row.exact:
        if can_hold(out, result) and not (row is not None and _FLOATING in row.words and out.kind == "c"):
            return
        if row is None:
            raise cast_error(result, out)
    words = row.words.format(
        name=name, Result=TORCH_NAMES[result.name], Out=TORCH_NAMES[out.name],
        result=_C_NAMES.get(result.name, result.name), out=_C_NAMES.get(out.name, out.name),
    )  # fmt: skip
    raise row.error(f"{words.rstrip('.')}. Give {name}() an out of dtype {dtype_name(result)}")


def dtype_of(name: str, dtype: Any, out: np.dtype, operand: np.dtype | None) -> Any:
    """Return the dtype that a function computes in if it writes to `out`; None for the one that it has without.

    Raises
    ------
    RuntimeError
        If another dtype is asked for, or there is none to compute in.
    """
    if name not in CREATING and name not in SUMS:
        return dtype
    if dtype is not None:
        check_dtype(name, out, np.dtype(dtype), None, None if name in CREATING else 1)
    if operand is None or not name.endswith(("mean", "nansum")):
        return out
    if operand.kind not in "fc":
        return dtype if name.endswith("mean") else out  # means of integers are refused
    if name == "mean":
        if not can_hold(out, operand):
            raise cast_error(operand, out)
    elif out.kind != "f":
        raise NotImplementedError(f'"nansum_cpu" not implemented for {TORCH_NAMES[out.name]!r}')
    return out
