"""`tapegrad.scipy` against SciPy with derivatives by hand."""

import functools
import math
import warnings
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.sparse
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import tapegrad as tg
from tapegrad.scipy import curve_fit, least_squares, minimize, quad, root, solve_ivp
from tapegrad.scipy.snapshots import Unseen, frozen
from tests.tiers import mostly_full


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


BY_HAND = {"jac": scipy.optimize.rosen_der}
PRODUCT = {**BY_HAND, "hessp": scipy.optimize.rosen_hess_prod}
HESSIAN = {**BY_HAND, "hess": scipy.optimize.rosen_hess}
METHODS = {
    "Nelder-Mead": {}, "Powell": {}, "COBYLA": {}, "COBYQA": {}, "CG": BY_HAND, "BFGS": BY_HAND, "L-BFGS-B": BY_HAND,
    "TNC": BY_HAND, "SLSQP": BY_HAND, "Newton-CG": PRODUCT, "trust-ncg": PRODUCT, "trust-krylov": PRODUCT,
    "trust-constr": PRODUCT, "dogleg": HESSIAN, "trust-exact": HESSIAN, None: BY_HAND,
}  # fmt: skip


@pytest.mark.parametrize("method", mostly_full(METHODS, [own for own in METHODS if own != "COBYLA"]))
def test_minimisers_go_the_way_that_they_go_with_derivatives_by_hand(method):
    if method == "COBYQA" and not hasattr(scipy.optimize._minimize, "_minimize_cobyqa"):
        pytest.skip("this SciPy has no COBYQA")
    x0 = np.array([1.3, 0.7, 0.8, 1.1])
    ours = minimize(rosenbrock, x0, method=method)
    theirs = scipy.optimize.minimize(scipy.optimize.rosen, x0, method=method, **METHODS[method])
    assert type(ours) is type(theirs)
    assert abs(ours.nfev - theirs.nfev) <= 2 + theirs.nfev // 10  # the last bits of values differ
    np.testing.assert_allclose(ours.x, theirs.x, atol=2e-3)
    assert ours.success == theirs.success
    assert isinstance(ours.x, np.ndarray)


def test_one_call_gives_value_and_gradient():
    calls = []

    def f(x):
        calls.append(1)
        return rosenbrock(x)

    result = minimize(f, np.zeros(5), method="BFGS")
    assert result.nfev > 10
    assert len(calls) == 1  # the trace


def test_unknowns_in_containers():
    Point = namedtuple("Point", "x y")
    x0 = {"a": [np.zeros((2, 2)), 1.0], "b": Point(np.ones(3), np.float32(2.0))}
    seen = []

    def f(p, scale):
        a, point = p["a"], p["b"]
        assert a[0].shape == (2, 2)
        return (
            scale * ((a[0] - 1.0) ** 2).sum() + (a[1] - 2.0) ** 2 + ((point.x - 3.0) ** 2).sum() + (point.y - 4.0) ** 2
        )

    result = minimize(f, x0, args=(2.0,), method="BFGS", callback=lambda p: seen.append(p))
    assert isinstance(result.x["b"], Point)
    np.testing.assert_allclose(result.x["a"][0], np.ones((2, 2)), atol=1e-5)
    np.testing.assert_allclose(result.x["a"][1], 2.0, atol=1e-5)
    np.testing.assert_allclose(result.x["b"].x, [3.0] * 3, atol=1e-5)
    assert result.x["b"].y.dtype == np.float64
    assert result.jac["a"][0].shape == (2, 2)
    assert seen
    assert seen[0]["b"].x.shape == (3,)
    matrix = minimize(lambda x: ((x - 1.0) ** 2).sum(), np.zeros((2, 3)))
    assert matrix.x.shape == (2, 3)


def test_callback_with_an_intermediate_result():
    seen = []

    def callback(intermediate_result):
        seen.append(intermediate_result)

    minimize(lambda p: (p["a"] ** 2).sum() + 1.0, {"a": np.ones(2)}, method="BFGS", callback=callback)
    assert seen[0].x["a"].shape == (2,)
    assert isinstance(seen[0].fun, float)


