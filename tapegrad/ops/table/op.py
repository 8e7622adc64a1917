"""An op of the op table: its name, forward, rules and samples; plans, kernels, docs and tests are made from these."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, dataclass_transform

import numpy as np

from tapegrad import vmath
from tapegrad.dtypes import on_change
from tapegrad.kernels.rules import rule_parameters
from tapegrad.ops.table.loading import Functions, Table, importing
from tapegrad.ops.table.values import KINKS, Draw
from tapegrad.recording.plan_cache import PlanCache
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

if TYPE_CHECKING:
    from tapegrad.recording.plan import Plan
    from tapegrad.recording.steps import Step

Rule = Callable[..., Any]


class NotYet(NamedTuple):
    """A derivative that exists and has no rule yet: reaching it raises an error with the reason."""

    reason: str


class _NotDifferentiable:
    def __repr__(self) -> str:
        return "NOT_DIFFERENTIABLE"


NOT_DIFFERENTIABLE: Final = _NotDifferentiable()
Vjp = Rule | NotYet | _NotDifferentiable

# What a rule may ask for besides its operands and attributes.
SPECIAL_NAMES: Final = ("ct", "out", "index_arrays", "shapes", "number", "wanted", "entry")

op_table: Final[dict[str, Op]] = Table()
_FEW: Final = 8  # operands
ELEMENTWISE: Final = frozenset(("unary", "binary", "elementwise"))  # families


def _forget_plans() -> None:
    # Plans depend on the default dtype, the result of an operation of integers and floats.
    for op in op_table.values():
        op.plans.clear()


on_change.append(_forget_plans)

# The namespace that rules call functions through. Here its functions are tapegrad's own, so that a rule is
# differentiable; the kernel compiler binds the same name to `tapegrad.vmath`.
xp: Final[Any] = Functions()


def on_arrays(formula: Rule) -> Rule:
    """Return a formula as a function of NumPy arrays: its `xp` are the forwards of the ops."""

    @functools.cache
    def bound() -> Rule:
        names = {**formula.__globals__, "xp": _Forwards()}
        return types.FunctionType(formula.__code__, names, formula.__name__, formula.__defaults__, formula.__closure__)

    return lambda *arrays: bound()(*arrays)


class _Forwards:
    def __getattr__(self, name: str) -> Rule:
        forward = op_table[name].forward
        return getattr(forward, "other", forward)  # NumPy's function in place of our ufunc


class Sample(NamedTuple):
    """Operands' shapes and attributes that an op is tested with.

    `values` has for each operand an array, None for any numbers of the op's domain, or a function that draws it,
    ``(shape, dtype, rng) -> array``; see `tapegrad.ops.table.values`.
    """

    shapes: tuple[tuple[int, ...], ...]
    attrs: Mapping[str, Any] = {}  # nobody writes to it
    values: tuple[Any, ...] | None = None


class Bound(NamedTuple):
    """A call of an op, bound: its operands as tensors, the values of its attributes, and arrays of indices.

    Attributes are hashable: they are a part of the plan. Index arrays are integers that rules need beside operands.
    """

    operands: Sequence[Tensor]
    attrs: dict[str, Any] = {}  # noqa: RUF012  # nobody writes to it
    index_arrays: tuple[np.ndarray, ...] = ()


class ErrorSample(NamedTuple):
    """A call that must raise `error` with a message that contains `words`."""

    call: Callable[[], Any]
    error: type[Exception]
    words: str


def _derived(*, init: Literal[False] = False) -> Any:
    """Mark an attribute of `Op` that is derived from the others."""


@dataclass_transform(frozen_default=True, eq_default=False, kw_only_default=True, field_specifiers=(_derived,))
class _Frozen:
    """A class whose attributes are given by name and never change: a dataclass that costs 3 ms less at import."""

    _names: ClassVar[frozenset[str]]
    _required: ClassVar[frozenset[str]]

    def __init_subclass__(cls) -> None:
        cls._names = frozenset(cls.__annotations__)
        cls._required = frozenset(name for name in cls._names if not hasattr(cls, name))

    def __init__(self, **fields: Any) -> None:
        if self._required.difference(fields) or not self._names.issuperset(fields):
            wrong, missing = sorted(fields.keys() - self._names), sorted(self._required - fields.keys())
            raise TypeError(f"{type(self).__name__} has no {wrong}, or lacks {missing}")
        vars(self).update(fields)
        self.__post_init__()

    def __post_init__(self) -> None:
        pass

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"cannot assign to {name!r} of {self!r}: it is frozen")


class _NoKernel:
    def __call__(self, plan: Plan, operand: int) -> None:
        """Return no step: the sweep calls the rule."""


no_kernel: Final = _NoKernel()


class Op(_Frozen):
    """One operation.

    A rule's parameter names are its residuals: ``ct`` is the cotangent of the result, an operand's name or ``out`` asks
    for that value and so keeps it alive, an attribute's name asks for its value. ``x_shape`` asks for the shape of
    operand ``x``, which costs nothing. Ops with a variable number of operands have one rule, which may ask for its
    operand's ``number`` and for the ``shapes`` of all. ``entry`` is the entry's node, and whether the call is recorded.

    Attributes
    ----------
    name : str
    operands : tuple of str
        Names of the operands; one name that begins with ``*`` stands for any number.
    forward : callable
        On NumPy arrays and scalars, in the order operands, index_arrays, attributes (by name).
    vjp : tuple or callable
        For each operand a rule, `NOT_DIFFERENTIABLE`, or `NotYet`; or one rule that returns the cotangents of all
        operands as a tuple, and may ask which are ``wanted``.
    bind : callable, optional
        From the arguments of a public call to a `Bound` call; see `tapegrad.ops.table.gateway`.
    check : callable, optional
        Raises if a bound call cannot be computed; called once for operands of the same layouts.
    results : tuple of str
        Names of the results.
    result_type : callable, optional
        Makes the named tuple of several results.
    family : str
    attrs : tuple of str
    lengths : tuple of str
        Those attributes that are tuples of lengths: steps may compute with them as with lengths of operands.
    node : str
        Class name of ``grad_fn``.
    step : callable
        ``(plan, operand) -> Step``, or None where the sweep has to call the rule in Python; default None for all.
    oracle : callable, optional
        Independent implementation of the forward in NumPy or SciPy; default the NumPy function of the same name.
    domain : tuple of float
        The range from which samples are drawn.
    special : mapping
        Gradients at special points: value (or tuple of values) to gradient (or tuple).
    kinks : sequence of callable
        Functions that draw operands at kinks and edges, as in `Sample.values`; tests compare derivatives to the third
        order with PyTorch's there. For elementwise ops tests have their own points, and `special`.
    samples, errors : sequences of Sample and ErrorSample
    fx : callable, optional
        The forward of an elementwise op as a formula: on numbers, with functions of `xp`; see `Op.formula`.
    linear : bool
        Whether the result is a linear function of all operands together; tests check it.
    bilinear : bool
        Whether the op is linear in each of its two operands.
    real_only : bool
        Whether the function has no meaning for complex numbers.
    fused : callable, optional
        ``plan -> Step`` that serves both operands at once, or None where there is none.
    call : callable, optional
        Takes the operands and attributes of a sample; default the function of the op's name.
    check_dtypes : callable, optional
        Takes the layouts of new operands, and raises PyTorch's error for dtypes that the op does not take.
    prepare_forward : callable, optional
        From the operands' layouts and the attributes to the function that computes the forward from the operands;
        default `forward` with the attributes.
    """

    name: str
    operands: tuple[str, ...]
    forward: Callable[..., Any]
    vjp: tuple[Vjp, ...] | Rule
    family: str
    step: Callable[[Plan, int], Step | None] = no_kernel
    attrs: tuple[str, ...] = ()
    lengths: tuple[str, ...] = ()
    node_name: str = ""
    oracle: Callable[..., Any] | None = None
    domain: tuple[float, float] = (-3.0, 3.0)
    special: Mapping[Any, Any] = {}  # nobody writes to it
    kinks: Sequence[Draw] = KINKS
    samples: Sequence[Sample] = ()
    errors: Sequence[ErrorSample] = ()
    fx: Rule | None = None
    linear: bool = False
    bilinear: bool = False
    real_only: bool = False
    fused: Callable[[Plan], Step | None] | None = None
    call: Callable[..., Any] | None = None
    check_dtypes: Callable[[tuple[Layout, ...]], None] | None = None
    prepare_forward: Callable[[tuple[Layout, ...], dict[str, Any]], Callable[..., Any]] | None = None
    bind: Callable[..., Bound] | None = None
    check: Callable[[Bound], object] | None = None
    names_node: Callable[[Mapping[str, Any]], str] | None = None
    results: tuple[str, ...] = ("out",)
    result_type: Callable[..., Any] | None = None
    file: str = _derived()  # that it stands in
    origin: Op = _derived()  # whose nodes it names otherwise; itself
    plans: PlanCache = _derived()
    is_elementwise: bool = _derived()  # an element of the result depends on one of each operand
    variadic: bool = _derived()
    has_constants: bool = _derived()  # operands that have no gradient
    _residuals: dict[Any, tuple[bool, tuple[str, ...], int, int]] = _derived()

    def __post_init__(self) -> None:
        derived = vars(self)
        derived.update(plans=PlanCache(), _residuals={}, file=importing(), origin=self)
        derived["is_elementwise"] = self.family in ELEMENTWISE
        derived["variadic"] = self.operands[0].startswith("*")
        derived["node_name"] = self.node_name or f"{self.name.title().replace('_', '')}Backward0"
        other = op_table.get(self.name)
        if not self.name.isidentifier() or (other is not None and other.file != self.file):
            raise ValueError(f"op {self.name!r}: the name is not an identifier or is taken")
        rules = (self.vjp,) if callable(self.vjp) else self.vjp
        derived["has_constants"] = NOT_DIFFERENTIABLE in rules
        if not callable(self.vjp) and len(rules) != (1 if self.variadic else len(self.operands)):
            raise ValueError(f"op {self.name}: {len(rules)} rules for operands {self.operands}")
        names = {*self.results, *self.operands, *self.attrs, *SPECIAL_NAMES}
        for rule in rules:
            parameters = rule_parameters(rule)
            unknown = set(parameters).difference(names)
            if unknown:
                unknown.difference_update([f"{operand}_shape" for operand in self.operands])
            if unknown or ("ct" not in parameters and callable(rule)):
                raise ValueError(f"op {self.name}: a rule takes ct and of {sorted(names)}, not {sorted(unknown)}")
        op_table[self.name] = self

    @property
    def formula(self) -> Rule | None:
        """The forward on numbers, for compiled loops: `fx`, `vmath`'s function of the name, or the forward's own."""
        formula = self.fx or getattr(vmath, self.name, None) or getattr(self.forward, "formula", None)
        return formula or (self.forward if isinstance(self.forward, np.ufunc) else None)

    def forward_for(self, layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
        """Return the function that computes the forward from operands of these layouts, with these attributes."""
        if self.prepare_forward:
            return self.prepare_forward(layouts, attrs)
        return functools.partial(self.forward, **attrs) if attrs else self.forward

    def called(self, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Call the op's function, the public one if there is one, as a sample says.

        Several floating results are put into one vector.
        """
        from tapegrad.ops.table.public import TOP, find  # at call time: it imports ops

        function = self.call or getattr(find(TOP, self.name), "function", None) or getattr(xp, self.name)
        out = function(list(operands), **attrs) if self.variadic else function(*operands, **attrs)
        if len(self.results) == 1:
            return out
        floating = [value for value in out if value._layout.floating]
        if len(floating) < 2:
            return floating[0] if floating else out[0]
        return xp.cat([xp.reshape(value, (-1,)) for value in floating])

    def rule(self, operand: int) -> Vjp:
        """Return the rule for the operand with this number."""
        if callable(self.vjp):
            return self.vjp
        return self.vjp[0 if self.variadic else operand]

    def differentiable_in(self, layouts: tuple[Layout, ...]) -> tuple[Layout, ...]:
        """Return the operands' layouts, tracked only where a gradient is wanted and the op has a rule for it."""
        if not self.has_constants:
            return layouts
        return tuple(
            layout.plain if self.rule(operand) is NOT_DIFFERENTIABLE else layout
            for operand, layout in enumerate(layouts)
        )

    def asked(self, wanted: Sequence[bool]) -> set[str]:
        """Return the names that the rules of wanted operands ask for."""
        return {
            name
            for operand, is_wanted in enumerate(wanted)
            if is_wanted
            for name in rule_parameters(self.rule(operand))
        }

    def residuals(self, wanted: tuple[bool, ...]) -> tuple[bool, tuple[str, ...], int, int]:
        """Return the residuals of an entry if gradients of these operands are wanted.

        Returns
        -------
        records : bool
            Whether there is an entry at all.
        saved : tuple of str
            Which operands are saved, and whether the result is.
        save : int
            The same with a bit for each operand and one for the result.
        wanted : int
            A bit for each of the first operands that a gradient is wanted for.
        """
        key = self.vjp, wanted
        residuals = self._residuals.get(key)
        if residuals is None:
            asked, names = self.asked(wanted), (*self.operands, "out")
            saved = tuple(name for name in names if name in asked)
            bits = sum(1 << operand for operand, is_wanted in enumerate(wanted[:62]) if is_wanted)
            residuals = (
                True in wanted, saved, sum(1 << bit for bit, name in enumerate(names) if name in saved),
                bits or int(True in wanted),
            )  # fmt: skip
            if len(wanted) <= _FEW:  # longer tuples could be of any number
                self._residuals[key] = residuals
        return residuals
