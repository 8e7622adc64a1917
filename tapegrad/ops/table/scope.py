"""What there is not: names of PyTorch that are out of scope, and what a program that asks is told."""

from __future__ import annotations

import functools
import re
from typing import Final

from tapegrad.ops.table.public import NAMESPACES, names_in
from tapegrad.runtime import state

PAGE: Final = "docs/reference/ops.md"

_CPU: Final = "tapegrad computes on the CPU only; leave it out"
_COMPILED: Final = "it has no meaning here: operations are compiled already"
_INTERNAL: Final = "it is internal to PyTorch; use the public function"

#: Names of PyTorch that are out of scope, with the reason and the repair.
OUT_OF_SCOPE: Final[dict[str, str]] = {
    name: reason
    for names, reason in (
        (("mps xpu is_ipu is_maia "
         "is_mtia is_vulkan is_xla ipu mtia record_stream "
         "get_device_module is_vulkan_available"), _CPU),
        ("half float16 bfloat16 chalf complex32", "there is no half precision; use float32"),
        ("uint16 uint32 uint64", "there are no unsigned integers of this length; use int64"),
        (("sparse_coo_tensor to_sparse to_dense sparse_mask coalesce is_coalesced "
         "dense_dim sparse_dim indices values smm sspaddmm hsmm hspmm dsmm saddmm spmm to_padded_tensor "
         "to_mkldnn jagged"), "there are no sparse or nested tensors; use a dense one"),
        ("export fx onnx fork wait while_loop", _COMPILED),
        (("quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic dequantize int_repr q_scale "
         "q_zero_point q_per_channel_axis q_per_channel_scales q_per_channel_zero_points qscheme"),
         "there are no quantised tensors; use integers and a factor"),
        ("named_tensor refine_names align_to name names", "dimensions have no names; use numbers"),
        ("lobpcg", "use linalg.eigh and take the first or the last values"),
        ("geqrf", "it is a part of LAPACK's QR; use linalg.qr"),
        (("set_num_interop_threads get_num_interop_threads set_deterministic set_warn_always is_warn_always_enabled "
         "set_deterministic_debug_mode get_deterministic_debug_mode"), "there is nothing to set"),
        (("storage_type const_data_ptr resize_ resize resize_as_ resize_as as_strided_ from_file empty_strided "
         "new_empty_strided empty_permuted dim_order to_dlpack"), "memory is NumPy's: use reshape, clone or numpy"),
        ("apply_ map_ map2_", "it calls Python for each element; write it with operations"),
        ("signal", "windows have no gradient; use scipy.signal.windows, and from_numpy"),
        ("conv_tbc", "use nn.functional.conv1d with transposed dimensions"),
        (("max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool1d_with_indices "
         "adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices fractional_max_pool2d_with_indices "
         "fractional_max_pool3d_with_indices"), "use return_indices=True"),
        ("grouped_mm scaled_mm scaled_grouped_mm", "it is for half precision; use matmul"),
        ("DataParallel SyncBatchNorm", "there is one device and one process; use the module itself, or BatchNorm2d"),
        ("SparseAdam", "there are no sparse gradients; use Adam"),
        ("Container", "PyTorch has deprecated it; derive from nn.Module"),
        ("CrossMapLRN2d", "use nn.LocalResponseNorm"),
        ("UninitializedParameter UninitializedBuffer UninitializedTensorMixin is_lazy",
         "lazy layers get parameters of the right size in the first call; see nn.LazyLinear"),
        ("convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format", "memory has NumPy's order"),
        (("DFIterDataPipe DataChunk IterDataPipe MapDataPipe argument_validation functional_datapipe non_deterministic "
          "guaranteed_datapipes_determinism runtime_validation runtime_validation_disabled"),
         "PyTorch has deprecated data pipes; use Dataset and IterableDataset"),
        ("LinearCrossEntropyLoss LinearCrossEntropyOptions", "use nn.functional.linear_cross_entropy"),
        (("CheckpointPolicy SelectiveCheckpointContext create_selective_checkpoint_contexts "
          "set_checkpoint_debug_enabled set_checkpoint_early_stop"),
         "what is kept is chosen by what is given to checkpoint(): give it smaller functions"),
        ("range", "PyTorch has deprecated it; use arange, which leaves the end out"),
        ("chain_matmul", "PyTorch has deprecated it; use linalg.multi_dot"),
        ("nuclear_norm frobenius_norm", "PyTorch has deprecated it; use linalg.matrix_norm"),
        ("symeig", "PyTorch has removed it; use linalg.eigh"),
        ("volatile reinforce new", "PyTorch has deprecated it"),
        (("slice_inverse hash_tensor as_subclass grad_dtype "
         "module_load index norm_except_dim T_destination call_super_init dump_patches factory_kwargs "
         "OptimizerPostHook OptimizerPreHook profile_hook_step swap_in_optimizer_params_and_state DefaultDeviceType "
         "GraphExecGroup SAC_IGNORED_OPS check_backward_validity detach_variable get_device_states "
         "set_device_states"), _INTERNAL),
    )
    for name in names.split()
}  # fmt: skip

