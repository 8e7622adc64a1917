"""
Learning to learn sines
=======================

MAML (Finn, Abbeel and Levine, 2017) looks for weights from which one step of gradient descent on ten
points of a new sine is enough. Its loss contains a gradient, and is differentiated; ``vmap`` runs 25
sines at once, and all of it is one compiled program.
"""

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg
import timing

def network(p, x):
    h = tg.tanh(tg.tanh(x[:, None] @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"])
    return (h @ p["W3"] + p["b3"])[:, 0]

def misfit(p, x, y):
    return ((network(p, x) - y) ** 2).mean()

def adapted(p, x, y, rate=0.05):
    return {name: p[name] - rate * g for name, g in tg.func.grad(misfit)(p, x, y).items()}

def meta_loss(p, x, y):
    """Of tasks, which are rows: learn from ten points of a sine, and be judged by the others."""
    return tg.vmap(lambda x, y: misfit(adapted(p, x[:10], y[:10]), x[10:], y[10:]))(x, y).mean()

def sines(count, points=20):
    amplitude, phase = rng.uniform(0.5, 4.0, (count, 1)), rng.uniform(0.0, np.pi, (count, 1))
    x = rng.uniform(-5.0, 5.0, (count, points))
    return x, amplitude * np.sin(x - phase)

rng, n = np.random.default_rng(0), 40
sizes = {"W1": (1, n), "b1": (n,), "W2": (n, n), "b2": (n,), "W3": (n, 1), "b3": (1,)}
p = {k: tg.tensor(rng.normal(size=s) / s[0] ** 0.5, requires_grad=True) for k, s in sizes.items()}
optimizer = tg.optim.Adam(p.values(), lr=4e-3)
slopes, losses = tg.compile(tg.func.grad_and_value(meta_loss)), []
for _ in range(1500):
    tasks = sines(25)
    gradient, loss = slopes(p, *tasks)
    for name in p:
        p[name].grad = gradient[name]
    optimizer.step()
    losses.append(loss.item())
print(f"error after one step: {np.mean(losses[:50]):.2f} at first, {np.mean(losses[-200:]):.2f} at last")
assert np.mean(losses[-200:]) < 0.5

# %%
p, (x, y) = {name: value.detach().numpy() for name, value in p.items()}, sines(1, 10)
fig, ax = plt.subplots()
t, q = np.linspace(-5.0, 5.0, 200), p
for steps in range(3):
    ax.plot(t, network(q, t), label=f"after {steps} steps", color=f"C{2 - steps}")
    q = adapted(q, x[0], y[0])
ax.plot(x[0], y[0], "o", color="C3", label="all that it sees")
ax.set(xlabel="x", ylabel="y")
ax.legend()
timing.gradient(lambda p: meta_loss(p, *tasks), p)