def test_bounds():
    x0 = np.array([1.3, 0.7, 0.8])
    for bounds in ([(0.0, 0.5), (None, None), (0.1, 3.0)], Bounds([0.0, -np.inf, 0.1], [0.5, np.inf, 3.0])):
        ours = minimize(rosenbrock, x0, bounds=bounds)
        theirs = scipy.optimize.minimize(
            scipy.optimize.rosen, x0, jac=scipy.optimize.rosen_der, bounds=bounds, method="L-BFGS-B"
        )
        np.testing.assert_allclose(ours.x, theirs.x, atol=1e-6)
    tree = minimize(
        lambda p: ((p["a"] - 2.0) ** 2).sum() + (p["b"] - 3.0) ** 2, {"a": np.zeros(2), "b": 0.0},
        bounds=({"a": 0.0, "b": -1.0}, {"a": np.array([1.0, 5.0]), "b": 1.0}), method="L-BFGS-B",
    )  # fmt: skip
    np.testing.assert_allclose(tree.x["a"], [1.0, 2.0], atol=1e-5)
    assert tree.x["b"] == 1.0
    for bounds in (({"b": 0.0}, {"b": 1.0}), {"b": (0.0, 1.0)}, {"a": (0.0, 1.0, 2.0)}, {"a": 1.0}):
        with pytest.raises(ValueError, match=r"like x0, \{'a': \*\}, or one such container with a pair"):
            minimize(lambda p: p["a"] ** 2, {"a": 1.0}, bounds=bounds)


@pytest.mark.parametrize(
    ("x0", "bounds", "expected"),
    [
        ({"a": np.zeros(2), "b": 1.0}, {"a": (-1.0, 0.5), "b": (0.0, 9.0)}, [0.5, 0.5, 5.0]),
        ({"a": np.zeros(2), "b": 1.0}, {"a": (np.zeros(2), np.array([1.0, 2.0])), "b": None}, [1.0, 2.0, 5.0]),
        ({"b": 1.0, "a": np.zeros(2)}, {"a": (None, 1.0), "b": (2.0, None)}, [1.0, 1.0, 5.0]),
        ({"a": np.zeros(2), "b": 1.0}, [(0.0, 1.0), (0.0, 2.0), (0.0, 3.0)], [1.0, 2.0, 3.0]),
        ([np.zeros(2), 1.0], [(0.0, 1.0), (0.0, 2.0)], [1.0, 1.0, 2.0]),
        ({"a": np.zeros(2), "b": 1.0}, (0.0, 2.0), [2.0, 2.0, 2.0]),
    ],
)
def test_bounds_of_containers(x0, bounds, expected):
    def distance(p):
        a, b = (p["a"], p["b"]) if isinstance(p, dict) else p
        return ((a - 3.0) ** 2).sum() + (b - 5.0) ** 2

    x = minimize(distance, x0, bounds=bounds).x
    found = [x["a"], x["b"]] if isinstance(x, dict) else x
    np.testing.assert_allclose(np.concatenate([np.ravel(own) for own in found]), expected, atol=1e-5)


def test_least_squares_of_a_container_has_no_bounds():
    fit = least_squares(
        lambda p: np.concatenate([p["a"] - 2.0, p["b"].ravel() * 4.0 - 1.0]), {"a": np.ones(2), "b": np.ones((2, 2))}
    )
    np.testing.assert_allclose(fit.x["a"], 2.0)
    np.testing.assert_allclose(fit.x["b"], 0.25)


def test_numbers_of_python_have_no_derivative():
    def lost(x):
        return sum(math.sin(float(own)) ** 2 for own in x)

    x0 = np.array([0.1, 0.3, 0.2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a tensor is converted to a number
        with pytest.raises(ValueError, match=r"minimize.*lost looks at its unknowns"):
            minimize(lost, x0)
        with pytest.raises(ValueError, match=r"least_squares.*looks at its unknowns"):
            least_squares(lambda x: [math.sin(float(own)) for own in x], x0)
        np.testing.assert_allclose(minimize(lost, x0, method="Nelder-Mead").x, 0.0, atol=1e-3)
    assert minimize(lambda x: 3.0, x0).success
    np.testing.assert_allclose(minimize(lambda x: (x * x).sum() if x[0] > -9 else 0.0, x0).x, 0.0, atol=1e-6)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "BDF"])
