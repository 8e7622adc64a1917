"""Helpers of training: norms of gradients, parameters as one vector, sequences of unlike lengths, parametrisations."""

from functools import partial
from typing import TYPE_CHECKING

from tapegrad.nn.utils import rnn
from tapegrad.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from tapegrad.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from tapegrad.ops.table.public import refuse
from tapegrad.runtime.later import later

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
    __getattr__ = later(
        __name__,
        {
            ".clip_grad": "clip_grad_norm",
            ".fusion": "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights",
            ".init": "skip_init",
            ".older_norms": "remove_spectral_norm remove_weight_norm spectral_norm weight_norm",
        },
        "fusion parametrizations parametrize prune stateless",
        partial(refuse, __name__),
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
