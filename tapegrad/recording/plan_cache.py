"""Plans of an op, and the table in which compiled code looks them up."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.recording.keys import (
    KEYWORDS,
    LONGEST_KEY,
    MAX_ARRAYS,
    OP_WORDS,
    SEQUENCE_OF_OPERANDS,
    OpFields,
)
from tapegrad.recording.native import Lazy, as_method, keep_forever, load
from tapegrad.recording.objects import runtime
from tapegrad.recording.plan import Plan
from tapegrad.recording.plan_table import PlanTable
from tapegrad.recording.record import record
from tapegrad.runtime import state
from tapegrad.runtime.locks import module_lock
from tapegrad.tape.layout import FLOAT, INTEGER, Layout, layout_of
from tapegrad.tensor import Tensor

#: Plans of all ops that are remembered in a generation: see `PlanCache.remember`.
MOST_PLANS: Final = 4096
#: Young plans of one op from which on calls that can do without make no more, but for one in 32: see `is_crowded`.
MANY_PLANS: Final = 512
#: Classes of the values that operators of tensors take.
OPERANDS: Final = (Tensor, np.ndarray, np.generic, int, float, complex)
_caches: Final[weakref.WeakSet[PlanCache]] = weakref.WeakSet()
_counts = {"young": 0}
_get = dict.get
_lock = module_lock()  # a collection in the middle may run a finalizer that computes


def as_operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as an operator: it leaves values of other classes to their own, such as ``__radd__``."""

    def call(*operands: Any) -> Any:
        for value in operands:
            if not isinstance(value, OPERANDS):
                return NotImplemented
        return function(*operands)

    call.__doc__ = function.__doc__
    return call


class PlanCache(dict[Any, Plan]):
    """The plans of an op by layouts and attributes, and the compiled function that looks them up.

    The dictionary holds the young generation of plans.

    Attributes
    ----------
    call : callable
        Computes and records the op on operands that stand in the table, and calls the fallback on others.
    operators : dict
        Methods of Tensor that are the op, and whether they take its operands in reverse. They become compiled code like
        `call`: a Python function between takes 75 ns.
    n_operands, flags : int
        As given to `connect`.
    """

    def __init__(self) -> None:
        self._old: dict[Any, Plan] = {}
        self._table: PlanTable | None = None  # made when `call` is first used: most ops of a program are not
        self.n_operands = self.flags = 0
        self._left_out = 0  # calls that made no plan
        self.operators: dict[str, Callable[..., Any] | None] = {}  # for __rsub__ its function, for __sub__ None
        self._made_table: Callable[[], PlanTable]
        self.call: Callable[..., Tensor]  # of several results, their named tuple

    def connect(
        self, name: str, n_operands: int, fallback: Callable[..., Any], n_arguments: int = 0, flags: int = 0
    ) -> None:
        """Define `call`; the code is loaded, or compiled, when it is first called.

        Parameters
        ----------
        name : str
        n_operands : int
            How many of the arguments are operands; the first alone where it is a sequence of them.
        fallback : callable
            Takes the same arguments.
        n_arguments : int
            The most arguments besides that compiled code looks at.
        flags : int
            See `tapegrad.recording.keys`.
        """
        self.n_operands, self.flags = n_operands, flags

        def table() -> PlanTable:
            with _lock:
                if self._table is None:
                    reflected = next(filter(None, self.operators.values()), None)
                    operator = as_operator(fallback) if n_operands == 2 else None
                    self._table = PlanTable(name, n_operands, n_arguments, fallback, reflected, flags, operator, self)
                    keep_forever(self)
                return self._table

        def first_call(*operands: Any, **arguments: Any) -> Tensor:
            doc = f"tapegrad.{name} as an operator"
            self.call, forward, reverse = (load(record, words, name, doc) for words in table().op_words)
            for method, function in self.operators.items():
                setattr(Tensor, method, as_method(reverse if function else forward))
            result: Tensor = self.call(*operands, **arguments)
            return result

        self.call, self._made_table = first_call, table

        _caches.add(self)

    def op_words(self) -> np.ndarray:
        """Return the words of the op for compiled code, which stay where they are."""
        words: np.ndarray = self._made_table().op_words[0]
        return words

    __hash__ = object.__hash__  # type: ignore[assignment]

    def remember(self, key: Any, plan: Plan) -> None:
        """Keep a plan.

        When there are `MOST_PLANS` young plans of all ops, they become the old ones, and the old ones are forgotten.
        Plans that are still in use are found among the old ones and become young again.
        """
        with _lock:
            if _counts["young"] >= MOST_PLANS:
                _counts["young"] = 0
                for cache in list(_caches):
                    cache._age()
            _counts["young"] += 1
            self[key] = plan

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the plan for a key."""
        plan = _get(self, key)
        if plan is None and self._old:
            plan = self._old.get(key)
            if plan is not None:
                self.remember(key, plan)
        return plan if plan is not None else default

    def is_crowded(self) -> bool:
        """Whether a call that can do without had better make no plan.

        A loop over thousands of indices would make plans in vain, as the first are forgotten before they are used
        again. Few calls make one all the same, so that what is called often becomes known.
        """
        if len(self) < MANY_PLANS:
            return False
        self._left_out += 1
        return self._left_out % 32 != 0

    def clear(self) -> None:
        """Forget all plans."""
        self._age()
        self._old = {}

    def _age(self) -> None:
        with _lock:
            if self or self._old:
                self._old = dict(self)
                super().clear()
                if self._table is not None:
                    self._table.clear()

    def insert(
        self,
        plan: Plan,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        operands: Sequence[Tensor],
        index_arrays: Sequence[np.ndarray] = (),
    ) -> None:
        """Let compiled code find a plan for such calls, if a key can hold everything that they depend on.

        Parameters
        ----------
        plan : Plan
        args, kwargs
            Of the call.
        operands, index_arrays
            What they became.
        """
        if self._table is None:
            return  # `call` was not used yet, which makes the table
        key = _Key()
        values = list(args[: self.n_operands])
        if self.flags & SEQUENCE_OF_OPERANDS:
            if not values or values[0].__class__ not in (list, tuple):
                return
            values = list(values[0])
            if len(values) > LONGEST_KEY:
                return
            key.words.append(len(values))
        fits = len(values) == len(operands) and all(map(key.add_operand, values, operands))
        if not fits or not all(map(key.add_argument, args[self.n_operands :])) or not key.add_keywords(kwargs):
            return
        arrays = [(array.dtype, array.shape) for array in index_arrays]  # of a mask, they may be the places
        if len(key.words) > LONGEST_KEY or key.arrays != arrays or len(arrays) > MAX_ARRAYS:
            return
        floats = sum(1 << place for place, value in enumerate(values)
                     if value.__class__ is int and operands[place]._layout is FLOAT)  # fmt: skip
        with _lock:
            self._table.add([id(plan), plan.address, floats, len(key.words), *key.words], (plan, key.held))


def _clear_all() -> None:
    for cache in list(_caches):
        cache.clear()


def _count_all() -> int:
    return sum(len(cache) + len(cache._old) for cache in list(_caches))


state.register("recording.plan_cache: plans", _count_all, _clear_all)


def _is_plain_of(value: Tensor, operand: Tensor) -> bool:
    """Whether an operand is an instance of a subclass of Tensor, as a plain tensor."""
    return value.__class__ is not Tensor and value._data is operand._data and value._layout is operand._layout


_tuples: Final[dict[Any, Any]] = {}  # those that stand in arguments which are tuples themselves
state.register("recording.plan_cache: tuples in arguments", lambda: len(_tuples), _tuples.clear)


def with_known(argument: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an argument in which tuples are those that keys hold: compiled code knows them by their addresses.

    A call whose argument has other tuples in it goes through Python each time.
    """
    if len(_tuples) > MOST_PLANS:
        _tuples.clear()
    return tuple([_tuples.setdefault(item, item) if item.__class__ is tuple else item for item in argument])


