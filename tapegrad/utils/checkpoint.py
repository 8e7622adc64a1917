"""Checkpoints: a function keeps nothing for the backward pass, which computes it once more.

Without `use_reentrant`, hooks of saved tensors put numbers in place of what the function saves; the first that a pass
needs runs the function again, and notes what it saves this time. With it, an `autograd.Function` does all of that.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from tapegrad.autograd.backward import backward as run_backward
from tapegrad.autograd.function import Function
from tapegrad.autograd.saved_hooks import saved_tensors_hooks
from tapegrad.modes import enable_grad, is_traced, no_grad
from tapegrad.ops.generators import get_rng_state, set_rng_state
from tapegrad.sweep.sweep import current_sweep
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential"]

_PASS_IT: Final = (
    "the use_reentrant parameter should be passed explicitly. use_reentrant=False is recommended, but if you need to "
    "preserve the current default behavior, you can pass use_reentrant=True."
)
Contexts = Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]]


class CheckpointError(RuntimeError):
    """The function did not save the same when it ran again.

    Examples
    --------
    >>> import tapegrad as tg
    >>> issubclass(tg.utils.checkpoint.CheckpointError, RuntimeError)
    True
    """


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Return two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Contexts = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function without keeping what its derivatives need; a backward pass runs it again.

    Parameters
    ----------
    function : callable
        It must compute the same when it is called again.
    *args, **kwargs
        Its arguments.
    use_reentrant : bool
        False is recommended. True: as an `autograd.Function`, whose gradients arrive only if an argument requires grad,
        and not under `autograd.grad`.
    context_fn : callable, optional
        Returns two context managers: for the call, and for calls in backward passes.
    determinism_check : {"default", "none"}
        Whether shapes and dtypes of what is saved are compared.
    debug : bool
        Without meaning here.
    early_stop : bool
        End a second run of the function as soon as it has saved everything.
    preserve_rng_state : bool
        Let the function draw the same random numbers again.

    Returns
    -------
    Any
        What the function returns.

    Notes
    -----
    In a compiled function, the call is one operation of the program, and so is the second one, in its derivative.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> y = tg.utils.checkpoint.checkpoint(lambda x: (x * x).exp(), x, use_reentrant=False)
    >>> y.sum().backward()
    >>> x.grad
    tensor([  5.4366, 218.3926])
    """
    if use_reentrant is None:
        warnings.warn(f"tapegrad.utils.checkpoint: {_PASS_IT}", stacklevel=2)
        use_reentrant = True
    if is_traced():
        from tapegrad.program.scanned import computed_again  # at call time: programs import this package

        found = computed_again(functools.partial(function, *args, **kwargs))
        return function(*args, **kwargs) if found is None else found[0]
    if not use_reentrant:
        run = _Run(function, args, kwargs, context_fn, preserve_rng_state, early_stop, determinism_check != "none")
        return run.first()
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True
) -> Any:
    """Call functions one after the other, in segments of which all but the last are checkpoints.

    Parameters
    ----------
    functions : nn.Sequential, or sequence of callable
    segments : int
    input : Any
        Of the first function.
    use_reentrant, preserve_rng_state
        See `checkpoint`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> net = tg.nn.Sequential(tg.nn.Linear(3, 4), tg.nn.Tanh(), tg.nn.Linear(4, 1))
    >>> x = tg.ones(2, 3, requires_grad=True)
    >>> y = tg.utils.checkpoint.checkpoint_sequential(net, 2, x, use_reentrant=False)
    >>> y.sum().backward()
    >>> x.grad.shape
    (2, 3)
    """
    if use_reentrant is None:
        warnings.warn(f"tapegrad.utils.checkpoint.checkpoint_sequential: {_PASS_IT}", stacklevel=2)
        use_reentrant = True
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def segment(chosen: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
        def call(value: Any) -> Any:
            for step in chosen:
                value = step(value)
            return value

        return call

    size, end = len(steps) // segments, 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(
            segment(steps[start:end]), input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state
        )
    return segment(steps[end:])(input)


