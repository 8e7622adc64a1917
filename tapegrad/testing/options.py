"""What options of the checks add: random directions in place of single elements, and passes in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tapegrad.autograd.backward import grad
from tapegrad.func.mapping import vmap
from tapegrad.func.products import jvp
from tapegrad.tensor import Tensor
from tapegrad.testing.calls import Call, cotangents_of, gradients_of, leaf, repeated
from tapegrad.testing.differences import slope
from tapegrad.testing.report import GradcheckError, Limits, compare

__all__ = ["check_batched_gradients", "check_batched_tangents", "check_fast"]

_BATCH = 2
_FAST = "In fast mode, random combinations of all elements are compared; fast_mode=False names the elements."


def check_fast(call: Call, limits: Limits) -> None:
    """Compare products of each Jacobian with a random cotangent and a random tangent: one number of each.

    As in PyTorch, the sum of the absolute factors of the elements multiplies the tolerance.
    """
    outputs = call.outputs()
    roots = [(place, output) for place, output in enumerate(outputs) if output.requires_grad]
    if not roots:
        return call.expect_zeros(outputs, limits.eps)
    tangents, cts = cotangents_of(call.wanted, seed=1), cotangents_of([output for _, output in roots])
    gradients = [
        repeated([output], call.wanted, [ct], limits.nondet_tol) for (_, output), ct in zip(roots, cts, strict=True)
    ]
    for number, (tensor, tangent) in enumerate(zip(call.wanted, tangents, strict=True)):
        directions = [tangent if own is tensor else np.zeros(own.shape, own.dtype) for own in call.wanted]
        values, errors = slope(call.moved, call.point, directions, step=limits.eps / 2)
        for (place, output), ct, found in zip(roots, cts, gradients, strict=True):
            columns, weights = call.columns(outputs, place), np.abs(ct).ravel()
            looser = limits._replace(atol=limits.atol * float(weights.sum() * np.abs(tangent).sum()))
            actual = np.vdot(tangent.ravel(), found[number].ravel()).real
            expected = np.vdot(ct.ravel(), values[columns]).real
            one, other, error = (np.full((1, 1), number) for number in (actual, expected, weights @ errors[columns]))
            part = call.part("Jacobian", place, output, tensor, "backward")._replace(output_shape=(), input_shape=())
            try:
                compare(one, other, error, looser, part)
            except GradcheckError as found_error:
                raise GradcheckError(f"{found_error}\n{_FAST}") from None


def check_batched_gradients(call: Call, limits: Limits) -> None:
    """Compare one pass with a batch of cotangents, by ``is_grads_batched``, with a pass for each."""
    for place, output in enumerate(call.outputs()):
        if not output.requires_grad:
            continue
        seeds = _batch([output])[0]

        def batched(output: Tensor = output, seeds: np.ndarray = seeds) -> Sequence[Tensor]:
            found: Sequence[Tensor] = grad(
                output, call.wanted, leaf(seeds, False), retain_graph=True, allow_unused=True, is_grads_batched=True,
                materialize_grads=True,
            )  # fmt: skip
            return found

        one_by_one = [gradients_of([output], call.wanted, [seed]) for seed in seeds]
        expected = [np.stack([own[k].ravel() for own in one_by_one]) for k in range(len(call.wanted))]
        _agree(batched, expected, f"gradient computation for output {place}", limits)


def check_batched_tangents(call: Call, limits: Limits) -> None:
    """Compare forward mode under `tapegrad.func.vmap`, with a batch of tangents, with a call for each."""
    primals = tuple([leaf(array, False) for array in call.point])
    places = [place for place, output in enumerate(call.outputs()) if output.requires_grad]

    def tangents(*vectors: Tensor) -> tuple[Tensor, ...]:
        found = jvp(lambda *inputs: tuple(call.outputs(inputs)), primals, vectors)[1]
        return tuple([found[place] for place in places])

    batch = _batch(call.wanted)
    one_by_one = [tangents(*[leaf(own[k], False) for own in batch]) for k in range(_BATCH)]
    expected = [np.stack([np.ravel(own[k].detach().numpy()) for own in one_by_one]) for k in range(len(places))]
    _agree(lambda: vmap(tangents)(*[leaf(own, False) for own in batch]), expected, "forward mode", limits)


def _batch(tensors: Sequence[Tensor]) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [
        np.stack([own * (1 + rng.random()) for _ in range(_BATCH)]).astype(own.dtype) for own in cotangents_of(tensors)
    ]


def _agree(
    batched: Callable[[], Sequence[Tensor]], expected: Sequence[np.ndarray], what: str, limits: Limits
) -> None:  # fmt: skip
    try:
        found = [own.detach().numpy().reshape(_BATCH, -1) for own in batched()]
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}; {what} raises this") from error
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        difference = np.abs(one - other).max(initial=0.0)
        if not np.allclose(one, other, limits.rtol, limits.atol, equal_nan=True):
            raise GradcheckError(
                f"gradcheck or gradgradcheck failed while testing batched {what}: result {number} differs from that of "
                f"single calls by {difference:.3g}."
            )
