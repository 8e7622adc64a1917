"""`custom_root`: the root of a function, differentiated by the implicit function theorem, whatever the solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad import modes
from tapegrad.func.carried import Values
from tapegrad.func.level import array_of
from tapegrad.func.trees import flatten_like, is_like, rebuild, structure, tree_map
from tapegrad.modes import no_grad
from tapegrad.tensor import Tensor


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    r"""Return a root of a function, whose derivatives do not depend on how it was found.

    Parameters
    ----------
    f : callable
        Takes a point, and returns as many values, in the same containers. What it depends on besides stands outside of
        it, and gets the gradients.
    initial_guess : tensors, arrays or numbers, or nested containers
    solve : callable
        Takes `f` and the guess, and returns a root. It may be any program: nothing of it is differentiated.
    tangent_solve : callable
        Takes a linear function ``g`` and ``y``, and returns the ``x`` for which ``g(x)`` is ``y``. For a number that is
        ``y / g(1.0)``; for a vector ``linalg.solve(func.jacrev(g)(y), y)``, or an iterative solver.
    has_aux : bool
        Whether `solve` returns a pair ``(root, aux)``, of which `aux` is returned but not differentiated.

    Returns
    -------
    nested containers of tensors
        The root; arrays if the guess has arrays only, and no gradient is wanted. With `has_aux`, a pair of that and
        what `solve` returned besides.

    Raises
    ------
    TypeError
        If `solve` or `f` returns other containers or shapes than those of the guess.

    Notes
    -----
    At a root of :math:`f(x, a) = 0`, :math:`\\partial x / \\partial a = -(\\partial f / \\partial x)^{-1} \\,
    \\partial f / \\partial a` (Krantz and Parks, The Implicit Function Theorem, 2003). A gradient takes one solution of
    a linear system, with the transposed of `tangent_solve`, and one pass back through `f`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> def newton(f, x):
    ...     return tg.func.while_loop(lambda x: abs(f(x)) > 1e-12, lambda x: x - f(x) / tg.func.grad(f)(x), x)
    >>> def cube_root(a):
    ...     return tg.func.custom_root(lambda x: x**3 - a, 1.5, newton, lambda g, y: y / g(tg.ones(())))
    >>> round(float(cube_root(8.0)), 9)
    2.0
    >>> round(float(tg.func.grad(cube_root)(8.0)), 9)  # 1 / (3 * 2**2)
    0.083333333
    """
    guess = Values(initial_guess, "custom_root", "initial_guess")
    with no_grad():
        found = solve(f, guess.tree)
    aux = None
    if has_aux:
        if not isinstance(found, tuple) or len(found) != 2:
            raise TypeError("custom_root: solve must return a pair, a root and more, if has_aux is True")
        found, aux = found
    leaves = [own.detach() for own in _like(found, guess, "solve")]
    if modes.is_grad_enabled():
        from tapegrad.program.implicit import attached  # at call time: programs import this package

        def equations(*values: Tensor) -> list[Tensor]:
            return _like(f(guess.with_leaves(values)), guess, "f")

        leaves = attached(equations, leaves, lambda g, y: _solved(tangent_solve, g, y, guess))
    root = guess.with_leaves(leaves)
    if not guess.has_tensors:
        root = tree_map(lambda own: array_of(own) if isinstance(own, Tensor) else own, root)
    return (root, aux) if has_aux else root


def _like(tree: Any, guess: Values, name: str) -> list[Tensor]:
    """Return the leaves of what a function returned, in the order of the guess's."""
    if not is_like(tree, guess.tree):
        raise TypeError(
            f"custom_root: {name} must return the structure of initial_guess, {structure(guess.tree)}, got "
            f"{structure(tree)}"
        )
    found = Values(rebuild(guess.tree, flatten_like(tree, guess.tree)), "custom_root", f"the result of {name}")
    for one, own, wanted in zip(found.names, found.leaves, guess.leaves, strict=True):
        if own.shape != wanted.shape:
            raise TypeError(f"custom_root: {one} has shape {list(own.shape)}, and the guess {list(wanted.shape)}")
    return found.leaves


def _solved(tangent_solve: Callable[..., Any], g: Callable[..., Any], y: list[Tensor], guess: Values) -> list[Tensor]:
    """Return the solution of a linear system by the user's function."""

    def linear(x: Any) -> Any:
        return guess.with_leaves(g(*_like(x, guess, "an argument of tangent_solve's function")))

    return _like(tangent_solve(linear, guess.with_leaves(y)), guess, "tangent_solve")
