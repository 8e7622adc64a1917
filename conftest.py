"""Run the Python blocks of Markdown pages as tests: those with prompts as doctests, the others as code."""

import doctest
from importlib import import_module
from types import ModuleType

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

from tapegrad.ops.table.public import NAMESPACES

# Programs, which the docs' build and tests/test_gallery.py run.
collect_ignore_glob = ["docs/gallery/*.py", "docs/generated/*"]


def pytest_configure(config: pytest.Config) -> None:
    """Collect pages with the doctest flags that pyproject.toml gives to docstrings."""
    flags = 0
    for name in config.getini("doctest_optionflags"):
        flags |= doctest.OPTIONFLAGS_BY_NAME[name]
    pages = Sybil(parsers=[PythonCodeBlockParser(doctest_optionflags=flags), SkipParser()], patterns=["*.md"])
    plugin = ModuleType("markdown-pages")  # a plugin must be hashable as soon as there is a second conftest.py
    plugin.pytest_collect_file = pages.pytest()
    if config.option.doctestmodules:  # a function stands in its module from its first use on
        for namespace in NAMESPACES:
            module = import_module(namespace)
            for name in module.__all__:
                getattr(module, name)
    config.pluginmanager.register(plugin, plugin.__name__)
