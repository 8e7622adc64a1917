"""tapegrad: gradients of ordinary NumPy programs, with the meaning of PyTorch's ``backward()``."""

from math import e, inf, nan, pi
from typing import TYPE_CHECKING

from numpy import dtype as dtype

from tapegrad.runtime import garbage

with garbage.kept():  # it would be collected 40 times, a tenth of the time
    from tapegrad import _version as version
    from tapegrad import autograd, backends, cuda, fft, linalg, nn, optim, special, utils
    from tapegrad._version import __version__
    from tapegrad.autograd import inference_mode
    from tapegrad.backends import accelerator
    from tapegrad.devices import device, get_default_device, set_default_device
    from tapegrad.dtypes import (
        bfloat16,
        bool_,
        cdouble,
        cfloat,
        complex64,
        complex128,
        double,
        float16,
        float32,
        float64,
        half,
        int8,
        int16,
        int32,
        int64,
        long,
        set_default_dtype,
        short,
        uint8,
    )
    from tapegrad.dtypes import (
        bool as bool,
    )
    from tapegrad.dtypes import default_dtype as get_default_dtype
    from tapegrad.dtypes import (
        float as float,
    )
    from tapegrad.dtypes import (
        int as int,
    )
    from tapegrad.modes import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
    from tapegrad.ops.bind import install
    from tapegrad.ops.creation import tensor as tensor  # not its file, `tapegrad.tensor`
    from tapegrad.ops.generators import default_generator
    from tapegrad.ops.table import public as _public
    from tapegrad.ops.warmup import warmup
    from tapegrad.pass_modes import is_anomaly_check_nan_enabled, is_anomaly_enabled, is_inference_mode_enabled
    from tapegrad.printing import set_printoptions
    from tapegrad.runtime import module_names
    from tapegrad.runtime.blocking import get_num_threads, set_num_threads
    from tapegrad.runtime.later import later
    from tapegrad.runtime.pool import empty_cache, memory_allocated, memory_reserved, set_cache_limit
    from tapegrad.runtime.subnormals import set_flush_denormal
    from tapegrad.serialization import load, save
    from tapegrad.tensor import Tensor
    from tapegrad.type_info import (
        Size,
        channels_last,
        channels_last_3d,
        contiguous_format,
        finfo,
        iinfo,
        layout,
        memory_format,
        preserve_format,
        strided,
    )

install()
module_names.install()
newaxis = None  # ``x[:, newaxis]``, as in NumPy

__all__ = [
    "Tensor", "set_default_dtype", "get_default_dtype", "set_printoptions",
    "Size", "device", "set_default_device", "get_default_device", "dtype", "finfo", "iinfo", "default_generator",
    "memory_format", "contiguous_format", "preserve_format", "channels_last", "channels_last_3d", "layout", "strided",
    "UntypedStorage", "TypedStorage", "set_default_tensor_type",
    # gradients
    "autograd", "no_grad", "enable_grad", "set_grad_enabled", "is_grad_enabled",
    "inference_mode", "is_inference_mode_enabled", "is_anomaly_enabled", "is_anomaly_check_nan_enabled",
    "set_anomaly_enabled",
    # memory and threads
    "empty_cache", "set_cache_limit", "memory_allocated", "memory_reserved", "set_num_threads", "get_num_threads",
    "set_flush_denormal",
    # files
    "save", "load",
    # compiling ahead of time; measuring
    "warmup", "profile",
    # namespaces
    "accelerator", "amp", "autocast", "backends", "cuda", "distributed", "distributions", "fft", "func", "jit",
    "linalg", "masked", "nn", "optim", "random", "scipy", "special", "utils", "version", "vmap",
    # dtypes and constants; not int, float and bool, which would hide Python's after `from tapegrad import *`
    "float32", "float64", "complex64", "complex128", "int8", "int16", "int32", "int64", "uint8", "bool_",
    "float16", "half", "bfloat16", "double", "cfloat", "cdouble", "long", "short", "e", "inf", "nan", "pi", "newaxis",
    "__version__",
]  # fmt: skip
if TYPE_CHECKING:
    from tapegrad import amp, distributed, distributions, func, jit, masked, random, scipy
    from tapegrad.amp import autocast
    from tapegrad.autograd.anomaly import set_anomaly_enabled
    from tapegrad.autograd.profiling import profile
    from tapegrad.func import vmap
    from tapegrad.ops.legacy_tensors import set_default_tensor_type
    from tapegrad.ops.storages import TypedStorage, UntypedStorage
    from tapegrad.ops.table.functions import *
    from tapegrad.ops.table.functions import __all__ as _names
    from tapegrad.program import compile as compile

    __all__ += list(_names)
else:
    _find, _functions = _public.contents(_public.TOP)
    __all__ += list(_functions())

    def _function(name):
        try:
            return _find(name)
        except AttributeError:
            from tapegrad.ops.native_forms import form

            if (function := form(name)) is None:
                raise
            return function

    # What many programs do not use: those are not to wait for it at import.
    __getattr__ = later(
        __name__,
        {
            ".amp": "autocast",
            ".autograd.anomaly": "set_anomaly_enabled",
            ".autograd.profiling": "profile",
            ".func": "vmap",
            ".ops.legacy_tensors": "set_default_tensor_type",
            ".ops.storages": "TypedStorage UntypedStorage",
            ".program": "compile",
        },
        "amp distributed distributions func jit masked program random scipy testing",
        _function,
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
