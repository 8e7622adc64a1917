"""Docstrings: a family's common sections, written once, joined with an op's sentence, formula and own sections.

An op without an example gets its family's. What that prints is looked up in `tapegrad.ops.table.outputs`, which
`tools/stubs.py` writes, since computing it would take most of the time of an import. For an op that is not listed there
yet it is computed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np

from tapegrad.forward.ufuncs import Function
from tapegrad.ops.table.op import Op
from tapegrad.ops.table.outputs import OUTPUTS
from tapegrad.printing import format_tensor
from tapegrad.runtime.named_tuples import NamedTuple

F = TypeVar("F", bound=Callable[..., Any])


class Common(NamedTuple):
    """What the docstrings of a family say in these sections.

    A function's own parameters stand between `parameters` and `options`, its own errors after `raises`; if it says what
    it returns, that stands in place of `returns`.
    """

    parameters: str = ""
    options: str = ""
    returns: str = "Tensor"
    raises: str = ""


NOTHING: Final = Common(returns="")
RESULT: Final = Common()
INPUT: Final = "input : Tensor, array or number"
_NOT_A_TENSOR = "TypeError\n    If {} is no tensor, array or number."
_NO_DIM = "IndexError\n    If `input` does not have such a dimension."
_DIMS = f"""\
{INPUT}
dim : int or tuple of int, optional
    Dimensions to reduce; default all. NumPy's names, ``axis`` and ``keepdims``, do as well, here and in all functions.
