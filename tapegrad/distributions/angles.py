"""The von Mises distribution of angles."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from tapegrad.distributions import constraints
from tapegrad.distributions.distribution import Distribution
from tapegrad.modes import no_grad
from tapegrad.ops.random import rand
from tapegrad.special import i0e, i1e
from tapegrad.tensor import Tensor, from_array

__all__ = ["VonMises"]


class VonMises(Distribution, loc=constraints.real, concentration=constraints.positive):
    r"""The von Mises distribution of angles, of density :math:`e^{\kappa \cos(x - \mu)}/(2 \pi I_0(\kappa))`.

    Parameters
    ----------
    loc : Tensor, array or float
        The mean :math:`\mu`, in radians.
    concentration : Tensor, array or float
        The :math:`\kappa`; of 0 all angles have the same density.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.VonMises(0.0, 1.0).log_prob(tg.tensor([0.0, tg.pi])).exp()
    tensor([0.3417, 0.0462])
    """

    loc: Tensor
    concentration: Tensor
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, concentration=concentration)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The circular variance: 1 less the length of the mean of unit vectors."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    def _log_prob(self, value: Tensor) -> Tensor:
        k = self.concentration
        return k * ((value - self.loc).cos() - 1) - math.log(2 * math.pi) - i0e(k).log()

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        """Return samples, by rejection (D. J. Best and N. I. Fisher, "Efficient simulation", 1979)."""
        with no_grad():
            k = np.broadcast_to(
                self.concentration.detach().numpy().astype(np.float64), self._extended_shape(sample_shape)
            )
            tau = 1 + np.sqrt(1 + 4 * k**2)
            rho = (tau - np.sqrt(2 * tau)) / (2 * k)
            with np.errstate(all="ignore"):
                r = np.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))  # of small ones the formula cancels
            angle, waiting = np.empty(k.shape), np.ones(k.shape, bool)
            while waiting.any():
                turn, chance, side = rand((3, int(waiting.sum())), dtype=np.dtype(np.float64)).numpy()
                z = np.cos(np.pi * turn)
                cosine = (1 + r[waiting] * z) / (r[waiting] + z)
                c = k[waiting] * (r[waiting] - cosine)
                with np.errstate(all="ignore"):
                    taken = (c * (2 - c) > chance) | (np.log(c / chance) + 1 - c >= 0)
                angle[waiting] = np.where(taken, np.sign(side - 0.5) * np.arccos(np.clip(cosine, -1, 1)), 0)
                where = np.flatnonzero(waiting)
                waiting.reshape(-1)[where[taken]] = False
            moved = (from_array(angle) + np.pi + self.loc.double()) % (2 * np.pi) - np.pi
            return moved.to(self.loc.dtype)
