"""The machine and the software that a run was made with."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("tapegrad", "numpy", "numba", "llvmlite", "torch", "jax", "autograd", "mygrad")


def processor() -> str:
    """Return the name of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def load() -> float | None:
    """Return how many processes ran in the last minute on average."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _version(package: str) -> str | None:
    if package == "tapegrad":
        from tapegrad._version import __version__

        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def describe(command: str, threads: Iterable[int]) -> dict[str, str]:
    """Return what a reader needs to judge the figures and to get them again."""
    versions = {package: _version(package) for package in PACKAGES}
    count = cores()
    facts = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{processor()}, {count} core{'s' if count > 1 else ''}",
        "threads": ", ".join(map(str, threads)),
        "system": f"{platform.system()} {platform.release()}, {platform.python_implementation()} "
        f"{platform.python_version()}",
        "versions": ", ".join(f"{package} {found}" for package, found in versions.items() if found),
        "command": command,
    }
    before = load()
    if before is not None:
        facts["load before"] = f"{before:.1f} in the last minute"
    return facts
