"""Loss of sequences of classes that are not aligned with the scores (CTC): a composite, and ops of its recursion."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from tapegrad.forward.computed import computed
from tapegrad.kernels.alignments import MOST, alignments_address
from tapegrad.kernels.along import has_kernel
from tapegrad.ops.along import floating
from tapegrad.ops.arithmetic import add, div, neg, where
from tapegrad.ops.gather import gather, out_of_bounds
from tapegrad.ops.indexing import getitem
from tapegrad.ops.losses import REDUCTIONS, reduced
from tapegrad.ops.movement import reshape
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.elementwise import elementwise
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, Sample, op_table, xp
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.ops.table.structural import operation
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor, from_array

_NEVER: Final = -np.inf  # the logarithm of the probability of what cannot be


def _sum_of_three(x: Any, y: Any, z: Any) -> Any:
    top = xp.where(x > y, x, y)
    top = xp.where(top > z, top, z)
    top = xp.where(abs(top) == np.inf, 0.0, top)
    total = xp.exp(x - top) + xp.exp(y - top) + xp.exp(z - top)
    return xp.where(total == 0, _NEVER, xp.log(xp.where(total == 0, 1.0, total)) + top)


def _share(ct: Any, own: Any, out: Any) -> Any:
    return ct * xp.exp(own - xp.where(out == _NEVER, 0.0, out))


log_add_three = elementwise(
    "log_add_three", ("x", "y", "z"), None,
    (
        lambda ct, x, out: _share(ct, x, out),
        lambda ct, y, out: _share(ct, y, out),
        lambda ct, z, out: _share(ct, z, out),
    ),
    fx=_sum_of_three, doc="Logarithm of the sum of three exponentials; the slope is 0 where all are 0.",
    samples=(Sample(((3,), (3,), (3,))), Sample(((2, 3), (3,), (2, 1)))),
    oracle=lambda x, y, z: np.logaddexp(np.logaddexp(x, y), z), real_only=True,
)  # fmt: skip


def _later(x: Any, by: int, fill: float) -> Any:
    """Return the states `by` places later, or earlier where it is negative; a number stands where there is none."""
    states = x.shape[-1]
    gap = np.full((*x.shape[:-1], min(abs(by), states)), fill, x.dtype)
    return xp.cat([gap, x[..., : max(states - by, 0)]] if by > 0 else [x[..., -by:], gap], -1)


def _states_by_numpy(scores: Any, leaps: Any) -> np.ndarray:
    out = np.full(scores.shape, _NEVER, scores.dtype)
    out[:1, :, :2] = scores[:1, :, :2]
    for t in range(1, len(out)):
        own, one, two = (np.pad(out[t - 1], ((0, 0), (k, 0)), constant_values=_NEVER) for k in range(3))
        ways = np.logaddexp(own, one[:, :-1]), two[:, :-2] + leaps
        out[t] = np.logaddexp(*ways) + scores[t]
    return out


def _states_rule(ct: Any, leaps: Any, out: Any) -> Any:
    """Return the cotangents of all steps, from the last to the first."""
    found, later, steps = [], 0.0, out.shape[0]
    for t in range(steps - 1, 0, -1):
        own, before = ct[t] + later, out[t - 1]
        found.append(own)
        ways = before, _later(before, 1, _NEVER), _later(before, 2, _NEVER) + leaps
        total = xp.log_add_three(*ways)
        shares = [_share(own, way, total) for way in ways]
        later = shares[0] + _later(shares[1], -1, 0.0) + _later(shares[2], -2, 0.0)
    first = np.broadcast_to(np.arange(out.shape[-1]) < 2, out.shape[1:])
    return xp.stack([xp.where(first, ct[0] + later, 0.0), *found[::-1]]) if steps else ct


def _geometry(scores: Layout, leaps: Layout) -> list[int] | None:
    fits = scores.dtype == leaps.dtype and has_kernel(scores) and has_kernel(leaps) and scores.size
    return [0, *scores.shape] if fits else None


def _prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Any:
    scores, geometry = layouts[0], _geometry(*layouts)
    if geometry is None:
        return _states_by_numpy
    kernel = alignments_address(scores.dtype.name, False)
    return computed(kernel, geometry, scores.shape, scores.dtype, _states_by_numpy, by_status=True)


def _step(plan: Plan, operand: int) -> Step | None:
    geometry = _geometry(*plan.layouts)
    if geometry is None or plan.layouts[0].shape[-1] > MOST:
        return None
    sources = [plan.source(name) for name in ("ct", "leaps", "out")]
    return Step(functools.partial(alignments_address, plan.layouts[0].dtype.name, True), geometry, sources)


@operation(
    "ctc_states", operands=("scores", "leaps"), family="scans", forward=_states_by_numpy, prepare_forward=_prepare,
    vjp=(_states_rule, NOT_DIFFERENTIABLE), step=_step, real_only=True,
)  # fmt: skip
def ctc_states(scores: Any, leaps: Any) -> Bound:
    """Logarithms of the probabilities of all ways to reach each state at each step: its own score, and all before.

    A way begins in one of the first two states. `leaps` is what is added where a state is left out: 0, or minus
    infinity. See `tapegrad.kernels.alignments`.
    """
    return Bound((scores, leaps))


del op_table["ctc_states"]  # most states are minus infinity, where nothing has finite differences: `ctc_loss` is tested


class _Lengths(NamedTuple):
    """A number for each sequence, and the least and the largest of them; 0 of none."""

    array: np.ndarray
    least: int
    most: int


def _lengths(call: str, name: str, value: Any, n: int) -> _Lengths:
    found = np.asarray(getattr(value, "_data", value)).reshape(-1)
    if found.dtype.kind not in "iu":
        raise RuntimeError(f"{name} must be integral; {call}() got dtype {found.dtype}")
    if len(found) != n:
        raise RuntimeError(f"{name} must be of size batch_size {n}; {call}() got {len(found)}")
    numbers = found.tolist()  # there are few
    least, most = min(numbers, default=0), max(numbers, default=0)
    if least < 0:
        raise RuntimeError(f"Expected {name} to have value at least 0, but got value {least}")
    return _Lengths(found.astype(np.int64), least, most)


def _classes(call: str, targets: Any, n: int, counts: _Lengths, classes: int) -> np.ndarray:
    """Return the target classes, (n, longest); those behind a sequence's end are 0."""
    given = np.asarray(as_operand(targets, call, "targets", 2)._data)
    if given.dtype.kind not in "iu":
        raise RuntimeError(f"targets must be integral; {call}() got dtype {given.dtype}")
    lengths, longest = counts.array, counts.most
    found = np.zeros((n, longest), np.int64)
    # Where all are of one length, no place is outside.
    inside: Any = ... if counts.least == longest else np.arange(longest) < lengths[:, None]
    if given.ndim == 2:
        if len(given) != n or given.shape[1] < longest:
            raise RuntimeError(
                f"Expected tensor to have size at least {longest} at dimension 1, but got size {list(given.shape)} for "
                f"argument #2 'targets' (while checking arguments for {call})"
            )
        found[inside] = given[:, :longest][inside]
    else:
        if given.size != lengths.sum():
            raise RuntimeError(
                f"Expected tensor to have size {lengths.sum()} at dimension 0, but got size {given.size} for argument "
                f"#2 'targets' (while checking arguments for {call}): the targets of all sequences, one after another"
            )
        found[inside] = given.reshape(found.shape if inside is ... else -1)
    if out_of_bounds(found, classes, "classes"):
        raise RuntimeError(f"targets must be classes from 0 to {classes - 1}; {call}() got others")
    return found


