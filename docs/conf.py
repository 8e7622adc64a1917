"""Sphinx configuration: Markdown pages, and an API reference read from the docstrings."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

project = "tapegrad"
author = "the tapegrad developers"
copyright = f"2026, {author}"
release = version = installed_version("tapegrad")

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]

# The pages of the reference are made by docs/extensions; their formulas need no network.
sys.path.insert(0, str(Path(__file__).parents[1]))
extensions += ["docs.extensions.reference", "sphinx-mathjax-offline"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3  # [text](page.md#heading)

autodoc_typehints = "none"  # the Parameters section says it
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # autodoc lists them

html_theme = "furo"
html_title = f"tapegrad {release}"
