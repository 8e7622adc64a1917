"""
A neural differential equation learns how a pendulum moves
==========================================================

A network gives the rates of change of a state; Runge-Kutta steps make trajectories of it (Chen et
al., 2018). ``func.scan`` is the loop of the steps: compiled, it is one operation of any length, and
so is its derivative. The network sees eight swings with friction for six seconds each.
"""

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg
import timing
from tapegrad.func import scan

H, STEPS = 0.1, 60

def pendulum(y):
    return tg.stack([y[..., 1], -0.3 * y[..., 1] - 3.0 * tg.sin(y[..., 0])], -1)

def network(y, p):
    return tg.tanh(tg.tanh(y @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"]) @ p["W3"]

def runge_kutta(rate, y):
    k1 = rate(y)
    k2 = rate(y + H / 2 * k1)
    k3 = rate(y + H / 2 * k2)
    return y + H / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + H * k3))

def trajectories(rate, y):  # (step, trajectory, angle and speed)
    return scan(lambda y, _: (runge_kutta(rate, y), y), y, length=STEPS)[1]

def loss(p):
    return ((trajectories(lambda y: network(y, p), seen[0]) - seen) ** 2).mean()

rng = np.random.default_rng(0)
seen = trajectories(pendulum, np.stack([np.linspace(0.3, 2.4, 8), rng.uniform(-1.0, 1.0, 8)], 1))
sizes = {"W1": (2, 16), "b1": (16,), "W2": (16, 16), "b2": (16,), "W3": (16, 2)}
start = {name: rng.normal(size=size) / 4 for name, size in sizes.items()}
fit = tg.scipy.minimize(loss, start, method="L-BFGS-B", options={"maxiter": 600, "maxfun": 900})
print(f"root mean square error of what it saw: {fit.fun**0.5:.3f}")
assert fit.fun**0.5 < 0.05

# %%
# Its field of rates, a swing that it has not seen (dots), and what it makes of the start.
def learnt(y):
    return network(y, fit.x)

new = np.array([1.5, 2.0])
true, guess = trajectories(pendulum, new), trajectories(learnt, new)
assert np.abs(guess - true).max() < 0.4
fig, ax = plt.subplots()
x, v = np.meshgrid(np.linspace(-2.6, 2.6, 30), np.linspace(-4.2, 4.2, 30))
ax.streamplot(x, v, *np.moveaxis(learnt(np.stack([x, v], -1)), -1, 0), color="#7b879470", linewidth=0.8)
ax.plot(*guess.T, color="C1", label="network")
ax.plot(*true.T, ".", color="C0", label="pendulum")
ax.set(xlabel="angle / rad", ylabel="speed / (rad/s)")
ax.legend()
timing.gradient(loss, fit.x)
