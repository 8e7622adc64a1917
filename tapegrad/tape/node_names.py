"""PyTorch's names of nodes: of operations that are several there, by the kind of the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Plan = Any  # `tapegrad.recording.plan.Plan`, which imports this folder


def _over_all(plan: Plan) -> bool:
    return len(plan.attrs["dim"]) == len(plan.layouts[0].shape) and not plan.attrs["keepdim"]


def _is_number(plan: Plan, operand: int) -> bool:
    return bool(plan.layouts[operand].weak)


def _of_product(plan: Plan) -> str:
    dims = tuple([len(layout.shape) for layout in plan.layouts])
    by_dims: dict[tuple[int, ...], str] = {(1, 1): "Dot", (2, 1): "Mv", (1, 2): "Squeeze", (2, 2): "Mm"}
    name = by_dims.get(dims, "UnsafeView")
    return f"{name}Backward{4 if name == 'Squeeze' else 0}"


#: By the name of the operation, from a plan to the name of its node.
RULES: Final[dict[str, Callable[[Any], str]]] = {
    "sum": lambda plan: f"SumBackward{0 if _over_all(plan) else 1}",
    "mean": lambda plan: f"MeanBackward{0 if _over_all(plan) else 1}",
    "prod": lambda plan: f"ProdBackward{0 if _over_all(plan) else 1}",
    "matmul": _of_product,
    "sub": lambda plan: "RsubBackward1" if _is_number(plan, 0) else "SubBackward0",
    "div": lambda plan: f"{'Mul' if _is_number(plan, 0) else 'Div'}Backward0",  # by a reciprocal
    "pow": lambda plan: f"PowBackward{0 if _is_number(plan, 1) else 2 if _is_number(plan, 0) else 1}",
    "clamp": lambda plan: f"ClampBackward{int(_is_number(plan, 1) and _is_number(plan, 2))}",
    "flatten": lambda plan: f"{'Unsafe' if plan.view_offset is None else ''}ViewBackward0",
    "real": lambda plan: "SelectBackward0",  # of a view of two numbers
    "imag": lambda plan: "SelectBackward0",
    "fftn": lambda plan: f"Fft{'C' if plan.layouts[0].dtype.kind == 'c' else 'R'}2CBackward0",
    "rfftn": lambda plan: "FftR2CBackward0",
    "reshape": lambda plan: f"{'Unsafe' if plan.view_offset is None else ''}ViewBackward0",
}


def name_of_plan(plan: Plan) -> str:
    """Return the name of a plan's nodes, which may depend on the call."""
    op = plan.op
    if plan.node_name == op.node_name:
        if op.names_node is not None:
            return str(op.names_node(plan.attrs))
        if op.name in RULES:
            return RULES[op.name](plan)
    return str(plan.node_name)
