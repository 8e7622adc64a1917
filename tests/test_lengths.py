"""Lengths that stand for others: what is worked out for all of them is what is worked out for each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.forward import templates
from tapegrad.forward.prepared import prepared
from tapegrad.kernels import indexed
from tapegrad.ops.table.op import op_table, xp
from tapegrad.recording import plan
from tapegrad.recording.steps import kernel_calls
from tapegrad.runtime import state
from tapegrad.tape.conditions import Conditions, text
from tapegrad.tape.entries import PLAN_OBJECT
from tapegrad.tape.kinds import Kind, Templates
from tapegrad.tape.layout import layout_of
from tapegrad.tape.lengths import NotGeneralError, Trace, applied
from tests.tiers import mostly_full


def worked_out(function: Callable[..., Any], *first: int, attrs: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """Return what a function of lengths becomes, when it was worked out with these."""
    trace = Trace()
    values = [trace.length(value) for value in first]
    found = trace.function(function(*values, **({} if attrs is None else {"attrs": trace.attributes(attrs)})))
    return lambda *others, attrs=attrs: as_lists(found(others, attrs or {}))


def as_lists(found: Any) -> Any:
    """Return what was found with lists in place of arrays."""
    if isinstance(found, tuple):
        return tuple(map(as_lists, found))
    return found.tolist() if isinstance(found, np.ndarray) else found


@pytest.mark.parametrize(
    ("function", "conditional"),
    [
        (lambda n, m: [n + m, n - m, n * m, 2 * n - 3, 3 - m, -n], False),
        (lambda n, m: (n * m * 8 // m, 8 * n % 4, n * 0), True),
        (lambda n, m: [n // 7, -(-n // 64), n % 5, 1000 // m, 1000 % m], True),
        (lambda n, m: n if n > m else m, True),
        (lambda n, m: [max(n, m), min(n, 4), n >= m, n <= 3, n < m], True),
        (lambda n, m: n == m or n in (1, 2), True),
        (lambda n, m: (n or 5) + (2 if m else 3), True),
        (lambda n, m: list(range(n)), True),
        (lambda n, m: applied(lambda a, b: a**b, n, m), False),
        (lambda n, m: (n // m if m else 0, (n, (m, 1)), "words"), True),
    ],
)
def test_functions_of_lengths(function: Callable[..., Any], conditional: bool) -> None:
    for first in [(3, 2), (1, 1), (5, 8), (0, 4), (4, 0)]:
        try:
            found = worked_out(function, *first)
        except ZeroDivisionError:
            continue
        assert found(*first) == function(*first)
        answers = 0
        for n in range(9):
            for m in range(9):
                result = found(n, m)
                assert result is None or result == function(n, m)
                answers += result is not None
        assert answers == 81 or (conditional and answers > 0)


def test_differences_that_are_known_are_no_conditions() -> None:
    found = worked_out(lambda n, m: (n * 8 == 8 * n, n + m > n + m - 1, (n * m * 8) // (m * 8) == n), 3, 2)
    assert found(100, 7) == (True, True, True)
    assert found(100, 0) is None  # what was divided by must not be 0


def test_attributes_that_were_read_are_conditions() -> None:
    found = worked_out(lambda n, attrs: n + attrs["dim"], 3, attrs={"dim": 1, "size": 3})
    assert found(5, attrs={"dim": 1, "size": 5}) == 6
    assert found(5, attrs={"dim": 0, "size": 5}) is None
    every = worked_out(lambda n, attrs: [n, *dict(**attrs).values()], 3, attrs={"dim": 1, "size": 3})
    assert every(5, attrs={"dim": 1, "size": 3}) == [5, 1, 3]
    assert every(5, attrs={"dim": 1, "size": 5}) is None


@pytest.mark.parametrize("first", [None, np.dtype(np.float64)])
def test_no_dtype_is_none(first: np.dtype | None) -> None:
    """np.dtype(np.float64) == None."""
    found = worked_out(lambda n, attrs: (n, attrs["dtype"]), 3, attrs={"dtype": first})
    assert found(5, attrs={"dtype": first}) == (5, first)
    assert found(5, attrs={"dtype": None if first else np.dtype(np.float64)}) is None


def test_a_sum_in_double_precision_at_a_new_length() -> None:
    for length in range(2, 9):
        assert tg.ones((length, 3), dtype=tg.float32).sum(0).dtype == tg.float32
    assert tg.ones((9, 3), dtype=tg.float32).sum(0, dtype=tg.float64).dtype == tg.float64


@pytest.mark.parametrize("dim", [0, 1])
def test_means_of_many_at_new_lengths(dim: int) -> None:
    """Long results are written by several threads, and cut by their own lengths."""
    for length in (60_000, 70_000, 80_000, 90_000):
        shape = (length, 3) if dim else (3, length)
        assert np.array_equal(tg.ones(shape).mean(dim), np.ones(length))


def test_what_numpy_is_given_is_a_condition() -> None:
    found = worked_out(lambda n: np.empty((n, 2)).nbytes, 3)
    assert found(3) == 48
    assert found(4) is None


@pytest.mark.parametrize("function", [lambda n: {n: 1}, lambda n: 1 / n, lambda n: n / 2])
def test_what_cannot_be_followed_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(NotGeneralError):
        worked_out(function, 3)


class _WithSlots:
    __slots__ = ("shape_of_it",)


class _WithNames:
    pass


@pytest.mark.parametrize("kind", [_WithSlots, _WithNames])
@pytest.mark.parametrize("kept", [lambda n: n, lambda n: (2, n)])
def test_objects_that_keep_lengths_are_refused(kind: type, kept: Callable[[Any], Any]) -> None:
    """Else who calls such an object later is told of it, by an error."""

    def function(n: Any) -> Any:
        own = kind()
        own.shape_of_it = kept(n)
        return own

    with pytest.raises(NotGeneralError):
        worked_out(function, 3)
    assert isinstance(worked_out(lambda n: (n + 1, kind()), 3)(5)[1], kind)


def test_a_length_that_is_kept_is_refused() -> None:
    kept: list[Any] = []
    worked_out(lambda n: kept.append(n) or n, 3)
    with pytest.raises(NotGeneralError):
        np.empty(kept[0])


def test_templates_are_bounded_and_learn_a_few_times() -> None:
    own, gave_up = Templates("tests: lengths"), Kind._FIRST + Kind._ATTEMPTS
    attempts: list[Trace] = []

    def work_out(trace: Trace) -> Any:
        attempts.append(trace)
        return int(trace.length(len(attempts)))  # a condition that no other length meets

    for met in range(100):
        assert own.kind("kind").learns == (met < gave_up)
        own.kind("kind").learn(work_out)
    assert len(attempts) == Kind._ATTEMPTS
    for number in range(3 * Templates._KINDS):
        own.kind(number).learn(work_out)
    assert state.sizes()["tests: lengths"] <= Templates._KINDS
    del state._caches["tests: lengths"]


# Plans ---------------------------------------------------------------------------------------------------------------

_rng = np.random.default_rng(0)


def _new(*shape: int, dtype: str = "float64") -> tg.Tensor:
    return tg.from_numpy(_rng.uniform(0.5, 2, shape).astype(dtype)).requires_grad_()


def _written(x: tg.Tensor, index: np.ndarray, value: tg.Tensor) -> tg.Tensor:
    x[index] = value
    return x


PROGRAMS: dict[str, Callable[[int], tg.Tensor]] = {
    "sin": lambda n: tg.sin(_new(n)),
    "float32": lambda n: tg.exp(_new(n, 2, dtype="float32")) * 2.0,
    "complex": lambda n: (_new(n).to("complex128") * (1 + 2j)).abs(),
    "mul": lambda n: _new(n, 3) * _new(n, 3),
    "rows": lambda n: _new(n, 3) + _new(3),
    "columns": lambda n: _new(3, n) * _new(3, 1),
    "outer": lambda n: _new(n, 1) * _new(1, 4),
    "transposed": lambda n: _new(n, 3).T * _new(3, n),
    "pow": lambda n: _new(n) ** 2 + _new(n) ** 3 + 2.0 ** _new(n),
    "where": lambda n: tg.where(_rng.random(n) > 0.5, _new(n), _new(n)),
    "sum": lambda n: _new(n, 2).sum() + _new(n, 4).sum(0).sum() + _new(3, n).sum(0).sum() + _new(2, n, 3).sum((0, 2)),
    "mean": lambda n: _new(n, 2).mean() + _new(n, 4).mean(0).sum() + _new(n, 3, dtype="float32").mean(1).sum(),
    "amax": lambda n: _new(n, 3).amax(1) + _new(n, 3).max(1).values,
    "softmax": lambda n: tg.softmax(_new(n, 3), 1) + tg.log_softmax(_new(n, 3), 0),
    "logsumexp": lambda n: tg.logsumexp(_new(n, 3), 0).sum() + tg.var(_new(n, 3)),
    "cumsum": lambda n: tg.cumsum(_new(n, 2), 0),
    "matmul": lambda n: _new(n, 3) @ _new(3, 4),
    "matvec": lambda n: _new(3, n) @ _new(n),
    "dot": lambda n: _new(n) @ _new(n),
    "batch": lambda n: _new(n, 2, 3) @ _new(3, 2) + _new(n, 2, 3) @ _new(n, 3, 2),
    "transposed matmul": lambda n: _new(3, n).T @ _new(4, 3).T,
    "slices": lambda n: _new(n)[1:].sum() + _new(n, 3)[:, 1].sum() + _new(2 * n)[::-2].sum() + _new(n)[: n // 2].sum(),
    "part of a view": lambda n: _new(n, 4)[:, 1:][1:],
    "reshape": lambda n: _new(n, 6).reshape(-1, 3) * _new(2 * n, 3),
    "copies": lambda n: _new(n, 4).T.reshape(-1) * _new(4 * n).clone(),
    "movements": lambda n: _new(n, 3).transpose(0, 1)[None].unsqueeze(2).squeeze(0) + tg.flip(_new(3, 1, n), (0,)),
    "expand": lambda n: _new(1, 3).expand(n, 3).sum() + _new(n, 1).expand(n, 3).sum(),
    "stack": lambda n: tg.cat([tg.stack([_new(n), _new(n)]), _new(3, n)]),
    "cat": lambda n: tg.cat([_new(2, n), _new(2, 3)], 1),
    "index": lambda n: _new(n, 2)[np.arange(n)[::2].copy()],
    "indices": lambda n: _new(n, 5)[np.arange(n), np.arange(n) % 5] + _new(3, n)[2:, np.arange(n)].sum(),
    "index of columns": lambda n: _new(n, 4)[:, np.array([2, 0, 2])] + _new(n, 5)[:, None, np.array([0])].sum(),
    "index of slices": lambda n: (
        _new(2 * n, 4)[1::2, np.array([3, 1])].sum() + _new(n, 4)[::-1, np.array([3, 1])].sum()
        + _new(n, 7, 2)[n // 2 :, np.array([1])].sum() + _new(4, n, 2)[np.array([1]), 1:-1].sum()
    ),
    "write at indices": lambda n: _written(_new(n, 2) * 2, np.arange(n)[::2].copy(), _new((n + 1) // 2, 2)),
    "write at an index": lambda n: _written(_new(n) * 2, np.arange(n // 2), _new(1)[0]),
    "sort": lambda n: tg.sort(_new(n, 3), 0).values + _new(n, 3).max(0).values + _new(n, 3).min(1, True).values,
    "diagonal": lambda n: tg.diagonal(_new(n, n)),
    "cross_entropy": lambda n: tg.nn.functional.cross_entropy(_new(n, 3), _rng.integers(0, 3, n)),
}  # fmt: skip
LENGTHS = [2, 3, 4, 5, 6, 8, 9, 11, 30, 62, 64, 65, 128, 129, 200, 257, 1, 7, 2100, 2200, 2300, 9000, 9001, 9002]


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("index_gather", lambda n: _new(n)[np.arange(n - 1)]),
        ("index_gather", lambda n: _new(n, 5)[np.arange(n), np.arange(n) % 5]),
        ("index_gather", lambda n: _new(n, 5)[:, np.array([2, 0])]),
        ("index_gather", lambda n: _new(n, 5)[1:, np.array([2, 0])]),
        ("index_replace", lambda n: _written(_new(n, 5) * 1, np.arange(n - 1), _new(n - 1, 1))),
        ("max_along", lambda n: _new(n, 3).max(0).values),
        ("sort", lambda n: tg.sort(_new(n, 3), 0).values),
    ],
)
def test_steps_at_indices_are_worked_out_once(
    op: str, function: Callable[[int], tg.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    state.reset()
    for n in range(5, 10):
        function(n).sum().backward()
    worked_out = plan.kernel_calls

    def not_this(made: plan.Plan, *args: Any) -> Any:
        assert made.op.name != op
        return worked_out(made, *args)

    monkeypatch.setattr(plan, "kernel_calls", not_this)
    for n in range(20, 40):
        function(n).sum().backward()


@pytest.mark.parametrize("name", mostly_full(PROGRAMS, set(PROGRAMS) - {"diagonal"}))
def test_plans_of_all_lengths_are_those_of_each(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of each plan are held against those that are made from its parts."""
    general = [0, 0]
    take, find = plan.Plan._take, templates.find

    def checked_take(self: plan.Plan, calls: Any, block: np.ndarray, address: int) -> None:
        parts = kernel_calls(self, plan.CALLS, plan.FUSED, self._first_words() if block is self._words else ())
        if block is self._words:
            general[0] += 1
            parts = plan.in_one_array(parts)
        assert list(calls.words) == parts.words, (self.name, self.layouts)
        for field in ("addresses", "sources", "elements", "multiple", "python_operands"):
            assert getattr(calls, field) == getattr(parts, field), (self.name, self.layouts, field)
        assert [call[:2] for call in calls.calls] == [call[:2] for call in parts.calls]
        assert [call.kernel() for call in calls.calls] == [call.kernel() for call in parts.calls]
        take(self, calls, block, address)

    def checked_find(kind: Any, layouts: Any, attrs: Any) -> Any:
        found = find(kind, layouts, attrs)
        if found is not None:
            general[1] += 1
            op = next((op for op in op_table.values() if op.plans is kind.key[0]), None)
            if op is None or op.name == "class_loss":  # another name of an op's nodes; takes an index array too
                return found
            operands = [1.0 if own.weak else np.ones(own.shape, own.dtype) for own in layouts]
            forward = op.forward_for(layouts, attrs)
            parts = prepared(forward, layouts, layout_of(forward(*operands)))
            assert described(found) == described(parts), (op.name, layouts)
        return found

    monkeypatch.setattr(plan.Plan, "_take", checked_take)
    monkeypatch.setattr(templates, "find", checked_find)
    state.reset()
    for n in [*LENGTHS, *LENGTHS[:3]]:
        out = PROGRAMS[name](n)
        out.sum().backward()
    assert general[0]


