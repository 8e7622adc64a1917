"""Files made from the op table: `python -m tools.stubs` writes them, with `--check` it only compares.

Editors and type checkers do not run code, so that they know nothing of lists that are made from a table. The stubs say
what a module or a class gets: `tapegrad`, `tapegrad.linalg` and other modules that have public functions, none of
which have other code, and the methods of Tensor, as a base class that exists for type checkers only. What the examples
in docstrings of ops print is written down too, so that it is not computed at each import; docs/reference/ops.md is the
table itself, for readers, and the last section of docs/understand/kinks.md has its points.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

from tapegrad.ops import bind
from tapegrad.ops.table import loading, public
from tapegrad.ops.table.callers import OLDER_NAMES, OUT, other_names
from tapegrad.ops.table.docs import example_output, has_example
from tapegrad.ops.table.op import op_table, xp
from tapegrad.ops.table.scope import PAGE
from tools import kinks_page
from tools.ops_page import page

ROOT = Path(__file__).parents[1]

BUILTINS = ("None", "bool", "complex", "float", "int", "object", "str", "tuple", "list", "dict")
HEADER = '"""{doc}\n\nWritten by `python -m tools.stubs`, from the public functions.\n"""\n\n'

# Where the names in annotations come from: those that are no classes, or that a function's file does not import.
sources = {"DTypeLike": "numpy.typing", "DeviceLike": "tapegrad.devices", "Any": "typing", "Tensor": "tapegrad.tensor"}


def _note_source(name: str, space: Mapping[str, Any], text: str) -> None:
    """Note where a name comes from, as a function has it.

    Raises
    ------
    ValueError
        If it is no class.
    """
    found = space.get(name)
    if not hasattr(found, "__qualname__") or not hasattr(found, "__module__"):
        raise ValueError(
            f"tools/stubs.py does not know where the name {name!r} of annotation {text!r} comes from: "
            "use a class that its file imports, or write the type out"
        )
    sources[name] = found.__module__


def _annotation(annotation: Any, space: Mapping[str, Any], within_class: bool) -> str:
    if annotation is inspect.Parameter.empty:
        return "Any"
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*", text):
        if name not in BUILTINS and name not in sources and name != "np":
            _note_source(name, space, text)
    # Tensor has methods of these names.
    return re.sub(r"(?<![\w.])(int|float|bool)\b", r"builtins.\1", text) if within_class else text


def _default(value: Any) -> str:
    return repr(value) if value is None or isinstance(value, (bool, int, float, str)) else "..."


def signature_of(function: Callable[..., Any], is_method: bool) -> str:
    """Return parameters and the type of the result as a stub has them, with NumPy's names behind."""
    signature, space = inspect.signature(function), getattr(inspect.unwrap(function), "__globals__", {})
    parts = []
    keywords_only = has_numpy_name = False
    theirs = {name: ours for name, ours in other_names(function).items() if name not in signature.parameters}
    for number, one in enumerate(signature.parameters.values()):
        if one.name == OUT:
            continue
        if one.kind is one.KEYWORD_ONLY and not keywords_only:
            parts.append("*")
        keywords_only = one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        if is_method and number == 0:
            parts.append("self")
            continue
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        kind = "Any" if number == 0 and one.annotation == "Tensor" else _annotation(one.annotation, space, is_method)
        has_numpy_name |= one.name in theirs.values()  # which may be given instead, so that none behind is required
        default = f" = {_default(one.default)}" if one.default is not one.empty else " = ..." if has_numpy_name else ""
        default = "" if star else default
        parts.append(f"{star}{one.name}: {kind}{default}")
    parts += ["*"] if theirs and not keywords_only else []
    for name, ours in theirs.items():
        own = _annotation(signature.parameters[ours].annotation, space, is_method)
        parts.append(f"{name}: {'bool | None' if ours in OLDER_NAMES else own} = ...")
    if not is_method and OUT in getattr(getattr(function, "__code__", None), "co_varnames", ()):
        parts += ["*"] if not (keywords_only or theirs) else []
        parts.append(f"{OUT}: Any = ...")
    return f"({', '.join(parts)}) -> {_annotation(signature.return_annotation, space, is_method)}"


def _definition(name: str, function: Callable[..., Any], is_method: bool) -> str:
    summary = (inspect.getdoc(function) or "").partition("\n")[0].replace("\\", "\\\\")
    doc = f'"""{summary}"""' if summary else "..."
    return f"def {name}{signature_of(function, is_method)}:\n    {doc}\n"


def _imports(body: str, *more: str) -> str:
    lines = [
        f"from {module} import {name}" for name, module in sources.items() if re.search(rf"[ \[]{name}\b(?! as)", body)
    ]
    lines = [line for line in lines if f"{line} as {line.rpartition(' ')[2]}" not in more]
    lines += ["import builtins"] if "builtins." in body else []
    lines += ["import numpy as np"] if re.search(r"\bnp\.\w+", body) else []
    return "\n".join([*lines, *more]) + "\n\n"


