"""Programs as text and as files: they come back equal, and what is damaged is an error that says where."""

from __future__ import annotations

import copy
import io
import json
import pickle
import random
import re
import warnings
import zipfile
from collections import namedtuple
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.ops.table import loading
from tapegrad.ops.table.op import op_table
from tapegrad.program import Program
from tests.program_cases import CASES, ERROR, Case
from tests.tiers import mostly_full

X = np.array([0.3, -0.7, 1.1, 0.4])
loading.load_all()


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def programs_of(function: Any, *arguments: tuple[Any, ...]) -> list[Program]:
    compiled = tg.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for own in arguments:
            compiled(*own)
    found: list[Program] = compiled.programs
    return found


def assert_comes_back(program: Program) -> Program:
    text = program.text()
    found = Program.parse(text)
    assert found.text() == text
    assert found == program
    assert hash(found) == hash(program)
    return found


def bits(tree: Any) -> Any:
    leaves = [own.detach() if isinstance(own, tg.Tensor) else own for own in tg.func.trees.flatten(tree)]
    return [(type(own), np.asarray(own).tobytes()) for own in leaves]


@pytest.mark.parametrize(
    "case", mostly_full([one for one in CASES if one.kind is not ERROR], 4), ids=attrgetter("name")
)
def test_programs_of_users_come_back(case: Case) -> None:
    for transform in (lambda f: f, func.grad):
        try:
            programs = programs_of(transform(case.function), case.inputs, *case.others)
        except (RuntimeError, TypeError, ValueError):  # not a number
            assert transform is func.grad
            continue
        for program in programs:
            if program.has_functions:
                with pytest.raises(TypeError, match=r"autograd\.Function"):
                    program.text()
                continue
            found = assert_comes_back(program)
            for inputs in (case.inputs, *case.others):
                try:
                    expected = program(*inputs)
                except ValueError:  # another branch
                    with pytest.raises(ValueError, match=r"one than in the trace|takes arguments of"):
                        found(*inputs)
                    continue
                assert bits(found(*inputs)) == bits(expected)


@pytest.mark.parametrize("name", mostly_full(sorted(op_table), 6))
def test_programs_of_each_operation_come_back(name: str) -> None:
    op, rng = op_table[name], np.random.default_rng(0)
    for sample in op.samples[:3]:
        values = sample.values or (None,) * len(sample.shapes)
        arrays = []
        for shape, value in zip(sample.shapes, values, strict=False):
            drawn = value(shape, np.dtype(float), rng) if callable(value) else value
            low, high = (max(min(own, 3.0), -3.0) for own in op.domain)
            arrays.append(np.asarray(rng.uniform(low, high, shape) if drawn is None else drawn))
        try:
            program = Program.trace(lambda *xs, sample=sample: op.called(list(xs), sample.attrs), *arrays)
        except (IndexError, RuntimeError, TypeError, ValueError):
            continue  # what this operation looks at cannot be traced
        assert_comes_back(program)


def test_batches_of_items_with_branches_and_batches_inside() -> None:
    def item(a: Any, b: Any) -> Any:
        inner = tg.vmap(lambda row: (row * a).sum())(b)
        return tg.sin(inner) if a.sum() > 0 else inner * 2.0

    a, b = np.linspace(-1.0, 1.0, 40).reshape(20, 2), np.ones((20, 12, 2))
    program = Program.trace(tg.vmap(item), a, b)
    assert "item1(" in program.text()
    found = assert_comes_back(program)
    assert bits(found(a, b)) == bits(program(a, b))


def scanned(x: Any) -> Any:
    def step(value: Any, row: Any) -> Any:
        return tg.sin(value) * 0.9 + row * x[0], value * 2.0

    end, rows = func.scan(step, x, tg.stack([x] * 12))
    return (end * end).sum() + rows.sum()


def halved(x: Any) -> Any:
    return func.while_loop(lambda v: (v * v).sum() > 1e-3, lambda v: v * 0.7 - 0.01 * tg.sin(v), x).sum()


