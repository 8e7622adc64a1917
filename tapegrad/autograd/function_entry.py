"""The entry of a `Function`: an op whose rule is the user's backward.

The attributes of the context stand in the node as a residual. What is known of a call besides (where its tensors stand
among the arguments, which outputs are differentiable) is a part of the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tapegrad import errors
from tapegrad.autograd.saved_hooks import active, saved_tensors_hooks
from tapegrad.kernels.rules import identity
from tapegrad.modes import INTERCEPTORS, mode
from tapegrad.ops.table.gateway import constant, raw_data
from tapegrad.ops.table.op import Op
from tapegrad.ops.table.results import part_plan, parts_of, plan_of_several, record_parts
from tapegrad.ops.table.rules import part_of
from tapegrad.pass_modes import checks
from tapegrad.recording.plan import Plan
from tapegrad.recording.plan_cache import compiled
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape import traces, versions, views
from tapegrad.tape.entries import PLAN_OBJECT, Leaf, TapeNode
from tapegrad.tape.graph import whole_node
from tapegrad.tape.hooks import Packed
from tapegrad.tape.layout import InferenceLayout, Layout
from tapegrad.tensor import Tensor

_DIRTY_LEAF: Final = "a leaf Variable that requires grad has been used in an in-place operation."
_DIRTY_LOST: Final = (
    "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
    "inplace must all be outputs of the Function."
)
_find_plan: Final = dict.get  # among the young plans, in which nearly all are
_ATTRIBUTES: Final = ("attributes",)  # the name of the residual


class SavedOutput(NamedTuple):
    """An output that was saved: as a tensor it would refer to the node, and the node to it."""

    number: int
    data: Any
    layout: Layout

    def restored(self, node: TapeNode) -> Tensor:
        """Return the tensor, computed by the entry."""
        plan = node[PLAN_OBJECT]
        part = parts_of(plan).get(self.number)
        result = constant(self.data, self.layout)
        if part is not None:
            result._node = part_of(node, self.number, part, self.data)._node
        elif not parts_of(plan) and plan.attrs["outputs"][self.number] is None:
            result._node = node
        result._layout = self.layout.tracked if result._node is not None else self.layout.plain
        return result


class SavedPacked(NamedTuple):
    """A tensor that was saved under `saved_tensors_hooks`: an output with its number, or one with the node it had."""

    packed: Packed
    number: int | None
    parent: Any

    def restored(self, node: TapeNode) -> Tensor:
        """Return the tensor as it was unpacked, in its old place in the graph."""
        tensor = self.packed.tensor()
        result = constant(tensor._data, tensor._layout.plain)
        if self.number is not None:
            return SavedOutput(self.number, result._data, result._layout).restored(node)
        if self.parent is not None:
            result._node, result._layout = self.parent, result._layout.tracked
        return result


def renewed_inputs(args: tuple[Any, ...]) -> tuple[list[Tensor], tuple[int, ...] | None, tuple[bool, ...]]:
    """Return the tensors among arguments, their places (None if all are tensors), and which require grad."""
    tensors, needs = [], []
    for arg in args:
        if isinstance(arg, Tensor):
            if mode.value:
                views.renewed(arg)
            tensors.append(arg)
            needs.append(arg._layout.requires_grad)
        else:
            needs.append(False)
    places = None
    if len(tensors) != len(args):
        places = tuple([place for place, arg in enumerate(args) if isinstance(arg, Tensor)])
    return tensors, places, tuple(needs)


# Recording -----------------------------------------------------------------------------------------------------------


def recorded(
    op: Op,
    attributes: dict[str, Any],
    tensors: list[Tensor],
    places: tuple[int, ...] | None,
    out: Any,
    node_class: type,
) -> Any:
    """Record a call, give the outputs their history, and return them.

    Parameters
    ----------
    op : Op
        See `function_op`.
    attributes : dict
        Of the context.
    tensors, places
        The tensors among the arguments, and their places.
    out : Any
        What `forward` returned.
    node_class : type
        The class of the call's `grad_fn`.
    """
    layouts = tuple([tensor._layout for tensor in tensors])
    # The entry keeps leaves alive: a pass does not call rules for leaves that have died, but programs see `backward`.
    attributes["_leaves"] = [tensor for tensor in tensors if tensor._node.__class__ is Leaf]
    saved = attributes.get("_saved")
    if out.__class__ is Tensor and "_dirty" not in attributes and not mode.value & INTERCEPTORS:
        plan = _find_plan(op.plans, (layouts, places, out._layout))
        if (
            plan is not None
            and "_constant" not in attributes
            and "_saved_for_forward" not in attributes
            and (saved is None or _is_plain(saved, out))
        ):  # nearly all
            attributes["_written"] = versions.clock[0]
            result = compiled.finish(plan, out._data, *tensors, attributes)
            return _with_history(out, result, tensors, (), (_name_of(node_class), 0, True))
    outputs = out if out.__class__ is tuple else (out,)
    dirty, fixed = attributes.pop("_dirty", ()), attributes.pop("_constant", ())
    shown = [tensor for tensor in tensors if not _is_among(tensor, dirty)]  # one that is returned stays an input
    attributes["_written"] = versions.clock[0]
    for name in ("_saved", "_saved_for_forward"):
        if name in attributes:
            attributes[name] = _kept(attributes[name], [None if _is_among(own, shown) else own for own in outputs])
    kinds: list[Layout | bool | None] = []  # of each output: None, or the layout of a constant, or False for no tensor
    differentiable: dict[int, Layout] = {}
    layouts_of_outputs = [value._layout.plain if isinstance(value, Tensor) else None for value in outputs]
    for number, layout in enumerate(layouts_of_outputs):
        if layout is None:
            kinds.append(False)
        elif layout.floating and not _is_among(outputs[number], fixed):
            differentiable[number] = layout
            kinds.append(None)
        else:
            kinds.append(layout)
    if not differentiable:
        return without_history(tensors, out, dirty)
    _note_dirty(dirty, outputs)
    if any(isinstance(tensor._node, Leaf) for tensor in dirty):
        raise RuntimeError(_DIRTY_LEAF)
    results_of: Any = tuple(differentiable.values())  # as compiled code finds the plan
    if len(outputs) == 1 and not dirty:
        results_of = outputs[0]._layout
    elif len(outputs) == 1 or len(outputs) != len(differentiable):
        results_of = (*kinds, *results_of)
    key = layouts, places, results_of
    plan = op.plans.get(key)
    if plan is None:
        attrs: dict[str, Any] = {
            "places": places, "outputs": tuple(kinds), "layouts": tuple(layouts_of_outputs), "node_class": node_class,
        }  # fmt: skip
        plan = _new_plan(op, layouts, attrs, differentiable)
        attrs["parts"] = tuple([part_plan(plan, number, *part) for number, part in parts_of(plan).items()])
        op.plans.remember(key, plan)
    results = list(outputs)
    if len(differentiable) == 1:
        (number,) = differentiable
        fresh = [compiled.finish(plan, raw_data(outputs[number]), *tensors, attributes)]
    else:
        data = [raw_data(value) if isinstance(value, Tensor) else None for value in outputs]
        fresh = record_parts(plan, data, tensors, [attributes])
    if checks() is not None:
        traces.note_call(whole_node(_node_of(fresh[0])))
    for number, result in zip(differentiable, fresh, strict=True):
        part = _name_of(node_class), number, len(outputs) == 1
        results[number] = _with_history(outputs[number], result, tensors, dirty, part)
    return tuple(results) if out.__class__ is tuple else results[0]


def without_history(tensors: list[Tensor], out: Any, dirty: Sequence[Tensor]) -> Any:
    """Return the outputs of a call that is not recorded: an input that is returned becomes a view of it."""
    outputs = out if out.__class__ is tuple else (out,)
    _note_dirty(dirty, outputs)
    results = [
        constant(value._data, value._layout.plain)
        if _is_among(value, tensors) and not _is_among(value, dirty)
        else value
        for value in outputs
    ]
    return tuple(results) if out.__class__ is tuple else results[0]


def _is_among(value: Any, tensors: Sequence[Any]) -> bool:
    return id(value) in map(id, tensors)


def _note_dirty(dirty: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Note the writes of `forward`, which may have been hidden; raise unless what it has written to is returned."""
    for tensor in dirty:
        if not isinstance(tensor, Tensor):
            raise RuntimeError(f"mark_dirty can only accept variables, but argument is a {type(tensor).__name__}")
        if not _is_among(tensor, outputs):
            raise RuntimeError(_DIRTY_LOST)
        versions.note(tensor._array())