def _by_numpy(
    x: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """Add up the probabilities of all paths that give a sequence of targets."""
    import itertools

    losses = []
    rows = np.exp(x - np.log(np.exp(x).sum(-1, keepdims=True)))
    for n, (steps, length) in enumerate(zip(input_lengths, target_lengths, strict=True)):
        total = 0.0
        for path in itertools.product(range(x.shape[2]), repeat=steps):
            merged = [one for one, _ in itertools.groupby(path) if one != blank]
            if merged == list(targets[n][:length]):
                total += np.prod([rows[t, n, one] for t, one in enumerate(path)])
        losses.append(-np.log(total))
    loss = np.array(losses, x.dtype)
    if reduction == "mean":
        return (loss / np.maximum(target_lengths, 1)).mean().astype(x.dtype)
    return loss if reduction == "none" else loss.sum()


def _of_scores(function: Any, x: Any, **options: Any) -> Any:
    """Compute the loss of scores: PyTorch's derivative by logarithms of probabilities is right for such alone."""
    return function(x.log_softmax(-1) if hasattr(x, "log_softmax") else xp.log_softmax(x, -1), **options)


_TARGETS: Final = np.array([[1, 2], [2, 2]])


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS_OF_PARTS)
@composite(
    (
        Sample(((4, 2, 3),), {"targets": _TARGETS, "input_lengths": (4, 4), "target_lengths": (2, 2)}),
        Sample(((4, 2, 3),), {"targets": _TARGETS, "input_lengths": (3, 4), "target_lengths": (1, 2),
                              "reduction": "none"}),
        Sample(((3, 1, 3),), {"targets": _TARGETS[:1] - 1, "input_lengths": (3,), "target_lengths": (2,), "blank": 2,
                              "reduction": "sum"}),
    ),
    _by_numpy, real_only=True, call=_of_scores, kinks=(),
)  # fmt: skip
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    r"""Negative log-likelihood of sequences of classes, over all ways to align them with the steps.

    Formula: :math:`y = -\log \sum_\pi \prod_t p_{t,\pi_t}` over all sequences :math:`\pi` of classes, one for each
    step, that give the target when repetitions and then blanks are left out.

    Parameters
    ----------
    log_probs : Tensor or array, (steps, n, classes) or (steps, classes)
        Logarithms of probabilities, as `log_softmax` gives them.
    targets : Tensor or array of integers, (n, longest) or (sum of lengths,)
        The classes of each sequence.
    input_lengths, target_lengths : sequence of int, (n,)
        How many steps, and how many classes, each sequence has.
    blank : int
        The class of steps that stand for nothing.
    zero_infinity : bool
        A sequence that is too short for its classes has the loss 0, and not infinity.

    Raises
    ------
    RuntimeError
        If shapes, lengths or classes do not fit.

    Notes
    -----
    The forward recursion of A. Graves et al., "Connectionist temporal classification" (2006). Its derivative is that by
    `log_probs`. PyTorch's is less by their exponentials, which makes no difference behind `log_softmax`.

    A mean is that of the losses divided by the numbers of classes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.log_softmax(tg.zeros(2, 1, 2), -1)
    >>> tg.nn.functional.ctc_loss(x, tg.tensor([[1]]), (2,), (1,))
    tensor(0.2877)
    """
    call = "ctc_loss"
    x = floating(call, log_probs)
    if x.ndim not in (2, 3):
        raise RuntimeError(f"log_probs must be (steps, n, classes) or (steps, classes); {call}() got {list(x.shape)}")
    is_single = x.ndim == 2
    x = reshape(x, (x.shape[0], 1, x.shape[1])) if is_single else x
    steps, n, classes = x.shape
    if not 0 <= blank < classes:
        raise RuntimeError(f"blank must be in label range; {call}() got {blank} for {classes} classes")
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction; {call}() takes 'mean', 'sum' or 'none'")
    counts = _lengths(call, "input_lengths", input_lengths, n)
    lengths = _lengths(call, "target_lengths", target_lengths, n)
    if counts.most > steps:
        raise RuntimeError(f"Expected input_lengths to have value at most {steps}, but got value {counts.most}")
    goal = _classes(call, targets, n, lengths, classes)
    losses = neg(_log_likelihood(x, goal, counts, lengths, blank))
    if zero_infinity:
        losses = where(losses == np.inf, 0.0, losses)
    if reduction == "mean":
        losses = div(losses, from_array(np.maximum(lengths.array, 1).astype(x.dtype)))
    return reduced(call, reshape(losses, ()) if is_single else losses, reduction)