def described(forward: Any) -> Any:
    """Return what a forward does: its words, but for addresses of what is its own."""
    if getattr(forward, "__closure__", None):
        return [forward.__code__, *(described(cell.cell_contents) for cell in forward.__closure__)]
    words = getattr(forward, "__self__", None)
    if not isinstance(words, np.ndarray):
        return forward
    kept = [part for whole in words.kept for part in (whole if isinstance(whole, tuple) else [whole])]
    own = {id(part) for part in (*words.kept, *kept) if callable(part) or isinstance(part, tuple)}
    others = [word for word in words.tolist() if word not in own and abs(word - words.ctypes.data) > 8 * words.size]
    return others + [described(part) for part in kept if isinstance(getattr(part, "__self__", None), np.ndarray)]


def test_lengths_are_shown_as_polynomials() -> None:
    trace = Trace()
    n, m = trace.length(2), trace.length(3)
    assert repr(2 * n * m - m + 5) == "n0*n1*2 + 5 - n1"
    assert repr(-n) == "-n0"


def test_conditions_that_follow_from_others_are_left_out() -> None:
    """Each condition is checked for each new length."""

    def left(*met: tuple[str, dict[tuple[str, ...], int]], **least: int) -> list[str]:
        conditions = Conditions()
        for relation, terms in met:
            conditions.add(terms, relation)
        values = conditions.equations(["n", "m", "k"])
        equations = [f"{name} == {text(value)}" for name, value in values.items()]
        return equations + [condition for _, condition in conditions.texts(values, least)]

    n, m, k, nm = {("n",): 8}, {("m",): 1}, {("k",): 1}, {("m", "n"): 1}
    assert left((">", {**n, (): -8}), ("!=", n), (">=", n), ("!=", {**n, (): -16})) == ["3 <= n"]
    assert left(("!=", n), n=0) == ["1 <= n"]
    assert left(("!=", n), (">=", n), n=1) == []
    assert left(("!=", n), ("!=", {**n, (): -40})) == ["n != 0", "n != 5"]
    assert left(("!=", nm), (">", m), (">", n)) == ["1 <= m", "1 <= n"]
    assert left(("<=", {**nm, (): -30}), ("<", {**n, (): -255}), n=1, m=1) == ["m*n <= 30"]
    assert left(("<=", {**nm, (): -30}), ("<", {**n, (): -255}), n=1) == ["m*n <= 30", "n <= 31"]
    assert left(("==", {("m",): -1, ("n",): 1}), ("!=", n), ("!=", m)) == ["m == n", "n != 0"]
    assert left(("==", {**k, ("m", "n"): -1}), (">", k), n=1, m=1) == ["k == m*n"]
    assert left(("==", {**k, (): -3}), (">", k), ("<", {**k, **n, (): -19})) == ["k == 3", "n <= 1"]