@contextlib.contextmanager
def _random_numbers_of(state: Any) -> Iterator[None]:
    """Draw random numbers from a state of the generator (None: as they come), and go back to today's at the end."""
    before = None if state is None else get_rng_state()
    try:
        if state is not None:
            set_rng_state(state)
        yield
    finally:
        if before is not None:
            set_rng_state(before)


class _EnoughError(Exception):
    """Ends a second run that has saved everything."""


class _Run:
    """One call of a function whose saved tensors are numbers, in the order in which they were saved."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        context_fn: Contexts,
        preserves: bool,
        stops_early: bool,
        compares: bool,
    ) -> None:
        self.call: Callable[[], Any] = functools.partial(function, *args, **kwargs)
        self.contexts = context_fn()
        self.state = get_rng_state() if preserves else None
        self.stops_early, self.compares = stops_early, compares
        self.layouts: list[Layout] = []
        self.again: list[Tensor] = []  # what a second run saved
        self.left: set[int] = set()  # which of it no pass has used yet

    def first(self) -> Any:
        """Call the function; nothing that it saves is kept."""

        def pack(tensor: Tensor) -> int:
            self.layouts.append(tensor._layout.plain)
            return len(self.layouts) - 1

        with self.contexts[0], saved_tensors_hooks(pack, self._saved):
            return self.call()

    def _saved(self, number: int) -> Tensor:
        if number not in self.left:
            self._run_again()
        self.left.remove(number)
        tensor = self.again[number]
        if not self.left:  # memory is free when a pass has used everything
            self.again = []
        return tensor

    def _run_again(self) -> None:
        self.again = again = []
        expected = len(self.layouts)

        def pack(tensor: Tensor) -> None:
            again.append(tensor.detach())
            if self.stops_early and len(again) == expected:
                raise _EnoughError

        hooks = saved_tensors_hooks(pack, lambda _: self._saved(0))
        with _random_numbers_of(self.state), self.contexts[1], enable_grad(), hooks, contextlib.suppress(_EnoughError):
            self.call()
        if len(again) != expected:
            raise CheckpointError(
                "tapegrad.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {expected}\n"
                f"Number of tensors saved during recomputation: {len(again)}"
            )
        pairs = zip(self.layouts, [tensor._layout for tensor in again], strict=True)
        if self.compares and any(own.shape != new.shape or own.dtype != new.dtype for own, new in pairs):
            raise CheckpointError(
                "tapegrad.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass: {self.layouts} and {[tensor._layout for tensor in again]}"
            )
        self.left = set(range(expected))


class CheckpointFunction(Function):
    """A call of a function, which `backward` calls again."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Call the function."""
        if not any(isinstance(arg, Tensor) and arg.requires_grad for arg in args):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=4)
        ctx.function, ctx.state = function, get_rng_state() if preserve_rng_state else None
        ctx.args = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.places = [place for place, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.save_for_backward(*[args[place] for place in ctx.places])
        with no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Call the function again, and run a backward pass of its own."""
        sweep = current_sweep()
        if sweep is not None and sweep.inputs is not None:
            raise RuntimeError(
                "When use_reentrant=True, tapegrad.utils.checkpoint is incompatible with .grad() or passing an "
                "`inputs` parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or "
                "call .backward() without passing the `inputs` argument."
            )
        args = list(ctx.args)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[place] = tensor.detach()
            args[place].requires_grad = tensor.requires_grad
        with _random_numbers_of(ctx.state), enable_grad():
            outputs = ctx.function(*args)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [
            (output, grad)
            for output, grad in zip(outputs, grads, strict=True)
            if isinstance(output, Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        run_backward([output for output, _ in pairs], [grad for _, grad in pairs])
        return None, None, *[arg.grad if isinstance(arg, Tensor) else None for arg in args]
