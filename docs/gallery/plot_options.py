"""
Prices of options and their sensitivities
=========================================

The Black-Scholes formula is written once (Black and Scholes, 1973). All first derivatives of 10,000
prices are one gradient; the second derivatives that traders name are gradients of gradients.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import tapegrad as tg
import timing

STRIKE = 100.0

def price(spot, volatility, rate, years):
    """Of a call: the right to buy at the strike."""
    spread = volatility * tg.sqrt(years)
    d1 = (tg.log(spot / STRIKE) + (rate + volatility**2 / 2) * years) / spread
    return spot * tg.special.ndtr(d1) - STRIKE * tg.exp(-rate * years) * tg.special.ndtr(d1 - spread)

def total(spot, volatility, rate, years):
    return price(spot, volatility, rate, years).sum()

def slope(f, n):
    """The derivative by one argument; each price depends on its own arguments only."""
    return lambda *x: tg.func.grad(f, argnums=n)(*x).sum()

SPOT, VOLATILITY, RATE, YEARS = range(4)

def greeks(*x):
    first = tg.func.grad(total, argnums=(0, 1, 2, 3))(*x)
    second = [tg.func.grad(slope(total, a), argnums=b)(*x)
              for a, b in ((SPOT, SPOT), (SPOT, VOLATILITY), (VOLATILITY, VOLATILITY))]
    return price(*x), *first, *second

spot, years = np.meshgrid(np.linspace(60.0, 140.0, 100), np.linspace(0.05, 1.0, 100))
x = spot, np.full_like(spot, 0.25), np.full_like(spot, 0.03), years
value, delta, vega, rho, decay, gamma, vanna, volga = tg.compile(greeks)(*x)
d1 = (np.log(spot / STRIKE) + (0.03 + 0.25**2 / 2) * years) / (0.25 * np.sqrt(years))
assert np.allclose(delta, stats.norm.cdf(d1))
assert np.allclose(gamma, stats.norm.pdf(d1) / (spot * 0.25 * np.sqrt(years)))

# %%
fig, axes = plt.subplots(2, 3, sharex=True, sharey=True)
shown = {"price": value, "delta": delta, "vega": vega, "gamma": gamma, "vanna": vanna, "volga": volga}
for ax, (name, z) in zip(axes.flat, shown.items(), strict=True):
    kind = "viridis" if z.min() > -1e-9 else "RdBu"
    ax.pcolormesh(spot, years, z, cmap=kind, rasterized=True, **({} if kind == "viridis" else {
        "vmin": -abs(z).max(), "vmax": abs(z).max()}))
    ax.set_title(name)
fig.supxlabel("price of the share", fontsize=11)
fig.supylabel("years to go", fontsize=11)
timing.calls(greeks, *x)
