"""
A pendulum swings itself up
===========================

The motor is too weak to lift the pendulum: it has to swing. The 120 torques that bring it upright
and to rest with little effort are found by ``tapegrad.scipy.minimize``; each of its steps simulates
the motion and goes back through it. Compiled, the Python loop becomes two loops of machine code.
"""

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg
import timing

H, LIMIT = 0.04, 4.0  # s; N m. To hold the pendulum level would take 9.81 N m.

def simulate(torques):
    """Angles, from hanging, of a mass of 1 kg at 1 m; then the speed at the end."""
    angle = speed = 0.0 * torques[0]
    angles = []
    for torque in torques:
        speed = speed + H * (torque - 0.1 * speed - 9.81 * tg.sin(angle))
        angle = angle + H * speed
        angles.append(angle)
    return tg.stack(angles), speed

def cost(torques):
    angles, speed = simulate(torques)
    height = (1 + tg.cos(angles)) * H
    return height.sum() + 20 * (1 + tg.cos(angles[-1])) + speed**2 + 2e-3 * (torques**2).sum()

start = 0.1 * np.random.default_rng(1).normal(size=120)
best = tg.scipy.minimize(cost, start, method="L-BFGS-B", bounds=[(-LIMIT, LIMIT)] * 120)
angles, speed = (x.numpy() for x in simulate(tg.tensor(best.x)))
print(f"{best.nit} iterations; at the end {np.degrees(angles[-1]):.1f}°, {speed:.2f} rad/s")
assert np.cos(angles[-1]) < -0.99 and abs(speed) < 0.3

# %%
fig, (picture, over_time) = plt.subplots(1, 2, width_ratios=[1, 1.3])
for n in range(0, 120, 3):
    tip = np.sin(angles[n]), -np.cos(angles[n])
    picture.plot([0, tip[0]], [0, tip[1]], color=plt.cm.viridis(n / 120), linewidth=1, alpha=0.8)
    picture.plot(*tip, "o", color=plt.cm.viridis(n / 120))
picture.set(aspect="equal", xticks=[], yticks=[])
picture.axis("off")
time = H * np.arange(120)
over_time.plot(time, np.degrees(angles), label="angle / °")
over_time.set(xlabel="time / s", ylabel="angle / °")
over_time.yaxis.label.set_color("C0")
torque = over_time.twinx()
torque.step(time, best.x, "C1", linewidth=1)
torque.set_ylabel("torque / N m", color="C1")
torque.set_ylim(-3 * LIMIT, 3 * LIMIT)
timing.gradient(cost, best.x)
