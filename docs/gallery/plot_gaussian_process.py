"""
A Gaussian process for the flow of the Nile
===========================================

How did the yearly flow of the Nile change from 1871 to 1970? (Cobb, 1978.) A Gaussian process has
three unknowns: how far the mean strays, how many years it takes to, and the scatter of single
years. They maximise the marginal likelihood (Rasmussen and Williams, 2006, equation 2.30).
"""

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg
import timing

flow = """
1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140 1100 1210
1150 1250 1260 1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831 726 456 824 702
1120 1100 832 764 821 768 845 864 862 698 845 744 796 1040 759 781 865 845 944 984 897 822 1010 771
676 649 846 812 742 801 1040 860 874 848 890 744 749 838 1050 918 986 797 923 975 815 1020 906 901
1170 912 746 919 718 714 740"""
flow = np.array(flow.split(), dtype=float)
year = np.arange(1871.0, 1971.0)
distance2 = (year[:, None] - year) ** 2
y = (flow - flow.mean())[:, None]
eye = np.eye(len(y))

def covariance(p):
    stray, years, scatter = tg.exp(p[0]), tg.exp(p[1]), tg.exp(p[2])
    smooth = stray**2 * tg.exp(-distance2 / (2 * years**2))
    return smooth, smooth + scatter**2 * eye

def negative_log_likelihood(p):
    L = tg.linalg.cholesky(covariance(p)[1])
    white = tg.linalg.solve_triangular(L, y, upper=False)
    return 0.5 * (white**2).sum() + tg.log(tg.diagonal(L)).sum()

fit = tg.scipy.minimize(negative_log_likelihood, np.log([100.0, 10.0, 100.0]), method="BFGS")
error = np.sqrt(np.diag(np.linalg.inv(tg.func.hessian(negative_log_likelihood)(fit.x))))
stray, years, scatter = np.exp(fit.x)
low, high = np.exp(fit.x[2] - 2 * error[2]), np.exp(fit.x[2] + 2 * error[2])
print(f"strays by {stray:.0f} within {years:.0f} years; scatter {scatter:.0f} ({low:.0f} to {high:.0f})")
assert fit.success or np.abs(fit.jac).max() < 1e-4
assert low < np.sqrt(15099.0) < high  # the variance of a local level (Durbin and Koopman, 2001)

# %%
smooth, noisy = (c.numpy() for c in covariance(tg.tensor(fit.x)))
mean = flow.mean() + (smooth @ np.linalg.solve(noisy, y))[:, 0]
band = 2 * np.sqrt(np.diag(smooth - smooth @ np.linalg.solve(noisy, smooth)))
fig, ax = plt.subplots()
ax.plot(year, flow, "o", alpha=0.6, label="measured at Aswan")
ax.fill_between(year, mean - band, mean + band, color="C1", alpha=0.35, label="2 standard errors")
ax.plot(year, mean, color="C1", label="mean of the process")
ax.set(xlabel="year", ylabel="flow / 10⁸ m³")
ax.legend()
timing.gradient(negative_log_likelihood, fit.x)