keepdim : bool
    Keep them, with length 1."""
_SAME_SHAPE = "Tensor\n    Of the operand's shape."

UNARY: Final = Common(INPUT, returns=_SAME_SHAPE, raises=_NOT_A_TENSOR.format("the operand"))
ACTIVATION: Final = UNARY._replace(options="inplace : bool\n    Write the result to `input`.")
BINARY: Final = Common(
    "input, other : Tensor, array or number",
    returns="Tensor\n    Of the shape that the operands broadcast to.",
    raises=f"RuntimeError\n    If the shapes do not broadcast.\n{_NOT_A_TENSOR.format('an operand')}",
)


def binary_docs(signature: Callable[..., Any]) -> Common:
    """Return the sections of a function of two operands, with the names of its parameters."""
    names = signature.__code__.co_varnames[: signature.__code__.co_argcount]
    return BINARY._replace(parameters=BINARY.parameters.replace("input, other", ", ".join(names)))


REDUCTION: Final = Common(_DIMS, raises=_NO_DIM)
REDUCTION_IN_DTYPE: Final = Common(
    _DIMS,
    "dtype : dtype, optional\n    To compute in; default that of `input`, and int64 for integers and bool.",
    raises=_NO_DIM,
)
POSITION: Final = Common(
    f"{INPUT}\ndim : int, optional\n    Default all, in order.\nkeepdim : bool\n    Keep the dimension, with length 1.",
    returns="Tensor\n    Of dtype int64, without gradient.",
    raises="IndexError\n    If `input` does not have such a dimension, or there is nothing to choose from.",
)
MOVEMENT: Final = Common(INPUT)
MOVEMENT_OF_DIMS: Final = Common(INPUT, raises=_NO_DIM)
ALONG: Final = Common(f"{INPUT}\ndim : int", returns=_SAME_SHAPE, raises=_NO_DIM)
ALONG_IN_DTYPE: Final = ALONG._replace(options="dtype : dtype, optional\n    To compute in.")
_REDUCTION = 'reduction : {"mean", "sum", "none"}'
_LOSS = 'Tensor\n    A number; for "none" the loss of each element.'
_NO_REDUCTION = "ValueError\n    If `reduction` is something else."
LOSS: Final = Common("input, target : Tensor or array", _REDUCTION, _LOSS, _NO_REDUCTION)
LOSS_OF_PARTS: Final = Common("", _REDUCTION, _LOSS, _NO_REDUCTION)
NEW_TENSOR: Final = Common(
    options="dtype : dtype, optional\ndevice : device, optional\n    Only the CPU.\nrequires_grad : bool"
)
_OUT: Final = "\nout : Tensor, optional\n    To write the result to; it gives the default dtype."
CREATED: Final = NEW_TENSOR._replace(options=f"{NEW_TENSOR.options}{_OUT}")
RANDOM: Final = Common(
    options=f"generator : Generator, optional\n    Default the one that `manual_seed` seeds.\n{NEW_TENSOR.options}"
)
DRAWN: Final = RANDOM._replace(options=f"{RANDOM.options}{_OUT}")

_PARAMETERS: Final = "\n\nParameters\n----------\n"
_RETURNS: Final = "\n\nReturns\n-------\n"
_RAISES: Final = "\n\nRaises\n------\n"
# By family: the operands of an example, and the range that they lie in.
_EXAMPLES: Final[dict[str, tuple[list[Any], float, float]]] = {
    "unary": ([[0.5, 2.0]], 0.5, 2.0),
    "binary": ([[0.5, 2.0], [2.0, 2.0]], 0.5, 2.0),
    "reduction": ([[[1.0, 0.0], [3.0, 2.0]]], 0.0, 3.0),
}


def docstring(doc: str, common: Common, derivative: str = "", example: str = "") -> str:
    """Return the docstring of an op.

    Parameters
    ----------
    doc : str
        The op's own: a sentence, and sections in NumPy's order.
    common : Common
        The sections of the family.
    derivative : str
        A formula or a sentence.
    example : str
        A call and what it prints, for an op that has no example of its own.
    """
    if common is RESULT and "Returns\n" in doc:  # true of many: import takes no longer for them
        return doc
    doc = _without_indent(doc).rstrip()
    notes = derivative and f"\n\nNotes\n-----\nDerivative: {derivative}"
    example = example and f"\n\nExamples\n--------\n>>> import tapegrad as tg\n{example}"
    doc, heading, section = doc.partition("\n\nExamples\n--------\n")
    example = f"{heading}{section}" if heading else example
    doc, heading, section = doc.partition("\n\nNotes\n-----\n")
    notes = f"{heading}{section}" if heading else notes
    if "\n---" not in doc:  # no section of its own
        return f"{doc}{_all_sections(common)}{notes}{example}"
    doc, heading, section = doc.partition("\n\nWarns\n-----\n")
    notes = f"{heading}{section}{notes}"
    sections = ""
    for heading, before, default, after in (
        (_RAISES, common.raises, "", ""),
        (_RETURNS, "", common.returns, ""),
        (_PARAMETERS, common.parameters, "", common.options),
    ):
        doc, _, section = doc.partition(heading)
        text = "\n".join([part for part in (before, section or default, after) if part])
        sections = f"{heading}{text}{sections}" if text else sections
    return f"{doc}{sections}{notes}{example}"


def documented(common: Common) -> Callable[[F], F]:
    """Join the docstring of the decorated function with what its kind has in common."""

    def decorate(function: F) -> F:
        function.__doc__ = docstring(function.__doc__ or "", common)
        return function

    return decorate


@functools.cache
def _all_sections(common: Common) -> str:
    """Return the sections of a docstring in which an op has none of its own."""
    text = common.parameters + ("\n" if common.parameters and common.options else "") + common.options
    pairs = (_PARAMETERS, text), (_RETURNS, common.returns), (_RAISES, common.raises)
    return "".join([heading + text for heading, text in pairs if text])


def _without_indent(doc: str) -> str:
    """Return a docstring without the indentation of its function, which Python takes away from version 3.13 on."""
    return doc if "\n---" in doc else doc.replace("\n    ", "\n")


def op_docstring(op: Op, doc: str, common: Common, derivative: str = "", module: str = "tapegrad") -> str:
    """Return the docstring of an op, with the example of its family, in which it is a function of `module`."""
    example = ""
    if has_example(op):
        values = _example_operands(op)
        operands = _of_family(op.family) if values is _EXAMPLES[op.family][0] else _as_tensors(values)
        dim = ", dim=1" if op.family == "reduction" else ""
        call = f"{module.replace('tapegrad', 'tg')}.{op.name}({operands}{dim})"
        example = f">>> {call}\n{OUTPUTS.get(op.name) or example_output(op)}"
    return docstring(doc, common, derivative, example)


def _as_tensors(operands: list[Any]) -> str:
    return ", ".join([f"tg.tensor({values})" for values in operands])


@functools.cache
def _of_family(family: str) -> str:
    """Return the operands of the family's example as they are written: numbers take long to print."""
    return _as_tensors(_EXAMPLES[family][0])


def has_example(op: Op) -> bool:
    """Whether the family of an op has an example."""
    return op.family in _EXAMPLES


def example_output(op: Op) -> str:
    """Return what the example of an op prints."""
    forward = op.forward.other if isinstance(op.forward, Function) else op.forward  # ours would be compiled now
    attrs = {"dim": 1} if op.family == "reduction" else {}
    return format_tensor(np.asarray((op.oracle or forward)(*map(np.array, _example_operands(op)), **attrs)))


def _example_operands(op: Op) -> list[Any]:
    """Return the operands of the family's example, or others that lie in the domain of the op."""
    operands, least, most = _EXAMPLES[op.family]
    low, high = op.domain
    if low <= least and most <= high:
        return operands
    values = [round(low + part * (high - low), 2) for part in (0.25, 0.75)]
    return [[values, values[::-1]]] if op.family == "reduction" else [values for _ in op.operands]
