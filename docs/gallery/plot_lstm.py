"""
An LSTM learns the Zen of Python, letter by letter
==================================================

The text is the one that ``import this`` prints. The network reads stretches of 40 letters and says
which comes next; then it writes on its own. All of a step is compiled, clipping and Adam included.
"""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg
import timing

tg.set_default_dtype(tg.float32)
tg.manual_seed(0)
text = subprocess.run([sys.executable, "-m", "this"], capture_output=True, text=True).stdout.lower()
letters = sorted(set(text))
codes = np.array([letters.index(letter) for letter in text])

def make():
    nn = tg.nn
    model = nn.ModuleDict({"embed": nn.Embedding(len(letters), 24), "head": nn.Linear(64, len(letters)),
                           "lstm": nn.LSTM(24, 64, batch_first=True)})
    optimizer = tg.optim.Adam(model.parameters(), lr=0.01)

    def step(x, y):
        optimizer.zero_grad()
        logits = model["head"](model["lstm"](model["embed"](x))[0])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return model, step

model, step = make()
step, losses, rng = tg.compile(step), [], np.random.default_rng(0)
for _ in range(500):
    place = rng.integers(len(codes) - 40, size=(16, 1)) + np.arange(40)
    losses.append(step(codes[place], codes[place + 1]).item())
with tg.no_grad():
    written, state, x = text[:18], None, tg.tensor(codes[None, :18])
    for _ in range(300):
        out, state = model["lstm"](model["embed"](x), state)
        x = model["head"](out[:, -1]).argmax(1, keepdim=True)
        written += letters[x.item()]
print(written)
assert np.mean(losses[-20:]) < 0.3

# %%
fig, ax = plt.subplots()
ax.plot(np.array(losses) / np.log(2))
ax.set(xlabel="step", ylabel="bits a letter", ylim=0)
timing.steps(make, codes[place], codes[place + 1])