def test_complex_states(method):
    def slope(t, y):
        return [2j * y[0], 1j - y[1] * y[0]]

    ours = solve_ivp(slope, (0.0, 1.0), [1.0 + 0j, 2.0], method=method)
    theirs = scipy.integrate.solve_ivp(slope, (0.0, 1.0), [1.0 + 0j, 2.0], method=method)
    np.testing.assert_allclose(ours.y, theirs.y, rtol=1e-9)
    with pytest.raises(TypeError, match="y0 must have numbers"):
        solve_ivp(slope, (0.0, 1.0), ["a", "b"])


def circle(x):
    return [x[0] ** 2 + x[1] ** 2, x[0] * x[1]]


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr", "COBYLA"])
def test_constraints(method):
    constraints = [
        NonlinearConstraint(circle, [-np.inf, -1.0], [1.5, 1.0]),
        LinearConstraint([[1.0, 2.0]], [-np.inf], [1.0]),
        {"type": "ineq", "fun": lambda x, c: c - x[0], "args": (0.8,)},
    ]
    x0 = np.array([0.1, 0.2])
    ours = minimize(rosenbrock, x0, method=method, constraints=constraints, tol=1e-9)
    by_hand = [
        NonlinearConstraint(
            circle, [-np.inf, -1.0], [1.5, 1.0], jac=lambda x: np.array([[2 * x[0], 2 * x[1]], [x[1], x[0]]])
        ),
        LinearConstraint([[1.0, 2.0]], [-np.inf], [1.0]),
        {"type": "ineq", "fun": lambda x: 0.8 - x[0], "jac": lambda x: np.array([-1.0, 0.0])},
    ]
    if method == "trust-constr":
        by_hand[2] = LinearConstraint([[1.0, 0.0]], -np.inf, 0.8)
    theirs = scipy.optimize.minimize(
        scipy.optimize.rosen, x0, method=method, constraints=by_hand, tol=1e-9,
        **({} if method == "COBYLA" else {"jac": scipy.optimize.rosen_der}),
    )  # fmt: skip
    np.testing.assert_allclose(ours.x, theirs.x, atol=2e-4)
    assert ours.success


def test_hessians_of_constraints_are_exact(monkeypatch):
    seen = []
    original = scipy.optimize.minimize

    def spy(*args, **kwargs):
        (constraint,) = kwargs["constraints"]
        x, v = np.array([0.3, 0.4]), np.array([2.0, 3.0])
        seen.append((constraint.jac(x), constraint.hess(x, v)))
        return original(*args, **kwargs)

    monkeypatch.setattr(scipy.optimize, "minimize", spy)
    minimize(rosenbrock, [0.1, 0.2], method="trust-constr", constraints=NonlinearConstraint(circle, -1.0, 1.0))
    jacobian, hessian = seen[0]
    np.testing.assert_allclose(jacobian, [[0.6, 0.8], [0.4, 0.3]])
    np.testing.assert_allclose(hessian, [[4.0, 3.0], [3.0, 4.0]])


def test_derivatives_that_the_user_gives_win():
    calls = []

    def gradient(p):
        calls.append("jac")
        return {"a": 2.0 * (p["a"] - 1.0)}

    result = minimize(lambda p: ((p["a"] - 1.0) ** 2).sum(), {"a": np.zeros(2)}, jac=gradient, method="BFGS")
    assert calls
    np.testing.assert_allclose(result.x["a"], 1.0)
    pair = minimize(lambda x: (((x - 1.0) ** 2).sum(), 2.0 * (x - 1.0)), np.zeros(2), jac=True, method="BFGS")
    np.testing.assert_allclose(pair.x, 1.0)
    newton = minimize(
        lambda x: (((x - 1.0) ** 4).sum(), 4.0 * (x - 1.0) ** 3), np.zeros(2), jac=True, method="trust-exact"
    )
    np.testing.assert_allclose(newton.x, 1.0, atol=0.03)
    hess = minimize(
        rosenbrock,
        np.zeros(2),
        method="trust-exact",
        hess=lambda x: calls.append("hess") or scipy.optimize.rosen_hess(x),
    )
    assert "hess" in calls
    assert hess.success
    hessp = minimize(
        rosenbrock, np.zeros(2), method="trust-ncg",
        hessp=lambda x, p: calls.append("hessp") or scipy.optimize.rosen_hess_prod(x, p),
    )  # fmt: skip
    assert "hessp" in calls
    assert hessp.success
    differences = minimize(rosenbrock, np.zeros(2), jac="3-point", method="BFGS")
    assert differences.nfev > 4 * differences.njev


