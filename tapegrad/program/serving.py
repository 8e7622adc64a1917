"""From a version of a compiled function to the variant by which compiled code serves calls of one kind."""

from __future__ import annotations

from typing import Any

from tapegrad.func.trees import flatten, rebuild
from tapegrad.program.entry import Input, Output, Variant, argument_kind
from tapegrad.program.given import Given
from tapegrad.program.prepared import prepared
from tapegrad.program.program import Program
from tapegrad.program.templates import GradOf, Made
from tapegrad.program.version import Version
from tapegrad.tensor import Tensor

__all__ = ["variant_of"]


def variant_of(version: Version, given: Given) -> Variant | None:
    """Return the variant for calls like one that a version has served; None if Python has to serve them."""
    if version.run.code is None or not version.outside.is_served or version.new_leaves:
        return None
    layouts = [version.program.layouts[number] for number in version.program.inputs]
    filled = list(given.leaves)
    kinds: list[type] = []
    for place, layout, wanted in zip(given.places, layouts, given.wanted, strict=False):
        kind = argument_kind(filled[place], layout)
        if kind is None:
            return None
        filled[place] = Input(kind, layout.tracked if wanted else layout)
        kinds.append(kind)
    is_recorded = version.outside.is_recorded(given.wanted)
    key = is_recorded, *kinds
    variant = version.variants.get(key) or _made(version, given, filled, is_recorded)
    if variant is not None:
        version.variants[key] = variant
    return variant


def _made(version: Version, given: Given, filled: list[Any], is_recorded: bool) -> Variant | None:
    program, outside = version.program, version.outside
    arguments, keywords = rebuild(given.tree, filled)
    inputs = [own for own in filled if isinstance(own, Input)]
    first = len(arguments) + len(keywords)
    captured, changes = prepared(outside, program, len(inputs), first, is_recorded=is_recorded)
    inputs += [Input(Tensor if isinstance(own, GradOf) else type(own), layout) for own, layout in captured]
    del inputs[len(program.inputs) :]  # what is written to only
    end = len(version.places) + len(outside.puts)
    plan, parts = _plans_of_calls(program, inputs, end) if is_recorded else (None, {})
    try:
        return version.run.variant(
            arguments,
            keywords=keywords,
            result=_result(version, end),
            captured=captured,
            changes=changes,
            as_tensors=not given.has_arrays,
            plan=plan,
            parts=parts,
        )
    except TypeError:  # a container that compiled code does not know
        return None


def _plans_of_calls(program: Program, inputs: list[Input], end: int) -> Any:
    from tapegrad.program.call_entries import plans_of_calls  # at call time: it imports what differentiates programs

    return plans_of_calls(program, inputs, end)


def _result(version: Version, end: int) -> Any:
    """Return the template of the result; the outputs behind it are put in attributes."""
    leaves = flatten(version.tree)
    for number, place in enumerate(version.places):
        leaves[place] = Output(number)
    whole = rebuild(version.tree, leaves)
    behind = [Output(number) for number in range(len(version.places), end)]
    return Made(version.outside.result, (whole, *behind)) if behind else whole
