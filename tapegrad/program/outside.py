"""What a function that is traced takes from outside and changes there: found when it has returned.

While it is traced, tensors from outside have the values that it gave them. Then they get back what they had.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.ops.table.gateway import constant
from tapegrad.program.attributes import Attributes
from tapegrad.program.effects import Drawn, NewGrad, Outside, Postponed, Read, Source
from tapegrad.program.standing import ABSENT, Place, Standing
from tapegrad.program.templates import GradOf
from tapegrad.program.traced import Traced, TracingError, error
from tapegrad.program.watched import PLAIN, Watched
from tapegrad.program.writes import Writes
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.entries import Leaf, TapeNode, operand_nodes
from tapegrad.tape.layout import layout_of
from tapegrad.tensor import Tensor


class Gradient(NamedTuple):
    """The gradient of a tensor before the trace, and whether the function replaced it before it looked."""

    tensor: weakref.ref[Tensor]
    before: Tensor | None
    is_set: bool


class Takes(Writes):
    """Follows gradients, random numbers and numbers of Python that are taken from outside."""

    def __init__(self) -> None:
        super().__init__()
        self._around: Any = modes.interceptor()
        self._grads: dict[int, Gradient] = {}
        self._sources: dict[int, Source] = {}  # by the number of the value
        self._checks: list[Callable[[], bool]] = []
        self._attributes = Attributes()
        self._hooked: list[tuple[TapeNode, TracingError]] = []
        self._watched: list[tuple[Watched, str]] = []  # and what must not change it
        self._states: dict[int, tuple[Any, Any]] = {}  # of generators, before the first draw

    # --- while it is traced ----------------------------------------------------------------------------------------

    def hooked(self, tensor: Tensor) -> None:
        """Note a hook of a result, and the error that it is if a pass outside of the function had to call it."""
        if isinstance(tensor._node, list):
            why = "only a backward pass within the function calls a hook; write a tapegrad.autograd.Function"
            self._hooked.append((tensor._node, error(why)))

    def check_hooks(self, nodes: Sequence[TapeNode | Leaf | None]) -> None:
        """Raise the error of a hook that a pass from these nodes of results would call."""
        found, waiting = set[int](), [node for node in nodes if self._hooked and isinstance(node, list)]
        while waiting:
            node = waiting.pop()
            if id(node) not in found:
                found.add(id(node))
                waiting += [own for own in operand_nodes(node) if isinstance(own, list)]
        for node, why in self._hooked:
            if id(node) in found:
                raise why

    def accumulated(self, tensor: Tensor, is_set: bool = False) -> None:
        """Note that a gradient is about to change."""
        if id(tensor) not in self._grads:
            self._grads[id(tensor)] = Gradient(weakref.ref(tensor), tensor._grad, is_set)

    def grad_replaced(self, tensor: Tensor) -> None:
        """Note that a tensor is about to get another gradient, or none."""
        self.accumulated(tensor, is_set=True)

    def accumulate(self, tensor: Tensor, value: Tensor) -> None:
        """Add a gradient to that of a tensor."""
        self.accumulated(tensor)
        if tensor._grad is None:
            tensor._grad = value
        else:
            self.overwrite(tensor._grad, tensor._grad + value)

    def draw(self, generator: Callable[[], np.random.Generator], draw: Callable[[np.random.Generator], Any]) -> Traced:
        """Return random numbers, which are drawn anew in each call of the program."""
        if self._around is not None:
            raise error("random numbers are not traced in vmap(); give them to the function as an argument")
        own = generator()
        if id(own) not in self._states:
            self._states[id(own)] = own.bit_generator, own.bit_generator.state
        return self._from_outside(np.asarray(draw(own)), Drawn(generator, draw))

    def read(self, array: Callable[[], np.ndarray]) -> Traced:
        """Return numbers of Python that are looked at in each call of the program."""
        return self._from_outside(array(), Read(array))

    def copy_of(self, tensor: Tensor) -> Traced:
        """Return a traced tensor of the same value, without a graph, that is no view."""
        raise NotImplementedError

    def require(self, check: Callable[[], bool]) -> None:
        """Let the program serve a call only if a function of Python's state returns True."""
        self._checks.append(check)

    def require_same(self, places: Sequence[tuple[dict[Any, Any], Any]]) -> None:
        """Let the program serve a call only if the same things stand at some keys of dicts."""
        self._checks.append(Standing([Place(own, key, own.get(key, ABSENT)) for own, key in places]))

    def watch(self, present: Callable[[], list[Any]], what: str) -> None:
        """Let the program serve a call only if the same things are present, which what follows must not change."""
        self._watched.append((Watched(present), what))

    def read_attribute(self, attributes: dict[str, Any], name: str) -> None:
        """Note that the function reads an attribute of a module, given all attributes of that."""
        if isinstance(self._around, Takes):
            self._around.read_attribute(attributes, name)
        else:
            self._attributes.read(attributes, name)

    def write_attribute(self, attributes: dict[str, Any], name: str) -> None:
        """Note that the function is about to write to an attribute of a module, given all attributes of that."""
        if isinstance(self._around, Takes):
            self._around.write_attribute(attributes, name)
        else:
            self._attributes.write(attributes, name)

    def put(self) -> list[Place]:
        """Return the attributes in which the function has put tensors of its own, with what stood there before."""
        return [place for place in self._attributes.put() if self.is_own(place.present())]

    def switch_mode(self, attributes: dict[str, Any]) -> None:
        """Note that the function lets a module train or evaluate, given all attributes of that."""
        if isinstance(self._around, Takes):
            self._around.switch_mode(attributes)
        else:
            self._attributes.switch_mode(attributes)

    def _state(self) -> list[Watched]:
        """Return what the function has looked at of Python's state."""
        for watched, what in self._watched:
            if not watched.is_same():
                self.unseen(what)
        return [*self._attributes.watched(), *[watched for watched, _ in self._watched]]

    def replaced_attributes(self) -> list[Place]:
        """Return which attributes of modules are tensors of the function now, with what it has read there before."""
        places = [Place(*own) for own in self._attributes.changed()]
        return [place for place in places if isinstance(own := place.present(), Tensor) and own.is_traced]

    def changed_numbers(self) -> list[Place]:
        """Return which attributes of modules are other numbers or strings now, with those from before."""
        places = [Place(*own) for own in self._attributes.changed()]
        return [place for place in places if type(place.value) in PLAIN and not place.stands()]

    def postpone(self) -> None:
        """Give the trace up: this call makes what later ones find."""
        raise Postponed

    def unseen(self, what: str) -> None:
        """Refuse what changes Python's state, as it would happen in the trace only."""
        raise error(f"{what} changes numbers of Python, which a program does not; call it outside of the function")

    def _from_outside(self, array: np.ndarray, source: Source) -> Traced:
        layout = layout_of(array)
        number = self.new(array, layout)
        self._sources[number] = source
        return self.traced(constant(array, layout), number)

    def traced(self, tensor: Tensor, number: int) -> Traced:
        """Return a tensor as the function sees it."""
        raise NotImplementedError

    # --- when it has returned --------------------------------------------------------------------------------------

    def found(
        self, inputs: Sequence[Tensor], numbers: Sequence[int], outside: Outside | None
    ) -> tuple[list[int], list[int]]:
        """Note in `outside` what the function takes and changes.

        Parameters
        ----------
        inputs, numbers
            The arguments, and the numbers that their values had.
        outside : Outside or None
            None: nothing can be changed.

        Returns
        -------
        list of int, list of int
            The numbers of inputs behind the arguments, and of outputs behind the results.
        """
        own = Outside() if outside is None else outside
        holding = [gradient.tensor() for gradient in self._grads.values()]
        self.renew_all([own._grad for own in holding if own is not None])
        del holding
        self.forget_views()
        self.forget_last()
        place_of = {id(tensor): place for place, tensor in enumerate(inputs)}
        changed: list[int] = []
        grads: list[int] = []
        holders: dict[int, Tensor] = {}
        for tensor_ref, before, is_set in self._grads.values():
            tensor = tensor_ref()
            place = None if tensor is None else place_of.get(id(tensor))
            if tensor is None or (place is None and self.is_own(tensor)):
                continue
            after, tensor._grad = tensor._grad, before
            if before is not None:
                holders[id(before)] = tensor
            if not is_set and place is None:
                own.conditions.append((tensor, before is not None))
            if after is before:
                continue
            target: Tensor | int = tensor if place is None else place
            if after is None:
                own.cleared.append(target)
            else:
                if isinstance(after._node, list):
                    raise TracingError(
                        "backward(create_graph=True) would leave a graph in gradients of tensors from outside; return "
                        "gradients by autograd.grad()"
                    )
                own.new_grads.append(NewGrad(target, not is_set))
                grads.append(self.number_of(after))
            del after
        if self.originals:
            gc.collect(0)  # a tensor of the function's own may be in a cycle
        for original in self.originals.values():
            written: Any = original.tensor()
            if written is None:
                continue
            if isinstance(written._node, list) and written._node is not original.node:
                raise TracingError(
                    f"a tensor from outside of shape {list(written.shape)} gets a history that ends outside of the "
                    "compiled function; write detached values to it, e.g. state.copy_(new.detach())"
                )
            changed.append(self.number_of(written))
            holder = holders.get(id(written))
            own.written.append(written if holder is None else GradOf(holder))
            own.is_step |= original.node is not None
        for place, (tensor, number) in enumerate(zip(inputs, numbers, strict=True)):
            if self.number_of(tensor) != number:
                own.written.append(place)
                changed.append(self.number_of(tensor))
                own.is_step |= tensor._node is not None
        own.is_step |= bool(own.new_grads or own.cleared or own.conditions)
        self.restore()
        captured = self.captured()
        if outside is None:
            own.refuse_replaced()
        if outside is None and (own.has_effects or self._sources or self._checks):
            raise error(
                "what changes something outside, or draws random numbers, is not traced in vmap() or a derivative"
            )
        for tensor in captured.values():
            if tensor._grad is not None:
                holders.setdefault(id(tensor._grad), tensor)
        own.sources += [
            GradOf(holders[id(tensor)]) if id(tensor) in holders else tensor for tensor in captured.values()
        ]
        own.sources += self._sources.values()
        own.checks += self._checks
        own.watch(self._state())
        own.changed, own.replaced = self.changed_numbers(), self.replaced_attributes()
        own.modes = self._attributes.modes()
        places = [Place(*attribute) for attribute in self._attributes.unchanged(ABSENT)]
        own.checks += [Standing(places)] if places else []
        hooked = [tensor for tensor in captured.values() if own.is_step and isinstance(tensor._node, Leaf)]
        if hooked:
            own.checks.append(functools.partial(_have_hooks, hooked, [_hooks_of(tensor) for tensor in hooked]))
        return [*captured, *self._sources], changed + grads

    def captured(self) -> dict[int, Tensor]:
        """Return the tensors that the function took from outside, by the numbers of their values."""
        raise NotImplementedError

    def restore(self) -> None:
        """Let everything outside be as it was before the trace."""
        self.forget_views()
        for place in self._attributes.put():
            place.put_back()
        for tensor_ref, before, _ in self._grads.values():
            tensor = tensor_ref()
            if tensor is not None:
                tensor._grad = before
        super().restore()
        for bits, state in self._states.values():
            bits.state = state
        self._grads.clear()
        self.originals.clear()
        self._states.clear()


def _have_hooks(tensors: Sequence[Tensor], hooks: Sequence[Any]) -> bool:
    """Whether leaves have the hooks that they had."""
    return list(map(_hooks_of, tensors)) == hooks


def _hooks_of(tensor: Tensor) -> Any:
    node = tensor._node
    if not isinstance(node, Leaf) or not (node.hooks or node.post_hooks):
        return ()
    return tuple(node.hooks or ()), tuple(node.post_hooks or ())