def test_data_are_those_of_each_call():
    data = np.zeros(3)

    def f(x):
        return ((x - data) ** 2).sum()

    for value in (1.0, 2.0):
        data[:] = value
        np.testing.assert_allclose(minimize(f, np.zeros(3)).x, value)
    state = {"goal": 1.0}

    class Model:
        goal = 1.0

    model = Model()
    for value in (3.0, 5.0):
        state["goal"] = model.goal = value
        np.testing.assert_allclose(minimize(lambda x: ((x - state["goal"]) ** 2).sum(), np.zeros(3)).x, value)
        np.testing.assert_allclose(minimize(lambda x: ((x - model.goal) ** 2).sum(), np.zeros(3)).x, value)
    for value in (2.0, 4.0):
        result = minimize(lambda x, y, k: ((x - y) ** 2).sum() + k, np.zeros(2), args=(np.full(2, value), 3))
        np.testing.assert_allclose(result.x, value)
        assert result.fun == pytest.approx(3.0)


def test_functions_are_traced_again_only_if_their_surroundings_change():
    traces = []
    count = functools.partial(traces.append, 1)

    def f(x):
        count()
        return (x * x).sum()

    def g(x, a):
        return f(x) * a

    minimize(lambda x: (x * x).sum(), np.ones(2))
    scale = 2.0

    def plain(x):
        return scale * (x * x).sum()

    def draw():
        return np.random.rand()  # noqa: NPY002

    assert frozen(plain) == frozen(plain)
    before = frozen(plain)
    scale = 3.0
    assert frozen(plain) != before
    for unseen in (f, g, np.random.default_rng().normal, object(), draw, np.ones(1 << 18)):
        with pytest.raises(Unseen):
            frozen(unseen)
    assert frozen([0.0]) != frozen([-0.0])
    assert frozen(np.float64(1)) != frozen(1.0) != frozen(1) != frozen(True)


def test_what_cannot_be_compiled_is_differentiated_as_it_is_with_one_warning():
    def f(x, y):
        return ((x - tg.tensor(x.detach().numpy()) * 0.0 - y) ** 2).sum()

    with pytest.warns(UserWarning, match="minimize.*: f is not compiled") as found:
        result = minimize(f, np.zeros(3), args=(np.full(3, 2.0),), method="Newton-CG")
    assert len(found) == 1
    np.testing.assert_allclose(result.x, 2.0)
    with pytest.warns(UserWarning, match="f is not compiled"):
        again = minimize(f, np.zeros(3), args=(np.full(3, 5.0),), method="BFGS")
    np.testing.assert_allclose(again.x, 5.0)


def test_branches():
    def f(x):
        return (x * x).sum() if x[0] > 1.0 else (2.0 * x * x - x).sum()

    result = minimize(f, np.full(2, 3.0), method="BFGS")
    np.testing.assert_allclose(result.x, 0.25)


def test_bad_calls_of_minimize():
    with pytest.raises(ValueError, match="must return a scalar value, but it returned 3 numbers"):
        minimize(lambda x: x * x, np.ones(3))
    with pytest.raises(TypeError, match="real numbers"):
        minimize(rosenbrock, np.ones(3, complex))
    with pytest.raises(TypeError, match="complex numbers"):
        minimize(lambda x: (x * 1j).sum(), np.ones(3))
    with pytest.raises(TypeError, match="needs a function"):
        minimize(3.0, np.ones(3))
    with pytest.raises(ValueError, match="Unknown solver"):
        minimize(rosenbrock, np.ones(3), method="none")
    np.testing.assert_allclose(minimize(lambda x: x * x, 3.0).x, [0.0], atol=1e-6)  # one number, as for SciPy


