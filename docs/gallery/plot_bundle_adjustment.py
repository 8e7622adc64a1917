"""
Bundle adjustment with a sparse Jacobian
========================================

Where were the cameras, and where the points that they saw? Each error depends on the six numbers of
one camera and the three of one point, so nearly all of the Jacobian is zero. With ``sparse=True``
``tapegrad.scipy.least_squares`` finds the pattern from the function, and computes only what is not.
"""

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg
import timing

def view(camera, point):
    """Turn a point by a rotation vector (Rodrigues), move it, and look along z."""
    turn, shift = camera[..., :3], camera[..., 3:]
    angle = tg.sqrt((turn**2).sum(-1, keepdim=True) + 1e-12)
    axis = turn / angle
    along = (axis * point).sum(-1, keepdim=True) * axis
    side = tg.linalg.cross(axis, point)
    seen = tg.cos(angle) * (point - along) + tg.sin(angle) * side + along + shift
    return seen[..., :2] / seen[..., 2:]

rng, n_cameras, n_points = np.random.default_rng(0), 12, 150
t = np.linspace(0.0, 6 * np.pi, n_points)
points = np.stack([np.cos(t), t / 10 - 1, np.sin(t)], 1)  # a helix, and cameras around it
around = np.linspace(-1.2, 1.2, n_cameras)
cameras = np.stack([0 * around, around, 0 * around, 0 * around, 0 * around, 5 + 0 * around], 1)
camera, point = np.divmod(np.arange(n_cameras * n_points), n_points)
image = view(tg.tensor(cameras)[camera], tg.tensor(points)[point]).numpy()
image += 1e-3 * rng.normal(size=image.shape)

def errors(p):
    return ((view(p["cameras"][camera], p["points"][point]) - image) * 1e3).ravel()

start = {"cameras": cameras + 0.05 * rng.normal(size=cameras.shape),
         "points": points + 0.15 * rng.normal(size=points.shape)}
fit = tg.scipy.least_squares(errors, start, sparse=True, x_scale="jac", max_nfev=50)
spread = np.sqrt(2 * fit.cost / (len(fit.fun) - fit.jac.shape[1] + 7))  # the scene as a whole is free
print(f"{fit.jac.shape} Jacobian, {fit.jac.nnz / np.prod(fit.jac.shape):.2%} of it stored")
print(f"errors: {spread:.2f} standard deviations of the noise, after {fit.nfev} evaluations")
assert 0.9 < spread < 1.1

# %%
fig, (scene, pattern) = plt.subplots(1, 2, width_ratios=[1.5, 1])
for p, mark, label in ((start["points"], ".", "start"), (fit.x["points"], "-", "found")):
    scene.plot(p[:, 1], p[:, 0], mark, label=label, alpha=0.8)
scene.set(xlabel="along the helix", ylabel="across", ylim=(-1.9, 1.4))
scene.legend(loc="lower center", ncols=2)
pattern.spy(fit.jac[:: len(points)], markersize=1.5, aspect="auto", color="C2")
pattern.set(xlabel="unknown", ylabel="error (one in 150)", xticks=[], yticks=[])

# %%
# The blocks of all observations, which are what is not zero, by ``vmap``:
def blocks(cameras, points):
    return tg.vmap(tg.func.jacrev(view, argnums=(0, 1)))(cameras, points)

timing.calls(blocks, fit.x["cameras"][camera], fit.x["points"][point])