@pytest.mark.parametrize("function", [scanned, halved, func.grad(scanned), func.grad(halved), func.hessian(scanned)])
def test_loops(function: Any) -> None:
    program = Program.trace(function, X)
    assert "scan((item0" in program.text()
    found = assert_comes_back(program)
    for x in (X, X * 2.0):
        assert bits(found(x)) == bits(program(x))


Point = namedtuple("Point", ["x", "y"])


def test_arguments_and_results_in_containers() -> None:
    def f(p: Any, *, scale: Any, n: int, mode: str) -> Any:
        return {"out": Point(p["a"] * scale, [p["b"], n]), mode: None}

    compiled = tg.compile(f)
    given = {"a": X, "b": np.float32(2.0)}
    expected = compiled(given, scale=0.1, n=3, mode="m")
    found = assert_comes_back(compiled.programs[0])
    result = found(given, scale=0.1, n=3, mode="m")
    assert repr(result) == repr(expected)
    assert result["out"].y == expected["out"].y
    with pytest.raises(ValueError, match="takes arguments of the shapes"):
        found(given, scale=0.1, n=4, mode="m")
    with pytest.raises(ValueError, match="takes arguments of the shapes"):
        found(X, scale=0.1, n=3, mode="m")


def test_gradients_of_programs_that_came_back() -> None:
    x = tg.tensor(X, requires_grad=True)
    program = Program.trace(rosenbrock, x)
    found = assert_comes_back(program)
    found(x).backward()
    expected = func.grad(rosenbrock)(tg.tensor(X))
    np.testing.assert_allclose(x.grad.numpy(), expected.numpy(), rtol=1e-12)
    with pytest.raises(ValueError, match="requires grad"):
        Program.parse(Program.trace(rosenbrock, X).text())(x)


def test_a_program_that_came_back_is_a_part_of_others() -> None:
    found = Program.parse(Program.trace(rosenbrock, tg.tensor(X, requires_grad=True)).text())
    outer = tg.compile(func.grad(lambda x: found(x) * 2.0))
    np.testing.assert_allclose(outer(X), 2 * np.asarray(func.grad(rosenbrock)(tg.tensor(X)).numpy()), rtol=1e-12)


def test_tensors_from_outside_come_back() -> None:
    w = tg.nn.Parameter(tg.tensor([1.0, 2.0, 3.0, 4.0]))
    program = Program.trace(lambda x: (x * w).sum(), X)
    found = assert_comes_back(program)
    with tg.no_grad():
        w.mul_(2.0)
    assert found != program
    assert found(X).item() == pytest.approx(float(X @ [1, 2, 3, 4]))


def test_copies_and_pickles() -> None:
    program = Program.trace(func.grad(rosenbrock), X)
    assert copy.copy(program) is program
    for found in (copy.deepcopy(program), pickle.loads(pickle.dumps(program))):
        assert found is not program
        assert found == program
        assert bits(found(X)) == bits(program(X))
    assert {program: 1}[copy.deepcopy(program)] == 1


def test_equality_looks_at_everything() -> None:
    one = Program.trace(lambda x: x * 2.0, X)
    assert one == Program.trace(lambda x: x * 2.0, X)
    others = [
        Program.trace(lambda x: x * 3.0, X),
        Program.trace(lambda x: x * np.float64(2.0), X),
        Program.trace(lambda x: x + 2.0, X),
        Program.trace(lambda x: [x * 2.0], X),
        Program.trace(lambda x: x * 2.0, X[:3]),
        Program.trace(lambda x: x * 2.0, tg.tensor(X, requires_grad=True)),
        Program.trace(lambda x, n: x * 2.0, X, 3),
    ]
    assert all(one != other for other in others)
    assert one != "a string"


def test_user_functions_are_refused_with_their_names() -> None:
    twice = tg.kernel_op(lambda x: x * 2.0, lambda ct: ct * 2.0, name="twice_of_mine")
    program = Program.trace(lambda x: twice(x), X)
    with pytest.raises(TypeError, match="twice_of_mine"):
        program.text()
    with pytest.raises(TypeError, match="twice_of_mine"):
        pickle.dumps(program)


