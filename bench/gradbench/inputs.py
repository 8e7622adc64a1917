"""Inputs of the sizes that GradBench's evals have; those of its data files (BA, HT, LSTM) have other numbers here."""

from __future__ import annotations

from typing import Any

import numpy as np

SIZES: dict[str, list[dict[str, int]]] = {
    "hello": [{}],
    "ba": [{"n": 49, "m": 7776, "p": 31843}, {"n": 21, "m": 11315, "p": 36455}],
    "gmm": [{"d": 2, "k": 5, "n": 1000}, {"d": 10, "k": 25, "n": 1000}, {"d": 32, "k": 25, "n": 1000}],
    "ht": [{"vertices": 544, "points": 100, "us": 0}, {"vertices": 544, "points": 100, "us": 1}],
    "kmeans": [{"k": 100, "n": 10_000, "d": 8}, {"k": 100, "n": 10_000, "d": 16}],
    "lstm": [{"layers": 2, "text": 1024, "bits": 14}],
    "ode": [{"n": 1000, "s": 1}, {"n": 1000, "s": 10}, {"n": 1000, "s": 100}],
    "lse": [{"n": 10_000}, {"n": 1_280_000}],
    "llsq": [{"n": 256, "m": 128}, {"n": 4096, "m": 128}],
    "det": [{"ell": 5}, {"ell": 8}, {"ell": 11}],
}


def made(name: str, size: dict[str, int]) -> Any:
    """Return an input of an eval as the harness sends it, always the same for a size."""
    return _MAKERS[name](np.random.default_rng(0), **size)


def _bundle(rng: np.random.Generator, n: int, m: int, p: int) -> Any:
    camera = [*rng.normal(size=3) / 3, *rng.normal(size=3), 1.1, 0.1, 0.2, 0.01, 0.001]
    return {"n": n, "m": m, "p": p, "cam": camera, "x": [0.3, -0.2, 8.0], "w": 0.8, "feat": [0.1, 0.2]}


def _mixture(rng: np.random.Generator, d: int, k: int, n: int) -> Any:
    shapes = {"x": (n, d), "mu": (k, d), "q": (k, d), "l": (k, d * (d - 1) // 2), "alpha": (k,)}
    arrays = {name: rng.normal(size=shape).tolist() for name, shape in shapes.items()}
    return {"d": d, "k": k, "n": n, "m": 0, "gamma": 1.0, **arrays}


def _hand(rng: np.random.Generator, vertices: int, points: int, us: int) -> Any:
    """Make a wrist, four bones for each of five fingers, and a forearm."""
    parents = [-1, *(0 if joint == 0 else 4 * finger + joint for finger in range(5) for joint in range(4)), 0]
    places = np.tile(np.eye(4), (2, len(parents), 1, 1))
    places[:, :, :3, 3] = rng.normal(size=(2, len(parents), 3))
    weights = rng.uniform(size=(vertices, len(parents))) ** 8
    model = {
        "bone_count": len(parents),
        "bone_names": [f"bone {bone}" for bone in range(len(parents))],
        "parents": parents,
        "base_relatives": places[0].tolist(),
        "inverse_base_absolutes": places[1].tolist(),
        "base_positions": np.column_stack((rng.normal(size=(vertices, 3)), np.ones(vertices))).tolist(),
        "weights": (weights / weights.sum(1, keepdims=True)).tolist(),
        "triangles": rng.integers(vertices, size=(2 * vertices, 3)).tolist(),
        "is_mirrored": False,
    }
    seen = rng.integers(2 * vertices if us else vertices, size=points).tolist()
    data = {"model": model, "correspondences": seen, "points": rng.normal(size=(points, 3)).tolist()}
    inside = rng.uniform(size=(points, 2)) / 2
    return {"theta": rng.normal(size=26).tolist(), "data": data, "us": inside.tolist() if us else []}


def _clusters(rng: np.random.Generator, k: int, n: int, d: int) -> Any:
    points = rng.uniform(size=(n, d)).tolist()
    return {"points": points, "centroids": points[-k:]}


def _text(rng: np.random.Generator, layers: int, text: int, bits: int) -> Any:
    shapes = {"main_params": (2 * layers, 4 * bits), "extra_params": (3, bits), "state": (2 * layers, bits)}
    arrays = {name: rng.uniform(size=shape).tolist() for name, shape in shapes.items()}
    return {**arrays, "sequence": rng.integers(2, size=(text, bits)).tolist()}


_MAKERS: dict[str, Any] = {
    "hello": lambda rng: float(rng.uniform()),
    "ba": _bundle,
    "gmm": _mixture,
    "ht": _hand,
    "kmeans": _clusters,
    "lstm": _text,
    "ode": lambda rng, n, s: {"x": rng.uniform(size=n).tolist(), "s": s},
    "lse": lambda rng, n: {"x": rng.uniform(size=n).tolist()},
    "llsq": lambda rng, n, m: {"x": rng.uniform(size=m).tolist(), "n": n},
    "det": lambda rng, ell: {"A": rng.uniform(size=ell * ell).tolist(), "ell": ell},
}