def module_stub(doc: str, functions: Mapping[str, Callable[..., Any]]) -> str:
    """Return the stub of a module that consists of these functions."""
    classes = [name for name, one in functions.items() if isinstance(one, type)]
    body = "\n".join(_definition(name, one, False) for name, one in functions.items() if name not in classes)
    imports = _imports(body, *(f"from {functions[name].__module__} import {name} as {name}" for name in classes))
    listed = ", ".join(f'"{name}"' for name in functions)
    return f"{HEADER.format(doc=doc)}{imports}__all__ = [{listed}]  # fmt: skip\n\n{body}"


def class_stub() -> str:
    """Return the stub of the class that has Tensor's operations."""
    operations = bind.attributes()
    parts = [_definition(name, one, True) for name, one in operations.items() if not isinstance(one, property)]
    parts += [
        f"@property\n{_definition(name, one.fget, True)}"
        for name, one in operations.items()
        if isinstance(one, property) and one.fget is not None
    ]
    body = "\n".join("    " + line if line else "" for part in parts for line in part.split("\n"))
    doc = "The operations of Tensor, as type checkers see them."
    head = f'class TensorMethods:\n    """{doc}"""\n\n'
    return f"{HEADER.format(doc=doc)}{_imports(body)}{head}{body}"


def example_outputs() -> str:
    """Return the file that says what the examples of ops print."""
    ops = sorted(op_table.values(), key=attrgetter("name"))
    outputs = {op.name: example_output(op) for op in ops if has_example(op)}
    doc = "What the examples in docstrings of ops print."
    return f"{HEADER.format(doc=doc)}OUTPUTS = {outputs!r}\n"


def import_all() -> None:
    """Import all files that have public functions, and say to this process in which file each name stands.

    Files may come first that need names of others, which are not known yet: they are imported again.
    """
    files = [f"tapegrad.ops.{path.stem}" for path in sorted((ROOT / "tapegrad" / "ops").glob("*.py"))]
    for _ in range(2):
        for file in files:
            with contextlib.suppress(AttributeError):
                importlib.import_module(file)
    loading.files.clear()
    loading.files[loading.RULES] = dict(xp._files)
    for one in public.registry:
        for place, name in one.places():
            loading.files.setdefault(place, {})[name] = one.file
    for file in files:
        importlib.import_module(file)


def places() -> str:
    """Return the file that says in which file of `tapegrad.ops` each name stands."""
    doc = "Which names stand in each file of `tapegrad.ops`, by the lists that have them."
    found: dict[str, dict[str, str]] = {}
    for place, names in sorted(loading.files.items()):
        by_file = {file: " ".join(sorted(name for name in names if names[name] == file)) for file in names.values()}
        found[place] = dict(sorted(by_file.items()))
    return f"{HEADER.format(doc=doc)}PLACES: dict[str, dict[str, str]] = {found!r}\n"


def stubs() -> dict[str, str]:
    """Return the text of each file by its path."""
    import_all()
    made = {
        "tapegrad/ops/table/places.py": places(),
        "tapegrad/methods.pyi": class_stub(),
        "tapegrad/ops/table/outputs.py": example_outputs(),
        PAGE: page(),
        kinks_page.PAGE: kinks_page.page((ROOT / kinks_page.PAGE).read_text(encoding="utf-8")),
    }
    for namespace in public.NAMESPACES:
        module = importlib.import_module("tapegrad.ops.table.functions" if namespace == public.TOP else namespace)
        path = Path(str(module.__file__)).relative_to(ROOT).with_suffix(".pyi")
        doc = (module.__doc__ or "").partition("\n")[0]
        own = {name: value for name, value in vars(module).items() if name in module.__all__}
        made[path.as_posix()] = module_stub(doc, dict(sorted({**own, **public.functions(namespace)}.items())))
    return made


def formatted(path: str, text: str) -> str:
    """Return a file as ruff formats it, with sorted imports."""
    run = [sys.executable, "-m", "ruff"]
    for command in (["check", "--fix-only", "--quiet", "--select", "I"], ["format", "--quiet"]):
        done = subprocess.run(
            [*run, *command, "--stdin-filename", path, "-"], input=text, capture_output=True, text=True, cwd=ROOT
        )
        if done.returncode:
            raise RuntimeError(f"ruff does not take {path}: {done.stderr}")
        text = done.stdout
    return text


def main() -> int:
    """Write the stubs, or say which are stale."""
    parser = argparse.ArgumentParser(prog="python -m tools.stubs", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a stub is stale")
    check = parser.parse_args().check
    stale = []
    for path, text in stubs().items():
        new, file = formatted(path, text) if path.endswith((".py", ".pyi")) else text, ROOT / path
        if not file.exists() or file.read_text(encoding="utf-8") != new:
            stale.append(path)
            if not check:
                file.write_text(new, encoding="utf-8")
    if stale:
        print(f"{'stale' if check else 'written'}: {', '.join(stale)}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
