"""MyGrad, with its memory guarding off, as its documentation advises where speed matters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mygrad as mg
import mygrad.nnet as nnet

from bench.problems import Arrays, Data, Problem
from bench.tools import leaves
from bench.tools.functions import like_numpy

GRADIENTS = True
FUNCTIONS = like_numpy(
    mg, constant=lambda x: x.data, sigmoid=nnet.sigmoid, relu=nnet.relu, softmax=nnet.softmax,
    cross_entropy=nnet.softmax_crossentropy, einsum=partial(mg.einsum, optimize=True),
)  # fmt: skip


def prepare(problem: Problem, data: Data) -> Callable[[], Any]:
    inputs = [mg.tensor(array) for array in data.inputs]

    def run() -> Any:
        mg.turn_memory_guarding_off()
        for leaf in inputs:
            leaf.null_grad()
        value = problem.program(FUNCTIONS, *inputs, *data.constants)
        value.backward()
        return value, [leaf.grad for leaf in inputs]

    return run


def result(raw: Any) -> tuple[float, Arrays]:
    return leaves.result(raw)
