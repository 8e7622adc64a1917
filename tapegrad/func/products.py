"""`vjp`, `jvp`, `linearize`, `hvp`: products with the Jacobian or the Hessian of a function, without computing these.

A tangent is computed by two passes back over the tape. The first is recorded, with a cotangent u that requires grad: it
gives J^T u. The second differentiates that with respect to u, along the tangent v: the transpose of J^T, times v.
The tangent of a scalar is its gradient times v, if nobody can differentiate it later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import errors
from tapegrad.autograd.backward import grad
from tapegrad.autograd.direct import run_to_own_leaves
from tapegrad.autograd.function_tangents import calls_of_jvp, to_be_transposed
from tapegrad.autograd.roots import zeros_of
from tapegrad.func.level import Level, called_with_compiled, check_floating, outputs_of, recorded, vector_like
from tapegrad.func.trees import flatten, flatten_like, is_like, rebuild, structure
from tapegrad.modes import is_grad_enabled
from tapegrad.ops.table.gateway import constant
from tapegrad.tape.entries import private_leaf
from tapegrad.tensor import Tensor, from_array

_LEAVES: Final = Tensor, np.ndarray
VJP, JVP = "vjp(f, *primals)", "jvp(f, primals, tangents)"


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return a function's value, and the function that multiplies cotangents by its Jacobian.

    Parameters
    ----------
    func : callable
        A function that returns a tensor, or a dict, list, tuple or named tuple of tensors.
    *primals : Tensor, numpy.ndarray, float, or nested containers of these
        Its arguments.
    has_aux : bool
        Whether the function returns a pair ``(output, aux)``, of which `aux` is returned but not differentiated.

    Returns
    -------
    value : Tensor or nested containers
    vjp_fn : callable
        ``vjp_fn(cotangents, retain_graph=True, create_graph=None)`` takes cotangents of the structure of the value, and
        returns a tuple: for each primal its gradient, of its structure.
    aux
        The function's second result, with `has_aux`.

    Raises
    ------
    RuntimeError
        If the function returns what is no tensor, or not floating; or if cotangents have another structure or shape.

    Examples
    --------
    >>> import tapegrad as tg
    >>> value, vjp_fn = tg.func.vjp(tg.sin, tg.zeros(2))
    >>> value, vjp_fn(tg.tensor([1.0, 2.0]))
    (tensor([0., 0.]), (tensor([1., 2.]),))
    """
    level = Level(primals)
    output, aux = level.call_with_aux(func, {}, has_aux, VJP)
    outputs = outputs_of(output, VJP)
    check_floating(outputs)
    values, is_closed = level.results(outputs)
    value = rebuild(output, values)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        if output.__class__ is Tensor and cotangents.__class__ in _LEAVES:  # nearly every call
            cts = [vector_like(cotangents, output)]
        elif is_like(cotangents, output):
            cts = [vector_like(ct, to) for ct, to in zip(flatten_like(cotangents, output), outputs, strict=True)]
        else:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {structure(cotangents)}, primal output: {structure(output)}"
            )
        for number, ct in enumerate(cts):
            if ct._layout.shape != outputs[number]._layout.shape:
                raise errors.gradient_shape("vjp_fn()", number, ct.shape, outputs[number].shape)
        records = is_grad_enabled() if create_graph is None else create_graph
        records = records and (not is_closed or [ct for ct in cts if ct._node is not None] != [])
        return level.as_arguments(level.pull(outputs, cts, records))

    return (value, vjp_fn, aux) if has_aux else (value, vjp_fn)