def test_minimum_depends_on_arguments():
    a = tg.tensor([1.0, 2.0], requires_grad=True)
    b = tg.tensor(3.0, requires_grad=True)

    def f(x, a, b):
        return (a * (x - b) ** 2).sum() + (x**4).sum() / 4.0

    def solve(a, b):
        return minimize(f, np.zeros(2), args=(a, b), tol=1e-12)

    result = solve(a, b)
    assert result.x.requires_grad
    assert tg.autograd.gradcheck(lambda a, b: solve(a, b).x, (a, b), eps=1e-5, atol=1e-5)
    assert tg.autograd.gradgradcheck(lambda a, b: solve(a, b).x, (a, b), eps=1e-5, atol=1e-4)
    assert tg.autograd.gradcheck(lambda a, b: solve(a, b).fun, (a, b), eps=1e-5, atol=1e-5)
    bounded = minimize(f, np.zeros(2), args=(a, b), bounds=[(0.0, 0.5), (0.0, 10.0)])
    (slope,) = tg.autograd.grad(bounded.x.sum(), b)
    (free,) = tg.autograd.grad(solve(a, b).x[1], b)
    assert slope.item() == pytest.approx(free.item(), rel=1e-4)
    with pytest.raises(NotImplementedError, match="constraints"):
        minimize(f, np.zeros(2), args=(a, b), constraints=LinearConstraint([[1.0, 1.0]], 0.0, 1.0))
    with tg.no_grad():
        assert isinstance(solve(a, b).x, np.ndarray)


@pytest.mark.parametrize("method", ["hybr", "lm", "broyden1", "df-sane", "anderson"])
def test_roots(method):
    def f(x, c):
        return [x[0] + 0.5 * (x[0] - x[1]) ** 3 - c, 0.5 * (x[1] - x[0]) ** 3 + x[1]]

    def jacobian(x, c):
        slope = 1.5 * (x[0] - x[1]) ** 2
        return np.array([[1 + slope, -slope], [-slope, 1 + slope]])

    given = {"jac": jacobian} if method in ("hybr", "lm") else {}
    ours = root(f, [0.0, 0.0], args=(1.0,), method=method)
    theirs = scipy.optimize.root(f, [0.0, 0.0], args=(1.0,), method=method, **given)
    np.testing.assert_allclose(ours.x, theirs.x, atol=1e-5)
    assert ours.success
    if given:
        assert ours.nfev == theirs.nfev
        own = root(f, [0.0, 0.0], args=(1.0,), method=method, jac=jacobian)
        np.testing.assert_allclose(own.x, theirs.x)
        both = root(lambda x, c: (f(x, c), jacobian(x, c)), [0.0, 0.0], args=(1.0,), method=method, jac=True)
        np.testing.assert_allclose(both.x, theirs.x)


def test_roots_depend_on_arguments():
    c = tg.tensor(1.0, requires_grad=True)

    def solve(c):
        p = root(
            lambda p, c: {"u": p["x"] + p["y"] ** 3 - c, "v": p["y"] - c * p["x"]}, {"x": 0.0, "y": 0.0}, args=(c,)
        ).x
        return p["x"] * p["y"]

    assert tg.autograd.gradcheck(solve, (c,), eps=1e-5)
    assert tg.autograd.gradgradcheck(solve, (c,), eps=1e-4, atol=1e-4)


T = np.linspace(0.0, 3.0, 40)
RNG = np.random.default_rng(3)
Y = 2.5 * np.exp(-1.3 * T) + 0.5 + 0.02 * RNG.normal(size=T.size)


def residuals(p, t, y):
    return p[0] * np.exp(-p[1] * t) + p[2] - y


def slopes(p, t, y):
    e = np.exp(-p[1] * t)
    return np.stack([e, -p[0] * t * e, np.ones_like(t)], 1)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
@pytest.mark.parametrize(
    "options", [{}, {"loss": "soft_l1", "f_scale": 0.1}, {"x_scale": "jac"}, {"bounds": ([0, 0, 0.6], [9, 9, 9])}]
)
def test_least_squares(method, options):
    if method == "lm" and ("loss" in options or "bounds" in options):
        pytest.skip("MINPACK has neither losses nor bounds")
    ours = least_squares(residuals, [1.0, 1.0, 1.0], args=(T, Y), method=method, **options)
    theirs = scipy.optimize.least_squares(
        residuals, [1.0, 1.0, 1.0], slopes, args=(T, Y), method=method, **options
    )  # fmt: skip
    assert ours.nfev == theirs.nfev
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-6)
    np.testing.assert_allclose(ours.jac, theirs.jac, rtol=1e-5, atol=1e-8)


