"""From a module's text to machine code: checked, inlined and simplified, by passes that leave loops alone."""

from __future__ import annotations

from tapegrad.compiler import cache
from tapegrad.compiler.assembly import ALLOWED, JitError, target_machine, undefined_symbols

__all__ = ["address_of", "assemble"]


def assemble(ir: str) -> bytes:
    """Return the object code of a module that is written as it is to be: nothing is unrolled or vectorised.

    Raises
    ------
    RuntimeError
        If the module is not valid.
    """
    import llvmlite.binding as llvm

    machine = target_machine()
    module = llvm.parse_assembly(ir)
    module.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_new_gvn_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_aggressive_dce_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    code: bytes = machine.emit_object(module)
    foreign = sorted(undefined_symbols(code) - ALLOWED)
    if foreign:
        raise JitError(f"the object code needs {', '.join(foreign)}, which no library here defines")
    return code


def address_of(name: str, ir: str) -> int:
    """Return the address of a module's function, from the cache or compiled."""
    return cache.address_of_module(name, ir, assemble)
