"""Softmax over many classes, of which few are frequent: the others are in clusters with smaller layers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.nn import functional
from tapegrad.nn.modules.container import ModuleList, Sequential
from tapegrad.nn.modules.linear import Linear
from tapegrad.nn.modules.module import Module
from tapegrad.ops.concat import cat
from tapegrad.tensor import Tensor, from_array

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """A loss of classes that are sorted by frequency: a head has the first ones and the clusters of the others.

    Parameters
    ----------
    in_features, n_classes : int
    cutoffs : sequence of int
        Where clusters of classes begin.
    div_value : float
        By how much the layer of a cluster is narrower than that of the one before.
    head_bias : bool
        Whether the head has a bias.

    Raises
    ------
    ValueError
        If `cutoffs` does not rise from 1 to at most ``n_classes - 1``.

    Notes
    -----
    E. Grave et al., "Efficient softmax approximation for GPUs" (2016).

    Examples
    --------
    >>> import tapegrad as tg
    >>> softmax = tg.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10])
    >>> output, loss = softmax(tg.ones(2, 16), tg.tensor([3, 12]))
    >>> output.shape, softmax.log_prob(tg.ones(2, 16)).shape
    ((2,), (2, 20))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        own = list(cutoffs)
        if not own:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        rises = all(a < b for a, b in itertools.pairwise([0, *own, n_classes]))
        if not rises or any(int(one) != one for one in own):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*own, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = own[0], len(own)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for place, (first, end) in enumerate(itertools.pairwise(self.cutoffs), 1):
            width = int(in_features // div_value**place)
            layers = (
                Linear(*sizes, bias=False, device=device, dtype=dtype)
                for sizes in ((in_features, width), (width, end - first))
            )
            self.tail.append(Sequential(*layers))

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> _ASMoutput:
        if target_.ndim > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target_.ndim == 1 and len(input_) != len(target_):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input_.ndim != target_.ndim + 1:
            raise RuntimeError(
                f"{target_.ndim}D target tensor expects {target_.ndim + 1}D input tensors, but found inputs with size "
                f"{input_.shape}"
            )
        x, classes = input_.reshape(-1, self.in_features), np.array(target_._looked_at()).reshape(-1)
        if classes.size and not (classes.min() >= 0 and classes.max() < self.n_classes):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{classes.min()}, {classes.max()}] were found. "
            )
        # What to choose of the head; 0 for the first cluster that has a layer of its own.
        clusters = np.searchsorted(self.cutoffs, classes, side="right") - 1
        chosen = np.where(clusters < 0, classes, self.shortlist_size + clusters)
        output = functional.log_softmax(self.head(x), 1).gather(1, from_array(chosen[:, None])).squeeze(1)
        for place in range(self.n_clusters):
            rows = np.flatnonzero(clusters == place)
            if rows.size:
                shares = functional.log_softmax(self.tail[place](x[from_array(rows)]), 1)
                within = from_array((classes[rows] - self.cutoffs[place])[:, None])
                output = output.index_add(0, from_array(rows), shares.gather(1, within).squeeze(1))
        return _ASMoutput(output.reshape(target_.shape), (-output).mean())

    def log_prob(self, input: Any) -> Tensor:
        """Return the logarithms of the probabilities of all classes, (n, n_classes)."""
        head = functional.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for place in range(self.n_clusters):
            own = functional.log_softmax(self.tail[place](input), 1)
            parts.append(own + head[:, self.shortlist_size + place].unsqueeze(1))
        result: Tensor = cat(parts, 1)
        return result

    def predict(self, input: Any) -> Tensor:
        """Return the likeliest class of each item; a frequent one if it leads among those and the clusters."""
        head = self.head(input).argmax(1)
        whole = self.log_prob(input).argmax(1)
        result: Tensor = whole.where(head >= self.shortlist_size, head)
        return result
