"""Numba's parts that `jit.py` uses: intrinsics in its form, its pipeline of passes, and its library of code."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, Final

from tapegrad.compiler import values
from tapegrad.compiler.elements import divide
from tapegrad.compiler.intrinsics import Intrinsic
from tapegrad.compiler.values import Known, Pointer, Value

__all__ = ["as_numbas", "library", "pipeline", "type_of"]


def as_numbas(own: Intrinsic) -> Any:
    """Return an intrinsic in numba's form. To know its result's type, it is emitted once in vain."""
    from llvmlite import ir
    from numba.core import types as nb
    from numba.extending import intrinsic

    first, *others = inspect.signature(own.function).parameters.values()
    is_packed = bool(others) and others[-1].kind is inspect.Parameter.VAR_POSITIONAL  # numba makes a tuple of *args
    alone = len(others) - 1

    def definition(typingctx: Any, *types: Any) -> Any:
        kinds = [_kind(each) for each in types]
        trial = ir.IRBuilder(ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), []), "trial").append_basic_block())

        def known(kind: Any, each: Any) -> Value:
            """Return the value that numba's type stands for, or one that is not defined."""
            number = getattr(each, "literal_value", 0)
            if own.constants:
                return values.word(number)
            return Value(kind, tuple(ir.Constant(part, ir.Undefined) for part in values.types_of(kind)))

        result = type_of(own.emit(trial, *map(known, kinds, types)).kind)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            given = list(args)
            if is_packed:
                *given, rest = args
                given += [builder.extract_value(rest, place) for place in range(len(types) - alone)]
            pairs = zip(kinds, given, strict=True)
            found = [Value(kind, tuple(_parts(builder, kind, each))) for kind, each in pairs]
            return _joined(
                context, builder, result, own.emit(builder, *(map(known, kinds, types) if own.constants else found))
            )

        # numba makes code anew for each constant of a signature, so that it keeps those that are needed.
        kept = [
            each if own.constants or isinstance(kind, Known) else nb.unliteral(each)
            for each, kind in zip(types, kinds, strict=True)
        ]
        if is_packed:
            kept = [*kept[:alone], nb.StarArgTuple(kept[alone:])]
        return result(*kept), codegen

    definition.__name__ = own.__name__
    parameters = [first.replace(name="typingctx"), *others]
    definition.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    # prefer_literal: dtypes and sizes are wanted as constants, never as runtime values.
    return intrinsic(prefer_literal=True)(definition)


def _kind(own: Any) -> Any:
    """Return the kind of values of a type of numba's."""
    from numba.core import types as nb

    if isinstance(own, nb.StringLiteral):
        return Known(own.literal_value)
    own = nb.unliteral(own)
    if own == nb.none:
        return Known(None)
    if isinstance(own, nb.CPointer):
        return Pointer(str(own.dtype))
    if isinstance(own, nb.BaseTuple):
        return tuple(map(_kind, own))
    return str(own)


def type_of(kind: Any) -> Any:
    """Return numba's type of values of a kind."""
    from numba.core import types as nb

    if isinstance(kind, Pointer):
        return nb.CPointer(type_of(kind.dtype))
    if type(kind) is tuple:
        return nb.Tuple([type_of(own) for own in kind])
    return nb.boolean if kind == "bool" else getattr(nb, kind)


def _parts(builder: Any, kind: Any, value: Any) -> list[Any]:
    """Return the parts of one of numba's values."""
    if isinstance(kind, Known):
        return []
    if type(kind) is tuple:
        return [part for place, own in enumerate(kind)
                for part in _parts(builder, own, builder.extract_value(value, place))]  # fmt: skip
    if values.is_complex(kind):
        return [builder.extract_value(value, place) for place in range(2)]
    return [builder.bitcast(value, values.type_of(kind)) if isinstance(kind, Pointer) else value]


def _joined(context: Any, builder: Any, own: Any, value: Value) -> Any:
    """Return a value as numba's."""
    if type(value.kind) is tuple:
        elements = zip(own, values.elements_of(value), strict=True)
        return context.make_tuple(builder, own, [_joined(context, builder, *each) for each in elements])
    if values.is_complex(value.kind):
        made = context.make_complex(builder, own)
        made.real, made.imag = value.parts
        return made._getvalue()
    return builder.bitcast(value.one, context.get_value_type(own)) if isinstance(value.kind, Pointer) else value.one


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
