"""Errors that one side raises and the other does not: each is explained in docs/understand/semantics.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Error:
    """An error that one side raises: the calls that it is raised by, its words, and the reason."""

    call: str
    words: str
    reason: str
    of_nothing: bool = False  # only if the other side's result has no elements

    def is_one(self, lines: Sequence[str], message: str, size_of: Callable[[str], int]) -> bool:
        """Whether it is the error of the last of these lines, or of the gradients of the lines before.

        `size_of` is the number of elements of the other side's result of a line.
        """
        where = lines[:-1] if lines[-1] == "gradients" else lines[-1:]
        return bool(re.search(self.words, message)) and any(
            re.search(self.call, line) and not (self.of_nothing and size_of(line)) for line in where
        )


#: Errors that only tapegrad raises. A program ends there.
REFUSED = (
    Error(
        r"softm|clamp|clip|amax|amin", r"not implemented for", "PyTorch looks at the dtype only if there are elements"
    ),
    Error(r"pow|\*\*", r"Integers to negative integer powers", "NumPy shows through; PyTorch gives 0"),
    Error(r"\bview", r"view size is not compatible", "strides are NumPy's"),
    Error(r"einsum", r"expected m1 and m2 to have the same dtype", "PyTorch multiplies where it sums one product"),
    Error(r"where", r"boolean tensor, but got a tensor with dtype uint8", "PyTorch takes it for bools, with a warning"),
    Error(r"", r"^index .* is out of bounds", "PyTorch looks only if there are elements", of_nothing=True),
    Error(r"\broll\(", r"Dimension out of range", "PyTorch rolls nothing along any dimension", of_nothing=True),
    Error(r"max_pool|interpolate", r"not implemented for ('\w+'|dtype uint8)", "PyTorch has loops for integers"),
    Error(r"conv1d", r"kernel size should be greater than zero", "PyTorch looks only if there are channels"),
    Error(r"cat|stack", r"Dimension out of range", "PyTorch joins tensors of shape (0,) along any dimension"),
    Error(
        r"fill_|zero_|setitem|nan_to_num_|index_put_|tri[lu]_|conj_physical_",
        r"more than one element of the written-to",
        "PyTorch writes one number several times, and what changes nothing not at all",
    ),
    Error(r"_\(|__i\w+__|setitem", r"read-only", "a part of what was stretched, with distinct elements"),
    Error(r"addcmul", r"alpha must not be a floating point number", "PyTorch cuts the fraction off"),
)

#: Errors that only PyTorch raises.
ACCEPTED = (
    Error(r"segment_reduce", r"derivative for aten::_segment_reduce_backward", "PyTorch lacks the second derivative"),
    Error(
        r"pow|\*\*|hypot|logaddexp|conv2d|ldexp|addcmul|round|multi(label)?_margin_loss|softsign|threshold|"
        r"multilabel_soft_margin_loss|F\.(un)?fold",
        r"not implemented for '\w+'",
        "PyTorch has no loop for the dtype",
    ),
    Error(
        r"pow|\*\*|hypot|logaddexp|a(rc)?tan2|div|/|igammac?|gaussian_nll_loss",
        r"the `-` operator, (with|on) a bool tensor",
        "raised by derivatives of PyTorch's",
    ),
    Error(r"cdist", r"derivative for '_cdist_backward' is not", "PyTorch lacks the derivative of the derivative"),
    Error(r"\bcond\(", r"output 0 of LinalgInvEx, is at version 1", "PyTorch writes over what it saved"),
    Error(r"hardtanh|relu6", r"Bool inputs not supported", "bools are numbers"),
    Error(r"threshold", r"cannot be converted to type uint8_t", "a fraction below 0 is cut off, too"),
    Error(r"hinge_embedding", r"mean\(\): could not infer output dtype", "integers are numbers"),
    Error(r"(gru|lstm|rnn_\w+)_cell", r"can't be cast to the desired output type", "integers are numbers"),
    Error(r"soft_margin_loss", r"can't be cast to the desired output type", "integers are numbers"),
    Error(r"m\.fft\.", r"MKL FFT error", "of no signals PyTorch's library has none", of_nothing=True),
    Error(r"batch_norm", r"mixed dtype \(CPU\)", "weights of bools or integers are numbers"),
    Error(
        r"__setitem__", r"masked_fill_ only .* unsigned char", "masks of bytes choose, as where PyTorch reads by one"
    ),
    Error(r"einsum", r"modified by an inplace operation", "a product of nothing is not saved", of_nothing=True),
    Error(r"cumulative_trapezoid", r"received a bool input", "taken if there is none", of_nothing=True),
    Error(r"binary_cross_entropy\(", r"elements of input should be between 0 and 1", "nan stays nan"),
    Error(r"gradient\(", r"does not support uint8 input", "differences of integers are taken in double precision"),
    Error(r"soft_margin_loss|hinge_embedding|tanhshrink", r"the `-` operator, .* bool tensor", "bools are numbers"),
    Error(r"bilinear", r"_trilinear does not support automatic", "as of real numbers"),
    Error(r"embedding_bag", r"to have one of the following scalar types", "PyTorch has no loop for the dtype"),
    Error(r"repeat_interleave", r"Dimension out of range", "one number is repeated along its last dimension"),
    Error(r"pow|\*\*", r"Integers to negative integer powers", "NumPy raises if there are elements", of_nothing=True),
    Error(r"clamp|clip", r"output with shape .* doesn't match the broadcast", "of PyTorch's derivative of clamp"),
    Error(r"softplus", r"not implemented for '(Bool|Byte|Char|Short|Int|Long)'", "PyTorch has no loop for the dtype"),
    Error(r"linear|mm|mv|dot|matmul|einsum|@", r"not implemented for 'Bool'", "PyTorch has no loop for the dtype"),
    Error(r"(v\d+)\.copy_\(\1\)", r"more than one element of the written-to", "copying onto itself is no write"),
    Error(r" = \S+ % |remainder", r"derivative for aten::remainder is not implemented", "of a number by a tensor"),
    Error(r"a(rc)?(sin|cos|tan)h_", r"derivative for 'inplace version of a\w+h' is not", "as out of place"),
    Error(r"heaviside", r"not yet implemented for tensors with different dtypes", "promoted, as of other functions"),
    Error(r"nan_to_num|silu", r"not support automatic differentiation for outputs with complex", "as of real numbers"),
    Error(
        r"hardsigmoid|multi_margin_loss|multilabel_margin_loss|embedding_bag|igammac?|gammaincc?",
        r"derivative for .* is not implemented",
        "PyTorch lacks the derivative",
    ),
    Error(r"mse_loss", r"not implemented for 'Complex", "PyTorch has no loop for the dtype"),
    Error(
        r"logaddexp|where|ldexp|lerp|setitem|fill_|copy_", r"isFloatingType\(grad", "derivatives of real beside complex"
    ),
    Error(r"addcdiv", r"can't be cast to the desired output type", "of PyTorch's derivative by bools or integers"),
    Error(
        r"\b(eigh?|eigvalsh?|svd(vals)?|cond|matrix_norm|pinv|det)\(",
        r"specified up to multiplication by e\^\{i phi\}",
        "no phase is checked, nor what is nan; a determinant has none",
    ),
    Error(r"sgn_\(", r"ZeroTensors are immutable", "of PyTorch's second derivative"),
    Error(r"allclose", r"did not match", "tensors of two dtypes are compared"),
    Error(r"_\(", r"some elements of the input tensor and the written-to", "what is written over is copied first"),
    Error(r"setitem", r"Index put requires the source and destination dtypes match", "what is written is converted"),
    Error(r"\bview", r"view size is not compatible", "strides are NumPy's"),
    Error(
        r"floor_divide|//|floordiv|heaviside",
        r"derivative for aten::(floor_divide|heaviside)_? is not",
        "they are flat",
    ),
    Error(r"\bkron\(", r"view size is not compatible", "strides are NumPy's"),
    Error(r"max_unpool", r"invalid max index", "of several nans the pools take the first"),
    Error(r"setitem|fill_|copy_", r"isDifferentiableType\(grad", "integers never require grad, here"),
    Error(r"", r"Autograd not support dtype: (Long|Int|Short|Char|Byte|Bool)", "the same, of such integers"),
    Error(r"nll_loss|cross_entropy", r"grad_input must be contiguous", "of PyTorch's second derivative"),
)

#: Of a view that was taken before its base wanted a gradient, PyTorch says this until its `grad_fn` is read.
LEAF = "a leaf Variable that requires grad"


def is_half_written(line: str, message: str) -> bool:
    """Whether PyTorch may have written to a tensor before it raised; tapegrad writes nothing then."""
    return " = " not in line and "ZeroDivisionError" in message


def known_error(
    lines: Sequence[str], message: str, errors: Sequence[Error], size_of: Callable[[str], int] = lambda line: 1
) -> bool:
    """Whether an error of the last line, which may stand for the gradients, is one of those that are known."""
    return any(error.is_one(lines, message, size_of) for error in errors)
