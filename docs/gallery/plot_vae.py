"""
A variational autoencoder draws digits
======================================

Two numbers describe a digit (Kingma and Welling, 2014). Each call of the compiled step draws new noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from sklearn.datasets import load_digits

import tapegrad as tg
import timing

tg.set_default_dtype(tg.float32)
tg.manual_seed(0)
digits = load_digits()
pixels = (digits.data / 16).astype(np.float32)

def make():
    nn = tg.nn
    encoder = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, 4))
    decoder = nn.Sequential(nn.Linear(2, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, 64))
    optimizer = tg.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)

    def step(x):
        optimizer.zero_grad()
        mean, log_scale = encoder(x).chunk(2, dim=1)
        code = mean + tg.exp(log_scale) * tg.randn(len(x), 2)
        misfit = nn.functional.binary_cross_entropy_with_logits(decoder(code), x, reduction="sum")
        divergence = (0.5 * (tg.exp(2 * log_scale) + mean**2 - 1) - log_scale).sum()
        loss = (misfit + divergence) / len(x)
        loss.backward()
        optimizer.step()
        return loss

    return (encoder, decoder), step

(encoder, decoder), step = make()
step, losses, rng = tg.compile(step), [], np.random.default_rng(0)
for _ in range(80):
    for batch in rng.permutation(1797)[:1792].reshape(-1, 64):
        losses.append(step(pixels[batch]).item())
print(f"minus the evidence lower bound: {losses[0]:.1f} nats at first, {np.mean(losses[-28:]):.1f} at last")
assert np.mean(losses[-28:]) < 26.0
# %%
# Where the digits lie, and what the decoder draws for evenly spaced quantiles of the prior.
fig, (left, right) = plt.subplots(1, 2)
with tg.no_grad():
    codes = encoder(tg.tensor(pixels))[:, :2].numpy()
    grid = stats.norm.ppf(np.linspace(0.04, 0.96, 12)).astype(np.float32)
    points = np.stack(np.meshgrid(grid, -grid), -1).reshape(-1, 2)
    drawn = tg.sigmoid(decoder(tg.tensor(points))).reshape(12, 12, 8, 8)
    drawn = tg.nn.functional.pad(drawn, (1, 1, 1, 1)).transpose(1, 2).reshape(120, 120).numpy()
left.scatter(*codes.T, c=digits.target, cmap="tab10", s=6, alpha=0.7)
left.set(xlabel="first number", ylabel="second number")
right.imshow(drawn, cmap="Blues")
right.axis("off")
timing.steps(make, pixels[:64])
