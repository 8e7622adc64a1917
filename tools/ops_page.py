"""The page docs/reference/ops.md: every public function and what is known of it; `python -m tools.stubs` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tapegrad.ops.table import public
from tapegrad.ops.table.composites import Composite, composites
from tapegrad.ops.table.op import Op, no_kernel
from tapegrad.ops.table.scope import OF_SCIPY, OUT_OF_SCOPE
from tools.kinks_page import as_text

HEAD = """\
# Operations

Every public function. Names, arguments and results are PyTorch's; NumPy's names of arguments do as well: `axis` for
`dim` and `dims`, `keepdims` for `keepdim`. `python -m tools.stubs` writes this page from the op
table; tests hold it to that.

- **NumPy**: functions and ufuncs of NumPy and SciPy that call it when they are called on tensors.
- **Method**: whether tensors have it as a method, and as one that writes to them (`_`).
- **Dtypes**: of gradients: real numbers only (float32, float64), or complex ones too (complex64, complex128).
  Integers and bools are data.
- **Made as**: an *op* with a rule of its own, whose cotangents a compiled *kernel* computes, or the *rule* itself with
  arrays of NumPy; a *composite* of ops; *data*: no gradient.
- **Orders**: to which order derivatives are tested: by finite differences, and where PyTorch is installed against
  it.
- **Kinks**: points at which the op states the gradient; [Kinks](../understand/kinks.md) has the choices.
"""


def _made_as(one: Op | Composite | None) -> tuple[str, str, str, str]:
    """Return dtypes, what it is made as, orders and kinks."""
    if one is None:
        return "", "data", "", ""
    dtypes = "real" if one.real_only else "real, complex"
    if isinstance(one, Composite):
        return dtypes, "composite", "3", ""
    if not callable(one.vjp) and not any(map(callable, one.vjp)):
        return "", "data", "", ""
    kinks = "; ".join(f"({as_text(point)})" if isinstance(point, tuple) else as_text(point) for point in one.special)
    return dtypes, "op, rule" if one.step is no_kernel else "op, kernel", "3", kinks


def _listed(names: Iterable[str]) -> str:
    return ", ".join([f"`{name}`" for name in names])


def _row(one: public.Public) -> str:
    names = one.names
    made: Op | Composite | None = getattr(one.function, "op", None) or composites.get(one.name)
    aliases = f" ({_listed(names.aliases)})" if names.aliases else ""
    by_numpy = [*names.functions, *names.ufuncs, *([f"{names.reduces}.reduce"] if names.reduces else [])]
    method = "attribute" if names.attribute else "yes" if names.method else ""
    method += " `_`" if names.inplace else ""
    cells = (f"`{one.name}`{aliases}", _listed(by_numpy), method.strip(), *_made_as(made))
    return f"| {' | '.join(cells)} |"


def _rows(namespace: str) -> Iterator[str]:
    yield "| Function | NumPy | Method | Dtypes | Made as | Orders | Kinks |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for one in sorted(public.registry, key=lambda entry: entry.name):
        if one.names.namespaces[:1] == (namespace,):
            yield _row(one)


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for namespace in public.NAMESPACES:
        parts += [f"## {namespace}\n", *_rows(namespace), ""]
    methods = [one for one in public.registry if not one.names.namespaces]
    if methods:
        parts += ["## Methods and attributes of tensors only\n", *_rows_of_methods(methods), ""]
    parts += ["## Out of scope\n", *_reasons(OUT_OF_SCOPE)]
    parts += ["\n## Out of scope in scipy.special\n", *_reasons(OF_SCIPY)]
    return "\n".join(parts) + "\n"


def _reasons(out_of_scope: Mapping[str, str]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for name, reason in out_of_scope.items():
        reasons.setdefault(reason, []).append(name)
    return (f"- {_listed(names)}: {reason}." for reason, names in reasons.items())


def _rows_of_methods(entries: list[public.Public]) -> Iterator[str]:
    yield "| Name | Attribute | Made as |"
    yield "| --- | --- | --- |"
    for one in sorted(entries, key=lambda entry: entry.name):
        made: Op | Composite | None = getattr(one.function, "op", None) or composites.get(one.name)
        yield f"| `{one.name}` | {'yes' if one.names.attribute else ''} | {_made_as(made)[1]} |"
