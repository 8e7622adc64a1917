"""The CPU that code is made for: this one, or what NUMBA_CPU_NAME and NUMBA_CPU_FEATURES say, as for Numba itself.

``NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=+avx2,+fma`` makes code without AVX-512 on a CPU that has it.
"""

from __future__ import annotations

import functools
import os

__all__ = ["divides_quickly", "features", "flat", "name"]


def name() -> str:
    """Return LLVM's name of the CPU."""
    return os.environ.get("NUMBA_CPU_NAME") or _name_here()


def features() -> dict[str, bool]:
    """Return which features the CPU has and has not, by LLVM's names."""
    said = os.environ.get("NUMBA_CPU_FEATURES")
    if said is None:
        return dict(_features_here())
    return {own[1:]: own.startswith("+") for own in said.replace(" ", "").split(",") if own}


def flat() -> str:
    """Return the features as LLVM takes them."""
    return ",".join(f"{'+' if is_there else '-'}{feature}" for feature, is_there in sorted(features().items()))


# A virtual machine answers each of LLVM's questions to the CPU slowly: 0.5 ms for all of them.
@functools.cache
def _name_here() -> str:
    import llvmlite.binding as llvm

    return str(llvm.get_host_cpu_name())


@functools.cache
def _features_here() -> dict[str, bool]:
    import llvmlite.binding as llvm

    return dict(llvm.get_host_cpu_features())


def divides_quickly() -> bool:
    """Whether a division of vectors takes no longer than eight other instructions: so it is on AMD's CPUs since Zen."""
    return name().startswith("znver")
