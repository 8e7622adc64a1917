"""Derivatives inside a traced function, with cotangents and tangents from outside as well."""

from __future__ import annotations

from typing import Any

import tapegrad as tg
from tapegrad import func
from tests.program_cases.case import MATRICES, PAIRS, PROGRAM, case


@case(PROGRAM)
def gradient_of_func(x: Any) -> Any:
    return func.grad(lambda y: (y.sin() * y).sum())(x)


@case(PROGRAM)
def hessian_of_func(x: Any) -> Any:
    return func.hessian(lambda y: (y**3).sum() * y[0])(x)


@case(PROGRAM, PAIRS)
def cotangent_from_outside(x: Any, v: Any) -> Any:
    value, pull = func.vjp(lambda y: y.exp() * y, x)
    return value, pull(v)[0]


@case(PROGRAM, PAIRS)
def tangent_from_outside(x: Any, v: Any) -> Any:
    return func.jvp(lambda y: y.exp() * y, (x,), (v,))


@case(PROGRAM)
def gradient_of_autograd(x: Any) -> Any:
    leaf = x.detach().requires_grad_()
    (first,) = tg.autograd.grad((leaf**3).sum(), leaf, create_graph=True)
    (second,) = tg.autograd.grad(first.sum(), leaf)
    return first.detach() + second


@case(PROGRAM)
def backward_inside(x: Any) -> Any:
    leaf = x.detach().requires_grad_()
    (leaf.exp() * leaf).sum().backward()
    return leaf.grad * 2.0


@case(PROGRAM, PAIRS)
def cotangent_of_backward(x: Any, v: Any) -> Any:
    leaf = x.detach().requires_grad_()
    leaf.sin().backward(v)
    return leaf.grad


@case(PROGRAM)
def without_gradient(x: Any) -> Any:
    with tg.no_grad():
        scale = x.abs().max()
    return func.grad(lambda y: (y / scale * y.detach()).sum())(x)


@case(PROGRAM)
def hook_on_a_gradient(x: Any) -> Any:
    leaf = x.detach().requires_grad_()
    y = leaf * 2.0
    y.register_hook(lambda ct: ct * x)
    y.exp().sum().backward()
    return leaf.grad


class _Clipped(tg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.clamp(-1.0, 1.0)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        return ct * tg.where(x.abs() < 1, 1.0, 0.5)


@case(PROGRAM)
def function_with_its_own_rule(x: Any) -> Any:
    return func.grad(lambda y: (_Clipped.apply(y) * y).sum())(x)


@case(PROGRAM, MATRICES)
def mapped(a: Any) -> Any:
    return func.vmap(lambda row: row * row.sum())(a)
