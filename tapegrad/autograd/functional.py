"""Jacobians, Hessians and products with them, with PyTorch's names (``torch.autograd.functional``).

`tapegrad.func` has the same as transforms of functions, which take any containers. Here the inputs are one tensor or a
tuple, results come at once, and they carry a graph only if `create_graph` asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.autograd.roots import zeros_of
from tapegrad.autograd.seeds import block, pull_units
from tapegrad.autograd.user_calls import Call, check_jacobian, refuse
from tapegrad.modes import enable_grad
from tapegrad.pass_modes import weak_zeros
from tapegrad.tape.entries import private_leaf
from tapegrad.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return a function's value, and the product of a vector with its Jacobian.

    Parameters
    ----------
    func : callable
        From tensors to a tensor or a tuple of tensors.
    inputs : Tensor or tuple of Tensor
        Arrays are taken as well; results are arrays then.
    v : Tensor or tuple of Tensor, optional
        Vectors of the outputs' shapes; a one for an output of one element.
    create_graph : bool
        Record the computation of the product, so that it can be differentiated.
    strict : bool
        Refuse an output that does not depend on the inputs, instead of returning zeros.

    Returns
    -------
    outputs, product : Tensor or tuple of Tensor

    Raises
    ------
    RuntimeError
        If `v` is missing or does not fit, or in strict mode.
    TypeError
        If an input, an output or a vector is no tensor.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.autograd.functional.vjp(tg.sin, tg.zeros(2), tg.tensor([1.0, 2.0]))
    (tensor([0., 0.]), tensor([1., 2.]))
    """
    call = Call("vjp", func, inputs, create_graph, strict)
    vectors = call.vectors(v, call.outputs, call.returns_tuple, "the user-provided function returns")
    products = call.slopes(call.outputs, call.inputs, vectors, create_graph)
    return call.returned(), call.result(call.filled(products, call.inputs, "output"), call.has_tuple)


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return a function's value, and the product of its Jacobian with a vector.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for `vjp`.
    v : Tensor or tuple of Tensor, optional
        Vectors of the inputs' shapes; a one for an input of one element.

    Returns
    -------
    outputs, product : Tensor or tuple of Tensor

    Raises
    ------
    RuntimeError, TypeError
        As for `vjp`.

    Notes
    -----
    Two passes back: the gradient for a vector u, which is linear in u, is differentiated with respect to u.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.autograd.functional.jvp(lambda x: x * x, tg.tensor([1.0, 2.0]), tg.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    call = Call("jvp", func, inputs, create_graph, strict)
    vectors = call.vectors(v, call.inputs, call.has_tuple, "the input to the user-provided function is")
    cts = [private_leaf(zeros_of(output)) for output in call.outputs if output._layout.floating]
    roots = [output for output in call.outputs if output._layout.floating]
    with enable_grad(), weak_zeros():
        slopes = call.slopes(roots, call.inputs, cts, True)
    for index, slope in enumerate(slopes if strict else ()):
        if slope is None or not slope.requires_grad:
            refuse(f"The output of the user-provided function is independent of input {index}.")
    tangents = iter(call.slopes(slopes, cts, vectors, create_graph))
    products = [next(tangents) if output._layout.floating else None for output in call.outputs]
    return call.returned(), call.result(call.filled(products, call.outputs, "output"), call.returns_tuple)


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return a function's value, and the product of a vector with its Hessian.

    Parameters
    ----------
    func : callable
        From tensors to a tensor of one element.
    inputs, create_graph, strict
        As for `vjp`.
    v : Tensor or tuple of Tensor, optional
        Vectors of the inputs' shapes; a one for an input of one element.

    Returns
    -------
    output : Tensor
    product : Tensor or tuple of Tensor

    Raises
    ------
    RuntimeError, TypeError
        As for `vjp`; also if the function returns several elements.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.autograd.functional.vhp(lambda x: (x**3).sum(), tg.tensor([1.0, 2.0]), tg.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return a function's value, and the product of its Hessian with a vector.

    Parameters
    ----------
    func, inputs, v, create_graph, strict
        As for `vhp`.

    Returns
    -------
    output : Tensor
    product : Tensor or tuple of Tensor

    Raises
    ------
    RuntimeError, TypeError
        As for `vhp`.

    Notes
    -----
    A Hessian is symmetric, so this is `vhp`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.autograd.functional.hvp(lambda x: (x**3).sum(), tg.tensor([1.0, 2.0]), tg.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    name: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    call = Call(name, func, inputs, create_graph, strict)
    vectors = call.vectors(v, call.inputs, call.has_tuple, "the input to the user-provided function is")
    with enable_grad():
        slopes = call.slopes([call.single()], call.inputs, None, True)
    check_jacobian(slopes, strict)
    products = call.slopes(slopes, call.inputs, vectors, create_graph)
    what = "jacobian" if name == "vhp" else "hessian"
    return call.returned(), call.result(call.filled(products, call.inputs, what), call.has_tuple)


def jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """Return the Jacobian of a function.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for `vjp`.
    vectorize : bool
        Needed for ``strategy="forward-mode"`` and refused with `strict`. Otherwise it has no effect: all rows are
        always computed together.
    strategy : str
        "reverse-mode" or, with `vectorize`, "forward-mode". The result is the same.

    Returns
    -------
    Tensor, tuple of Tensor, or tuple of tuples
        Of each output and each input a tensor of the output's shape followed by the input's; a tuple of outputs, of
        inputs, or of both, where the function returns or gets tuples.

    Raises
    ------
    RuntimeError, TypeError
        As for `vjp`.
    NotImplementedError
        For forward mode with `create_graph`, or without `vectorize`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.autograd.functional.jacobian(lambda x: x * x, tg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_strategy(strategy, create_graph, strict, vectorize)
    call = Call("jacobian", func, inputs, create_graph, strict)
    rows = []
    for number, output in enumerate(call.outputs):
        pulled = pull_units(output, call.inputs, create_graph=create_graph)
        for index, slope in enumerate(pulled if strict else ()):
            if slope is None:
                refuse(f"Output {number} of the user-provided function is independent of input {index}.")
            if create_graph and not slope.requires_grad:
                refuse(f"The jacobian of the user-provided function is independent of input {index}.", True)
        blocks = [block(output, x, slope) for x, slope in zip(call.inputs, pulled, strict=True)]
        rows.append(call.result(blocks, call.has_tuple))
    return tuple(rows) if call.returns_tuple else rows[0]


def _check_strategy(strategy: str, create_graph: bool, strict: bool, vectorize: bool) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            f'Expected strategy to be either "forward-mode" or "reverse-mode". Got {strategy!r}; both give the same '
            f"result."
        )
    is_forward = strategy == "forward-mode"
    if is_forward and create_graph:
        raise NotImplementedError(
            'jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported together (yet). Please '
            'either set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strict and (is_forward or vectorize):
        other = '`strategy="forward-mode"`' if is_forward else "`vectorized=True`"
        raise RuntimeError(f"jacobian: `strict=True` and {other} are not supported together; set `strict=False`.")
    if is_forward and not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
            "`vectorize=True`."
        )


def hessian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """Return the Hessian of a function.

    Parameters
    ----------
    func : callable
        From tensors to a tensor of one element.
    inputs, create_graph, strict, vectorize
        As for `jacobian`.
    outer_jacobian_strategy : str
        As `strategy` of `jacobian`.

    Returns
    -------
    Tensor, or tuple of tuples of Tensor
        For inputs i and j a tensor of the shape of i followed by that of j.

    Raises
    ------
    RuntimeError, TypeError, NotImplementedError
        As for `jacobian`; also if the function returns several elements.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.autograd.functional.hessian(lambda x: (x**3).sum(), tg.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    _check_strategy(outer_jacobian_strategy, create_graph, strict, vectorize)
    is_tuple = isinstance(inputs, tuple)

    def gradient(*tensors: Tensor) -> Any:
        inner = Call("hessian", func, tensors, True, strict)
        slopes = inner.slopes([inner.single()], inner.inputs, None, True)
        check_jacobian(slopes, strict)
        filled = tuple(inner.filled(slopes, inner.inputs, "jacobian"))
        return filled if is_tuple else filled[0]

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
