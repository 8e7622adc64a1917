"""The house stands as docs/develop/architecture.md says: directions of imports, files named, their lengths."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tapegrad"
PAGE = (ROOT / "docs" / "develop" / "architecture.md").read_text()

# A folder, or a file outside of all, imports from those before it; those on one line do not import from each other.
ORDER = [
    {"_version", "runtime"},
    {"compiler"},
    {"vmath", "dtypes", "devices", "errors", "printing", "return_types"},
    {"modes"},
    {"type_info", "pass_modes"},
    {"tape"},
    {"methods"},  # a stub, for type checkers only
    {"tensor"},
    {"recording"},
    {"kernels"},
    {"forward"},
    {"ops/table"},
    {"sweep"},
    {"autograd"},
    {"ops"},
    {"amp", "jit"},
    {"linalg", "fft", "special", "masked", "cuda", "backends", "data", "func", "random"},
    {"nn"},
    {"optim", "utils", "distributions"},
    {"program"},
    {"sparse"},
    {"scipy"},
    {"distributed"},
    {"serialization"},
    {"tapegrad"},
    {"testing"},
    {"demo"},
    {"__main__"},
]
# What looks ahead: the file, where to, and how: always, in a call, or for type checks. The page has the reasons.
AHEAD = {
    ("return_types.py", "__init__.py", "call"),
    ("tape/entries.py", "tensor.py", "types"),
    ("tape/drawing.py", "tensor.py", "types"),
    ("tape/graph.py", "tensor.py", "types"),
    ("tape/graph.py", "autograd/saved.py", "call"),
    ("tape/hooks.py", "tensor.py", "types"),
    ("tape/memory_use.py", "tensor.py", "types"),
    ("tape/traces.py", "tensor.py", "types"),
    ("tape/views.py", "tensor.py", "types"),
    ("recording/plan.py", "ops/table/op.py", "types"),
    ("autograd/__init__.py", "testing/gradients.py", "types"),
    ("autograd/function_entry.py", "ops/history.py", "call"),
    ("func/mapping.py", "program/mapped.py", "call"),
    ("nn/modules/module.py", "program/decorator.py", "call"),
    ("func/__init__.py", "sparse/matrices.py", "types"),
    ("func/loops.py", "program/scanned.py", "call"),
    ("func/roots.py", "program/implicit.py", "call"),
    ("utils/checkpoint.py", "program/scanned.py", "call"),
    ("autograd/seeds.py", "program/mapped.py", "call"),
    ("ops/warmup.py", "optim/__init__.py", "call"),
    ("ops/warmup.py", "optim/compiled.py", "call"),
    ("ops/warmup.py", "program/entry.py", "call"),
    ("program/program.py", "serialization.py", "call"),
}
LONGEST = 350
LONGER: set[str] = set()
WRITTEN = "Written by `python -m tools.stubs`"  # nobody reads those

FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def station(file: str) -> str:
    """The folder of a file; its own name if it stands in none."""
    if file.startswith("ops/table/"):
        return "ops/table"
    return file.split("/")[0] if "/" in file else "tapegrad" if file == "__init__.py" else Path(file).stem


def file_of(module: str) -> str | None:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    for suffix in (".py", ".pyi"):
        if path.with_suffix(suffix).is_file() and path != PACKAGE:
            return path.with_suffix(suffix).relative_to(PACKAGE).as_posix()
    return (path / "__init__.py").relative_to(PACKAGE).as_posix() if (path / "__init__.py").is_file() else None


def imports(file: str, source: str) -> set[tuple[str, str, str]]:
    """All imports of our own modules in a file: (file, imported file, import | call | types)."""
    found = set()

    def look(node: ast.AST, how: str) -> None:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            module = node.module or ""
            names = [f"{module}.{alias.name}" if file_of(f"{module}.{alias.name}") else module for alias in node.names]
        for name in names:
            if name.split(".")[0] == "tapegrad":
                target = file_of(name)
                assert target is not None, f"{file} imports {name}"
                found.add((file, target, how))
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            how = "types"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            how = "call"
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):
                look(child, how)

    look(ast.parse(source), "import")
    return found


def ahead(found: set[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    """Those of some imports that go against the order."""
    rank = {name: number for number, names in enumerate(ORDER) for name in names}
    return {
        (file, target, how)
        for file, target, how in found
        if (here := station(file)) != (there := station(target)) and rank[there] >= rank[here]
    }


def test_imports_go_one_way():
    found = set()
    for file in FILES:
        found |= imports(file, (PACKAGE / file).read_text())
    assert len(found) > 500  # they are seen at all
    assert ahead(found) == AHEAD


@pytest.mark.parametrize(
    ("file", "source", "how"),
    [
        ("kernels/loops.py", "from tapegrad.ops import arithmetic", "import"),
        ("compiler/jit.py", "def f():\n    import tapegrad.recording.plan", "call"),
        ("vmath/lanes.py", "if TYPE_CHECKING:\n    from tapegrad.tensor import Tensor", "types"),
        ("ops/table/op.py", "from tapegrad.ops import arithmetic", "import"),
        ("errors.py", "from tapegrad import modes", "import"),
    ],
)
def test_an_import_ahead_is_seen(file, source, how):
    assert [kind for _, _, kind in ahead(imports(file, source))] == [how]


def test_every_exception_has_its_reason():
    reasons = PAGE.split("### Who imports whom")[1].split("###")[0]
    for file, _, _ in AHEAD:
        assert f"`{file}`" in reasons


def test_every_file_stands_in_the_page_and_every_file_there_exists():
    house = PAGE.split("## The house")[1].split("###")[0]
    folders = {name.rstrip("/") for name in re.findall(r"`([\w/]+/)`", house)}
    named, folder = set(), ""
    whole = {"data", "demo", "distributions", "nn", "nn/modules", "nn/utils", "optim", "utils", "utils/data", "vmath"}
    for line in house.splitlines():
        first = line.split("|")[1] if line.startswith("|") else ""
        headings = re.findall(r"\*\*`([\w/]+)/`\*\*", first)
        top = [name for name in re.findall(r"`(\w+\.py)`", first) if (PACKAGE / name).is_file()]
        if len(headings) == 1:
            folder = headings[0] + "/"
        names = re.findall(r"`(\w+\.py)`", line if headings else first)
        for name in names:
            inside = (PACKAGE / folder / name).is_file()
            assert inside or name in top, f"the page names {folder}{name}, which does not exist"
            named |= {folder + name} if inside and name not in top else {folder + name, name}
    missing = [
        file
        for file in FILES
        if file not in named and not file.endswith("__init__.py") and file.rpartition("/")[0] not in whole
    ]
    assert missing == []
    assert {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")} - {"."} <= folders


def test_files_are_readable_at_a_sitting():
    texts = {file: (PACKAGE / file).read_text() for file in FILES}
    longer = {file for file, text in texts.items() if text.count("\n") > LONGEST and WRITTEN not in text}
    assert longer == LONGER
    reasons = PAGE.split("### Longer files")[1].split("\n## ")[0]
    assert all(f"`{file}`" in reasons for file in LONGER)


def test_tests_that_the_page_of_semantics_names_exist():
    page = (PACKAGE.parent / "docs" / "understand" / "semantics.md").read_text()
    tests = {file.stem: file.read_text() for file in Path(__file__).parent.glob("test_*.py")}
    whole = "\n".join(tests.values())
    named = set(re.findall(r"\btest_\w+", page))
    assert len(named) > 60
    assert [name for name in sorted(named) if name not in tests and f"def {name}(" not in whole] == []


def test_errors_of_operands_say_their_place_among_the_parameters() -> None:
    checked, checks = 0, ("as_operand", "square_matrices")
    for file in FILES:
        text = (PACKAGE / file).read_text()
        for function in ast.walk(ast.parse(text)) if any(check in text for check in checks) else ():
            if not isinstance(function, (ast.FunctionDef, ast.Lambda)):
                continue
            names = [own.arg for own in (*function.args.posonlyargs, *function.args.args)]
            for call in ast.walk(function):
                if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") in checks):
                    continue
                operand, place = next(own.id for own in call.args if isinstance(own, ast.Name)), call.args[-1]
                # Those of helpers, which are told what to say, and of methods are not all of the parameters.
                if operand in names and isinstance(place, ast.Constant) and not {"call", "name", "self"} & set(names):
                    assert names.index(operand) + 1 == place.value, f"{file}: {ast.unparse(call)}"
                    checked += 1
    assert checked > 60
