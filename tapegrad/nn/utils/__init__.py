"""Helpers of training: norms of gradients, parameters as one vector, sequences of unlike lengths, parametrisations."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tapegrad.nn.utils import rnn
from tapegrad.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from tapegrad.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from tapegrad.ops.table.public import missing

if TYPE_CHECKING:
    from tapegrad.nn.utils import fusion, parametrizations, parametrize, prune, stateless
    from tapegrad.nn.utils.clip_grad import clip_grad_norm
    from tapegrad.nn.utils.fusion import (
        fuse_conv_bn_eval,
        fuse_conv_bn_weights,
        fuse_linear_bn_eval,
        fuse_linear_bn_weights,
    )
    from tapegrad.nn.utils.init import skip_init
    from tapegrad.nn.utils.older_norms import (
        remove_spectral_norm,
        remove_weight_norm,
        spectral_norm,
        weight_norm,
    )

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "fuse_conv_bn_eval",
    "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "fusion", "get_total_norm",
    "parameters_to_vector", "parametrizations", "parametrize", "prune", "remove_spectral_norm",
    "remove_weight_norm", "rnn", "skip_init", "spectral_norm", "stateless", "vector_to_parameters", "weight_norm",
]  # fmt: skip

if not TYPE_CHECKING:
    #: The file of each name that is imported when it is first used.
    _FILES = {
        name: file
        for file, names in {
            "clip_grad": "clip_grad_norm",
            "fusion": "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights",
            "init": "skip_init",
            "older_norms": "remove_spectral_norm remove_weight_norm spectral_norm weight_norm",
        }.items()
        for name in names.split()
    }

    def __getattr__(name: str) -> Any:
        if name in _FILES:
            return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
        if name in ("fusion", "parametrizations", "parametrize", "prune", "stateless"):
            return import_module(f"{__name__}.{name}")
        raise missing(__name__, __name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
