"""Sphinx configuration: Markdown pages, and an API reference read from the docstrings."""

from importlib.metadata import version as installed_version

project = "tapegrad"
author = "the tapegrad developers"
copyright = f"2026, {author}"
release = version = installed_version("tapegrad")

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3  # [text](page.md#heading)

autodoc_typehints = "none"  # the Parameters section says it
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # autodoc lists them

html_theme = "furo"
html_title = f"tapegrad {release}"
