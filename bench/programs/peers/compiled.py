"""tapegrad, the same function compiled: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tapegrad as tg
from bench.problems import Data
from bench.programs.peers import eager
from bench.programs.workload import Workload


def array(array: np.ndarray) -> np.ndarray:
    return array


def function(workload: Workload, data: Data) -> Callable[..., Any]:
    return tg.compile(eager.function(workload, data))  # type: ignore[attr-defined, no-any-return]
