"""
Eight schools by Hamiltonian Monte Carlo in machine code
========================================================

How much did coaching help in eight schools, if their effects come from one distribution? (Rubin,
1981; Gelman et al., *Bayesian Data Analysis*, section 5.5.) ``Program.njit`` is the gradient as a
function that Numba compiles into the sampler.
"""

import matplotlib.pyplot as plt
import numba
import numpy as np

import tapegrad as tg
import timing
from tapegrad.program import Program

effect = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
sigma = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

def log_density(q):
    mu, tau, eta = q[0], tg.exp(q[1]), q[2:]
    residuals = (effect - mu - tau * eta) / sigma
    priors = (eta**2).sum() + (mu / 5) ** 2 + 2 * tg.log1p((tau / 5) ** 2)
    return q[1] - 0.5 * (priors + (residuals**2).sum())

slope_and_density = Program.trace(tg.func.grad_and_value(log_density), np.zeros(10)).njit

@numba.njit
def sample(normal, log_uniform, q, leaps=12, step=0.25):
    chain, (slope, density) = np.empty(normal.shape), slope_and_density(q)
    for n, p in enumerate(normal):
        energy, x, force = density - 0.5 * (p**2).sum(), q, slope
        for _ in range(leaps):
            p = p + 0.5 * step * force
            x = x + step * p
            force, there = slope_and_density(x)
            p = p + 0.5 * step * force
        if log_uniform[n] < there - 0.5 * (p**2).sum() - energy:
            q, slope, density = x, force, there
        chain[n] = q
    return chain

rng, draws = np.random.default_rng(0), 50_000
chain = sample(rng.normal(size=(draws, 10)), np.log(rng.uniform(size=draws)), np.zeros(10))
mu, tau = chain[:, 0], np.exp(chain[:, 1])
schools = mu[:, None] + tau[:, None] * chain[:, 2:]
print(f"mean effect {mu.mean():.1f} ± {mu.std():.1f}, spread of schools {tau.mean():.1f}")
assert np.allclose([mu.mean(), tau.mean()], [4.4, 3.6], atol=0.3)  # as posteriordb's long runs

# %%
fig, (left, right) = plt.subplots(1, 2, width_ratios=[3, 2])
left.errorbar(effect, np.arange(8) - 0.15, xerr=sigma, fmt="o", label="each alone")
left.errorbar(schools.mean(0), np.arange(8) + 0.15, xerr=schools.std(0), fmt="o", label="together")
left.set(xlabel="effect / points", yticks=range(8), yticklabels="ABCDEFGH", ylabel="school", ylim=(-0.6, 9))
left.legend(loc="upper right")
right.hexbin(mu, np.log(tau), gridsize=40, mincnt=1, linewidths=0)
right.set(xlabel="mean effect / points", ylabel="log of the spread")
timing.gradient(log_density, np.zeros(10))
