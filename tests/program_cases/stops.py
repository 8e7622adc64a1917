"""Operations that are not fused, alone and in loops, between others that are."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapegrad as tg
from tapegrad import nn
from tests.program_cases.case import PROGRAM, VECTORS, case

_RNG = np.random.default_rng(3)
_SIGNALS = tuple((_RNG.normal(size=32),) for _ in range(3))
_SQUARES = tuple((_RNG.normal(size=(10, 10)) + 4.0 * np.eye(10),) for _ in range(3))
_POINTS = np.linspace(0.0, 2.0, 12)


@case(PROGRAM)
def marginal_likelihood(p: Any) -> Any:
    distance = (_POINTS[:, None] - _POINTS) ** 2
    factor = tg.linalg.cholesky(tg.exp(p[0] - distance * tg.exp(p[1])) + (tg.exp(p[2]) + 0.1) * tg.eye(12))
    weights = tg.linalg.solve_triangular(factor, tg.tensor(np.sin(_POINTS))[:, None], upper=False)
    return (weights * weights).sum() / 2 + tg.log(tg.diagonal(factor)).sum()


@case(PROGRAM, _SIGNALS)
def filtered(x: Any) -> Any:
    spectrum = tg.fft.rfft(tg.tanh(x))
    smooth = tg.fft.irfft(spectrum * tg.exp(-tg.arange(17.0) / 4))
    return ((smooth - x) ** 2).sum()


@case(PROGRAM, _SIGNALS)
def phases(x: Any) -> Any:
    z = tg.exp(1j * x) * (x + 2j)
    return (z * z.conj()).real.sum() + z.angle().sin().sum()


@case(PROGRAM, _SIGNALS)
def wave_in_steps(x: Any) -> Any:
    psi = tg.exp(1j * x)
    for _ in range(8):
        psi = tg.fft.ifft(tg.fft.fft(psi * tg.exp(0.1j * x)) * tg.exp(-0.01j * tg.arange(32.0) ** 2))
    return (psi.abs() ** 2 * x).sum()


@case(PROGRAM, _SIGNALS)
def sorted_differences(x: Any) -> Any:
    values, order = tg.sort(tg.tanh(x))
    return ((values[1:] - values[:-1]) ** 2).sum() + (tg.exp(x)[order] * values).sum()


@case(PROGRAM, _SIGNALS)
def largest_few(x: Any) -> Any:
    values, places = tg.topk(x * x, 4)
    return (values * tg.sin(x)[places]).sum() + places.to(tg.float64).sum()


@case(PROGRAM, _SIGNALS)
def nearest_by_computed_index(x: Any) -> Any:
    y = tg.cos(x)
    return y[tg.argmin((x - 0.3) ** 2)] * y.sum() + tg.take(y, (x.abs() * 5).to(tg.int32)).prod()


@case(PROGRAM, _SIGNALS)
def binned(x: Any) -> Any:
    bins = (x.clamp(-1.9, 1.9) * 2 + 4).floor().long()
    return (tg.zeros(8).scatter_add(0, bins, tg.exp(x)) ** 2).sum()


@case(PROGRAM, _SIGNALS)
def pooled_network(x: Any) -> Any:
    hidden = nn.functional.conv1d(x[None, None], tg.sin(x[:6]).reshape(2, 1, 3), padding=1)
    return nn.functional.max_pool1d(tg.tanh(hidden), 4).pow(2).sum()


@case(PROGRAM, _SIGNALS)
def median_and_quantile(x: Any) -> Any:
    return tg.median(x * 2.0) * x.sum() + tg.quantile(tg.sin(x), 0.3) + tg.cummax(x, 0).values.sum()


@case(PROGRAM, _SIGNALS)
def waves_of_a_drum(x: Any) -> Any:
    return (tg.special.bessel_j0(x) * tg.special.i0e(x * 2.0)).sum() + tg.special.log_ndtr(tg.sin(x)).sum()


@case(PROGRAM, _SQUARES)
def spectral_loss(x: Any) -> Any:
    values, vectors = tg.linalg.eigh(x @ x.mT)
    return (tg.log(values) * tg.arange(10.0)).sum() + (vectors * vectors).sum()


@case(PROGRAM, _SQUARES)
def principal_parts(x: Any) -> Any:
    u, s, v = tg.linalg.svd(tg.tanh(x))
    return (s[:3] ** 3).sum() + ((u[:, :2] * s[:2]) @ v[:2]).pow(2).sum()


@case(PROGRAM, _SQUARES)
def solved_in_turn(x: Any) -> Any:
    y = x[0]
    for _ in range(12):
        y = tg.sin(tg.linalg.solve(x, y)) + 0.1 * x[1]
    return (y * y).sum()


@case(PROGRAM, _SQUARES)
def orthogonal_in_turn(x: Any) -> Any:
    q = x
    for _ in range(10):
        q = tg.linalg.qr(x @ q).Q
    return tg.diagonal(q.mT @ x @ q).abs().log().sum()


@case(PROGRAM, VECTORS)
def sorted_in_turn(x: Any) -> Any:
    state = x
    for turn in range(30):
        state = tg.sort(tg.sin(state) + 0.1 * turn * x).values
    return (state * tg.arange(3.0)).sum()
