"""Derivatives of functions of a few variables: transforms beside those of PyTorch and HIPS autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.table import Table, ratio, seconds
from bench.timing import Run, interleaved
from bench.tools import installed

SIZES, QUICK_SIZES = (10, 100), (4,)


def rosenbrock(np: Any, matrix: Any) -> Callable[[Any], Any]:
    return lambda x: (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def logistic(np: Any, matrix: Any) -> Callable[[Any], Any]:
    return lambda x: np.log(1.0 + np.exp(matrix @ x)).sum() + 0.5 * (x * x).sum()


def residuals(np: Any, matrix: Any) -> Callable[[Any], Any]:
    return lambda x: np.tanh(matrix @ x) * x + x[:1] * x


Program = Callable[[Any, Any], Callable[[Any], Any]]
CASES: tuple[tuple[str, Program], ...] = (
    ("gradient", rosenbrock), ("gradient", logistic), ("hvp", rosenbrock), ("hvp", logistic),
    ("hessian", rosenbrock), ("hessian", logistic), ("jacobian", residuals), ("vjp", residuals), ("jvp", residuals),
)  # fmt: skip


def _tapegrad(kind: str, program: Program, matrix: np.ndarray, x: np.ndarray, v: np.ndarray) -> dict[str, Run]:
    import tapegrad as tg
    from tapegrad import func

    f, point, vector = program(tg, tg.tensor(matrix)), tg.tensor(x), tg.tensor(v)
    runs: dict[str, Run] = {
        "gradient": lambda: func.grad(f)(point),
        "hvp": lambda: func.hvp(f, (point,), (vector,)),
        "hessian": lambda: func.hessian(f)(point),
        "jacobian": lambda: func.jacrev(f)(point),
        "vjp": lambda: func.vjp(f, point)[1](vector),
        "jvp": lambda: func.jvp(f, (point,), (vector,)),
    }
    return {"tapegrad": runs[kind]}


def _torch(kind: str, program: Program, matrix: np.ndarray, x: np.ndarray, v: np.ndarray) -> dict[str, Run]:
    import torch
    from torch.autograd import functional

    f, point, vector = program(torch, torch.tensor(matrix)), torch.tensor(x), torch.tensor(v)

    def gradient() -> Any:
        leaf = point.detach().requires_grad_()
        return torch.autograd.grad(f(leaf), leaf)

    transforms: dict[str, Run] = {
        "gradient": lambda: torch.func.grad(f)(point),
        "hvp": lambda: torch.func.jvp(torch.func.grad(f), (point,), (vector,)),
        "hessian": lambda: torch.func.hessian(f)(point),
        "jacobian": lambda: torch.func.jacrev(f)(point),
        "vjp": lambda: torch.func.vjp(f, point)[1](vector),
        "jvp": lambda: torch.func.jvp(f, (point,), (vector,)),
    }
    plain: dict[str, Run] = {
        "gradient": gradient,
        "hvp": lambda: functional.vhp(f, point, vector),  # the quicker of the two
        "hessian": lambda: functional.hessian(f, point, vectorize=True),
        "jacobian": lambda: functional.jacobian(f, point, vectorize=True),
        "vjp": lambda: functional.vjp(f, point, vector),
        "jvp": lambda: functional.jvp(f, point, vector),
    }
    return {"torch.func": transforms[kind], "torch.autograd": plain[kind]}


def _autograd(kind: str, program: Program, matrix: np.ndarray, x: np.ndarray, v: np.ndarray) -> dict[str, Run]:
    import autograd

    f = program(autograd.numpy, matrix)
    runs: dict[str, Run] = {
        "gradient": lambda: autograd.grad(f)(x),
        "hvp": lambda: autograd.make_hvp(f)(x)[0](v),
        "hessian": lambda: autograd.hessian(f)(x),
        "jacobian": lambda: autograd.jacobian(f)(x),
        "vjp": lambda: autograd.make_vjp(f)(x)[0](v),
        "jvp": lambda: autograd.make_jvp(f)(x)(v),
    }
    return {"autograd": runs[kind]}


def tables(rounds: int, quick: bool) -> list[Table]:
    """Derivatives of functions: gradients, products, Jacobians, Hessians."""
    makers = {"tapegrad": _tapegrad, "torch": _torch, "autograd": _autograd}
    makers = {tool: make for tool, make in makers.items() if tool == "tapegrad" or installed(tool)}
    tools = [name for tool, names in (("tapegrad", ("tapegrad",)), ("torch", ("torch.func", "torch.autograd")),
                                      ("autograd", ("autograd",))) if tool in makers for name in names]  # fmt: skip
    others = tools[1:]
    table = Table(
        "derivatives of functions: medians, and ratios to tapegrad",
        ("derivative", "function", "size", *tools, *[f"{tool} / ours" for tool in others]),
    )
    rng = np.random.default_rng(1)
    for size in QUICK_SIZES if quick else SIZES:
        matrix, x, v = rng.normal(size=(size, size)) / size, rng.normal(size=size), rng.normal(size=size)
        for kind, program in CASES:
            runs: dict[str, Run] = {}
            for make in makers.values():
                runs |= make(kind, program, matrix, x, v)
            times = interleaved(runs, rounds, at_least=0.003)
            cells = [seconds(float(np.median(times[tool]))) for tool in tools]
            ratios = [ratio(float(np.median(times[tool] / times["tapegrad"]))) for tool in others]
            table.rows.append((kind, program.__name__, str(size), *cells, *ratios))
    table.notes.append("torch.autograd: its functional, vectorised; a gradient by autograd.grad.")
    return [table]