def test_least_squares_in_containers():
    ours = least_squares(
        lambda p, t, y: {"r": p["a"] * tg.exp(-p["k"] * t) + p["c"] - y, "prior": 0.0 * p["a"]},
        {"a": 1.0, "k": 1.0, "c": 1.0}, args=(T,), kwargs={"y": Y}, x_scale={"a": 2.0, "k": 1.0, "c": 1.0},
        bounds=({"a": 0.0, "k": 0.0, "c": 0.0}, {"a": 9.0, "k": 9.0, "c": 9.0}),
    )  # fmt: skip
    theirs = scipy.optimize.least_squares(residuals, [1.0, 1.0, 1.0], slopes, args=(T, Y))
    np.testing.assert_allclose([ours.x["a"], ours.x["k"], ours.x["c"]], theirs.x, rtol=1e-5)


# SciPy's BDF subtracts memory that it has not written to yet.
@pytest.mark.filterwarnings("ignore:(invalid value|overflow) encountered in subtract:RuntimeWarning")
def test_sparse_jacobians_of_fits_and_differential_equations():
    n = 200

    def chain(x):
        return tg.cat([10.0 * (x[1:] - x[:-1] ** 2), 1.0 - x])

    for given in ({"sparse": True}, {"jac_sparsity": np.ones((2 * n - 1, n))}):
        result = least_squares(chain, np.full(n, 0.9), **given)
        assert scipy.sparse.issparse(result.jac)
        np.testing.assert_allclose(result.x, 1.0, atol=1e-6)

    def diffusion(t, y, k):
        left, right = tg.cat([y[:1], y[:-1]]), tg.cat([y[1:], y[-1:]])
        return k * (left - 2.0 * y + right)

    y0 = np.sin(np.linspace(0.0, 9.0, n))
    found = solve_ivp(diffusion, (0.0, 1.0), y0, "BDF", args=(50.0,), jac_sparsity=np.eye(n), rtol=1e-6)
    dense = scipy.integrate.solve_ivp(
        lambda t, y: 50.0 * np.diff(np.pad(y, 1, "edge"), n=2), (0.0, 1.0), y0, "BDF", rtol=1e-6
    )
    np.testing.assert_allclose(found.y[:, -1], dense.y[:, -1], rtol=1e-4, atol=1e-5)
    with pytest.warns(UserWarning, match="not compiled"):
        result = least_squares(lambda x: x * tg.tensor(x.detach().numpy()) - 1.0, np.full(3, 2.0), sparse=True)
    assert isinstance(result.jac, np.ndarray)


def test_a_fit_depends_on_its_data():
    y = tg.tensor(Y[::8], requires_grad=True)

    def fit(y):
        return least_squares(residuals, [2.0, 1.0, 0.5], args=(T[::8], y), xtol=1e-15, ftol=1e-15, gtol=1e-15).x

    assert tg.autograd.gradcheck(fit, (y,), eps=1e-5, atol=1e-5)
    with pytest.raises(NotImplementedError, match="loss='soft_l1'"):
        least_squares(residuals, [2.0, 1.0, 0.5], args=(T[::8], y), loss="soft_l1")


def model(t, a, k, c):
    return a * np.exp(-k * t) + c


@pytest.mark.parametrize("sigma", [None, 0.1 + 0.01 * T, np.diag(0.1 + 0.01 * T) + 0.001])
@pytest.mark.parametrize("method", [None, "trf"])
def test_curve_fit(sigma, method):
    def by_hand(t, *p):
        return slopes(p, t, 0.0)

    ours = curve_fit(model, T, Y, sigma=sigma, method=method, absolute_sigma=True, full_output=True)
    theirs = scipy.optimize.curve_fit(
        model, T, Y, sigma=sigma, method=method, absolute_sigma=True, full_output=True, jac=by_hand
    )
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-6)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-5)
    assert ours[2].keys() == theirs[2].keys()
    assert ours[3:] == theirs[3:]
    named, _ = curve_fit(lambda t, *p: model(t, *p), list(T), tg.tensor(Y), p0=[1.0, 1.0, 1.0], bounds=(0.0, 9.0))
    np.testing.assert_allclose(named, scipy.optimize.curve_fit(model, T, Y, jac=by_hand)[0], rtol=1e-4)


