"""The reference: each public name on one page, formulas read from the op table, plots of what it computes."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.table.op import op_table, xp
from tapegrad.ops.table.public import METHODS, NAMESPACES, NUMPY, WRITES, names_in
from tests.latex import evaluate

pytest.importorskip("matplotlib")
from docs.extensions import formulas, name_tables, plots, public_names
from docs.extensions.op_notes import op_notes


def test_each_public_name_stands_on_one_page() -> None:
    assert public_names.problems() == []
    listed = [one.path for sections in public_names.pages().values() for section in sections for one in section.names]
    assert sorted(listed) == sorted(one.path for one in public_names.names())
    assert len(set(listed)) == len(listed)


def test_a_file_that_no_page_has_is_a_problem(tmp_path: Path) -> None:
    text = "# Page\n\n```{eval-rst}\n.. operations:: ops.transcendental\n   ops.sines\n```\n"
    (tmp_path / "page.md").write_text(text * 2)
    found = public_names.problems(tmp_path)
    assert "ops.transcendental stands in two sections of docs/reference" in found
    assert "ops.sines, in a section of docs/reference, has no public name" in found
    assert any(
        "has `serialization` among its operations, which defines tapegrad.save, tapegrad.load" in one for one in found
    )


def test_lists_of_modules_are_in_the_reference() -> None:
    known = set(name_tables.by_path())
    for namespace in NAMESPACES:
        assert {f"{namespace}.{name}" for name in names_in(namespace)} <= known
    for module in ("", ".autograd", ".func", ".linalg", ".optim", ".optim.lr_scheduler", ".utils.data", ".testing"):
        namespace = __import__(f"tapegrad{module}", fromlist=["__all__"])
        values = {name: getattr(namespace, name) for name in namespace.__all__}
        own = {f"tapegrad{module}.{name}" for name, value in values.items() if type(value).__name__ != "module"}
        assert own <= known
    methods = {name for name, _ in name_tables.methods()}
    assert {*names_in(METHODS), *(f"{name}_" for name in names_in(WRITES))} - methods <= {
        name for name in vars(tg.Tensor) if not name.startswith("_")
    }


def test_a_namespace_of_a_file_may_stand_elsewhere() -> None:
    source = "ops.composite"
    assert public_names.meant(source, [source]) == {source, f"{source}:nn.functional"}
    assert public_names.meant(source, [source, f"{source}:nn.functional"]) == {source}


def test_names_of_numpy_lead_to_our_functions() -> None:
    found = dict(name_tables.ufuncs()) | dict(name_tables.numpy_functions())
    assert found["np.arcsin"].value is tg.asin
    assert found["np.power"].value is tg.pow
    assert found["scipy.special.gammainc"].value is tg.special.gammainc
    assert found["np.linalg.inv"].value is tg.linalg.inv
    assert {f"np.{name}" for name in names_in(NUMPY)} <= set(found)
    further = {name for _, names in name_tables.further_functions() for name in names}
    assert {"np.reshape", "np.interp", "np.polyfit", "np.linalg.trace"} <= further
    assert not further & set(found)


@pytest.mark.parametrize(
    ("name", "value", "rules"),
    [
        ("tanh", None, [r"\bar{x} = \bar{y}\,{\left(1 - {y}^{2}\right)}^*"]),
        ("mul", None, [r"\bar{x} = \bar{z}\,{y}^*", r"\bar{y} = \bar{z}\,{x}^*"]),
        ("cos", None, [r"\bar{x} = -\bar{y}\,{\left(\sin x\right)}^*"]),
        ("erf", None, [r"\bar{x} = \frac{2\,\bar{y}\,e^{-{x}^{2}}}{\sqrt{\pi}}"]),
        ("logit", r"y = \log\left(\frac{x}{1 - x}\right)", []),
        ("floor", None, [r"\bar{x} = 0"]),
        (
            "hardsigmoid",
            r"y = \begin{cases} 0 & x \le -3 \\ 1 & x \ge 3 \\ \frac{x + 3}{6} & \text{else} \end{cases}",
            [r"\bar{x} = \begin{cases} \frac{\bar{y}}{6} & x > -3 \wedge x < 3 \\ 0 & \text{else} \end{cases}"],
        ),
        ("sinc", r"y = \begin{cases} 1 & x = 0 \\ \frac{\sin(\pi\,x)}{\pi\,x} & \text{else} \end{cases}", []),
        (
            "spence",
            None,
            [r"\bar{x} = \bar{y}\,\begin{cases} -1 & x = 1 \\ \frac{\log x}{1 - x} & \text{else} \end{cases}"],
        ),
        ("isnan", None, []),
    ],
)
def test_formulas_are_those_of_the_table(name: str, value: str | None, rules: list[str]) -> None:
    assert formulas.value(op_table[name]) == value
    assert formulas.derivatives(op_table[name]) == rules


def test_formulas_are_what_is_computed() -> None:
    """Read back from LaTeX, the formulas of values and rules give what the library computes."""
    checked = 0
    for one in public_names.names():
        op = getattr(one.value, "op", None)
        if one.entry is None or op is None or op.family not in formulas.FAMILIES:
            continue
        pairs = zip(op.operands, op.samples[0].values or (), strict=False)
        numbers = {name: n for name, n in pairs if isinstance(n, float)}
        letters = [name for name in op.operands if name not in numbers]
        if not {*letters} <= {*"xyz"}:
            continue
        found = [re.fullmatch(r"\\bar{([xyz])} = (.*)", text) for text in formulas.derivatives(op, op.operands)]
        rules = {one[1]: one[2] for one in found if one}
        value, result = formulas.value(op, op.operands), formulas.result_of(op)
        rng = np.random.default_rng(1)
        operands = {name: tg.tensor(rng.uniform(*op.domain, 20), requires_grad=name in rules) for name in letters}
        out = getattr(xp, op.name)(*operands.values(), *numbers.values())
        bar = tg.tensor(rng.normal(size=20))
        values = {name: x.detach().numpy() for name, x in (*operands.items(), (result, out))}
        known = {**values, rf"\bar{{{result}}}": bar.numpy()}
        known |= {formulas.letter_of(name): n for name, n in numbers.items()}
        if value:
            np.testing.assert_allclose(
                evaluate(value.partition(" = ")[2], known), values[result], 1e-5, 1e-9, err_msg=value
            )
        if rules:
            out.backward(bar)
        for name, text in rules.items():
            grad = operands[name].grad
            assert grad is not None
            found = np.broadcast_to(evaluate(text, known), 20)
            np.testing.assert_allclose(found, grad.numpy(), 1e-5, 1e-9, err_msg=f"{one.path}: {text}")
        checked += bool(value or rules)
    assert checked > 100


def test_the_reader_of_formulas_notices_wrong_ones() -> None:
    x = np.array([0.5, 2.0])
    assert evaluate(r"\frac{1}{x}\,{\left(1 + {x}^{2}\right)}^*", {"x": x}).tolist() == [2.5, 2.5]
    assert evaluate(r"\begin{cases} 0 & x < 1 \\ -x & \text{else} \end{cases}", {"x": x}).tolist() == [0, -2]
    assert evaluate(r"-x\,e^{-x}", {"x": x}).tolist() == (-x * np.exp(-x)).tolist()
    with pytest.raises(KeyError, match="y"):
        evaluate("x + y", {"x": x})


def test_formulas_have_the_names_that_users_know() -> None:
    op = op_table["leaky_relu"]
    assert formulas.value(op) is None  # where the public function calls its number otherwise
    assert r"\mathit{negative\_slope}" in (formulas.value(op, ["input", "negative_slope"]) or "")


def test_most_elementwise_rules_have_a_formula() -> None:
    ops = [getattr(one.value, "op", None) for one in public_names.names() if one.entry is not None]
    ruled = [op for op in ops if op and op.family in formulas.FAMILIES and any(map(callable, op.vjp))]
    assert len([op for op in ruled if formulas.derivatives(op, op.operands)]) > 0.8 * len(ruled)


def _named(path: str) -> public_names.Name:
    return name_tables.by_path()[path]


@pytest.mark.parametrize("path", ["tapegrad.sin", "tapegrad.nn.functional.gelu", "tapegrad.special.k0e"])
def test_curves_are_values_and_slopes(path: str) -> None:
    found = plots.curve(_named(path))
    assert found is not None
    step = found.x[1] - found.x[0]
    np.testing.assert_allclose(np.gradient(found.y, step)[5:-5], found.slope[5:-5], rtol=0.02, atol=2e-3)


@pytest.mark.parametrize(
    "path", ["sort", "add", "clone", "nn.functional.relu_", "dropout", "isnan", "linalg.inv", "no_grad", "float32"]
)
def test_what_is_no_function_of_one_variable_has_no_curve(path: str) -> None:
    assert plots.curve(_named(f"tapegrad.{path}")) is None


def test_lines_stop_at_jumps() -> None:
    x = np.linspace(-1, 1, 101)
    y, places = plots.with_gaps(x, np.where(x < 0, 0.0, 1.0))
    assert np.flatnonzero(np.isnan(y)).tolist() == [50]
    assert len(places) == 102
    assert not np.isnan(plots.with_gaps(x, np.exp(3 * x))[0]).any()


def test_plots_are_drawn_once(tmp_path: Path) -> None:
    path = plots.plot(_named("tapegrad.relu"), tmp_path)
    assert path is not None
    assert path.read_text().count("<svg") == 1
    path.write_text("kept")
    assert plots.plot(_named("tapegrad.relu"), tmp_path) == path
    assert path.read_text() == "kept"


def test_notes_of_an_operation(tmp_path: Path) -> None:
    text = "\n".join(op_notes(_named("tapegrad.arcsin"), tmp_path / "plots", tmp_path))
    assert ".. image:: /plots/asin-" in text
    assert r"\bar{x} &= \frac{\bar{y}}" in text
    assert "Also ``tg.arcsin``, ``x.asin()``, ``x.arcsin()``, ``x.asin_()``, ``x.arcsin_()``, ``np.arcsin``" in text


@pytest.mark.parametrize(
    ("text", "module", "expected"),
    [
        ("Inverse of `sigmoid`.", "tapegrad", "Inverse of :py:obj:`sigmoid <tapegrad.sigmoid>`."),
        ("`gelu` of each", "tapegrad.nn", ":py:obj:`gelu <tapegrad.nn.functional.gelu>` of each"),
        ("see `arcsin`", "tapegrad.special", "see :py:obj:`arcsin <tapegrad.asin>`"),
        ("along `dim`, :math:`x` and ``y``", "tapegrad", "along ``dim``, :math:`x` and ``y``"),
    ],
)
def test_names_in_docstrings_are_links(text: str, module: str, expected: str) -> None:
    assert name_tables.linked(text, module, ["dim"]) == expected


ORDER = ["Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "Notes", "References", "Examples"]


def test_sections_of_docstrings_stand_in_numpys_order() -> None:
    wrong = {}
    for one in public_names.names():
        if one.source in ("dtypes", "backends", "constants"):
            continue
        found = re.findall(r"(?m)^(\w+)\n-{3,}$", inspect.getdoc(one.value) or "")
        if found != sorted(set(found), key=ORDER.index):
            wrong[one.path] = found
    assert wrong == {}
