"""
Half-lives from a decay curve, with error bars
==============================================

Silver that was in a neutron beam is a mixture of two isotopes, with half-lives of 142 s and 25 s. A
counter sees the sum of both and a background. ``tapegrad.scipy.curve_fit`` fits the sum, with the
exact Jacobian.
"""

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg
import timing

def counts(t, slow, half_slow, fast, half_fast, background):
    return slow * tg.exp2(-t / half_slow) + fast * tg.exp2(-t / half_fast) + background


rng = np.random.default_rng(0)
truth = np.array([400.0, 142.4, 2000.0, 24.6, 20.0])
t = np.arange(0.0, 900.0, 5.0)
seen = rng.poisson(counts(t, *truth)).astype(float)
sigma = np.sqrt(seen)

guess = [300.0, 100.0, 1000.0, 20.0, 9.0]
popt, pcov = tg.scipy.curve_fit(counts, t, seen, guess, sigma, absolute_sigma=True)
error = np.sqrt(np.diag(pcov))
for n, name in enumerate(["slow", "half-life", "fast", "half-life", "background"]):
    print(f"{name:10} {popt[n]:7.1f} ± {error[n]:4.1f}    (true: {truth[n]})")
assert (abs(popt - truth) < 3 * error).all()

# %%
# The Jacobian of the curve by the parameters carries their covariance over to the curve.
J = tg.func.jacrev(lambda p: counts(t, *p))(popt)
curve, band = counts(t, *popt), 2 * np.sqrt(np.einsum("ti,ij,tj->t", J, pcov, J))
slow = counts(t, *popt[:2], 0.0, 1.0, popt[4])

fig, ax = plt.subplots()
ax.errorbar(t, seen, sigma, fmt=".", color="C0", alpha=0.5, label="counts")
ax.fill_between(t, curve - band, curve + band, color="C1", alpha=0.4, label="fit, 2 standard errors")
ax.plot(t, curve, color="C1")
ax.plot(t, slow, "--", color="C2", label=f"slow part: {popt[1]:.0f} ± {error[1]:.0f} s")
ax.set(xlabel="time / s", ylabel="counts in 5 s", yscale="log", ylim=(9, 4000))
ax.legend()

# %%
# What the weighted sum of squares and its gradient take:
def chi_square(p):
    return (((counts(t, p[0], p[1], p[2], p[3], p[4]) - seen) / sigma) ** 2).sum()


timing.gradient(chi_square, popt)
