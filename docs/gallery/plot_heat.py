"""
What a rod is made of, from its temperatures
============================================

A rod is heated at both ends; eight thermometers stand in it. How well each part conducts follows from
the readings; the gradient goes back through 500 steps of the heat equation. A penalty on roughness
makes the inverse problem well-posed.
"""

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg
import timing
from tapegrad.func import scan

CELLS, STEPS, H = 40, 500, 0.4  # cells of unit length; steps of time
SENSORS = np.arange(2, 40, 5)

def temperatures(log_conductivity):
    """Of all cells at all times: explicit steps of a finite-volume scheme."""
    k = tg.exp(log_conductivity)
    between = 2 * k[1:] * k[:-1] / (k[1:] + k[:-1])  # the harmonic mean

    def turn(u, _):
        flow = between * (u[:-1] - u[1:])
        flow = tg.cat([2 * k[:1] * (1.0 - u[:1]), flow, 2 * k[-1:] * (u[-1:] - 1.0)])
        return u + H * (flow[:-1] - flow[1:]), u

    return scan(turn, cold, length=STEPS)[1]

cold, x = np.zeros(CELLS), np.arange(CELLS)
truth = np.log(1.0 - 0.75 * np.exp(-0.5 * ((x - 24) / 3.5) ** 2))  # a part that conducts badly
noise = 1e-3
readings = temperatures(truth)[::10, SENSORS]
readings = readings + noise * np.random.default_rng(0).normal(size=readings.shape)

def loss(log_k):
    misfit = (temperatures(log_k)[::10, SENSORS] - readings) / noise
    bends = (log_k[2:] - 2 * log_k[1:-1] + log_k[:-2]) / 0.03
    return ((misfit**2).sum() + (bends**2).sum()) / 2

fit = tg.scipy.minimize(loss, np.zeros(CELLS), method="L-BFGS-B", options={"maxiter": 1000})
inside = slice(2, 38)  # between the thermometers
error = np.abs(fit.x - truth)[inside].max()
print(f"{fit.nit} iterations; the logarithm is {error:.2f} away from the truth at most")
assert error < 0.3

# %%
fig, (left, right) = plt.subplots(1, 2)
image = left.imshow(temperatures(fit.x), aspect="auto", cmap="inferno", extent=[0, CELLS, H * STEPS, 0])
left.plot(SENSORS + 0.5, np.full(8, 2.0), "v", color="white")
left.set(xlabel="place / cm", ylabel="time / s")
fig.colorbar(image, label="temperature", location="top")
right.plot(x, np.exp(fit.x), color="C1", label="found")
right.plot(x, np.exp(truth), "--", color="C0", label="true")
right.set(xlabel="place / cm", ylabel="conductivity / (cm²/s)", ylim=(0, 1.8))
right.legend()
timing.gradient(loss, fit.x)