class Linear:
    """A function, linearised at a point: its value, and the product of its Jacobian with tangents.

    Parameters
    ----------
    level : Level
    output : tree of Tensor
    api : str
        The call, for messages.
    """

    def __init__(self, level: Level, output: Any, api: str) -> None:
        self.level, self.output = level, output
        self.outputs = outputs_of(output, api)
        self.wanted = [tensor for tensor in self.outputs if tensor.requires_grad]
        self.cts = level.cts = [private_leaf(zeros_of(tensor)) for tensor in self.wanted]
        self.gradients: Sequence[Tensor | None] = [None] * len(level.inputs)
        are_closed = False
        if len(self.wanted) == 1:
            self.gradients, are_closed = to_be_transposed(level.recorded_gradients, self.wanted[0], self.cts[0])
        elif self.wanted:
            options = {"create_graph": True, "allow_unused": True}
            self.gradients = recorded(to_be_transposed, grad, self.wanted, level.inputs, self.cts, **options)
        self.values, self.is_closed = level.results(self.outputs, are_closed)

    def value(self) -> Any:
        """Return what the function returned."""
        return rebuild(self.output, self.values)

    def tangents(self, vectors: Sequence[Tensor]) -> list[Tensor | None]:
        """Return the tangents of the outputs for those of the inputs; None where an output does not depend on them."""
        pairs = [(gradient, vector) for gradient, vector in zip(self.gradients, vectors, strict=True)
                 if gradient is not None and gradient.requires_grad]  # fmt: skip
        found: Sequence[Tensor | None] = [None] * len(self.cts)
        if pairs and self.cts:
            records = is_grad_enabled() and not (self.is_closed and all(v._node is None for v in vectors))
            roots, seeds = pairs[0] if len(pairs) == 1 else zip(*pairs, strict=True)
            found = grad(roots, self.cts, seeds, retain_graph=True, create_graph=records, allow_unused=True)
        by_output = dict(zip(map(id, self.wanted), found, strict=True))
        tangents = [by_output.get(id(tensor)) for tensor in self.outputs]
        return [None if tangent is None else self.level.cut(tangent) for tangent in tangents]

    def as_result(self, tangents: Sequence[Tensor | None]) -> Any:
        """Return tangents in the structure of the output, zeros for None."""
        filled = [zeros_of(tensor) if tangent is None else tangent
                  for tensor, tangent in zip(self.outputs, tangents, strict=True)]  # fmt: skip
        return rebuild(self.output, [self.level.result(tangent) for tangent in filled])


def _vectors(level: Level, tangents: Any, primals: Any) -> list[Tensor]:
    """Return tangents as tensors, one for each input."""
    vectors = []
    for vector, x in zip(flatten_like(tangents, primals), level.inputs, strict=True):
        vector = vector_like(vector, x)
        if vector._layout.shape != x._layout.shape:
            raise errors.tangent_shape(x.shape, vector.shape)
        vectors.append(vector)
    return vectors


def _check_primals(primals: Any, tangents: Any, api: str) -> None:
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{api}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    if not is_like(tangents, primals):
        raise RuntimeError(
            f"{api}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {structure(primals)} and tangents "
            f"with structure {structure(tangents)}"
        )
    if not flatten(primals):
        raise RuntimeError(f"{api}: Expected primals to contain at least one Tensor.")


def _slope_along(level: Level, output: Tensor, vectors: Sequence[Tensor]) -> Tensor | None:
    """Return the tangent of a scalar, its gradient times the tangents; None unless it belongs to this call alone."""
    kinds = {tensor._layout.dtype.kind for tensor in (output, *level.inputs, *vectors)}
    if level.is_connected or kinds != {"f"} or any(vector.requires_grad for vector in vectors):
        return None
    gradients = run_to_own_leaves(output, [tensor._node for tensor in level.inputs])  # type: ignore[misc]
    if gradients is None:
        return None
    slopes = [np.vdot(gradient._data, vector._data)
              for gradient, vector in zip(gradients, vectors, strict=True) if gradient is not None]  # fmt: skip
    return from_array(np.asarray(sum(slopes), output.dtype))


