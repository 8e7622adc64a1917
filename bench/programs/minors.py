"""A determinant by minors, which a program computes again and again unless what is common is found."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand
from bench.programs.workload import Workload


def _matrix(rng: np.random.Generator, size: int) -> Data:
    return Data((rng.normal(size=(size, size)),), (size,))


def determinant(F: Any, matrix: Any, size: int) -> Any:
    def minor(row: int, columns: list[int]) -> Any:
        if len(columns) == 1:
            return matrix[row, columns[0]]
        result = 0.0
        for position, column in enumerate(columns):
            term = matrix[row, column] * minor(row + 1, columns[:position] + columns[position + 1 :])
            result = result - term if position % 2 else result + term
        return result

    return minor(0, list(range(size)))


@by_hand
def determinant_by_hand(matrix: Any, size: int) -> Any:
    """Compute the minor of the last rows for each set of columns once, from small sets to large, then go back."""
    minors, cts, grad = np.empty(1 << size), np.zeros(1 << size), np.zeros((size, size))
    minors[0] = 1.0
    for columns in range(1, 1 << size):
        row = size
        for column in range(size):
            row -= (columns >> column) & 1
        sign, result = 1.0, 0.0
        for column in range(size):
            if (columns >> column) & 1:
                result += sign * matrix[row, column] * minors[columns ^ (1 << column)]
                sign = -sign
        minors[columns] = result
    cts[(1 << size) - 1] = 1.0
    for columns in range((1 << size) - 1, 0, -1):
        row = size
        for column in range(size):
            row -= (columns >> column) & 1
        signed = cts[columns]
        for column in range(size):
            if (columns >> column) & 1:
                grad[row, column] += signed * minors[columns ^ (1 << column)]
                cts[columns ^ (1 << column)] += signed * matrix[row, column]
                signed = -signed
    return minors[(1 << size) - 1], grad


WORKLOADS = (
    Workload(
        "minors", "determinant of a matrix of {0} x {0} by minors", 6, 4, _matrix, determinant, determinant_by_hand
    ),
)
