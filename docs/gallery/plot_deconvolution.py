"""
A blurred photograph becomes sharp
==================================

A lens has blurred the picture, and the camera has added noise. The sharp picture explains the blurred
one and has few edges: the sum of squares and the total variation (Rudin, Osher and Fatemi, 1992) are
minimised over 16,384 pixels by L-BFGS.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import tapegrad as tg
import timing

sharp = load_sample_image("flower.jpg")[60:316, 220:476].mean(2).reshape(128, 2, 128, 2).mean((1, 3)) / 255
n = np.arange(128)
blur = np.exp(-0.5 * ((n[:, None] - n) / 1.7) ** 2)
blur /= blur.sum(1, keepdims=True)  # of the columns, and of the rows
noise = 0.005
blurred = blur @ sharp @ blur.T + noise * np.random.default_rng(0).normal(size=sharp.shape)
weights, transposed = blur, np.ascontiguousarray(blur.T)

def loss(image):
    misfit = ((weights @ image @ transposed - blurred) ** 2).sum() / (2 * noise**2)
    down, right = image[1:, :-1] - image[:-1, :-1], image[:-1, 1:] - image[:-1, :-1]
    return misfit + 12.0 * tg.sqrt(down**2 + right**2 + 1e-5).sum()

fit = tg.scipy.minimize(lambda p: loss(p["image"]), {"image": blurred}, method="L-BFGS-B",
                        options={"maxiter": 300})
found = fit.x["image"]

def decibels(image):
    """The ratio of peak signal to noise."""
    return -10 * np.log10(((image - sharp) ** 2).mean())

print(f"{decibels(blurred):.1f} dB before, {decibels(found):.1f} dB after {fit.nit} iterations")
assert decibels(found) > decibels(blurred) + 3

# %%
fig, axes = plt.subplots(1, 3, figsize=(7.0, 2.7))
for ax, image, name in zip(axes, (blurred, found, sharp), ("seen", "restored", "true"), strict=True):
    ax.imshow(image, cmap="gray", vmin=0, vmax=1)
    ax.set_title(name)
    ax.axis("off")
timing.gradient(loss, found)