@called_with_compiled
def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return a function's value, and the product of its Jacobian with tangents.

    Parameters
    ----------
    func : callable
        A function that returns a tensor, or a dict, list, tuple or named tuple of tensors.
    primals, tangents : tuple
        Its arguments, and their tangents, of the same structure and shapes.
    strict : bool
        Raise an error if an output does not depend on the arguments; otherwise its tangent is zero.
    has_aux : bool
        Whether the function returns a pair ``(output, aux)``, of which `aux` is returned but not differentiated.

    Returns
    -------
    value, tangent : Tensor or nested containers
    aux
        With `has_aux`.

    Raises
    ------
    RuntimeError
        If primals and tangents differ in structure or shape, or the function returns what is no tensor.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.func.jvp(lambda x: x * x, (tg.tensor([1.0, 2.0]),), (tg.ones(2),))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    _check_primals(primals, tangents, JVP)
    level = Level(primals)
    vectors, before = _vectors(level, tangents, primals), calls_of_jvp()
    output, aux = level.call_with_aux(func, {}, has_aux, JVP)
    if output.__class__ is Tensor and not output._layout.ndim and not strict and calls_of_jvp() == before:
        along = _slope_along(level, output, vectors)
        if along is not None:
            result = level.result(constant(output._data, output._layout.plain)), level.result(along)
            return (*result, aux) if has_aux else result
    linear = Linear(level, output, JVP)
    found = linear.tangents(vectors)
    if strict and any(tangent is None for tangent in found):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
            "with strict=True."
        )
    result = linear.value(), linear.as_result(found)
    return (*result, aux) if has_aux else result


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return a function's value, and the function that multiplies tangents by its Jacobian, which it computes once.

    Parameters
    ----------
    func : callable
        A function that returns a tensor, or a dict, list, tuple or named tuple of tensors.
    *primals : Tensor, numpy.ndarray, float, or nested containers of these
        Its arguments.

    Returns
    -------
    value : Tensor or nested containers
    jvp_fn : callable
        ``jvp_fn(*tangents)`` takes a tangent for each primal, and returns the tangent of the value. It does not call
        `func` again.

    Raises
    ------
    RuntimeError
        If the function returns what is no tensor; from `jvp_fn`, if tangents are not of the primals' structure.

    Examples
    --------
    >>> import tapegrad as tg
    >>> value, jvp_fn = tg.func.linearize(tg.sin, tg.zeros(2))
    >>> jvp_fn(tg.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    level = Level(primals)
    linear = Linear(level, level.call(func, {}), "linearize(f, *primals)")

    def jvp_fn(*tangents: Any) -> Any:
        if not is_like(tangents, primals):
            raise RuntimeError(
                f"Expected the tangents {structure(tangents)} to have the same argspec as the primals "
                f"{structure(primals)}"
            )
        return linear.as_result(linear.tangents(_vectors(level, tangents, primals)))

    return linear.value(), jvp_fn


@called_with_compiled
def hvp(func: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """Return the product of a function's Hessian with tangents.

    Parameters
    ----------
    func : callable
        A function that returns a scalar: a tensor without dimensions.
    primals, tangents : tuple
        Its arguments, and their tangents, of the same structure and shapes.

    Returns
    -------
    tuple
        For each primal the product, of its structure.

    Raises
    ------
    RuntimeError
        If `func` returns no scalar, or primals and tangents differ in structure or shape.

    Notes
    -----
    The same as ``jvp(grad(func), primals, tangents)[1]``, in fewer passes: the gradient is recorded, and differentiated
    along the tangents.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.func.hvp(lambda x: (x**3).sum(), (tg.tensor([1.0, 2.0]),), (tg.ones(2),))
    (tensor([ 6., 12.]),)
    """
    _check_primals(primals, tangents, "hvp(f, primals, tangents)")
    level = Level(primals)
    vectors = _vectors(level, tangents, primals)
    (output,) = outputs_of(level.call(func, {}), "hvp(f, primals, tangents)")
    if output.ndim:
        raise RuntimeError(
            f"hvp(f, primals, tangents): Expected f(*primals) to return a scalar Tensor, got tensor with {output.ndim} "
            f"dims."
        )
    gradients, is_closed = level.recorded_gradients(output)
    records = level.records and not (is_closed and all(vector._node is None for vector in vectors))
    pairs = [(gradient, vector) for gradient, vector in zip(gradients, vectors, strict=True)
             if gradient is not None and gradient._node is not None]  # fmt: skip
    roots, seeds = [gradient for gradient, _ in pairs], [vector for _, vector in pairs]
    return level.as_arguments(level.pull(roots, seeds, records))
