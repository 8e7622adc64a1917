"""Numba's private parts that `jit.py` uses: its pipeline of passes, and its library of code."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from tapegrad.compiler.elements import divide

__all__ = ["library", "pipeline"]

# Passes for closures made within a function, for expressions of arrays, and for checks of numba's other passes. Kernels
# have no use for them, and each is followed by an analysis of the whole function.
_UNNEEDED: Final = ("inline_closure_likes", "nopython_rewrites", "ir_legalization")


@cache
def pipeline() -> Any:
    """Return numba's compiler with one more pass: every ``/`` becomes `divide`, which never raises."""
    from operator import itruediv, truediv

    from numba.core import compiler, ir
    from numba.core.compiler_machinery import FunctionPass, register_pass
    from numba.core.untyped_passes import IRProcessing

    division = divide.compiled()  # before `_lower` refreshes the contexts: that makes it known to numba

    @register_pass(mutates_CFG=False, analysis_only=False)
    class Divisions(FunctionPass):  # type: ignore[misc]
        _name = "tapegrad_divisions"

        def __init__(self) -> None:
            super().__init__()

        def run_pass(self, state: Any) -> bool:
            for block in state.func_ir.blocks.values():
                for at in reversed(range(len(block.body))):
                    statement = block.body[at]
                    if not (isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr)):
                        continue
                    expr = statement.value
                    if "binop" not in expr.op or expr.fn not in (truediv, itruediv):
                        continue
                    name = block.scope.redefine("$divide", expr.loc)
                    value = ir.Global("divide", division, expr.loc)
                    statement.value = ir.Expr.call(name, [expr.lhs, expr.rhs], (), expr.loc)
                    block.body.insert(at, ir.Assign(value, name, expr.loc))
                    state.func_ir._definitions[name.name].append(value)
                    definitions = state.func_ir._definitions[statement.target.name]
                    definitions[definitions.index(expr)] = statement.value
            return True

    class Pipeline(compiler.Compiler):  # type: ignore[misc]
        def define_pipelines(self) -> list[Any]:
            (manager,) = super().define_pipelines()
            manager.passes = [own for own in manager.passes if own[0].name() not in _UNNEEDED]
            manager.add_pass_after(Divisions, IRProcessing)
            manager.finalize()
            return [manager]

    return Pipeline


@cache
def library() -> Any:
    """Return a class like numba's library of code that links callees, and neither optimises nor emits machine code."""
    from numba.core import codegen

    class Library(codegen.CPUCodeLibrary):  # type: ignore[misc]
        """If numba renames these hooks, the library still works, but slower."""

        is_callee = True  # a callee is optimised before it is inlined, which makes better loops

        def _optimize_functions(self, ll_module: Any) -> None:
            if self.is_callee:
                super()._optimize_functions(ll_module)
            else:
                ll_module.data_layout = self._codegen._data_layout

        def _optimize_final_module(self) -> None: ...

        def _finalize_final_module(self) -> None:
            self._finalized = True

    return Library
