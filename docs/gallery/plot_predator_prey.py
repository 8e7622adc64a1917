"""
Hares and lynxes: fit of a differential equation
================================================

Pelts that the Hudson's Bay Company bought from 1900 to 1920, in thousands. The rates of the
Lotka-Volterra equations and the first populations are fitted by ``tapegrad.scipy.least_squares``,
which gets the Jacobian of 200 Runge-Kutta steps from a compiled program.
"""

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg
import timing

hares = [30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1,
         40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7]  # fmt: skip
lynxes = [4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4,
          8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6]  # fmt: skip
log_pelts = np.log(np.stack([hares, lynxes], 1))
H = 0.1  # of a year

def rate(y, p):  # of the logarithms of both
    return tg.stack([p[0] - p[1] * tg.exp(y[1]), p[2] * tg.exp(y[0]) - p[3]])

def simulate(log_p):
    p, y = tg.exp(log_p[:4]), log_p[4:]
    states = [y]
    for _ in range(200):
        k1 = rate(y, p)
        k2 = rate(y + H / 2 * k1, p)
        k3 = rate(y + H / 2 * k2, p)
        y = y + H / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + H * k3, p))
        states.append(y)
    return tg.stack(states)

def residuals(log_p):
    return (simulate(log_p)[::10] - log_pelts).ravel()

start = np.log([0.5, 0.03, 0.03, 0.8, 30.0, 4.0])
fit = tg.scipy.least_squares(residuals, start)
sigma = np.sqrt(2 * fit.cost / (42 - 6))
covariance = sigma**2 * np.linalg.inv(fit.jac.T @ fit.jac)
for name, value, error in zip(["births", "hunting", "growth", "deaths"], np.exp(fit.x),
                              np.sqrt(np.diag(covariance)), strict=False):
    print(f"{name:8} {value:.3f} ± {value * error:.3f}")
assert np.allclose(np.exp(fit.x[:4]), [0.55, 0.028, 0.024, 0.80], rtol=0.1)  # Stan's case study

# %%
# Other populations that agree with the data as well: draws from the covariance.
fig, ax = plt.subplots()
year, draw = np.linspace(1900, 1920, 201), tg.compile(simulate)
for p in np.random.default_rng(0).multivariate_normal(fit.x, covariance, 40):
    ax.plot(year, np.exp(draw(p)), color="C2", linewidth=0.7, alpha=0.3)
for k, name in enumerate(["hares", "lynxes"]):
    ax.plot(year, np.exp(draw(fit.x))[:, k], f"C{k}")
    ax.plot(year[::10], np.exp(log_pelts[:, k]), f"oC{k}", label=name)
ax.set(xlabel="year", ylabel="pelts / thousand", xticks=range(1900, 1921, 4))
ax.legend()
timing.gradient(lambda p: (residuals(p) ** 2).sum(), fit.x)
