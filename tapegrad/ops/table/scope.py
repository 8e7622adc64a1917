"""What there is not: names of PyTorch that are out of scope or not made yet, and what a program that asks is told."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from tapegrad.ops.table.public import FUNCTIONAL, LINALG, NAMESPACES, TOP, find, names_in

PAGE: Final = "docs/ops.md"

#: Names of PyTorch that are out of scope, with the reason and the repair.
OUT_OF_SCOPE: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("cuda", "mps", "xpu", "device", "get_device", "pin_memory"),
        "tapegrad computes on the CPU only; leave it out",
    ),
    **dict.fromkeys(("half", "float16", "bfloat16", "chalf"), "there is no half precision; use float32"),
    **dict.fromkeys(
        ("sparse_coo_tensor", "to_sparse", "to_dense", "sparse"), "there are no sparse tensors; use a dense one"
    ),
    **dict.fromkeys(
        ("jit", "compile", "export", "fx", "quantize_per_tensor", "distributed", "onnx"),
        "it has no meaning here: operations are compiled already",
    ),
    **dict.fromkeys(("named_tensor", "refine_names", "align_to"), "dimensions have no names; use numbers"),
    **dict.fromkeys(
        ("lobpcg", "svd_lowrank", "pca_lowrank"), "use linalg.eigh or linalg.svd and take the leading part"
    ),
    **dict.fromkeys(("geqrf",), "it is a part of LAPACK's QR; use linalg.qr"),
    **dict.fromkeys(("set_num_interop_threads", "set_deterministic"), "there is nothing to set"),
}

#: Names of PyTorch, by module, that belong here and are not made yet.
NOT_YET: Final[dict[str, str]] = {TOP: "", LINALG: "", FUNCTIONAL: ""}


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
    found = difflib.get_close_matches(name.lower(), list(places), 1, 0.7)
    return f"{places[found[0]]}.{found[0]}" if found else ""


def why_missing(module: str, name: str) -> str:
    """Return what is to be said of a name that a module does not have."""
    elsewhere = [f"{namespace}.{name}" for namespace in NAMESPACES if name in names_in(namespace)]
    if elsewhere:
        return f"it is {elsewhere[0]}"
    if name in OUT_OF_SCOPE:
        return OUT_OF_SCOPE[name]
    near = nearest(name)
    if any(name in names.split() for names in NOT_YET.values()):
        return "PyTorch has it, tapegrad not yet" + (f"; nearest is {near}" if near else f"; see {PAGE}")
    return f"did you mean {near}?" if near else f"{PAGE} lists what there is"


def contents(namespace: str, module: str = "") -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of the module that has the functions of a namespace.

    A function is found when it is first used; of a name that is missing it is said where it is, or what is nearest.
    """
    module = module or namespace

    def attribute(name: str) -> Any:
        one = None if name.startswith("_") else find(namespace, name)
        if one is None:
            why = "" if name.startswith("_") else f": {why_missing(namespace, name)}"
            raise AttributeError(f"module {module!r} has no attribute {name!r}{why}", name=name)
        setattr(sys.modules[module], name, one.function)
        return one.function

    return attribute, lambda: names_in(namespace)
