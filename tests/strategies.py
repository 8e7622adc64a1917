"""Hypothesis strategies that draw whole programs from the op table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad.ops.table.op import NotYet, Op, op_table, xp
from tapegrad.testing.operands import draw
from tapegrad.testing.strategies import MOVES
from tests.checks import Problem, check_layout, leaf

SHAPES: list[tuple[int, ...]] = [(), (1,), (3,), (2, 3), (3, 1), (1, 3), (2, 1, 3), (2, 2), (4, 3), (17,), (0, 3)]
NUMBERS = (2, -1, 0.5, -1.5, 3.0)
LARGEST = 30.0  # values beyond are squashed before they go on, so that rounding errors stay small
# Conversions stand where dtypes must agree; drawn freely they would only make rounding errors.
NOT_DRAWN = {
    "lstm_steps", "gru_steps", "rnn_tanh_steps", "rnn_relu_steps",  # their operands belong together
    "cast", "index_scatter_add", "strided_part", "strided_put", "any", "all", "argmax", "argmin", "conj", "imag",
    "take_along", "put_along", "class_loss", "class_margins", "prod", "cumsum", "im2col", "col2im", "conv2d",
    "conv2d_biased", "conv2d_transposed", "conv2d_kernels", "inv", "solve", "eigh",
    "resampled", "pooled", "resized", "fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn",
    # They jump, or have a kink where operands are equal, or have no slope at a width of 0; `lerp` takes one dtype.
    "floor", "ceil", "trunc", "frac", "round", "remainder", "fmod", "floor_divide", "trunc_divide", "heaviside",
    "nextafter", "copysign", "fmax", "fmin", "nan_to_num", "lerp", "threshold", "hardshrink", "softshrink",
    "signbit", "sign", "isreal", "voigt_profile", "voigt_slope", "voigt_dispersion",
    # They are wild, or their operands are targets, probabilities, indices, or rows of a certain length.
    "gamma", "lgamma", "digamma", "polygamma", "zeta", "beta", "betaln", "gammainc", "gammaincc", "betainc", "erfinv",
    "ndtri", "y0", "y1", "k0", "k1", "k0e", "k1e", "i0", "i1", "bessel_j2", "bessel_i2", "bessel_i2e", "entr", "xlogy",
    "kv", "kve", "kv_slope", "kve_slope",
    "root", "gammaincinv", "gammainccinv", "betaincinv", "erfcinv", "stdtrit", "l1_loss", "huber_loss",
    "affine", "bce_with_logits", "binary_cross_entropy", "cosine_embedding", "floor_at", "gaussian_nll", "hinge",
    "hinge_embedding", "kl_div", "kl_div_of_logs", "poisson_nll", "poisson_nll_of_rates", "soft_margin", "cross",
    "euclidean_distances", "matrix_exp", "gather", "scatter", "scatter_add", "scatter_reduce", "strided_sum",
    "recurrence", "standardize", "complex", "view_as_complex", "view_as_real", "frexp", "vector_norm",
    # They choose, as sort does, among elements that may be equal.
    "cummax", "cummin", "kthvalue", "median_along", "median_of_all", "mode", "nanmedian_along", "topk",
}  # fmt: skip


def constrained() -> set[str]:
    """Return the ops whose operands must be what values of a program are not, e.g. invertible, or constants."""
    return {
        op.name
        for op in op_table.values()
        if any(isinstance(op.rule(number), NotYet) for number in range(len(op.operands)))
        or any(callable(value) for sample in op.samples for value in sample.values or ())
    }


@dataclass(frozen=True)
class Ref:
    """The value with this number: first the inputs, then a result a step."""

    number: int


@dataclass
class Program:
    """Steps, each an op's name, operands and attributes; the result is what no later step uses."""

    inputs: list[np.ndarray]
    steps: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    result: int = 0

    def run(self, inputs: Sequence[Any], apply: Callable[..., Any], values: list[Any] | None = None) -> Any:
        """Compute the result with `apply(name, operands, attrs)`, and append all values on the way to a list."""
        values = [] if values is None else values
        values += inputs
        for name, operands, attrs in self.steps:
            given = [values[own.number] if isinstance(own, Ref) else own for own in operands]
            values.append(apply(name, given, attrs))
        return values[self.result]

    def problem(self, dtype: Any = None) -> Problem:
        """Return the program on tapegrad, with inputs (and all conversions to floating dtypes) of one dtype."""

        def apply(name: str, operands: list[Any], attrs: dict[str, Any]) -> tg.Tensor:
            attrs = attrs | {"dtype": np.dtype(dtype)} if dtype is not None and name == "cast" else attrs
            out = on_tapegrad(name, operands, attrs)
            check_layout(out)
            return out

        inputs = tuple(own if dtype is None else own.astype(dtype) for own in self.inputs)
        return Problem(lambda *tensors: self.run(tensors, apply), inputs, tuple(range(len(inputs))))

    def __repr__(self) -> str:
        lines = [f"v{number} = {own!r}".replace("array", "np.array") for number, own in enumerate(self.inputs)]
        for number, (name, operands, attrs) in enumerate(self.steps, len(self.inputs)):
            given = ", ".join(f"v{own.number}" if isinstance(own, Ref) else repr(own) for own in operands)
            given = f"[{given}]" if op_table[name].variadic else given
            named = "".join(f", {key}={value!r}" for key, value in attrs.items())
            lines.append(f"v{number} = {name}({given}{named})")
        return "\n" + "\n".join([*lines, f"result: v{self.result}"])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # what hypothesis shows


