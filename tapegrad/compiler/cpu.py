"""The CPU that code is made for: this one, or what NUMBA_CPU_NAME and NUMBA_CPU_FEATURES say, as for Numba itself.

``NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=+avx2,+fma`` makes code without AVX-512 on a CPU that has it.
"""

from __future__ import annotations

import functools
import os

__all__ = ["divides_quickly", "features", "flat", "name"]


def name() -> str:
    """Return LLVM's name of the CPU."""
    import llvmlite.binding as llvm

    return os.environ.get("NUMBA_CPU_NAME") or str(llvm.get_host_cpu_name())


def features() -> dict[str, bool]:
    """Return which features the CPU has and has not, by LLVM's names."""
    import llvmlite.binding as llvm

    said = os.environ.get("NUMBA_CPU_FEATURES")
    if said is None:
        return dict(llvm.get_host_cpu_features())
    return {own[1:]: own.startswith("+") for own in said.replace(" ", "").split(",") if own}


def flat() -> str:
    """Return the features as LLVM takes them."""
    return ",".join(f"{'+' if is_there else '-'}{feature}" for feature, is_there in sorted(features().items()))


@functools.cache  # LLVM takes 10 ms to find out a name
def divides_quickly() -> bool:
    """Whether a division of vectors takes no longer than eight other instructions: so it is on AMD's CPUs since Zen."""
    return name().startswith("znver")
