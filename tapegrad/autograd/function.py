"""`Function`: an operation of the user's, with a forward and a backward in Python."""

from __future__ import annotations

import copy
import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from tapegrad import errors, modes
from tapegrad.autograd.function_backward import compiled_rule
from tapegrad.autograd.function_call import compiled_call
from tapegrad.autograd.function_context import FunctionCtx
from tapegrad.autograd.function_entry import SavedOutput, SavedPacked, recorded, renewed_inputs, without_history
from tapegrad.autograd.function_rule import checked, function_op, rule
from tapegrad.autograd.function_tangents import note_jvp, with_tangents
from tapegrad.autograd.saved import check_version
from tapegrad.modes import INTERCEPTORS, mode
from tapegrad.ops.table.loading import Later
from tapegrad.ops.table.op import Op
from tapegrad.recording.plan import Plan
from tapegrad.tape import versions
from tapegrad.tape.entries import FIRST_OPERAND, PLAN_OBJECT, SLOT, TapeNode, describe
from tapegrad.tape.graph import Node, output_of
from tapegrad.tape.hooks import is_freed
from tapegrad.tensor import Tensor

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]

_KEPT_OTHERWISE: Final = SavedOutput, SavedPacked
_POSITIONAL: Final = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
_LEGACY: Final = (
    "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
    "with static forward method, and call apply() of the class."
)


class BackwardCFunction(Node, FunctionCtx):
    """The context of one call of a `Function`, which is also the call's `grad_fn`.

    The tape keeps the attributes, as a dictionary, and not the object: the object refers to its node on the tape.
    """

    _forward_cls: ClassVar[type[Function]]
    _written: int  # `versions.clock` when the call was recorded, if tensors were saved

    @classmethod
    def of(cls, node: TapeNode) -> BackwardCFunction:
        """Return the context of a node of the tape, with the attributes that `forward` left."""
        ctx = object.__new__(cls)
        ctx._node = node
        if not is_freed(node):
            ctx.__dict__ = _attributes(node)
        return ctx

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors of `save_for_backward`, in their old place in the graph.

        Raises
        ------
        RuntimeError
            If a backward pass has freed them, or one was written to since.
        """
        try:
            node = self._node
        except AttributeError:  # of a call that is not recorded, or not yet
            unrecorded: tuple[Any, ...] = self.__dict__.get("_saved_for_forward", ())
            return unrecorded
        assert isinstance(node, list)
        if is_freed(node):
            raise errors.second_backward(describe(node[SLOT]))
        saved: tuple[Any, ...] = self.__dict__.get("_saved", ())
        if saved and versions.clock[0] != self._written:
            for value in saved:
                self._check(value, node)
        for value in saved:
            if value.__class__ in _KEPT_OTHERWISE:
                return tuple([own.restored(node) if own.__class__ in _KEPT_OTHERWISE else own for own in saved])
        return saved

    @staticmethod
    def _check(value: Any, node: TapeNode) -> None:
        if value.__class__ is SavedOutput:
            check_version(value.data, node, output_of(node))
        elif isinstance(value, Tensor):
            check_version(value._data, node, output_of(value._node) if isinstance(value._node, list) else None)

    def for_jvp(self) -> BackwardCFunction:
        """Return the context as `jvp` gets it: its saved tensors are those of `save_for_forward`."""
        ctx = copy.copy(self)
        ctx._saved = self.__dict__.get("_saved_for_forward", ())
        return ctx

    @property
    def has_jvp(self) -> bool:
        """Whether the user has written a `jvp`."""
        return self._forward_cls.jvp is not Function.jvp

    def transposed(self, cts: Sequence[Any], plan: Plan) -> tuple[Any, ...]:
        """Return a linear function of cotangents whose derivative is the user's `jvp`; its values do not matter."""
        from tapegrad.autograd.function_transposed import Transposed  # at call time: it is a Function

        return Transposed.apply(self, plan, *cts)  # type: ignore[no-any-return]

    def run(self, cts: Sequence[Any]) -> Any:
        """Call the user's backward."""
        function = self._forward_cls
        backward = function.backward
        return (function.vjp if backward is Function.backward else backward)(self, *cts)


def _attributes(node: TapeNode) -> dict[str, Any]:
    attributes: dict[str, Any] = node[FIRST_OPERAND + node[PLAN_OBJECT].arity]
    return attributes