def _log_likelihood(x: Tensor, goal: np.ndarray, counts: _Lengths, lengths: _Lengths, blank: int) -> Tensor:
    """Return the logarithms of the probabilities of sequences, (n,).

    The states of a sequence are its classes with blanks around each. A state is reached from itself, from the one
    before, and from the one before that if only a blank between two classes is left out.
    """
    rows = np.arange(len(goal))
    labels = np.full((len(goal), 2 * goal.shape[1] + 1), blank)
    labels[:, 1::2] = goal
    leaps = np.zeros(labels.shape, bool)
    leaps[:, 2:] = (labels[:, 2:] != labels[:, :-2]) & (labels[:, 2:] != blank)

    def possible(condition: np.ndarray) -> Tensor:
        return from_array(np.where(condition, 0, _NEVER).astype(x.dtype))

    steps = max(counts.most, 1)
    index = np.empty((steps, *labels.shape), np.int64)
    index[:] = labels
    scores = gather(x if steps == x.shape[0] else getitem(x, slice(0, steps)), 2, from_array(index))
    reached, ends = ctc_states(scores, possible(leaps)), np.maximum(counts.array, 1) - 1
    last = getitem(reached, (ends, rows, 2 * lengths.array))
    before_last = getitem(reached, (ends, rows, np.maximum(2 * lengths.array - 1, 0)))
    if not lengths.least:
        before_last = add(before_last, possible(lengths.array > 0))
    out = log_add_three(last, before_last, _NEVER)
    return out if counts.least else where(counts.array > 0, out, possible(lengths.array == 0))
