"""What a function that is traced takes from outside in each call, and what it changes there.

A program is pure. What the function wrote to memory that existed before are further outputs of it, behind the results.
They are copied into that memory when the program has computed all of them: a call that fails has changed nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import CellType
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.program.names import Name, Names, attribute
from tapegrad.program.standing import Place, Standing
from tapegrad.program.templates import GradOf
from tapegrad.program.traced import TracingError
from tapegrad.program.watched import Watched, all_same
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape import versions
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor, from_array


class Postponed(BaseException):
    """A trace is given up: the function is called as it is, and traced in a later call."""


class Counted(Postponed):
    """The function has changed numbers that it finds outside.

    Attributes
    ----------
    places : sequence of Place
        Where they stand, with the values from before, which stand there again.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        super().__init__()
        self.places = places
        for place in places:
            place.put_back()


class Count(NamedTuple):
    """An integer outside that each call changes, and nothing else depends on.

    Attributes
    ----------
    place : Place
        With the integer from before.
    number : int
        What is added, or what stands there afterwards.
    is_added : bool
    """

    place: Place
    number: int
    is_added: bool


class Drawn(NamedTuple):
    """Random numbers, which are drawn anew in each call.

    Attributes
    ----------
    generator : callable
        Returns NumPy's generator: to seed makes another one.
    draw : callable
        From the generator to an array.
    """

    generator: Callable[[], np.random.Generator]
    draw: Callable[[np.random.Generator], np.ndarray]

    def new(self) -> np.ndarray:
        """Draw."""
        return np.asarray(self.draw(self.generator()))


class Read(NamedTuple):
    """Numbers of Python that are looked at in each call, as an array that a function returns."""

    array: Callable[[], np.ndarray]

    def new(self) -> np.ndarray:
        """Look."""
        return self.array()


class NewGrad(NamedTuple):
    """A gradient that a tensor gets.

    Attributes
    ----------
    tensor : Tensor or int
        From outside, or an argument.
    is_added : bool
        To the gradient that the argument has, if there is one.
    """

    tensor: Tensor | int
    is_added: bool


Source = Tensor | GradOf | Drawn | Read


