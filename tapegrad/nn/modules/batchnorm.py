"""Batch norms and instance norms: channels of mean 0 and variance 1, and running means of both."""

from __future__ import annotations

from typing import Any, ClassVar

from tapegrad import errors, modes
from tapegrad.nn import functional
from tapegrad.nn.modules.linear import parameter
from tapegrad.nn.modules.module import Module
from tapegrad.ops.fill import ones, zeros
from tapegrad.tape import versions
from tapegrad.tensor import Tensor

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]

_TRACKED = ("running_mean", "running_var", "num_batches_tracked")


class _NormBase(Module):
    """Weights, biases and running means of channels."""

    _version = 2  # since which `num_batches_tracked` is a part of the state
    _ndims: ClassVar[tuple[int, ...]]
    weight: Any
    bias: Any
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, parameter(num_features, device=device, dtype=dtype) if wanted else None)
        values = (zeros(num_features, dtype=dtype), ones(num_features, dtype=dtype), zeros((), dtype="int64"))
        for name, value in zip(_TRACKED, values, strict=True):
            self.register_buffer(name, value if track_running_stats else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Let running means and variances be 0 and 1 again."""
        for name, value in zip(_TRACKED, (0, 1, 0), strict=True):
            if self.track_running_stats:
                getattr(self, name).fill_(value)

    def reset_parameters(self) -> None:
        """Let weights be 1, biases 0, and the running means as at the beginning."""
        self.reset_running_stats()
        for name, value in (("weight", 1.0), ("bias", 0.0)):
            if getattr(self, name) is not None:
                getattr(self, name).data.fill_(value)

    def _check_input_dim(self, input: Any) -> None:
        if input.ndim not in self._ndims:
            expected = " or ".join(f"{ndim}D" for ndim in self._ndims)
            raise ValueError(f"expected {expected} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        key = prefix + _TRACKED[2]
        if local_metadata.get("version", 1) < 2 and self.track_running_stats and key not in state_dict:
            state_dict[key] = zeros((), dtype="int64") if self.num_batches_tracked is None else self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        factor: Any = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            if modes.is_traced():
                self.num_batches_tracked.add_(1)
            else:
                count = self.num_batches_tracked._array()
                count += 1
                versions.note(count)
            if self.momentum is None:  # the mean over all batches
                factor = 1.0 / (self.num_batches_tracked if modes.tracer() else float(self.num_batches_tracked))
        mean, var = self.running_mean, self.running_var
        by_batch = self.training or (mean is None and var is None)
        if self.training and not self.track_running_stats:
            mean = var = None
        return functional.batch_norm(input, mean, var, self.weight, self.bias, by_batch, factor, self.eps)


class BatchNorm1d(_BatchNorm):
    """`batch_norm` of vectors, (n, channels), or signals, (n, channels, length).

    In training by mean and variance of the batch, which enter the running ones; in evaluation by these.

    Parameters
    ----------
    num_features : int
        The number of channels.
    eps : float
        Added to the variance.
    momentum : float or None
        The share of the batch in the running mean and variance; None takes the mean of all batches.
    affine : bool
        Whether there are weights and biases.
    track_running_stats : bool
        Whether there are a running mean and variance.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.BatchNorm1d(1)(tg.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    """

    _ndims = 2, 3


class BatchNorm2d(_BatchNorm):
    """`batch_norm` of images, (n, channels, height, width); see `BatchNorm1d`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.BatchNorm2d(3)(tg.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    _ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """`batch_norm` of volumes, (n, channels, depth, height, width); see `BatchNorm1d`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.BatchNorm3d(3)(tg.randn(2, 3, 4, 4, 4)).shape
    (2, 3, 4, 4, 4)
    """

    _ndims = (5,)


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        of_item = self._ndims[-1] - input.ndim  # 1 for an item without a batch
        if input.shape[1 - of_item] != self.num_features and not self.affine:
            errors.warn(
                f"input's size at dim={1 - of_item} does not match num_features. It has {input.shape[1 - of_item]} "
                f"channels, not {self.num_features}; without parameters this changes nothing."
            )
        batch = input.unsqueeze(0) if of_item else input
        result = functional.instance_norm(
            batch, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats, self.momentum or 0.0, self.eps,
        )  # fmt: skip
        return result.squeeze(0) if of_item else result


class InstanceNorm1d(_InstanceNorm):
    """`instance_norm` of signals; see `BatchNorm1d`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> y = tg.nn.InstanceNorm1d(3)(tg.randn(2, 3, 8))
    >>> bool(tg.allclose(y.mean(-1), tg.zeros(2, 3)))
    True
    """

    _ndims = 2, 3


class InstanceNorm2d(_InstanceNorm):
    """`instance_norm` of images; see `BatchNorm1d`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.InstanceNorm2d(3)(tg.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    _ndims = 3, 4


class InstanceNorm3d(_InstanceNorm):
    """`instance_norm` of volumes; see `BatchNorm1d`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.InstanceNorm3d(3)(tg.randn(2, 3, 4, 4, 4)).shape
    (2, 3, 4, 4, 4)
    """

    _ndims = 4, 5