def on_tapegrad(name: str, operands: Sequence[Any], attrs: dict[str, Any]) -> tg.Tensor:
    """Apply a step with tapegrad."""
    return xp.cast(*operands, **attrs) if name == "cast" else op_table[name].called(operands, attrs)


class Writer:
    """Writes a program: appends steps, and knows each value that they compute."""

    def __init__(self, choose: Callable[[st.SearchStrategy[Any]], Any], inputs: list[np.ndarray], seed: int) -> None:
        self.choose, self.rng = choose, np.random.default_rng(seed)
        self.program = Program(inputs)
        self.values = list(inputs)
        self.used: set[int] = set()
        self.tracked = set(range(len(inputs)))  # what depends on the inputs

    def step(self, name: str, *operands: Any, **attrs: Any) -> Ref:
        """Append a step."""
        given = [leaf(self.values[own.number], False) if isinstance(own, Ref) else own for own in operands]
        with np.errstate(all="ignore"):
            out = on_tapegrad(name, given, attrs)
        self.used.update(own.number for own in operands if isinstance(own, Ref))
        self.program.steps.append((name, tuple(operands), attrs))
        self.values.append(np.asarray(out.numpy()))
        number = len(self.values) - 1
        known = [callable(op_table[name].rule(place)) and own.number in self.tracked
                 for place, own in enumerate(operands) if isinstance(own, Ref)]  # fmt: skip
        if self.values[number].dtype.kind == "f" and any(known):
            self.tracked.add(number)
        return Ref(number)

    def any_of(self, suits: Callable[[np.ndarray], bool]) -> Ref | None:
        """Choose one of the values that suit; half the time one that nothing uses, so that programs get deep."""
        found = [number for number, own in enumerate(self.values) if suits(own)]
        unused = [number for number in found if number not in self.used]
        found = unused if unused and self.choose(st.booleans()) else found
        return Ref(self.choose(st.sampled_from(found[::-1]))) if found else None

    def value(self, ref: Ref) -> np.ndarray:
        return self.values[ref.number]

    def within(self, ref: Ref, domain: tuple[float, float]) -> Ref:
        """Return a value of the domain of a function: this one, or a smooth function of it."""
        own = self.value(ref)
        low, high = domain if domain != (-3.0, 3.0) else (-LARGEST, LARGEST)
        if own.size == 0 or (own.min() >= low and own.max() <= high):
            return ref
        low, high = domain
        if np.abs(own).max() > LARGEST:  # so far from 0 the slope of the sigmoid is 0 too
            ref = self.step("div", ref, float(np.abs(own).max()))
        return self.step("add", self.step("mul", self.step("sigmoid", ref), high - low), low)

    def fitted(self, shape: tuple[int, ...]) -> Ref:
        """Return a value of a shape: one that there is, or elements of another put together."""
        ref = self.any_of(lambda own: own.shape == shape and own.dtype.kind == "f")
        if ref is not None and self.choose(st.integers(0, 3)):
            return ref
        ref = self.any_of(lambda own: own.size > 0 and own.dtype.kind == "f")
        flat = self.step("reshape", ref, shape=(-1,))
        count = int(np.prod(shape, dtype=np.int64))
        places = (self.rng.integers(0, 5) + np.arange(count)) % self.value(flat).size
        return self.step("index_gather", flat, key=places.reshape(shape))

    # --- operands and attributes, by the family of the op ---------------------------------------------------------

    def write(self, op: Op) -> None:
        """Append a step of an op, and what its operands need before it; nothing if the result is not finite."""
        steps, values, used = len(self.program.steps), len(self.values), set(self.used)
        self.write_any(op)
        if not all(np.isfinite(own).all() for own in self.values[values:]):
            del self.program.steps[steps:], self.values[values:]
            self.used, self.tracked = used, self.tracked & set(range(values))

    def write_any(self, op: Op) -> None:
        if op.family in ("unary", "binary", "elementwise"):
            self.write_elementwise(op)
        elif op.family == "reduction":
            ref = self.any_of(lambda own: own.dtype.kind == "f" and own.size > 0)
            self.step(op.name, self.within(ref, op.domain), **self.dims(op, self.value(ref).ndim))
        else:
            self.write_sample(op)

    def write_elementwise(self, op: Op) -> None:
        sample = self.choose(st.sampled_from(op.samples))
        shape: tuple[int, ...] = ()
        operands: list[Any] = []
        refuses_numbers = getattr(op.check_dtypes, "refuses_numbers", False)
        kinds_after_first = "f" if op.name == "sub" else "fb"  # of bools there are no differences
        for number in range(len(op.operands)):
            given = sample.values[number] if sample.values else None
            first = not any(isinstance(own, Ref) for own in operands)
            way = "value" if first else self.choose(st.sampled_from(("value", "value", "value", "number", "array")))
            mask = isinstance(given, np.ndarray) and given.dtype == bool
            ref = self.any_of(
                lambda own, shape=shape, kinds="b" if mask else "f" if first else kinds_after_first: (
                    own.dtype.kind in kinds and fits(own.shape, shape) is not None
                )
            )
            if mask and (ref is None or way != "value"):
                like = shape or self.choose(st.sampled_from(SHAPES[:4]))
                operands.append(np.array(self.rng.random(like) < 0.5))
            elif isinstance(given, float):
                operands.append(given)
            elif (way == "number" or ref is None) and not refuses_numbers:
                low, high = op.domain
                operands.append(self.choose(st.sampled_from([own for own in NUMBERS if low <= own <= high])))
            elif way in ("array", "number") or ref is None:
                operands.append(draw(self.choose(st.sampled_from([(), (1,), shape])), op.domain, float, self.rng))
            else:
                operands.append(self.within(ref, op.domain) if self.value(ref).dtype.kind == "f" else ref)
            own = operands[-1]
            shape = np.broadcast_shapes(shape, self.value(own).shape if isinstance(own, Ref) else np.shape(own))
        self.step(op.name, *operands)

    def dims(self, op: Op, ndim: int) -> dict[str, Any]:
        """Return the attributes of a reduction: a sample's, for other dimensions."""
        attrs = dict(self.choose(st.sampled_from(op.samples)).attrs)
        if "dim" in attrs:
            dim = st.integers(-ndim, ndim - 1) if ndim else st.sampled_from([0, -1])
            if isinstance(attrs["dim"], tuple) and ndim:
                dim = st.lists(st.integers(0, ndim - 1), unique=True, min_size=1).map(tuple)
            attrs["dim"] = self.choose(dim)
        return attrs

    def write_sample(self, op: Op) -> None:
        """Append a step with the shapes and attributes of a sample, or with free attributes where they are known."""
        if op.name in MOVES and self.choose(st.booleans()):
            ref = self.any_of(lambda own: own.dtype.kind == "f" and own.ndim > 0)
            if ref is not None:
                self.step(op.name, ref, **self.choose(MOVES[op.name](self.value(ref).shape)))
                return
        sample = self.choose(st.sampled_from(op.samples))
        operands = []
        for number, shape in enumerate(sample.shapes):
            given = sample.values[number] if sample.values else None
            ref = self.fitted(shape if given is None else np.shape(given))
            if isinstance(given, np.ndarray) and given.dtype.kind == "f":  # a point that only small steps may leave
                ref = self.step("add", self.step("mul", self.within(ref, (-1.0, 1.0)), 0.01), given)
            operands.append(self.within(ref, op.domain) if given is None or given.dtype.kind == "f" else given)
        if op.family == "linalg" and len({self.value(own).dtype for own in operands}) > 1:
            operands = [self.step("cast", own, dtype=np.dtype(float)) for own in operands]
        self.step(op.name, *operands, **sample.attrs)

    def finish(self) -> Program:
        """Join all values that nothing uses; one of them depends on the inputs."""
        ends = [number for number, own in enumerate(self.values) if number not in self.used and own.dtype.kind == "f"]
        if not self.tracked.intersection(ends):
            ends.append(max(self.tracked))
        refs = [Ref(number) for number in ends]
        if len(refs) > 1:
            refs = [self.step("cat", *(self.step("reshape", own, shape=(-1,)) for own in refs), dim=0)]
        self.program.result = refs[0].number
        return self.program


def fits(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape that two shapes broadcast to, None if they do not."""
    try:
        return np.broadcast_shapes(one, other)
    except ValueError:
        return None


@st.composite
def programs(
    draw_one: Any, only: Sequence[str] | None = None, dtypes: Sequence[str] = ("float64", "float32")
) -> Program:
    """Draw a program of up to 12 rows and what their operands need before them.

    Parameters
    ----------
    only : sequence of str, optional
        Names of rows to draw from.
    dtypes : sequence of str
        Of the inputs.
    """
    known = {name for name, op in op_table.items() if op.file}  # others are of tests
    names = sorted((known if only is None else known & set(only)) - NOT_DRAWN - constrained())
    seed = draw_one(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    shapes = draw_one(st.lists(st.sampled_from(SHAPES[:-1]), min_size=1, max_size=3))
    inputs = [draw(shape, (-2.0, 2.0), draw_one(st.sampled_from(dtypes)), rng) for shape in shapes]
    writer = Writer(draw_one, inputs, seed)
    for name in draw_one(st.lists(st.sampled_from(names), min_size=1, max_size=12)):
        writer.write(op_table[name])
    return writer.finish()
