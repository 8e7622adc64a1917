"""Sphinx extension: pages of the reference, made from the op table and the docstrings.

``.. topics:: PAGE ...`` is a table of pages, ``.. summary::`` one of all that a page has. ``.. operations:: FILE ...``
describes the public names that some files define; ``.. methods::``, ``.. ufuncs::`` and ``.. numpy-functions::`` are
tables of names that lead there.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from docs.extensions import name_tables, public_names
from docs.extensions.op_notes import op_notes
from docs.extensions.public_names import METHOD, Name
from tapegrad.nn import Module
from tapegrad.tensor import Tensor

STATIC = Path(__file__).parent / "static"
HEAVIEST = 330_000  # bytes of a page
_log = logging.getLogger(__name__)


def _directive(one: Name) -> list[str]:
    """Return the lines of reStructuredText that describe a name."""
    value, parent = one.value, one.path.rpartition(".")[0]
    if parent == METHOD:
        is_property = one.entry is not None and one.entry.names.attribute
        return [f".. auto{'property' if is_property else 'method'}:: {one.path}"]
    if value is Tensor:
        own = [name for name in vars(value) if not name.startswith("_") and name not in dict(name_tables.methods())]
        return [f".. autoclass:: {one.path}", f"   :members: {', '.join(own)}"]
    if isinstance(value, type):
        if one.source == "dtypes":
            return [f".. py:class:: {one.path}", "", f"   {one.summary}"]
        kind = "exception" if issubclass(value, BaseException) else "class"
        members = [] if one.source.startswith("nn.modules.") and value is not Module else ["   :members:"]
        return [f".. auto{kind}:: {one.path}", *members, *["   :inherited-members:"] * (value is Module)]
    if callable(value) and not isinstance(value, types.SimpleNamespace) and hasattr(value, "__name__"):
        return [f".. autofunction:: {one.path}"]
    return [f".. py:data:: {one.path}", "", f"   {one.summary} {name_tables.also(one)}"]


class Operations(SphinxDirective):
    """The public names of some files, each with its docstring, formula, plot and further names."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        sources, page = tuple(self.arguments[0].split()), Path(self.env.docname).name
        found = next(one.names for one in public_names.pages()[page] if one.sources == sources)
        lines = [line for one in found for line in (*_directive(one), "")]
        parsed = self.parse_text_to_nodes("\n".join(lines))
        self.env.note_dependency(__file__)
        for one in found:
            self._note_aliases(one, parsed)
        return parsed

    def _note_aliases(self, one: Name, parsed: Iterable[nodes.Node]) -> None:
        """Give a description the anchors of its further names, which the search finds if they are new words.

        NumPy's and SciPy's names lead to it too: who searches for ``np.sin`` types both words.
        """
        described = [
            signature
            for node in parsed
            for signature in node.findall(addnodes.desc_signature)
            if one.path in signature["ids"]
        ]
        if not described:
            _log.warning("there is no description of %s", one.path, location=self.get_location())
            return
        domain, seen = self.env.domains.python_domain, {one.path.rpartition(".")[2]}
        for path in (*one.aliases, *name_tables.methods_of(one)):
            if path in domain.objects:  # where a class is defined: autodoc notes that
                continue
            last = path.rpartition(".")[2]
            described[0]["ids"].append(path)
            kind, is_known = domain.objects[one.path].objtype, last.rstrip("_") in seen
            domain.note_object(path, kind, path, is_known, location=described[0])
            seen.add(last)
        for name in name_tables.numpy_names().get(one.path, ()):
            domain.note_object(name, domain.objects[one.path].objtype, one.path, location=described[0])


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return a table as lines; cells are texts in reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: auto", "   :class: summary", ""]
    for row in (header, *rows):
        lines += [f"   {'* -' if not number else '  -'} {cell}" for number, cell in enumerate(row)]
    return [*lines, ""]


class Summary(SphinxDirective):
    """A table of the names of a page, below the headings of their sections."""

    def run(self) -> list[nodes.Node]:
        page = Path(self.env.docname).name
        lines = []
        for section in public_names.pages()[page]:
            within = name_tables.common_module(section.names)
            rows = [(name_tables.link(one, within), name_tables.summary(one)) for one in section.names]
            heading = f"**{section.heading}**" + f" of ``{within[:-1]}``" * (within != "tapegrad.")
            lines += [heading, "", *_table(("Name", "What it does"), rows)]
        return self.parse_text_to_nodes("\n".join(lines))


