"""Sphinx configuration: Markdown pages, and an API reference read from the docstrings."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

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

# The gallery: docs/gallery/ is executed into docs/generated/gallery/.
sys.path.insert(0, str(Path(__file__).parent))

extensions += ["sphinx_gallery.gen_gallery", "gallery_conf"]
exclude_patterns = ["gallery"]
