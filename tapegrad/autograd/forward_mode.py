"""Forward mode of whole functions, by the tangents of all ops that they call."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.autograd.dual_calls import kind_of, tangent_of_call
from tapegrad.autograd.jvp import Tangents, jvp
from tapegrad.ops.table.gateway import compute
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, Op, xp
from tapegrad.tape import versions, views
from tapegrad.tensor import Tensor, from_array

__all__ = ["Duals", "forward_mode"]

_MISSED: Final = (
    "a tensor with a tangent has been modified by an inplace operation, which forward mode does not follow; write "
    "x = x * y instead of x *= y"
)


class Duals:
    """The tensors that have a tangent. As an interceptor (see `modes.intercept`) it follows tangents through ops.

    It does not keep tensors alive: a tensor that dies takes its tangent with it. The tangent of a view is a view of its
    base's tangent. So a write to a tensor writes to its tangent, and base and views of both see it.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Tensor], Tensor | None, int]] = {}
        self._followed: dict[int, int] = {}  # how many writes to a storage its tangent has followed

    def note(self, tensor: Tensor, tangent: Tensor | None) -> None:
        """Let a tensor have a tangent, or have none though its base has one."""
        key = id(tensor)
        self._known[key] = weakref.ref(tensor, lambda _: self._known.pop(key, None)), tangent, self._missed(tensor)

    def _missed(self, tensor: Tensor) -> int:
        """Return how many writes to a tensor's storage were not followed."""
        return versions.version(tensor._data) - self._followed.get(id(versions.owner_of(tensor._array())), 0)

    def tangent_of(self, value: Any) -> Tensor | None:
        """Return a tensor's tangent, None if it has none.

        Raises
        ------
        RuntimeError
            If the tensor was written to since it has its tangent, by what forward mode does not follow.
        """
        known = self._known.get(id(value))
        if known is None:
            return self._part_of_base(value)
        _, tangent, missed = known
        if tangent is not None and self._missed(value) != missed:
            raise RuntimeError(_MISSED)
        return None if tangent is None else views.renewed(tangent)

    def _part_of_base(self, value: Any) -> Tensor | None:
        if not self._known or not isinstance(value, Tensor) or getattr(value._data, "base", None) is None:
            return None
        base = views.base_of(value)
        tangent = None if base is None else self.tangent_of(base)
        if base is None or tangent is None:
            return None
        with modes.uninterrupted():
            own: Tensor | None = xp.same_part(tangent, base, value)
        if own is None:
            raise RuntimeError(_MISSED)
        self.note(value, own)
        return own

    def follows_write(self, *values: Any) -> bool:
        """Whether a tensor that is about to be written to, or what is written, has a tangent."""
        return any(self.tangent_of(value) is not None for value in values)

    def write(self, target: Tensor, key: Any, value: Any, write: Callable[[Tensor, Any, Any], None]) -> None:
        """Write a value at an index of a tensor, and its tangent at the same index of the tensor's."""
        tangent, before = self.tangent_of(value), versions.version(target._array())
        own = self._tangent_to_write(target, tangent is not None and tangent.requires_grad)
        with modes.uninterrupted():
            write(target, key, value)
            write(own, key, 0.0 if tangent is None else tangent)
        owner = id(versions.owner_of(target._array()))
        self._followed[owner] = self._followed.get(owner, 0) + versions.version(target._array()) - before

    def _tangent_to_write(self, target: Tensor, is_recorded: bool) -> Tensor:
        tangent = self.tangent_of(target)
        if tangent is None:
            base = views.root_of(target)
            self.note(base, from_array(np.zeros(base.shape, base.dtype)))
            if base is not target:
                self._known.pop(id(target), None)
            return self._tangent_to_write(target, is_recorded)
        if is_recorded or tangent._node is not None:  # operations may have saved it: a copy is written to
            root = views.root_of(target)
            whole = self.tangent_of(root)
            if whole is None:
                root, whole = target, tangent
            with modes.uninterrupted():
                self.note(root, whole.clone())
            for key, (reference, own, _) in list(self._known.items()):
                if own is not None and getattr(reference(), "_viewed", None) is root is not reference():
                    del self._known[key]
            return self.tangent_of(target)  # type: ignore[return-value]
        return tangent

    def around(self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of an op in compiled code, and compute its tangent, if that is simple.

        Returns NotImplemented otherwise: then the interceptor itself is called.
        """
        kind = kind_of(call)
        if kwargs or kind is None or len(args) < kind.n_operands:
            return NotImplemented
        tangents = []
        for value in args[: kind.n_operands]:
            if isinstance(value, Tensor) and hasattr(value, "_viewed"):
                return NotImplemented
            tangents.append(self.tangent_of(value) if id(value) in self._known else None)
        with modes.uninterrupted():
            out = call(*args)
            if tangents.count(None) == len(tangents) or out.__class__ is not Tensor:
                return out if tangents.count(None) == len(tangents) else NotImplemented
            tangent = tangent_of_call(kind, args, tangents, out)
            if tangent is None:
                return NotImplemented
            if getattr(tangent._data, "base", None) is not None:
                tangent = _with_own_memory(out, args[: kind.n_operands], tangent, tangents)
        self.note(out, tangent)
        return out

    def __call__(self, op: Op, bound: Bound) -> Any:
        """Compute an op, and the tangents of its results."""
        out = compute(op, bound)[0]
        own = [
            None if op.rule(operand) is NOT_DIFFERENTIABLE else self.tangent_of(x)
            for operand, x in enumerate(bound.operands)
        ]
        if any(tangent is not None for tangent in own):
            results = out if isinstance(out, tuple) else (out,)
            if any(result._layout.floating for result in results):
                found = jvp(op, bound, out, own)
                for result, tangent in zip(results, found if isinstance(found, tuple) else (found,), strict=True):
                    if tangent is not None:
                        self.note(result, _with_own_memory(result, bound.operands, tangent, own))
        elif any(id(x) in self._known for x in bound.operands):  # views of what has none though its base has one
            for result in out if isinstance(out, tuple) else (out,):
                if hasattr(result, "_viewed"):
                    self.note(result, None)
        return out


def _with_own_memory(result: Tensor, operands: Sequence[Tensor], tangent: Tensor, others: Tangents) -> Tensor:
    """Return a tangent that shares memory with those of the operands only if the result does with the operands."""
    shared = [
        x for x, other in zip(operands, others, strict=True) if other is not None and _owner(tangent) is _owner(other)
    ]
    if not shared or any(_owner(result) is _owner(x) for x in shared):
        return tangent
    return tangent.clone()


def _owner(tensor: Tensor) -> Any:
    return versions.owner_of(tensor._data) if isinstance(tensor._data, np.ndarray) else tensor


def forward_mode(
    function: Callable[..., Any], primals: Sequence[Tensor], tangents: Tangents
) -> tuple[Any, tuple[Tensor | None, ...]]:
    """Return what a function returns, and the tangent of each output; None stands for zeros.

    Tangents follow every op that the function calls. They do not follow detached tensors, NumPy arrays and backward
    passes inside the function.
    """
    duals = Duals()
    for primal, tangent in zip(primals, tangents, strict=True):
        if tangent is not None:
            duals.note(primal, tangent)
    with modes.intercept(duals):
        value = function(*primals)
    return value, tuple(map(duals.tangent_of, value if isinstance(value, (tuple, list)) else (value,)))