class Function:
    """A base class for operations whose derivative you write.

    A subclass has the static methods `forward` and `backward`. Call it by `apply`. Arguments may be any objects;
    tensors among them get gradients.

    Notes
    -----
    ``forward(ctx, *args)`` computes the outputs, a value or a tuple of values, without recording. It may save tensors
    (`FunctionCtx.save_for_backward`) and set attributes of `ctx`. Or ``forward(*args)`` computes, and
    ``setup_context(ctx, inputs, output)`` saves. ``backward(ctx, *grads)`` gets one gradient for each output and
    returns one for each argument of `apply`: None for what is no tensor, or where ``ctx.needs_input_grad`` is False. It
    is recorded under ``create_graph=True``, and so has derivatives itself if it consists of operations on tensors.

    Examples
    --------
    >>> import tapegrad as tg
    >>> class Cube(tg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x**2 * grad
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> y = Cube.apply(x)
    >>> y
    tensor([1., 8.], grad_fn=<CubeBackward>)
    >>> y.sum().backward()
    >>> x.grad
    tensor([ 3., 12.])
    """

    generate_vmap_rule: ClassVar[bool] = False
    _backward_cls: ClassVar[type[BackwardCFunction]] = BackwardCFunction
    _op: ClassVar[Op]
    _has_setup: ClassVar[bool] = False
    _is_compiled: ClassVar[bool]  # whether `apply` is ours, and not the user's

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name = f"{cls.__name__}Backward"
        cls._has_setup = cls.setup_context is not Function.setup_context
        cls._backward_cls = type(name, (BackwardCFunction,), {"_forward_cls": cls})
        cls._op = function_op(cls.__name__, name)
        owner = next(base for base in cls.__mro__ if "apply" in vars(base))
        cls._is_compiled = owner is Function or vars(owner).get("_is_compiled", False)
        if cls._is_compiled:
            cls.apply = Later(cls, "apply", cls._compiled)  # type: ignore[assignment]
            return
        for base in cls.__mro__[1:]:  # the user's `apply` calls that of a base, for this class
            if vars(base).get("_is_compiled"):
                base._is_compiled = False  # type: ignore[attr-defined]
                del base.apply  # type: ignore[attr-defined]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise an error: `apply` calls a function."""
        raise RuntimeError(_LEGACY)

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; a subclass defines it."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what `backward` needs, for a `forward` that does not take `ctx`."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradients of the arguments from those of the outputs; a subclass defines it, or `vjp`."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangents of the outputs from those of the arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Say how a batch is computed; tapegrad never calls it."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True; tapegrad calls neither: its vmap runs apply() for each item."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call `forward`, and record the call so that backward passes call `backward`.

        Raises
        ------
        RuntimeError
            If an input that was marked as dirty is not returned, or is a leaf that requires grad.
        TypeError
            If what was saved is no tensor.
        """
        if kwargs or (cls._has_setup and len(args) != cls._n_inputs()):
            first = () if cls._has_setup else (None,)  # the context; inputs are positional, however they are given
            bound = inspect.signature(cls.forward).bind(*first, *args, **kwargs)
            if cls._has_setup:
                bound.apply_defaults()
            args, kwargs = bound.args[len(first) :], bound.kwargs
        ctx = object.__new__(cls._backward_cls)
        if mode.value & INTERCEPTORS:
            modes.tell("called")
            return with_tangents(cls.jvp, ctx, args, lambda: cls._run(ctx, args, kwargs))
        return cls._run(ctx, args, kwargs)

    @classmethod
    def _run(cls, ctx: BackwardCFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensors, places, needs = renewed_inputs(args)
        ctx.needs_input_grad = needs
        is_recorded = modes.is_grad_enabled()
        try:
            if is_recorded:
                modes.pause()
            out = cls.forward(*args, **kwargs) if cls._has_setup else cls.forward(ctx, *args, **kwargs)
            if cls._has_setup:
                cls.setup_context(ctx, args, out)
        finally:
            if is_recorded:
                modes.resume()
        if is_recorded and True in needs:
            return cls._recorded(ctx, out, tensors, places)
        return without_history(tensors, out, ctx.__dict__.get("_dirty", ()))

    @classmethod
    def _recorded(cls, ctx: BackwardCFunction, out: Any, tensors: list[Tensor], places: tuple[int, ...] | None) -> Any:
        if cls.jvp is not Function.jvp:
            note_jvp()
        return recorded(cls._op, ctx.__dict__, tensors, places, out, cls._backward_cls)

    @classmethod
    def _finished(cls, ctx: BackwardCFunction, out: Any, *args: Any) -> Any:
        """Record a call whose `forward` compiled code has called; an argument requires grad."""
        tensors, places, _ = renewed_inputs(args)
        return cls._recorded(ctx, out, tensors, places)

    @classmethod
    def _n_inputs(cls) -> int:
        """Return how many arguments a call has if `forward` gets just these: -2 if that differs from call to call."""
        parameters = inspect.signature(cls.forward).parameters.values()
        return len(parameters) if all(one.kind in _POSITIONAL for one in parameters) else -2

    @classmethod
    def _compiled(cls) -> Callable[..., Any]:
        in_python = vars(Function)["apply"].__get__(None, cls)
        n_inputs = cls._n_inputs() if cls._has_setup else -1
        return compiled_call(cls, cls._op.plans, Function.jvp, n_inputs, in_python, cls._finished)


class InplaceFunction(Function):
    """A `Function` whose objects say whether they write in place; PyTorch keeps it for old programs."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class _Refused(Function):
    """The identity; its derivative is refused."""

    @staticmethod
    def forward(ctx: Any, *values: Any) -> Any:
        return tuple(None if value is None else value.detach() for value in values)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` that cannot be differentiated: it is not recorded, and a second derivative through it raises.

    Examples
    --------
    >>> import numpy as np
    >>> import tapegrad as tg
    >>> class Sine(tg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return tg.from_numpy(np.sin(x.detach().numpy()))
    ...
    ...     @staticmethod
    ...     @tg.autograd.function.once_differentiable
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return grad * tg.from_numpy(np.cos(x.detach().numpy()))
    >>> x = tg.zeros(1, requires_grad=True)
    >>> tg.autograd.grad(Sine.apply(x).sum(), x)
    (tensor([1.]),)
    """

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with modes.no_grad():
            values = backward(ctx, *grads)
        if not modes.is_grad_enabled() or not any(isinstance(value, Tensor) and value.requires_grad for value in grads):
            return values
        outputs = values if isinstance(values, tuple) else (values,)
        refused = _Refused.apply(*[None if value is None else value.detach().requires_grad_() for value in outputs])
        return refused if isinstance(values, tuple) else refused[0]

    return wrapper


# The table of rules asks for it when a sweep first meets a `Function`.
rule.compiled = functools.cache(lambda: compiled_rule(Function.backward, checked, rule))  # type: ignore[attr-defined]