def test_curve_fit_says_what_has_no_derivative():
    with pytest.raises(NotImplementedError, match="respect to ydata"):
        curve_fit(model, T, tg.tensor(Y, requires_grad=True))
    with pytest.raises(ValueError, match="Unable to determine number of fit parameters"):
        curve_fit(lambda *p: p[0], T, Y)


def robertson(t, y, fast):
    return [-0.04 * y[0] + fast * y[1] * y[2], 0.04 * y[0] - fast * y[1] * y[2] - 3e7 * y[1] ** 2, 3e7 * y[1] ** 2]


def robertson_slopes(t, y, fast):
    return np.array([
        [-0.04, fast * y[2], fast * y[1]],
        [0.04, -fast * y[2] - 6e7 * y[1], -fast * y[1]],
        [0.0, 6e7 * y[1], 0.0],
    ])  # fmt: skip


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA", "RK45", "DOP853"])
def test_initial_value_problems(method):
    implicit = method in ("Radau", "BDF", "LSODA")
    span, y0 = (0.0, 40.0 if implicit else 0.01), [1.0, 0.0, 0.0]
    options = {"rtol": 1e-6, "atol": 1e-10, "t_eval": np.linspace(*span, 5), "dense_output": True}
    ours = solve_ivp(robertson, span, y0, method=method, args=(1e4,), **options)
    theirs = scipy.integrate.solve_ivp(
        robertson, span, y0, method=method, args=(1e4,), **options, **({"jac": robertson_slopes} if implicit else {})
    )
    assert ours.success
    assert type(ours) is type(theirs)
    assert abs(ours.nfev - theirs.nfev) <= 3 + theirs.nfev // 50
    np.testing.assert_allclose(ours.y, theirs.y, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(ours.sol(0.005), theirs.sol(0.005), rtol=1e-5, atol=1e-9)


def test_states_in_containers_events_and_columns():
    def fall(t, s, g):
        return {"x": s["v"], "v": np.array([0.0, -1.0]) * g}

    def ground(t, s, g):
        return s["x"][1]

    ground.terminal, ground.direction = True, -1
    s0 = {"x": np.array([0.0, 1.0]), "v": np.array([1.0, 2.0])}
    found = solve_ivp(fall, (0.0, 9.0), s0, args=(9.81,), events=ground, method="BDF", rtol=1e-9, atol=1e-9)
    time = (2.0 + np.sqrt(4.0 + 2 * 9.81)) / 9.81
    assert found.t_events[0][0] == pytest.approx(time, rel=1e-5)
    assert found.y["x"].shape == (2, len(found.t))
    assert found.status == 1
    assert abs(found.y_events[0]["x"][1]).max() < 1e-8
    columns = solve_ivp(lambda t, y: -2.0 * y, (0.0, 1.0), [1.0, 2.0], vectorized=True, method="Radau", rtol=1e-8)
    np.testing.assert_allclose(columns.y[:, -1], np.exp(-2.0) * np.array([1.0, 2.0]), rtol=1e-6)
    own = solve_ivp(
        robertson, (0.0, 1.0), [1.0, 0.0, 0.0], method="BDF", args=(1e4,), jac=robertson_slopes
    )  # fmt: skip
    assert own.success
    with pytest.raises(NotImplementedError, match=r"solve_ivp\(\) has no derivatives"):
        solve_ivp(lambda t, y, k: -k * y, (0.0, 1.0), [1.0], args=(tg.tensor(1.0, requires_grad=True),))


@pytest.mark.parametrize(
    ("function", "a", "b", "args", "options"),
    [
        (lambda x, a: np.exp(-a * x * x), -np.inf, np.inf, (2.0,), {}),
        (lambda x, a: np.exp(-a * x), 1.0, np.inf, (np.array(2.0),), {}),
        (lambda x, a: np.exp(a * x), -np.inf, 1.0, (2.0,), {}),
        (lambda x, w: (w * np.cos(x)).sum(), 0.0, 2.0, (np.array([1.0, 2.0]),), {"points": [1.0]}),
        (lambda x: np.log(x), 0.0, 1.0, (), {}),
        (lambda x: np.exp(-x), 0.0, 1.0, (), {"weight": "cos", "wvar": 3.0}),
        (lambda x, n: x**n, 0.0, 2.0, (3,), {"epsabs": 1e-12, "limit": 20}),
        (lambda x: x * x if x < 1.0 else x, 0.0, 2.0, (), {"points": [1.0]}),
        (lambda x: 3.0, 0.0, 2.0, (), {}),
    ],
)
def test_quad(function, a, b, args, options):
    ours = quad(function, a, b, args, **options)
    theirs = scipy.integrate.quad(lambda x, *args: float(function(x, *args)), a, b, args, **options)
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-9)
    assert type(ours[0]) is float
    assert len(quad(function, a, b, args, 1, **options)) == len(
        scipy.integrate.quad(lambda x, *args: float(function(x, *args)), a, b, args, 1, **options)
    )


