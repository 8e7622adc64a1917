"""Exponential families: distributions whose entropy follows from the normaliser of their densities."""

from __future__ import annotations

from tapegrad.autograd import grad
from tapegrad.distributions.distribution import Distribution, sum_rightmost
from tapegrad.modes import enable_grad
from tapegrad.tensor import Tensor

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    r"""The base of distributions of density :math:`h(x) e^{\theta \cdot t(x) - F(\theta)}`.

    A subclass states `_natural_params`, which are the :math:`\theta`, `_log_normalizer`, which is :math:`F`, and
    `_mean_carrier_measure`, the mean of :math:`\log h`. The entropy is then :math:`F - \theta \cdot \nabla F` without
    that mean (Nielsen and Nock, "Entropies and cross-entropies of exponential families", 2010).

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions import ExponentialFamily
    >>> class Waiting(ExponentialFamily):  # of rate 2
    ...     _natural_params = (tg.tensor(-2.0),)
    ...     _mean_carrier_measure = 0.0
    ...
    ...     def _log_normalizer(self, theta):
    ...         return -(-theta).log()
    >>> Waiting().entropy()
    tensor(0.3069)
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self)} does not define `_natural_params`")

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError(f"{type(self)} does not define `_mean_carrier_measure`")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self)} does not define `_log_normalizer`")

    def entropy(self) -> Tensor:
        given = self._natural_params
        with enable_grad():
            natural = [own if own.requires_grad else own.detach().requires_grad_() for own in given]
            normalizer = self._log_normalizer(*natural)
            slopes = grad(normalizer.sum(), natural, create_graph=True)
            entropy = normalizer - self._mean_carrier_measure
            for own, slope in zip(natural, slopes, strict=True):
                entropy = entropy - sum_rightmost(own * slope, own.ndim - normalizer.ndim)
        return entropy if any(own.requires_grad for own in given) else entropy.detach()
