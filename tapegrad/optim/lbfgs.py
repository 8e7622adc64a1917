"""LBFGS: a quasi-Newton method that keeps the latest changes of the gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.optim.compiled import check_options, options
from tapegrad.optim.line_search import Point, strong_wolfe
from tapegrad.optim.optimizer import Optimizer, Params
from tapegrad.tape import versions
from tapegrad.tensor import Tensor, from_array


class LBFGS(Optimizer):
    """Quasi-Newton steps with little memory (Nocedal and Wright, "Numerical Optimization", 2006, algorithm 7.5).

    Parameters
    ----------
    params : iterable of Tensor
        One group.
    lr : float
        Length of a step, relative to the quasi-Newton step.
    max_iter : int
        Iterations in each call of `step`.
    max_eval : int, optional
        Calls of the closure in each call of `step`; by default 1.25 times `max_iter`.
    tolerance_grad : float
        Stop when no element of the gradient is larger.
    tolerance_change : float
        Stop when the loss, or each element of the parameters, changes less.
    history_size : int
        How many changes of the gradient are kept.
    line_search_fn : "strong_wolfe", optional
        By default steps have the length `lr`.

    Raises
    ------
    ValueError
        If `lr` is negative, or there are several groups.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([3.0, -4.0], requires_grad=True)
    >>> optimizer = tg.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - tg.tensor([1.0, 2.0])) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure)
    tensor(40., grad_fn=<SumBackward0>)
    >>> x
    tensor([1., 2.], requires_grad=True)
    """

    def __init__(
        self,
        params: Params,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        defaults = options(locals())
        check_options(defaults)
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    # --- parameters as one vector -----------------------------------------------------------------------------------

    def _parts(self) -> Iterator[tuple[Tensor, np.ndarray]]:
        """Yield each parameter with its memory, complex numbers as pairs of real ones."""
        for param in self.param_groups[0]["params"]:
            yield param, _as_real(param._array())

    def _grads(self) -> np.ndarray:
        """Return all gradients as one vector."""
        return np.concatenate(
            [
                np.zeros(part.size, part.dtype) if param._grad is None else _as_real(param._grad._array()).ravel()
                for param, part in self._parts()
            ]
        )

    def _move(self, t: Any, direction: np.ndarray, start: list[np.ndarray] | None = None) -> None:
        """Move the parameters by a multiple of a direction, from where they are or from other values."""
        way, first = t * direction, 0
        for number, (param, part) in enumerate(self._parts()):
            step = way[first : first + part.size].reshape(part.shape)
            np.add(part if start is None else start[number], step, out=part)
            first += part.size
            versions.note(param._array())

    # --- the step ---------------------------------------------------------------------------------------------------

    @modes.no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Run up to `max_iter` iterations.

        Parameters
        ----------
        closure : callable
            Sets gradients to zero, computes the loss and its gradients, and returns the loss.

        Returns
        -------
        The first result of `closure`.
        """
        closure = modes.enable_grad()(closure)
        group = self.param_groups[0]
        lr, search = _number(group["lr"]), group["line_search_fn"]
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss, grad, evaluations = _number(first), self._grads(), 1
        state["func_evals"] += 1
        if abs(grad).max() <= group["tolerance_grad"]:
            return first
        history = _History(state, group["history_size"])
        for number in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                history.begin(grad)
                t: Any = min(1.0, 1.0 / abs(grad).sum()) * lr
            else:
                history.turn(grad)
                t = lr
            direction, loss_before = history.direction, loss
            history.t, history.loss = t, loss_before
            slope = grad.dot(direction)
            if slope > -group["tolerance_change"]:
                break
            if search is None:
                self._move(t, direction)
                tried, is_flat = 0, False
                if number != group["max_iter"]:
                    loss, grad, tried = _number(closure()), self._grads(), 1
                    is_flat = abs(grad).max() <= group["tolerance_grad"]
            elif search == "strong_wolfe":
                found, tried = self._search(closure, t, Point(0, loss, grad, slope), direction, evaluations)
                t, loss, grad = found.t, found.value, found.grad
                history.t = t
                is_flat = abs(grad).max() <= group["tolerance_grad"]
            else:
                raise RuntimeError(f"only 'strong_wolfe' is supported, not {search!r}")
            evaluations += tried
            state["func_evals"] += tried
            if evaluations >= group["max_eval"] or is_flat:
                break
            if abs(direction * t).max() <= group["tolerance_change"]:
                break
            if abs(loss - loss_before) < group["tolerance_change"]:
                break
        history.save(state)
        return first

    def _search(
        self, closure: Callable[[], Any], t: Any, start: Point, direction: np.ndarray, evaluations: int
    ) -> tuple[Point, int]:
        """Search along a direction, and leave the parameters at the point that is found."""
        before = [part.copy() for _, part in self._parts()]

        def at(t: Any) -> Point:
            self._move(t, direction, before)
            value, grad = _number(closure()), self._grads()
            return Point(t, value, grad, grad.dot(direction))

        group = self.param_groups[0]
        most = group["max_eval"] - evaluations
        found, tried = strong_wolfe(at, t, start, abs(direction).max(), group["tolerance_change"], most)
        self._move(found.t, direction, before)
        return found, tried


