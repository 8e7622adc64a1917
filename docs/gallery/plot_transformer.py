"""
A small transformer sorts numbers
=================================

Two layers of attention learn to sort ten numbers. The picture shows which number each output looks at.
"""

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg
import timing

tg.set_default_dtype(tg.float32)
tg.manual_seed(0)
LENGTH, NUMBERS, WIDTH = 10, 20, 32

def make():
    nn = tg.nn
    model = nn.ModuleDict({
        "number": nn.Embedding(NUMBERS, WIDTH), "place": nn.Embedding(LENGTH, WIDTH),
        "first": nn.TransformerEncoderLayer(WIDTH, 4, 64, 0.0, batch_first=True, norm_first=True),
        "second": nn.MultiheadAttention(WIDTH, 1, batch_first=True), "head": nn.Linear(WIDTH, NUMBERS),
    })
    optimizer = tg.optim.Adam(model.parameters(), lr=1e-2)

    def forward(x):
        h = model["first"](model["number"](x) + model["place"].weight)
        mixed, attention = model["second"](h, h, h)
        return model["head"](mixed), attention

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(forward(x)[0].flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        return loss

    return forward, step

forward, step = make()
step, losses, rng = tg.compile(step), [], np.random.default_rng(0)
for _ in range(700):
    x = rng.integers(NUMBERS, size=(64, LENGTH))
    losses.append(step(x, np.sort(x)).item())
new = rng.integers(NUMBERS, size=(500, LENGTH))
with tg.no_grad():
    logits, attention = forward(tg.tensor(new))
accuracy = (logits.argmax(2).numpy() == np.sort(new)).mean()
print(f"{accuracy:.1%} of the numbers stand where they belong")
assert accuracy > 0.9

# %%
fig, (left, right) = plt.subplots(1, 2)
left.semilogy(losses)
left.set(xlabel="step", ylabel="cross entropy")
right.imshow(attention[0].numpy(), cmap="Blues")
right.set(xlabel="numbers as they came", ylabel="numbers in order", xticks=range(LENGTH),
          yticks=range(LENGTH), xticklabels=new[0], yticklabels=np.sort(new[0]))
timing.steps(make, x, np.sort(x))