# ---- files


def saved(value: Any) -> bytes:
    file = io.BytesIO()
    tg.save(value, file)
    return file.getvalue()


def test_files(tmp_path: Any) -> None:
    program = Program.trace(lambda x: x @ np.arange(400.0).reshape(4, 100), X)
    path = tmp_path / "program.tg"
    program.save(path)
    found = Program.load(path)
    assert found == program
    assert bits(found(X)) == bits(program(X))
    many = tg.load(io.BytesIO(saved({"f": program, "x": tg.tensor(X)})))
    assert many["f"] == program
    with zipfile.ZipFile(path) as file:
        assert len(file.read("structure.json")) < 2000  # the matrix is an array of NumPy's
    with pytest.raises(RuntimeError, match="has a list, and no program"):
        Program.load(io.BytesIO(saved([1])))


def test_a_file_that_is_cut_short_is_an_error() -> None:
    data = saved(Program.trace(func.grad(rosenbrock), X))
    for length in range(0, len(data), 37):
        with pytest.raises(RuntimeError, match="load"):
            tg.load(io.BytesIO(data[:length]))


def run_if_it_loads(load: Any) -> bool:
    """Whether something loads; then it runs, and raises at most what ordinary calls raise."""
    try:
        found = load()
    except (RuntimeError, ValueError):
        return False
    if isinstance(found, Program):
        layouts = [found.layouts[number] for number in found.inputs]
        if sum(layout.nbytes for layout in layouts) < 1e6:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found.run([np.ones(layout.shape, layout.dtype) for layout in layouts])
                except (ArithmeticError, IndexError, RuntimeError, TypeError, ValueError):
                    pass
    return True


def test_flipped_bits_are_errors_or_other_programs() -> None:
    program = Program.trace(func.grad(lambda x: rosenbrock(x) + (x @ np.arange(12.0).reshape(4, 3)).sum()), X)
    data, rng = saved(program), random.Random(0)
    loaded = 0
    for _ in range(400):
        flipped = bytearray(data)
        for _ in range(rng.choice([1, 1, 4])):
            flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
        loaded += run_if_it_loads(lambda flipped=flipped: tg.load(io.BytesIO(bytes(flipped))))
    assert loaded < 100  # those in parts that nobody reads


NUMBERS = ("-1", "0", "1", "2", "3", "7", "100", "-100", "1000000", "2147483648", "4611686018427387904", "1.5")


def edited(text: str, rng: random.Random) -> str:
    """Return a text with another number, name or character in a line."""
    lines = text.splitlines()
    at = rng.randrange(1, len(lines))
    line, kind = lines[at], rng.random()
    if kind < 0.6:
        found = list(re.finditer(r"(?<![%\w.])-?\d+(?![\w.])", line))
        new = rng.choice((*NUMBERS, "None", "(1, 2)"))
    elif kind < 0.8:
        found = list(re.finditer(r"(in\d+|c\d+|%\d+)\b", line))
        new = rng.choice(["in0", "in1", "c0", "%0", "%1", "%5"])
    elif kind < 0.9:
        found = list(re.finditer(r"(float64|float32|int64|bool|True|False|None)", line))
        new = rng.choice(["float64", "float32", "int64", "bool", "complex128", "True", "False", "None"])
    else:
        found = list(re.finditer(r".", line))
        new = rng.choice('0123456789()[]{},:=<>@"%abc.-')
    if found:
        match = rng.choice(found)
        lines[at] = line[: match.start()] + new + line[match.end() :]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: func.grad(rosenbrock)(x),
        pytest.param(
            lambda x: tg.vmap(lambda row: tg.sin(row).cumsum(0)[1:] * row[0])(x.reshape(2, 2).repeat(10, 1)),
            marks=pytest.mark.full,
        ),
        lambda x: tg.linalg.solve(tg.diag(x) + 1.0, x).sum() if x.sum() > 0 else x,
        lambda x: tg.sort(x)[0][tg.argmax(x)] + tg.nn.functional.pad(x, (1, 2)).reshape(7, 1).max(0)[0],
        lambda x: tg.nn.functional.conv1d(x.reshape(1, 1, 4), tg.ones(1, 1, 2), padding=1),
        pytest.param(func.grad(scanned), marks=pytest.mark.full),
        func.grad(halved),
        lambda x: tg.as_strided(x, (2, 3), (1, 1)).flip(0).gather(1, tg.tensor([[0, 2], [1, 1]])),
    ],
)
def test_edited_texts_are_errors_or_other_programs(function: Any) -> None:
    text, rng = Program.trace(function, X).text(), random.Random(1)
    assert run_if_it_loads(lambda: Program.parse(text))
    failed = sum(not run_if_it_loads(lambda: Program.parse(edited(text, rng))) for _ in range(150))
    assert failed > 50


