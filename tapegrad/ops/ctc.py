"""Loss of sequences of classes that are not aligned with the scores (CTC): a composite, and ops of its recursion."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad.forward.computed import computed
from tapegrad.kernels.alignments import MOST, alignments_address
from tapegrad.kernels.along import has_kernel
from tapegrad.ops.along import floating
from tapegrad.ops.arithmetic import div, neg, where
from tapegrad.ops.broadcasting import contiguous
from tapegrad.ops.gather import out_of_bounds
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


def _labels(paths: Any, blank: int) -> np.ndarray:
    """Return the class of each state, (n, states)."""
    labels = np.full((len(paths), 2 * paths.shape[1] - 3), blank)
    labels[:, 1::2] = paths[:, 2:]
    return labels


def _leaps(labels: np.ndarray, dtype: np.dtype, blank: int) -> np.ndarray:
    """Return what is added where a state is left out, (n, states): 0, or minus infinity where that is impossible."""
    leaps = np.full(labels.shape, _NEVER, dtype)
    leaps[:, 2:][(labels[:, 2:] != labels[:, :-2]) & (labels[:, 2:] != blank)] = 0
    return leaps


def _ends(paths: Any, steps: int) -> np.ndarray:
    """Return whether a state is one of those in which its sequence may end, (steps, n, states)."""
    counts, last = paths[:, :1], 2 * paths[:, 1:2]
    state = np.arange(2 * paths.shape[1] - 3)
    found: np.ndarray = (np.arange(steps)[:, None, None] == counts - 1) & ((state == last) | (state == last - 1))
    return found


def _states_by_numpy(x: Any, paths: Any, blank: int) -> np.ndarray:
    steps, classes, labels = x.shape[0], x.shape[2], _labels(paths, blank)
    words = out_of_bounds(labels, classes, "classes")
    if words:
        raise RuntimeError(f"targets must be classes from 0 to {classes - 1}; ctc_loss(): {words}")
    leaps, out = _leaps(labels, x.dtype, blank), np.full((steps + 1, *labels.shape), _NEVER, x.dtype)
    for t in range(steps):
        scores = np.take_along_axis(x[t], labels, 1)
        if t == 0:
            out[0, :, :2] = scores[:, :2]
        else:
            own, one, two = (np.pad(out[t - 1], ((0, 0), (k, 0)), constant_values=_NEVER) for k in range(3))
            out[t] = np.logaddexp(np.logaddexp(own, one[:, :-1]), two[:, :-2] + leaps) + scores
        out[t][(t >= paths[:, :1]) | (np.arange(labels.shape[1]) > 2 * paths[:, 1:2])] = _NEVER
    total = np.logaddexp.reduce(np.where(_ends(paths, steps), out[:-1], _NEVER), (0, 2))
    out[-1, :, 0] = np.where((paths[:, :2] == 0).all(1), 0, total)
    return out


def _states_rule(ct: Any, paths: Any, out: Any, x_shape: tuple[int, ...], blank: int) -> Any:
    """Return the cotangents of all steps, from the last to the first."""
    (steps, n, classes), paths, later = x_shape, np.asarray(paths), 0.0
    labels = _labels(paths, blank)
    leaps = _leaps(labels, ct.dtype, blank)
    total, ct_total = (xp.reshape(one[steps, :, 0], (1, n, 1)) for one in (out, ct))
    out, ct = out[:steps], ct[:steps]
    ct = ct + xp.where(_ends(paths, steps), _share(ct_total, out, total), 0.0)
    found = []
    for t in range(steps - 1, 0, -1):
        own, before = ct[t] + later, out[t - 1]
        found.append(own)
        ways = before, _later(before, 1, _NEVER), _later(before, 2, _NEVER) + leaps
        sum_of = xp.log_add_three(*ways)
        shares = [_share(own, way, sum_of) for way in ways]
        later = shares[0] + _later(shares[1], -1, 0.0) + _later(shares[2], -2, 0.0)
    first = xp.where(np.arange(out.shape[-1]) < 2, ct[0] + later, 0.0)
    return xp.put_along(xp.stack([first, *found[::-1]]), np.broadcast_to(labels, out.shape).copy(), 2, classes)


def _geometry(scores: Layout, paths: Layout, blank: int) -> list[int] | None:
    fits = has_kernel(scores) and scores.size and paths.contiguous
    return [0, *scores.shape, paths.shape[1] - 2, blank] if fits else None


def _prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Any:
    (scores, paths), blank = layouts, attrs["blank"]
    geometry, by_numpy = _geometry(scores, paths, blank), functools.partial(_states_by_numpy, blank=blank)
    if geometry is None:
        return by_numpy
    kernel = alignments_address(scores.dtype.name, False)
    shape = scores.shape[0] + 1, scores.shape[1], 2 * paths.shape[1] - 3
    return computed(kernel, geometry, shape, scores.dtype, by_numpy, by_status=True)


def _step(plan: Plan, operand: int) -> Step | None:
    scores, paths = plan.layouts
    geometry = _geometry(scores, paths, plan.attrs["blank"])
    if geometry is None or 2 * paths.shape[1] - 3 > MOST:
        return None
    sources = [plan.source(name) for name in ("ct", "paths", "out")]
    return Step(functools.partial(alignments_address, scores.dtype.name, True), geometry, sources)


@operation(
    "ctc_states", operands=("x", "paths"), attrs=("blank",), family="scans", forward=_states_by_numpy,
    prepare_forward=_prepare, vjp=(_states_rule, NOT_DIFFERENTIABLE), step=_step, real_only=True,
)  # fmt: skip
def ctc_states(x: Any, paths: Any, blank: int) -> Bound:
    """Logarithms of the probabilities of all ways to reach each state; see `tapegrad.kernels.alignments`."""
    return Bound((x, paths), {"blank": blank})


del op_table["ctc_states"]  # most states are minus infinity, where nothing has finite differences: `ctc_loss` is tested


class _Lengths(NamedTuple):
    """A number for each sequence, and the least and the largest of them; 0 of none."""

    numbers: Sequence[int]
    least: int
    most: int


def _lengths(call: str, name: str, value: Any, n: int) -> _Lengths:
    found = np.asarray(getattr(value, "_data", value))
    if found.dtype.kind not in "iu":
        raise RuntimeError(f"{name} must be integral; {call}() got dtype {found.dtype}")
    if found.size != n:
        raise RuntimeError(f"{name} must be of size batch_size {n}; {call}() got {found.size}")
    numbers = found.ravel().tolist()  # there are few
    least, most = (min(numbers), max(numbers)) if n else (0, 0)
    if least < 0:
        raise RuntimeError(f"Expected {name} to have value at least 0, but got value {least}")
    return _Lengths(numbers, least, most)


def _paths(call: str, targets: Any, counts: _Lengths, lengths: _Lengths) -> np.ndarray:
    """Return what kernels take: steps, the number of classes, and those, (n, 2 + longest); 0 behind the last."""
    given = np.asarray(as_operand(targets, call, "targets", 2)._data)
    if given.dtype.kind not in "iu":
        raise RuntimeError(f"targets must be integral; {call}() got dtype {given.dtype}")
    n, longest, total = len(counts.numbers), lengths.most, builtins.sum(lengths.numbers)
    paths = np.zeros((n, 2 + longest), np.int64)
    paths[:, 0], paths[:, 1], classes = counts.numbers, lengths.numbers, paths[:, 2:]
    # Where all are of one length, no place is outside.
    inside: Any = ... if lengths.least == longest else np.arange(longest) < paths[:, 1:2]
    if given.ndim == 2:
        if len(given) != n or given.shape[1] < longest:
            raise RuntimeError(
                f"Expected tensor to have size at least {longest} at dimension 1, but got size {list(given.shape)} for "
                f"argument #2 'targets' (while checking arguments for {call})"
            )
        classes[inside] = given[:, :longest][inside]
    else:
        if given.size != total:
            raise RuntimeError(
                f"Expected tensor to have size {total} at dimension 0, but got size {given.size} for argument "
                f"#2 'targets' (while checking arguments for {call}): the targets of all sequences, one after another"
            )
        classes[inside] = given.reshape(classes.shape if inside is ... else -1)
    return paths


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
    if not x.numel():
        raise RuntimeError(f"log_probs tensor must not be empty; {call}() got {list(x.shape)}")
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
    paths = _paths(call, targets, counts, lengths)
    states = ctc_states(x if x._layout.contiguous else contiguous(x), from_array(paths), blank)
    losses = neg(getitem(states, (steps, slice(None), 0)))
    if zero_infinity:
        losses = where(losses == np.inf, 0.0, losses)
    if reduction == "mean":
        losses = div(losses, from_array(np.maximum(lengths.numbers, 1).astype(x.dtype)))
    return reduced(call, reshape(losses, ()) if is_single else losses, reduction)
