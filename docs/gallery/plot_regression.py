"""
Logistic and Poisson regression, with error bars from the Hessian
=================================================================

Both are a line of code each: the negative log likelihood. ``tapegrad.scipy.minimize`` takes Newton's
steps with exact Hessians, whose inverse at the solution is the covariance of the estimates. The data
are scikit-learn's tumours (UCI, 1995), and deaths by AIDS in Australia per quarter from 1983 on
(Whitehead, 1983; Dobson, *Generalized Linear Models*).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, PoissonRegressor

import tapegrad as tg
import timing

cancer = load_breast_cancer()
X = (cancer.data[:, :10] - cancer.data[:, :10].mean(0)) / cancer.data[:, :10].std(0)
benign = cancer.target.astype(float)

def logistic(w):
    score = X @ w[1:] + w[0]
    return (tg.nn.functional.softplus(score) - benign * score).sum() + 0.5 * (w[1:] ** 2).sum()

deaths = np.array([0, 1, 2, 3, 1, 4, 9, 18, 23, 31, 20, 25, 37, 45.0])
quarter = np.arange(1.0, 15.0)
basis = np.stack([np.ones(14), np.log(quarter)], 1)

def poisson(w):
    log_rate = basis @ w
    return (tg.exp(log_rate) - deaths * log_rate).sum()

def fit(loss, size):
    w = tg.scipy.minimize(loss, np.zeros(size), method="trust-exact").x
    return w, np.linalg.inv(tg.func.hessian(loss)(w))

w, covariance = fit(logistic, 11)
slope, slope_covariance = fit(poisson, 2)
print(f"deaths grow as quarter ** ({slope[1]:.2f} ± {slope_covariance[1, 1] ** 0.5:.2f})")
oracle = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(X, benign)
assert np.allclose(w[1:], oracle.coef_[0], atol=1e-3)
oracle = PoissonRegressor(alpha=0.0, tol=1e-9).fit(basis[:, 1:], deaths)
assert np.allclose(slope, [oracle.intercept_, *oracle.coef_], atol=1e-3)

# %%
fig, (left, right) = plt.subplots(1, 2)
left.errorbar(w[1:], np.arange(10), xerr=2 * np.sqrt(np.diag(covariance))[1:], fmt="o")
left.axvline(0.0, color="C5", linewidth=1)
names = [name.removeprefix("mean ") for name in cancer.feature_names[:10]]
left.set(xlabel="log odds of a benign tumour\nper standard deviation", yticks=range(10), yticklabels=names)
rate, error = np.exp(basis @ slope), np.sqrt(np.einsum("ti,ij,tj->t", basis, slope_covariance, basis))
right.fill_between(quarter, rate * np.exp(-2 * error), rate * np.exp(2 * error), color="C1", alpha=0.4)
right.plot(quarter, rate, color="C1")
right.plot(quarter, deaths, "o", color="C0")
right.set(xlabel="quarter since 1983", ylabel="deaths")
timing.gradient(logistic, w)