class _History:
    """The latest changes of the gradient (`dirs`) and of the parameters (`steps`), as one state dict keeps them."""

    def __init__(self, state: dict[str, Any], size: int) -> None:
        self.size = size
        self.dirs, self.steps, self.ro = ([_array(one) for one in state.get(key) or ()] for key in _LISTS)
        self.scale: Any = _array(state.get("H_diag", 1))
        self.direction, self.grad = _array(state.get("d")), _array(state.get("prev_flat_grad"))
        self.t, self.loss = _array(state.get("t")), state.get("prev_loss")
        self.factors = state.get("al")

    def begin(self, grad: np.ndarray) -> None:
        """Go down along the gradient."""
        self.dirs, self.steps, self.ro, self.scale = [], [], [], 1
        self.direction, self.grad = -grad, grad.copy()

    def turn(self, grad: np.ndarray) -> None:
        """Learn from the last step, and find the next direction by the two loops of algorithm 7.4."""
        change, step = grad - self.grad, self.direction * self.t
        curvature = change.dot(step)
        if curvature > 1e-10:
            for kept, new in zip((self.dirs, self.steps, self.ro), (change, step, 1.0 / curvature), strict=True):
                del kept[: max(0, len(kept) + 1 - self.size)]
                kept.append(new)
            self.scale = curvature / change.dot(change)
        direction = -grad
        factors: list[Any] = [None] * self.size
        for k in reversed(range(len(self.dirs))):
            factors[k] = self.steps[k].dot(direction) * self.ro[k]
            direction -= factors[k] * self.dirs[k]
        direction *= self.scale
        for k in range(len(self.dirs)):
            direction += (factors[k] - self.dirs[k].dot(direction) * self.ro[k]) * self.steps[k]
        self.direction, self.grad, self.factors = direction, grad.copy(), factors

    def save(self, state: dict[str, Any]) -> None:
        """Write it into the state, as tensors."""
        if self.factors is not None:
            state["al"] = list(map(_tensor, self.factors))
        state.update(d=_tensor(self.direction), t=_tensor(self.t))
        for key, kept in zip(_LISTS, (self.dirs, self.steps, self.ro), strict=True):
            state[key] = list(map(_tensor, kept))
        state.update(H_diag=_tensor(self.scale), prev_flat_grad=_tensor(self.grad), prev_loss=self.loss)


_LISTS = ("old_dirs", "old_stps", "ro")


def _as_real(array: np.ndarray) -> np.ndarray:
    return array[..., None].view(f"f{array.itemsize // 2}") if array.dtype.kind == "c" else array


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def _array(value: Any) -> Any:
    return value._data if isinstance(value, Tensor) else value


def _tensor(value: Any) -> Any:
    return from_array(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value
