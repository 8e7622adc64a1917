"""
A mixture of normal distributions finds the species of irises
=============================================================

Fisher's irises (1936), without their names. Means, Cholesky factors of the precisions and weights of
three normal distributions maximise the likelihood. They stand in a dict, which
``tapegrad.scipy.minimize`` takes as it is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

import tapegrad as tg
import timing

iris = load_iris()
petals = iris.data[:, 2:]

def log_parts(p):
    """The log density of each component at each flower, (flower, component)."""
    x, y = petals[:, :1] - p["mean"][:, 0], petals[:, 1:] - p["mean"][:, 1]
    scale = tg.exp(p["log scale"])
    squares = (scale[:, 0] * x + p["skew"] * y) ** 2 + (scale[:, 1] * y) ** 2
    return tg.log_softmax(p["weight"], dim=0) + p["log scale"].sum(1) - 0.5 * squares

def loss(p):
    prior = 0.1 * (tg.exp(p["log scale"]) ** 2).sum() / len(petals)  # no component shrinks to a point
    return prior - tg.logsumexp(log_parts(p), dim=1).mean()

start = {
    "mean": np.array([[2.0, 0.5], [4.0, 1.0], [6.0, 2.0]]),
    "log scale": np.ones((3, 2)), "skew": np.zeros(3), "weight": np.zeros(3),
}
fit = tg.scipy.minimize(loss, start, method="L-BFGS-B")
found = {name: tg.tensor(value) for name, value in fit.x.items()}
shares = tg.softmax(log_parts(found), dim=1).numpy()
agreement = adjusted_rand_score(iris.target, shares.argmax(1))
print(f"{fit.nit} iterations, adjusted Rand index with the species: {agreement:.2f}")
assert fit.success and agreement > 0.8

# %%
# Ellipses hold half and nine tenths of a component.
fig, ax = plt.subplots()
noise = np.random.default_rng(0).uniform(-0.04, 0.04, petals.shape)  # the data are rounded
for k, marker in enumerate("os^"):
    own = iris.target == k
    ax.scatter(*(petals + noise)[own].T, s=18, marker=marker, c=shares[own] @ plt.cm.Dark2.colors[:3],
               label=iris.target_names[k])
    (a, b), skew = np.exp(fit.x["log scale"][k]), fit.x["skew"][k]
    turn = np.linspace(0.0, 2 * np.pi, 100)
    circle = np.linalg.solve([[a, skew], [0.0, b]], [np.cos(turn), np.sin(turn)])
    for share in (0.5, 0.9):
        ax.plot(*(fit.x["mean"][k][:, None] + np.sqrt(-2 * np.log(1 - share)) * circle), color="C0", lw=1)
ax.set(xlabel="length of petals / cm", ylabel="width of petals / cm")
ax.legend()
timing.gradient(loss, fit.x)
