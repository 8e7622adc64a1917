"""From a module of LLVM's IR, as programs emit it, to object code.

Unlike a kernel's (`tapegrad.compiler.assembly`) its text has vectors already, and nothing in it is computed twice. So
functions are inlined where the text says so, and few passes follow: LLVM's own, which look for more in loops and in
memory, take up to five times as long and make no faster code.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import llvmlite.binding as llvm

from tapegrad.compiler.assembly import (
    FEW_PASSES,
    JitError,
    checked,
    emitted,
    hide,
    improve_functions,
    inline,
    target_machine,
)

__all__ = ["assemble_module"]

#: Lines from which on the code generator makes little effort. Its time grows with the square of a block's length:
#: 37,000 lines of a convolutional network's training step take 3 s in place of 15, and the code is as fast. Shorter
#: code may be slower, by 3 % in the mixture of Gaussians.
_VERY_LONG: Final = 12_000


def assemble_module(
    ir: str,
    symbol: str,
    imports: frozenset[str] = frozenset(),
    *,
    parts: Mapping[str, str] = MappingProxyType({}),
    name: str = "",
) -> bytes:
    """Return the object code of a module, optimised for this CPU.

    The module is verified first: LLVM ends the process where it meets wrong code later.

    Parameters
    ----------
    ir : str
    symbol : str
        The function that is wanted; all others become internal.
    imports : frozenset of str
        Functions that are found elsewhere, besides those of `tapegrad.compiler.assembly.ALLOWED`.
    parts : mapping
        LLVM's IR of functions that it calls, by their names, which become parts of it.
    name : str
        The function's name in the object code, if it is a part of a program.

    Raises
    ------
    JitError
        If LLVM refuses the text, if it does not define the function, or if it needs a function that is nowhere.

    Examples
    --------
    >>> len(assemble_module("define void @nothing() { ret void }", "nothing")) > 100
    True
    """
    machine = target_machine(1 if ir.count("\n") >= _VERY_LONG else 3)
    try:
        context = llvm.create_context()
        module = llvm.parse_assembly(ir, context)
        for own, text in parts.items():
            part = llvm.parse_assembly(text, context)
            hide(part.functions, own)
            part.triple, part.data_layout = module.triple, module.data_layout
            module.link_in(part)
        module.verify()
    except RuntimeError as error:
        raise JitError(f"{symbol}: LLVM refuses the module. {error}") from None
    if all(function.is_declaration or function.name != symbol for function in module.functions):
        raise JitError(f"{symbol}: the module does not define it")
    hide((*module.functions, *module.global_variables), symbol)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    if name:
        module.get_function(symbol).name = name
    inline(module, passes)
    improve_functions(module, passes, FEW_PASSES)
    return checked(emitted(module, machine), symbol, imports)
