"""`gradcheck` and `gradgradcheck`: backward passes against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tapegrad.autograd.backward import grad
from tapegrad.func.products import jvp
from tapegrad.tensor import Tensor
from tapegrad.testing.calls import Call, as_tuple, cotangents_of, gradients_of, leaf, repeated, verdict
from tapegrad.testing.options import check_batched_gradients, check_batched_tangents, check_fast
from tapegrad.testing.report import Limits, Part, compare
from tapegrad.testing.tangents import check_tangents

__all__ = ["gradcheck", "gradgradcheck"]


def gradcheck(
    function: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False, check_batched_grad: bool = False, check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:  # fmt: skip
    """Check the gradients of a function against central finite differences.

    Every element of every input that requires grad is moved, and a backward pass starts from every element of every
    output that requires grad. So the inputs should be small, of double precision, and away from kinks.

    Parameters
    ----------
    function : callable
        From tensors to a tensor or a tuple of tensors. It is called with copies of the inputs, so it must use its
        arguments: a tensor that it refers to otherwise stays as it is.
    inputs : Tensor or tuple
        The arguments. Tensors that require grad are perturbed; other arguments stay as they are.
    eps : float
        The largest perturbation.
    atol, rtol : float
        A gradient may differ by ``atol + rtol * |finite difference|``.
    raise_exception : bool
        Raise an error if the check fails; otherwise return False.
    nondet_tol : float
        By how much a second backward pass over the same graph may differ from the first.
    check_forward_ad, check_backward_ad : bool
        Check forward mode, as `tapegrad.testing.jvpcheck` does; check backward passes.
    check_batched_grad, check_batched_forward_grad : bool
        Check passes with a batch of cotangents, by ``is_grads_batched``; check `tapegrad.func.vmap` of forward mode.
    fast_mode : bool
        Compare one random combination of the elements of each Jacobian, in place of all elements.
    check_undefined_grad, check_grad_dtypes, masked
        PyTorch's options. They have no effect: a pass starts from one output, so that the cotangents of the others are
        undefined; gradients have the dtypes of their tensors; all tensors are dense.

    Returns
    -------
    bool
        Whether the gradients agree.

    Raises
    ------
    GradcheckError
        If they do not agree. The message names the elements that differ most, both values and the difference.
    ValueError
        If no input requires grad.
    AssertionError
        If an option asks for a check of passes of which another one says that they are not checked.
    TypeError
        If the function returns anything but tensors.

    Warns
    -----
    UserWarning
        If an input is of single precision.

    Notes
    -----
    A complex output is checked as two real ones, its imaginary and its real part; the gradient with respect to a
    complex input is the slope along 1 plus i times that along i, as in PyTorch. Finite differences are extrapolated
    from three steps (L. F. Richardson, "The approximate arithmetical solution by finite differences", 1911); this
    estimates their error too. A last pass starts from random cotangents of all outputs at once: it notices rules that
    are not linear in the cotangent.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.testing import gradcheck
    >>> x = tg.tensor([0.5, 2.0], dtype=tg.float64, requires_grad=True)
    >>> gradcheck(lambda x: x.sin() * x, x)
    True
    >>> gradcheck(lambda x: x.sin() * x.detach(), x, raise_exception=False)
    False
    """
    call, limits = Call(function, inputs, "gradcheck"), Limits(eps, atol, rtol, nondet_tol)
    for is_right, words in (
        (check_forward_ad or check_backward_ad, "Expected at least one of check_forward_ad or check_backward_ad"),
        (check_backward_ad or not check_batched_grad, "Setting check_batched_grad=True requires check_backward_ad"),
        (check_forward_ad or not check_batched_forward_grad,
         "Setting check_batched_forward_grad=True requires check_forward_ad"),
    ):  # fmt: skip
        if not is_right:
            raise AssertionError(f"{words} to be True")  # PyTorch's type
    forward = partial(check_tangents, tangents=call.random_tangents() if fast_mode else None)
    checks: tuple[tuple[bool, Callable[[Call, Limits], None]], ...] = (
        (check_backward_ad, check_fast if fast_mode else _check),
        (check_forward_ad, forward),
        (check_batched_grad, check_batched_gradients),
        (check_batched_forward_grad, check_batched_tangents),
    )
    return verdict(call, [check for is_wanted, check in checks if is_wanted], limits, raise_exception)


def gradgradcheck(
    function: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True,
    nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
    check_batched_grad: bool = False, check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True,
    fast_mode: bool = False, masked: bool = False,
) -> bool:  # fmt: skip
    """Check the second derivatives of a function: the gradients of its gradients, against finite differences.

    Parameters
    ----------
    function, inputs, eps, atol, rtol, raise_exception, nondet_tol
        As for `gradcheck`.
    grad_outputs : Tensor or tuple of Tensor, optional
        Cotangents of the outputs that require grad, random ones by default. Those that require grad are perturbed too.
    check_fwd_over_rev, check_rev_over_rev : bool
        Check forward mode of the gradients; check backward passes of these.
    check_batched_grad, fast_mode : bool
        As for `gradcheck`.
    gen_non_contig_grad_outputs, check_undefined_grad, check_grad_dtypes, masked
        PyTorch's; without meaning here.

    Returns
    -------
    bool
        Whether the second derivatives are those of the gradients. Whether the gradients are right, `gradcheck` says.

    Raises
    ------
    GradcheckError, ValueError, TypeError
        As `gradcheck`. In the message, an output is a gradient with respect to an input, and the cotangents are
        counted after the function's inputs.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.testing import gradgradcheck
    >>> x = tg.tensor([0.5, 2.0], dtype=tg.float64, requires_grad=True)
    >>> gradgradcheck(lambda x: x.exp() * x, x)
    True
    """
    call, limits = Call(function, inputs, "gradgradcheck"), Limits(eps, atol, rtol, nondet_tol)
    checks: tuple[tuple[bool, Callable[[Call, Limits], None]], ...] = (
        (check_rev_over_rev, check_fast if fast_mode else _check),
        (check_fwd_over_rev, partial(check_tangents, by=jvp)),
        (check_batched_grad, check_batched_gradients),
    )
    wanted = [partial(_check_second, check, grad_outputs) for is_wanted, check in checks if is_wanted]
    return verdict(call, wanted, limits, raise_exception)


def _check_second(check: Callable[[Call, Limits], None], grad_outputs: Any, call: Call, limits: Limits) -> None:
    roots = [value for value in call.outputs() if value.requires_grad]
    if not roots:
        return call.expect_zeros(roots, limits.eps)
    seeds = tuple(map(leaf, cotangents_of(roots))) if grad_outputs is None else as_tuple(grad_outputs)
    if len(seeds) != len(roots):
        raise ValueError(f"gradgradcheck got {len(seeds)} grad_outputs for {len(roots)} outputs that require grad.")
    places, count = list(call.places.values()), len(call.inputs)

    def gradients(*arguments: Any) -> tuple[Tensor, ...]:
        outputs = [value for value in as_tuple(call.function(*arguments[:count])) if value.requires_grad]
        wanted, seeds = [arguments[place] for place in places], arguments[count:]
        found = grad(outputs, wanted, seeds, create_graph=True, allow_unused=True, materialize_grads=True)
        return tuple(found)

    second = Call(gradients, (*call.inputs, *seeds), "gradgradcheck")
    second.output_words = {k: f"the gradient with respect to input {place}" for k, place in enumerate(places)}
    second.input_words = {count + k: f"grad_outputs[{k}]" for k in range(len(seeds))}
    check(second, limits)


def _check(call: Call, limits: Limits) -> None:
    outputs = call.outputs()
    roots = [(place, output) for place, output in enumerate(outputs) if output.requires_grad]
    if not roots:
        return call.expect_zeros(outputs, limits.eps)
    numerical = call.jacobians(limits.eps)
    # PyTorch's order: imaginary parts, among real outputs; then real parts.
    parts = [(place, output, 1j if output.dtype.kind == "c" else 1) for place, output in roots]
    parts += [(place, output, 1) for place, output in roots if output.dtype.kind == "c"]
    cotangents = dict(zip([place for place, _ in roots], cotangents_of([output for _, output in roots]), strict=True))
    combined = [np.zeros((tensor.numel(), 1), np.result_type(tensor.dtype, float)) for tensor in call.wanted]
    for place, output, unit in parts:
        name = "" if output.dtype.kind != "c" else "imaginary" if unit == 1j else "real"
        prefix = f"While considering the {name} part of complex outputs only, " if name else ""
        columns = call.columns(outputs, place)
        for number, actual in enumerate(_jacobians(output, call.wanted, unit, limits.nondet_tol)):
            tensor = call.wanted[number]
            values, errors = (array[..., columns] for array in numerical[number])
            values = _part(values, unit)
            expected = values[:, 0] + 1j * values[:, 1] if tensor.dtype.kind == "c" else values[:, 0]
            part = call.part(f"{prefix}Jacobian", place, output, tensor, "backward")
            compare(actual, expected, errors.sum(1), limits, part)
            combined[number] += actual @ _part(cotangents[place], unit).reshape(-1, 1)
    _expect_linear(call, [output for _, output in roots], list(cotangents.values()), combined, limits)


def _part(values: np.ndarray, unit: complex) -> np.ndarray:
    return values.imag if unit == 1j else values.real


def _jacobians(output: Tensor, wanted: Sequence[Tensor], unit: complex, nondet_tol: float) -> list[np.ndarray]:
    """Return the gradients of the output's elements, or of their imaginary parts if the unit is i, as columns."""
    columns = []
    for index in np.ndindex(output.shape):
        cotangent = np.zeros(output.shape, output.dtype)
        cotangent[index] = unit
        columns.append(repeated([output], wanted, [cotangent], nondet_tol))
    return [
        np.hstack([np.empty((tensor.numel(), 0)), *(column[number] for column in columns)])
        for number, tensor in enumerate(wanted)
    ]


def _expect_linear(
    call: Call, roots: Sequence[Tensor], cotangents: Sequence[np.ndarray], combined: Sequence[np.ndarray],
    limits: Limits,
) -> None:  # fmt: skip
    """Check that a pass from all outputs at once, with cotangents other than 0 and 1, combines the Jacobians."""
    for tensor, actual, expected in zip(
        call.wanted, gradients_of(roots, call.wanted, cotangents), combined, strict=True
    ):
        words = "the gradient from random grad_outputs", (), call.words_of(tensor), tensor.shape
        part = Part("backward not multiplied by grad_output", *words, reference="the checked Jacobians")
        compare(actual, expected, np.zeros(expected.shape), limits, part)
