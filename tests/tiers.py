"""Which cases of a test are run each time, and which in the full tier only."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def mostly_full(values: Iterable[Any], quick: Container[Any] | int) -> list[Any]:
    """Return the cases of a test; all but the quick ones, or every so many, are marked `full`."""
    cases = []
    for place, value in enumerate(values):
        is_quick = place % quick == 0 if isinstance(quick, int) else value in quick
        own = value if value.__class__ is tuple else (value,)
        case = value if hasattr(value, "marks") else pytest.param(*own)
        cases.append(case if is_quick else case._replace(marks=[*case.marks, pytest.mark.full]))
    return cases
