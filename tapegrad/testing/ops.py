"""`check_op`: what the tests of an op check, for an operation of the user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.backward import backward, grad
from tapegrad.modes import no_grad
from tapegrad.ops.table.op import Op, Sample, op_table
from tapegrad.tensor import Tensor, from_array
from tapegrad.testing.calls import leaf
from tapegrad.testing.gradients import gradcheck

__all__ = ["check_op"]


def check_op(op: Callable[..., Any] | Op | str, *, seed: int = 0, rtol: float = 1e-9) -> None:
    """Check an operation with its samples: values, gradients, memory layouts, single precision, broadcasting.

    Parameters
    ----------
    op : callable, Op or str
        What `tapegrad.kernel_op` returned, an op, or its name.
    seed : int
        Of the random operands, which are drawn from the op's domain.
    rtol : float
        By how much results and gradients may differ, relatively, where they should be the same.

    Raises
    ------
    ValueError
        If there is no such op, or it has no samples.
    AssertionError
        If a value differs from the oracle's, a layout or a dtype changes a result, or a rule differs from its kernel.
    GradcheckError
        If a gradient differs from finite differences.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.testing import check_op
    >>> cube = tg.kernel_op(lambda x: x * x * x, lambda ct, x: 3.0 * ct * x * x, name="cube")
    >>> check_op(cube)
    """
    name = op.name if isinstance(op, Op) else op if isinstance(op, str) else getattr(op, "__name__", "")
    if name not in op_table:
        raise ValueError(f"there is no op {name!r}; check_op takes what kernel_op returned")
    row, rng = op_table[name], np.random.default_rng(seed)
    if not row.samples:
        raise ValueError(
            f"op {name} has no samples: give kernel_op the shapes of operands, samples=[Sample(((3,), ()))]"
        )
    for sample in row.samples:
        _check_sample(row, sample, _drawn(row, sample, rng), rtol)


def _drawn(op: Op, sample: Sample, rng: np.random.Generator) -> list[np.ndarray]:
    values = sample.values or (None,) * len(sample.shapes)
    return [
        value(shape, np.dtype(np.float64), rng) if callable(value)
        else rng.uniform(*op.domain, shape) if value is None else np.asarray(value)
        for shape, value in zip(sample.shapes, values, strict=True)
    ]  # fmt: skip


def _check_sample(op: Op, sample: Sample, operands: list[np.ndarray], rtol: float) -> None:
    def call(*tensors: Any) -> Any:
        return op.called(tensors, sample.attrs)

    def agree(found: Any, expected: Any, what: str, tolerance: float = rtol) -> None:
        np.testing.assert_allclose(
            np.asarray(found), expected, tolerance, tolerance, err_msg=f"{op.name} {sample.shapes}: {what}"
        )

    wanted = [number for number in range(len(operands)) if callable(op.rule(number))]
    with no_grad():
        out = call(*operands)
    if op.oracle is not None:
        agree(out._data, op.oracle(*operands, **sample.attrs), "the value is not the oracle's")
    leaves = [leaf(array, number in wanted) for number, array in enumerate(operands)]
    if wanted:
        gradcheck(call, tuple(leaves))
    ct = leaf(np.random.default_rng(1).uniform(0.5, 2.0, out.shape), False)
    gradients = _gradients(call, leaves, wanted, ct)
    by_rules = grad(call(*leaves), [leaves[number] for number in wanted], ct, create_graph=True) if wanted else ()
    for number, by_kernel, by_rule in zip(wanted, gradients, by_rules, strict=True):
        agree(by_rule.detach()._data, by_kernel, f"the rule of operand {number} differs from its kernel")
    for number, found, expected in zip(wanted, _gradients(call, leaves, wanted, ct, 1.0), gradients, strict=True):
        agree(found, expected + 1, f"the gradient of operand {number}, which is used elsewhere too, is no sum")
    for what, change in _LAYOUTS.items():
        changed = [leaf(change(array), number in wanted) for number, array in enumerate(operands)]
        agree(call(*changed).detach()._data, out._data, f"the value differs {what}")
        for number, found, expected in zip(wanted, _gradients(call, changed, wanted, ct), gradients, strict=True):
            agree(found, expected, f"the gradient of operand {number} differs {what}")
    single = [leaf(array.astype(np.float32), number in wanted) for number, array in enumerate(operands)]
    result = call(*single)
    assert result.dtype == np.float32, f"{op.name}: the result of single precision has dtype {result.dtype}"
    agree(result.detach()._data, out._data, "the value differs in single precision", 1e-4)
    ct = leaf(ct._data.astype(np.float32), False)
    for number, found, expected in zip(wanted, _gradients(call, single, wanted, ct), gradients, strict=True):
        agree(found, expected, f"the gradient of operand {number} differs in single precision", 1e-3)


def _gradients(
    call: Callable[..., Any], leaves: list[Tensor], wanted: list[int], ct: Tensor, elsewhere: float = 0.0
) -> list[np.ndarray]:
    """Return the gradients of leaves; `elsewhere` is a gradient of each that a later operation brings before."""
    if not wanted:
        return []
    for tensor in leaves:
        tensor.grad = None
    outputs, cts = [call(*leaves)], [ct]
    for number in wanted if elsewhere else ():
        outputs.append(leaves[number].clone())
        cts.append(from_array(np.full_like(leaves[number]._data, elsewhere)))
    backward(outputs, cts)
    gradients = [leaves[number].grad for number in wanted]
    return [gradient._data for gradient in gradients if gradient is not None]


_LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "with every second element of an array": lambda array: np.repeat(array, 2, -1)[..., ::2] if array.ndim else array,
    "in another order of memory": lambda array: np.array(array, order="F"),
    "backwards in memory": lambda array: array[..., ::-1].copy()[..., ::-1] if array.ndim else array,
}
