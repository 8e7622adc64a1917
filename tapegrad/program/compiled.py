"""`compile`: a function that is traced when it is first called, and runs as a program from then on."""

from __future__ import annotations

import functools
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from tapegrad import dtypes, modes
from tapegrad.func.trees import flatten, is_row, rebuild
from tapegrad.modes import enable_grad
from tapegrad.pass_modes import is_strong_zero
from tapegrad.program.effects import Count, Counted, Outside, Postponed
from tapegrad.program.entry import Dispatch, make_entry
from tapegrad.program.functional import Functional
from tapegrad.program.given import Given
from tapegrad.program.handed import called, called_in_trace
from tapegrad.program.integers import Integers, NotAnInputError
from tapegrad.program.limits import limited
from tapegrad.program.marked_calls import MarkedCall, is_marking, marked
from tapegrad.program.names import Names
from tapegrad.program.numpy_random import noticed_draws
from tapegrad.program.program import Program
from tapegrad.program.run import Runner
from tapegrad.program.serving import variant_of
from tapegrad.program.signature import signature_of
from tapegrad.program.standing import Place
from tapegrad.program.trace import trace
from tapegrad.program.values import Values
from tapegrad.program.version import Version, is_new_leaf
from tapegrad.runtime.objects import inherit_vectorcall
from tapegrad.tensor import Tensor

if TYPE_CHECKING:
    from tapegrad.program.counting import Counting

#: How many programs a function may have for one signature: one for each way through its branches.
LIMIT: Final = 16
#: For so many values of constants among the arguments a function is traced, of the same kind otherwise.
MOST: Final = 64


