"""
Optimal transport: points flow into another shape
=================================================

Sinkhorn's iterations compute what it costs to move one cloud of points to another, with a little
entropy (Cuturi, 2013), less what each costs to itself (Feydy et al., 2019). The gradient of that
divergence, through all iterations, says where each point has to go.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import make_moons

import tapegrad as tg
import timing

ENTROPY = 0.05

def cost(x, y):
    """Move each point of one cloud to the other, (n, 2) and (n, 2)."""
    distance = ((x[:, None, :] - y) ** 2).sum(2) / 2
    g, log_n = 0.0 * distance[0], np.log(len(x))
    for _ in range(20):  # the potentials of both clouds, in logarithms
        f = -ENTROPY * (tg.logsumexp((g - distance) / ENTROPY, dim=1) - log_n)
        g = -ENTROPY * (tg.logsumexp((f[:, None] - distance) / ENTROPY, dim=0) - log_n)
    return f.mean() + g.mean()

def divergence(x):
    return cost(x, goal) - cost(x, x) / 2

rng, n = np.random.default_rng(0), 150
goal = make_moons(n, noise=0.04, random_state=0)[0]
turn, radius = rng.uniform(0.0, 2 * np.pi, n), 0.7 * np.sqrt(rng.uniform(0.0, 1.0, n))
start = np.stack([0.5 + radius * np.cos(turn), 0.25 + radius * np.sin(turn)], 1)
pull, x, path = tg.compile(tg.func.grad(divergence)), start, [start]
for _ in range(40):
    x = x - 0.3 * n * pull(x)
    path.append(x)
path = np.stack(path)

def exact(x):
    """The least mean squared distance of a one-to-one map, by the Hungarian method."""
    distance = ((x[:, None] - goal) ** 2).sum(2) / 2
    return distance[linear_sum_assignment(distance)].mean()

print(f"transport cost: {exact(start):.3f} at the start, {exact(x):.4f} at the end")
assert exact(x) < 0.05 * exact(start)

# %%
fig, ax = plt.subplots()
hue = plt.cm.viridis((start[:, 0] - start[:, 0].min()) / np.ptp(start[:, 0]))
for k in range(n):
    ax.plot(*path[:, k].T, color=hue[k], linewidth=0.8, alpha=0.5)
ax.scatter(*start.T, s=8, c=hue, alpha=0.5)
ax.scatter(*x.T, s=26, c=hue)
ax.set(aspect="equal", xlabel="x", ylabel="y")
timing.gradient(divergence, start)
