"""Transforms of functions, with PyTorch's names (``torch.func``): from a function to its derivatives."""

from typing import TYPE_CHECKING

from tapegrad.func.gradients import functionalize, grad, grad_and_value, value_and_grad
from tapegrad.func.jacobians import hessian, jacfwd, jacrev
from tapegrad.func.loops import fori_loop, scan, while_loop
from tapegrad.func.mapping import vmap
from tapegrad.func.modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from tapegrad.func.products import hvp, jvp, linearize, vjp
from tapegrad.func.roots import custom_root
from tapegrad.runtime.later import later

if TYPE_CHECKING:
    from tapegrad.sparse.matrices import sparse_hessian, sparse_jacobian

__all__ = [
    "custom_root",
    "fori_loop",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "scan",
    "sparse_hessian",
    "sparse_jacobian",
    "stack_module_state",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]

if not TYPE_CHECKING:
    # They need programs.
    __getattr__ = later(__name__, {"tapegrad.sparse.matrices": "sparse_hessian sparse_jacobian"})