class Compiled(functools.partial[Any]):
    """A function that runs as a program; see `compile`.

    It is a partial function of compiled code, without arguments: CPython calls it like a built-in function.

    Examples
    --------
    >>> import tapegrad as tg
    >>> f = tg.compile(lambda x: tg.sum(x**2))
    >>> float(f(tg.tensor([1.0, 2.0]))), isinstance(f, tg.program.Compiled), len(f.programs)
    (5.0, True, 1)
    """

    _dispatch: Dispatch
    _may_count = True  # numbers outside that the function changes are not constants

    def __new__(cls, function: Callable[..., Any], memory: int | None = None) -> Compiled:
        """Return a function that is not traced yet."""
        name = getattr(function, "__name__", "compiled")
        entry, dispatch = make_entry(lambda *args, **kwargs: self._call(args, kwargs), name=name)
        inherit_vectorcall(cls)
        self = super().__new__(cls, entry)
        self._dispatch = dispatch
        return self

    def __init__(self, function: Callable[..., Any], memory: int | None = None) -> None:
        self._limit = memory
        self._name = getattr(function, "__name__", "the function")
        names = functools.WRAPPER_UPDATES if isinstance(function, types.FunctionType) else ()  # not of modules
        functools.update_wrapper(self, function, updated=names)
        self.function = function
        self._marked = MarkedCall()
        _dispatches.update((self._dispatch, self._marked.dispatch))
        self._versions: dict[Any, list[Version] | None] = {}  # None: the function itself is called
        self._constants: dict[Any, int] = {}  # how many values, by all else of a signature
        self._integers = Integers(self._name)
        self._transformed: dict[Any, Compiled] = {}
        self._counting: Counting | None = None  # in place of it, if it counts
        self._changes = 0  # calls since the last trace that changed something else outside
        self._is_plain = False  # the function itself is called
        self._counts_up: Sequence[Count] = ()  # in the trace that is made now
        self._refused: list[Runner] = []  # for `explain`

    def __getattr__(self, name: str) -> Any:
        """Return what the function has, if that is a module: its parameters, `train`, `state_dict`."""
        if name.startswith("__") or name == "function":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return getattr(self.function, name)

    def __reduce__(self) -> Any:
        """Pickle by the function, which is traced anew there: by its name, if a decorator gave it to the function."""
        name: str = getattr(self.function, "__qualname__", "")
        found: Any = sys.modules.get(getattr(self.function, "__module__", ""))
        for part in name.split("."):
            found = getattr(found, part, None)
        return name if found is self else (type(self), (self.function,))

    __repr__ = object.__repr__
    func = property(lambda self: getattr(self.function, "func", self.function))  # a module may have such names
    args = property(lambda self: getattr(self.function, "args", ()))
    keywords = property(lambda self: getattr(self.function, "keywords", {}))

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return a method, of a function that stands in a class."""
        function: Any = self
        return self if instance is None else types.MethodType(function, instance)

    def transformed_by(self, transform: Callable[..., Any], *args: Any, **kwargs: Any) -> Compiled:
        """Return what a transform of functions, as `func.grad`, makes of the function, compiled: the same each time."""
        key = transform, str((args, kwargs))
        if key not in self._transformed:
            self._transformed[key] = Compiled(transform(self.function, *args, **kwargs), self._limit)
        return self._transformed[key]

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function in a way in which the compiled entry does not serve it."""
        if modes.is_traced():  # a part of that program: the function may depend on more than its arguments
            given = Given(args, kwargs)
            args, kwargs = given.read().with_tensors() if given.has_arrays else (args, kwargs)
            return self.function(*args, **kwargs)
        if self._is_plain and not kwargs and is_row(args):
            return self.function(*args)
        is_marked, is_strong = is_marking(), is_strong_zero()
        served = self._marked(args, kwargs) if is_marked and not is_strong else None
        if served is not None:
            return served[0]
        given = Given(args, kwargs)
        if given.foreign:
            return given.called_with_copies(self)
        given.read()
        if is_strong or self._is_plain:  # passes in that mode, here and later, look for operations
            return called(self.function, given)
        if self._counting is not None:
            return self._counting.call(given)
        try:
            given = self._with_integers(given)
            key = given.key()
            versions = self._versions[key] if key in self._versions else self._new_versions(key)
        except TypeError:
            raise TypeError(f"{self._name}() {given.unhashable()}") from None
        if versions is None:
            return called(self.function, given)
        try:
            found = self._version(key, versions, given)
        except Counted as counted:
            return self._counts(counted.places, given)
        except Postponed:
            found = None
        except NotAnInputError:
            return self._call(args, kwargs)
        except Exception:
            if not given.integers:
                raise
            found = None  # Python raises its own error for integers
        if found is None:
            return called(self.function, given)
        version, outputs = found
        self._serve(version, given)
        result = version.result(outputs, given.has_arrays)
        return marked(result, given.leaves) if is_marked else result

    def _counts(self, places: Sequence[Place], given: Given) -> Any:
        from tapegrad.program.counting import counted  # at call time: it makes compiled functions too

        return counted(self, places, given)

    def _with_integers(self, given: Given) -> Given:
        """Return a call with those integers as inputs that are another one in each call."""
        places = self._integers.inputs((given.structure, *given.places), given.leaves) if given.places else ()
        return given.with_integers(places) if places and given.key() not in self._versions else given

    def _new_versions(self, key: Any) -> list[Version] | None:
        """Return the versions of a new signature, which are none, or None if it is one of too many."""
        kind = (*key[:4], *key[5:])  # all but the constants
        count = self._constants[kind] = self._constants.get(kind, 0) + 1
        if count == MOST + 1:
            warnings.warn(
                f"{self._name} was traced for {MOST} values of arguments that are constants of its programs (strings, "
                "bools, integers that Python looks at); for other values it runs as ordinary Python",
                UserWarning,
                stacklevel=4,
            )
        if count > MOST:
            return None
        return self._versions.setdefault(key, [])

    def _version(self, key: Any, versions: list[Version], given: Given) -> tuple[Version, list[Tensor]] | None:
        """Return the version that serves a call, with its outputs; None if the function itself is to be called."""
        inputs = given.inputs
        for number, version in enumerate(versions):
            outputs = version.call(inputs)
            if outputs is not None:
                if number:  # the next call may well take the same way
                    versions.insert(0, versions.pop(number))
                return version, outputs
        if len(versions) == LIMIT:
            self._give_up(key, versions)
            return None
        version = self._integers.traced(given, self._trace) if given.integers else self._trace(given)
        if version.run.code is None and not versions:
            self._refused.append(version.run)
            self._versions[key] = None  # eager: its sweep is compiled, and no slower than operations one by one
            return None
        versions.insert(0, version)
        self._changes = 0
        outputs = version.call(inputs, is_new=True)
        if outputs is None:  # a value that depends on more than the inputs
            self._give_up(key, versions)
            return None
        return version, outputs

    def _serve(self, version: Version, given: Given) -> None:
        """Let compiled code call a version first, if it knows the classes of arguments and containers."""
        variant = variant_of(version, given)
        if variant is not None:
            others = [own for own in self._dispatch.variants if own is not variant]
            self._dispatch.variants = self._marked.dispatch.variants = (variant, *others[: LIMIT - 1])

    def _trace(self, given: Given) -> Version:
        returned: list[Any] = []
        leaves_of_results: list[int] = []
        handed: list[Place] = []
        tree, others = given.without_inputs()  # the arguments are not to be kept
        places, outside = given.places, Outside()

        def call(*tensors: Tensor) -> list[Tensor]:
            filled = list(others)
            before = outside.puts_now()  # none in the trace
            for place, tensor in zip(places, tensors, strict=True):
                filled[place] = tensor
            args, kwargs = rebuild(tree, filled)
            out = called_in_trace(self.function, args, kwargs, handed)
            own = flatten(out)
            found = [place for place, leaf in enumerate(own) if isinstance(leaf, Tensor)]
            returned[:] = rebuild(out, [None if isinstance(leaf, Tensor) else leaf for leaf in own]), found
            leaves_of_results[:] = [number for number, place in enumerate(found) if is_new_leaf(own[place], tensors)]
            tracer = modes.tracer()
            outside.puts = outside.puts or (tracer.put() if self._may_count and tracer else [])
            results = [*[own[place] for place in found], *[place.present() for place in outside.puts]]
            for put in before:
                put.put_back()
            return results

        looked_at, counts = self._looked_at()
        names, values = Names(looked_at, others), Values(looked_at, counts, others)
        arrays = [own._data for own in given.inputs]
        with enable_grad(), noticed_draws(), limited(self._limit):
            program, captured = trace(call, arrays, given.wanted, outside, of_python=given.of_python())
        changed = [*values.changed([*outside.changed, *outside.replaced]), *handed, *names.replaced(), *names.grown()]
        unchanged = values.unchanged()
        for own in self._counts_up:
            own.place.put(own.place.value)  # each call of the program counts
        outside.counts += self._counts_up
        if changed and self._may_count:
            raise Counted(changed)
        outside.refuse_replaced()
        program.limit = self._limit
        outside.find_names(names)
        outside.checks += unchanged
        count = len(given.inputs)
        program.function = lambda tensors: (call(*tensors[:count]), [*tensors[:count], *captured])
        plain = not outside.has_effects and all(isinstance(own, Tensor) for own in outside.sources)
        signature = signature_of(
            self.function, (tree, places), tuple(returned), given.wanted, captured if plain else ()
        )
        if plain:
            program.signature = signature
        else:
            program.impure = Functional(program, outside, signature)
        return Version(self._known(program), outside, returned[0], returned[1], tuple(leaves_of_results))

    def _looked_at(self) -> tuple[Callable[..., Any], Sequence[Place]]:
        """Return the function whose names are looked at, and places that are left out."""
        return self.function, [own.place for own in self._counts_up]

    def _known(self, program: Program) -> Program:
        """Return a program that was just traced, or an equal one."""
        return program

    def _give_up(self, key: Any, versions: list[Version]) -> None:
        self._versions[key] = None
        gone = {id(own) for version in versions for own in version.variants.values()}
        left = tuple([own for own in self._dispatch.variants if id(own) not in gone])
        self._dispatch.variants = self._marked.dispatch.variants = left
        guards = versions[0].program.guards
        why = (
            "Python looks at a value of its own computation (return it, as in `return loss.item()`, and append or "
            "print what the call returns)"
            if guards
            else "what it finds outside is another one (a number that changes may be an argument)"
        )
        warnings.warn(
            f"{self._name} takes another way in nearly every call, because {why}; it is not compiled. "
            f"{guards[-1].where if guards else ''}",
            UserWarning,
            stacklevel=5,
        )

    @property
    def programs(self) -> list[Program]:
        """The programs that exist by now, the latest first."""
        versions = [version.program for versions in self._versions.values() for version in versions or ()]
        counted = [] if self._counting is None else self._counting.programs
        return versions + [run.program for run in self._refused] + counted

    @property
    def njit(self) -> Any:
        """The programs as one function for code that Numba compiles: see `Program.njit`.

        They are those for one kind of arguments, one for each way through the branches that was taken by now.
        """
        from tapegrad.program.export.njit import njit_of

        return njit_of(self.programs)

    def state(self) -> tuple[Any, ...]:
        """Return the state of the latest program as it is now: see `Program.functional`."""
        return self.programs[0].state() if self.programs else ()

    def explain(self) -> str:
        """Return how the programs run, and why."""
        runs = [version.run for versions in self._versions.values() for version in versions or ()] + self._refused
        return "\n\n".join(run.explain() for run in runs)

    def memory(self) -> list[Any]:
        """Return what each program keeps in memory, the latest first; see `Program.memory`."""
        return [program.memory() for program in self.programs]

    def source(self) -> str:
        """Return the loops of the programs as readable code."""
        return "\n\n".join(own.run.source() for versions in self._versions.values() for own in versions or ())


_dispatches: Final[weakref.WeakSet[Dispatch]] = weakref.WeakSet()


def _forget_variants() -> None:
    # Programs depend on the default dtype, which compiled entries do not look at.
    for dispatch in list(_dispatches):
        dispatch.variants = ()


dtypes.on_change.append(_forget_variants)