class _Key:
    """A key as `tapegrad.recording.keys` makes it, and the objects whose addresses stand in it."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.held: list[object] = []
        self.arrays: list[tuple[np.dtype, tuple[int, ...]]] = []

    def hold(self, thing: object) -> bool:
        """Append the address of an object that cannot change."""
        self.words.append(id(thing))
        self.held.append(thing)
        return True

    def add_operand(self, value: Any, operand: Tensor) -> bool:
        """Append the layout of an operand; False if it was no tensor, or otherwise not as compiled code takes it."""
        layout: Layout
        if value is operand or (isinstance(value, Tensor) and _is_plain_of(value, operand)):
            layout = operand._layout if modes.is_grad_enabled() else operand._layout.plain
            return self.hold(layout)
        kind, taken = value.__class__, operand._data
        if kind is float or kind is int:
            return operand._layout.weak and self.hold(FLOAT if kind is float else INTEGER)
        if kind is np.float64 or (kind is np.ndarray and value.flags.aligned):
            return taken is value and self.hold(layout_of(value))
        return False

    def add_argument(self, argument: Any) -> bool:
        """Append an argument; False if it can change, or is of a type that compiled code does not know."""
        if argument.__class__ is not tuple:
            return self._add_item(argument)
        self.hold(tuple)
        self.words.append(len(argument))
        return all(map(self._add_item, argument))

    def _add_item(self, item: Any) -> bool:
        if item.__class__ is slice:
            parts = (item.start, item.stop, item.step)
            return self.hold(slice) and all(part is None or part.__class__ is int for part in parts) and all(
                map(self._add_word, parts))  # fmt: skip
        if item.__class__ is tuple:
            return _tuples.get(item) is item and self.hold(item)
        if isinstance(item, (Tensor, np.ndarray)):
            return self._add_array(item._data if isinstance(item, Tensor) else item)
        return self._add_word(item)

    def _add_word(self, item: Any) -> bool:
        kind = item.__class__
        if kind is int and -(1 << 62) <= item < 1 << 62:
            self.words.append(2 * item + 1)
            return True
        if kind is float:
            self.words += id(float), int(np.float64(item).view(np.int64))
            return True
        constant = item is None or item is Ellipsis or isinstance(item, (int, str, np.dtype, type))
        return constant and self.hold(item)

    def _add_array(self, array: Any) -> bool:
        if array.__class__ is not np.ndarray or array.dtype.kind not in "ib" or not array.flags.c_contiguous:
            return False
        self.hold(np.ndarray)
        self.hold(array.dtype)
        self.words += array.ndim, *array.shape
        self.arrays.append((array.dtype, array.shape))
        return True

    def add_keywords(self, keywords: Mapping[str, Any]) -> bool:
        """Append the keyword arguments."""
        if keywords:
            self.words.append(KEYWORDS)
        return all(self.hold(name) and self.add_argument(value) for name, value in keywords.items())


def _load_finish() -> Callable[..., Tensor]:
    words = np.zeros(OP_WORDS, dtype=np.int64)
    words[OpFields.word("runtime")] = runtime().ctypes.data
    return load(record, words)


#: ``compiled.finish(plan, out, *operands, *index_arrays)`` returns the result of an op as a tensor, recorded where its
#: plan says so.
compiled: Final = Lazy[Tensor](finish=_load_finish)
