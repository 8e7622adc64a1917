"""GradBench's evals: the protocol, values by SciPy or in plain loops, and derivatives by differences."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import special
from scipy.spatial.distance import cdist
from scipy.spatial.transform import Rotation
from scipy.stats import multivariate_normal, wishart

from bench.gradbench.evals import ba, gmm, ht
from bench.gradbench.inputs import made
from bench.gradbench.protocol import EVALS, Function, answers, functions

SMALL: dict[str, dict[str, int]] = {
    "ba": {"n": 3, "m": 5, "p": 7},
    "gmm": {"d": 3, "k": 4, "n": 6},
    "ht": {"vertices": 9, "points": 5, "us": 0},
    "kmeans": {"k": 4, "n": 20, "d": 3},
    "lstm": {"layers": 2, "text": 6, "bits": 3},
    "ode": {"n": 4, "s": 3},
    "lse": {"n": 6},
    "llsq": {"n": 9, "m": 4},
    "det": {"ell": 5},
}


def test_lines_are_answered_one_by_one_and_errors_too() -> None:
    asked: list[dict[str, Any]] = [
        {"kind": "start", "eval": "hello"},
        {"kind": "define", "module": "hello"},
        {"kind": "evaluate", "module": "hello", "function": "double", "input": 3.0},
        {"kind": "analysis", "of": 2, "valid": True},
        {"kind": "define", "module": "particle"},
        {"kind": "evaluate", "module": "lse", "function": "gradient", "input": {"x": [0.0, 0.0], "min_runs": 3}},
    ]
    out = io.StringIO()
    answers((json.dumps({"id": i, **message}) for i, message in enumerate(asked)), out)
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [answer["id"] for answer in found] == list(range(len(asked)))
    assert found[0]["tool"] == "tapegrad"
    assert found[1]["success"] is True
    assert found[2]["output"] == 6.0
    assert found[3] == {"id": 3}
    assert found[4]["success"] is False
    assert "there is no eval 'particle'; there are ba, det" in found[4]["error"]
    assert found[5]["output"] == [0.5, 0.5]
    assert [timing["name"] for timing in found[5]["timings"]] == ["compile", *["evaluate"] * 3]


def _output(name: str, label: str, given: Any) -> Any:
    function: Function = functions(name)[label]
    return json.loads(json.dumps(function.finish(function.call(*function.prepare(given)))))


def _lse(given: Any) -> Any:
    return special.logsumexp(given["x"])


def _llsq(given: Any) -> Any:
    t = np.linspace(-1, 1, given["n"])
    return ((np.sign(t) - np.polyval(given["x"][::-1], t)) ** 2).sum() / 2


def _ode(given: Any) -> Any:
    """Runge-Kutta's fourth order is exact for polynomials up to the fourth power."""
    powers = np.arange(1, len(given["x"]) + 1)
    return (np.cumprod(given["x"]) * 2.0**powers / special.factorial(powers)).tolist()


def _det(given: Any) -> Any:
    return np.linalg.det(np.reshape(given["A"], (given["ell"], given["ell"])))


def _kmeans(given: Any) -> Any:
    return (cdist(given["points"], given["centroids"]) ** 2).min(1).sum()


def _gmm(given: Any) -> Any:
    d, shares = given["d"], special.softmax(given["alpha"])
    density, prior = np.zeros(given["n"]), 0.0
    for share, mean, q, below in zip(shares, given["mu"], given["q"], given["l"], strict=True):
        root = np.diag(np.exp(q))
        root.T[np.triu_indices(d, 1)] = below
        inverse = root.T @ root
        density += share * multivariate_normal(mean, np.linalg.inv(inverse)).pdf(given["x"])
        prior += wishart(d + given["m"] + 1, np.eye(d) / given["gamma"] ** 2).logpdf(inverse)
    return np.log(density).sum() + prior


