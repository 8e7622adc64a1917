"""The older `weight_norm` and `spectral_norm`: hooks that compute a weight before each forward."""

from __future__ import annotations

import warnings
from typing import Any

from tapegrad import modes
from tapegrad.modes import no_grad
from tapegrad.nn import functional
from tapegrad.nn.modules.hooks import FORWARD_PRE
from tapegrad.nn.modules.module import Module
from tapegrad.nn.parameter import Parameter
from tapegrad.nn.utils.parametrizations import dim_of_outputs, norm_except_dim
from tapegrad.ops.linalg import dot, mv
from tapegrad.ops.random import randn
from tapegrad.tensor import Tensor

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


class _Hook:
    """Computes a weight, as a plain attribute of the module, from its parameters."""

    title = ""

    def __init__(self, name: str) -> None:
        self.name = name

    def compute(self, module: Any) -> Tensor:
        raise NotImplementedError

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute(module))

    def attach(self, module: Module, parts: dict[str, Tensor], buffers: dict[str, Tensor]) -> Module:
        """Put parts in the place of the weight, and compute it before each forward."""
        if _found(type(self), module, self.name):
            raise RuntimeError(f"Cannot register two {self.title} hooks on the same parameter {self.name}")
        delattr(module, self.name)
        for suffix, value in parts.items():
            module.register_parameter(self.name + suffix, value if isinstance(value, Parameter) else Parameter(value))
        for suffix, value in buffers.items():
            module.register_buffer(self.name + suffix, value)
        setattr(module, self.name, self.compute(module).detach())
        module.register_forward_pre_hook(self)
        return module

    def detach(self, module: Module, *suffixes: str) -> None:
        with no_grad():
            weight = self.compute(module).detach()
        for suffix in ("", *suffixes):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight))
        table = module._hooks[FORWARD_PRE]
        for key in [key for key, hook in table.items() if hook is self]:
            del table[key]


def _found(kind: type[_Hook], module: Module, name: str) -> Any:
    """Return the hook of a kind that computes a weight, None if there is none."""
    hooks = (entry.hook for entry in module._entries(FORWARD_PRE))
    return next((own for own in hooks if isinstance(own, kind) and own.name == name), None)


def _removed(kind: type[_Hook], module: Module, name: str, *suffixes: str) -> Module:
    hook = _found(kind, module, name)
    if hook is None:
        raise ValueError(f"{kind.title} of '{name}' not found in {module}")
    hook.detach(module, *suffixes)
    return module


class _WeightNorm(_Hook):
    title = "weight_norm"

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = dim

    def compute(self, module: Any) -> Tensor:
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        result: Tensor = v * (g / norm_except_dim(v, self.dim))
        return result


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Compute a weight from a length and a direction, ``weight_g`` and ``weight_v``.

    Deprecated, as in PyTorch: use `tapegrad.nn.utils.parametrizations.weight_norm`, which has its parameters.

    Warns
    -----
    FutureWarning

    Examples
    --------
    >>> import tapegrad as tg
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = tg.nn.utils.weight_norm(tg.nn.Linear(3, 2))
    >>> sorted(name for name, _ in layer.named_parameters())
    ['bias', 'weight_g', 'weight_v']
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    weight = getattr(module, name)
    parts = {"_g": norm_except_dim(weight, dim).detach(), "_v": weight.detach()}
    return _WeightNorm(name, dim).attach(module, parts, {})


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo `weight_norm`: the weight is a parameter again.

    Raises
    ------
    ValueError
        If there is nothing to undo.

    Examples
    --------
    >>> import tapegrad as tg
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = tg.nn.utils.weight_norm(tg.nn.Linear(3, 2))
    >>> layer = tg.nn.utils.remove_weight_norm(layer)
    >>> sorted(name for name, _ in layer.named_parameters())
    ['bias', 'weight']
    """
    return _removed(_WeightNorm, module, name, "_g", "_v")


class _SpectralNorm(_Hook):
    title = "spectral_norm"

    def __init__(self, name: str, n_power_iterations: int, eps: float, dim: int) -> None:
        super().__init__(name)
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.n_power_iterations, self.eps, self.dim = n_power_iterations, eps, dim

    def matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).reshape(weight.shape[self.dim], -1)

    def compute(self, module: Any) -> Tensor:
        weight, u, v = (getattr(module, self.name + suffix) for suffix in ("_orig", "_u", "_v"))
        matrix = self.matrix(weight)
        result: Tensor = weight / dot(u, mv(matrix, v))
        return result

    def __call__(self, module: Any, inputs: Any) -> None:
        if module.training:
            weight, *before = (getattr(module, self.name + suffix) for suffix in ("_orig", "_u", "_v"))
            matrix, (u, v) = self.matrix(weight), before
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v = functional.normalize(mv(matrix.t(), u), dim=0, eps=self.eps)
                    u = functional.normalize(mv(matrix, v), dim=0, eps=self.eps)
            for suffix, own, new in zip(("_u", "_v"), before, (u, v), strict=True):
                setattr(module, self.name + suffix, own.copy_(new) if modes.is_traced() else new)
        super().__call__(module, inputs)


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value before each forward; `parametrizations.spectral_norm` is newer.

    The parameter is ``weight_orig``, and the singular vectors are buffers.

    Raises
    ------
    ValueError
        If `n_power_iterations` is not positive.

    Examples
    --------
    >>> import tapegrad as tg
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = tg.nn.utils.spectral_norm(tg.nn.Linear(3, 2))
    >>> sorted(name for name, _ in layer.named_parameters())
    ['bias', 'weight_orig']
    """
    hook = _SpectralNorm(name, n_power_iterations, eps, dim_of_outputs(module, dim))
    weight = getattr(module, name)
    u, v = (
        functional.normalize(randn(length, dtype=weight.dtype), dim=0, eps=eps)
        for length in hook.matrix(weight.detach()).shape
    )
    return hook.attach(module, {"_orig": weight}, {"_u": u, "_v": v})


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo `spectral_norm`: the weight is a parameter again.

    Raises
    ------
    ValueError
        If there is nothing to undo.

    Examples
    --------
    >>> import tapegrad as tg
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = tg.nn.utils.spectral_norm(tg.nn.Linear(3, 2))
    >>> layer = tg.nn.utils.remove_spectral_norm(layer)
    >>> sorted(name for name, _ in layer.named_parameters())
    ['bias', 'weight']
    """
    return _removed(_SpectralNorm, module, name, "_u", "_v", "_orig")
