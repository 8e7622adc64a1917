"""
A convolutional network reads digits
====================================

The 1,797 handwritten digits of 8 x 8 pixels that scikit-learn ships (UCI, 1998). The network is
written as in PyTorch; ``tg.compile`` makes one program of a step: forward, backward and Adam.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import tapegrad as tg
import timing

tg.set_default_dtype(tg.float32)
tg.manual_seed(0)
digits = load_digits()
images, labels = (digits.images[:, None] / 16).astype(np.float32), digits.target
train, test = np.split(np.random.default_rng(0).permutation(len(labels)), [1400])

def make():
    nn = tg.nn
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64, 10),
    )
    optimizer = tg.optim.Adam(model.parameters(), lr=3e-3)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, step

model, step = make()
step, losses = tg.compile(step), []
for _ in range(10):
    for batch in train[tg.randperm(1400).numpy()].reshape(-1, 40):
        losses.append(step(images[batch], labels[batch]).item())
guess = model.eval()(tg.tensor(images[test])).argmax(1).numpy()
model.train()
right = guess == labels[test]
print(f"{right.mean():.1%} of {len(test)} digits that it has not seen")
assert right.mean() > 0.97

# %%
# The digits that it gets wrong come first.
curve, grid = plt.figure().subfigures(1, 2)
curve.subplots().semilogy(losses, alpha=0.7)
curve.axes[0].set(xlabel="step", ylabel="cross entropy of the batch")
for ax, n in zip(grid.subplots(4, 4).flat, np.argsort(right, stable=True), strict=False):
    ax.imshow(images[test[n], 0], cmap="Blues")
    ax.set_title(guess[n], color="C2" if right[n] else "C3", pad=1)
    ax.axis("off")
timing.steps(make, images[:40], labels[:40])