class Topics(SphinxDirective):
    """A table of pages: their titles, and the headings of their sections."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        rows = [(f":doc:`{page}`", self._contents(page)) for page in self.arguments[0].split()]
        return self.parse_text_to_nodes("\n".join(_table(("Page", "What stands there"), rows)))

    def _contents(self, page: str) -> str:
        """Return the headings of a page's sections; of another page its first sentence."""
        if page in public_names.pages():
            return " · ".join([section.heading for section in public_names.pages()[page]])
        text = (public_names.REFERENCE / f"{page}.md").read_text()
        return text.split("\n\n")[1].replace("\n", " ").partition(". ")[0].rstrip(".") + "."


class Methods(SphinxDirective):
    """A table of the methods of tensors that are functions."""

    def run(self) -> list[nodes.Node]:
        rows = ((f"``{name}``", name_tables.link(one), name_tables.summary(one)) for name, one in name_tables.methods())
        lines = _table(("Method", "Function", "What it does"), rows)
        return self.parse_text_to_nodes("\n".join(lines))


class Ufuncs(SphinxDirective):
    """A table of NumPy's and SciPy's ufuncs, and our functions."""

    def run(self) -> list[nodes.Node]:
        rows = ((f"``{name}``", name_tables.link(one), name_tables.summary(one)) for name, one in name_tables.ufuncs())
        return self.parse_text_to_nodes("\n".join(_table(("Ufunc", "Function", "What it does"), rows)))


class NumpyFunctions(SphinxDirective):
    """A table of NumPy's functions that are ours, and one of those that are put together."""

    def run(self) -> list[nodes.Node]:
        rows = (
            (f"``{name}``", name_tables.link(one), name_tables.summary(one))
            for name, one in name_tables.numpy_functions()
        )
        lines = _table(("NumPy", "Function", "What it does"), rows)
        further = [
            (kind, ", ".join([f"``{name}``" for name in known])) for kind, known in name_tables.further_functions()
        ]
        lines += [
            "Further functions work on tensors:",
            "",
            *_table(("Kind", "Functions"), further),
        ]
        return self.parse_text_to_nodes("\n".join(lines))


def _link_names(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Make links of public names in a docstring; what is a parameter is code."""
    module, parameters = name.rpartition(".")[0], name_tables.parameters_of(value)
    lines[:] = [name_tables.linked(line, module, parameters) for line in lines]


def _add_notes(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Put formula, plot and further names behind the first paragraph of a docstring that numpydoc has written."""
    one = name_tables.by_path().get(name)
    if one is None or one.entry is None:
        return
    end = next((number for number, line in enumerate(lines) if number and not line.strip()), len(lines))
    folder = Path(app.doctreedir) / "plots"
    lines[end:end] = ["", *op_notes(one, folder, Path(app.srcdir)), ""]


def _check(app: Sphinx) -> None:
    for problem in public_names.problems():
        _log.warning("%s", problem)


def _check_weight(app: Sphinx, error: Exception | None) -> None:
    """Warn of pages that take long to load: their topic is too large."""
    for path in sorted(Path(app.outdir, "reference").glob("*.html")):
        if path.stat().st_size > HEAVIEST:
            _log.warning("%s has %d bytes, more than %d: divide it", path.name, path.stat().st_size, HEAVIEST)


def _styles(app: Sphinx, config: Any) -> None:
    config.html_static_path.append(str(STATIC))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    for name, directive in (
        ("operations", Operations), ("summary", Summary), ("methods", Methods), ("ufuncs", Ufuncs),
        ("numpy-functions", NumpyFunctions), ("topics", Topics),
    ):  # fmt: skip
        app.add_directive(name, directive)
    app.connect("builder-inited", _check)
    app.connect("build-finished", _check_weight)
    app.connect("config-inited", _styles)
    app.connect("autodoc-process-docstring", _link_names, priority=400)  # numpydoc's is 500
    app.connect("autodoc-process-docstring", _add_notes, priority=600)
    app.add_css_file("reference.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