def test_quad_calls_machine_code():
    from tapegrad.scipy.low_level import low_level
    from tapegrad.scipy.packing import Packing
    from tapegrad.scipy.problem import Problem

    function = Problem("quad()", lambda x, w: (w * x).sum(), Packing(0.0, "quad()"), (np.ones(3),)).value()
    function(1.0, np.ones(3))
    with low_level(function, [np.ones(3)]) as given:
        assert given.signature == "double (double, void *)"
    function(1.0, np.ones(4))
    with low_level(function, [np.ones(4)]) as given:
        assert given is None  # there are two programs


def test_derivatives_of_integrals():
    a = tg.tensor(0.5, requires_grad=True)
    b = tg.tensor(2.0, requires_grad=True)
    w = tg.tensor([[1.0, 2.0], [0.5, 0.3]], requires_grad=True)

    def integral(a, b, w):
        return quad(lambda x, w: (tg.exp(-w * x) * w).sum(), a, b, args=(w,))[0]

    assert tg.autograd.gradcheck(integral, (a, b, w))
    assert tg.autograd.gradgradcheck(integral, (a, b, w))
    with pytest.raises(NotImplementedError, match="weight"):
        quad(lambda x: x, a, 1.0, weight="cos", wvar=1.0)
    with pytest.raises(TypeError, match="imaginary"):
        quad(lambda x: x, 0.0, 1.0, complex_func=True)


def test_integrands_that_cannot_be_compiled():
    with pytest.warns(UserWarning, match="is not compiled"):
        value, _ = quad(lambda x, k: k * tg.tensor(np.sin(x.detach().numpy())), 0.0, 1.0, args=(2.0,))
    assert value == pytest.approx(2.0 * (1.0 - np.cos(1.0)))


def test_threads_solve_the_same_problem():
    def solve(value):
        return minimize(lambda x, goal: ((x - goal) ** 2).sum(), np.zeros(3), args=(np.full(3, value),)).x

    values = np.arange(40.0)
    with ThreadPoolExecutor(4) as pool:
        for value, found in zip(values, pool.map(solve, values), strict=True):
            np.testing.assert_allclose(found, value, atol=1e-5)


@pytest.mark.parametrize("method", ["BFGS", "Newton-CG", "trust-exact", "Nelder-Mead"])
def test_parameters_from_outside_may_require_grad(method):
    tg.manual_seed(0)
    layer = tg.nn.Linear(3, 3).double()
    found = tg.scipy.minimize(lambda x: (layer(x) ** 2).sum(), np.ones(3), method=method, options={"maxiter": 2000})
    weight, bias = (own.detach().numpy() for own in layer.parameters())
    np.testing.assert_allclose(found.x, np.linalg.solve(weight, -bias), rtol=1e-2, atol=1e-2)
    assert all(own.grad is None for own in layer.parameters())


def test_numbers_have_double_precision_whatever_the_default_dtype_is():
    tg.set_default_dtype(tg.float32)
    try:
        value, error = tg.scipy.quad(lambda x: tg.exp(-x), 0.0, 2.0)
        rated, _ = tg.scipy.quad(lambda x, rate: tg.exp(-x * rate), 0.0, 2.0, args=(0.1,))
        found = tg.scipy.minimize(lambda x, goal: ((x - goal) ** 2).sum(), np.zeros(2), args=(0.1,))
    finally:
        tg.set_default_dtype(tg.float64)
    np.testing.assert_allclose([value, rated], [1 - np.exp(-2.0), (1 - np.exp(-0.2)) / 0.1], rtol=1e-14)
    assert error < 1e-12
    np.testing.assert_allclose(found.x, 0.1, rtol=1e-12)