def _is_plain(saved: Sequence[Any], out: Tensor) -> bool:
    """Whether all saved values are kept as they are."""
    for value in saved:
        if value is out or value.__class__ is not Tensor or value._layout.__class__ is not Layout:
            return False
    return True


def _kept(saved: Sequence[Any], outputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return what the context keeps of saved tensors."""
    for index, value in enumerate(saved):
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {index} is of type {type(value).__name__}; "
                "set an attribute of ctx instead"
            )
        if value is not None and value._layout.__class__ is InferenceLayout:
            raise RuntimeError(errors.INFERENCE_SAVED)
    hooks, kept = active(), []
    for value in saved:
        numbers = [number for number, output in enumerate(outputs) if value is output and value is not None]
        if numbers:
            value = SavedOutput(numbers[-1], raw_data(value), value._layout.plain)
        kept.append(value if hooks is None else _packed(value, hooks))
    return tuple(kept)


def _node_of(result: Tensor) -> TapeNode:
    assert isinstance(result._node, list)
    return result._node


def _packed(value: Any, hooks: saved_tensors_hooks) -> Any:
    if value is None:
        return None
    if value.__class__ is SavedOutput:
        return SavedPacked(hooks.packed(constant(value.data, value.layout)), value.number, None)
    return SavedPacked(hooks.packed(value), None, value._node)


def _name_of(node_class: type) -> str:
    return node_class.__name__.removesuffix("Backward")


def _with_history(
    value: Tensor, result: Tensor, args: Sequence[Any], dirty: Sequence[Tensor], part: tuple[str, int, bool]
) -> Tensor:
    """Return an output with the history of a recorded result.

    One that shows the memory of an input may not be written to, nor used after a write to that input: its history would
    be that of a plain view, without the function's `backward`. Errors say which `part` of the results it is.
    """
    if dirty and _is_among(value, dirty):
        from tapegrad.ops.history import rewrite  # at call time: that folder imports this one

        rewrite(value, result)
        return value
    if _is_among(value, args):
        result._viewed, result._part_of, result._data = views.root_of(value), part, value._array()[...]
        return result
    # Forward was not recorded, so a view knows a base without history.
    if getattr(value, "_viewed", None) is not None and value._data.base is not None:
        del value._viewed
        owner = versions.owner_of(value._data)
        for tensor in args:
            if isinstance(tensor, Tensor) and versions.owner_of(tensor._array()) is owner:
                value._viewed, value._part_of = views.root_of(tensor), part
    value._node, value._layout = result._node, result._layout
    return value


def as_shown(name: str, value: Tensor, result: Tensor, *args: Any) -> Tensor:
    """Return the one output of a `Function`, an argument or a view, with the history of a recorded result."""
    return _with_history(value, result, args, (), (name, 0, True))


def _new_plan(op: Op, layouts: tuple[Layout, ...], attrs: dict[str, Any], differentiable: dict[int, Layout]) -> Plan:
    if len(differentiable) > 1:
        return plan_of_several(op, layouts, attrs, identity, differentiable, _ATTRIBUTES)
    (result,) = differentiable.values()
    return Plan(op, layouts, attrs, identity, result, _ATTRIBUTES)