def test_convolutions_in_blocks() -> None:
    """How many places of a kernel make a block depends on what is left over of a number that is no length."""
    for n in range(3, 9):
        image, kernel = _new(1, 256, 64, n), _new(1, 256, 1, 1)
        out = tg.nn.functional.conv2d(image, kernel)
        np.testing.assert_allclose(
            out.detach().numpy()[0, 0], np.einsum("chw,c", image._data[0], kernel._data[0, :, 0, 0])
        )


def test_plans_whose_words_have_no_lengths() -> None:
    """Where no kernel serves, no word of a plan depends on lengths: its words are an array of its own all the same."""
    for n in range(3, 12):
        x = tg.tensor(1.0).expand(n).requires_grad_()
        node: Any = xp.deviations(x)._node
        assert not isinstance(node[PLAN_OBJECT]._words, list)


def test_keys_that_kernels_always_serve() -> None:
    """What is answered for a key alone must be right for arrays of every shape."""
    items = ("array", (None, None, None), (1, None, None), (None, None, -1), (0, 4, 2), Ellipsis, None, "true")
    keys = [key for count in (1, 2, 3) for key in itertools.product(items, repeat=count) if key.count(Ellipsis) < 2]
    served = 0
    for key, ndim in itertools.product(keys, (1, 2, 3)):
        if indexed._always_by_kernel(key, ndim):
            shapes = itertools.product((0, 1, 2, 5), repeat=ndim)
            assert all(indexed._geometry(layout_of(np.zeros(shape)), key, 1) is not None for shape in shapes)
            served += 1
    assert served > 50
    assert indexed._always_by_kernel(((1, None, None), "array"), 2)