class Outside:
    """What a program takes from outside, and changes there.

    Attributes
    ----------
    sources : list
        Where the inputs behind the arguments come from.
    written : list of Tensor, GradOf or int
        What the first outputs behind these are written to; integers are arguments.
    new_grads : list of NewGrad
        What the other outputs are the gradients of.
    cleared : list of Tensor or int
        What has no gradient afterwards.
    conditions : list of (Tensor, bool)
        Tensors that have to have a gradient before, or must not have one.
    checks : list of callable
        Functions of Python's state that have to return True before.
    names : list of (int, Name)
        Which of the sources are what stands behind a name.
    changed : list of Place
        Attributes of modules that the function has changed, with the numbers and strings from before.
    modes : list of (dict, bool)
        Attributes of modules that train afterwards, or evaluate.
    counts : list of Count
    replaced : list of Place
        Attributes of modules that the function has read before it put a tensor there.
    puts : list of Place
        Attributes of modules in which the first outputs behind the results are put.
    is_step : bool
        Whether it computes gradients, or writes to what wants one: results then have no graph, as if it was freed.
    """

    def __init__(self, sources: Sequence[Source] = ()) -> None:
        self.sources: list[Source] = list(sources)
        self.written: list[Tensor | GradOf | int] = []
        self.new_grads: list[NewGrad] = []
        self.cleared: list[Tensor | int] = []
        self.conditions: list[tuple[Tensor, bool]] = []
        self.checks: list[Callable[[], bool]] = []
        self.names: list[tuple[int, Name]] = []
        self.changed: list[Place] = []
        self.modes: list[tuple[dict[str, Any], bool]] = []
        self.counts: list[Count] = []
        self.replaced: list[Place] = []
        self.puts: list[Place] = []
        self.is_step = False

    @property
    def has_effects(self) -> bool:
        """Whether a call changes something."""
        return bool(self.written or self.new_grads or self.cleared or self.puts)

    def is_recorded(self, wanted: Sequence[bool]) -> bool:
        """Whether a call is recorded, given whether its inputs want a gradient: if it does not compute them itself."""
        has_wanted = any(isinstance(own, Tensor) and own.requires_grad for own in self.sources)
        return not self.is_step and (any(wanted) or (modes.is_grad_enabled() and has_wanted))

    @property
    def is_served(self) -> bool:
        """Whether compiled code can do it: not what is done to arguments."""
        return not any(isinstance(own, int) for own in (*self.written, *[own.tensor for own in self.new_grads],
                                                        *self.cleared))  # fmt: skip

    def find_names(self, names: Names) -> None:
        """Find the tensors that the function has by name: they are looked up in each call.

        Parameters
        ----------
        names : Names
            Those from before the function was traced.
        """
        held: dict[tuple[int, Any], tuple[Name, Any]] = {}
        containers: list[Any] = []
        holders = names.gradients()
        for place, own in enumerate(self.sources):
            holder = holders.get(id(own))
            if holder is not None:  # the next pass may give it another gradient
                self.sources[place] = GradOf(holder)
                self.written = [GradOf(holder) if other is own else other for other in self.written]
                continue
            found = []
            for path in names.of(own):
                present = path[-1].value()
                if present is own:
                    found.append(path[-1])
                    held.update({(id(name.holder), name.key): (name, value) for name, value in names.holders(path)})
                    containers += [name.holder for name in path[1:]]
                elif isinstance(present, Tensor) and present.is_traced:
                    path[-1].put(own)
                    raise TracingError(
                        f"the function lets another tensor stand at {path[-1].key!r}, from where it takes one; write "
                        "to it in place, e.g. by x.copy_(...)"
                    )
            # What is written to is no other tensor than in the trace, nor what has two names.
            if self.has_effects or len(found) > 1:
                self.checks += [stands_behind(name, own) for name in found]
            elif found:
                self.names.append((place, found[0]))
        self.checks += [stands_behind(*pair) for pair in held.values()]
        self.checks += names.checks(containers)

    def refuse_replaced(self) -> None:
        """Raise an error if attributes of modules are replaced that were read before."""
        for place in self.replaced:
            place.put_back()
        for place in self.replaced:
            raise TracingError(
                f"the function replaces the attribute {place.key!r} of a module; write to it in place, "
                f"e.g. by self.{place.key}.copy_(...)"
            )

    def watch(self, values: Sequence[Watched]) -> None:
        """Let the program serve a call only if the same values stand at some places."""
        if values:
            self.checks.append(values[0].holds if len(values) == 1 else functools.partial(all_same, values))

    def holds(self) -> bool:
        """Whether gradients exist as they did in the trace, and Python's state is as it was."""
        return all((tensor._grad is not None) is wanted for tensor, wanted in self.conditions) and all(
            check() for check in self.checks
        )

    def tensors(self, layouts: Sequence[Layout]) -> list[Tensor] | None:
        """Return the inputs of a call; None if one has another shape or dtype than in the trace."""
        for place, name in self.names:
            value = name.value()
            if not isinstance(value, Tensor) or value.__class__ is not self.sources[place].__class__:
                return None
            self.sources[place] = value
        found = []
        for source, layout in zip(self.sources, layouts, strict=True):
            own: Any = source
            if isinstance(source, (Drawn, Read)):
                own = from_array(source.new())
            elif isinstance(source, GradOf):
                own = source.tensor._grad
                if own is None:
                    return None
            given = own._layout
            if given.shape != layout.shape or given.dtype != layout.dtype:
                return None
            found.append(own)
        return found

    def states(self) -> list[tuple[Any, Any]]:
        """Return the states of all generators that are drawn from."""
        generators = {
            id(own): own for own in (source.generator() for source in self.sources if source.__class__ is Drawn)
        }
        return [(own.bit_generator, own.bit_generator.state) for own in generators.values()]

    def targets(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return the tensors that are written to."""
        found: list[Any] = [
            inputs[own] if isinstance(own, int) else own.tensor._grad if isinstance(own, GradOf) else own
            for own in self.written
        ]
        return found

    def finish(self) -> None:
        """Count, and let modules train or evaluate, as the function does."""
        for own, mode in self.modes:
            own["training"] = mode
        for place, number, is_added in self.counts:
            place.put(place.present() + number if is_added else number)

    def puts_now(self) -> list[Place]:
        """Return the attributes in which tensors are put, with what stands there now."""
        return [place._replace(value=place.present()) for place in self.puts]

    def put(self, values: Sequence[Any]) -> None:
        """Put tensors, or arrays that become tensors, in attributes of modules."""
        for place, value in zip(self.puts, values, strict=True):
            place.put(value if isinstance(value, Tensor) else from_array(np.asarray(value)))

    def result(self, values: tuple[Any, ...]) -> Any:
        """Return the first of some values, and put the others in attributes of modules."""
        self.put(values[1:])
        return values[0]

    def apply(self, targets: Sequence[Tensor], inputs: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        """Change what the function changes, given the outputs behind its results."""
        arrays = [own._array() for own in targets]
        for array, value in zip(arrays, values, strict=False):
            array[...] = value._data
        if arrays:
            versions.note_all(arrays)
        for (target, is_added), value in zip(self.new_grads, values[len(arrays) :], strict=True):
            tensor = inputs[target] if isinstance(target, int) else target
            if is_added and tensor._grad is not None:
                tensor._grad = tensor._grad + value
            else:
                tensor._grad = value
        for own in self.cleared:
            (inputs[own] if isinstance(own, int) else own)._grad = None


def stands_behind(name: Name, value: Any) -> Callable[[], bool]:
    """Return what asks whether the same value stands behind a name."""
    holder, key = name
    if holder.__class__ is CellType:
        return Standing([Place(holder, CellType, value)])
    own = holder if holder.__class__ is dict else attribute(holder, "__dict__")
    if own.__class__ is dict and own.get(key) is value:
        return Standing([Place(own, key, value)])
    return lambda: name.value() is value


def identity_of(own: Any) -> Any:
    """Return what tells one source or target from the others."""
    return (GradOf, id(own.tensor)) if isinstance(own, GradOf) else own if isinstance(own, int) else id(own)


def share_memory(targets: Sequence[Tensor], inputs: Sequence[Tensor]) -> bool:
    """Whether what is written to shares memory with another input: then the order of reads and writes matters."""
    known = {id(own) for own in inputs}
    whole = [own._data for own in (*inputs, *[own for own in targets if id(own) not in known])]
    arrays = [data for data in whole if isinstance(data, np.ndarray)]
    if len({id(versions.owner_of(data)) for data in arrays}) == len(arrays):
        return False
    # A target is one of them. It may stand there twice: as two arguments.
    return any(sum(np.may_share_memory(data, target._data) for data in arrays) > 1 for target in targets)