GOOD = """tapegrad program 1
program(in0: float64[3], in1: int64[]):
    c0 = 2.0
    %0: float64[3] = mul(in0, c0)
    %1: float64[] = sum(%0, dim=(0,), keepdim=False, dtype=None)
    return %1, in1
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("program 1", "program 2", "line 1.*first line should be"),
        ("%0: float64[3]", "%0: float64[4]", r"line 4.*mul\(\) gives float64\[3\], not float64\[4\]"),
        ("%0: float64[3]", "%0: float32[3]", "line 4.*gives"),
        ("mul(in0", "mul(in5", "line 4.*'in5' has no value yet"),
        ("mul(in0, c0)", "mul(in0)", r"line 4.*takes 2 operands, not 1"),
        ("mul(", "system(", "line 4.*no operation 'system'"),
        ("%1: ", "%0: ", "line 5.*has a value already"),
        ("dim=(0,)", "dim=(7,)", "line 5"),
        ("keepdim=False", "keepdim=1", "line 5"),
        (", dtype=None", "", "line 5.*attributes"),
        (", dtype=None", ", dtype=None, more=1", "line 5.*attributes"),
        ("dim=(0,)", "dim=(0", "line 5"),
        ("dim=(0,)", "dim=" + "(" * 100, "line 5.*nested"),
        ("c0 = 2.0", 'c0 = __import__("os")', "line 3.*unknown"),
        ("c0 = 2.0", 'c0 = array("object", [1], "AAAA")', "line 3.*no dtype"),
        ("c0 = 2.0", 'c0 = array("float64", [99999999999999999999], "AAAA")', "line 3"),
        ("c0 = 2.0", 'c0 = "text"', "line 3.*no constant"),
        ("c0 = 2.0", "c0 = 2.0 2.0", "line 3.*too much"),
        ("in0: float64[3]", "in0: float64[-3]", "line 2.*no shape"),
        ("in0: float64[3]", "in0: float64[999999999999]", "line 4|line 2"),
        ("in1: int64[]", "in1: wrong[]", "line 2"),
        ("    return %1, in1\n", "", "line 6.*ends too early"),
        ("return %1", "return %9", "line 6.*no value yet"),
        ("in1\n", "in1\nresult = <0>\n", "line 7.*a signature has"),
    ],
)
def test_a_wrong_line_is_named(old: str, new: str, words: str) -> None:
    assert Program.parse(GOOD).text() == GOOD
    assert old in GOOD
    with pytest.raises(ValueError, match=re.compile(words, re.DOTALL)):
        Program.parse(GOOD.replace(old, new, 1))


@pytest.mark.parametrize(
    ("function", "old", "new"),
    [
        (lambda x: tg.nn.functional.layer_norm(x, (4,)), "parts=(1, 1, 4)", "parts=(2, 2, 3)"),
        (lambda x: tg.nn.functional.cross_entropy(x, tg.tensor(1)), "dim=(1,)", "dim=(4,)"),
        (lambda x: tg.nn.functional.cross_entropy(x, tg.tensor(1)), "[1], (1,)", "[1], (9,)"),
        (lambda x: func.grad(lambda x: tg.logcumsumexp(x, 0).sum())(x), "recurrence", "recurrence"),
        (lambda x: tg.as_strided(x, (2,), (1,)), "(2,), (1,)", "(2,), (9,)"),
        (lambda x: tg.as_strided(x, (2,), (1,)), "(2,), (1,)", "(20,), (0,)"),
    ],
)  # fmt: skip
def test_attributes_that_kernels_take_for_granted(function: Any, old: str, new: str) -> None:
    text = Program.trace(function, X).text()
    assert old in text
    lines = [line.replace("dim=(0,)", "dim=(3,)") if new == "recurrence" in line else line.replace(old, new)
             for line in text.splitlines()]  # fmt: skip
    with pytest.raises(ValueError, match="this is no program"):
        Program.parse("\n".join(lines))


def test_functions_of_operations_that_raise_anything() -> None:
    text = Program.trace(lambda x: tg.linalg.solve(tg.diag(x) + 1.0, x), X).text()
    line = next(own for own in text.splitlines() if "= solve(" in own)
    first = re.search(r"solve\((\S+),", line)
    assert first is not None
    constant = next(own for own in text.splitlines() if re.search(r"c\d+ = [\d.]+$", own)).split()[0]
    with pytest.raises(ValueError, match=f"this is no program: line {text.splitlines().index(line) + 1}, "):
        Program.parse(text.replace(line, line.replace(f"solve({first[1]},", f"solve({constant},")))


def test_a_part_of_no_elements() -> None:
    """NumPy makes a view beyond a buffer of no bytes."""
    text = Program.trace(lambda x: tg.as_strided(x, (2, 3), (1, 1)).flip(0), X).text()
    with pytest.raises(ValueError, match=r"this is no program: line 3, .*strided_part"):
        Program.parse(text.replace("in0: float64[4]", "in0: float64[0]"))


def test_a_header_of_numpy_that_does_not_end() -> None:
    data, out = saved(tg.tensor(X)), io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            raw = old.read(name)
            new.writestr(name, raw.replace(b"}", b" ", 1) if name.endswith(".npy") else raw)
    with pytest.raises(RuntimeError, match="the array 0 has a header that NumPy cannot read"):
        tg.load(out)


def test_json_that_is_edited_by_hand() -> None:
    data = saved(Program.trace(lambda x: x @ np.arange(40.0).reshape(4, 10), X))

    def with_structure(change: Any) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(file, "w") as target:
            for name in source.namelist():
                content = source.read(name)
                if name == "structure.json":
                    structure = json.loads(content)
                    change(structure)
                    content = json.dumps(structure).encode()
                target.writestr(name, content)
        return file.getvalue()

    for value in (7, None, ["x"], {"tuple": [1]}, "", "tapegrad program 1", "array(5)"):
        with pytest.raises(RuntimeError, match=r"no program|as a string"):
            tg.load(io.BytesIO(with_structure(lambda own, value=value: own["value"].update(Program=value))))
    for old, new in (("array(0)", "array(1)"), ("array(0)", 'array("x")'), ("array(0)", "array()"), ("[4]", "[5]")):

        def change(own: Any, old: str = old, new: str = new) -> None:
            assert old in own["value"]["Program"]
            own["value"]["Program"] = own["value"]["Program"].replace(old, new)

        with pytest.raises(RuntimeError, match="line"):
            tg.load(io.BytesIO(with_structure(change)))


def test_a_number_may_spread_to_many_elements() -> None:
    x = np.linspace(0.0, 1.0, 30_000)
    program = Program.trace(tg.func.value_and_grad(lambda x: (x * x).mean() + (x[3:5] ** 2).sum()), x)
    value, slope = Program.parse(program.text())(x)
    expected = program(x)
    assert value == expected[0]
    np.testing.assert_array_equal(slope, expected[1])


def test_divisions_of_integers_come_back() -> None:
    """What a line gives is derived from divisors that are not 0."""
    one, two = np.array([-7, 5], np.int16), np.array([2, 3])
    for function in (lambda x, y: x // y, lambda x, y: x % y, lambda x, y: np.fmod(x, y), lambda x, y: x / y):
        program = Program.trace(function, one, two)
        assert Program.parse(program.text()) == program