def _lstm(given: Any) -> Any:
    main, (into, out, bias), state, text = (
        np.array(given[name], float) for name in ("main_params", "extra_params", "state", "sequence")
    )
    size, total = text.shape[1], 0.0
    for now, then in pairwise(text):
        x = now * into
        for i in range(len(main) // 2):
            weights, biases = main[2 * i].reshape(4, size), main[2 * i + 1].reshape(4, size)
            hidden, cell = state[2 * i], state[2 * i + 1]
            forget, outgate = (special.expit(x * weights[g] + biases[g]) for g in (0, 2))
            cell = cell * forget + special.expit(hidden * weights[1] + biases[1]) * np.tanh(
                hidden * weights[3] + biases[3]
            )
            x = outgate * np.tanh(cell)
            state[2 * i], state[2 * i + 1] = x, cell
        y = x * out + bias
        total += then @ (y - np.log(np.exp(y).sum() + 2))
    return -total / ((len(text) - 1) * size)


def _ba(given: Any) -> Any:
    camera, weight = np.array(given["cam"]), given["w"]
    x, y, z = Rotation.from_rotvec(camera[:3]).apply(np.array(given["x"]) - camera[3:6])
    squared = (x * x + y * y) / z**2
    scale = camera[6] * (1 + camera[9] * squared + camera[10] * squared**2) / z
    error = weight * (scale * np.array([x, y]) + camera[7:9] - given["feat"])
    p = given["p"]
    return {
        "reproj_error": {"elements": error.tolist(), "repeated": p},
        "w_err": {"element": 1 - weight**2, "repeated": p},
    }


def _ht(given: Any) -> Any:
    theta, model = np.array(given["theta"]), given["data"]["model"]
    relatives, inverses, positions, weights = (
        np.array(model[name]) for name in ("base_relatives", "inverse_base_absolutes", "base_positions", "weights")
    )
    angles = np.zeros((len(relatives), 3))  # around x, z and y
    for finger in range(5):
        angles[2 + 4 * finger, :2] = theta[6 + 4 * finger : 8 + 4 * finger]
        angles[3 + 4 * finger, 0], angles[4 + 4 * finger, 0] = theta[8 + 4 * finger : 10 + 4 * finger]
    absolutes = []
    for bone, parent in enumerate(model["parents"]):
        moved = np.eye(4)
        moved[:3, :3] = Rotation.from_euler("ZYX", angles[bone, [1, 2, 0]]).as_matrix()
        own = relatives[bone] @ moved
        absolutes.append(own if parent < 0 else absolutes[parent] @ own)
    place = np.zeros((len(positions), 3))
    for bone, absolute in enumerate(absolutes):
        place += weights[:, bone, None] * (positions @ (absolute @ inverses[bone]).T)[:, :3]
    if model["is_mirrored"]:
        place[:, 0] *= -1
    place = Rotation.from_rotvec(theta[:3]).apply(place) + theta[3:6]
    seen = given["data"]["correspondences"]
    if len(given["us"]):
        shares = np.column_stack((given["us"], 1 - np.sum(given["us"], 1)))
        corners = np.einsum("pc,pci->pi", shares, place[np.array(model["triangles"])[seen]])
    else:
        corners = place[seen]
    return (given["data"]["points"] - corners).ravel().tolist()


VALUES = {
    "ba": ("objective", _ba), "det": ("primal", _det), "gmm": ("objective", _gmm), "ht": ("objective", _ht),
    "kmeans": ("cost", _kmeans), "llsq": ("primal", _llsq), "lse": ("primal", _lse), "lstm": ("objective", _lstm),
    "ode": ("primal", _ode),
}  # fmt: skip


def _close(found: Any, wanted: Any, tolerance: float) -> None:
    assert type(found) is type(wanted) or np.isscalar(wanted)
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key in wanted:
            _close(found[key], wanted[key], tolerance)
    else:
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def _inputs(name: str) -> list[Any]:
    given = made(name, SMALL[name])
    if name == "ht":
        mirrored = made(name, {**SMALL[name], "us": 1})
        mirrored["data"]["model"]["is_mirrored"] = True
        return [given, mirrored]
    if name == "gmm":
        return [given, {**given, "m": 2, "gamma": 1.5}, made(name, {"d": 1, "k": 2, "n": 4})]
    return [given]


def test_every_eval_is_tested() -> None:
    assert set(EVALS) == {"hello", *VALUES}


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    label, expected = VALUES[name]
    for given in _inputs(name):
        _close(_output(name, label, given), expected(given), 1e-10)


def _difference(function: Any, x: Any, step: float = 1e-5) -> Any:
    """Return the Jacobian by central differences, its last axes x's."""
    columns = []
    for i in range(x.size):
        up, down = x.copy(), x.copy()
        up.flat[i] += step
        down.flat[i] -= step
        columns.append((np.asarray(function(up)) - np.asarray(function(down))) / (2 * step))
    return np.stack(columns, -1).reshape(*columns[0].shape, *x.shape)


@pytest.mark.parametrize(
    ("name", "label", "keys"),
    [
        ("lse", "gradient", ["x"]),
        ("llsq", "gradient", ["x"]),
        ("det", "gradient", ["A"]),
        ("lstm", "jacobian", ["main_params", "extra_params"]),
    ],
)
def test_gradients(name: str, label: str, keys: list[str]) -> None:
    given = made(name, SMALL[name])
    _, value = VALUES[name]
    parts = [_difference(lambda x, k=key: value({**given, k: x.tolist()}), np.array(given[key])) for key in keys]
    _close(_output(name, label, given), np.concatenate([part.ravel() for part in parts]).tolist(), 1e-7)


def test_gradient_of_the_ode_is_of_its_last_element() -> None:
    given = made("ode", SMALL["ode"])
    _close(_output("ode", "gradient", given), (_ode(given)[-1] / np.array(given["x"])).tolist(), 1e-12)


def test_gradient_of_the_mixture() -> None:
    for given in _inputs("gmm"):
        found = _output("gmm", "jacobian", given)
        assert list(found) == ["alpha", "mu", "q", "l"]
        for key in (key for key in found if np.size(found[key])):
            by = _difference(lambda x, k=key, g=given: _gmm({**g, k: x.tolist()}), np.array(given[key]))
            _close(found[key], by.tolist(), 1e-6)


def test_direction_is_from_the_mean_of_each_cluster() -> None:
    given = made("kmeans", SMALL["kmeans"])
    points, centroids = np.array(given["points"]), np.array(given["centroids"])
    nearest = cdist(points, centroids).argmin(1)
    means = np.array([points[nearest == j].mean(0) for j in range(len(centroids))])
    _close(_output("kmeans", "dir", given), (centroids - means).tolist(), 1e-12)


@pytest.mark.full
def test_jacobian_of_the_hand_has_columns_for_a_points_own_numbers_first() -> None:
    for given in _inputs("ht"):
        wanted = _difference(lambda x, g=given: _ht({**g, "theta": x}), np.array(given["theta"]))
        if given["us"]:
            us = np.array(given["us"])
            own = _difference(lambda u, g=given, us=us: _ht({**g, "us": us + u}), np.zeros(2))
            wanted = np.concatenate((own, wanted), 1)
        _close(_output("ht", "jacobian", given), wanted.tolist(), 1e-7)


def test_a_hand_that_is_hardly_turned_is_not_turned() -> None:
    assert (np.asarray(ht.turn(np.array([1e-5, 0.0, 0.0]))) == np.eye(3)).all()


def test_jacobian_of_a_bundle_in_compressed_rows() -> None:
    given = made("ba", SMALL["ba"])
    n, m, p = (given[key] for key in "nmp")
    arrays = ba._scene(given)
    _, _, values, by_weight = ba.jacobian(*arrays)
    dense = np.zeros((3 * p, 11 * n + 3 * m + p))
    for i, (camera, point) in enumerate(arrays[4].T):
        for row in (0, 1):
            dense[2 * i + row, 11 * camera : 11 * camera + 11] = values[i, row, :11]
            dense[2 * i + row, 11 * n + 3 * point : 11 * n + 3 * point + 3] = values[i, row, 11:14]
            dense[2 * i + row, 11 * n + 3 * m + i] = values[i, row, 14]
        dense[2 * p + i, 11 * n + 3 * m + i] = by_weight[i]

    def errors(x: Any) -> Any:
        cameras, points, weights = np.split(x, (11 * n, 11 * n + 3 * m))
        found = ba.objective(cameras.reshape(n, 11), points.reshape(m, 3), weights, *arrays[3:])
        return np.concatenate([np.asarray(part).ravel() for part in found])

    x = np.concatenate([array.ravel() for array in arrays[:3]])
    np.testing.assert_allclose(dense, _difference(errors, x), rtol=1e-6, atol=1e-6)

    from scipy.sparse import csr_array

    sparse = csr_array(dense)  # its rows are full but for what is zero by chance: J of the principal point
    shown = _output("ba", "jacobian", given)
    assert shown["rows"][:3] == [0, 15, 30]
    assert shown["rows"][-1] == 30 * p + p
    assert len(shown["rows"]) == len(shown["cols"]) == len(shown["vals"]) == 31
    assert set(sparse.indices[: sparse.indptr[1]]) <= set(shown["cols"][:15])
    assert shown["vals"][:15] == dense[0, shown["cols"][:15]].tolist()
    assert shown["vals"][-1] == dense[-1, shown["cols"][-1]]


def test_places_of_a_triangle_are_its_columns() -> None:
    table, mask = gmm.places(3)
    assert (table * mask).tolist() == [[0, 0, 0], [0, 0, 0], [1, 2, 0]]
    assert mask.tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
