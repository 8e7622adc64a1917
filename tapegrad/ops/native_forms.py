"""PyTorch's functions of `torch` that stand in `torch.nn.functional` with other arguments, and methods as functions.

PyTorch's own calls of them are positional: integers stand for reductions and modes. Each is made of the function of
`tapegrad.nn.functional` when a program first asks for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from tapegrad.ops.table.public import FUNCTIONAL, find
from tapegrad.tensor import Tensor

_REDUCTIONS: Final = ("none", "mean", "sum")
_LAYERS: Final = "input weight bias running_mean running_var"
#: The parameters of each, by PyTorch's schema `aten::name`; `_name` is read, and has no meaning here.
_PARAMETERS: Final = {
    "batch_norm": f"{_LAYERS} training momentum eps _cudnn_enabled",
    "instance_norm": f"{_LAYERS} use_input_stats momentum eps _cudnn_enabled",
    "group_norm": "input num_groups weight bias eps _cudnn_enabled",
    "embedding": "weight input padding_idx scale_grad_by_freq sparse",
    "binary_cross_entropy_with_logits": "input target weight pos_weight reduction",
    "kl_div": "input target reduction log_target",
    "poisson_nll_loss": "input target log_input full eps reduction",
    "hinge_embedding_loss": "input target margin reduction",
    "cosine_embedding_loss": "input1 input2 target margin reduction",
    "margin_ranking_loss": "input1 input2 target margin reduction",
    "triplet_margin_loss": "anchor positive negative margin p eps swap reduction",
    "ctc_loss": "log_probs targets input_lengths target_lengths blank reduction zero_infinity",
    "grid_sampler": "input grid mode padding_mode align_corners",
    "adaptive_max_pool1d": "input output_size",
    "max_pool1d_with_indices": "input kernel_size stride padding dilation ceil_mode",
}
#: The functions that have another name.
_FUNCTIONS: Final = {"grid_sampler": "grid_sample", "max_pool1d_with_indices": "max_pool1d"}
_INTEGERS: Final = {
    "reduction": _REDUCTIONS,
    "mode": ("bilinear", "nearest", "bicubic"),
    "padding_mode": ("zeros", "border", "reflection"),
}
#: PyTorch's other names of parameters.
_OTHER_NAMES: Final = {
    "indices": "input",
    "self": "input",
    "interpolation_mode": "mode",
    "cudnn_enabled": "_cudnn_enabled",
}


def _native(name: str) -> Callable[..., Any]:
    function = getattr(import_module(FUNCTIONAL), _FUNCTIONS.get(name, name))
    fixed: dict[str, Any] = {"return_indices": True} if "max_pool" in name else {}
    if "reduction" in _PARAMETERS[name].split():
        fixed = {"reduction": "none"}  # PyTorch's schema says mean, and its binding reads it as 0
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(own, kind) for own in _PARAMETERS[name].split()])

    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind_partial(*args, **{_OTHER_NAMES.get(key, key): value for key, value in kwargs.items()})
        options = {key: _named(key, value) for key, value in given.arguments.items() if not key.startswith("_")}
        if name == "embedding" and options.get("padding_idx") == -1:  # PyTorch's way to say that there is none
            del options["padding_idx"]
        return function(**fixed | options)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Call `{FUNCTIONAL}.{function.__name__}` with PyTorch's order of arguments: {_PARAMETERS[name]}."
    return call


def _named(parameter: str, value: Any) -> Any:
    names = _INTEGERS.get(parameter)
    return names[value] if names is not None and value.__class__ is int and 0 <= value < len(names) else value


def form(name: str) -> Callable[..., Any] | None:
    """Return such a function of PyTorch, or the method that writes to a tensor, as a function; None for others.

    >>> import tapegrad as tg
    >>> x = tg.tensor([-1.0, 2.0])
    >>> form("relu_")(x), x
    (tensor([0., 2.]), tensor([0., 2.]))
    """
    if name in _PARAMETERS:
        return _native(name)
    if name != "detach" and (name.startswith("_") or not name.endswith("_")):
        return None
    activation = find(FUNCTIONAL, name)  # such as `selu_`, which tensors do not have
    return getattr(Tensor, name, None) if activation is None else activation.function
