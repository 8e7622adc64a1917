"""Sphinx configuration: Markdown pages by reader, and a reference read from the docstrings."""

import sys
from importlib import import_module
from importlib.metadata import version as installed_version
from pathlib import Path

project = "tapegrad"
author = "the tapegrad developers"
copyright = f"2026, {author}"
release = version = installed_version("tapegrad")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
]

# The pages of the reference are made by docs/extensions; their formulas need no network.
sys.path.insert(0, str(Path(__file__).parents[1]))
extensions += ["docs.extensions.reference", "sphinx-mathjax-offline"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3  # [text](page.md#heading)

autodoc_typehints = "none"  # the Parameters section says it
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # autodoc lists them

# The button copies what is typed, without prompts and output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"tapegrad {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_sidebars = {"index": []}
html_context = {"default_mode": "auto"}  # the theme writes an error to the console if nothing is said
html_theme_options = {
    "logo": {"text": "tapegrad"},
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}

# The gallery: docs/gallery/ is executed into docs/generated/gallery/.
sys.path.insert(0, str(Path(__file__).parent))
sphinx_gallery_conf = import_module("gallery_conf").SETTINGS

extensions += ["sphinx_gallery.gen_gallery", "gallery_conf"]
exclude_patterns = ["gallery"]
