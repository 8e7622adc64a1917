"""What programs call: their inputs, and their gradients. It is the beginning of each script that shows a mismatch."""

import numpy as np

EPS = 0.0  # inputs are moved by this, relative to them, to see how much depends on rounding


def data(seed, shape, dtype, kind="grid"):
    """Return random numbers that single precision holds; of a grid, so that there are ties and zeros."""
    rng = np.random.default_rng(seed)
    if kind == "grid":
        x = rng.choice([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0], shape)
    else:
        x = rng.normal(size=shape) if kind == "normal" else rng.uniform(0.1, 3.0, shape)
    x = np.float32(x).astype(np.float64)
    if dtype.startswith("complex"):
        x = x + 1j * np.float32(rng.normal(size=shape))
    if dtype[0] in "fc":
        x = x * (1 + EPS * rng.normal(size=shape))
    return np.asarray(abs(x) if dtype == "uint8" else x).astype(dtype)


def finite(m, x):
    """Return a value with 0.5 in place of what is large, or nan."""
    return m.where(x.abs() < 3.7, x, 0.5)


def definite(m, x):
    """Return positive definite matrices of as many rows as a value has, whose eigenvalues differ."""
    n, a = x.shape[-2], finite(m, x)
    return a @ a.mH * 0.25 + (m.eye(n) * m.arange(1, n + 1) ** 2).type_as(a)


def invertible(m, x):
    """Return matrices that are not Hermitian; as their Hermitian parts are definite, they are invertible."""
    p = definite(m, x)
    return p + m.tril(p, -1) - m.triu(p, 1)


def tall(m, x):
    """Return matrices of full rank, with twice as many rows as columns."""
    p = definite(m, x)
    return m.cat([p, m.triu(p) + 1], -2)


def first(x):
    """Return the first matrix of a batch."""
    return x.reshape(-1, *x.shape[-2:])[0]


def sizes(vectors):
    """Return the squares of absolute values, in which no phase is seen."""
    return (vectors * vectors.conj()).real


def with_vectors(pair):
    """Return a matrix by its eigenvalues, squared, and eigenvectors."""
    values, vectors = pair
    return (vectors * (values * values)[..., None, :]) @ vectors.inverse()


def total(m, values):
    """Return a sum of all elements with weights, in double precision."""
    loss = 0.0
    for x in values:
        weight = m.tensor(np.linspace(0.5, 1.5, x.numel()).reshape(tuple(x.shape)).astype(np.float32))
        part = (x * weight).sum()
        loss = loss + ((part.real + part.imag * 0.5) if part.is_complex() else part).to(m.float64)
    return loss


def gradients(m, values, leaves, orders=2):
    """Return first and second gradients."""
    found = {}
    values = [x for x in values if x.requires_grad]
    for order in ("first", "second")[:orders]:
        if not values or not leaves:
            break
        loss = total(m, values)
        if not loss.requires_grad:
            break
        found[order] = m.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
        values = [x for x in found[order] if x is not None and x.requires_grad]
    return found


def space(m):
    """Return what the lines of a program read."""
    helpers = data, finite, definite, invertible, tall, first, sizes, with_vectors
    return {"m": m, "F": m.nn.functional} | {helper.__name__: helper for helper in helpers}
