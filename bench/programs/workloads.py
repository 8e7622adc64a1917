"""The workloads, in the order in which they are measured; each file has one, with all that it is."""

from __future__ import annotations

from bench.programs import (
    bundle,
    chain,
    gaussian_process,
    heat,
    kalman,
    logistic,
    logsumexp,
    lstm,
    minors,
    mixture,
    network,
    ode,
    options,
    pendulum,
    rosenbrock,
    schools,
    softmax,
)

_FILES = (
    rosenbrock, logistic, logsumexp, mixture, bundle, ode, minors, options, network, schools, kalman, softmax, chain,
    lstm, gaussian_process, heat, pendulum,
)  # fmt: skip
WORKLOADS = {workload.name: workload for file in _FILES for workload in file.WORKLOADS}