_OF_SCIPY: Final = {
    "it is by a parameter of a distribution, by which the distribution has no derivative in closed form": """
        bdtrik bdtrin btdtria btdtrib chdtriv chndtridf chndtrinc fdtridfd gdtrib nbdtrik nbdtrin ncfdtridfd ncfdtridfn
        ncfdtrinc nctdtridf nctdtrinc pdtrik stdtridf""",
    "SciPy has no function for the density, which is its slope": """
        chndtr chndtrix ncfdtr ncfdtri nctdtr nctdtrit smirnov smirnovi""",
    "it has no derivative by its parameters in closed form": """
        mathieu_a mathieu_b mathieu_cem mathieu_modcem1 mathieu_modcem2 mathieu_modsem1 mathieu_modsem2 mathieu_sem
        obl_ang1 obl_ang1_cv obl_cv obl_rad1 obl_rad1_cv obl_rad2 obl_rad2_cv
        pro_ang1 pro_ang1_cv pro_cv pro_rad1 pro_rad1_cv pro_rad2 pro_rad2_cv""",
}
#: The same of SciPy's special functions.
OF_SCIPY: Final[dict[str, str]] = {name: reason for reason, names in _OF_SCIPY.items() for name in names.split()}

#: The same of PyTorch's by parts of names.
_KINDS_OF_NAMES: Final = (
    (r"^jiterator", "it compiles for CUDA; use tapegrad.jit"),
    (r"sparse|_indices|csr|csc|bsr|bsc|values_copy", OUT_OF_SCOPE["to_sparse"]),
    (r"autocast|^bits?\d|^bit$|^float[48]_", OUT_OF_SCOPE["half"]),
    (r"quant|qparams|^per_(tensor|channel)|^q?u?int\d|fbgemm", OUT_OF_SCOPE["qscheme"]),
    ((r"cudnn|miopen|mkldnn|^native_|^sym_|^parse_|^import_ir|^batch_norm_\w+|^grid_sampler|"
     r"_copy$|torch_function|^init_num_threads$|^embedding_renorm_$|^affine_grid_generator$|^legacy_|_notes$|_args$|"
     r"_common$"), _INTERNAL),
)  # fmt: skip


def nearest(name: str) -> str:
    """Return our public function whose name is nearest, with its module; nothing if none is near.

    >>> nearest("log_sum_exp")
    'tapegrad.logsumexp'
    """
    import difflib  # at call time: a program that asks is about to fail

    places: dict[str, str] = {}
    for namespace in NAMESPACES:
        for own in names_in(namespace):
            places.setdefault(own, namespace)
    matches = difflib.get_close_matches(name.lower(), list(places), 1, 0.7)
    return f"{places[matches[0]]}.{matches[0]}" if matches else ""


@functools.lru_cache(maxsize=256)  # the nearest name takes 20 ms, and programs ask `hasattr` often
def why_missing(module: str, name: str) -> str:
    """Return what is to be said of a name that a module does not have."""
    elsewhere = [f"{namespace}.{name}" for namespace in NAMESPACES if name in names_in(namespace)]
    if elsewhere:
        return f"it is {elsewhere[0]}"
    if name in OUT_OF_SCOPE:
        return OUT_OF_SCOPE[name]
    reasons = [reason for pattern, reason in _KINDS_OF_NAMES if re.search(pattern, name)]
    if reasons:
        return reasons[0]
    from tapegrad.tensor import Tensor  # at call time: its operations are given to it when all files are imported

    if hasattr(Tensor, name):
        return f"it is a method of tensors: x.{name}(...)" if callable(getattr(Tensor, name)) else f"write x.{name}"
    near = nearest(name)
    return f"did you mean {near}?" if near else f"{PAGE} lists what there is"


state.register("ops.table.scope: reasons", lambda: why_missing.cache_info().currsize, why_missing.cache_clear)
